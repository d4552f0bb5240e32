// SPDX-License-Identifier: MIT
/// \file
/// The passes behind unscale_and_check and check_finite over one array, on one thread. Every instruction set
/// gives the same bits and reports.
#pragma once

#include <mp/arrays/array/row_type.hpp>
#include <mp/base/bits.hpp>
#include <mp/base/instruction_set.hpp>
#include <mp/config.hpp>
#include <mp/numbers/format/basic_float.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#if MP_CORE_BODIES
#include <mp/arrays/convert/bulk.hpp>
#include <mp/arrays/convert/kernels/number_vectors.hpp>
#include <mp/base/runs.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/memory.hpp>
#include <mp/numbers/simd/select_target.hpp>

#include <algorithm>
#endif

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

namespace detail { inline namespace MP_CORE_NAMESPACE {

/// Elements between two tests of the flag: 8 KiB of float, so that a block with a bad value is still in the
/// first-level cache when it is searched.
inline constexpr std::size_t unscale_block = 2048;

/// Bits of the largest float, above which there are infinities and NaNs: the limit of a check that has no other.
inline constexpr std::uint32_t no_check_limit = 0x7f7fffffU;

/// From this number of bytes of results on, unscaling to other memory writes past the caches. By then nothing would
/// remain in them for the next reader of the results, and memory need not be read before it is overwritten.
inline constexpr std::size_t large_result = std::size_t{1} << 26;

/// Adds the infinities and NaNs of `count` values, the first of which has index `at`, to `report`, and the finite values
/// whose magnitude has bits above `limit`.
MP_CORE_FUNCTION void count_non_finite(const float* values, std::size_t count, std::size_t at,
                                       non_finite_report& report,
                                       std::uint32_t limit = no_check_limit) noexcept;

/// unscaled = gradient * inverse; reports non-finite results and magnitudes whose bits are above `limit`. The arrays may
/// be the same.
using unscale_kernel = non_finite_report (*)(const void* gradient, float* unscaled, std::size_t count,
                                             float inverse, std::uint32_t limit);
/// The same report, without the results.
using check_kernel = non_finite_report (*)(const void* gradient, std::size_t count, float inverse,
                                           std::uint32_t limit);

/// A type of gradients. Those without kernels become floats first, a block at a time.
struct gradient_type {
    const row_type* rows;
    bool is_float;
    unscale_kernel (*select_unscale)(instruction_set isa, bool multiply, bool non_temporal);
    check_kernel (*select_check)(instruction_set isa, bool multiply);
};

/// Unscales chunks of a gradient, or checks them.
template <class Kernel>
struct gradient_pass {
    Kernel kernel;
    const row_type* rows = nullptr;  ///< converts gradients for a kernel of floats; null where none is needed
    instruction_set isa = instruction_set::portable;
};
struct unscale_pass : gradient_pass<unscale_kernel> {
    non_finite_report operator()(const void* gradient, float* unscaled, std::size_t count, float inverse,
                                 std::uint32_t limit) const;
};
struct check_pass : gradient_pass<check_kernel> {
    non_finite_report operator()(const void* gradient, std::size_t count, float inverse,
                                 std::uint32_t limit) const;
};

/// The pass for an inverse scale, in place or to other memory, over chunks of something that has `count` elements in all.
/// By a scale of one nothing is multiplied, and floats keep their bits.
MP_CORE_FUNCTION unscale_pass select_unscale(const gradient_type& type, instruction_set isa, float inverse,
                                             bool in_place, std::size_t count);

/// The pass that only checks.
MP_CORE_FUNCTION check_pass select_check(const gradient_type& type, instruction_set isa, float inverse);

template <class Value, class Owner>
struct owned_gradient_type {
    static const gradient_type record;
};

}}  // namespace detail
}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Adding this to the bits of a float without its sign carries into bit 31 exactly when they are above those of
/// `limit`, a finite magnitude; or-ing the sums of a block then leaves one bit to test.
[[nodiscard]] constexpr std::uint32_t carry_above(std::uint32_t limit) noexcept {
    return 0x7fffffffU - limit;
}

inline std::uint32_t carry_of(float value, std::uint32_t carry = carry_above(no_check_limit)) noexcept {
    return (bit_cast<std::uint32_t>(value) & 0x7fffffffU) + carry;
}

}}  // namespace mp::detail

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

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Types whose gradients have kernels.
template <class Value>
inline constexpr bool has_unscale_kernels =
    std::is_same_v<Value, float> || std::is_same_v<Value, basic_float<formats::binary16>> ||
    std::is_same_v<Value, basic_float<formats::bfloat16>> ||
    std::is_same_v<Value, basic_float<formats::float8_e4m3fn>> ||
    std::is_same_v<Value, basic_float<formats::float8_e5m2>>;

#if defined(MP_COMPILED)
using unscale_kernel_owner = kernels_of_compiled_part;
#else
using unscale_kernel_owner = kernels_of_source;
#endif
template <class Value>
using gradient_record =
    owned_gradient_type<Value,
                        std::conditional_t<has_unscale_kernels<Value>, unscale_kernel_owner, rows_of_source>>;

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

template <class Value>
struct owned_gradient_type<Value, rows_of_source> {
    static const gradient_type record;
};
template <class Value>
constinit const gradient_type owned_gradient_type<Value, rows_of_source>::record = {
    &row_record<Value>::record, false, nullptr, nullptr};

#if defined(MP_COMPILED)
// Defined in the compiled part.
#define MP_DECLARE_GRADIENT(...) \
    template <>                  \
    const gradient_type owned_gradient_type<__VA_ARGS__, kernels_of_compiled_part>::record;
MP_DECLARE_GRADIENT(float)
MP_DECLARE_GRADIENT(basic_float<formats::binary16>)
MP_DECLARE_GRADIENT(basic_float<formats::bfloat16>)
MP_DECLARE_GRADIENT(basic_float<formats::float8_e4m3fn>)
MP_DECLARE_GRADIENT(basic_float<formats::float8_e5m2>)
#undef MP_DECLARE_GRADIENT
#else
template <class Value>
struct owned_gradient_type<Value, kernels_of_source> {
    static const gradient_type record;
};
template <class Value>
constinit const gradient_type owned_gradient_type<Value, kernels_of_source>::record =
    make_gradient_type<Value>();
#endif

}}  // namespace mp::detail
