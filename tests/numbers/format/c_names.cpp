// SPDX-License-Identifier: MIT
// With <mp/half.hpp> and C's header alone no mathematical function takes a number for a float or double: it returns a
// number, or the call does not compile.
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>

#include <doctest/doctest.h>
#include <math.h>
#include <cmath>
#include <type_traits>

namespace {

template <class T>
inline constexpr bool is_built_in = std::is_floating_point_v<T>;

/// Whether call(x...) compiles and is of type float, double or long double.
template <class Call, class... X>
constexpr bool leaves_the_library() {
    if constexpr (std::is_invocable_v<Call, X...>) {
        return is_built_in<std::invoke_result_t<Call, X...>>;
    } else {
        return false;
    }
}
template <class Call>
constexpr bool leaves_with_one() {
    return leaves_the_library<Call, mp::half>() || leaves_the_library<Call, mp::bfloat16>();
}
template <class Call>
constexpr bool leaves_with_two() {
    using mp::half;
    return leaves_the_library<Call, half, half>() || leaves_the_library<Call, half, mp::bfloat16>() ||
           leaves_the_library<Call, half, double>() || leaves_the_library<Call, float, half>() ||
           leaves_the_library<Call, half, int>() || leaves_the_library<Call, unsigned, half>() ||
           leaves_the_library<Call, half, long double>() || leaves_the_library<Call, bool, half>();
}

}  // namespace

// A call by the name alone, which fails to compile softly.
#define CALL(name)                                 \
    decltype([](auto... x)                         \
                 requires requires { name(x...); } \
             { return name(x...); })
#define ONE(name) static_assert(!leaves_with_one<CALL(name)>(), #name)
#define TWO(name) static_assert(!leaves_with_two<CALL(name)>(), #name)

ONE(acos);
ONE(asin);
ONE(atan);
ONE(cos);
ONE(sin);
ONE(tan);
ONE(acospi);
ONE(asinpi);
ONE(atanpi);
ONE(cospi);
ONE(sinpi);
ONE(tanpi);
ONE(acosh);
ONE(asinh);
ONE(atanh);
ONE(cosh);
ONE(sinh);
ONE(tanh);
ONE(exp);
ONE(exp10);
ONE(exp10m1);
ONE(exp2);
ONE(exp2m1);
ONE(expm1);
ONE(log);
ONE(log10);
ONE(log10p1);
ONE(log1p);
ONE(logp1);
ONE(log2);
ONE(log2p1);
ONE(cbrt);
ONE(rsqrt);
ONE(sqrt);
ONE(fabs);
ONE(erf);
ONE(erfc);
ONE(lgamma);
ONE(tgamma);
ONE(gamma);
ONE(ceil);
ONE(floor);
ONE(trunc);
ONE(round);
ONE(rint);
ONE(nearbyint);
ONE(roundeven);
ONE(logb);
ONE(nextup);
ONE(nextdown);
ONE(significand);
ONE(finite);
ONE(pow10);
ONE(fsqrt);
ONE(j0);
ONE(j1);
ONE(y0);
ONE(y1);
TWO(atan2);
TWO(atan2pi);
TWO(compoundn);
TWO(hypot);
TWO(pow);
TWO(pown);
TWO(powr);
TWO(rootn);
TWO(fmod);
TWO(remainder);
TWO(drem);
TWO(copysign);
TWO(nextafter);
TWO(nexttoward);
TWO(fdim);
TWO(fmax);
TWO(fmin);
TWO(fmaximum);
TWO(fminimum);
TWO(fmaximum_num);
TWO(fminimum_num);
TWO(fmaximum_mag);
TWO(fminimum_mag);
TWO(fmaximum_mag_num);
TWO(fminimum_mag_num);
TWO(fmaxmag);
TWO(fminmag);
TWO(fadd);
TWO(fsub);
TWO(fmul);
TWO(fdiv);
TWO(scalb);
TWO(jn);
TWO(yn);
TWO(lerp);
TWO(midpoint);

// Functions of users for classes of theirs, beside which a number becomes a float.
namespace user {

struct vector {
    float x;
};
template <class Derived>
struct expression {};
struct array : expression<array> {};

constexpr float lerp(vector a, vector b, float t) {
    return a.x + t * (b.x - a.x);
}
constexpr float fma(const vector& a, const vector& b, float c) {
    return a.x * b.x + c;
}
constexpr bool isless(vector a, float b) {
    return a.x < b;
}
template <class Derived>
constexpr float pow(const expression<Derived>& /*base*/, float exponent) {
    return exponent;
}
template <class Derived, class Scalar>
constexpr Scalar fmax(const expression<Derived>& /*x*/, const Scalar& y) {
    return y;
}

static_assert(lerp(vector{1}, vector{3}, mp::half(0.5F)) == 2.0F);
static_assert(fma(vector{2}, vector{3}, mp::half(1)) == 7.0F);
static_assert(isless(vector{2}, mp::half(3)));
static_assert(pow(array{}, mp::half(3)) == 3.0F);
static_assert(fmax(array{}, mp::half(3)) == mp::half(3));

// A class that C's functions take is closed to them as a float is.
struct length {
    operator float() const { return 1; }  // NOLINT(google-explicit-constructor)
};
static_assert(!leaves_the_library<CALL(fmax), length, mp::half>());
static_assert(!leaves_the_library<CALL(pow), mp::half, length>());

}  // namespace user

TEST_CASE("functions of C take floats as before") {
    CHECK(fmax(1.0F, 2.0F) == 2.0F);
    CHECK(pow(2.0, 3) == 8.0);
    static_assert(std::is_same_v<decltype(sin(1.0)), double>);
    static_assert(std::is_same_v<decltype(std::sin(mp::half(1))), float>);
}
