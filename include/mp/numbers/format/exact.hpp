// SPDX-License-Identifier: MIT
/// \file
/// The integer core: what the codes of a format stand for, how specials and signs become codes, exact values as integers, and the one place where they are rounded into a format.
/// Everything here is integer arithmetic and works in constant expressions, on the device, and whatever the
/// floating-point environment or the compiler's float options are. It is the source of truth; every hardware
/// path elsewhere is an optimisation whose equality with it is tested exhaustively.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/numbers/format/descriptor.hpp>
#include <mp/numbers/format/projection.hpp>

#include <cstdint>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// What a code stands for; `finite` means finite and not zero.
enum class category : unsigned char { zero, finite, infinite, nan };

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Format>
using storage_of = typename layout_of<Format>::storage;

/// The category of a code.
template <class Format>
MP_HOST_DEVICE constexpr category categorize(storage_of<Format> bits) {
    using layout = layout_of<Format>;
    if constexpr (Format::nans == nan_encoding::negative_zero) {
        if (bits == layout::nan_code) return category::nan;
    }
    const auto magnitude = static_cast<storage_of<Format>>(bits & layout::magnitude_mask);
    if (layout::has_zero && magnitude == 0) return category::zero;
    if (magnitude <= layout::max_finite_code) return category::finite;
    if (layout::has_infinity && magnitude == layout::infinity_code) return category::infinite;
    return category::nan;
}

/// Sign bit of a code.
template <class Format>
MP_HOST_DEVICE constexpr bool is_negative(storage_of<Format> bits) {
    return (bits & layout_of<Format>::sign_mask) != 0;
}

/// Whether a code is that of a NaN that raises `invalid` wherever it is an operand (IEEE 754-2019, 6.2.1).
template <class Format>
MP_HOST_DEVICE constexpr bool is_signaling(storage_of<Format> bits) {
    using layout = layout_of<Format>;
    if constexpr (layout::quiet_bit == 0) return false;
    return categorize<Format>(bits) == category::nan && (bits & layout::quiet_bit) == 0;
}

/// Whether a code is that of a number smaller than all normal ones, but not zero.
template <class Format>
MP_HOST_DEVICE constexpr bool is_subnormal_code(storage_of<Format> bits) {
    using layout = layout_of<Format>;
    const auto magnitude = static_cast<storage_of<Format>>(bits & layout::magnitude_mask);
    return magnitude != 0 && magnitude < layout::min_normal_code;
}

/// Joins sign and magnitude. In formats without a minus zero the code of minus zero is NaN, so zero and NaN
/// lose their sign there; formats without signs have none to lose.
template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> join(bool negative, std::uint64_t code) {
    using layout = layout_of<Format>;
    using storage = storage_of<Format>;
    if constexpr (Format::nans == nan_encoding::negative_zero) {
        if (code == 0 || code > layout::magnitude_mask) return static_cast<storage>(code);
    }
    return static_cast<storage>(code | (negative ? layout::sign_mask : storage{0}));
}

/// As overflow_code(), by section 4.7.5 of IEEE P3109: a format without infinity has its largest or smallest
/// finite number instead; only negative values of a format without signs become NaN.
template <class Format>
MP_HOST_DEVICE constexpr std::uint64_t p3109_overflow_code(bool negative, bool infinite,
                                                           const projection& p) {
    using layout = layout_of<Format>;
    const bool below_all = negative && !layout::is_signed;
    const std::uint64_t clamped = below_all ? 0 : layout::max_finite_code;
    const bool has_infinity = layout::has_infinity && !below_all;
    if (p.saturate == saturation::finite) return clamped;
    if (!infinite) {
        const rounding inward = negative ? rounding::upward : rounding::downward;
        const bool stays = p.round == rounding::toward_zero || p.round == inward ||
                           (p.round == rounding::to_odd && has_infinity && !layout::is_signed);
        if (stays || p.saturate == saturation::propagate) return clamped;
    }
    if (has_infinity) return layout::infinity_code;
    return below_all && p.saturate == saturation::none ? layout::nan_code : clamped;
}

