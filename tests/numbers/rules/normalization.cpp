// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/numbers/format/classification.hpp>
#include <mp/numbers/rules/normalization.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <random>
#include <span>
#include <vector>

namespace {

using namespace mp::detail;

constexpr std::ptrdiff_t rows = 2 * normalization_block + 3;

std::vector<float> numbers(std::size_t count, unsigned seed, float span = 1.0F) {
    std::mt19937 random(seed);
    std::vector<float> x(count);
    for (float& value : x) {
        value = static_cast<float>(static_cast<std::int32_t>(random())) * 0x1p-31F * span;
    }
    return x;
}

struct options {
    bool centered = true;
    bool saved = false;  ///< whether the gradients use the statistics of the forward pass
    float epsilon = 1e-5F;
};

/// A few rows, normalized and their gradients.
struct results {
    std::vector<float> y, dx;
    std::vector<double> dgamma, dbeta;
    std::vector<mp::ops::normalization_statistics> statistics;

    [[nodiscard]] std::vector<float> parts() const {
        std::vector<float> all;
        for (const auto& row : statistics) {
            for (const float x : {row.center, row.center_tail, row.inverse, row.factor}) all.push_back(x);
        }
        return all;
    }
};

struct operands {
    std::vector<float> x, dy, gamma, beta;

    explicit operands(std::size_t columns, float span = 3.0F, float offset = 0.5F)
        : x(numbers(columns * static_cast<std::size_t>(rows), 1, span)),
          dy(numbers(x.size(), 2)),
          gamma(numbers(columns, 3)),
          beta(numbers(columns, 4)) {
        for (float& value : x) value += offset;
    }
};

results run(mp::instruction_set isa, const operands& in, options how) {
    const std::size_t columns = in.gamma.size();
    const auto stride = static_cast<std::ptrdiff_t>(columns);
    results out{std::vector<float>(in.x.size() + 1, 42.0F), std::vector<float>(in.x.size() + 1, 42.0F),
                std::vector<double>(columns + 1, 0.25), std::vector<double>(columns + 1, 0.25),
                std::vector<mp::ops::normalization_statistics>(static_cast<std::size_t>(rows))};
    const std::vector<double> gamma(in.gamma.begin(), in.gamma.end());
    const std::vector<double> beta(in.beta.begin(), in.beta.end());
    const normalized_rows<float> from{columns, how.centered, how.epsilon, {in.x.data(), stride}};
    const auto forward = MP_SELECT_TARGET(isa, &portable_vectors::normalize_rows, normalize_rows);
    forward(from, {gamma.data(), beta.data(), {out.y.data(), stride}, out.statistics.data()}, rows);
    std::vector<float> room(columns * static_cast<std::size_t>(normalization_block));
    const auto backward =
        MP_SELECT_TARGET(isa, &portable_vectors::normalize_rows_backward, normalize_rows_backward);
    backward(from,
             {in.gamma.data(),
              {in.dy.data(), stride},
              {out.dx.data(), stride},
              how.saved ? out.statistics.data() : nullptr,
              out.dgamma.data(),
              out.dbeta.data(),
              room.data()},
             rows);
    return out;
}

template <class Float>
std::size_t differences(const std::vector<Float>& a, const std::vector<Float>& b) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const bool both_nan = mp::isnan(a[i]) && mp::isnan(b[i]);
        count += both_nan || (a[i] == b[i] && std::signbit(a[i]) == std::signbit(b[i])) ? 0U : 1U;
    }
    return count;
}

TEST_CASE("every instruction set has the bits of the portable vectors, for rows of every length") {
    for (const mp::instruction_set isa :
         {mp::instruction_set::neon, mp::instruction_set::avx2, mp::instruction_set::avx512}) {
        if (!mp::includes(mp::best_instruction_set(), isa)) continue;
        CAPTURE(static_cast<int>(isa));
        std::size_t different = 0;
        for (std::size_t columns = 1; columns <= 300; columns += columns < 40 ? 1 : 13) {
            operands in(columns);
            in.x[columns / 2] = std::numeric_limits<float>::quiet_NaN();
            in.dy[3 * columns] = std::numeric_limits<float>::infinity();
            for (const options how : {options{}, options{true, true}, options{false, true, 0.0F}}) {
                const results expected = run(mp::instruction_set::portable, in, how);
                const results found = run(isa, in, how);
                different += differences(found.y, expected.y) + differences(found.parts(), expected.parts()) +
                             differences(found.dx, expected.dx) + differences(found.dgamma, expected.dgamma) +
                             differences(found.dbeta, expected.dbeta);
                different += found.y.back() == 42.0F && found.dx.back() == 42.0F ? 0U : 1U;
                different += found.dgamma.back() == 0.25 && found.dbeta.back() == 0.25 ? 0U : 1U;
            }
        }
        CHECK(different == 0);
    }
}

/// The largest errors in shares of what normalization.hpp promises.
struct shares {
    double y = 0, dx = 0, dgamma = 0, dbeta = 0;
};

