// SPDX-License-Identifier: MIT
/// \file
/// How the scale of a block follows from the largest magnitude in it, in exact integer arithmetic.
#pragma once

#include <mp/convert/block_element.hpp>
#include <mp/float8.hpp>

#include <cstdint>

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

namespace detail::inline MP_ISA_NAMESPACE {

template <class Scale>
inline constexpr bool is_power_of_two_scale = is_float_exponent<typename Scale::format>;

/// n / (divisor * 2^exponent) with at least 64 bits of significand, what is left over being sticky.
constexpr exact_value divide_exact(const exact_value& n, std::uint64_t divisor, int exponent) noexcept {
    const int shift = 64 + leading_zeros(n.significand);
    const uint128 numerator = static_cast<uint128>(n.significand) << shift;
    const uint128 quotient = numerator / divisor;
    const bool rest = quotient * divisor != numerator || n.sticky;
    return to_64_bits(exact_number<uint128>{n.negative, n.exponent - shift - exponent, quotient, rest});
}

/// The same with at least 64 - b bits, for a divisor of b bits; a division of 64 bits is ten times as fast.
constexpr exact_value divide_to_few_bits(const exact_value& n, std::uint64_t divisor, int exponent) noexcept {
    const int shift = leading_zeros(n.significand);
    const std::uint64_t numerator = n.significand << shift;
    const std::uint64_t quotient = numerator / divisor;
    return {n.negative, n.exponent - shift - exponent, quotient, quotient * divisor != numerator || n.sticky};
}

/// The largest number of a format.
template <class Format>
inline constexpr exact_value largest_of = unpack<Format>(layout_of<Format>::max_finite_code);

/// The exponent of the scale of a block, by a rule other than standard, clamped to what E8M0 holds.
/// Significands are compared as fractions of 2^64, with their highest bit at the top.
template <class Element>
constexpr int scale_exponent(const exact_value& amax, scale_rule rule) noexcept {
    using format = coding_format<Element>;
    constexpr exact_value max = largest_of<format>;
    constexpr int max_shift = leading_zeros(max.significand);
    constexpr std::uint64_t f = max.significand << max_shift;
    constexpr int emax = layout_of<format>::max_exponent;
    const int shift = leading_zeros(amax.significand);
    const std::uint64_t a = amax.significand << shift;
    int s = amax.exponent + 63 - shift - emax;
    switch (rule) {
        case scale_rule::standard:
        case scale_rule::floor:
            break;
        case scale_rule::ceil:
            s += a > f ? 1 : 0;
            break;
        case scale_rule::even: {
            // Half a unit of the last place. A significand that it carries beyond all ones is rounded to the
            // next power of two; a tie there is between all ones, which is odd, and that power.
            constexpr std::uint64_t half = std::uint64_t{1} << (63 - layout_of<format>::precision);
            s += a >= 0 - half ? 1 : 0;
            break;
        }
        case scale_rule::nearest: {
            // amax / max = r 2^s with r = a / f, between 1/2 and 2; brought into [1, 2) it is compared with
            // 3/2.
            const bool below_one = a < f;
            if (below_one) --s;
            const uint128 twice = static_cast<uint128>(a) << (below_one ? 2 : 1);
            const uint128 middle = static_cast<uint128>(f) * 3;
            const bool is_odd = ((s + 127) & 1) != 0;
            if (twice > middle || (twice == middle && is_odd)) ++s;
            break;
        }
    }
    return s < -127 ? -127 : s > 127 ? 127 : s;
}

/// The same for an infinite amax. Under floor and even it counts as 2^128, as it does when the exponent field
/// of a float is looked at; the others have the largest scale.
template <class Element>
constexpr int infinite_scale_exponent(scale_rule rule) noexcept {
    const bool looks_at_exponent = rule != scale_rule::ceil && rule != scale_rule::nearest;
    return looks_at_exponent ? scale_exponent<Element>({false, 128, 1}, scale_rule::floor) : 127;
}

/// The code of a scale that is no power of two: amax / (max * tensor scale), rounded once. Zero would lose
/// the block, so the smallest positive number takes its place.
template <class Element, class Scale>
constexpr storage_of<typename Scale::format> scale_code(const exact_value& amax, float tensor_scale,
                                                        scale_rule rule) noexcept {
    using format = typename Scale::format;
    constexpr exact_value max = largest_of<coding_format<Element>>;
    const exact_value tensor = unpack<formats::binary32>(bit_cast<std::uint32_t>(tensor_scale));
    const projection p{rule == scale_rule::floor  ? rounding::toward_zero
                       : rule == scale_rule::ceil ? rounding::upward
                                                  : rounding::nearest_even,
                       saturation::finite};
    // 33 bits and more of the quotient, and 10 are enough for a scale.
    const auto code = round_and_pack<format>(
        divide_to_few_bits(amax, max.significand * tensor.significand, max.exponent + tensor.exponent), p);
    return layout_of<format>::has_zero && code == 0 ? static_cast<storage_of<format>>(1) : code;
}

/// amax / (largest scale * largest element), rounded to nearest even, but no subnormal float, which some
/// processors are told to take for zero. 1 if there is nothing but zeros.
template <class Element, class Scale>
constexpr float tensor_scale_for(const exact_value& amax) noexcept {
    if (amax.significand == 0) return 1;
    constexpr exact_value element = largest_of<coding_format<Element>>;
    constexpr exact_value scale = largest_of<typename Scale::format>;
    const exact_value quotient =
        divide_to_few_bits(amax, element.significand * scale.significand, element.exponent + scale.exponent);
    const std::uint32_t bits =
        round_and_pack<formats::binary32>(quotient, projection{rounding::nearest_even, saturation::finite});
    constexpr std::uint32_t smallest_normal = 0x00800000;
    return bit_cast<float>(bits < smallest_normal ? smallest_normal : bits);
}

}  // namespace detail::inline MP_ISA_NAMESPACE

}  // namespace mp
