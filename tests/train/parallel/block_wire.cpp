// SPDX-License-Identifier: MIT
// Gradients that travel in 8 bits: the rounding of blocks, and that nothing is lost for good.
#include <mp/parallel.hpp>
#include <mp/training.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "larger_error.hpp"

namespace {

constexpr std::size_t sizes[] = {4990, 40};

float gradient_of(int rank, std::size_t place, std::uint64_t step) {
    const double bits =
        static_cast<double>(mp::random_bits(static_cast<std::uint64_t>(rank) + 50, step * 10'000 + place)) *
        0x1p-32;
    return static_cast<float>(std::ldexp(bits - 0.4, static_cast<int>(place / 300 % 20) - 10));
}

/// Rounds blocks of 32 to E4M3 with the largest power of two under which nothing is beyond 448.
std::vector<double> rounded(const std::vector<double>& values) {
    std::vector<double> result;
    for (std::size_t first = 0; first < values.size(); first += 32) {
        const std::size_t last = std::min(first + 32, values.size());
        double amax = 0;
        for (std::size_t i = first; i < last; ++i) amax = std::max(amax, std::abs(values[i]));
        int exponent = 0;
        if (amax > 0) {
            exponent = 126;
            while (std::ldexp(amax, exponent) > 448) --exponent;
        }
        for (std::size_t i = first; i < last; ++i) {
            const mp::float8_e4m3fn code(std::ldexp(values[i], exponent));
            result.push_back(std::ldexp(static_cast<double>(code), -exponent));
        }
    }
    return result;
}

struct model {
    mp::parameter_store<float> store;
    model() {
        store.add_vector("a", static_cast<std::ptrdiff_t>(sizes[0]));
        store.add_vector("b", static_cast<std::ptrdiff_t>(sizes[1]));
        store.build(1);
    }
    void fill(int rank, std::uint64_t step, float scale = 1.0F) {
        for (const auto& it : store.parameters()) {
            const std::size_t first = it.name == "a" ? 0 : 4992;
            for (std::size_t i = 0; i < it.gradient.size(); ++i) {
                it.gradient[i] = scale * gradient_of(rank, first + i, step);
            }
        }
    }
    [[nodiscard]] std::vector<float> values() const {
        std::vector<float> result;
        for (const auto& it : store.parameters())
            result.insert(result.end(), it.gradient.begin(), it.gradient.end());
        return result;
    }
};

std::vector<float> mean_of(int ranks, std::uint64_t step) {
    std::vector<float> result;
    for (std::size_t p = 0; p < 2; ++p) {
        for (std::size_t i = 0; i < sizes[p]; ++i) {
            double sum = 0;
            for (int r = 0; r < ranks; ++r)
                sum += static_cast<double>(gradient_of(r, (p == 0 ? 0 : 4992) + i, step));
            result.push_back(static_cast<float>(sum / ranks));
        }
    }
    return result;
}

}  // namespace

TEST_CASE("blocks are rounded as by hand, the gradients first and then their mean") {
    for (const int ranks : {2, 3}) {
        std::vector<std::vector<float>> results(static_cast<std::size_t>(ranks));
        mp::run_loopback(ranks, [&](auto& self) {
            model mine;
            mp::gradient_reduction reduction(mp::cpu{.threads = self.rank() + 1}, self,
                                             {.wire = mp::wire_format::mxfp8}, mine.store);
            mine.fill(self.rank(), 0);
            static_cast<void>(reduction.backward(1.0F));
            reduction.finish();
            // E4M3 has 4 digits: errors of up to 1/16, evenly.
            CHECK(reduction.statistics().lost > 0.01);
            CHECK(reduction.statistics().lost < 0.04);
            results[static_cast<std::size_t>(self.rank())] = mine.values();
        });
        for (const auto& it : results) CHECK(std::memcmp(it.data(), results[0].data(), it.size() * 4) == 0);
        // The first chunk of 4096 is one rank's, so that its blocks begin at multiples of 32.
        std::vector<double> sum(4096);
        for (int r = 0; r < ranks; ++r) {
            std::vector<double> own;
            for (std::size_t i = 0; i < sum.size(); ++i)
                own.push_back(static_cast<double>(gradient_of(r, i, 0)));
            own = rounded(own);
            for (std::size_t i = 0; i < sum.size(); ++i) {
                sum[i] = static_cast<double>(static_cast<float>(sum[i]) + static_cast<float>(own[i]));
            }
        }
        for (double& it : sum) it = static_cast<double>(static_cast<float>(it) / static_cast<float>(ranks));
        sum = rounded(sum);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < sum.size(); ++i) {
            if (static_cast<double>(results[0][i]) != sum[i]) ++wrong;
        }
        CHECK(wrong == 0);
    }
}

TEST_CASE("what rounding loses comes later: sums over steps are right, also when the scale changes") {
    for (const bool shares : {false, true}) {
        constexpr std::uint64_t steps = 40;
        std::vector<std::vector<double>> sums(2, std::vector<double>(sizes[0] + sizes[1]));
        std::vector<double> expected(sums[0].size());
        for (std::uint64_t step = 0; step < steps; ++step) {
            const auto mean = mean_of(2, step % 3);
            for (std::size_t i = 0; i < mean.size(); ++i) expected[i] += static_cast<double>(mean[i]);
        }
        mp::run_loopback(2, [&](auto& self) {
            model mine;
            mp::gradient_reduction reduction(
                mp::cpu{}, self, {.wire = mp::wire_format::mxfp8, .share_only = shares}, mine.store);
            for (std::uint64_t step = 0; step < steps; ++step) {
                const float scale = step < 20 ? 1024.0F : 4.0F;
                mine.fill(self.rank(), step % 3, scale);
                static_cast<void>(reduction.backward(scale));
                reduction.finish();
                const auto result = mine.values();
                for (std::size_t i = 0; i < result.size(); ++i) {
                    sums[static_cast<std::size_t>(self.rank())][i] +=
                        static_cast<double>(result[i]) / static_cast<double>(scale);
                }
            }
        });
        // Of the sum, what is not sent yet is missing: some roundings of one step, not of all.
        double worst = 0;
        const std::size_t cut = 4096;
        for (std::size_t i = 0; i < expected.size(); ++i) {
            const std::size_t owner = shares && i >= cut ? 1 : 0;
            double amax = 0;
            for (std::size_t k = i / 32 * 32; k < std::min(i / 32 * 32 + 32, expected.size()); ++k) {
                for (std::uint64_t step = 0; step < 3; ++step) {
                    for (int r = 0; r < 2; ++r)
                        amax = std::max(amax, std::abs(static_cast<double>(gradient_of(r, k, step))));
                }
            }
            worst = tests::larger_error(worst, std::abs(sums[owner][i] - expected[i]) / (2 * amax));
        }
        // Half a step of E4M3 below the largest is 1/16 / 2 of it; the blocks of two ranks and of their sum.
        CHECK(worst < 0.1);
    }
}

TEST_CASE(
    "a step that overflows sends no finite number where it did, and loses nothing of the steps before") {
    std::vector<std::vector<float>> with(2), without(2);
    for (const bool overflows : {false, true}) {
        mp::run_loopback(2, [&](auto& self) {
            model mine;
            mp::gradient_reduction reduction(mp::cpu{}, self, {.wire = mp::wire_format::mxfp8}, mine.store);
            for (std::uint64_t step = 0; step < 3; ++step) {
                if (step == 1 && overflows) {
                    mine.fill(self.rank(), 7);
                    if (self.rank() == 1)
                        mine.store.gradients()[100] = std::numeric_limits<float>::infinity();
                    static_cast<void>(reduction.backward(2.0F));
                    reduction.finish();
                    CHECK(std::isnan(mine.store.gradients()[100]));
                    CHECK(std::isfinite(mine.store.gradients()[200]));
                }
                mine.fill(self.rank(), step);
                static_cast<void>(reduction.backward(1.0F));
                reduction.finish();
            }
            (overflows ? with : without)[static_cast<std::size_t>(self.rank())] = mine.values();
        });
    }
    CHECK(with == without);
    CHECK(with[0] == with[1]);
}

TEST_CASE("a step that ranks do not agree on loses nothing of the steps before") {
    std::vector<std::vector<float>> results;
    for (const bool differs : {false, true}) {
        mp::run_loopback(2, [&](auto& self) {
            model mine;
            mp::gradient_reduction reduction(mp::cpu{}, self, {.wire = mp::wire_format::mxfp8}, mine.store);
            for (std::uint64_t step = 0; step < 3; ++step) {
                if (step == 1 && differs) {
                    mine.fill(self.rank(), 7);
                    static_cast<void>(reduction.backward(self.rank() == 0 ? 2.0F : 4.0F));
                    CHECK_THROWS_AS(reduction.finish(), mp::rank_error);
                }
                mine.fill(self.rank(), step);
                static_cast<void>(reduction.backward(1.0F));
                reduction.finish();
            }
            if (self.rank() == 0) results.push_back(mine.values());
        });
    }
    CHECK(results[0] == results[1]);
}
