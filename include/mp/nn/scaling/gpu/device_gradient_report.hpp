// SPDX-License-Identifier: MIT
/// \file
/// Counts and measurements of gradients by kernels.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/nn/scaling/gradient_clipping.hpp>
#include <mp/nn/scaling/optimizer_protocol.hpp>
#include <mp/nn/scaling/policy.hpp>
#include <mp/nn/scaling/unscale.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/format/operations.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mp {

namespace detail { inline namespace MP_ISA_NAMESPACE {

static_assert(sizeof(std::size_t) == 8, "mp: gradients on GPUs need a host whose addresses have 64 bits");

// A location is the number of an array and the index in it, in one integer whose order is the order of
// locations.
inline constexpr int location_index_bits = 44;
inline constexpr unsigned long long no_location = ~0ull;
inline constexpr std::size_t most_gradient_arrays = 1ull << (64 - location_index_bits);
inline constexpr std::size_t most_gradient_values = static_cast<std::size_t>(1ull << location_index_bits);

[[nodiscard]] MP_HOST_DEVICE constexpr unsigned long long gradient_location(unsigned long long parameter,
                                                                            unsigned long long index) {
    return (parameter << location_index_bits) | index;
}

/// Throws unless the locations of `size` values in array `parameter` fit, with room for the one that is none.
inline void check_gradient_location(std::string_view function, std::size_t parameter, std::size_t size) {
    if (parameter >= most_gradient_arrays) {
        throw_argument(function, "parameter", parameter, "must be less than 2^20");
    }
    if (size >= most_gradient_values) {
        throw_argument(function, "gradients.size()", size, "must be less than 2^44");
    }
}

// A finite gradient above the limit of a check: its ratio to the limit as a float and the complement of the number
// of its array, in one integer. The largest one is the greatest ratio, and of equal ones the first array.
[[nodiscard]] MP_HOST_DEVICE constexpr unsigned long long pack_excess(float ratio,
                                                                      unsigned long long parameter) {
    const unsigned long long code = bit_cast<std::uint32_t>(ratio);
    return code << (64 - location_index_bits) | (most_gradient_arrays - 1 - parameter);
}
[[nodiscard]] MP_HOST_DEVICE constexpr float excess_ratio(unsigned long long excess) {
    return bit_cast<float>(static_cast<std::uint32_t>(excess >> (64 - location_index_bits)));
}
[[nodiscard]] MP_HOST_DEVICE constexpr std::size_t excess_parameter(unsigned long long excess) {
    return static_cast<std::size_t>(most_gradient_arrays - 1 - excess % most_gradient_arrays);
}

}}  // namespace detail

/// The largest finite gradient that a check on a device lets pass; by default the largest float. See gradient_limit().
struct device_gradient_limit {
    detail::gradient_limits limits = {};
    double learning_rate = 1;
    /// In device memory: the learning rate is multiplied by it, which may change between replays of a graph; or null.
    const double* rate_factor = nullptr;

    /// The limit at the present learning rate.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE float largest(const Thread& thread) const {
        const bool reads = rate_factor != nullptr && limits.step < detail::no_step_limit;
        const double factor = reads ? thread.load(rate_factor) : 1.0;
        return detail::bit_cast<float>(
            detail::largest_gradient_bits(limits, detail::double_multiply(learning_rate, factor)));
    }
};

/// What was found in gradients on a device since the report was last reset. It is zero-initialised except for
/// `first`, so start from device_gradient_report{}. Infinities and NaNs are counted by unscale_and_check; the
/// measurements, for policies that look at them, by convert_and_observe.
///
/// All members have 64 bits, and ranks combine them as they stand: the sum of the first nine, the largest of
/// `largest_bits` and `excess`.
struct device_gradient_report {
    unsigned long long checked = 0;     ///< gradient values looked at for infinities and NaNs
    unsigned long long infinities = 0;  ///< values that are plus or minus infinity
    unsigned long long nans = 0;        ///< values that are NaN
    unsigned long long values = 0;      ///< values that were measured
    unsigned long long zeros = 0;       ///< of those, exact zeros before any rounding
    unsigned long long flushed = 0;     ///< of those, not zero, but zero in the reduced format
    unsigned long long subnormals = 0;  ///< of those, subnormal in the reduced format
    unsigned long long overflows = 0;   ///< of those, finite and beyond the reduced format
    unsigned long long large = 0;       ///< of those, above the edge of a histogram policy, and not infinite
    unsigned long long largest_bits = 0;  ///< the bits of `largest()`, whose order is that of magnitudes
    /// Not zero if a finite gradient is larger than a step takes, see gradient_limit(): by how much, and where.
    unsigned long long excess = 0;
    unsigned long long first = detail::no_location;  ///< the first location of either; see first_parameter

