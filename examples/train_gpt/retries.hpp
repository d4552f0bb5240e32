// SPDX-License-Identifier: MIT
/// \file
/// Restarts of a failed run: this program in a child process, or the command that launches the ranks.
#pragma once

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "../common/user_error.hpp"

extern char** environ;  // of POSIX

namespace examples::train_gpt {

/// The command that runs the program once: that of --launch, then the program, which goes on from its checkpoint.
inline std::vector<std::string> command_of_try(const std::string& program,
                                               std::span<const std::string_view> arguments,
                                               const std::string& launch) {
    std::vector<std::string> words;
    std::istringstream launching(launch);
    for (std::string word; launching >> word;) words.push_back(word);
    words.push_back(program);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string_view it = arguments[i];
        if (it == "--retries" || it == "--launch") {
            ++i;  // and its value
        } else if (!it.starts_with("--retries=") && !it.starts_with("--launch=") && it != "--resume") {
            words.emplace_back(it);
        }
    }
    words.emplace_back("--resume");
    return words;
}

/// While it lives, a signal that is to end this program is passed on to the process that it waits for, which would
/// go on alone. There is one at a time.
class passed_on_signals {
public:
    passed_on_signals() {
        child_ = 0;
        received_ = 0;
        for (std::size_t i = 0; i < std::size(signals); ++i) {
            sigaction(signals[i], nullptr, &before_[i]);
            if (before_[i].sa_handler == SIG_IGN) continue;  // as nohup has it
            struct sigaction passing{};
            passing.sa_handler = [](int signal) {
                received_ = signal;
                if (child_ != 0) kill(child_, signal);
            };
            sigaction(signals[i], &passing, nullptr);
        }
    }
    passed_on_signals(const passed_on_signals&) = delete;
    passed_on_signals& operator=(const passed_on_signals&) = delete;
    ~passed_on_signals() {
        for (std::size_t i = 0; i < std::size(signals); ++i) sigaction(signals[i], &before_[i], nullptr);
    }

    /// Begins to pass signals on to a process, also the one that has come before; 0 for none.
    static void pass_to(pid_t child) {
        child_ = child;
        if (child != 0 && received_ != 0) kill(child, received_);
    }
    /// The signal that has come; 0 for none.
    [[nodiscard]] static int received() { return received_; }

private:
    static constexpr int signals[] = {SIGTERM, SIGHUP};
    static inline volatile std::sig_atomic_t child_ = 0;
    static inline volatile std::sig_atomic_t received_ = 0;
    struct sigaction before_[std::size(signals)] = {};
};

/// Runs a command until it succeeds or refuses what the user asked for, `retries` times more than once. Returns its
/// exit status, 1 for a signal. A signal that is to end this program ends the command, and the retries. Throws
/// user_error where it cannot be started.
inline int run_with_retries(const std::vector<std::string>& command, int retries) {
    std::vector<std::string> words = command;
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    const passed_on_signals passed_on;
    for (int retry = 1;; ++retry) {
        pid_t child = 0;
        const int problem = posix_spawnp(&child, pointers[0], nullptr, nullptr, pointers.data(), environ);
        if (problem != 0) {
            throw user_error("cannot start '" + words[0] + "': " + std::strerror(problem));
        }
        passed_on_signals::pass_to(child);
        int status = 0;
        // The process stays until it is waited for, so that no signal goes to another one.
        siginfo_t ended{};
        while (waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
        }
        passed_on_signals::pass_to(0);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
        constexpr int refused = 2;
        const bool exited = WIFEXITED(status);
        const int code = exited ? WEXITSTATUS(status) : 1;
        if (exited && (code == 0 || code == refused)) return code;
        const std::string how = exited ? "has failed with status " + std::to_string(code)
                                       : "was ended by signal " + std::to_string(WTERMSIG(status));
        if (passed_on_signals::received() != 0) return 128 + passed_on_signals::received();
        if (retry > retries) {
            std::fprintf(stderr, "train_gpt: the run %s, and there is no retry left\n", how.c_str());
            return code;
        }
        std::fprintf(stderr, "train_gpt: the run %s; retry %d of %d goes on from the checkpoint\n",
                     how.c_str(), retry, retries);
    }
}

}  // namespace examples::train_gpt
