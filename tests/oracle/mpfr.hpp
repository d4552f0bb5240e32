// SPDX-License-Identifier: MIT
#pragma once

#include <mpfr.h>

#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>

#include "oracle/exact.hpp"

/// Values of functions from GNU MPFR, as truncated numbers with the knowledge whether anything was cut off.
namespace oracle {

/// A number of MPFR, truncated to 120 bits.
class mpfr_number {
public:
    mpfr_number() { mpfr_init2(value_, 120); }
    explicit mpfr_number(double x) : mpfr_number() { mpfr_set_d(value_, x, MPFR_RNDZ); }
    mpfr_number(const mpfr_number&) = delete;
    mpfr_number& operator=(const mpfr_number&) = delete;
    ~mpfr_number() { mpfr_clear(value_); }

    /// Sets this to function(operands...), which returns how it was rounded as MPFR's functions do.
    template <class Function, class... Operands>
    void compute(Function function, const Operands&... operands) {
        inexact_ = function(value_, operands.value_..., MPFR_RNDZ) != 0;
    }

    /// Where a standard differs from MPFR: NaN instead, or the magnitude.
    void set_nan() {
        mpfr_set_nan(value_);
        inexact_ = false;
    }
    void make_positive() { mpfr_abs(value_, value_, MPFR_RNDZ); }

    bool is_nan() const { return mpfr_nan_p(value_) != 0; }
    bool is_infinite() const { return mpfr_inf_p(value_) != 0; }
    bool is_exact() const { return !inexact_; }

    /// As a position among the codes of a format.
    exact_result located_in(const format& f) const {
        const bool negative = mpfr_signbit(value_) != 0;
        if (is_nan()) return exact_nan();
        if (is_infinite()) return exact_infinity(negative);
        if (mpfr_zero_p(value_) != 0 && is_exact()) return exact_zero(negative, false);
        return locate(f, negative, [&](const dyadic& y) {
            // Compared by magnitude; what was cut off makes equal numbers larger.
            const auto significand = static_cast<long>(y.significand.low_bits());
            const int order = mpfr_cmp_si_2exp(value_, negative ? -significand : significand, y.exponent);
            const int by_magnitude = negative ? -order : order;
            if (by_magnitude == 0)
                return is_exact() ? std::strong_ordering::equal : std::strong_ordering::greater;
            return by_magnitude < 0 ? std::strong_ordering::less : std::strong_ordering::greater;
        });
    }

    /// Rounded to odd: rounding this once more, to at most 51 bits, is the same as rounding the exact value.
    /// Magnitudes beyond 2^900 are brought back there, which is beyond the range of every format here.
    double to_odd() const {
        if (mpfr_regular_p(value_) == 0 && is_exact()) return mpfr_get_d(value_, MPFR_RNDZ);
        const double sign = mpfr_signbit(value_) != 0 ? -1 : 1;
        if (mpfr_zero_p(value_) != 0 || mpfr_get_exp(value_) < -900) return sign * 0x1.0000000000001p-900;
        if (mpfr_get_exp(value_) > 900) return sign * 0x1.0000000000001p900;
        const double truncated = mpfr_get_d(value_, MPFR_RNDZ);
        if (is_exact() && mpfr_cmp_d(value_, truncated) == 0) return truncated;
        int exponent = 0;
        const double scaled = std::ldexp(std::frexp(truncated, &exponent), 53);
        const bool odd = std::fmod(scaled, 2) != 0;
        return odd ? truncated : std::nextafter(truncated, sign * std::numeric_limits<double>::infinity());
    }

private:
    mpfr_t value_;
    bool inexact_ = false;
};

}  // namespace oracle
