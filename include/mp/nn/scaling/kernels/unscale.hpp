// SPDX-License-Identifier: MIT
/// \file
/// The passes behind unscale_and_check and check_finite over one array, on one thread. Every instruction set
/// gives the same bits and reports.
#pragma once

#include <mp/arrays/convert/bulk.hpp>
#include <mp/arrays/convert/kernels/number_vectors.hpp>
#include <mp/base/bits.hpp>
#include <mp/base/instruction_set.hpp>
#include <mp/base/runs.hpp>
#include <mp/numbers/format/basic_float.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/memory.hpp>
#include <mp/numbers/simd/select_target.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace mp {

/// Index that stands for "none".
inline constexpr std::size_t no_index = static_cast<std::size_t>(-1);

/// The infinities and NaNs of an array.
struct non_finite_report {
    std::uint64_t infinities = 0;        ///< values that are plus or minus infinity
    std::uint64_t nans = 0;              ///< values that are NaN
    std::size_t first_index = no_index;  ///< the lowest index of either, or no_index
    // Of gradients that an optimizer checks, see mp::gradient_report:
    std::uint64_t too_large = 0;             ///< finite values above the limit of the check
    std::size_t first_too_large = no_index;  ///< the lowest index of one, or no_index

    /// True if there is any infinity or NaN.
    [[nodiscard]] constexpr bool found() const { return infinities != 0 || nans != 0; }

    friend constexpr bool operator==(const non_finite_report&, const non_finite_report&) = default;
};

namespace detail { inline namespace MP_ISA_NAMESPACE {

/// Elements that one run of the vectorised loops handles before it looks at the flag: 8 KiB of float, so that
/// a block with a bad value is still in the first-level cache when it is searched.
inline constexpr std::size_t unscale_block = 2048;

/// Bits of the largest float, above which there are infinities and NaNs: the limit of a check that has no other.
inline constexpr std::uint32_t no_check_limit = 0x7f7fffffU;

/// Adding this to the bits of a float without its sign carries into bit 31 exactly when they are above those of
/// `limit`, a finite magnitude; or-ing the sums of a block then leaves one bit to test.
[[nodiscard]] constexpr std::uint32_t carry_above(std::uint32_t limit) noexcept {
    return 0x7fffffffU - limit;
}

inline std::uint32_t carry_of(float value, std::uint32_t carry = carry_above(no_check_limit)) noexcept {
    return (bit_cast<std::uint32_t>(value) & 0x7fffffffU) + carry;
}

/// Formats whose codes tell whether they are finite by the same trick: adding a constant moves a one into the
/// sign bit for every magnitude code beyond the finite ones.
template <class Value>
inline constexpr bool codes_tell_finite = [] {
    if constexpr (reduced<Value>) {
        return Value::format::is_signed && Value::format::nans != nan_encoding::negative_zero;
    }
    return false;
}();

/// The constant for magnitude codes above `limit`.
template <class Value>
[[nodiscard]] auto code_carry_above(std::uint32_t limit) noexcept {
    using layout = layout_of<typename Value::format>;
    return static_cast<typename layout::storage>((std::uint64_t{1} << layout::magnitude_bits) - 1 - limit);
}

/// The sum that has that bit, of a code as it lies in memory.
template <class Value>
MP_ALWAYS_INLINE auto code_carry_of(typename layout_of<typename Value::format>::storage container,
                                    typename layout_of<typename Value::format>::storage carry) noexcept {
    using layout = layout_of<typename Value::format>;
    using word = typename layout::storage;
    const word code = code_in<typename Value::format>(container);
    return static_cast<word>(static_cast<word>(code & layout::magnitude_mask) + carry);
}

/// Bits of the largest float that times `inverse`, which is greater than 0 and at most 1, is not above `limit`:
/// rounding is monotonic, so a quotient is a few of them away.
[[nodiscard]] inline std::uint32_t limit_before(std::uint32_t limit, float inverse) noexcept {
    const auto is_within = [=](std::uint32_t bits) {
        return bit_cast<std::uint32_t>(float_multiply(bit_cast<float>(bits), inverse)) <= limit;
    };
    if (is_within(no_check_limit)) return no_check_limit;
    std::uint32_t bits =
        (std::min)(bit_cast<std::uint32_t>(float_divide(bit_cast<float>(limit), inverse)), no_check_limit);
    while (!is_within(bits)) --bits;
    for (int i = 0; i < 4 && is_within(bits + 1); ++i) ++bits;  // of a subnormal limit there are many more
    return bits;
}

/// Largest finite magnitude code of Gradient whose number is at most the float of these bits.
template <class Gradient>
[[nodiscard]] std::uint32_t largest_code_within(std::uint32_t limit) noexcept {
    using layout = layout_of<typename Gradient::format>;
    const auto is_within = [=](std::uint32_t code) {
        const auto number = Gradient::from_bits(static_cast<typename layout::storage>(code));
        return bit_cast<std::uint32_t>(static_cast<float>(number)) <= limit;
    };
    auto high = static_cast<std::uint32_t>(layout::finite_code_count - 1);
    if (is_within(high)) return high;
    std::uint32_t low = 0;
    while (high - low > 1) {
        const std::uint32_t middle = low + (high - low) / 2;
        (is_within(middle) ? low : high) = middle;
    }
    return low;
}

/// Adds the infinities and NaNs of `count` values, the first of which has index `at`, to `report`, and what is
/// finite and above the limit.
MP_NEVER_INLINE inline void count_non_finite(const float* values, std::size_t count, std::size_t at,
                                             non_finite_report& report,
                                             std::uint32_t limit = no_check_limit) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t magnitude = bit_cast<std::uint32_t>(values[i]) & 0x7fffffffU;
        if (magnitude <= limit) continue;
        if (magnitude < 0x7f800000U) {
            ++report.too_large;
            report.first_too_large = (std::min)(report.first_too_large, at + i);
            continue;
        }
        ++(magnitude == 0x7f800000U ? report.infinities : report.nans);
        report.first_index = (std::min)(report.first_index, at + i);
    }
}

