// SPDX-License-Identifier: MIT
// Where IEEE P3109 4.0 differs from IEEE 754: overflow (section 4.7.5) and special cases (4.10). The expected
// codes are written down from the report's text; formats of others keep what they have.
#include <doctest/doctest.h>

#include <mp/array.hpp>
#include <mp/convert.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/math.hpp>
#include <mp/p3109.hpp>

#include <cstdint>
#include <limits>
#include <vector>

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

using signed_extended = mp::p3109<4, 2>;
using signed_finite = mp::p3109<4, 2, mp::signedness::is_signed, mp::domain::finite>;
using unsigned_extended = mp::p3109<4, 2, mp::signedness::is_unsigned, mp::domain::extended>;
using unsigned_finite = mp::p3109<4, 2, mp::signedness::is_unsigned, mp::domain::finite>;

enum : unsigned { se_largest = 6, sf_largest = 7, ue_largest = 13, uf_largest = 14, nan_u = 15 };

/// The codes of a large number, its negative, and both infinities, for one way to project.
struct overflow_row {
    mp::rounding round;
    mp::saturation saturate;
    unsigned large, negative, plus_infinity, minus_infinity;
};

template <class Value, std::size_t Count>
void compare(const overflow_row (&rows)[Count]) {
    for (const overflow_row& row : rows) {
        CAPTURE(static_cast<int>(row.round));
        CAPTURE(static_cast<int>(row.saturate));
        const mp::projection p{row.round, row.saturate};
        const float values[]{100.0F, -100.0F, infinity, -infinity};
        const unsigned expected[]{row.large, row.negative, row.plus_infinity, row.minus_infinity};
        for (int i = 0; i < 4; ++i) {
            CHECK(unsigned{mp::round_to<Value>(values[i], p).bits()} == expected[i]);
            CHECK(unsigned{mp::round_to<Value>(static_cast<double>(values[i]), p).bits()} == expected[i]);
            std::vector<Value> converted(40);
            mp::convert(mp::cpu{}, std::vector<float>(40, values[i]), converted, p);
            CHECK(unsigned{converted[17].bits()} == expected[i]);
        }
    }
}

constexpr auto sat_none = mp::saturation::none;
constexpr auto sat_finite = mp::saturation::finite;
constexpr auto sat_propagate = mp::saturation::propagate;
using enum mp::rounding;

}  // namespace

TEST_CASE("values out of range become what section 4.7.5 of P3109 says") {
    compare<signed_extended>(
        {{nearest_even, sat_none, 7, 15, 7, 15},
         {to_odd, sat_none, 7, 15, 7, 15},
         {toward_zero, sat_none, se_largest, 8 + se_largest, 7, 15},
         {upward, sat_none, 7, 8 + se_largest, 7, 15},
         {nearest_even, sat_propagate, se_largest, 8 + se_largest, 7, 15},
         {nearest_even, sat_finite, se_largest, 8 + se_largest, se_largest, 8 + se_largest}});
    for (const mp::rounding round : {nearest_even, nearest_away, toward_zero, upward, downward, to_odd}) {
        for (const mp::saturation saturate : {sat_none, sat_finite, sat_propagate}) {
            compare<signed_finite>(
                {{round, saturate, sf_largest, 8 + sf_largest, sf_largest, 8 + sf_largest}});
        }
    }
    compare<unsigned_extended>({{nearest_even, sat_none, 14, nan_u, 14, nan_u},
                                {to_odd, sat_none, ue_largest, nan_u, 14, nan_u},
                                {toward_zero, sat_none, ue_largest, 0, 14, nan_u},
                                {upward, sat_none, 14, 0, 14, nan_u},
                                {downward, sat_none, ue_largest, nan_u, 14, nan_u},
                                {downward, sat_propagate, ue_largest, 0, 14, 0},
                                {nearest_even, sat_finite, ue_largest, 0, ue_largest, 0}});
    compare<unsigned_finite>({{nearest_even, sat_none, uf_largest, nan_u, uf_largest, nan_u},
                              {toward_zero, sat_none, uf_largest, 0, uf_largest, nan_u},
                              {nearest_away, sat_propagate, uf_largest, 0, uf_largest, 0}});
    CHECK(static_cast<float>(signed_finite(100)) == 3);  // section 4.5 demands this format
}

TEST_CASE_TEMPLATE("quotients, roots and angles at zero and infinity are those of P3109", Value,
                   mp::p3109<8, 4>, mp::p3109<8, 3>, mp::p3109<16, 11>, mp::p3109<8, 1>) {
    const Value one(1);
    const Value zero(0);
    const Value inf(infinity);
    const Value nan = std::numeric_limits<Value>::quiet_NaN();
    for (const Value x : {zero, one, -one, inf, -inf, nan}) {
        CHECK(mp::isnan(x / zero));
        CHECK(mp::isnan(mp::divide(x, zero, {.round = mp::rounding::upward})));
        CHECK(mp::isnan(mp::copysign(x, nan)));
        Value assigned = x;
        assigned /= 0.0F;
        CHECK(mp::isnan(assigned));
        std::vector<Value> quotients(40);
        mp::divide(mp::cpu{}, std::vector<Value>(40, x), std::vector<Value>(40, zero), quotients);
        CHECK(mp::isnan(quotients[17]));
    }
    mp::environment env;
    CHECK(mp::isnan(mp::divide(one, zero, env)));
    CHECK(env.raised == mp::status_flag::invalid);
    CHECK(mp::isnan(mp::rsqrt(zero)));
    std::vector<Value> roots(40);
    mp::rsqrt(mp::cpu{}, std::vector<Value>(40, zero), roots);
    CHECK(mp::isnan(roots[17]));
    CHECK(mp::isnan(mp::atan2(zero, zero)));
    CHECK(mp::isnan(mp::atan2(inf, -inf)));
    CHECK(mp::isnan(mp::hypot(inf, nan)));
    CHECK(mp::isnan(mp::tanpi(Value(0.5F))));
    CHECK(mp::total_order(nan, -inf));
    CHECK_FALSE(mp::total_order(-inf, nan));
    CHECK(mp::divide(one, inf).bits() == 0);
    CHECK(mp::log(zero).bits() == (-inf).bits());
}

TEST_CASE("formats of OCP and IEEE keep their overflow and special cases") {
    CHECK(mp::isnan(mp::float8_e4m3fn(1000)));
    CHECK(mp::isnan(mp::float8_e4m3fnuz(1000)));
    CHECK(mp::isinf(mp::half(1) / mp::half(0)));
    CHECK(mp::isnan(mp::float8_e4m3fnuz(1) / mp::float8_e4m3fnuz(0)));
    CHECK(mp::round_to<mp::half>(1e6, {.round = to_odd}).bits() == 0x7bff);
    CHECK(mp::isinf(mp::rsqrt(mp::half(0))));
    CHECK(mp::atan2(mp::half(0), mp::half(0)).bits() == 0);
}
