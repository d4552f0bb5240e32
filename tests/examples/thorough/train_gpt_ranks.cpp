// SPDX-License-Identifier: MIT
// train_gpt on several ranks: threads and processes, shared or not, give the same file; and a rank may be killed.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "examples/workplace.hpp"

namespace {

using examples::content_of;
using examples::outcome;

struct workplace : examples::workplace {
    static constexpr const char* sizes =
        "--text text.txt --layers 2 --width 32 --heads 2 --context 16 --batch 2 --learning-rate 0.02 "
        "--sample 10 ";

    workplace() : examples::workplace(MP_TRAIN_GPT) {
        std::ofstream text(path("text.txt"));
        for (int i = 0; i < 300; ++i) text << "0123456789 abcdefgh\n";
    }
    outcome train(const std::string& more) const { return run(sizes + more); }
    /// The checkpoint that a run leaves.
    std::string checkpoint(const std::string& recipe, const std::string& more) const {
        const outcome ran = train("--steps 25 --recipe " + recipe + " --checkpoint state " + more);
        CHECK(ran.error.find("train_gpt:") == std::string::npos);
        REQUIRE(ran.code == 0);
        return content_of(path("state." + recipe));
    }
};

/// The training loss that a run prints.
double loss_of(const outcome& ran, const std::string& recipe) {
    std::istringstream lines(ran.out);
    for (std::string line, name; std::getline(lines, line);) {
        std::istringstream cells(line);
        double loss = 0;
        if (cells >> name >> loss && name == recipe) return loss;
    }
    return -1;
}

TEST_CASE("train_gpt: ranks that share masters and moments leave the file of ranks that do not") {
    const workplace place;
    for (const std::string recipe : {"bf16", "fp16", "fp8"}) {
        const std::string whole = place.checkpoint(recipe, "--ranks 3");
        CHECK(whole.size() > 10'000);
        CHECK((place.checkpoint(recipe, "--ranks 3 --shard") == whole));
        // The sums are the same floats, and are rounded once: here, or where they arrive.
        CHECK((place.checkpoint(recipe, "--ranks 3 --threads 2 --wire float32") == whole));
        const std::string narrow = place.checkpoint(recipe, "--ranks 3 --wire half");
        CHECK((narrow != whole));
        CHECK(place.checkpoint(recipe, "--ranks 3 --wire half --shard").size() == whole.size());
    }
}

TEST_CASE("train_gpt: ranks learn what micro batches do, and a run goes on with other ranks") {
    const workplace place;
    const double micro = loss_of(place.train("--steps 25 --recipe fp32 --accumulate 4"), "fp32");
    CHECK(micro > 0);
    for (const char* const ranks :
         {"--ranks 4", "--ranks 2 --accumulate 2", "--ranks 4 --wire bfloat16", "--ranks 4 --wire mxfp8"}) {
        const double loss = loss_of(place.train(std::string("--steps 25 --recipe fp32 ") + ranks), "fp32");
        CHECK(loss == doctest::Approx(micro).epsilon(0.02));
    }
    // In 8 bits, what is not sent yet is in the file.
    const std::string whole = place.checkpoint("bf16", "--ranks 2 --wire mxfp8");
    static_cast<void>(place.checkpoint("bf16", "--ranks 2 --wire mxfp8 --stop-after 11"));
    CHECK((place.checkpoint("bf16", "--ranks 2 --wire mxfp8 --resume") == whole));
    static_cast<void>(place.checkpoint("bf16", "--ranks 4 --shard --stop-after 11"));
    static_cast<void>(place.checkpoint("bf16", "--ranks 2 --accumulate 2 --resume --stop-after 3"));
    static_cast<void>(place.checkpoint("bf16", "--accumulate 4 --resume"));
    const outcome other = place.train("--steps 25 --recipe bf16 --checkpoint state --resume --ranks 2");
    CHECK(other.code == 1);
    CHECK(other.error.find("was another one when the run was saved") != std::string::npos);
}

TEST_CASE("train_gpt: what it does not understand of ranks is said in a line") {
    const workplace place;
    CHECK(place.train("--ranks 0").error ==
          "train_gpt: --ranks is '0'; it must be a whole number from 1 to 64\n");
    CHECK(place.train("--wire float16").error ==
          "train_gpt: --wire is 'float16'; it must be one of as_stored float32 bfloat16 half mxfp8\n");
    CHECK(place.train("--ranks 2 --text missing.txt").error == "train_gpt: cannot read 'missing.txt'\n");
}

#if defined(MP_MPIEXEC)
TEST_CASE("train_gpt: processes of MPI leave the file of threads, also when one of them was killed") {
    const workplace place;
    const std::string environment =
        "cd '" + place.path("") +
        "' && OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 "
        "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe OMPI_MCA_plm_rsh_agent=false "
        "ASAN_OPTIONS=detect_leaks=0 " MP_MPIEXEC " ";
    const std::string program = std::string("'") + MP_TRAIN_GPT + "' " + workplace::sizes;
    const auto mpi = [&](const std::string& arguments) {
        const std::string it = program + arguments + " --ranks mpi ";
        return std::system((environment + "-n 2 " + it + ">/dev/null 2>&1").c_str()) == 0;
    };
    const std::string whole = place.checkpoint("bf16", "--ranks 2 --shard");
    REQUIRE(mpi("--steps 25 --recipe bf16 --checkpoint mpi"));
    CHECK((content_of(place.path("mpi.bf16")) == whole));
    REQUIRE(mpi("--steps 25 --recipe bf16 --checkpoint shared --shard"));
    CHECK((content_of(place.path("shared.bf16")) == whole));

    // Rank 1 is killed in the middle of something, later each time; mpirun ends the other one.
    const std::string often = "--steps 100 --recipe bf16 --checkpoint-every 1 --shard --checkpoint ";
    REQUIRE(place.train(often + "long --ranks 2").code == 0);
    int kills = 0;
    for (double seconds = 0.1;; seconds *= 1.5) {
        const std::string it = program + often + "killed --resume --ranks mpi ";
        const std::string command = environment + "-n 1 " + it + ": -n 1 timeout -s KILL " +
                                    std::to_string(seconds) + " " + it + ">/dev/null 2>&1";
        if (std::system(command.c_str()) == 0) break;
        REQUIRE(++kills < 30);
    }
    CHECK(kills > 0);
    CHECK((content_of(place.path("killed.bf16")) == content_of(place.path("long.bf16"))));
}
#endif

}  // namespace