/// Magnitude code of an overflow to or beyond infinity; `infinite` tells an infinite operand or result from a
/// finite value that is too large. In a format without signs the same for negative values, which are as far
/// out of its range.
template <class Format>
MP_HOST_DEVICE constexpr std::uint64_t overflow_code(bool negative, bool infinite, const projection& p) {
    using layout = layout_of<Format>;
    if constexpr (layout::follows_p3109) return p3109_overflow_code<Format>(negative, infinite, p);
    const bool away = infinite || p.round == rounding::nearest_even || p.round == rounding::nearest_away ||
                      is_stochastic(p.round) || (p.round == rounding::upward && !negative) ||
                      (p.round == rounding::downward && negative);
    const bool saturates =
        p.saturate == saturation::finite || (p.saturate == saturation::propagate && !infinite);
    if (!layout::is_signed && negative) return saturates || !layout::has_nan ? 0 : layout::nan_code;
    if (saturates || !away) return layout::max_finite_code;
    if constexpr (layout::has_infinity) return layout::infinity_code;
    if constexpr (layout::has_nan) return layout::nan_code;
    return layout::max_finite_code;
}

/// The format's bits for a zero. A format without zero has its smallest number for it if values saturate,
/// else NaN (as ml_dtypes has for E8M0).
template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> pack_zero(bool negative, Context&& context) {
    using layout = layout_of<Format>;
    if constexpr (layout::has_zero) return join<Format>(negative, 0);
    if (layout::has_nan && projection_of(context).saturate == saturation::none) {
        raise(context, status_flag::invalid);
        return layout::nan_code;
    }
    raise(context, status_flag::underflow | status_flag::inexact);
    return 0;
}

/// The format's bits for an infinity, which is exact where the format has it.
template <class Format, context Context>
MP_HOST_DEVICE constexpr storage_of<Format> pack_infinity(bool negative, Context&& context) {
    using layout = layout_of<Format>;
    const std::uint64_t code = overflow_code<Format>(negative, true, projection_of(context));
    if (!layout::has_infinity || code != layout::infinity_code) {
        raise(context, status_flag::overflow | status_flag::inexact);
    }
    return join<Format>(negative, code);
}

/// The format's NaN, or what the projection puts in its place where there is none.
template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> pack_nan(bool negative = false, const projection& p = {}) {
    using layout = layout_of<Format>;
    if constexpr (layout::has_nan) {
        return join<Format>(negative && p.nan == nan_propagation::keep, layout::nan_code);
    } else {
        const bool zero = layout::has_zero && p.without_nan == nan_substitute::zero;
        return zero ? storage_of<Format>{0} : static_cast<storage_of<Format>>(layout::max_finite_code);
    }
}

/// The NaN of an invalid operation.
template <class Format, context Context>
MP_HOST_DEVICE constexpr storage_of<Format> invalid_operation(Context&& context) {
    raise(context, status_flag::invalid);
    return pack_nan<Format>(false, projection_of(context));
}

/// Converts a NaN: makes it quiet, and keeps the sign and the leading bits of the payload if the projection
/// does.
template <class To, class From>
MP_HOST_DEVICE constexpr storage_of<To> convert_nan(storage_of<From> bits, const projection& p = {}) {
    using to = layout_of<To>;
    using from = layout_of<From>;
    if (!to::has_nan || p.nan == nan_propagation::canonical) return pack_nan<To>(false, p);
    std::uint64_t code = to::nan_code;
    if constexpr (To::nans == nan_encoding::ieee && From::nans == nan_encoding::ieee) {
        const std::uint64_t payload = bits & from::fraction_mask;
        if constexpr (from::fraction_bits >= to::fraction_bits) {
            code |= payload >> (from::fraction_bits - to::fraction_bits);
        } else {
            code |= payload << (to::fraction_bits - from::fraction_bits);
        }
    }
    // The NaN that has the code of minus zero has no sign.
    const bool negative = From::nans != nan_encoding::negative_zero && is_negative<From>(bits);
    return join<To>(negative, code);
}

/// As above, but a signalling NaN raises `invalid`.
template <class To, class From>
MP_HOST_DEVICE constexpr storage_of<To> convert_nan(storage_of<From> bits, environment& context) {
    if (is_signaling<From>(bits) || !layout_of<To>::has_nan) raise(context, status_flag::invalid);
    return convert_nan<To, From>(bits, context.project);
}

