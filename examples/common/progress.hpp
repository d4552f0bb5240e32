// SPDX-License-Identifier: MIT
/// \file
/// The progress bar.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>

#include "text.hpp"

namespace examples {

/// Shows how far the work is: on a terminal one line that is written over and over, elsewhere a line for
/// every tenth of the work, so that a log stays readable. Safe to use from several threads.
class progress {
public:
    /// \param to        where the bar goes
    /// \param terminal  whether that is a terminal
    /// \param total     units of work, at least 1
    progress(std::FILE* to, bool terminal, std::size_t total)
        : to_(to), terminal_(terminal), total_(total), begin_(clock::now()) {}

    progress(const progress&) = delete;
    progress& operator=(const progress&) = delete;

    /// Takes the bar away.
    ~progress() { erase(); }

    /// One unit of work is done; `what` says of which kind.
    void advance(std::string_view what) {
        const std::lock_guard lock(mutex_);
        ++done_;
        const double share = static_cast<double>(done_) / static_cast<double>(total_);
        const clock::time_point now = clock::now();
        const auto seconds = std::chrono::duration<double>(now - begin_).count();
        if (terminal_) {
            if (done_ != total_ && now - shown_ < std::chrono::milliseconds(100)) return;
            shown_ = now;
            constexpr std::size_t cells = 30;
            const std::size_t full = done_ * cells / total_;
            const std::string bar = std::string(full, '#') + std::string(cells - full, '.');
            std::string line = "[" + bar + "] " + padded(fixed(100 * share, 0), 3, true) + "%  " +
                               padded(fixed(seconds, 0), 3, true) + " s  " + std::string(what);
            line.resize(std::min(line.size(), std::size_t{79}));
            erase();
            std::fputs(line.c_str(), to_);
            on_screen_ = line.size();
        } else if (done_ * 10 / total_ != (done_ - 1) * 10 / total_) {
            std::fprintf(to_, "%3.0f%% done after %.0f s\n", 100 * share, seconds);
        }
        std::fflush(to_);
    }

private:
    using clock = std::chrono::steady_clock;

    void erase() {
        if (on_screen_ == 0) return;
        std::fprintf(to_, "\r%s\r", std::string(on_screen_, ' ').c_str());
        std::fflush(to_);
        on_screen_ = 0;
    }

    std::mutex mutex_;
    std::FILE* to_;
    bool terminal_;
    std::size_t total_;
    std::size_t done_ = 0;
    std::size_t on_screen_ = 0;
    clock::time_point begin_;
    clock::time_point shown_{};
};

}  // namespace examples
