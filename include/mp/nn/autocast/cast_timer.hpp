// SPDX-License-Identifier: MIT
/// \file
/// How long the casts of a region take.
#pragma once

#include <mp/config.hpp>
#include <mp/nn/autocast/cast_observer.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#if MP_CORE_BODIES
#include <chrono>
#endif

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Returns the time of a clock that never goes back.
[[nodiscard]] MP_CORE_FUNCTION std::int64_t steady_nanoseconds();

#if MP_CORE_BODIES
MP_CORE_FUNCTION std::int64_t steady_nanoseconds() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}
#endif

}}  // namespace mp::detail

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

/// Adds up the time of the casts of all regions that it is given to: those of arguments before a kernel, and of
/// results after it. Casts that come from the cache take none. It reads no numbers: its overhead is two
/// readings of the clock for each cast, whereas a cast_ledger copies all numbers. The times of several threads
/// are added. On a GPU it is the time that enqueueing takes, since launches are asynchronous.
///
///     mp::autocast::cast_timer casts;
///     {
///         mp::autocast_region region({.cpu = mp::precision::bf16, .ledger = &casts});
///         train_one_step();
///     }
///     std::printf("%.1f ms in %llu casts\n", 1e3 * casts.seconds(), (unsigned long long)casts.casts());
///
/// All functions may be called by several threads at once.
class cast_timer final : public cast_observer {
public:
    [[nodiscard]] double seconds() const noexcept {
        return 1e-9 * static_cast<double>(nanoseconds_.load(std::memory_order_relaxed));
    }
    /// Arrays that were cast.
    [[nodiscard]] std::uint64_t casts() const noexcept { return casts_.load(std::memory_order_relaxed); }
    /// Numbers in them.
    [[nodiscard]] std::uint64_t elements() const noexcept {
        return elements_.load(std::memory_order_relaxed);
    }
    void clear() noexcept {
        nanoseconds_.store(0, std::memory_order_relaxed);
        casts_.store(0, std::memory_order_relaxed);
        elements_.store(0, std::memory_order_relaxed);
    }

    bool reads_values() const override { return false; }
    std::int64_t cast_begins() override { return detail::steady_nanoseconds(); }
    void cast_ends(const observed_call& /*call*/, std::size_t /*index*/, cast_direction /*direction*/,
                   std::size_t elements, std::int64_t begun) override {
        nanoseconds_.fetch_add(detail::steady_nanoseconds() - begun, std::memory_order_relaxed);
        casts_.fetch_add(1, std::memory_order_relaxed);
        elements_.fetch_add(elements, std::memory_order_relaxed);
    }

    std::uint64_t called(const observed_call& /*call*/) override { return 0; }
    bool scans() const override { return false; }
    void multiplied(const observed_call& /*call*/, product_size /*size*/,
                    std::string_view /*type*/) override {}
    void cast(const observed_call& /*call*/, std::size_t /*index*/, cast_direction /*direction*/,
              std::string_view /*from*/, std::size_t /*from_bytes*/, const cast_target& /*to*/,
              std::span<const float> /*before*/, std::span<const float> /*after*/, bool /*scaled*/) override {
    }
    void reused(const observed_call& /*call*/, std::size_t /*index*/, std::string_view /*from*/,
                std::string_view /*to*/, bool /*scaled*/) override {}
    void read(const observed_call& /*call*/, std::size_t /*index*/, const cast_target& /*type*/,
              std::span<const float> /*values*/) override {}
    void not_finite(const observed_call& /*call*/, std::size_t /*index*/, std::size_t /*at*/, bool /*is_nan*/,
                    value_origin /*origin*/) override {}

private:
    std::atomic<std::int64_t> nanoseconds_ = 0;
    std::atomic<std::uint64_t> casts_ = 0;
    std::atomic<std::uint64_t> elements_ = 0;
};

}}  // namespace mp::autocast
