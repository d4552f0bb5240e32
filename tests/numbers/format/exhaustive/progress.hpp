// SPDX-License-Identifier: MIT
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>

namespace exhaustive {

/// Shows how far a long run is: on a terminal one line that is rewritten, with the share done and the time
/// left; elsewhere a line for every tenth.
class progress {
public:
    explicit progress(std::uint64_t total) : total_(total) {}

    /// Draws the line again on a terminal; prints one when another tenth is done elsewhere.
    void show(std::uint64_t done, const char* what) {
        const double share = total_ == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total_);
        const double elapsed = seconds();
        const double left = share > 0 ? elapsed / share - elapsed : 0;
        if (terminal_) {
            constexpr int width = 30;
            const int full = static_cast<int>(share * width);
            char bar[width + 1];
            for (int i = 0; i < width; ++i) bar[i] = i < full ? '#' : '.';
            bar[width] = '\0';
            std::printf("\r[%s] %5.1f%%  %-16s %4.0f s left ", bar, 100 * share, what, left);
            std::fflush(stdout);
        } else if (static_cast<int>(share * 10) > tenths_) {
            tenths_ = static_cast<int>(share * 10);
            std::printf("%3d%%  %-16s %4.0f s gone, %4.0f s left\n", 10 * tenths_, what, elapsed, left);
            std::fflush(stdout);
        }
    }

    /// Ends the line on a terminal, so that what is printed next starts in a line of its own.
    void finish() const {
        if (terminal_) std::printf("\n");
    }

    double seconds() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    }

private:
    std::uint64_t total_;
    bool terminal_ = isatty(STDOUT_FILENO) != 0;
    int tenths_ = 0;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace exhaustive
