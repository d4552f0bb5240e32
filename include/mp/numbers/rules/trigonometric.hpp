// SPDX-License-Identifier: MIT
/// \file
/// Sines and cosines in double, and the angles of rotary embeddings: the same bits everywhere, as every
/// operation is one of rounded_doubles. The C library is not called.
///
/// Polynomials are those through the Chebyshev nodes of their interval.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/numbers/rules/elementary.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>

#include <cstddef>
#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// high + low, where low is what is missing in high: some 104 bits.
struct double_pair {
    double high = 0;
    double low = 0;
};

/// a b exactly, for magnitudes from 2^-400 to 2^400: the rounded product and its error (T. J. Dekker, "A
/// floating-point technique for extending the available precision", 1971).
MP_HOST_DEVICE inline double_pair exact_double_product(double a, double b) {
    using number = rounded_doubles<1>;
    struct halves {
        number high, low;
        MP_HOST_DEVICE explicit halves(number x) : high(x), low(x) {
            const number scaled = x * number(0x1.000'0002p27);  // 2^27 + 1
            high = scaled - (scaled - x);
            low = x - high;
        }
    };
    const number product = number(a) * number(b);
    const halves x(a);
    const halves y(b);
    const number error = ((x.high * y.high - product) + x.high * y.low + x.low * y.high) + x.low * y.low;
    return {product.value(), error.value()};
}

/// a b with an error of some 2^-102 of it.
MP_HOST_DEVICE inline double_pair operator*(double_pair a, double_pair b) {
    using number = rounded_doubles<1>;
    const double_pair product = exact_double_product(a.high, b.high);
    const number rest = number(product.low) + (number(a.high) * b.low + number(a.low) * b.high);
    const number sum = number(product.high) + rest;
    return {sum.value(), (rest - (sum - number(product.high))).value()};
}

/// base^(-1 / degree) with an error of some 2^-90 of it, for a base from 1 to 2^100.
inline double_pair inverse_root(double base, std::ptrdiff_t degree) {
    using number = rounded_doubles<1>;
    const number count = static_cast<double>(degree);
    const double root = binary_exponential(number(0.0) - number(double_log2(base)) / count).value();
    double_pair power{1.0, 0.0};
    for (std::ptrdiff_t i = 0; i < degree; ++i) power = power * double_pair{root, 0.0};
    // A step of Newton's iteration from base root^degree = 1 + error.
    const double_pair product = exact_double_product(base, power.high);
    const number error = (number(product.high) - 1.0) + (number(product.low) + number(base) * power.low);
    return {root, (number(0.0) - number(root) * error / count).value()};
}

struct sine_and_cosine {
    double sine;
    double cosine;
};

/// Of angle.high + angle.low for magnitudes up to 2^24, with an absolute error of 2^-52.
///
/// The angle is n pi / 2 + r with |r| <= pi / 4 and a little. pi / 2 is in three parts, of which n times the
/// first two, of 27 and 25 bits, is exact.
MP_HOST_DEVICE inline sine_and_cosine sine_and_cosine_of(double_pair angle) {
    using number = rounded_doubles<1>;
    constexpr double two_over_pi = 0x1.45f306dc9c883p-1;
    constexpr double half_pi = 0x1.921fb54p+0;
    constexpr double half_pi_second = 0x1.10b461p-30;
    constexpr double half_pi_third = 0x1.a62633145c06ep-58;
    // Adding 1.5 2^52 leaves no place for a fraction: the sum is rounded to an integer, which is its low
    // bits.
    constexpr double shifter = 0x1.8p+52;
    const number high = angle.high;
    const number shifted = high * two_over_pi + number(shifter);
    const number n = shifted - shifter;
    const number r = ((high - n * half_pi) - n * half_pi_second) - (n * half_pi_third - number(angle.low));
    const number square = r * r;
    const number sine = r + r * (square * polynomial_of(square, -0x1.5555555555555p-3, 0x1.1111111110bb1p-7,
                                                        -0x1.a01a019e8357dp-13, 0x1.71de37961e4c6p-19,
                                                        -0x1.ae600a926c89ap-26, 0x1.5e0af186af739p-33));
    const number cosine =
        (number(1.0) - number(0.5) * square) +
        square * square *
            polynomial_of(square, 0x1.5555555555555p-5, -0x1.6c16c16c16966p-10, 0x1.a01a019f4e867p-16,
                          -0x1.27e4fa17a41b4p-22, 0x1.1eeb68b109173p-29, -0x1.907d7aebd5e3dp-37);
    const std::uint64_t quadrant = bit_cast<std::uint64_t>(shifted.value()) & 3;
    const double s = sine.value();
    const double c = cosine.value();
    switch (quadrant) {
        case 0:
            return {s, c};
        case 1:
            return {c, -s};
        case 2:
            return {-s, -c};
        default:
            return {-c, s};
    }
}

/// The angle position * frequency, for positions below 2^24, to 2^-60.
MP_HOST_DEVICE inline double_pair angle_of(std::ptrdiff_t position, double_pair frequency) {
    return double_pair{static_cast<double>(position), 0.0} * frequency;
}

/// Numbers of rounded_doubles of any number of lanes.
template <class Number>
struct plane_point {
    Number x;
    Number y;
};

/// x cos - y sin and x sin + y cos, each rounded to double twice.
template <class Number>
MP_HOST_DEVICE MP_ALWAYS_INLINE plane_point<Number> rotated_point(plane_point<Number> p, Number cosine,
                                                                  Number sine) {
    return {p.x * cosine - p.y * sine, p.x * sine + p.y * cosine};
}

/// Turns `count` points (x, y) by their angles: to_x = x cos - y sin and to_y = x sin + y cos, each rounded
/// to double twice and once to Real, float or double. The angle is negative for direction -1. to_x and to_y
/// may be x and y.
template <class Real>
void rotate_points(std::size_t count, double direction, const Real* cosines, const Real* sines, const Real* x,
                   const Real* y, Real* to_x, Real* to_y) {
    for_each_double(count, [&](auto kind, std::size_t i) {
        using number = decltype(kind);
        const number cosine = number::load(cosines + i);
        const number sine = number::load(sines + i) * number(direction);
        const auto turned =
            rotated_point(plane_point<number>{number::load(x + i), number::load(y + i)}, cosine, sine);
        turned.x.store(to_x + i);
        turned.y.store(to_y + i);
    });
}

}}  // namespace mp::detail
