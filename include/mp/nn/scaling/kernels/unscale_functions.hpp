// SPDX-License-Identifier: MIT
/// \file
/// The kernels of <mp/nn/scaling/kernels/unscale.hpp>.
#pragma once

#include <mp/arrays/array/row_type.hpp>
#include <mp/arrays/convert/bulk.hpp>
#include <mp/arrays/convert/kernels/number_vectors.hpp>
#include <mp/base/bits.hpp>
#include <mp/base/instruction_set.hpp>
#include <mp/base/runs.hpp>
#include <mp/config.hpp>
#include <mp/nn/scaling/kernels/unscale.hpp>
#include <mp/numbers/format/basic_float.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/memory.hpp>
#include <mp/numbers/simd/select_target.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#if MP_CORE_BODIES
namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION void count_non_finite(const float* values, std::size_t count, std::size_t at,
                                       non_finite_report& report, std::uint32_t limit) noexcept {
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

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

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

/// unscaled = value * inverse; true if a result is infinite, NaN or above the limit of `carry`. The arrays must not overlap.
template <bool Multiply>
bool unscale_block_to(const float* __restrict values, float* __restrict unscaled, std::size_t count,
                      [[maybe_unused]] float inverse, std::uint32_t carry) noexcept {
    std::uint32_t carries = 0;
    in_runs(count, [&](std::size_t i) {
        float value = values[i];
        if constexpr (Multiply) value *= inverse;
        unscaled[i] = value;
        carries |= carry_of(value, carry);
    });
    return (carries >> 31) != 0;
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

template <bool Multiply>
non_finite_report unscale_array_portable(const void* gradient, float* unscaled, std::size_t count,
                                         float inverse, std::uint32_t limit) {
    const default_floating_point_modes modes;
    const auto* const values = static_cast<const float*>(gradient);
    const std::uint32_t carry = carry_above(limit);
    non_finite_report report;
    for (std::size_t at = 0; at < count; at += unscale_block) {
        const std::size_t length = (std::min)(unscale_block, count - at);
        const bool bad = values == unscaled
                             ? unscale_block_in_place<Multiply>(unscaled + at, length, inverse, carry)
                             : unscale_block_to<Multiply>(values + at, unscaled + at, length, inverse, carry);
        if (bad) count_non_finite(unscaled + at, length, at, report, limit);
    }
    return report;
}

template <bool Multiply>
non_finite_report check_array_portable(const void* gradient, std::size_t count, float inverse,
                                       std::uint32_t limit) {
    const default_floating_point_modes modes;
    const auto* const values = static_cast<const float*>(gradient);
    const check_limits limits = limits_of_check<Multiply, float>(limit, inverse);
    const std::uint32_t carry = carry_above(limits.value);
    non_finite_report report;
    for (std::size_t at = 0; at < count; at += unscale_block) {
        const std::size_t length = (std::min)(unscale_block, count - at);
        float results[unscale_block];
        if (unscale_block_to<Multiply>(values + at, results, length, inverse, carry)) {
            count_non_finite(results, length, at, report, limits.value);
        }
    }
    return report;
}

}}  // namespace mp::detail

#define MP_KERNEL_FILE <mp/nn/scaling/kernels/unscale.inl>
#include <mp/numbers/simd/for_each_target.inl>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The kernel of the library's instruction sets for gradients of a type; null on others, except for floats.
template <class Gradient, bool Multiply>
unscale_kernel unscale_kernel_of(instruction_set isa, [[maybe_unused]] bool non_temporal) {
    unscale_kernel portable = nullptr;
    if constexpr (std::is_same_v<Gradient, float>) portable = &unscale_array_portable<Multiply>;
    if constexpr (has_streaming_stores) {
        if (non_temporal) return MP_SELECT_TARGET(isa, portable, unscale_large_array<Multiply, Gradient>);
    }
    return MP_SELECT_TARGET(isa, portable, unscale_array<Multiply, Gradient>);
}
template <class Gradient, bool Multiply>
check_kernel check_kernel_of(instruction_set isa) {
    check_kernel portable = nullptr;
    if constexpr (std::is_same_v<Gradient, float>) portable = &check_array_portable<Multiply>;
    return MP_SELECT_TARGET(isa, portable, check_array<Multiply, Gradient>);
}

