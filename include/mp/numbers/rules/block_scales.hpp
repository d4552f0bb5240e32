// SPDX-License-Identifier: MIT
/// \file
/// How the scale of a block follows from the largest magnitude in it: what is the same for exact integers,
/// for vectors and for threads of a GPU; and the errors by which one of two scales is chosen
/// (scale_rule::four_over_six_mse and four_over_six_mae), with the same bits on CPUs and GPUs.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/numbers/format/exact.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/simd/vec.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mp {

/// How the scale of a block follows from amax, the largest magnitude among its values. With emax the exponent
/// of the largest number of the element format, and max that number, a scale that is a power of two is
///
/// - floor: 2^(floor(log2(amax)) - emax). The rule of the OCP MX specification 1.0, section 6.3; torchao's
///   FLOOR. The largest values of a block can lie up to twice the power of two of max above the scale, beyond
///   max itself; they are clamped.
/// - ceil: the smallest power of two with amax / scale <= max, so that nothing is clamped. What NVIDIA
///   recommends for training (arXiv 2506.08027); torchao's RCEIL, not its CEIL.
/// - even: as floor, of an amax whose significand has first been rounded, half to even, to the precision of
///   the elements. torchao's EVEN. Clamps less than floor.
/// - nearest: the power of two nearest to amax / max, ties to the even exponent field, which is what a
///   conversion to E8M0 makes of the quotient.
/// - torchao_rceil: amax * (1 / max), with the reciprocal and the product rounded to float, rounded up to a
///   power of two. The bits of torchao's RCEIL. Differs from ceil only where the product is rounded to a power of
///   two: for an amax one float above max * 2^-127, and in MXINT8 (which torchao has not) one or two floats above
///   max * 2^k. These get the smaller scale and are clamped.
/// - torchao_ceil: 2^(ceil(log2(amax)) - emax); torchao's CEIL. Clamps nothing, and leaves more range unused
///   than ceil.
///
/// Any other scale, such as E4M3, is amax / (max * tensor scale) rounded once: toward zero under floor,
/// upward under ceil, to nearest even under even and nearest; torchao_rceil and torchao_ceil are invalid.
/// - four_over_six_mse, four_over_six_mae: for elements of E2M1 with such a scale (NVFP4) only. Of the two
///   scales amax / (6 * tensor scale) and amax / (4 * tensor scale), each rounded to nearest even, the one
///   under which the block, rounded to nearest even, has the smaller sum of squared (absolute) errors; the
///   first if they are equal (arXiv 2512.02010). The tensor scale that is computed leaves room for the second:
///   it is amax / (256 * 6), not amax / (448 * 6), as in Transformer Engine and ModelOpt.
enum class scale_rule : unsigned char {
    standard,  ///< the format's own: floor for powers of two (OCP MX), nearest for others (NVFP4)
    floor,
    ceil,
    even,
    nearest,
    torchao_rceil,
    torchao_ceil,
    four_over_six_mse,
    four_over_six_mae
};

/// Smallest scale of a block where scales are not powers of two, as in NVFP4.
enum class block_scale_floor : unsigned char {
    /// The smallest positive number, 2^-9 in NVFP4 (ModelOpt).
    smallest,
    /// The smallest normal number, 2^-6 in NVFP4 (torchao).
    normal,
    /// Zero (Transformer Engine). The finite values of a block whose scale is zero become zeros with their
    /// signs.
    none
};