/// Multiplies a block in place; true if a result is infinite, NaN or above the limit of `carry`.
template <bool Multiply>
bool unscale_block_in_place(float* values, std::size_t count, [[maybe_unused]] float inverse,
                            std::uint32_t carry) noexcept {
    std::uint32_t carries = 0;
    in_runs(count, [&](std::size_t i) {
        float value = values[i];
        if constexpr (Multiply) {
            value *= inverse;
            values[i] = value;
        }
        carries |= carry_of(value, carry);
    });
    return (carries >> 31) != 0;
}

/// unscaled = gradient * inverse; true if a result is infinite, NaN or above the limit of `carry`. The arrays must
/// not overlap.
template <bool Multiply, class Gradient>
bool unscale_block_to(const Gradient* __restrict gradient, float* __restrict unscaled, std::size_t count,
                      float inverse, std::uint32_t carry) noexcept {
    if constexpr (std::same_as<Gradient, float>) {
        std::uint32_t carries = 0;
        in_runs(count, [&](std::size_t i) {
            float value = gradient[i];
            if constexpr (Multiply) value *= inverse;
            unscaled[i] = value;
            carries |= carry_of(value, carry);
        });
        return (carries >> 31) != 0;
    } else {
        convert_nearest(gradient, unscaled, count);
        return unscale_block_in_place<Multiply>(unscaled, count, inverse, carry);
    }
}

/// Whether a magnitude code is above `limit`.
template <class Gradient>
MP_ALWAYS_INLINE bool check_codes(const Gradient* gradient, std::size_t count, std::uint32_t limit) noexcept {
    using layout = layout_of<typename Gradient::format>;
    using word = typename layout::storage;
    const word* const codes = codes_of(gradient);
    const word carry = code_carry_above<Gradient>(limit);
    word carries = 0;
    in_runs(count, [&carries, codes, carry](std::size_t i) {
        carries = static_cast<word>(carries | code_carry_of<Gradient>(codes[i], carry));
    });
    return (carries & layout::sign_mask) != 0;
}

/// Limits of a check of gradients: of their magnitudes as floats, before or after they are multiplied, and of
/// their codes.
struct check_limits {
    std::uint32_t value;
    std::uint32_t code;
};
template <bool Multiply, class Gradient>
[[nodiscard]] check_limits limits_of_check(std::uint32_t limit, [[maybe_unused]] float inverse) noexcept {
    check_limits limits{limit, 0};
    if constexpr (!Multiply) limits.value = limit_before(limit, inverse);
    if constexpr (!Multiply && codes_tell_finite<Gradient>) {
        limits.code = largest_code_within<Gradient>(limits.value);
    }
    return limits;
}

/// As unscale_block_to(), without writing.
template <bool Multiply, class Gradient>
bool check_block(const Gradient* gradient, std::size_t count, [[maybe_unused]] float inverse,
                 const check_limits& limits) noexcept {
    const std::uint32_t carry = carry_above(limits.value);
    if constexpr (std::same_as<Gradient, float>) {
        std::uint32_t carries = 0;
        in_runs(count, [&](std::size_t i) {
            float value = gradient[i];
            if constexpr (Multiply) value *= inverse;
            carries |= carry_of(value, carry);
        });
        return (carries >> 31) != 0;
    } else if constexpr (!Multiply && codes_tell_finite<Gradient>) {
        return check_codes(gradient, count, limits.code);
    } else {
        float values[unscale_block];
        convert_nearest(gradient, values, count);
        return unscale_block_in_place<Multiply>(values, count, inverse, carry);
    }
}

