// SPDX-License-Identifier: MIT
// Random permutations that are computed where they are looked at, and data sets dealt out by them.
#include <mp/parallel.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "nn/scaling/thrown.hpp"

namespace {

using indices = std::vector<std::uint64_t>;

indices all_of(const mp::random_permutation& p) {
    indices order(p.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = p(i);
    return order;
}
bool is_permutation_of_all(indices order) {
    std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < order.size(); ++i) {
        if (order[i] != i) return false;
    }
    return true;
}

/// What one rank takes in a step.
indices taken(const mp::sampler_options& options, int rank, int ranks, std::uint64_t step) {
    const mp::distributed_sampler sampler(options, rank, ranks);
    indices mine(sampler.indices_per_step());
    sampler.indices(step, mine);
    return mine;
}
/// What all ranks take in a step, micro batch by micro batch in the order of the ranks.
indices taken_by_all(const mp::sampler_options& options, int ranks, std::uint64_t step) {
    std::vector<indices> of_rank;
    for (int r = 0; r < ranks; ++r) of_rank.push_back(taken(options, r, ranks, step));
    indices all;
    for (std::size_t micro = 0; micro < options.accumulate; ++micro) {
        for (const indices& it : of_rank) {
            const auto begin = it.begin() + static_cast<std::ptrdiff_t>(micro * options.batch);
            all.insert(all.end(), begin, begin + static_cast<std::ptrdiff_t>(options.batch));
        }
    }
    return all;
}

// It is there when the program is compiled.
constexpr mp::random_permutation of_seven(7, 1);
static_assert(of_seven(0) < 7 && of_seven(0) != of_seven(1));
constexpr std::uint64_t second_step = [] {
    std::array<std::uint64_t, 4> mine{};
    mp::distributed_sampler({.examples = 100, .batch = 4, .shuffle = false}, 1, 2).indices(1, mine);
    return mine[0] * 1000 + mine[3];
}();
static_assert(second_step == 12015);

}  // namespace

TEST_CASE("every size has a bijection") {
    for (std::uint64_t size = 1; size <= 1100; ++size) {
        for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
            CAPTURE(size);
            REQUIRE(is_permutation_of_all(all_of(mp::random_permutation(size, 5, epoch))));
        }
    }
    // Powers of two and their neighbours, primes, squares, products of neighbours.
    for (const std::uint64_t size :
         {4095U, 4096U, 4097U, 8191U, 16384U, 32768U, 65535U, 65536U, 65537U, 99991U, 104729U, 131071U,
          262144U, 262145U, 316U * 316U, 316U * 317U, 1U << 20, (1U << 20) + 1}) {
        CAPTURE(size);
        CHECK(is_permutation_of_all(all_of(mp::random_permutation(size, 9))));
    }
}

TEST_CASE("sizes that cannot be counted out") {
    for (const std::uint64_t size :
         {(std::uint64_t{1} << 32) - 5, (std::uint64_t{1} << 32) + 15, std::uint64_t{1} << 63,
          (std::uint64_t{1} << 63) + 1, ~std::uint64_t{0} - 58, ~std::uint64_t{0}}) {
        const mp::random_permutation p(size, 3);
        indices values;
        for (std::uint64_t i = 0; i < 2000; ++i) {
            values.push_back(p(i));
            values.push_back(p(size - 1 - i));
        }
        CHECK(*std::max_element(values.begin(), values.end()) < size);
        std::sort(values.begin(), values.end());
        CHECK(std::adjacent_find(values.begin(), values.end()) == values.end());
    }
}

TEST_CASE("the same order on every machine") {
    CHECK(all_of(mp::random_permutation(10, 1)) == indices{7, 3, 6, 9, 0, 5, 1, 2, 8, 4});
    CHECK(all_of(mp::random_permutation(10, 1, 1)) == indices{0, 1, 7, 8, 2, 6, 5, 3, 4, 9});
    CHECK(mp::random_permutation(1000003, 77, 5)(123456) == 435645);
}