    /// True if there is any infinity or NaN: what PyTorch calls found_inf.
    [[nodiscard]] MP_HOST_DEVICE constexpr bool found() const { return infinities != 0 || nans != 0; }

    /// True if a step by these gradients would take a state or a weight out of the range of its format.
    [[nodiscard]] MP_HOST_DEVICE constexpr bool exceeds_limit() const { return excess != 0; }

    /// The largest finite magnitude that was measured, after unscaling; 0 if none was.
    [[nodiscard]] MP_HOST_DEVICE constexpr double largest() const {
        return detail::bit_cast<double>(static_cast<std::uint64_t>(largest_bits));
    }

    /// The input of a scale policy.
    [[nodiscard]] MP_HOST_DEVICE constexpr gradient_observation observation() const {
        return {infinities, nans, values, zeros, flushed, subnormals, overflows, large, largest()};
    }

    /// The lowest number of an array with an infinity or NaN; without either the array with the gradient that
    /// exceeds its limit most; no_index if there is none.
    [[nodiscard]] MP_HOST_DEVICE constexpr std::size_t first_parameter() const {
        if (first != detail::no_location)
            return static_cast<std::size_t>(first >> detail::location_index_bits);
        return exceeds_limit() ? detail::excess_parameter(excess) : static_cast<std::size_t>(-1);
    }
    /// The lowest index of an infinity or NaN in that array; no_index if there is none.
    [[nodiscard]] MP_HOST_DEVICE constexpr std::size_t first_element() const {
        return first == detail::no_location
                   ? static_cast<std::size_t>(-1)
                   : static_cast<std::size_t>(first & (detail::most_gradient_values - 1));
    }

    /// As a report of the host's scalers.
    [[nodiscard]] constexpr gradient_report on_host() const {
        gradient_report result{checked, infinities, nans, first_parameter(), first_element()};
        result.too_large = exceeds_limit() ? 1 : 0;
        return result;
    }

    friend constexpr bool operator==(const device_gradient_report&, const device_gradient_report&) = default;
};

namespace detail { inline namespace MP_ISA_NAMESPACE {

/// The counts of one thread.
struct unscale_findings {
    unsigned long long infinities = 0;
    unsigned long long nans = 0;
    unsigned long long first = no_location;
    unsigned long long excess = 0;