/// unscaled = gradient * inverse, and what is bad among the results; the arrays may be the same. Magnitudes
/// whose bits are above `limit` count as too large.
template <bool Multiply, class Gradient>
non_finite_report unscale_array_portable(const Gradient* gradient, float* unscaled, std::size_t count,
                                         float inverse, std::uint32_t limit) {
    const default_floating_point_modes modes;
    const std::uint32_t carry = carry_above(limit);
    non_finite_report report;
    for (std::size_t at = 0; at < count; at += unscale_block) {
        const std::size_t length = (std::min)(unscale_block, count - at);
        bool bad = false;
        if (static_cast<const void*>(gradient) == static_cast<const void*>(unscaled)) {
            bad = unscale_block_in_place<Multiply>(unscaled + at, length, inverse, carry);
        } else {
            bad = unscale_block_to<Multiply>(gradient + at, unscaled + at, length, inverse, carry);
        }
        if (bad) count_non_finite(unscaled + at, length, at, report, limit);
    }
    return report;
}

/// As unscale_array_portable(), without writing.
template <bool Multiply, class Gradient>
non_finite_report check_array_portable(const Gradient* gradient, std::size_t count, float inverse,
                                       std::uint32_t limit) {
    const default_floating_point_modes modes;
    const check_limits limits = limits_of_check<Multiply, Gradient>(limit, inverse);
    non_finite_report report;
    for (std::size_t at = 0; at < count; at += unscale_block) {
        const std::size_t length = (std::min)(unscale_block, count - at);
        if (check_block<Multiply>(gradient + at, length, inverse, limits)) {
            float values[unscale_block];
            unscale_block_to<Multiply>(gradient + at, values, length, inverse, carry_above(limits.value));
            count_non_finite(values, length, at, report, limits.value);
        }
    }
    return report;
}

}}  // namespace detail
}  // namespace mp

#define MP_KERNEL_FILE <mp/nn/scaling/kernels/unscale.inl>
#include <mp/numbers/simd/for_each_target.inl>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// From this number of bytes of results on, unscaling to other memory writes past the caches. By then nothing
/// would stay in them for whoever reads the results, and memory need not be read before it is overwritten.
inline constexpr std::size_t large_result = std::size_t{1} << 26;

template <class Gradient>
using unscale_pass = non_finite_report (*)(const Gradient*, float*, std::size_t, float, std::uint32_t limit);
template <bool Multiply, class Gradient>
unscale_pass<Gradient> select_unscale(instruction_set isa, [[maybe_unused]] bool non_temporal) noexcept {
    if constexpr (MP_SIMD_TARGETS && has_number_vectors<Gradient>) {
        if constexpr (has_streaming_stores) {
            if (non_temporal) {
                return MP_SELECT_TARGET(isa, (&unscale_array_portable<Multiply, Gradient>),
                                        unscale_large_array<Multiply, Gradient>);
            }
        }
        return MP_SELECT_TARGET(isa, (&unscale_array_portable<Multiply, Gradient>),
                                unscale_array<Multiply, Gradient>);
    } else {
        static_cast<void>(isa);
        return &unscale_array_portable<Multiply, Gradient>;
    }
}

/// The pass for an instruction set and an inverse scale, in place or to other memory, over chunks of
/// something that has `count` elements in all. By a scale of one nothing is multiplied, and floats keep their
/// bits.
template <class Gradient>
unscale_pass<Gradient> select_unscale(instruction_set isa, float inverse, bool in_place,
                                      std::size_t count) noexcept {
    const bool non_temporal = !in_place && count >= large_result / sizeof(float);
    return same_value(inverse, 1.0F) ? select_unscale<false, Gradient>(isa, non_temporal)
                                     : select_unscale<true, Gradient>(isa, non_temporal);
}

/// The pass that only looks.
template <class Gradient>
auto select_check(instruction_set isa, float inverse) noexcept {
    // What is finite stays finite when it is multiplied by 1 or less; zero makes NaNs of infinities.
    const bool multiply = !(inverse > 0.0F && inverse <= 1.0F);
    using pass = non_finite_report (*)(const Gradient*, std::size_t, float, std::uint32_t limit);
    if constexpr (has_number_vectors<Gradient>) {
        return multiply ? static_cast<pass>(MP_SELECT_TARGET(isa, (&check_array_portable<true, Gradient>),
                                                             check_array<true, Gradient>))
                        : static_cast<pass>(MP_SELECT_TARGET(isa, (&check_array_portable<false, Gradient>),
                                                             check_array<false, Gradient>));
    } else {
        static_cast<void>(isa);
        return multiply ? static_cast<pass>(&check_array_portable<true, Gradient>)
                        : static_cast<pass>(&check_array_portable<false, Gradient>);
    }
}

}}  // namespace mp::detail
