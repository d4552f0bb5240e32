// SPDX-License-Identifier: MIT
// The model of a data-parallel step of bench/ranks, where it can be calculated by hand.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../../bench/ranks/page.hpp"
#include "nn/scaling/thrown.hpp"
#include "page_checks.hpp"

namespace {

using namespace bench::ranks;

/// 2 s forward, 4 s backward, 1 s update, and four gradients of 250 elements, one a second.
rank_times four_gradients() {
    return {2, 4, 1, {{1, 250}, {2, 250}, {3, 250}, {4, 250}}};
}
reduction of(int ranks, double bucket_bytes) {
    reduction how;
    how.ranks = ranks;
    how.bucket_bytes = bucket_bytes;
    return how;
}
bool near(double a, double b) {
    return std::abs(a - b) < 1e-9 * std::max(1.0, std::abs(b));
}

}  // namespace

TEST_CASE("one rank reduces nothing") {
    const step it = simulate(four_gradients(), {.latency = 1, .bandwidth = 1}, of(1, 1000));
    CHECK(it.all == 7);
    CHECK(it.waited == 0);
    CHECK(it.sent == 0);
}

TEST_CASE("nothing overlaps in a single bucket") {
    // 4000 bytes on 4 ranks: three messages of 1000 bytes at 1000 bytes a second, and the latency; twice.
    const network_link over{.latency = 0.5, .overhead = 0.1, .bandwidth = 1000};
    const step it = simulate(four_gradients(), over, of(4, 4000));
    CHECK(it.buckets == 1);
    CHECK(near(it.waited, 2 * (3 * 1.0 + 0.5)));
    CHECK(near(it.all, 7 + 7));
    CHECK(near(it.sent, 6000));
    // Half the bytes; and where messages are short, their overhead counts.
    reduction how = of(4, 4000);
    how.wire_size = 2;
    CHECK(near(simulate(four_gradients(), over, how).waited, 2 * (3 * 0.5 + 0.5)));
    CHECK(near(simulate(four_gradients(), {.latency = 0.5, .overhead = 2, .bandwidth = 1000}, how).waited,
               2 * (3 * 2 + 0.5)));
}

TEST_CASE("buckets travel while the backward pass goes on") {
    // Two buckets of 2000 bytes on two ranks: 1000 bytes each way, a quarter of a second a call. The first is sent at
    // 2 s, its gather is begun at 3 s, when a gradient is written, and nobody waits for it; the second after 4 s.
    const network_link over{.bandwidth = 4000};
    step it = simulate(four_gradients(), over, of(2, 2000));
    CHECK(it.buckets == 2);
    CHECK(near(it.waited, 0.5));
    // With a link of a quarter, 1 s a call, the gather of the first bucket is from 3 s to 4 s: the same.
    it = simulate(four_gradients(), {.bandwidth = 1000}, of(2, 2000));
    CHECK(near(it.waited, 2));
    // Of half of that, 2 s a call: the first exchange ends at 4 s; then gather, exchange and gather follow, of which the
    // gather of the first begins first.
    it = simulate(four_gradients(), {.bandwidth = 500}, of(2, 2000));
    CHECK(near(it.waited, 6));
    // Without any bandwidth to speak of, the link is never idle.
    it = simulate(four_gradients(), {.bandwidth = 10}, of(2, 1000));
    CHECK(near(it.waited + 4, 1 + 2 * 4 * 50));
    // One bucket at a time: the second begins when the first is there.
    reduction single = of(2, 1000);
    single.in_flight = 1;
    it = simulate(four_gradients(), {.latency = 100}, single);
    CHECK(near(it.waited + 4, 1 + 4 * 200));
    single.in_flight = 4;
    it = simulate(four_gradients(), {.latency = 100}, single);
    CHECK(near(it.waited + 4, 4 + 200));
}

TEST_CASE("the processor packs, copies, sums and unpacks") {
    reduction how = of(2, 4000);
    how.costs = {.pack = 1e-3, .sum = 2e-3, .unpack = 4e-3};
    step it = simulate(four_gradients(), {}, how);
    CHECK(near(it.waited, 1000 * 7e-3));
    CHECK(near(it.busy, 7));
    // 2000 bytes are sent and as many received in each half.
    it = simulate(four_gradients(), {.copy = 1e-3}, of(2, 4000));
    CHECK(near(it.waited, 8));
    // What is done during the backward pass makes that longer: packed and summed by 3 s + 0.75 s, unpacked then.
    how.bucket_bytes = 2000;
    it = simulate(four_gradients(), {}, how);
    CHECK(near(it.busy, 7));
    CHECK(near(it.all, 14));
    CHECK(near(it.waited, 3.5));
}

TEST_CASE("shares: half of the reduction, and the weights") {
    reduction how = of(4, 4000);
    how.shard = true;
    how.wire_size = 2;
    const network_link over{.latency = 0.5, .bandwidth = 1000};
    const step it = simulate(four_gradients(), over, how);
    CHECK(near(it.waited, 3 * 0.5 + 0.5));
    // A quarter of the update; the weights stay in float.
    CHECK(near(it.all, 2 + 4 + 2 + 0.25 + 3 * 1.0 + 0.5));
    CHECK(near(it.sent, 1500 + 3000));
}