    /// Checks some results, of which the first is element `index` of array `parameter`. They are nearly always at
    /// most `largest`, which is finite.
    template <std::size_t Count>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void look_at(const float (&values)[Count], unsigned long long parameter,
                                                 std::size_t index, float largest) {
        const std::uint32_t limit = magnitude_of(largest);
        bool within = true;
        for (const float value : values) within = within && magnitude_of(value) <= limit;
        if (within) return;
        for (std::size_t i = 0; i < Count; ++i) {
            const std::uint32_t magnitude = magnitude_of(values[i]);
            if (magnitude <= limit) continue;
            if (magnitude < 0x7f800000U) {
                const float ratio = float_divide(bit_cast<float>(magnitude), largest);
                const unsigned long long found = pack_excess(ratio, parameter);
                if (found > excess) excess = found;
                continue;
            }
            if (magnitude == 0x7f800000U) {
                ++infinities;
            } else {
                ++nans;
            }
            const unsigned long long location = gradient_location(parameter, index + i);
            if (location < first) first = location;
        }
    }

private:
    [[nodiscard]] MP_HOST_DEVICE static std::uint32_t magnitude_of(float value) {
        return bit_cast<std::uint32_t>(value) & 0x7fffffffU;
    }
};

/// Adds what the threads of a warp found to the report, and the largest excess to `to`. Infinities, NaNs and excesses
/// are rare, so usually this is one vote.
MP_ANY_EXECUTION_SPACE
template <class Thread>
MP_HOST_DEVICE void add_to_report(const Thread& thread, device_gradient_report* report,
                                  unsigned long long* to, const unscale_findings& found) {
    if (!thread.any(found.infinities + found.nans + found.excess != 0)) return;
    unsigned long long excess = found.excess;
    unsigned long long infinities = found.infinities;
    unsigned long long nans = found.nans;
    unsigned long long first = found.first;
    for (int distance = 16; distance != 0; distance /= 2) {
        infinities += thread.shuffle_xor(infinities, distance);
        nans += thread.shuffle_xor(nans, distance);
        const unsigned long long other = thread.shuffle_xor(first, distance);
        first = other < first ? other : first;
        const unsigned long long other_excess = thread.shuffle_xor(excess, distance);
        excess = other_excess > excess ? other_excess : excess;
    }
    if (thread.lane() != 0) return;
    if (excess != 0) thread.atomic_max(to, excess);
    if (infinities != 0) thread.atomic_add(&report->infinities, infinities);
    if (nans != 0) thread.atomic_add(&report->nans, nans);
    if (first != no_location) thread.atomic_min(&report->first, first);
}

/// Multiplies an excess by what the gradients are clipped by, and adds it to the report if one is left.
MP_ANY_EXECUTION_SPACE
template <class Thread>
MP_HOST_DEVICE void add_clipped_excess(const Thread& thread, device_gradient_report* report,
                                       unsigned long long* excess, float clip_factor) {
    const unsigned long long found = thread.load(excess);
    if (found == 0) return;
    thread.store(excess, 0ULL);
    const float ratio = float_multiply(excess_ratio(found), clip_factor);
    if (ratio > 1.0F) thread.atomic_max(&report->excess, pack_excess(ratio, excess_parameter(found)));
}

/// A gradient without its scale; a factor of exactly 1 leaves the bits as they are.
template <class Gradient>
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE float unscaled_value(Gradient gradient, float inverse_scale) {
    const float value = static_cast<float>(gradient);
    return same_value(inverse_scale, 1.0F) ? value : float_multiply(value, inverse_scale);
}

/// The measurements of one thread; magnitudes as the bits of floats, whose order is theirs.
struct measured_values {
    unsigned long long zeros = 0;
    unsigned long long flushed = 0;
    unsigned long long subnormals = 0;
    unsigned long long overflows = 0;
    unsigned long long large = 0;
    std::uint32_t largest = 0;
};

/// Whether `rounded`, the nearest number of a format, shows that the finite value with these bits is beyond
/// it. Formats without infinity and NaN have no code for it: there the tie half a unit above the largest
/// number counts, which would go up.
template <class To>
MP_HOST_DEVICE constexpr bool is_overflow(To rounded, std::uint32_t magnitude) {
    using layout = layout_of<typename To::format>;
    if constexpr (layout::has_infinity || layout::has_nan) {
        static_cast<void>(magnitude);
        return !isfinite(rounded);
    } else {
        constexpr double half_ulp = power_of_two<double>(layout::max_exponent - layout::fraction_bits - 1);
        constexpr double limit = static_cast<double>(To::from_bits(layout::max_finite_code)) + half_ulp;
        constexpr std::uint32_t limit_bits = bit_cast<std::uint32_t>(static_cast<float>(limit));
        return magnitude >= limit_bits;
    }
}

/// Measures one value and what it was rounded to.
template <class To>
MP_HOST_DEVICE constexpr void measure(float value, To rounded, std::uint32_t edge, measured_values& seen) {
    using layout = layout_of<typename To::format>;
    const std::uint32_t magnitude = bit_cast<std::uint32_t>(value) & 0x7fffffffU;
    if (magnitude >= 0x7f800000U) return;
    if (magnitude == 0) {
        ++seen.zeros;
        return;
    }
    if (magnitude > seen.largest) seen.largest = magnitude;
    if (is_overflow(rounded, magnitude)) ++seen.overflows;
    if (!isfinite(rounded)) return;  // counted as an infinity or NaN by what looks at the results
    if (magnitude > edge) ++seen.large;
    const auto code = rounded.bits() & layout::magnitude_mask;
    if (code == 0) {
        ++seen.flushed;
    } else if (code < layout::hidden_bit) {
        ++seen.subnormals;
    }
}

/// The double with the value of the finite float of these bits, also where the device flushes subnormal
/// floats.
MP_HOST_DEVICE constexpr double double_of_float_bits(std::uint32_t magnitude) {
    if (magnitude < 0x00800000U) return static_cast<double>(magnitude) * 0x1p-149;
    return static_cast<double>(bit_cast<float>(magnitude));
}

/// The bits that stand in a report for a largest magnitude before unscaling. The product of two floats is
/// exact in double.
MP_HOST_DEVICE constexpr unsigned long long largest_bits_of(std::uint32_t magnitude, float inverse_scale) {
    if (magnitude == 0) return 0;
    const double inverse = double_of_float_bits(bit_cast<std::uint32_t>(inverse_scale));
    return bit_cast<std::uint64_t>(double_of_float_bits(magnitude) * inverse);
}

/// The bits of the largest float that is not above `edge`, so that a float is above it if and only if it is
/// above this one.
inline std::uint32_t edge_bits(std::string_view function, double edge) {
    if (is_nan(edge) || !(edge >= 0.0)) throw_argument(function, "edge", edge, "must not be negative");
    if (edge > 0x1.fffffep127) return 0x7f800000U;
    const float nearest = static_cast<float>(edge);
    const auto bits = bit_cast<std::uint32_t>(nearest) & 0x7fffffffU;
    return static_cast<double>(nearest) > edge ? bits - 1 : bits;
}

}}  // namespace detail
}  // namespace mp
