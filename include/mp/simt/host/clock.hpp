// SPDX-License-Identifier: MIT
/// \file
/// Vector clocks.
#pragma once

#include <mp/config.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mp::simt::detail::inline MP_ISA_NAMESPACE {

/// For each participant its last epoch that is known to lie in the past. A participant's epochs
/// are counted by itself; it begins a new one whenever it tells others of the one before. So an access at
/// epoch m of participant p happened before everything that comes after with a clock of at least m for p,
/// and two accesses of which neither happened before the other are a race, whatever order they ran in this
/// time. (C. Flanagan and S. N. Freund, "FastTrack", PLDI 2009, describes the method.)
class vector_clock {
public:
    vector_clock() = default;
    explicit vector_clock(std::size_t participants) : moments_(participants, 0) {}

    [[nodiscard]] std::uint32_t operator[](std::size_t participant) const { return moments_[participant]; }
    std::uint32_t& operator[](std::size_t participant) { return moments_[participant]; }

    /// Adds what another clock knows.
    void join(const vector_clock& other) {
        for (std::size_t i = 0; i < moments_.size(); ++i) {
            moments_[i] = moments_[i] < other.moments_[i] ? other.moments_[i] : moments_[i];
        }
    }
    void reset() { moments_.assign(moments_.size(), 0); }

private:
    std::vector<std::uint32_t> moments_;
};

}  // namespace mp::simt::detail::inline MP_ISA_NAMESPACE
