// SPDX-License-Identifier: MIT
// train_gpt as its users run it: what it learns, writes and refuses, and that it can be killed.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "examples/workplace.hpp"
#include "page_checks.hpp"

namespace {

using examples::content_of;
using examples::outcome;

/// A folder with a text that a small model learns in some steps.
struct workplace : examples::workplace {
    static constexpr const char* sizes =
        "--text text.txt --layers 1 --width 16 --heads 2 --context 16 --batch 4 --steps 30 --learning-rate "
        "0.02 "
        "--sample 40 ";

    workplace() : examples::workplace(MP_TRAIN_GPT) {
        std::ofstream text(path("text.txt"));
        for (int i = 0; i < 300; ++i) text << "0123456789 abcdefgh\n";
    }
    outcome train(const std::string& more) const { return run(sizes + more); }
};

/// The cells of the first line of the first table that begins with the name of a recipe.
std::vector<std::string> cells_of(const std::string& out, const std::string& name) {
    std::istringstream lines(out);
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with(name + " ")) continue;
        std::istringstream stream(line);
        std::vector<std::string> cells;
        for (std::string cell; stream >> cell;) cells.push_back(cell);
        return cells;
    }
    return {};
}

const std::vector<std::string> names{"fp32", "amp_bf16",   "amp_fp16", "bf16",
                                     "fp16", "fp16_alone", "fp8",      "mxfp8"};

TEST_CASE("train_gpt: every recipe learns, and says where time and memory went, also on a page") {
    const workplace place;
    const outcome ran = place.train("--recipe all --report page.html");
    CHECK(ran.code == 0);
    std::map<std::string, double> losses;
    for (const std::string& name : names) {
        const auto cells = cells_of(ran.out, name);
        REQUIRE(cells.size() == 11);
        losses[name] = std::strtod(cells[1].c_str(), nullptr);
        // 20 characters, so 4.3 bits at first; the mean of the last 20 of 30 steps is below.
        CHECK(losses[name] < 3.0);
        CHECK(std::strtod(cells[2].c_str(), nullptr) < 1.5);
        // Casts: within the forward and the backward pass.
        if (name.starts_with("amp")) {
            const double casts = std::strtod(cells[8].c_str(), nullptr);
            CHECK(cells[8] != "-");
            CHECK(casts >= 0.0);
            CHECK(casts < std::strtod(cells[6].c_str(), nullptr) + std::strtod(cells[7].c_str(), nullptr));
        } else {
            CHECK(cells[8] == "-");
        }
    }
    CHECK(cells_of(ran.out, "fp16")[4].starts_with("2^"));
    CHECK(cells_of(ran.out, "bf16")[4] == "1");
    for (const char* const name : {"bf16", "fp16", "amp_bf16", "amp_fp16"}) {
        CHECK(losses[name] == doctest::Approx(losses["fp32"]).epsilon(0.03));
    }
    CHECK(ran.error.find("100% done") != std::string::npos);
    const std::string page = content_of(place.path("page.html"));
    CHECK(first_fault(page) == "");
    CHECK(has_clean_paths(page));
    for (const char* const title :
         {"Loss", "Difference from float", "Loss scale", "Gradients", "Memory", "What they write"}) {
        CHECK(page.find(">" + std::string(title) + "</h") != std::string::npos);
    }
    for (const std::string& name : names) CHECK(page.find("line " + name) != std::string::npos);
}

TEST_CASE("train_gpt: threads change no bit, and micro batches are one batch") {
    const workplace place;
    const auto checkpoint = [&](const std::string& more) {
        REQUIRE(place.train("--recipe bf16 --checkpoint state " + more).code == 0);
        return content_of(place.path("state.bf16"));
    };
    const std::string one = checkpoint("--threads 1");
    CHECK(one.size() > 1000);
    CHECK(checkpoint("--threads 3") == one);
    CHECK(checkpoint("--seed 2") != one);
    // The same sequences in the same steps: the gradients differ by how sums are rounded.
    const auto whole = cells_of(place.train("--recipe fp32 --batch 8").out, "fp32");
    const auto parts = cells_of(place.train("--recipe fp32 --batch 4 --accumulate 2").out, "fp32");
    REQUIRE(whole.size() == 11);
    REQUIRE(parts.size() == 11);
    CHECK(std::strtod(parts[1].c_str(), nullptr) ==
          doctest::Approx(std::strtod(whole[1].c_str(), nullptr)).epsilon(1e-3));
}

