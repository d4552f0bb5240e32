// SPDX-License-Identifier: MIT
// The main job as its users run it.
#include <doctest/doctest.h>

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

TEST_CASE("help goes to the output, names every option and recipe, and does nothing else") {
    const workplace here;
    const outcome run = here.run("--help");
    CHECK(run.code == 0);
    CHECK(run.error.empty());
    for (const char* word :
         {"--recipe", "--epochs", "--seed", "--repeats", "--loss-weight", "--report", "--data", "--threads",
          "--help", "fp16-master", "fp16-static", "fp16-dynamic", "bf16-master"}) {
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
         {"--epoch 3", "--epochs", "--epochs none", "--recipe fp8", "--loss-weight 0", "--data missing.csv",
          "--data broken.csv", "--data empty.csv", "--data .", "--report no/such/folder.html", "surprise"}) {
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
