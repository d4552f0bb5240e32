// SPDX-License-Identifier: MIT
// train_gpt's loop for GPUs on the simulated one: the losses of the CPU, the bits of a run that was never killed, and
// files that either goes on from.
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "examples/workplace.hpp"

namespace {

using examples::content_of;
using examples::outcome;

/// Dropout and two micro batches, so that whatever changes from launch to launch of a captured step counts.
struct workplace : examples::workplace {
    static constexpr const char* sizes =
        "--text text.txt --layers 1 --width 16 --heads 2 --context 8 --batch 1 "
        "--accumulate 2 --learning-rate 0.02 --dropout 0.2 --sample 3 ";

    workplace() : examples::workplace(MP_TRAIN_GPT) {
        std::ofstream text(path("text.txt"));
        for (int i = 0; i < 20; ++i) text << "0123456789 abcdefgh\n";
    }
    std::string recipe = "amp_fp16 --steps 6";

    [[nodiscard]] std::string arguments() const { return sizes + ("--recipe " + recipe + " "); }
    outcome train(const std::string& more) const {
        const outcome ran = run(arguments() + more);
        CHECK(ran.error.find("train_gpt:") == std::string::npos);
        return ran;
    }
    /// The column of the losses of a run.
    std::vector<double> losses(const std::string& file) const {
        std::istringstream lines(content_of(path(file)));
        std::vector<double> found;
        std::string line;
        std::getline(lines, line);
        while (std::getline(lines, line)) {
            std::istringstream cells(line);
            std::string cell;
            for (int i = 0; i < 3; ++i) std::getline(cells, cell, ',');
            found.push_back(std::strtod(cell.c_str(), nullptr));
        }
        return found;
    }
};

/// What a safetensors file says of its arrays.
std::string header_of(const std::string& file) {
    std::uint64_t length = 0;
    REQUIRE(file.size() > sizeof length);
    std::memcpy(&length, file.data(), sizeof length);
    return file.substr(0, sizeof length + length);
}

double farthest(const std::vector<double>& a, const std::vector<double>& b) {
    REQUIRE(a.size() == b.size());
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
    return most;
}

TEST_CASE("train_gpt: a GPU learns what a CPU does, and a run that is killed there has the same bits") {
    const workplace place;
    const std::string device = "--device simulated --checkpoint-every 1 ";
    REQUIRE(place.train("--losses cpu.csv --weights cpu --checkpoint cpu").code == 0);
    const outcome ran = place.train(device + "--losses gpu.csv --weights gpu --checkpoint whole");
    REQUIRE(ran.code == 0);
    CHECK(ran.out.starts_with("On a simulated GPU\n"));
    const auto cpu = place.losses("cpu.csv");
    CHECK(cpu.size() == 6);
    CHECK(std::abs(cpu.front() - cpu.back()) > 0.1);
    // Every op rounds to half once, of sums in float, which differ by their order and by what tensor cores cut off,
    // some 2^-23 of the largest term: one half in thousands is its neighbour, 2^-11 of itself away. Logits are
    // below one, so a loss moves by less than 2^-11 for each that does; AdamW's steps of 0.02 carry that on. Found
    // are 3e-5; masks of dropout of another step would differ by 0.02 to 0.1.
    CHECK(farthest(cpu, place.losses("gpu.csv")) < 0.002);
    const std::string weights = content_of(place.path("gpu.amp_fp16"));
    CHECK(header_of(weights) == header_of(content_of(place.path("cpu.amp_fp16"))));
    CHECK(weights.size() == content_of(place.path("cpu.amp_fp16")).size());

    // Interrupted after the capture of a step and killed at some moment of those that follow.
    const std::string whole = content_of(place.path("whole.amp_fp16"));
    REQUIRE(place.train(device + "--checkpoint parts --stop-after 3 --losses first.csv").code == 0);
    CHECK(content_of(place.path("parts.amp_fp16")) != whole);
    std::filesystem::copy_file(place.path("parts.amp_fp16"), place.path("half.amp_fp16"));
    const std::string command = "cd '" + place.path("") + "' && timeout -s KILL 0.4 '" MP_TRAIN_GPT "' " +
                                place.arguments() + device + "--checkpoint parts --resume >/dev/null 2>&1";
    static_cast<void>(std::system(command.c_str()));
    REQUIRE(place.train(device + "--checkpoint parts --resume").code == 0);
    CHECK(content_of(place.path("parts.amp_fp16")) == whole);

    // A CPU goes on from there.
    REQUIRE(place.train("--checkpoint half --resume --losses rest.csv").code == 0);
    auto joined = place.losses("first.csv");
    for (const double loss : place.losses("rest.csv")) joined.push_back(loss);
    CHECK(farthest(cpu, joined) < 0.002);
}

TEST_CASE("train_gpt: products of 8 bits on a GPU, whose scales are saved with a run") {
    workplace place;
    for (const std::string recipe : {"fp8", "mxfp8"}) {
        CAPTURE(recipe);
        place.recipe = recipe + " --steps 4";
        REQUIRE(place.train("--losses cpu.csv").code == 0);
        REQUIRE(place.train("--device simulated --losses gpu.csv --checkpoint whole").code == 0);
        const auto cpu = place.losses("cpu.csv");
        CHECK(cpu.size() == 4);
        CHECK(std::abs(cpu.front() - cpu.back()) > 0.05);
        // As above, with eight times as large steps between numbers of bfloat16, and 16 times as large ones again where
        // such a neighbour is rounded to another code. Found are 6e-4 and
        // 1.2e-3.
        CHECK(farthest(cpu, place.losses("gpu.csv")) < 0.01);
        if (recipe != "fp8") continue;
        REQUIRE(place.train("--device simulated --checkpoint parts --stop-after 3 --losses first.csv").code ==
                0);
        std::filesystem::copy_file(place.path("parts.fp8"), place.path("half.fp8"));
        REQUIRE(place.train("--device simulated --checkpoint parts --resume").code == 0);
        CHECK(content_of(place.path("parts.fp8")) == content_of(place.path("whole.fp8")));
        // A CPU goes on from there, windows and scales included.
        REQUIRE(place.train("--checkpoint half --resume --losses rest.csv").code == 0);
        auto joined = place.losses("first.csv");
        for (const double loss : place.losses("rest.csv")) joined.push_back(loss);
        CHECK(farthest(cpu, joined) < 0.01);
    }
}

TEST_CASE(
    "train_gpt: two GPUs learn what one does that accumulates, and either goes on from the other's files") {
    workplace place;
    for (const std::string recipe : {"amp_fp16", "fp8"}) {
        CAPTURE(recipe);
        place.recipe = recipe + " --steps 5 --device simulated";
        const std::string ranks = "--ranks 2 --accumulate 1 ";
        REQUIRE(place.train("--losses one.csv").code == 0);
        REQUIRE(place.train(ranks + "--losses two.csv --checkpoint whole").code == 0);
        const auto one = place.losses("one.csv");
        CHECK(std::abs(one.front() - one.back()) > 0.05);
        // Gradients are a mean of two sums in place of a sum of halves. Bounds as above.
        const double bound = recipe == "fp8" ? 0.01 : 0.002;
        CHECK(farthest(one, place.losses("two.csv")) < bound);
        REQUIRE(place.train(ranks + "--checkpoint parts --stop-after 3 --losses first.csv").code == 0);
        std::filesystem::copy_file(place.path("parts." + recipe), place.path("half." + recipe));
        REQUIRE(place.train(ranks + "--checkpoint parts --resume").code == 0);
        CHECK(content_of(place.path("parts." + recipe)) == content_of(place.path("whole." + recipe)));
        REQUIRE(place.train("--checkpoint half --resume --losses rest.csv").code == 0);
        auto joined = place.losses("first.csv");
        for (const double loss : place.losses("rest.csv")) joined.push_back(loss);
        CHECK(farthest(one, joined) < bound);
    }
}

TEST_CASE("train_gpt: what a device does not do is said in a line") {
    const workplace place;
    const auto error = [&](const std::string& arguments) {
        const outcome ran = place.run(arguments);
        CHECK(ran.code == 2);
        return ran.error;
    };
    CHECK(error("--device gpu") == "train_gpt: --device is 'gpu'; it must be one of cpu cuda simulated\n");
    CHECK(error("--device simulated --recipe fp32") ==
          "train_gpt: --recipe is 'fp32'; on this device it must be one of amp_fp16 fp8 mxfp8\n");
    CHECK(error("--device simulated --ranks 2 --shard") == "train_gpt: --shard is for --device cpu\n");
    CHECK(error("--device simulated --wire mxfp8") == "train_gpt: --wire mxfp8 is for --device cpu\n");
    CHECK(error("--device cuda --ranks 2")
              .starts_with("train_gpt: --ranks is 2; with --device cuda it must be mpi"));
    CHECK(error("--dropout 1") == "train_gpt: --dropout is '1'; it must be a number from 0 to below 1\n");
}

}  // namespace