template <class Gradient>
constexpr gradient_type make_gradient_type() {
    return {&row_record<Gradient>::record, std::is_same_v<Gradient, float>,
            [](instruction_set isa, bool multiply, bool non_temporal) {
                return multiply ? unscale_kernel_of<Gradient, true>(isa, non_temporal)
                                : unscale_kernel_of<Gradient, false>(isa, non_temporal);
            },
            [](instruction_set isa, bool multiply) {
                return multiply ? check_kernel_of<Gradient, true>(isa)
                                : check_kernel_of<Gradient, false>(isa);
            }};
}

/// Calls f(first, count) on blocks, which reports on them.
template <class Function>
non_finite_report report_by_blocks(std::size_t count, Function f) {
    non_finite_report report;
    for (std::size_t at = 0; at < count; at += unscale_block) {
        const non_finite_report found = f(at, (std::min)(unscale_block, count - at));
        report.infinities += found.infinities;
        report.nans += found.nans;
        report.too_large += found.too_large;
        if (found.first_index != no_index) {
            report.first_index = (std::min)(report.first_index, at + found.first_index);
        }
        if (found.first_too_large != no_index) {
            report.first_too_large = (std::min)(report.first_too_large, at + found.first_too_large);
        }
    }
    return report;
}

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION non_finite_report unscale_pass::operator()(const void* gradient, float* unscaled,
                                                            std::size_t count, float inverse,
                                                            std::uint32_t limit) const {
    if (rows == nullptr) return kernel(gradient, unscaled, count, inverse, limit);
    const default_floating_point_modes modes;
    return report_by_blocks(count, [&](std::size_t at, std::size_t length) {
        const auto* const from = static_cast<const std::byte*>(gradient) + at * rows->size;
        rows->widen(isa, from, unscaled + at, length);
        return kernel(unscaled + at, unscaled + at, length, inverse, limit);
    });
}

MP_CORE_FUNCTION non_finite_report check_pass::operator()(const void* gradient, std::size_t count,
                                                          float inverse, std::uint32_t limit) const {
    if (rows == nullptr) return kernel(gradient, count, inverse, limit);
    const default_floating_point_modes modes;
    return report_by_blocks(count, [&](std::size_t at, std::size_t length) {
        alignas(64) float values[unscale_block];
        rows->widen(isa, static_cast<const std::byte*>(gradient) + at * rows->size, values, length);
        return kernel(values, length, inverse, limit);
    });
}

MP_CORE_FUNCTION unscale_pass select_unscale(const gradient_type& type, instruction_set isa, float inverse,
                                             bool in_place, std::size_t count) {
    const bool multiply = !same_value(inverse, 1.0F);
    const bool non_temporal = !in_place && count >= large_result / sizeof(float);
    if (type.select_unscale != nullptr) {
        if (const unscale_kernel kernel = type.select_unscale(isa, multiply, non_temporal)) return {{kernel}};
    }
    return {
        {multiply ? unscale_kernel_of<float, true>(isa, false) : unscale_kernel_of<float, false>(isa, false),
         type.rows, isa}};
}

MP_CORE_FUNCTION check_pass select_check(const gradient_type& type, instruction_set isa, float inverse) {
    // What is finite stays finite when it is multiplied by 1 or less; zero makes NaNs of infinities.
    const bool multiply = !(inverse > 0.0F && inverse <= 1.0F);
    if (type.select_check != nullptr) {
        if (const check_kernel kernel = type.select_check(isa, multiply)) return {{kernel}};
    }
    return {
        {multiply ? check_kernel_of<float, true>(isa) : check_kernel_of<float, false>(isa), type.rows, isa}};
}

}}  // namespace mp::detail
#endif
