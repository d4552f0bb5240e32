// SPDX-License-Identifier: MIT
// Gradients from saved statistics of rows on the CPU.
#include "saved_statistics.hpp"

#include <mp/executor.hpp>

#include <limits>
#include <vector>

namespace {

using namespace statistics_test;
constexpr mp::cpu exec{};

TEST_CASE("attention with a mask of any magnitude has the same gradients with and without saved statistics") {
    check_attention<float>(exec, 1e-6);
    check_attention<double>(exec, 1e-14);
}

TEST_CASE("a query whose mask is finite and equal for all keys has the gradients of equal probabilities") {
    using statistics_test::matrix;
    for (const float low : {-1e9F, -1e20F, -std::numeric_limits<float>::max()}) {
        matrix<float> q{1, 2, {-1, 0.5F}}, k{5, 2, {1, 0, 0, 1, 1, 1, -1, 2, 0.5F, 0.5F}};
        matrix<float> v{5, 2, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}, y{1, 2}, dy{1, 2, {2, 0.5F}}, dq{1, 2};
        matrix<float> mask{1, 5, std::vector<float>(5, low)};
        std::vector<mp::ops::softmax_statistics> statistics(1);
        mp::ops::scaled_dot_product_attention(exec, q.view(), k.view(), v.view(), mask.view(), y.view(),
                                              {.scale = 1}, statistics);
        mp::ops::scaled_dot_product_attention_backward(exec, q.view(), k.view(), v.view(), mask.view(),
                                                       dy.view(), dq.view(), mp::ops::absent, mp::ops::absent,
                                                       {.scale = 1}, statistics);
        CHECK(statistics[0] == mp::ops::softmax_statistics{low, 4});
        // The slopes of the scores are -2, -1, 0, 1 and 2, since those of the probabilities are 5 apart.
        CHECK(dq(0, 0) == doctest::Approx(-2).epsilon(1e-6));
        CHECK(dq(0, 1) == doctest::Approx(2).epsilon(1e-6));
    }
}

TEST_CASE(
    "cross entropy of logits of any magnitude has the same gradients with and without saved statistics") {
    for (const std::ptrdiff_t columns : {2, 8, 300}) {
        check_cross_entropy<float>(exec, columns, 1e-6);
        check_cross_entropy<double>(exec, columns, 1e-14);
    }
}

TEST_CASE("norms of rows far from zero have the same gradients with and without saved statistics") {
    check_norms<float>(exec, 2e-6);
    check_norms<double>(exec, 1e-13);
}

TEST_CASE(
    "a float norm saves its mean in two parts, and a factor where the inverse deviation leaves its range") {
    using statistics_test::matrix;
    matrix<float> x{3, 4}, y{3, 4};
    std::vector<mp::ops::normalization_statistics> statistics(3);
    for (std::ptrdiff_t c = 0; c < 4; ++c) {
        x(0, c) = 1e4F + static_cast<float>(c) * 0x1p-10F;
        x(1, c) = c < 2 ? 3e38F : -1e38F;
        x(2, c) = c < 2 ? 0x1p-140F : 0.0F;
    }
    mp::ops::layer_norm(exec, x.view(), mp::ops::absent, mp::ops::absent, y.view(), {.epsilon = 0},
                        statistics);
    CHECK(statistics[0].mean() == 1e4 + 1.5 * 0x1p-10);
    CHECK(statistics[0].factor == 1.0F);
    for (const std::size_t r : {1U, 2U}) {
        const double deviation = r == 1 ? 2e38 : 0x1p-141;
        CHECK(statistics[r].inverse_deviation() * deviation == doctest::Approx(1).epsilon(1e-6));
        CHECK(std::fabs(statistics[r].inverse) > 0x1p-126F);
        CHECK(std::isfinite(statistics[r].inverse));
    }
}

TEST_CASE("statistics give the logarithm of the sum of the exponentials, in double") {
    CHECK(mp::ops::softmax_statistics{2.0F, 0.0F}.log_sum() == 2.0);
    CHECK(mp::ops::softmax_statistics{0.0F, 1.0F}.log_sum() == doctest::Approx(std::log(2.0)).epsilon(1e-15));
    CHECK(mp::ops::softmax_statistics{0.0F, 1e-20F}.log_sum() == static_cast<double>(1e-20F));
    CHECK(mp::ops::basic_softmax_statistics<double>{-3.0, 7.0}.log_sum() ==
          doctest::Approx(std::log(8.0) - 3).epsilon(1e-15));
    CHECK(mp::ops::softmax_statistics{-std::numeric_limits<float>::infinity(), 0.0F}.log_sum() ==
          -std::numeric_limits<double>::infinity());
}

}  // namespace
