// SPDX-License-Identifier: MIT
/// \file
/// The numbers of this library as scalars of Eigen (3.4), and Eigen's own half and bfloat16 without a copy.
///
///     Eigen::Matrix<mp::half, Eigen::Dynamic, Eigen::Dynamic> a = b.cast<mp::half>() * c;
///
/// Every operation of Eigen's is then one of this library's, rounded once: a product of matrices accumulates
/// in the scalar's own precision, so cast to float before, or take mp::gemm, where that is not wanted.
/// Scalars of different types do not mix, as with Eigen's own types: write a * mp::half{2}.
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/frontends/interop/same_layout.hpp>
#include <mp/half.hpp>

#if __has_include(<Eigen/Core>)
#include <Eigen/Core>
#else
#include <eigen3/Eigen/Core>
#endif

#include <cstdlib>
#include <limits>

namespace Eigen {

/// What Eigen asks about a number.
template <class Format>
struct NumTraits<mp::basic_float<Format>> : GenericNumTraits<mp::basic_float<Format>> {
    enum { RequireInitialization = 0, ReadCost = 1, AddCost = 2, MulCost = 2 };

    /// What isApprox and its like take for equal: 8 units of the last place of 1, but no more than a half.
    static constexpr mp::basic_float<Format> dummy_precision() {
        constexpr int exponent = 3 - mp::layout_of<Format>::fraction_bits;
        return mp::round_to<mp::basic_float<Format>>(
            mp::detail::power_of_two<double>(exponent < -1 ? exponent : -1));
    }
};

namespace internal {

/// Random numbers in [x, y] as Eigen makes them for floats: its rule for unknown types divides by RAND_MAX in
/// the type itself, which half does not hold.
template <class Format>
struct random_impl<mp::basic_float<Format>> {
    using number = mp::basic_float<Format>;
    static number run(const number& x, const number& y) {
        return number{random_impl<double>::run(static_cast<double>(x), static_cast<double>(y))};
    }
    static number run() { return run(number{-1}, number{1}); }
};

/// Between numbers of the two libraries, each rounded once: all of them are floats.
template <class Format>
struct cast_impl<mp::basic_float<Format>, half> {
    static half run(const mp::basic_float<Format>& x) {
        return mp::detail::bit_cast<half>(mp::round_to<mp::half>(x));
    }
};
template <class Format>
struct cast_impl<mp::basic_float<Format>, bfloat16> {
    static bfloat16 run(const mp::basic_float<Format>& x) {
        return mp::detail::bit_cast<bfloat16>(mp::round_to<mp::bfloat16>(x));
    }
};
template <class Format>
struct cast_impl<half, mp::basic_float<Format>> {
    static mp::basic_float<Format> run(const half& x) {
        return mp::round_to<mp::basic_float<Format>>(mp::detail::bit_cast<mp::half>(x));
    }
};
template <class Format>
struct cast_impl<bfloat16, mp::basic_float<Format>> {
    static mp::basic_float<Format> run(const bfloat16& x) {
        return mp::round_to<mp::basic_float<Format>>(mp::detail::bit_cast<mp::bfloat16>(x));
    }
};

}  // namespace internal
}  // namespace Eigen

namespace mp {

static_assert(same_layout<half, Eigen::half> && same_layout<bfloat16, Eigen::bfloat16>);

/// The same bits as a number of the other library.
[[nodiscard]] constexpr Eigen::half to_eigen(half x) noexcept {
    return detail::bit_cast<Eigen::half>(x);
}
[[nodiscard]] constexpr Eigen::bfloat16 to_eigen(bfloat16 x) noexcept {
    return detail::bit_cast<Eigen::bfloat16>(x);
}
[[nodiscard]] constexpr half from_eigen(Eigen::half x) noexcept {
    return detail::bit_cast<half>(x);
}
[[nodiscard]] constexpr bfloat16 from_eigen(Eigen::bfloat16 x) noexcept {
    return detail::bit_cast<bfloat16>(x);
}

/// The same memory under the other type. See view_as in same_layout.hpp for what to mind.
///
///     Eigen::Map<Eigen::Matrix<Eigen::half, -1, 1>> map(mp::as_eigen(std::span(x)).data(), x.size());
template <class T>
    requires(std::same_as<std::remove_const_t<T>, half> || std::same_as<std::remove_const_t<T>, bfloat16>)
[[nodiscard]] auto as_eigen(std::span<T> x) noexcept {
    constexpr bool is_half = std::same_as<std::remove_const_t<T>, half>;
    return detail::view_as<std::conditional_t<is_half, Eigen::half, Eigen::bfloat16>>(x);
}
template <class T>
    requires(std::same_as<std::remove_const_t<T>, Eigen::half> ||
             std::same_as<std::remove_const_t<T>, Eigen::bfloat16>)
[[nodiscard]] auto view_of_eigen(std::span<T> x) noexcept {
    constexpr bool is_half = std::same_as<std::remove_const_t<T>, Eigen::half>;
    return detail::view_as<std::conditional_t<is_half, half, bfloat16>>(x);
}

}  // namespace mp
