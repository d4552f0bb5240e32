// SPDX-License-Identifier: MIT
/// \file
/// The scheduler of the threads of a kernel on the host.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/device/simt/launch_shape.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

/// Random numbers for schedules (splitmix64: S. Vigna's mixing of a counter).
class schedule_random {
public:
    explicit schedule_random(std::uint64_t seed) : state_(seed * 0x9E37'79B9'7F4A'7C15U + 1) {}

    std::uint64_t operator()() {
        std::uint64_t x = state_ += 0x9E37'79B9'7F4A'7C15U;
        x = (x ^ (x >> 30)) * 0xBF58'476D'1CE4'E5B9U;
        x = (x ^ (x >> 27)) * 0x94D0'49BB'1331'11EBU;
        return x ^ (x >> 31);
    }
    /// A number below `count`, which is small.
    std::size_t below(std::size_t count) { return mp::detail::as<std::size_t>((*this)() % count); }

private:
    std::uint64_t state_;
};

/// The runnable threads, and the choice of the next one. With seed 0 warps and lanes take turns in order. Any
/// other seed draws: how likely it is that the warp that ran last runs on (from never to nearly always, so
/// that warps keep step in some schedules and run far ahead of each other in others), and then warp and lane
/// each time.
class scheduler {
public:
    scheduler(std::size_t threads, std::uint64_t seed)
        : random_(seed), ordered_(seed == 0), runnable_(threads / warp_size, 0) {
        constexpr unsigned stay_of_256[] = {0, 128, 240, 255};
        stay_ = stay_of_256[random_.below(4)];
    }

    void set_runnable(std::size_t thread) {
        runnable_[thread / warp_size] |= std::uint32_t{1} << (thread % warp_size);
    }

    /// Takes one runnable thread out; -1 if there is none.
    [[nodiscard]] std::ptrdiff_t take() {
        const std::size_t warps = runnable_.size();
        std::size_t warp = last_;
        if (ordered_ || runnable_[warp] == 0 || random_.below(256) >= stay_) {
            const std::size_t begin = ordered_ ? last_ : random_.below(warps);
            std::size_t tried = 0;
            for (warp = begin; tried < warps && runnable_[warp] == 0; ++tried) warp = (warp + 1) % warps;
            if (tried == warps) return -1;
        }
        last_ = warp;
        const std::uint32_t mask = runnable_[warp];
        const std::size_t from = ordered_ ? 0 : random_.below(warp_size);
        std::size_t lane = from;
        while ((mask >> lane & 1U) == 0) lane = (lane + 1) % warp_size;
        runnable_[warp] &= ~(std::uint32_t{1} << lane);
        return static_cast<std::ptrdiff_t>(warp * warp_size + lane);
    }

    /// Whether something that may happen at any time happens now: each time with one of `odds`, and never on
    /// its own where the order is fixed.
    [[nodiscard]] bool chance(std::size_t odds) { return !ordered_ && random_.below(odds) == 0; }
    /// One of `count`.
    [[nodiscard]] std::size_t choose(std::size_t count) { return ordered_ ? 0 : random_.below(count); }

private:
    schedule_random random_;
    bool ordered_;
    unsigned stay_ = 0;
    std::size_t last_ = 0;
    std::vector<std::uint32_t> runnable_;
};

}}  // namespace mp::simt::detail