TEST_CASE("all orders of a few elements come equally often") {
    // Chi-squared over all n! orders, of which each is expected 40 times: mean n! - 1, deviation sqrt(2 (n! - 1)).
    for (std::uint64_t n = 2; n <= 7; ++n) {
        double orders = 1;
        for (std::uint64_t i = 2; i <= n; ++i) orders *= static_cast<double>(i);
        std::map<indices, int> counts;
        const auto draws = static_cast<std::uint64_t>(40 * orders);
        for (std::uint64_t epoch = 0; epoch < draws; ++epoch) {
            ++counts[all_of(mp::random_permutation(n, 11, epoch))];
        }
        double chi = 40 * (orders - static_cast<double>(counts.size()));
        for (const auto& [order, count] : counts) chi += (count - 40) * (count - 40) / 40.0;
        CAPTURE(n);
        CHECK(std::abs(chi - (orders - 1)) < 4.5 * std::sqrt(2 * (orders - 1)));
    }
}

TEST_CASE("large permutations look random") {
    for (const std::uint64_t size : {1000U, 1024U, 65536U, 100003U}) {
        const auto n = static_cast<double>(size);
        double fixed_points = 0;
        double odd = 0;
        for (std::uint64_t seed = 0; seed < 8; ++seed) {
            const indices order = all_of(mp::random_permutation(size, seed));
            double displacement = 0, serial = 0, in_octets = 0;
            std::array<double, 64> cells{};  // of the plane of place and value
            for (std::size_t i = 0; i < order.size(); ++i) {
                const auto x = static_cast<double>(i), y = static_cast<double>(order[i]);
                displacement += std::abs(x - y);
                fixed_points += i == order[i] ? 1 : 0;
                const double next = static_cast<double>(order[(i + 1) % order.size()]);
                serial += (y - (n - 1) / 2) * (next - (n - 1) / 2);
                in_octets += (order[i] & 7) == (i & 7) ? 1 : 0;
                ++cells[static_cast<std::size_t>(x * 8 / n) * 8 + static_cast<std::size_t>(y * 8 / n)];
            }
            CAPTURE(size);
            CAPTURE(seed);
            // Of a random permutation: mean (n^2 - 1) / 3, variance (n + 1)(2 n^2 + 7) / 45.
            CHECK(std::abs(displacement - (n * n - 1) / 3) < 4.5 * std::sqrt((n + 1) * (2 * n * n + 7) / 45));
            // The correlation of neighbours has the deviation 1 / sqrt(n).
            CHECK(std::abs(serial / (n * (n * n - 1) / 12)) < 4.5 / std::sqrt(n));
            // Low bits of place and value have nothing to do with each other.
            CHECK(std::abs(in_octets - n / 8) < 4.5 * std::sqrt(n * 7 / 64));
            double chi = 0;
            for (const double count : cells) chi += (count - n / 64) * (count - n / 64) / (n / 64);
            CHECK(chi < 49 + 4.5 * std::sqrt(2 * 49.0) + 4);
            // A permutation is odd if size - cycles is.
            std::vector<bool> seen(order.size());
            std::size_t cycles = 0;
            for (std::size_t i = 0; i < order.size(); ++i) {
                if (seen[i]) continue;
                ++cycles;
                for (std::size_t at = i; !seen[at]; at = order[at]) seen[at] = true;
            }
            odd += (order.size() - cycles) % 2 == 1 ? 1 : 0;
        }
        CHECK(fixed_points < 25);  // one is expected of each
        CHECK(odd > 0);
        CHECK(odd < 8);
    }
}

TEST_CASE("epochs and seeds have orders of their own") {
    const indices first = all_of(mp::random_permutation(50000, 1, 0));
    for (const indices& other :
         {all_of(mp::random_permutation(50000, 1, 1)), all_of(mp::random_permutation(50000, 2, 0)),
          all_of(mp::random_permutation(50000, 1, std::uint64_t{1} << 32)),
          all_of(mp::random_permutation(50000, 1 + (std::uint64_t{1} << 32), 0))}) {
        std::size_t same = 0;
        for (std::size_t i = 0; i < first.size(); ++i) same += first[i] == other[i] ? 1U : 0U;
        CHECK(same < 12);
    }
}