TEST_CASE("other algorithms") {
    const network_link over{.latency = 0.5, .overhead = 0.25, .bandwidth = 1000};
    const auto time = [&](algorithm by, int ranks) {
        const transfer it = all_reduce(over, by, ranks, 8000);
        return it.busy + it.latency;
    };
    CHECK(near(time(algorithm::ring, 8), 14 * (0.25 + 0.5 + 1.0)));
    CHECK(near(time(algorithm::halving_doubling, 8), 6 * 0.75 + 2 * 7.0));
    CHECK(near(time(algorithm::recursive_doubling, 8), 3 * (0.75 + 8)));
    CHECK(near(time(algorithm::recursive_doubling, 2), 8.75));
    // Six ranks: two hand over to others, four double, and the two get the sums.
    CHECK(near(time(algorithm::recursive_doubling, 6), (2 + 2) * (0.75 + 8)));
    CHECK(near(time(algorithm::halving_doubling, 4), 4 * 0.75 + 2 * 6.0));
    for (const algorithm by : all_algorithms) {
        reduction how = of(8, 4000);
        how.by = by;
        CHECK(simulate(four_gradients(), {}, how).all == 7);
        how.ranks = 1;
        CHECK(simulate(four_gradients(), over, how).all == 7);
    }
    // In a step, pairwise is two transfers, of which each waits for one latency only.
    reduction how = of(8, 4000);
    how.by = algorithm::ring;
    CHECK(near(simulate(four_gradients(), over, how).waited, 14 * (0.25 + 0.5 + 0.5)));
    how.by = algorithm::pairwise;
    CHECK(near(simulate(four_gradients(), over, how).waited, 2 * (7 * 0.5 + 0.5)));
}

TEST_CASE("the best size of buckets") {
    rank_times one{0.1, 0.2, 0, {}};
    for (int i = 1; i <= 64; ++i) one.gradients.push_back({0.2 * i / 64, 1 << 18});
    // Nothing costs anything: all sizes are equal, and the largest is taken.
    CHECK(best_bucket_bytes(one, {}, of(8, 0)) == std::exp2(29));
    // A call costs more than what it could hide: one bucket. Only bandwidth: the last one is to be small.
    CHECK(best_bucket_bytes(one, {.overhead = 1}, of(8, 0)) >= std::exp2(26));
    CHECK(best_bucket_bytes(one, {.bandwidth = 1e9}, of(8, 0)) <= std::exp2(21));
    for (const int ranks : {2, 8, 64}) {
        const network_link over{.latency = 1e-5, .overhead = 1e-6, .bandwidth = 1e9};
        reduction how = of(ranks, 0);
        how.bucket_bytes = best_bucket_bytes(one, over, how);
        const double best = simulate(one, over, how).all;
        CHECK(best >= 0.3);
        for (const double bytes : {1e5, 1e6, 1e7, 1e8}) {
            how.bucket_bytes = std::exp2(std::round(std::log2(bytes)));
            CHECK(simulate(one, over, how).all >= best / 1.001);
        }
    }
}

TEST_CASE("times of a rank are read, and a page comes of them") {
    const std::string path = (std::filesystem::temp_directory_path() / "mp_step_simulation.txt").string();
    const auto read = [&](const char* text) {
        std::ofstream(path) << text;
        return read_times(path);
    };
    const char* const text =
        "# a comment\ntokens 1024\nforward 100\nbackward 200\nupdate 10\ntogether 1.25\ncopy 0.5\nreduce "
        "float32 0.2\n"
        "reduce bfloat16 0.3\ngradient 50 1000000\ngradient 200 3000000\ntwo float32 1048576 0 400 5\n";
    const measured_rank one = read(text);
    CHECK(one.tokens == 1024);
    CHECK(near(one.times.backward, 0.2));
    CHECK(one.times.gradients.size() == 2);
    CHECK(one.parameters == 4e6);
    CHECK(near(faster(one, 4).times.gradients[1].ready, 0.05));
    CHECK(near(efficiency(one.times, 0.62), 0.5));
    // All times of the processor beside another one are 1.25 times as long: 387.5 ms; two buckets of 2 and 6 ns a byte of
    // copies of 4 and 12 MB, and the sums.
    const rows two = validation_rows(one);
    REQUIRE(two.size() == 1);
    CHECK(two[0][3] == examples::fixed(387.5 + 16e6 * 2 * 0.5e-6 + 4e6 * 0.2e-6 + 4 * 2e-3, 1));
    CHECK(first_fault(page(one, {1, 8})).empty());
    CHECK(thrown<std::runtime_error>([&] { read("tokens 3\nfoo 1\n"); }) == path + ": line 2 is 'foo 1'");
    CHECK(holds(thrown<std::runtime_error>([&] { read("tokens 3\n"); }), "there is no line 'gradient"));
    std::filesystem::remove(path);
    CHECK(holds(thrown<std::runtime_error>([&] { read_times(path); }), "cannot read"));
}
