// SPDX-License-Identifier: MIT
// mp-convert as its users run it, against codes and losses that are worked out by hand.
#include <doctest/doctest.h>
#include <mp/arrays/io/safetensors.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "examples/workplace.hpp"
#include "page_checks.hpp"

namespace {

using bytes = std::vector<unsigned char>;

bytes bytes_of(const mp::tensor_file& file, std::string_view name) {
    const auto from = file.at(name).bytes;
    bytes result;
    for (const std::byte it : from) result.push_back(static_cast<unsigned char>(it));
    return result;
}

/// With single spaces.
std::string line_of(const std::string& text, const std::string& word) {
    const std::size_t begin = ("\n" + text).find("\n" + word + " ");
    if (begin == std::string::npos) return "";
    std::string result;
    for (const char c : text.substr(begin, text.find('\n', begin) - begin)) {
        if (c != ' ' || result.back() != ' ') result.push_back(c);
    }
    return result;
}

/// A row with a value that is too large for its scale in mxfp4, one that is too small, and a 1; a norm; a double near the
/// middle of two halves; and whole numbers.
void write_model(const std::string& path) {
    const std::vector<mp::tensor_description> tensors{{"w", "F32", {1, 1, 32}},
                                                      {"norm", "BF16", {2}},
                                                      {"d", "F64", {1, 2}},
                                                      {"ids", "I64", {1, 1}},
                                                      {"odd", "F16", {1, 3}}};
    mp::safetensors_writer out(path, tensors, {{"made", "here"}});
    std::vector<float> w(32);
    w[0] = 7;
    w[1] = -0.2F;
    w[3] = 1;
    out.write_elements("w", w);
    out.write_elements("norm", std::vector{mp::bfloat16(1.0F), mp::bfloat16(0.5F)});
    out.write_elements("d", std::vector<double>{1 + 0x1p-11 + 0x1p-40, 1e300});
    out.write_elements("ids", std::int64_t{7});
    out.write_elements("odd", std::vector<mp::half>(3, mp::half(2.0F)));
    out.commit();
}

}  // namespace

TEST_CASE("mp-convert: codes, scales and losses are those worked out by hand") {
    const examples::workplace place(MP_CONVERT);
    write_model(place.path("m.safetensors"));
    const examples::outcome run = place.run("m.safetensors --to mxfp4 --report --threads 3");
    CAPTURE(run.error);
    REQUIRE(run.code == 0);
    // The scale is 2^0: 7 becomes 6, -0.2 becomes -0.
    // Errors are 1 and 0.2 of 7, 0.2 and 1: 10 log10(50.04 / 1.04) dB, and sqrt((1/49 + 1) / 3).
    CHECK(line_of(run.out, "w") == "w 1x1x32 F32 mxfp4 3.1% 1 1 0.583 16.8 17 B");
    CHECK(line_of(run.out, "norm") == "norm 2 BF16 kept: one dimension 4 B");
    CHECK(line_of(run.out, "ids") == "ids 1x1 I64 kept: not floating point 8 B");
    CHECK(line_of(run.out, "odd") == "odd 1x3 F16 kept: row of 3 6 B");
    CHECK(run.out.find("1 of 5 tensors to mxfp4, 162 B to 51 B, SNR 16.8 dB\n") != std::string::npos);
    const mp::tensor_file file(place.path("m.mxfp4.safetensors"));
    CHECK(file.tensors().size() == 6);
    CHECK(file.at("w").dtype == "F4");
    CHECK(file.at("w").shape == std::vector<std::size_t>{1, 1, 32});
    bytes codes(16);
    codes[0] = 0x87;
    codes[1] = 0x20;
    CHECK(bytes_of(file, "w") == codes);
    CHECK(file.at("w_scale").dtype == "F8_E8M0");
    CHECK(bytes_of(file, "w_scale") == bytes{127});
    CHECK(bytes_of(file, "norm") == bytes{0x80, 0x3f, 0, 0x3f});
    CHECK(file.metadata().at("made") == "here");
    const std::string page = examples::content_of(place.path("m.mxfp4.html"));
    CHECK(page.starts_with("<!DOCTYPE html>"));
    CHECK(page.find("w: 16.8 dB") != std::string::npos);
    CHECK(page.ends_with("</html>\n"));
    CHECK(first_fault(page) == "");
}

