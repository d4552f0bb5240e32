// SPDX-License-Identifier: MIT
/// \file
/// How an exact result becomes a number of a format: a rounding direction and what happens at overflow.
/// The words are those of the IEEE P3109 interim report: a projection is (rounding mode, saturation mode).
#pragma once

#include <mp/config.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace mp {

/// Which of the two neighbouring numbers an exact value goes to when it is not itself a number of the format.
///
/// "Even" and "odd" are those of the code. That is the same as the last bit of the significand, except in
/// formats without fraction bits, where the significand of every number is one and the last bit of the code
/// is that of the exponent (IEEE P3109, 4.7.4).
enum class rounding : unsigned char {
    nearest_even,  ///< the nearer one; a tie goes to the one whose last bit is zero. The operators' default
    nearest_away,  ///< the nearer one; a tie goes away from zero
    toward_zero,   ///< the one nearer to zero (truncation)
    upward,        ///< the larger one
    downward,      ///< the smaller one
    to_odd,  ///< the one whose last bit is one: rounding again, to at least two bits less, is then exact
    /// Away from zero with a probability that grows with the distance from the neighbour nearer to zero, as
    /// told by the N random bits R of the projection. With v the distance in units of the last place,
    /// away from zero when
    stochastic_a,  ///< floor(v 2^N) + R >= 2^N: right on average over R except for what N bits cannot see
    stochastic_b,  ///< floor(v 2^(N+1)) + 2 R + 1 >= 2^(N+1): R counts as the middle of its interval
    stochastic_c   ///< v 2^N rounded to nearest even + R >= 2^N
};

/// What becomes of values beyond the largest finite one. In a format without signs the negative values lie
/// beyond its range as well.
enum class saturation : unsigned char {
    /// IEEE 754: nearest and stochastic modes and those that round away from zero overflow to infinity, the
    /// others (to_odd among them) to the largest finite number. A format without infinity has NaN in its
    /// place, and one with neither the largest finite number. Without a sign, negative values become NaN.
    /// The formats of P3109 follow its section 4.7.5: without infinities they have the largest finite number
    /// instead; to_odd overflows to infinity where that has an odd code, with signs; and without a sign
    /// toward_zero and upward take negative values to zero.
    none,
    /// Everything too large becomes the largest finite number, infinite operands and results included.
    /// Without a sign, negative values become the smallest number.
    finite,
    /// Finite values that are too large become the largest finite number; infinities stay infinite (NaN in a
    /// format without infinity, the largest finite number in one with neither and in those of P3109).
    propagate
};

/// Which NaN it becomes when an operand is NaN. An invalid operation on numbers has the positive canonical
/// NaN in any case.
enum class nan_propagation : unsigned char {
    /// The operand's sign and the leading bits of its payload, made quiet, as far as the format has them
    /// (IEEE 754-2019, 6.2.3; x86, Arm, ONNX's and ml_dtypes' conversions).
    keep,
    /// The format's positive canonical NaN whatever the operand (RISC-V, CUDA's conversions to 8 bits).
    canonical
};

/// What stands for NaN in a format that has none, such as fp6 and fp4.
enum class nan_substitute : unsigned char {
    largest,  ///< the largest finite number, so that it is not taken for something small (CUDA)
    zero      ///< zero, so that it has no part in a sum (ml_dtypes, except for a sign)
};

/// A rounding direction and an overflow behaviour; for the stochastic directions also the random bits, which
/// lie in the low `random_bits` bits of `random` (at most 32; higher bits are ignored). Last, what becomes of
/// NaN, where the field's libraries disagree.
///
///     mp::round_to<mp::half>(0.1, {.round = mp::rounding::upward});
///     mp::round_to<mp::bfloat16>(x, mp::stochastic(generator(i)));      // 32 random bits, see philox.hpp
struct projection {
    rounding round = rounding::nearest_even;
    saturation saturate = saturation::none;
    unsigned char random_bits = 0;
    std::uint32_t random = 0;
    nan_propagation nan = nan_propagation::keep;
    nan_substitute without_nan = nan_substitute::largest;

    friend constexpr bool operator==(const projection&, const projection&) = default;
};

}  // namespace mp

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Stochastic rounding of P3109's kind A by the `count` low bits of `random`.
[[nodiscard]] MP_HOST_DEVICE constexpr projection stochastic(std::uint32_t random,
                                                             unsigned char count = 32) noexcept {
    projection result{rounding::stochastic_a};
    result.random_bits = count;
    result.random = random;
    return result;
}

}}  // namespace mp

