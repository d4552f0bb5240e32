// SPDX-License-Identifier: MIT
/// \file
/// Exact dot products of numbers of the library, floats and doubles; and the error of a whole matrix product against the
/// exact one, with a bound that depends on the accumulator.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/frontends/check/error_report.hpp>
#include <mp/frontends/check/exact_value.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <ranges>
#include <string>
#include <vector>

namespace mp {

/// A non-owning view of a matrix: a pointer, a shape and strides in elements. Element (r, c) is
/// data[r * row_stride + c * column_stride].
template <class Value>
struct strided_matrix {
    const Value* data = nullptr;
    std::ptrdiff_t rows = 0;
    std::ptrdiff_t columns = 0;
    std::ptrdiff_t row_stride = 0;
    std::ptrdiff_t column_stride = 1;

    [[nodiscard]] constexpr const Value& operator()(std::ptrdiff_t r, std::ptrdiff_t c) const {
        return data[r * row_stride + c * column_stride];
    }
};

/// The product that is checked, and its accumulation.
struct gemm_check {
    /// The computed matrix is alpha * a * b + beta * initial. Both factors are taken as exact.
    double alpha = 1;
    double beta = 0;
    /// Largest relative error of one operation of the accumulator: 2^-24 for IEEE float (rounding to
    /// nearest), 2^-23 for one that truncates, 2^-53 for double.
    double unit_roundoff = 0x1p-24;
    /// Largest absolute error of one product that underflows in the accumulator: half of float's smallest
    /// subnormal, or 2^-126 where subnormals are flushed.
    double underflow = 0x1p-150;
};

/// The errors of a matrix product.
struct gemm_error_summary {
    /// The errors of the elements against the exact product; the index counts row by row.
    error_summary elements;
    std::ptrdiff_t rows = 0;
    std::ptrdiff_t columns = 0;
    /// The inner dimension: terms of each sum.
    std::ptrdiff_t k = 0;
    /// Elements further from the exact result than any order of summation in the stated accumulator, followed
    /// by one rounding to the output format, can explain. Not-finite mismatches count.
    std::size_t beyond_bound = 0;
    /// Largest ratio of error to bound; at most 1 when no element is beyond its bound, infinite for a
    /// not-finite mismatch. A bound of zero (a sum of zeros) met exactly counts as zero.
    double max_bound_ratio = 0;
    /// The element with that ratio.
    std::ptrdiff_t worst_row = 0;
    std::ptrdiff_t worst_column = 0;

    /// Whether every element is as near to the exact result as the arithmetic promises.
    [[nodiscard]] bool within_bound() const { return beyond_bound == 0; }
};

}  // namespace mp

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Anything with rows, columns and elements m(r, c) that are numbers: strided_matrix, mp::matrix_view, a
/// class of your own.
template <class Matrix>
concept readable_matrix = requires(const Matrix& m, std::ptrdiff_t i) {
    { m.rows } -> std::convertible_to<std::ptrdiff_t>;
    { m.columns } -> std::convertible_to<std::ptrdiff_t>;
    requires number<std::remove_cvref_t<decltype(m(i, i))>>;
};

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A sum of products of numbers of two formats, exact for up to 2^60 terms: a fixed-point number wide enough
/// for the largest and the smallest product, in two's complement (Kulisch's accumulator).
template <class FormatA, class FormatB>
class exact_sum_of_products {
public:
    void add(storage_of<FormatA> a, storage_of<FormatB> b) {
        const category kind_a = categorize<FormatA>(a);
        const category kind_b = categorize<FormatB>(b);
        const bool negative = is_negative<FormatA>(a) != is_negative<FormatB>(b);
        if (kind_a == category::finite && kind_b == category::finite) {
            const exact_value x = unpack<FormatA>(a);
            const exact_value y = unpack<FormatB>(b);
            const auto product = static_cast<wide>(x.significand) * y.significand;
            add_at(negative, product, x.exponent + y.exponent - last_exponent);
            return;
        }
        const bool zero = kind_a == category::zero || kind_b == category::zero;
        const bool infinite = kind_a == category::infinite || kind_b == category::infinite;
        if (kind_a == category::nan || kind_b == category::nan || (zero && infinite)) {
            nan_ = true;
        } else if (infinite) {
            (negative ? minus_infinity_ : plus_infinity_) = true;
        }
    }

