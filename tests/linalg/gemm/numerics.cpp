// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <boost/multiprecision/cpp_bin_float.hpp>

#include <initializer_list>

#include "linalg/gemm/reference.hpp"

namespace {

using reference::format_of;
using reference::generator;
using reference::matrix;
using exact = boost::multiprecision::cpp_bin_float_100;

constexpr auto by_row = mp::storage_order::row_major;
constexpr auto by_column = mp::storage_order::column_major;
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// Multiplies and compares with the exact value. The bound is the classical one (Higham, Accuracy and
/// Stability of Numerical Algorithms, 2002, section 3.1) for a sum of k products, and after it the rounding
/// of alpha * ab + beta * c to double and to float and the rounding to the type of C; nothing underflows
/// here.
template <class A, class B, class C>
void check_error_bound(generator& random, std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t k,
                       float alpha, float beta) {
    matrix<A> a(rows, k, by_row, 1);
    matrix<B> b(k, columns, by_column, 0);
    matrix<C> c(rows, columns, by_row, 0);
    a.fill_random(random);
    b.fill_random(random);
    c.fill_random(random);
    const std::vector<double> before = c.values();
    mp::gemm(mp::cpu{}, alpha, a.view(), b.view(), beta, c.view());
    const double unit = 0x1p-24;
    const double steps = static_cast<double>(k + 1) * unit;
    const double gamma = steps / (1 - steps);
    std::size_t outside = 0;
    double largest_fraction = 0;
    for (std::ptrdiff_t r = 0; r < rows; ++r) {
        for (std::ptrdiff_t j = 0; j < columns; ++j) {
            exact sum = 0;
            double magnitude = 0;
            for (std::ptrdiff_t p = 0; p < k; ++p) {
                sum += exact(a.get(r, p)) * exact(b.get(p, j));
                magnitude += std::fabs(a.get(r, p) * b.get(p, j));
            }
            const double kept = static_cast<double>(beta) * before[static_cast<std::size_t>(r * columns + j)];
            const exact value = alpha * sum + kept;
            const double in_float = std::fabs(static_cast<double>(alpha)) * gamma * magnitude;
            const double rough = std::fabs(static_cast<double>(value)) + in_float;
            const double before_c = in_float + rough * (unit + 0x1p-50);
            const double bound = before_c + reference::spacing(format_of<C>, rough + before_c) / 2;
            const double error = std::fabs(static_cast<double>(exact(c.get(r, j)) - value));
            outside += error <= bound * (1 + 0x1p-40) ? 0U : 1U;
            largest_fraction = std::max(largest_fraction, error / bound);
        }
    }
    CHECK(outside == 0);
    CHECK(largest_fraction > 0);
}

TEST_CASE("the error stays within the bound of the documentation, measured in exact arithmetic") {
    generator random(1);
    check_error_bound<float, float, float>(random, 21, 34, 300, 1.0F, 0.0F);
    check_error_bound<float, float, double>(random, 20, 33, 450, 0.7F, 1.3F);
    check_error_bound<mp::half, mp::half, mp::half>(random, 19, 40, 129, 0.01F, 0.5F);
    check_error_bound<mp::bfloat16, mp::bfloat16, float>(random, 25, 17, 257, -3.0F, 0.25F);
    check_error_bound<mp::half, mp::bfloat16, mp::bfloat16>(random, 13, 65, 100, 1.0F, 1.0F);
    check_error_bound<mp::float8_e4m3fn, mp::float8_e5m2, mp::half>(random, 33, 12, 90, 0.125F, 0.0F);
    check_error_bound<float, mp::half, mp::float8_e5m2>(random, 33, 12, 64, 1.0F, 2.0F);
    check_error_bound<float, float, float>(random, 2, 3, 20000, 1.0F, 0.0F);
}

TEST_CASE("alpha and beta mean what they mean in BLAS") {
    generator random(2);
    for (const float alpha : {0.0F, 1.0F, -1.0F, 2.5F}) {
        for (const float beta : {0.0F, 1.0F, -1.0F, 0.75F}) {
            for (const std::ptrdiff_t k : {0, 1, 45}) {
                for (const auto order : {by_row, by_column}) {
                    matrix<float> a(19, k, by_row, 1);
                    matrix<float> b(k, 300, by_row, 1);
                    matrix<float> c(19, 300, order, 2);
                    a.fill_integers(random, 9);
                    b.fill_integers(random, 9);
                    c.fill_integers(random, 9);
                    const std::vector<double> before = c.values();
                    mp::gemm(mp::cpu{}, alpha, a.view(), b.view(), beta, c.view());
                    std::size_t different = 0;
                    for (std::ptrdiff_t r = 0; r < 19; ++r) {
                        for (std::ptrdiff_t j = 0; j < 300; ++j) {
                            double sum = 0;
                            for (std::ptrdiff_t p = 0; p < k; ++p) sum += a.get(r, p) * b.get(p, j);
                            const double value =
                                static_cast<double>(alpha) * sum +
                                static_cast<double>(beta) * before[static_cast<std::size_t>(r * 300 + j)];
                            different += c.get(r, j) == value ? 0U : 1U;
                        }
                    }
                    CHECK(different == 0);
                    CHECK(c.surroundings_untouched());
                }
            }
        }
    }
}

TEST_CASE("beta zero never reads C, and alpha zero never reads A and B") {
    const std::vector<float> operands(400, 1.0F);
    const std::vector<float> poison(400, not_a_number);
    for (const std::ptrdiff_t k : {0, 20}) {
        for (const float alpha : {0.0F, -0.0F, 1.0F, 2.0F}) {
            for (const float beta : {0.0F, -0.0F}) {
                std::vector<float> c(400, not_a_number);
                const float* const data = alpha == 0 ? poison.data() : operands.data();
                mp::gemm(mp::cpu{}, alpha, mp::row_major(data, 20, k, 20), mp::row_major(data, k, 20), beta,
                         mp::row_major(c.data(), 20, 20));
                const float expected = alpha * static_cast<float>(k);
                CHECK(std::all_of(c.begin(), c.end(), [&](float x) { return x == expected; }));
            }
        }
    }
    std::vector<mp::float8_e4m3fn> narrow(400, mp::float8_e4m3fn::from_bits(0x7F));
    mp::gemm(mp::cpu{}, 0.0F, mp::row_major(poison.data(), 20, 20), mp::row_major(poison.data(), 20, 20),
             0.0F, mp::column_major(narrow.data(), 20, 20));
    CHECK(std::all_of(narrow.begin(), narrow.end(), [](auto x) { return x.bits() == 0; }));
}

TEST_CASE("a sum over no k with beta of one leaves C, negative zeros too") {
    for (const mp::cpu exec : reference::executors()) {
        std::vector<float> c = {-0.0F, 1.5F, 0x1p-149F};
        mp::gemm(exec, 1.0F, mp::row_major(c.data(), 3, 0), mp::row_major(c.data(), 0, 1), 1.0F,
                 mp::row_major(c.data(), 3, 1));
        CHECK(std::signbit(c[0]));
        CHECK(c == std::vector<float>{0.0F, 1.5F, 0x1p-149F});
    }
}

TEST_CASE("infinities and NaN spread through their row and column of C, and no further") {
    struct special {
        float a_value;
        float b_value;
        float expected;
    };
    const special specials[] = {{infinity, 2.0F, infinity},
                                {-infinity, 2.0F, -infinity},
                                {infinity, 0.0F, not_a_number},
                                {not_a_number, 0.0F, not_a_number},
                                {1.0F, -infinity, -infinity}};
    for (const special& s : specials) {
        for (std::ptrdiff_t place = 0; place < 30; place += 7) {
            matrix<float> a(30, 30, by_row, 0);
            matrix<float> b(30, 30, by_row, 0);
            matrix<float> c(30, 30, by_row, 0);
            a.fill([] { return 1.0; });
            b.fill([] { return 1.0; });
            a.set(place, place, static_cast<double>(s.a_value));
            b.set(place, 29 - place, static_cast<double>(s.b_value));
            mp::gemm(mp::cpu{}, 1.0F, a.view(), b.view(), 0.0F, c.view());
            for (std::ptrdiff_t r = 0; r < 30; ++r) {
                for (std::ptrdiff_t j = 0; j < 30; ++j) {
                    double sum = 0;
                    for (std::ptrdiff_t p = 0; p < 30; ++p) sum += a.get(r, p) * b.get(p, j);
                    REQUIRE(reference::same_value(c.get(r, j), sum));
                }
            }
            CHECK(reference::same_value(c.get(place, 29 - place), static_cast<double>(s.expected)));
        }
    }
    // Opposite infinities in one sum, and an infinity that C brings in.
    const float both[2] = {infinity, -infinity};
    const float ones[2] = {1, 1};
    float c = 5;
    mp::gemm(mp::cpu{}, 1.0F, mp::row_major(both, 1, 2), mp::column_major(ones, 2, 1), 1.0F,
             mp::row_major(&c, 1, 1));
    CHECK(std::isnan(c));
    c = -infinity;
    mp::gemm(mp::cpu{}, 1.0F, mp::row_major(ones, 1, 2), mp::column_major(ones, 2, 1), 2.0F,
             mp::row_major(&c, 1, 1));
    CHECK(c == -infinity);
    c = not_a_number;
    mp::gemm(mp::cpu{}, 0.0F, mp::row_major(ones, 1, 2), mp::column_major(ones, 2, 1), 1.0F,
             mp::row_major(&c, 1, 1));
    CHECK(std::isnan(c));
}

TEST_CASE("the combination of product and C is rounded once, also where alpha times the sum would overflow") {
    const float a = 0x1p100F;
    const float b = 0x1p27F;
    float c = -0x1p127F;
    // 4 * 2^127 - 3 * 2^127 = 2^127, though neither term is a float.
    mp::gemm(mp::cpu{}, 4.0F, mp::row_major(&a, 1, 1), mp::row_major(&b, 1, 1), 3.0F,
             mp::row_major(&c, 1, 1));
    CHECK(c == 0x1p127F);
}

TEST_CASE("subnormal inputs, sums and outputs keep their values") {
    const mp::bfloat16 tiny = mp::bfloat16::from_bits(1);  // 2^-133
    const float one = 1;
    float sum = 0;
    const std::vector<mp::bfloat16> many(5, tiny);
    const std::vector<float> ones(5, one);
    mp::gemm(mp::cpu{}, 1.0F, mp::row_major(many.data(), 1, 5), mp::column_major(ones.data(), 5, 1), 0.0F,
             mp::row_major(&sum, 1, 1));
    CHECK(sum == 5 * 0x1p-133F);
    mp::half narrow{};
    const float small = 0x1.8p-25F;
    mp::gemm(mp::cpu{}, 1.0F, mp::row_major(&small, 1, 1), mp::row_major(&one, 1, 1), 0.0F,
             mp::row_major(&narrow, 1, 1));
    CHECK(narrow.bits() == 1);
}

}  // namespace
