// SPDX-License-Identifier: MIT
/// \file
/// What IEEE 754 calls the environment, as an object that is passed in: projection, treatment of subnormal
/// numbers, detection of tininess, and the five flags. There is no global or thread-local state behind it.
#pragma once

#include <mp/numbers/format/projection.hpp>

#include <concepts>
#include <type_traits>

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
