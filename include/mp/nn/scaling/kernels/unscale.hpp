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
#include <mp/nn/scaling/kernels/unscale_functions.hpp>
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