TEST_CASE("ranks take every example of an epoch once") {
    using enum mp::epoch_remainder;
    for (const int ranks : {1, 2, 3, 7}) {
        for (const std::uint64_t examples : {1U, 5U, 41U, 42U, 43U, 97U, 420U}) {
            mp::sampler_options options{.examples = examples, .batch = 3, .accumulate = 2, .seed = 4};
            const std::uint64_t global = 6 * static_cast<std::uint64_t>(ranks);
            CAPTURE(ranks);
            CAPTURE(examples);

            // Carried: the steps are one row of epochs, without gaps or repetitions.
            constexpr std::uint64_t epochs = 5;
            const mp::distributed_sampler carrying(options, 0, ranks);
            CHECK(carrying.global_batch() == global);
            CHECK(carrying.steps(epochs) == (epochs * examples + global - 1) / global);
            indices row;
            for (std::uint64_t step = 0; step < carrying.steps(epochs); ++step) {
                CHECK(carrying.epoch(step) == row.size() / examples);
                const indices all = taken_by_all(options, ranks, step);
                row.insert(row.end(), all.begin(), all.end());
            }
            REQUIRE(row.size() >= epochs * examples);
            for (std::uint64_t e = 0; e < epochs; ++e) {
                const auto begin = row.begin() + static_cast<std::ptrdiff_t>(e * examples);
                CHECK(is_permutation_of_all({begin, begin + static_cast<std::ptrdiff_t>(examples)}));
            }

            // Padded: at least once, and what is more are the first of the epoch.
            options.remainder = pad;
            const mp::distributed_sampler padding(options, 0, ranks);
            const std::uint64_t padded_steps = (examples + global - 1) / global;
            CHECK(padding.steps(2) == 2 * padded_steps);
            for (std::uint64_t e = 0; e < 2; ++e) {
                row.clear();
                for (std::uint64_t step = 0; step < padded_steps; ++step) {
                    CHECK(padding.epoch(e * padded_steps + step) == e);
                    const indices all = taken_by_all(options, ranks, e * padded_steps + step);
                    row.insert(row.end(), all.begin(), all.end());
                }
                for (std::size_t i = examples; i < row.size(); ++i) CHECK(row[i] == row[i - examples]);
                row.resize(examples);
                CHECK(is_permutation_of_all(row));
            }

            // Dropped: at most once, and others in the next epoch.
            options.remainder = drop;
            if (examples < global) {
                CHECK(holds(thrown<mp::argument_error>([&] { taken(options, 0, ranks, 0); }),
                            ("must be at least the global batch, " + std::to_string(global)).c_str()));
                continue;
            }
            const mp::distributed_sampler dropping(options, 0, ranks);
            CHECK(dropping.steps(3) == 3 * (examples / global));
            row.clear();
            for (std::uint64_t step = 0; step < dropping.steps(1); ++step) {
                const indices all = taken_by_all(options, ranks, step);
                row.insert(row.end(), all.begin(), all.end());
            }
            CHECK(row.size() == examples / global * global);
            CHECK(dropping.epoch(dropping.steps(1)) == 1);
            std::sort(row.begin(), row.end());
            CHECK(std::adjacent_find(row.begin(), row.end()) == row.end());
            CHECK(row.back() < examples);
        }
    }
}

TEST_CASE("fewer ranks that accumulate more take the same examples in a step") {
    for (const auto remainder :
         {mp::epoch_remainder::carry, mp::epoch_remainder::drop, mp::epoch_remainder::pad}) {
        for (const bool shuffle : {true, false}) {
            mp::sampler_options options{
                .examples = 1000, .batch = 4, .seed = 8, .shuffle = shuffle, .remainder = remainder};
            for (std::uint64_t step = 0; step < 100; ++step) {
                options.accumulate = 1;
                const indices of_six = taken_by_all(options, 6, step);
                options.accumulate = 3;
                CHECK(taken_by_all(options, 2, step) == of_six);
                options.accumulate = 6;
                CHECK(taken_by_all(options, 1, step) == of_six);
            }
        }
    }
}

TEST_CASE("without shuffling, the order of the data set") {
    const mp::sampler_options options{.examples = 10, .batch = 2, .accumulate = 2, .shuffle = false};
    CHECK(taken(options, 0, 2, 0) == indices{0, 1, 4, 5});
    CHECK(taken(options, 1, 2, 0) == indices{2, 3, 6, 7});
    CHECK(taken(options, 1, 2, 1) == indices{0, 1, 4, 5});
}

TEST_CASE("a rank of a communicator, and what the types promise") {
    mp::single_rank alone;
    const mp::distributed_sampler sampler({.examples = 100, .batch = 8}, alone);
    CHECK(sampler.global_batch() == 8);
    CHECK(sampler.options().examples == 100);
    static_assert(noexcept(sampler.index(0, 0)));
    static_assert(std::is_trivially_copyable_v<mp::distributed_sampler>);
}