// What IEEE 754 calls the environment, as an object that is passed in: projection, treatment of subnormal
// numbers, detection of tininess, and the five flags. There is no global or thread-local state behind it.

namespace mp {

/// The exceptions of IEEE 754-2019, section 7. The values are those of Berkeley TestFloat's output.
enum class status_flag : unsigned char {
    inexact = 1,         ///< the result differs from the exact one
    underflow = 2,       ///< the result is tiny and inexact (or was flushed to zero)
    overflow = 4,        ///< the result would have been beyond the largest finite number
    divide_by_zero = 8,  ///< an exact infinity from finite operands
    invalid = 16         ///< no useful result: 0/0, infinity - infinity, sqrt(-1), a signalling NaN ...
};

/// A set of flags.
class status_flags {
public:
    status_flags() = default;
    /// One flag.
    MP_HOST_DEVICE constexpr status_flags(status_flag flag) noexcept
        : bits_(static_cast<unsigned char>(flag)) {}

    /// Whether this flag is raised, or any.
    [[nodiscard]] MP_HOST_DEVICE constexpr bool test(status_flag flag) const noexcept {
        return (bits_ & static_cast<unsigned char>(flag)) != 0;
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr bool any() const noexcept { return bits_ != 0; }
    /// All flags as one number, with the values of status_flag added up.
    [[nodiscard]] MP_HOST_DEVICE constexpr unsigned to_unsigned() const noexcept { return bits_; }

    /// The flags of both.
    MP_HOST_DEVICE constexpr status_flags& operator|=(status_flags other) noexcept {
        bits_ = static_cast<unsigned char>(bits_ | other.bits_);
        return *this;
    }
    [[nodiscard]] MP_HOST_DEVICE friend constexpr status_flags operator|(status_flags a,
                                                                         status_flags b) noexcept {
        return a |= b;
    }
    friend constexpr bool operator==(status_flags, status_flags) = default;

private:
    unsigned char bits_ = 0;
};

}  // namespace mp

namespace mp { inline namespace MP_ISA_NAMESPACE {

[[nodiscard]] MP_HOST_DEVICE constexpr status_flags operator|(status_flag a, status_flag b) noexcept {
    return status_flags(a) | status_flags(b);
}

}}  // namespace mp

namespace mp {

/// What is done with subnormal numbers.
enum class subnormal_handling : unsigned char {
    gradual,        ///< IEEE 754's gradual underflow
    flush_results,  ///< tiny results become a zero of their sign, and raise underflow and inexact ("FTZ")
    /// The same, and subnormal operands are taken for zeros of their sign ("FTZ and DAZ").
    flush_all
};

/// Which results are tiny, at the border of the normal numbers (IEEE 754-2019, 7.5).
enum class tininess : unsigned char {
    after_rounding,  ///< those that are below the smallest normal number if rounded with unbounded exponent
    before_rounding  ///< those whose exact value is below the smallest normal number
};

/// Everything that an operation's result depends on besides its operands, and the flags that it raises.
/// Flags stay set until they are cleared by hand. Operations take it by reference in place of a projection:
///
///     mp::environment env{.project = {.round = mp::rounding::upward}};
///     mp::half x = mp::divide(1_h, 3_h, env);
///     bool exact = !env.raised.test(mp::status_flag::inexact);
///
/// An object must not be used by two threads at the same time.
struct environment {
    projection project{};
    subnormal_handling subnormals = subnormal_handling::gradual;
    tininess tiny = tininess::after_rounding;
    status_flags raised{};
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// What the core computes in: a projection, which costs nothing and keeps no flags, or an environment.
template <class Context>
concept context =
    std::same_as<std::remove_cvref_t<Context>, projection> || std::same_as<Context, environment&>;

template <class Context>
inline constexpr bool keeps_flags = std::same_as<Context, environment&>;

MP_HOST_DEVICE constexpr const projection& projection_of(const projection& p) noexcept {
    return p;
}
MP_HOST_DEVICE constexpr const projection& projection_of(const environment& e) noexcept {
    return e.project;
}

MP_HOST_DEVICE constexpr void raise(const projection&, status_flags) noexcept {}
MP_HOST_DEVICE constexpr void raise(environment& e, status_flags flags) noexcept {
    e.raised |= flags;
}

MP_HOST_DEVICE constexpr bool is_stochastic(rounding round) noexcept {
    return round >= rounding::stochastic_a;
}

}}  // namespace mp::detail
