// SPDX-License-Identifier: MIT
// The main job as its users run it.
#include <doctest/doctest.h>
#include <mp/frontends/compat/presets.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "examples/workplace.hpp"

namespace {

using examples::content_of;
using examples::outcome;

/// A folder to run the program in.
struct workplace : examples::workplace {
    workplace() : examples::workplace(MP_TRAIN_DIGITS) {}
};

TEST_CASE("a short run prints all tables, sparse progress, and writes the page") {
    const workplace here;
    const outcome run = here.run("--epochs 2 --repeats 1 --recipe fp32,fp16,fp16-dynamic");
    CHECK(run.code == 0);
    CHECK(run.out.find("Ordinary setting") != std::string::npos);
    CHECK(run.out.find("Loss weight 2^-14") != std::string::npos);
    CHECK(run.out.find("Loss weight 2^-16") != std::string::npos);
    CHECK(run.out.find("fp16, masters, dynamic scale") != std::string::npos);
    CHECK(run.out.find("The plots are in train_digits.html") != std::string::npos);
    CHECK(run.error.find('\r') == std::string::npos);
    CHECK(std::count(run.error.begin(), run.error.end(), '\n') == 10);
    CHECK(content_of(here.path("train_digits.html")).ends_with("</html>\n"));
}

/// The lines of the tables without their last cell, which is the time that it took.
std::vector<std::string> numbers_in(const std::string& out) {
    std::vector<std::string> lines;
    std::istringstream stream(out);
    for (std::string line; std::getline(stream, line);) {
        if (line.find('%') == std::string::npos || line.starts_with("*")) continue;
        lines.push_back(line.substr(0, line.find_last_of(' ')));
    }
    return lines;
}

TEST_CASE("the same seed gives the same tables, whatever the number of threads") {
    const workplace here;
    const std::string arguments = "--epochs 2 --repeats 2 --recipe fp16,bf16 --loss-weight 2^-14 --seed ";
    const outcome one = here.run(arguments + "5 --threads 1");
    const outcome four = here.run(arguments + "5 --threads 4");
    CHECK(one.code == 0);
    CHECK(numbers_in(one.out).size() >= 2);
    CHECK(numbers_in(one.out) == numbers_in(four.out));
    CHECK(numbers_in(one.out) != numbers_in(here.run(arguments + "6").out));
}

/// The line of the recipe with this title, without its title and the time; empty if it is not there.
std::string line_of(const std::string& out, const std::string& title) {
    for (const std::string& line : numbers_in(out)) {
        if (!line.starts_with(title + " ")) continue;
        const std::string cells = line.substr(line.find_first_not_of(' ', title.size()));
        return cells.substr(0, cells.find_last_not_of(' ') + 1);
    }
    return {};
}

TEST_CASE("presets are trained in addition to the recipes, each as its system has it") {
    const workplace here;
    const outcome run = here.run("--epochs 3 --repeats 1 --recipe fp32 --loss-weight 1 --preset all");
    CHECK(run.code == 0);
    CHECK(numbers_in(run.out).size() == 1 + mp::autocast::presets::all.size());
    const auto line = [&](const std::string& preset) { return line_of(run.out, "preset " + preset); };
    for (const mp::autocast::preset* it : mp::autocast::presets::all) {
        CAPTURE(it->name);
        const std::string cells = line(std::string(it->name));
        REQUIRE_FALSE(cells.empty());
        CHECK(std::stod(cells) > 80.0);
        // Only half is scaled, and only what has no master weights is stored in 16 bits.
        CHECK((cells.find(" 2^") != std::string::npos) == (it->value == mp::precision::fp16));
        CHECK(cells.ends_with(it->master_weights ? " 12" : " 6"));
    }
    for (const char* in_float : {"off", "keras_float32", "apex_o0"}) {
        CHECK(line(in_float) == line_of(run.out, "fp32"));
    }
    CHECK(line("pytorch_cuda") != line("off"));
    CHECK(line("pytorch_cuda") == line("fp16"));
    CHECK(line("pytorch_cuda") != line("apex_o3"));
    CHECK(line("bf16") != line("fp16"));
    CHECK(line("fp8_hybrid") != line("bf16"));
    CHECK(content_of(here.path("train_digits.html")).find("line preset in-fp8 own") != std::string::npos);

    const outcome without = here.run("--epochs 3 --repeats 1 --recipe fp32 --loss-weight 1");
    CHECK(line_of(without.out, "fp32") == line_of(run.out, "fp32"));
    CHECK(without.out.find("preset") == std::string::npos);
}

TEST_CASE("help goes to the output, names every option and recipe, and does nothing else") {
    const workplace here;
    const outcome run = here.run("--help");
    CHECK(run.code == 0);
    CHECK(run.error.empty());
    for (const char* word :
         {"--recipe", "--epochs", "--seed", "--repeats", "--loss-weight", "--report", "--data", "--threads",
          "--preset", "--help", "fp16-master", "fp16-static", "fp16-dynamic", "bf16-master"}) {
        CAPTURE(word);
        CHECK(run.out.find(word) != std::string::npos);
    }
    CHECK_FALSE(std::filesystem::exists(here.path("train_digits.html")));
}

TEST_CASE("wrong use gets one line on the error stream and exit code 2") {
    const workplace here;
    std::ofstream(here.path("broken.csv")) << "1,2,3\n";
    std::ofstream(here.path("empty.csv")) << "";
    for (const char* arguments :
         {"--epoch 3", "--epochs", "--epochs none", "--recipe fp8", "--preset torch", "--loss-weight 0",
          "--data missing.csv", "--data broken.csv", "--data empty.csv", "--data .",
          "--report no/such/folder.html", "surprise"}) {
        CAPTURE(arguments);
        const outcome run = here.run(arguments);
        CHECK(run.code == 2);
        CHECK(run.out.empty());
        CHECK(run.error.starts_with("train_digits: "));
        CHECK(std::count(run.error.begin(), run.error.end(), '\n') == 1);
        CHECK_FALSE(std::filesystem::exists(here.path("train_digits.html")));
    }
}

}  // namespace