shares errors(const operands& in, options how) {
    using wide = long double;
    const results found = run(mp::best_instruction_set(), in, how);
    const std::size_t columns = in.gamma.size();
    const auto n = static_cast<wide>(columns);
    std::vector<wide> dgamma(columns), dbeta(columns), of_gamma(columns), of_beta(columns);
    shares worst;
    const auto note = [](double& largest, wide value, wide expected, wide bound) {
        largest = std::max(largest, static_cast<double>(std::fabs(value - expected) / bound));
    };
    for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r) {
        const std::span<const float> x = std::span(in.x).subspan(r * columns, columns);
        const std::span<const float> dy = std::span(in.dy).subspan(r * columns, columns);
        wide mean = 0, squares = 0;
        for (std::size_t c = 0; c < columns && how.centered; ++c) mean += x[c] / n;
        for (const float value : x) squares += (value - mean) * (value - mean);
        wide inverse = 1 / std::sqrt(squares / n + static_cast<wide>(how.epsilon));
        wide sum = 0, along = 0, magnitudes = 0, along_magnitudes = 0;
        for (std::size_t c = 0; c < columns; ++c) {
            const wide whole = (x[c] - mean) * inverse, g = static_cast<wide>(dy[c]) * in.gamma[c];
            sum += how.centered ? g : 0;
            magnitudes += how.centered ? std::fabs(g) : 0;
            along += g * whole;
            along_magnitudes += std::fabs(g * whole);
            dgamma[c] += dy[c] * whole;
            of_gamma[c] += std::fabs(dy[c] * whole);
            dbeta[c] += dy[c];
            of_beta[c] += std::fabs(dy[c]);
        }
        for (std::size_t c = 0; c < columns; ++c) {
            const wide whole = (x[c] - mean) * inverse, g = static_cast<wide>(dy[c]) * in.gamma[c];
            const wide y = whole * in.gamma[c] + in.beta[c];
            const wide inner =
                (n + 8) * 0x1p-53L * ((std::fabs(x[c]) + std::fabs(mean)) * inverse + std::fabs(whole));
            if (!how.saved) {
                note(worst.y, found.y[r * columns + c], y,
                     0x1p-24L * 1.000001L * std::fabs(y) + inner * std::fabs(in.gamma[c]) + 0x1p-149L);
            }
            const wide terms = std::fabs(g) + magnitudes / n + std::fabs(whole) * along_magnitudes / n;
            note(worst.dx, found.dx[r * columns + c], inverse * (g - sum / n - whole * along / n),
                 0x1p-20L * inverse * terms);
        }
    }
    for (std::size_t c = 0; c < columns; ++c) {
        note(worst.dgamma, found.dgamma[c] - 0.25L, dgamma[c], 0x1p-20L * of_gamma[c]);
        note(worst.dbeta, found.dbeta[c] - 0.25L, dbeta[c], 0x1p-21L * of_beta[c]);
    }
    return worst;
}

TEST_CASE("rows and their gradients keep the errors that are promised") {
    for (const std::size_t columns : {2U, 31U, 128U, 1000U}) {
        CAPTURE(columns);
        for (const bool saved : {false, true}) {
            for (const auto& [in, how] :
                 {std::pair{operands(columns), options{true, saved}},
                  std::pair{operands(columns, 1.0F, 1e6F), options{true, saved}},
                  std::pair{operands(columns, 1e30F, 1e29F), options{true, saved}},
                  std::pair{operands(columns, 1e-30F, 0.0F), options{true, saved, 0.0F}},
                  std::pair{operands(columns), options{false, saved}}}) {
                const shares worst = errors(in, how);
                CHECK(worst.y <= 1);
                CHECK(worst.dx <= 1);
                CHECK(worst.dgamma <= 1);
                CHECK(worst.dbeta <= 1);
            }
        }
    }
}

TEST_CASE("distances beyond the range of float are normalized, with saved statistics too") {
    operands in(4);
    for (std::size_t i = 0; i < in.x.size(); ++i) in.x[i] = i % 4 == 0 ? 3e38F : -3e38F;
    for (const bool saved : {false, true}) {
        const results found = run(mp::best_instruction_set(), in, {true, saved});
        for (std::size_t c = 0; c < 4; ++c) {
            CHECK(mp::isfinite(found.y[c]));
            CHECK(mp::isfinite(found.dx[c]));
            double expected = 0.25;  // (x - mean) / deviation is 3 / sqrt(3) and three times -1 / sqrt(3)
            for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r) {
                expected += static_cast<double>(in.dy[4 * r + c]) * (c == 0 ? 3 : -1) / std::sqrt(3.0);
            }
            CHECK(std::fabs(found.dgamma[c] - expected) < 1e-5);
        }
    }
}

TEST_CASE("gradients may be written over what they are made of") {
    const std::size_t columns = 50;
    const auto stride = static_cast<std::ptrdiff_t>(columns);
    const operands in(columns);
    const results expected = run(mp::best_instruction_set(), in, {});
    for (const bool over_x : {false, true}) {
        std::vector<float> x = in.x, dy = in.dy;
        std::vector<float> room(columns * static_cast<std::size_t>(normalization_block));
        std::vector<float>& dx = over_x ? x : dy;
        const auto backward = MP_SELECT_TARGET(
            mp::best_instruction_set(), &portable_vectors::normalize_rows_backward, normalize_rows_backward);
        std::vector<double> dgamma(columns, 0.25);
        backward({columns, true, 1e-5F, {x.data(), stride}},
                 {in.gamma.data(),
                  {dy.data(), stride},
                  {dx.data(), stride},
                  nullptr,
                  dgamma.data(),
                  nullptr,
                  room.data()},
                 rows);
        CHECK(std::equal(dx.begin(), dx.end(), expected.dx.begin()));
        CHECK(std::equal(dgamma.begin(), dgamma.end(), expected.dgamma.begin()));
    }
}

}  // namespace
