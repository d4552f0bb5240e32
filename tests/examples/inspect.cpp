// SPDX-License-Identifier: MIT
// mp-inspect as its users run it.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <mp/numbers/format/named_formats.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace {

struct outcome {
    int code;
    std::string out;
};

/// Runs the program; the arguments go through the shell, and with 2>&1 the error stream is read as well.
outcome inspect(const std::string& arguments) {
    const std::string command = "'" MP_INSPECT "' " + arguments;
    FILE* pipe = popen(command.c_str(), "r");
    REQUIRE(pipe != nullptr);
    outcome result{0, ""};
    char buffer[4096];
    for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
        result.out.append(buffer, n);
    }
    const int status = pclose(pipe);
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return result;
}

/// The line of the output that begins with a word.
std::string line_of(const std::string& text, const std::string& word) {
    const std::string all = "\n" + text;
    const std::size_t begin = all.find("\n" + word + " ");
    if (begin == std::string::npos) return "";
    return all.substr(begin + 1, all.find('\n', begin + 1) - begin - 1);
}

/// With single spaces.
std::string squeezed(const std::string& text) {
    std::string result;
    for (const char c : text) {
        if (c != ' ' || (!result.empty() && result.back() != ' ')) result.push_back(c);
    }
    return result;
}

std::string row(const std::string& arguments, const std::string& format) {
    return squeezed(line_of(inspect(arguments + " --ascii").out, format));
}

}  // namespace

TEST_CASE("a value is shown in every format, rounded once") {
    CHECK(row("0.1", "half") == "half 0x2e66 0.1 0.0999755859 -0.400 inexact 0|01011|1001100110");
    CHECK(row("0.1", "float8_e8m0fnu") == "float8_e8m0fnu 0x7c 0.1 0.125 +0.200 inexact 01111100");
    CHECK(row("0.5", "float4_e2m1fn") == "float4_e2m1fn 0x1 0.5 0.5 exact - 0|00|1");
    CHECK(row("1e9", "half") == "half 0x7c00 inf inf - overflow inexact 0|11111|0000000000");
    CHECK(row("1e9 --saturate finite", "half").starts_with("half 0x7bff 65504 65504 "));
    CHECK(row("0.1 --round=upward", "half").starts_with("half 0x2e67 0.10004 0.100036621 +0.600 inexact"));
    CHECK(row("-0x1.8p-3", "bfloat16") == "bfloat16 0xbe40 -0.1875 -0.1875 exact - 1|01111100|1000000");
    CHECK(row("nan", "float4_e2m1fn") == "float4_e2m1fn 0x7 6 6 - invalid 0|11|1");
    CHECK(row("-inf", "float8_e5m2").starts_with("float8_e5m2 0xfc -inf -inf - - 1|11111|00"));
    CHECK(squeezed(line_of(inspect("--ascii -- -1").out, "half")).starts_with("half 0xbc00 -1 -1 exact"));
    // The middle of two halves, and a hair above it in the last of 70 digits.
    const std::string middle = "1.00048828125";
    CHECK(row(middle, "half").starts_with("half 0x3c00 "));
    CHECK(row(middle + std::string(60, '0') + "1", "half").starts_with("half 0x3c01 "));
    CHECK(row("0.1", "binary8p4se").empty());
    CHECK(
        row("0.1 --format all", "binary8p4se").starts_with("binary8p4se 0x25 0.1 0.1015625 +0.200 inexact"));
}

TEST_CASE("one format is shown in detail, from a value or from bits") {
    const outcome value = inspect("0.1 --format half");
    CHECK(value.code == 0);
    CHECK(value.out.starts_with("┌─┬─────┬──────────┐\n│0│01011│1001100110│\n"));
    CHECK(line_of(value.out, "value") == "value       0.0999755859375");
    CHECK(line_of(value.out, "error") == "error       -0.400 ulp");
    CHECK(line_of(value.out, "flags") == "flags       inexact");
    const outcome bits = inspect("0x7f81 --format bfloat16 --ascii");
    CHECK(bits.code == 0);
    CHECK(bits.out.starts_with("+-+--------+-------+\n|0|11111111|0000001|\n"));
    CHECK(line_of(bits.out, "class") == "class       signalling NaN");
    CHECK(inspect("0x3c00 --format half").out.find('\x1b') == std::string::npos);
}

TEST_CASE("the list has every format and its limits") {
    const outcome run = inspect("--list");
    CHECK(run.code == 0);
    CHECK(squeezed(line_of(run.out, "half")) == "half 16 1+5+10 65504 6.104e-05 6e-08 +-0 inf nan");
    CHECK(squeezed(line_of(run.out, "float8_e8m0fnu")) == "float8_e8m0fnu 8 0+8+0 2e+38 6e-39 6e-39 nan");
    std::vector<const char*> names = {"binary8p1se", "binary8p7uf", "binary8p3sf", "binary8p5ue"};
    [&]<class... Formats>(mp::formats::list<Formats...>) {
        (names.push_back(Formats::name), ...);
    }(mp::formats::all{});
    for (const char* name : names) {
        CAPTURE(name);
        CHECK_FALSE(line_of(run.out, name).empty());
    }
    CHECK(std::count(run.out.begin(), run.out.end(), '\n') == 1 + mp::formats::all::size + 28);
}

TEST_CASE("help names every option") {
    const outcome run = inspect("--help");
    CHECK(run.code == 0);
    for (const char* word : {"--format", "--round", "--saturate", "--ascii", "--list", "--help", "to_odd"}) {
        CAPTURE(word);
        CHECK(run.out.find(word) != std::string::npos);
    }
}

TEST_CASE("wrong use gets one line on the error stream and exit code 2") {
    for (const char* arguments :
         {"", "abc", "''", "0x10", "0x1ff --format float8_e5m2", "0x11111111111111111 --format double", "1 2",
          "1 --round up", "1 --saturate", "1 --format x", "--bogus", "1e5x", "-+5", "0x", "1 --ascii=yes"}) {
        CAPTURE(arguments);
        const outcome run = inspect(std::string(arguments) + " 2>&1 >/dev/null");
        CHECK(run.code == 2);
        CHECK(run.out.starts_with("mp-inspect: "));
        CHECK(std::count(run.out.begin(), run.out.end(), '\n') == 1);
        CHECK(inspect(std::string(arguments) + " 2>/dev/null").out.empty());
    }
}