    exact_fraction value() const {
        exact_fraction result;
        if (nan_ || (plus_infinity_ && minus_infinity_)) return {category::nan};
        if (plus_infinity_ || minus_infinity_) return {category::infinite, minus_infinity_};
        const bool negative = words_[count - 1] >> 63 != 0;
        std::array<std::uint64_t, count> magnitude = words_;
        if (negative) {
            std::uint64_t carry = 1;
            for (std::uint64_t& word : magnitude) {
                word = ~word + carry;
                carry = carry != 0 && word == 0 ? 1 : 0;
            }
        }
        big_integer numerator;
        boost::multiprecision::import_bits(numerator, magnitude.begin(), magnitude.end(), 64, false);
        return make_fraction(negative, std::move(numerator), 1, last_exponent);
    }

private:
    using wide = uint128;

    static constexpr int last_exponent =
        layout_of<FormatA>::quantum_exponent + layout_of<FormatB>::quantum_exponent;
    static constexpr int top_exponent =
        layout_of<FormatA>::max_exponent + layout_of<FormatB>::max_exponent + 2;
    /// 64 bits above the largest product hold the sum of 2^60 of them and the sign; one word more lets a
    /// product of three words start in the last word that it can reach.
    static constexpr int bits = top_exponent - last_exponent + 64;
    static constexpr std::size_t count = static_cast<std::size_t>(bits) / 64 + 3;

    void add_at(bool negative, wide product, int position) {
        const auto first = static_cast<std::size_t>(position / 64);
        const int shift = position % 64;
        const wide low = product << shift;
        const std::uint64_t high = shift == 0 ? 0 : static_cast<std::uint64_t>(product >> (128 - shift));
        const std::uint64_t parts[] = {static_cast<std::uint64_t>(low), static_cast<std::uint64_t>(low >> 64),
                                       high};
        std::uint64_t carry = 0;
        for (std::size_t i = 0; first + i < count; ++i) {
            if (i >= 3 && carry == 0) break;
            const std::uint64_t part = i < 3 ? parts[i] : 0;
            std::uint64_t& word = words_[first + i];
            const wide result =
                negative ? static_cast<wide>(word) - part - carry : static_cast<wide>(word) + part + carry;
            word = static_cast<std::uint64_t>(result);
            carry = static_cast<std::uint64_t>(result >> 64) & 1;
        }
    }

    std::array<std::uint64_t, count> words_{};
    bool nan_ = false;
    bool plus_infinity_ = false;
    bool minus_infinity_ = false;
};

/// The bound of Higham, "Accuracy and Stability of Numerical Algorithms", 2nd edition, lemma 3.1:
/// gamma_n = n u / (1 - n u); infinite where n u reaches 1 and nothing is promised.
inline double error_constant(double n, double u) {
    return n * u < 1 ? n * u / (1 - n * u) : std::numeric_limits<double>::infinity();
}

/// alpha * sum + beta * initial, exactly.
inline exact_fraction scaled_sum(double alpha, const exact_fraction& sum, double beta,
                                 const exact_fraction& initial) {
    const auto times = [](double factor, const exact_fraction& x) {
        exact_fraction result = to_fraction(factor);
        const bool negative = result.negative != x.negative;
        const bool zero = result.kind == category::zero || x.kind == category::zero;
        const bool infinite = result.kind == category::infinite || x.kind == category::infinite;
        if (result.kind == category::nan || x.kind == category::nan || (zero && infinite)) {
            return exact_fraction{category::nan};
        }
        if (infinite || zero) return exact_fraction{infinite ? category::infinite : category::zero, negative};
        return make_fraction(negative, result.numerator * x.numerator, x.denominator,
                             result.exponent + x.exponent);
    };
    // As in gemm, a factor of zero means that what it multiplies is not read, whatever it holds.
    exact_fraction left = same_value(alpha, 0.0) ? exact_fraction{} : times(alpha, sum);
    if (same_value(beta, 0.0)) return left;
    exact_fraction right = times(beta, initial);
    if (left.kind == category::nan || right.kind == category::nan) return {category::nan};
    if (left.kind == category::infinite) {
        return right.kind == category::infinite && left.negative != right.negative
                   ? exact_fraction{category::nan}
                   : left;
    }
    if (right.kind == category::infinite) return right;
    right.negative = !right.negative;
    return difference(left, right);
}

/// Adds what rounding the accumulated result to the output format can do: half an ulp, taken at the largest
/// magnitude that the result can have, or half of the smallest subnormal.
template <class Format>
double with_output_rounding(double bound, double exact_magnitude) {
    using layout = layout_of<Format>;
    const double relative = std::ldexp(1.0, -layout::precision);
    const double smallest = std::ldexp(1.0, layout::quantum_exponent - 1);
    return bound + (std::max)(relative * (exact_magnitude + bound), smallest);
}

