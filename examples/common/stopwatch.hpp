// SPDX-License-Identifier: MIT
/// \file
/// Time that is taken.
#pragma once

#include <chrono>

namespace examples {

/// Measures the time between start() and stop(), summed up.
class stopwatch {
public:
    void start() { begin_ = std::chrono::steady_clock::now(); }
    void stop() { total_ += std::chrono::steady_clock::now() - begin_; }
    [[nodiscard]] double seconds() const { return std::chrono::duration<double>(total_).count(); }

private:
    std::chrono::steady_clock::time_point begin_;
    std::chrono::steady_clock::duration total_{};
};

}  // namespace examples
