// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <initializer_list>

#include "oracle/exact.hpp"

/// The status flags of an operation, from the definitions in IEEE 754-2019, section 7.
namespace oracle {

inline constexpr unsigned inexact = 1;
inline constexpr unsigned underflow = 2;
inline constexpr unsigned overflow = 4;
inline constexpr unsigned divide_by_zero = 8;
inline constexpr unsigned invalid = 16;

enum class tiny { after_rounding, before_rounding };

/// Whether an exact result, not zero, is tiny. Below the smallest normal number the numbers of a format with
/// unbounded exponents would be half as far apart as the codes: between the last code, at `lower`, and the
/// smallest normal number lies one more, at the middle. A result counts as tiny after rounding unless it goes
/// from there up to the smallest normal number. (Its last bit is one; but without fraction bits parity is
/// that of codes, of which the one before the first would be even where the first is odd: see mp::rounding.)
inline bool is_tiny(const format& f, const exact_result& exact, mode rounding, tiny when) {
    if (!exact.below_all && exact.lower >= min_normal_code(f)) return false;
    if (when == tiny::before_rounding) return true;
    if (!exact.below_all && exact.lower + 1 != min_normal_code(f)) return true;
    const bool above_last =
        exact.below_all ? exact.where != place::at_lower : exact.where == place::above_middle;
    const int versus_tie = !exact.below_all                     ? exact.three_quarters
                           : exact.where == place::at_middle    ? 0
                           : exact.where == place::above_middle ? 1
                                                                : -1;
    const bool last_is_odd = f.fraction_bits > 0 || !f.has_zero;
    if (!above_last) return true;
    switch (rounding) {
        case mode::nearest_even:
            return versus_tie < 0 || (versus_tie == 0 && !last_is_odd);
        case mode::nearest_away:
            return versus_tie < 0;
        case mode::upward:
            return exact.negative;
        case mode::downward:
            return !exact.negative;
        case mode::toward_zero:
            return true;
        case mode::to_odd:
            return last_is_odd;
    }
    return true;
}

/// The flags of an operation on these operands of one format, whose exact result has been located in `f`.
/// With `flush`, tiny results become zero, and `flushed` tells that this one does.
inline unsigned flags_of(const format& f, const format& operand_format,
                         std::initializer_list<std::uint64_t> operands, const exact_result& exact,
                         mode rounding, saturate saturation, tiny when, bool flush, bool& flushed) {
    flushed = false;
    unsigned flags = 0;
    bool any_nan = false;
    bool any_infinite = false;
    for (const std::uint64_t code : operands) {
        if (is_signaling(operand_format, code)) flags |= invalid;
        any_nan = any_nan || is_nan(operand_format, code);
        any_infinite = any_infinite || is_infinite(operand_format, code);
    }
    switch (exact.what) {
        case exact_result::kind::nan:
            return flags | (any_nan ? 0 : invalid);
        case exact_result::kind::infinite: {
            if (!any_infinite) return flags | divide_by_zero;
            const outcome result = finish(f, exact, rounding, saturation);
            return flags | (!result.nan && is_infinite(f, result.code) ? 0 : overflow | inexact);
        }
        case exact_result::kind::zero:
            if (f.has_zero) return flags;
            return flags | (finish(f, exact, rounding, saturation).nan ? invalid : underflow | inexact);
        case exact_result::kind::between:
            break;
    }
    const bool not_exact = exact.where != place::at_lower || exact.below_all;
    if (is_tiny(f, exact, rounding, when)) {
        if (flush) {
            flushed = true;
            return flags | underflow | inexact;
        }
        if (not_exact) flags |= underflow;
    }
    if (not_exact) flags |= inexact;
    const std::uint64_t rounded = exact.lower + (takes_upper(exact, rounding) ? 1 : 0);
    const bool too_large = exact.where == place::beyond_range || rounded > max_finite_code(f);
    const bool below_zero = exact.negative && !f.is_signed && (rounded != 0 || !f.has_zero);
    if (too_large || below_zero) flags |= overflow | inexact;
    return flags;
}

}  // namespace oracle
