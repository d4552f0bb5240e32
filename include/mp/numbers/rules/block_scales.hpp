// SPDX-License-Identifier: MIT
/// \file
/// How the scale of a block follows from the largest magnitude in it: what is the same for exact integers,
/// for vectors and for threads of a GPU.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/numbers/format/exact.hpp>
#include <mp/numbers/simd/vec.hpp>

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
///
/// Any other scale, such as E4M3, is amax / (max * tensor scale) rounded once: toward zero under floor,
/// upward under ceil, to nearest even under even and nearest.
enum class scale_rule : unsigned char {
    standard,  ///< the format's own: floor for powers of two (OCP MX), nearest for others (NVFP4)
    floor,
    ceil,
    even,
    nearest
};

namespace detail { inline namespace MP_ISA_NAMESPACE {

/// The largest number of a format.
template <class Format>
inline constexpr exact_value largest_of = unpack<Format>(layout_of<Format>::max_finite_code);

/// Rounding of scales that are not powers of two.
MP_HOST_DEVICE constexpr projection scale_projection(scale_rule rule) noexcept {
    return {rule == scale_rule::floor  ? rounding::toward_zero
            : rule == scale_rule::ceil ? rounding::upward
                                       : rounding::nearest_even,
            saturation::finite};
}

/// The value of a code of E8M0 that is not NaN, 2^(code - 127), of which the first is subnormal.
MP_HOST_DEVICE constexpr float power_of_two_scale(std::uint32_t code) noexcept {
    return bit_cast<float>(code == 0 ? 0x0040'0000U : code << 23);
}

}}  // namespace detail

}  // namespace mp

#define MP_KERNEL_FILE <mp/numbers/rules/block_scales.inl>
#include <mp/numbers/simd/for_each_vec.inl>