/// A code as an operand: an environment may take subnormal numbers for zeros.
template <class Format, context Context>
MP_HOST_DEVICE constexpr storage_of<Format> operand(storage_of<Format> bits, Context&& context) {
    if constexpr (keeps_flags<Context>) {
        if (context.subnormals == subnormal_handling::flush_all && is_subnormal_code<Format>(bits)) {
            return join<Format>(is_negative<Format>(bits), 0);
        }
    }
    return bits;
}

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// A non-zero finite value: (-1)^negative * (significand + tail) * 2^exponent, where tail is 0 when sticky is
/// false, and some unknown number strictly between 0 and 1 when it is true.
template <class Word>
struct exact_number {
    bool negative;
    int exponent;
    Word significand;
    bool sticky = false;
};
using exact_value = exact_number<std::uint64_t>;

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The exact value of a code whose category is finite.
template <class Format>
MP_HOST_DEVICE constexpr exact_value unpack(storage_of<Format> bits) {
    using layout = layout_of<Format>;
    const int field = static_cast<int>((bits & layout::magnitude_mask) >> layout::fraction_bits);
    const std::uint64_t fraction = bits & layout::fraction_mask;
    const bool normal = field != 0 || !layout::has_zero;
    const int binade = field == 0 || !layout::has_zero ? field : field - 1;
    return {is_negative<Format>(bits), layout::quantum_exponent + binade,
            normal ? fraction | layout::hidden_bit : fraction};
}

/// An exact value truncated to a multiple of 2^last, and the remainder.
struct split_value {
    std::uint64_t truncated = 0;
    std::uint64_t remainder = 0;  ///< what is shifted out, to be compared with half_ulp
    std::uint64_t half_ulp = 0;   ///< half of 2^last; zero when that is larger than any remainder
    int shift = 0;                ///< places from the last bit of the significand up to 2^last
    bool sticky = false;

    [[nodiscard]] MP_HOST_DEVICE constexpr bool is_exact() const { return remainder == 0 && !sticky; }

    /// floor(v * 2^count) where v is the remainder in units of 2^last.
    [[nodiscard]] MP_HOST_DEVICE constexpr std::uint64_t rest_bits(int count) const {
        const int excess = shift - count;
        if (shift <= 0 || excess >= 64) return 0;
        return excess >= 0 ? remainder >> excess : remainder << -excess;
    }
};

MP_HOST_DEVICE constexpr split_value split_at(const exact_value& x, int last) {
    const int shift = last - x.exponent;
    if (shift <= 0) return {x.significand << -shift, 0, 0, shift, x.sticky};
    if (shift < 64) {
        return {x.significand >> shift, x.significand & ((std::uint64_t{1} << shift) - 1),
                std::uint64_t{1} << (shift - 1), shift, x.sticky};
    }
    return {0, x.significand, shift == 64 ? std::uint64_t{1} << 63 : 0, shift, x.sticky};
}

/// Whether stochastic rounding goes away from zero, by the definitions of IEEE P3109 (see mp::rounding).
MP_HOST_DEVICE constexpr bool stochastically_up(const split_value& x, const projection& p) {
    const int count = p.random_bits > 32 ? 32 : p.random_bits;
    const std::uint64_t one = std::uint64_t{1} << count;
    const std::uint64_t random = p.random & (one - 1);
    if (p.round == rounding::stochastic_a) return x.rest_bits(count) + random >= one;
    const std::uint64_t finer = x.rest_bits(count + 1);
    if (p.round == rounding::stochastic_b) return finer + 2 * random + 1 >= 2 * one;
    // Sticky bits below the round bit break ties.
    const bool cut_off =
        x.sticky ||
        (x.shift > count + 1 &&
         (x.shift - count - 1 >= 64 ? x.remainder != 0 : (finer << (x.shift - count - 1)) != x.remainder));
    const std::uint64_t whole = finer >> 1;
    const bool up = (finer & 1) != 0 && (cut_off || (whole & 1) != 0);
    return whole + (up ? 1 : 0) + random >= one;
}

/// Whether a value goes to the neighbour away from zero; `odd` is the last bit of the code nearer to zero.
MP_HOST_DEVICE constexpr bool rounds_up(const split_value& x, bool negative, bool odd, const projection& p) {
    switch (p.round) {
        case rounding::nearest_even:
            return x.half_ulp != 0 &&
                   (x.remainder > x.half_ulp || (x.remainder == x.half_ulp && (x.sticky || odd)));
        case rounding::nearest_away:
            return x.half_ulp != 0 && x.remainder >= x.half_ulp;
        case rounding::toward_zero:
            return false;
        case rounding::upward:
            return !negative && !x.is_exact();
        case rounding::downward:
            return negative && !x.is_exact();
        case rounding::to_odd:
            return !odd && !x.is_exact();
        case rounding::stochastic_a:
        case rounding::stochastic_b:
        case rounding::stochastic_c:
            return stochastically_up(x, p);
    }
    return false;
}