TEST_CASE("errors name the argument and its value") {
    const auto message = [](const mp::sampler_options& options, int rank = 0, int ranks = 2) {
        return thrown<mp::argument_error>([&] { mp::distributed_sampler(options, rank, ranks); });
    };
    CHECK(message({}) == "mp::distributed_sampler: options.examples is 0; it must be positive");
    CHECK(message({.examples = 1, .batch = 0}) ==
          "mp::distributed_sampler: options.batch is 0; it must be positive");
    CHECK(message({.examples = 1, .accumulate = 0}) ==
          "mp::distributed_sampler: options.accumulate is 0; it must be positive");
    CHECK(message({.examples = 1}, 0, 0) == "mp::distributed_sampler: ranks is 0; it must be at least 1");
    CHECK(message({.examples = 1}, 2, 2) == "mp::distributed_sampler: rank is 2; it must be from 0 to 1");
    CHECK(message({.examples = 1}, -1, 2) == "mp::distributed_sampler: rank is -1; it must be from 0 to 1");
    CHECK(message({.examples = 1, .batch = std::uint64_t{1} << 60, .accumulate = 4}) ==
          "mp::distributed_sampler: options.batch is 1152921504606846976; it must make a global batch below "
          "2^63 "
          "with options.accumulate, 4, and ranks, 2");
    CHECK(message({.examples = 7, .batch = 4, .remainder = mp::epoch_remainder::drop}) ==
          "mp::distributed_sampler: options.examples is 7; it must be at least the global batch, 8, since "
          "what is "
          "less is dropped");
    const mp::distributed_sampler sampler({.examples = 7, .batch = 4}, 0, 2);
    indices mine(3);
    CHECK(thrown<mp::argument_error>([&] { sampler.indices(0, mine); }) ==
          "mp::distributed_sampler::indices: to.size() is 3; it must be batch * accumulate, 4");
    mine.resize(4);
    sampler.indices(~std::uint64_t{0} / 8 - 1, mine);
    CHECK(thrown<mp::argument_error>([&] { sampler.indices(~std::uint64_t{0} / 8, mine); }) ==
          "mp::distributed_sampler::indices: step is 2305843009213693951; it must be less than 2^64 / 8, the "
          "global batch");
}

TEST_CASE("samplers that differ on a rank are found on all, with the name of what differs") {
    const mp::sampler_options same{.examples = 1000, .batch = 4, .accumulate = 2, .seed = 3};
    const auto found = [&](auto change, const char* text) {
        std::atomic<int> told = 0;
        mp::run_loopback(3, [&](auto& self) {
            mp::sampler_options mine = same;
            if (self.rank() == 2) change(mine);
            const bool shifts = mine.seed == 5;
            const mp::distributed_sampler sampler(shifts ? same : mine, shifts ? 0 : self.rank(), 3);
            const std::string what = thrown<mp::rank_error>([&] { mp::require_same_sampler(self, sampler); });
            if (holds(what, text)) ++told;
        });
        CHECK(told == 3);
    };
    found([](auto&) {}, "(nothing was thrown)");
    found([](auto& it) { it.seed = 4; }, "mp::require_same_sampler: the ranks differ: options.seed is ");
    found([](auto& it) { it.seed = 5; }, "whether rank and number of ranks of the sampler");
    found([](auto& it) { it.examples = 999; }, "options.examples is ");
    found([](auto& it) { it.batch = 5; }, "options.batch is ");
    found([](auto& it) { it.accumulate = 1; }, "options.accumulate is ");
    found([](auto& it) { it.shuffle = false; }, "options.shuffle is ");
    found([](auto& it) { it.remainder = mp::epoch_remainder::drop; }, "options.remainder is ");
    mp::single_rank alone;
    CHECK(holds(thrown<mp::argument_error>(
                    [&] { mp::require_same_sampler(alone, mp::distributed_sampler(same, 0, 2)); }),
                "mp::require_same_sampler: sampler.ranks() is 2"));
    std::atomic<int> told = 0;
    mp::run_loopback(2, [&](auto& self) {
        const mp::distributed_sampler of_the_other(same, 1 - self.rank(), 2);
        const auto check = [&] { mp::require_same_sampler(self, of_the_other); };
        if (holds(thrown<mp::argument_error>(check), "mp::require_same_sampler: sampler.rank() is ")) ++told;
    });
    CHECK(told == 2);
}