template <class A, class B, class C, class Initial>
gemm_error_summary check_gemm(const A& a, const B& b, const C& computed, const gemm_check& check,
                              const Initial* initial) {
    using value_a = std::remove_cvref_t<decltype(a(0, 0))>;
    using value_b = std::remove_cvref_t<decltype(b(0, 0))>;
    using value_c = std::remove_cvref_t<decltype(computed(0, 0))>;
    using format_c = format_of_t<value_c>;

    const std::ptrdiff_t k = a.columns;
    const std::ptrdiff_t summed = same_value(check.alpha, 0.0) ? 0 : k;
    const auto expect = [](const char* argument, std::ptrdiff_t value, const char* what,
                           std::ptrdiff_t expected) {
        if (value == expected) return;
        throw_argument("mp::gemm_error_report", argument, value,
                       "must equal " + std::string(what) + ", which is " + std::to_string(expected));
    };
    expect("b.rows", b.rows, "a.columns", k);
    expect("computed.rows", computed.rows, "a.rows", a.rows);
    expect("computed.columns", computed.columns, "b.columns", b.columns);
    if (initial != nullptr) {
        expect("initial.rows", initial->rows, "a.rows", a.rows);
        expect("initial.columns", initial->columns, "b.columns", b.columns);
    } else if (!same_value(check.beta, 0.0)) {
        throw_argument("mp::gemm_error_report", "check.beta", check.beta,
                       "must be 0 when no initial matrix is given");
    }

    gemm_error_summary result;
    result.rows = a.rows;
    result.columns = b.columns;
    result.k = k;
    error_accumulator<value_c> errors;

    // At most k + 2 roundings lie on the way of any term to the result: its product, k - 1 additions,
    // the factor alpha, and the addition of beta * initial, which itself has two.
    const auto terms = static_cast<double>(k);
    const double gamma = error_constant(terms + 2, check.unit_roundoff);
    const double underflow =
        (terms * (std::max)(1.0, std::abs(check.alpha)) + 2) * check.underflow * (1 + gamma);
    // The sum of magnitudes below is itself computed in double, with a relative error below this.
    const double slack = 1 + (terms + 8) * 0x1p-52;

    for (std::ptrdiff_t r = 0; r < a.rows; ++r) {
        for (std::ptrdiff_t c = 0; c < b.columns; ++c) {
            exact_sum_of_products<format_of_t<value_a>, format_of_t<value_b>> sum;
            double magnitudes = 0;
            for (std::ptrdiff_t p = 0; p < summed; ++p) {
                const value_a x = a(r, p);
                const value_b y = b(p, c);
                sum.add(bits_of(x), bits_of(y));
                magnitudes += std::abs(static_cast<double>(x) * static_cast<double>(y));
            }
            magnitudes *= std::abs(check.alpha);
            exact_fraction before;
            if (initial != nullptr && !same_value(check.beta, 0.0)) {
                before = to_fraction((*initial)(r, c));
                magnitudes += std::abs(check.beta) * magnitude_to_double(before);
            }
            const exact_fraction exact = scaled_sum(check.alpha, sum.value(), check.beta, before);
            const value_c x = computed(r, c);
            errors.add(x, exact);

            const bool finite_exact = exact.kind == category::zero || exact.kind == category::finite;
            double bound = (gamma * magnitudes + underflow) * slack;
            double ratio = 0;
            if (!finite_exact) {
                ratio = agrees_outside_range(x, exact) ? 0 : std::numeric_limits<double>::infinity();
            } else {
                const double exact_magnitude = magnitude_to_double(exact);
                const bool rounds_again = layout_of<format_c>::precision < 24;
                if (rounds_again) bound = with_output_rounding<format_c>(bound, exact_magnitude) * slack;
                if (isfinite(x)) {
                    const double error = magnitude_to_double(difference(to_fraction(x), exact));
                    ratio = error > 0 ? error / bound : 0;
                } else {
                    // Overflow is right if the result may have reached the end of the range; NaN stands for
                    // it where there is no infinity.
                    const double largest = magnitude_to_double(
                        to_fraction(number_from_bits<value_c>(layout_of<format_c>::max_finite_code)));
                    const bool overflow = layout_of<format_c>::has_infinity
                                              ? isinf(x) && signbit(x) == exact.negative
                                              : isnan(x);
                    ratio = overflow && exact_magnitude + bound >= largest
                                ? 0
                                : std::numeric_limits<double>::infinity();
                }
            }
            if (ratio > 1) ++result.beyond_bound;
            if (ratio > result.max_bound_ratio) {
                result.max_bound_ratio = ratio;
                result.worst_row = r;
                result.worst_column = c;
            }
        }
    }
    result.elements = errors.finish();
    return result;
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The exact sum of a[i] * b[i] as a Boost rational: no rounding anywhere, whatever cancels.
///
/// a and b are random-access ranges of numbers of the library, float or double, not necessarily of one type.
/// Costs about 10 ns a term. Throws argument_error when the lengths differ, and when a NaN or an infinity
/// among the terms leaves no finite sum.
template <std::ranges::random_access_range A, std::ranges::random_access_range B>
    requires number<std::ranges::range_value_t<A>> && number<std::ranges::range_value_t<B>>
[[nodiscard]] boost::multiprecision::cpp_rational exact_dot(const A& a, const B& b) {
    namespace bmp = boost::multiprecision;
    const auto length = std::ranges::distance(a);
    if (length != std::ranges::distance(b)) {
        detail::throw_argument("mp::exact_dot", "b.size()", std::ranges::distance(b),
                               "must equal a.size(), which is " + std::to_string(length));
    }
    detail::exact_sum_of_products<detail::format_of_t<std::ranges::range_value_t<A>>,
                                  detail::format_of_t<std::ranges::range_value_t<B>>>
        sum;
    const auto first_a = std::ranges::begin(a);
    const auto first_b = std::ranges::begin(b);
    for (std::ranges::range_difference_t<A> i = 0; i < length; ++i) {
        sum.add(detail::bits_of(first_a[i]), detail::bits_of(first_b[i]));
    }
    const detail::exact_fraction value = sum.value();
    if (value.kind == detail::category::zero) return 0;
    if (value.kind != detail::category::finite) {
        detail::throw_argument("mp::exact_dot", "the sum",
                               value.kind == detail::category::nan ? "NaN" : "infinite", "must be finite");
    }
    const bmp::cpp_int scale(
        detail::integer_power_of_two(static_cast<std::uint64_t>(std::abs(value.exponent))));
    // Numerator and denominator at once: Boost 1.81 returns 1 for the rational 1 divided by an integer.
    const bmp::cpp_int numerator(value.numerator);
    const bmp::cpp_rational result = value.exponent < 0 ? bmp::cpp_rational(numerator, scale)
                                                        : bmp::cpp_rational(bmp::cpp_int(numerator * scale));
    return value.negative ? bmp::cpp_rational(-result) : result;
}

/// Compares a computed matrix product with the exact one: computed = alpha * a * b, element by element.
///
/// Every element of the exact product is summed without any rounding, and the difference is exact. Beside the
/// errors the report says whether each element is within the bound that holds for every order of summation,
///
///     gamma(k + 2) * (|alpha| * sum |a| |b| + |beta * initial|) + underflow + output rounding,
///     gamma(n) = n u / (1 - n u),
///
/// where u is the unit roundoff of the accumulator, so a product summed in float passes
/// however it was blocked, and one summed in half does not. Formats may differ between the matrices. About 10
/// ns a product.
///
/// Throws argument_error when the shapes do not fit, or when beta is not 0.
template <readable_matrix A, readable_matrix B, readable_matrix C>
[[nodiscard]] gemm_error_summary gemm_error_report(const A& a, const B& b, const C& computed,
                                                   const gemm_check& check = {}) {
    return detail::check_gemm(a, b, computed, check, static_cast<const C*>(nullptr));
}

/// Overload for computed = alpha * a * b + beta * initial, where `initial` is what the output matrix held
/// before.
template <readable_matrix A, readable_matrix B, readable_matrix C, readable_matrix Initial>
[[nodiscard]] gemm_error_summary gemm_error_report(const A& a, const B& b, const C& computed,
                                                   const gemm_check& check, const Initial& initial) {
    return detail::check_gemm(a, b, computed, check, &initial);
}

/// The summary as a few readable lines.
[[nodiscard]] inline std::string to_string(const gemm_error_summary& s) {
    std::string text = std::to_string(s.rows) + " x " + std::to_string(s.columns) + " product, " +
                       std::to_string(s.k) + " terms a sum; " + to_string(s.elements);
    text += "  largest error is " + detail::short_text(s.max_bound_ratio) + " of its bound, at (" +
            std::to_string(s.worst_row) + ", " + std::to_string(s.worst_column) + "); " +
            std::to_string(s.beyond_bound) + " beyond\n";
    return text;
}

}}  // namespace mp
