// SPDX-License-Identifier: MIT
/// \file
/// How an exact result becomes a number of a format: a rounding direction and what happens at overflow.
/// The words are those of the IEEE P3109 interim report: a projection is (rounding mode, saturation mode).
#pragma once

namespace mp {

/// Which of the two neighbouring numbers an exact value goes to when it is not itself a number of the format.
enum class rounding : unsigned char {
    nearest_even,  ///< the nearer one; a tie goes to the one whose last bit is zero. The operators' default
    nearest_away,  ///< the nearer one; a tie goes away from zero
    toward_zero,   ///< the one nearer to zero (truncation)
    upward,        ///< the larger one
    downward,      ///< the smaller one
    to_odd  ///< the one whose last bit is one: rounding again, to at least two bits less, is then exact
};

/// What becomes of values beyond the largest finite one.
enum class saturation : unsigned char {
    /// IEEE 754: nearest modes and those that round away from zero overflow to infinity, the others (to_odd
    /// among them) to the largest finite number. A format without infinity has NaN in its place, and one
    /// with neither the largest finite number.
    none,
    /// Everything too large becomes the largest finite number, infinite operands and results included.
    finite,
    /// Finite values that are too large become the largest finite number; infinities stay infinite (NaN in a
    /// format without infinity, the largest finite number in one with neither).
    propagate
};

/// A rounding direction and an overflow behaviour.
///
///     mp::round_to<mp::half>(0.1, {.round = mp::rounding::upward});
struct projection {
    rounding round = rounding::nearest_even;
    saturation saturate = saturation::none;

    friend constexpr bool operator==(projection, projection) = default;
};

}  // namespace mp