namespace detail { inline namespace MP_ISA_NAMESPACE {

/// The largest number of a format.
template <class Format>
inline constexpr exact_value largest_of = unpack<Format>(layout_of<Format>::max_finite_code);

/// Significand of amax, in `Bits` bits, up to which torchao_rceil has the lower of two powers of two: the largest
/// whose product with the float 1 / max is at most (1 + excess * 2^-24) times that power.
template <class Format, int Bits>
MP_HOST_DEVICE constexpr std::uint64_t reciprocal_limit(unsigned excess) noexcept {
    constexpr exact_value max = largest_of<Format>;
    // Of 24 bits, as is its reciprocal, which lies above 2^23, and is 2^24 for a power of two.
    constexpr std::uint64_t f = (max.significand << leading_zeros(max.significand)) >> 40;
    static_assert(f << 40 >> leading_zeros(max.significand) == max.significand);
    constexpr std::uint64_t reciprocal = ((std::uint64_t{1} << 47) + f / 2) / f;
    const uint128 power = static_cast<uint128>((std::uint64_t{1} << 24) + excess) << (Bits - 1);
    return static_cast<std::uint64_t>(power / reciprocal);
}

/// Whether the scale is the better one of two.
MP_HOST_DEVICE constexpr bool is_four_over_six(scale_rule rule) noexcept {
    return rule == scale_rule::four_over_six_mse || rule == scale_rule::four_over_six_mae;
}

/// Rounding of scales that are not powers of two.
MP_HOST_DEVICE constexpr projection scale_projection(scale_rule rule) noexcept {
    return {rule == scale_rule::floor  ? rounding::toward_zero
            : rule == scale_rule::ceil ? rounding::upward
                                       : rounding::nearest_even,
            saturation::finite};
}

/// The numbers between which a magnitude is rounded to one element or to the next one, and that next element, all
/// exact. Entries past the last one repeat it.
template <class Format>
struct element_midpoints {
    static constexpr int count = layout_of<Format>::max_finite_code;
    static_assert(count <= 8);
    double values[8] = {};
    double above[8] = {};
    constexpr element_midpoints() {
        for (int k = 0; k < 8; ++k) {
            const int lower = k < count ? k : count - 1;
            const auto value = [](int code) {
                return to_double<Format>(static_cast<storage_of<Format>>(code));
            };
            values[k] = (value(lower) + value(lower + 1)) / 2;
            above[k] = value(lower + 1);
        }
    }
};

/// The value of a code of E8M0 that is not NaN, 2^(code - 127), of which the first is subnormal.
MP_HOST_DEVICE constexpr float power_of_two_scale(std::uint32_t code) noexcept {
    return bit_cast<float>(code == 0 ? 0x0040'0000U : code << 23);
}

}}  // namespace detail

}  // namespace mp

#define MP_KERNEL_FILE <mp/numbers/rules/block_scales.inl>
#include <mp/numbers/simd/for_each_vec.inl>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Returns the sum of `Count` terms, a power of two, by halves: terms i and i + Count / 2 first. Overwrites them.
template <std::size_t Count>
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr double sum_by_halves(double (&terms)[Count]) {
    static_assert((Count & (Count - 1)) == 0);
    MP_UNROLL
    for (std::size_t half = Count / 2; half != 0; half /= 2) {
        MP_UNROLL
        for (std::size_t i = 0; i < Count / 2; ++i) {
            if (i < half) terms[i] = double_add(terms[i], terms[i + half]);
        }
    }
    return terms[0];
}

/// Returns the sum of the errors of finite magnitudes, each rounded to the nearest element times `divisor`, which
/// is scale * tensor scale. Every operation is rounded to double; midpoints and values are exact products.
template <class Format, std::size_t Count>
MP_HOST_DEVICE constexpr double block_error(const double (&magnitudes)[Count], double divisor, bool squared) {
    constexpr element_midpoints<Format> midpoints;
    double errors[Count] = {};  // first the values
    MP_UNROLL
    for (int k = 0; k < element_midpoints<Format>::count; ++k) {
        const double middle = double_multiply(midpoints.values[k], divisor);
        const double next = double_multiply(midpoints.above[k], divisor);
        // On a midpoint the even code is the nearest one.
        if (k % 2 == 0) {
            for (std::size_t i = 0; i < Count; ++i) errors[i] = magnitudes[i] > middle ? next : errors[i];
        } else {
            for (std::size_t i = 0; i < Count; ++i) errors[i] = magnitudes[i] >= middle ? next : errors[i];
        }
    }
    for (std::size_t i = 0; i < Count; ++i) {
        const double error = double_subtract(magnitudes[i], errors[i]);
        errors[i] = squared ? double_multiply(error, error) : error < 0 ? -error : error;
    }
    return sum_by_halves(errors);
}

}}  // namespace mp::detail
