// SPDX-License-Identifier: MIT
// Mathematical functions of formats with more range than double, angles of 2^16000 among their arguments, are
// correctly rounded in every deterministic mode, judged by MPFR.
#include <doctest/doctest.h>
#include <cstdint>
#include <string>

#include "numbers/format/mpfr/cases.hpp"

namespace {

/// The value of a code as a number of MPFR.
class argument {
public:
    argument(const oracle::format& f, std::uint64_t code) {
        const oracle::dyadic x = value_of_magnitude(f, magnitude_code(f, code));
        mpfr_init2(value_, 64);
        mpfr_set_ui_2exp(value_, x.significand.low_bits(), x.exponent, MPFR_RNDN);
        mpfr_setsign(value_, value_, is_negative(f, code) ? 1 : 0, MPFR_RNDN);
    }
    argument(const argument&) = delete;
    argument& operator=(const argument&) = delete;
    ~argument() { mpfr_clear(value_); }
    mpfr_srcptr get() const { return value_; }

private:
    mpfr_t value_;
};

template <class Value, class Call>
void compare_located(oracle::disagreements& wrong, const char* name, const oracle::mpfr_number& exact,
                     std::uint64_t code, Call call) {
    const oracle::format& f = oracle::format_of<Value>;
    const oracle::exact_result located = exact.located_in(f);
    for (const oracle::mode m : oracle::modes) {
        const auto expected = finish(f, located, m, oracle::saturate::none);
        const std::uint64_t got = call(oracle::library_projection(m, oracle::saturate::none)).bits();
        if (!matches(f, expected, got))
            wrong.add(name, code, name_of(m), "gives", got, "instead of", expected.code);
    }
}

}  // namespace

TEST_CASE_TEMPLATE("functions of numbers far beyond double are correctly rounded", Value, mp::p3109<16, 1>,
                   mp::p3109<16, 4>, mp::p3109<16, 1, mp::signedness::is_unsigned>) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    const oracle::mpfr_number none;
    for (std::uint64_t code = 1; code < code_count(f); code += 197) {
        const Value x = oracle::value_of<Value>(code);
        if (!mp::isfinite(x)) continue;
        const argument a(f, code);
        math_cases::for_each_unary([&](const char* name, math_cases::mpfr_unary function, auto call) {
            // Of a large argument MPFR wants to know every digit, where the result is out of range.
            if (std::string(name) == "tgamma" && mp::fabs(x) > Value(1000)) return;
            oracle::mpfr_number exact;
            exact.compute(
                [&](mpfr_ptr y, mpfr_srcptr, mpfr_rnd_t round) { return function(y, a.get(), round); }, none);
            math_cases::follow_p3109(exact, name, x);
            compare_located<Value>(wrong, name, exact, code, [&](mp::projection p) { return call(x, p); });
        });
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
    CHECK(mp::tgamma(Value(0x1p1000)) == std::numeric_limits<Value>::infinity());
}

TEST_CASE("every bit of 2/pi is MPFR's") {
    constexpr int words = 517;
    mpfr_t x;
    mpfr_init2(x, 64 * words + 128);
    mpfr_const_pi(x, MPFR_RNDN);
    mpfr_ui_div(x, 2, x, MPFR_RNDZ);
    int wrong = 0;
    CHECK(mp::detail::long_two_over_pi(0) == 0);
    for (int i = 1; i <= words; ++i) {
        mpfr_mul_2ui(x, x, 64, MPFR_RNDZ);
        mpz_t whole;
        mpz_init(whole);
        mpfr_get_z(whole, x, MPFR_RNDZ);
        mpfr_sub_z(x, x, whole, MPFR_RNDZ);
        if (mpz_cmp_ui(whole, mp::detail::long_two_over_pi(i)) != 0) ++wrong;
        mpz_clear(whole);
    }
    mpfr_clear(x);
    CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("functions of two numbers far beyond double are correctly rounded", Value,
                   mp::p3109<16, 1>, mp::p3109<16, 4>) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    oracle::random_bits random(41);
    const oracle::mpfr_number none;
    for (int n = 0; n < 500; ++n) {
        const std::uint64_t i = weighted_code(random, f);
        const std::uint64_t j = weighted_partner(random, f, i);
        const Value x = oracle::value_of<Value>(i);
        const Value y = oracle::value_of<Value>(j);
        if (!mp::isfinite(x) || !mp::isfinite(y)) continue;
        const argument a(f, i);
        const argument b(f, j);
        math_cases::for_each_binary([&](const char* name, math_cases::mpfr_binary function, auto call) {
            oracle::mpfr_number exact;
            exact.compute([&](mpfr_ptr z, mpfr_srcptr,
                              mpfr_rnd_t round) { return function(z, a.get(), b.get(), round); },
                          none);
            math_cases::follow_p3109(exact, name, x, y);
            compare_located<Value>(wrong, name, exact, i << 16 | j,
                                   [&](mp::projection p) { return call(x, y, p); });
        });
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
