// SPDX-License-Identifier: MIT
// A run of train_gpt that is started again: how often, by which command, and when not.
#include "train_gpt/retries.hpp"

#include <doctest/doctest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "thrown.hpp"

namespace {

using namespace examples::train_gpt;

/// Runs a command of the shell, which can count its tries in $0, and returns the status and the number of tries.
struct tried {
    int status = 0;
    int tries = 0;
    bool operator==(const tried&) const = default;
};
tried run(const std::string& script, int retries) {
    const std::string path = (std::filesystem::temp_directory_path() / "mp_retries").string();
    std::filesystem::remove(path);
    tried result;
    result.status = run_with_retries({"sh", "-c", "echo >> \"$0\"; " + script, path}, retries);
    std::ifstream lines(path);
    for (std::string line; std::getline(lines, line);) ++result.tries;
    std::filesystem::remove(path);
    return result;
}

}  // namespace

TEST_CASE("train_gpt: a run that fails is started again, so often and no more") {
    CHECK(run("exit 0", 5) == tried{0, 1});
    CHECK(run("exit 1", 3) == tried{1, 4});
    CHECK(run("exit 137", 1) == tried{137, 2});
    CHECK(run("test $(wc -l < \"$0\") -ge 3", 5) == tried{0, 3});
    CHECK(run("kill -KILL $$", 2) == tried{1, 3});
    // What the user asked for is refused each time.
    CHECK(run("exit 2", 5) == tried{2, 1});
    CHECK(examples_test::user_error_of([] { run_with_retries({"./no_such_program"}, 3); }) ==
          "cannot start './no_such_program': No such file or directory");
}

TEST_CASE("train_gpt: a signal that ends the program ends the run, which is not started again") {
    const std::string path = (std::filesystem::temp_directory_path() / "mp_retries_signal").string();
    for (const int signal : {SIGTERM, SIGHUP}) {
        std::filesystem::remove(path);
        const pid_t program = fork();
        REQUIRE(program >= 0);
        if (program == 0) {
            _exit(run_with_retries({"sh", "-c", "echo $$ >> \"$0\"; exec sleep 30", path}, 5));
        }
        const auto pids = [&] {
            std::vector<pid_t> found;
            std::ifstream lines(path);
            for (pid_t pid = 0; lines >> pid;) found.push_back(pid);
            return found;
        };
        for (int i = 0; i < 1000 && pids().empty(); ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        REQUIRE(kill(program, signal) == 0);
        int status = 0;
        REQUIRE(waitpid(program, &status, 0) == program);
        CHECK(WIFEXITED(status));
        CHECK(WEXITSTATUS(status) == 128 + signal);
        REQUIRE(pids().size() == 1);
        CHECK(kill(pids()[0], 0) != 0);  // it is no more
    }
    std::filesystem::remove(path);
}

TEST_CASE("train_gpt: a retry has the arguments of the run, and resumes") {
    const std::vector<std::string_view> arguments{
        "--steps", "5", "--retries", "3", "--launch=mpirun -n 8", "--resume", "--ranks=mpi"};
    CHECK(command_of_try("train", arguments, "mpirun -n  8") ==
          std::vector<std::string>{"mpirun", "-n", "8", "train", "--steps", "5", "--ranks=mpi", "--resume"});
    const std::vector<std::string_view> others{"--launch", "mpirun", "--retries=3", "--shard"};
    CHECK(command_of_try("train", others, "") == std::vector<std::string>{"train", "--shard", "--resume"});
}
