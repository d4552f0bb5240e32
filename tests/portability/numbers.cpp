// SPDX-License-Identifier: MIT
// Arithmetic of numbers, in every rounding and saturation, with and without flags.
#include "formats.hpp"

namespace portability {

namespace {

constexpr mp::projection projections[] = {
    {},
    {mp::rounding::nearest_away, mp::saturation::finite},
    {mp::rounding::toward_zero},
    {mp::rounding::upward, mp::saturation::propagate},
    {mp::rounding::downward},
    {mp::rounding::to_odd},
    {mp::rounding::stochastic_a, mp::saturation::none, 32, 0x9e3779b9},
    {mp::rounding::stochastic_b, mp::saturation::none, 8, 0x5a},
    {mp::rounding::stochastic_c, mp::saturation::none, 16, 0x1234, mp::nan_propagation::canonical},
};

template <class T>
void add_arithmetic(report& to, const std::string& name) {
    const std::vector<T> few = codes<T>(40);
    checksum sums[8];
    for (const mp::projection& p : projections) {
        for (const T a : few) {
            sums[0].add(mp::sqrt(a, p));
            for (const T b : few) {
                sums[1].add(mp::add(a, b, p));
                sums[2].add(mp::subtract(a, b, p));
                sums[3].add(mp::multiply(a, b, p));
                sums[4].add(mp::divide(a, b, p));
                sums[5].add(mp::remainder(a, b, p));
                sums[6].add(mp::fmod(a, b, p));
                const T c = few[(static_cast<std::size_t>(a.bits()) + 3 * b.bits()) % few.size()];
                sums[7].add(mp::fma(a, b, c, p));
            }
        }
    }
    const char* const operations[] = {"sqrt",   "add",       "subtract", "multiply",
                                      "divide", "remainder", "fmod",     "fma"};
    for (std::size_t i = 0; i < 8; ++i) to.add(name + "." + operations[i], sums[i]);

    checksum flagged;
    for (const auto subnormals : {mp::subnormal_handling::gradual, mp::subnormal_handling::flush_all}) {
        mp::environment env{.project = {.round = mp::rounding::downward}, .subnormals = subnormals};
        env.tiny = mp::tininess::before_rounding;
        for (const T a : few) {
            for (const T b : few) {
                env.raised = {};
                flagged.add(mp::add(a, b, env));
                flagged.add(mp::multiply(a, b, env));
                flagged.add(mp::divide(a, b, env));
                flagged.add(mp::fma(a, b, a, env));
                flagged.add(mp::sqrt(a, env));
                unsigned flags = 0;
                for (const auto flag :
                     {mp::status_flag::invalid, mp::status_flag::divide_by_zero, mp::status_flag::overflow,
                      mp::status_flag::underflow, mp::status_flag::inexact}) {
                    flags = 2 * flags + (env.raised.test(flag) ? 1 : 0);
                }
                flagged.add(flags);
            }
        }
    }
    to.add(name + ".flags", flagged);

    checksum chosen;
    checksum shifted;
    for (const T a : few) {
        for (const T b : few) {
            chosen.add(mp::minimum(a, b));
            chosen.add(mp::maximum(a, b));
            chosen.add(mp::minimum_number(a, b));
            chosen.add(mp::maximum_number(a, b));
            chosen.add(mp::minimum_magnitude(a, b));
            chosen.add(mp::maximum_magnitude_number(a, b));
            chosen.add(mp::fmin(a, b));
            chosen.add(mp::fmax(a, b));
            chosen.add(mp::total_order(a, b));
            chosen.add(mp::total_order_magnitude(a, b));
            chosen.add(a < b);
            chosen.add(a == b);
            chosen.add(a >= b);
            chosen.add(mp::isunordered(a, b));
            shifted.add(mp::copysign(a, b));
            shifted.add(mp::nextafter(a, b));
        }
        shifted.add(-a);
        shifted.add(mp::abs(a));
        shifted.add(mp::nextup(a));
        shifted.add(mp::nextdown(a));
        shifted.add(mp::ilogb(a));
        shifted.add(mp::logb(a));
        int exponent = 0;
        shifted.add(mp::frexp(a, &exponent));
        shifted.add(exponent);
        for (const int n : {-300, -9, -1, 1, 4, 17, 300}) shifted.add(mp::scalbn(a, n));
        for (const mp::projection& p : projections) shifted.add(mp::round_to_integral(a, p));
        T whole{};
        shifted.add(mp::modf(a, &whole));
        shifted.add(whole);
        shifted.add(mp::round_to_integer<std::int16_t>(a));
        shifted.add(static_cast<unsigned>(mp::isnan(a)) + 2 * static_cast<unsigned>(mp::isinf(a)) +
                    4 * static_cast<unsigned>(mp::is_zero(a)) +
                    8 * static_cast<unsigned>(mp::is_subnormal(a)) +
                    16 * static_cast<unsigned>(mp::isnormal(a)) + 32 * static_cast<unsigned>(mp::signbit(a)) +
                    64 * static_cast<unsigned>(mp::is_signaling(a)));
    }
    to.add(name + ".comparisons", chosen);
    to.add(name + ".manipulation", shifted);
}

}  // namespace

void add_number_checksums(report& to) {
    for_each_format([&]<class T>(named<T> it) { add_arithmetic<T>(to, it.name); });
}

}  // namespace portability