TEST_CASE("train_gpt: a run that was interrupted, or killed, ends with the bits of one that was not") {
    const workplace place;
    for (const std::string name : {"bf16", "fp16", "amp_fp16", "fp8"}) {
        const std::string recipe = "--recipe " + name + " --checkpoint ";
        REQUIRE(place.train(recipe + "whole").code == 0);
        const std::string whole = content_of(place.path("whole." + name));
        REQUIRE(place.train(recipe + "parts --stop-after 11").code == 0);
        CHECK(content_of(place.path("parts." + name)) != whole);
        REQUIRE(place.train(recipe + "parts --resume --threads 2").code == 0);
        CHECK(content_of(place.path("parts." + name)) == whole);
    }
    // Nor does it go on as another run than it was, without a word.
    for (const char* const other : {"--seed 2", "--batch 5", "--accumulate 2", "--steps 31"}) {
        CAPTURE(other);
        const outcome ran = place.train(std::string("--recipe bf16 --checkpoint parts --resume ") + other);
        CHECK(ran.code == 1);
        CHECK(ran.error.find("was another one when the run was saved") != std::string::npos);
    }
    // Killed again and again, ever later, until it is through.
    const std::string often = " --steps 200 --recipe bf16 --checkpoint-every 1 --checkpoint ";
    REQUIRE(place.train(often + "long").code == 0);
    const std::string program = MP_TRAIN_GPT;
    int kills = 0;
    for (double seconds = 0.02;; seconds *= 1.5) {
        const std::string command = "cd '" + place.path("") + "' && timeout -s KILL " +
                                    std::to_string(seconds) + " '" + program + "' " + workplace::sizes +
                                    often + "killed --resume >/dev/null 2>&1";
        if (std::system(command.c_str()) == 0) break;
        REQUIRE(++kills < 40);
    }
    CHECK(kills > 0);
    CHECK(content_of(place.path("killed.bf16")) == content_of(place.path("long.bf16")));
}

TEST_CASE("train_gpt: what it does not understand is said in a line, with exit code 2") {
    const workplace place;
    const auto error = [&](const std::string& arguments) {
        const outcome ran = place.train(arguments);
        CHECK(ran.code == 2);
        CHECK(ran.out.empty());
        return ran.error;
    };
    CHECK(error("--recipe fp64") ==
          "train_gpt: --recipe is 'fp64'; it must be one of fp32 amp_bf16 amp_fp16 bf16 fp16 fp16_alone fp8 "
          "mxfp8\n");
    CHECK(error("--size huge") == "train_gpt: --size is 'huge'; it must be one of tiny small gpt2\n");
    CHECK(error("--steps 0") ==
          "train_gpt: --steps is '0'; it must be a whole number from 1 to 1000000000\n");
    CHECK(error("--learning-rate 2") ==
          "train_gpt: --learning-rate is '2'; it must be a number between 0 and 1\n");
    CHECK(error("--heads 3") == "train_gpt: --width is 16; it must be a multiple of --heads, which is 3\n");
    CHECK(error("--resume") == "train_gpt: --resume needs --checkpoint\n");
    CHECK(error("--no-such 1") == "train_gpt: unknown option '--no-such'; --help lists them\n");
    CHECK(error("--text missing.txt") == "train_gpt: cannot read 'missing.txt'\n");
    CHECK(error("--context 600")
              .starts_with("train_gpt: the text has 6000 characters; a context of 600 needs"));
    CHECK(error("--report no/such/folder.html").starts_with("train_gpt: cannot write the report to"));
    const outcome help = place.run("--help");
    CHECK(help.code == 0);
    CHECK(help.out.starts_with("usage: train_gpt"));
}

}  // namespace
