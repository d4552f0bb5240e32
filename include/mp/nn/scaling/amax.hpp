// SPDX-License-Identifier: MIT
/// \file
/// The largest magnitude of an array, from which the scales of 8-bit formats follow, and its agreement among
/// ranks.
#pragma once

#include <mp/arrays/convert/bulk.hpp>
#include <mp/arrays/convert/number_range.hpp>
#include <mp/base/bits.hpp>
#include <mp/base/contiguous.hpp>
#include <mp/base/parallel.hpp>
#include <mp/base/runs.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/scaling/reducer.hpp>
#include <mp/nn/scaling/unscale.hpp>
#include <mp/numbers/format/basic_float.hpp>
#include <mp/numbers/format/operations.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

inline constexpr std::uint32_t float_magnitude_mask = 0x7fffffffU;

/// Formats in which a larger magnitude code is a larger magnitude, infinity is above all numbers and NaN
/// above infinity: those with a sign bit whose NaN is not the code of minus zero.
template <class Value>
inline constexpr bool codes_order_magnitudes = [] {
    if constexpr (reduced<Value>) {
        return Value::format::is_signed && Value::format::nans != nan_encoding::negative_zero;
    }
    return true;
}();

/// The largest magnitude code of some values, which the loop below finds in vectors: as a signed integer,
/// for which processors have the comparison, and whose sign bit is zero here.
template <class Value>
auto largest_magnitude_code(const Value* values, std::size_t count) noexcept {
    using layout = layout_of<format_of_t<Value>>;
    using word = std::make_signed_t<typename layout::storage>;
    word largest = 0;
    in_runs(count, [&](std::size_t i) {
        const auto magnitude = static_cast<word>(bits_of(values[i]) & layout::magnitude_mask);
        largest = magnitude > largest ? magnitude : largest;
    });
    return static_cast<typename layout::storage>(largest);
}

/// The bits of the largest magnitude as those of a float.
template <class Value>
std::uint32_t largest_magnitude_bits(const Value* values, std::size_t count) noexcept {
    if constexpr (codes_order_magnitudes<Value>) {
        const auto code = largest_magnitude_code(values, count);
        return bits_of(round_to<float>(number_from_bits<Value>(code))) & float_magnitude_mask;
    } else {
        std::uint32_t largest = 0;
        float wide[unscale_block];
        for (std::size_t at = 0; at < count; at += unscale_block) {
            const std::size_t length = (std::min)(unscale_block, count - at);
            convert_nearest(conversion_isa(), values + at, wide, length);
            largest = (std::max)(largest, largest_magnitude_code(wide, length));
        }
        return largest;
    }
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The largest magnitude in an array; 0 for an empty one. An infinity makes it infinite, and a NaN makes it
/// NaN, whatever else there is: what is compared are bits, so it holds under -ffast-math too.
///
/// \param exec    mp::cpu; the result does not depend on the number of threads
/// \param values  contiguous range of float or of a reduced format; vector, span, array...
/// \throws argument_error  null with a size other than zero, or fewer than one thread
///
///     history.record(mp::amax(mp::cpu{.threads = 4}, activations));
template <detail::gradient_range Values>
[[nodiscard]] float amax(cpu exec, const Values& values) {
    using value = detail::element_value<const Values>;
    const std::span<const value> in = detail::as_span(values);
    constexpr std::string_view function = "mp::amax";
    detail::check_threads(function, exec);
    detail::require_memory(function, "values.data()", in.data(), in.size());
    std::atomic<std::uint32_t> largest{0};
    detail::parallel_for(exec, in.size(), detail::unscale_grain, [&](std::size_t begin, std::size_t end) {
        const std::uint32_t mine = detail::largest_magnitude_bits(in.data() + begin, end - begin);
        std::uint32_t seen = largest;
        while (mine > seen && !largest.compare_exchange_weak(seen, mine)) {
        }
    });
    return detail::bit_cast<float>(largest.load());
}

/// Makes every amax the largest of all ranks, in place: for Transformer Engine's reduce_amax, between
/// measuring and updating. Every rank calls it with as many values in the same order. The reducer sees the
/// bits, which order as magnitudes do, with infinity and NaN on top; so what one rank finds reaches all,
/// where a maximum of floats might lose a NaN. Signs are dropped.
///
/// Needs no memory: the values go through the reducer in chunks of 256.
template <rank_reducer Reducer>
void reduce_amax(Reducer& reducer, std::span<float> amaxes) {
    constexpr std::size_t chunk = 256;
    std::uint64_t words[chunk];
    for (std::size_t at = 0; at < amaxes.size(); at += chunk) {
        const std::size_t count = (std::min)(chunk, amaxes.size() - at);
        for (std::size_t i = 0; i < count; ++i) {
            words[i] = detail::bit_cast<std::uint32_t>(amaxes[at + i]) & detail::float_magnitude_mask;
        }
        (reducer.max)(std::span<std::uint64_t>(words, count));
        for (std::size_t i = 0; i < count; ++i) {
            amaxes[at + i] = detail::bit_cast<float>(static_cast<std::uint32_t>(words[i]));
        }
    }
}

/// Overload for one value.
template <rank_reducer Reducer>
void reduce_amax(Reducer& reducer, float& amax) {
    reduce_amax(reducer, std::span<float>(&amax, 1));
}

}}  // namespace mp