/// Whether a value, which must be below the smallest normal number, is tiny in the sense of the environment:
/// if tininess counts after rounding, one that would round to the smallest normal number with an exponent
/// range without limits is not.
template <class Format>
MP_HOST_DEVICE constexpr bool is_tiny(const exact_value& x, int top, const environment& env) {
    using layout = layout_of<Format>;
    if (env.tiny == tininess::before_rounding || top != layout::min_exponent - 1) return true;
    const split_value split = split_at(x, top - layout::fraction_bits);
    const bool all_ones = split.truncated == (std::uint64_t{1} << layout::precision) - 1;
    // Without fraction bits the parity is that of codes, and the code below the smallest normal number is
    // zero.
    const bool last_is_odd = layout::fraction_bits > 0 || !layout::has_zero;
    return !all_ones || !rounds_up(split, x.negative, last_is_odd, env.project);
}

/// Rounds an exact non-zero value once and packs it; underflow is gradual, unless an environment flushes.
///
/// Precondition: a sticky significand has at least precision + 2 bits, so that the tail never reaches up to
/// the bits that decide; precision + 34 if rounding is stochastic.
///
/// Why the code can be computed by one addition: with q the exponent of the last kept bit (never below the
/// quantum) and k the kept significand, the magnitude code is ((q - quantum) << fraction_bits) + k. In the
/// lowest binade and below, q is the quantum and the code is k itself; above, the hidden bit of k adds the
/// one that the exponent field needs. A carry out of k from rounding up runs into the exponent field and
/// gives the next power of two, and running past max_finite_code is overflow. In a format without zero the
/// exponent fields are one lower, which takes away one hidden bit.
template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> round_and_pack(const exact_value& x, Context&& context) {
    using layout = layout_of<Format>;
    const projection& p = projection_of(context);
    const int top = 63 - leading_zeros(x.significand);
    int last = x.exponent + top - layout::fraction_bits;
    if (last < layout::quantum_exponent) last = layout::quantum_exponent;

    // Too large whatever the rounding; without this the shift below could leave 64 bits.
    if (last + layout::fraction_bits > layout::max_exponent) {
        raise(context, status_flag::overflow | status_flag::inexact);
        return join<Format>(x.negative, overflow_code<Format>(x.negative, false, p));
    }
    const split_value split = split_at(x, last);
    std::uint64_t code =
        (static_cast<std::uint64_t>(last - layout::quantum_exponent) << layout::fraction_bits) +
        split.truncated;
    if constexpr (layout::has_zero) {
        code += rounds_up(split, x.negative, (code & 1) != 0, p) ? 1U : 0U;
    } else {
        const bool below_all = split.truncated < layout::hidden_bit;
        code = below_all ? 0 : code - layout::hidden_bit;
        if (!below_all) code += rounds_up(split, x.negative, (code & 1) != 0, p) ? 1U : 0U;
    }

    if constexpr (keeps_flags<Context>) {
        const bool inexact = !split.is_exact();
        if (top + x.exponent < layout::min_exponent && is_tiny<Format>(x, top + x.exponent, context)) {
            if (context.subnormals != subnormal_handling::gradual && layout::has_zero) {
                raise(context, status_flag::underflow | status_flag::inexact);
                return join<Format>(x.negative, 0);
            }
            if (inexact) raise(context, status_flag::underflow);
        }
        if (inexact) raise(context, status_flag::inexact);
    }
    const bool below_zero = !layout::is_signed && x.negative && (code != 0 || !layout::has_zero);
    if (code > layout::max_finite_code || below_zero) {
        raise(context, status_flag::overflow | status_flag::inexact);
        return join<Format>(x.negative, overflow_code<Format>(x.negative, false, p));
    }
    return join<Format>(x.negative, code);
}

/// From a code of one format to a code of another, float and double included as binary32 and binary64.
template <class To, class From, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<To> convert_bits(storage_of<From> bits, Context&& context) {
    bits = operand<From>(bits, context);
    const bool negative = is_negative<From>(bits);
    switch (categorize<From>(bits)) {
        case category::zero:
            return pack_zero<To>(negative, context);
        case category::infinite:
            return pack_infinity<To>(negative, context);
        case category::nan:
            return convert_nan<To, From>(bits, context);
        case category::finite:
            break;
    }
    return round_and_pack<To>(unpack<From>(bits), context);
}

}}  // namespace mp::detail