TEST_CASE("mp-convert: the other layouts hold the same bytes") {
    const examples::workplace place(MP_CONVERT);
    write_model(place.path("m.safetensors"));
    REQUIRE(place.run("m.safetensors --to mxfp4 --layout gpt-oss --output o.safetensors").code == 0);
    const mp::tensor_file oss(place.path("o.safetensors"));
    CHECK(oss.at("w_blocks").shape == std::vector<std::size_t>{1, 1, 1, 16});
    CHECK(oss.at("w_blocks").dtype == "U8");
    CHECK(oss.at("w_scales").dtype == "U8");
    CHECK(bytes_of(oss, "w_blocks")[0] == 0x87);
    REQUIRE(place.run("m.safetensors --to nvfp4 --layout bytes --output n.safetensors").code == 0);
    const mp::tensor_file nv(place.path("n.safetensors"));
    CHECK(nv.at("w").shape == std::vector<std::size_t>{1, 1, 16});
    CHECK(nv.at("w_scale").dtype == "F8_E4M3");
    // The tensor scale is 7 / (448 * 6), the block's 448, and then 7 is 6 of it; of zeros it is the smallest.
    float scale = 0;
    nv.read("w_scale_2", scale);
    CHECK(scale == 7.0F / 2688.0F);
    CHECK(bytes_of(nv, "w_scale") == bytes{0x7e, 1});
    CHECK((bytes_of(nv, "w")[0] & 15) == 7);
}

TEST_CASE("mp-convert: values are rounded once, and names and options choose tensors") {
    const examples::workplace place(MP_CONVERT);
    write_model(place.path("m.safetensors"));
    const examples::outcome run =
        place.run("m.safetensors --to=half --include d --include 'n*' --all --report=r.html");
    REQUIRE(run.code == 0);
    const mp::tensor_file file(place.path("m.half.safetensors"));
    // By way of a float 1 + 2^-11 + 2^-40 would become 1.
    CHECK(bytes_of(file, "d") == bytes{1, 0x3c, 0xff, 0x7b});
    CHECK(bytes_of(file, "norm") == bytes{0, 0x3c, 0, 0x38});
    CHECK(file.at("w").dtype == "F32");
    CHECK(line_of(run.out, "w") == "w 1x1x32 F32 kept: by name 128 B");
    CHECK(line_of(run.out, "norm") == "norm 2 BF16 half 0.0% 0 0 0 exact 4 B");
    CHECK(std::filesystem::exists(place.path("r.html")));
    const examples::outcome dry = place.run("m.safetensors --to bfloat16 --exclude 'd*' --dry-run");
    CHECK(dry.code == 0);
    CHECK(dry.out == "2 of 5 tensors to bfloat16, 162 B to 98 B, SNR 92.1 dB\n");
    CHECK_FALSE(std::filesystem::exists(place.path("m.bfloat16.safetensors")));
}

TEST_CASE("mp-convert: wrong use gets one line on the error stream and exit code 2") {
    const examples::workplace place(MP_CONVERT);
    write_model(place.path("m.safetensors"));
    for (const char* arguments :
         {"", "m.safetensors", "--to half", "x.safetensors --to half", "m.safetensors --to int3",
          "m.safetensors --to half --bogus", "m.safetensors --to half --all=1",
          "m.safetensors --to half --layout x", "m.safetensors --to half --layout gpt-oss",
          "m.safetensors --to half --output m.safetensors", "m.safetensors --to half --threads 0",
          "m.safetensors n --to half", "m.safetensors --to half --output /nowhere/x", "m.safetensors --to"}) {
        CAPTURE(arguments);
        const examples::outcome run = place.run(arguments);
        CHECK(run.code == 2);
        CHECK(run.out.empty());
        CHECK(run.error.starts_with("mp-convert: "));
        CHECK(std::count(run.error.begin(), run.error.end(), '\n') == 1);
    }
    CHECK(place.run("--help").out.find("--layout") != std::string::npos);
}
