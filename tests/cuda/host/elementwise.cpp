// SPDX-License-Identifier: MIT
#include <mp/bfloat16.hpp>
#include <mp/cuda/chunks.hpp>
#include <mp/cuda/device_loss_scale.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

namespace {

using mp::detail::chunk_count;
using mp::detail::split_into_chunks;

/// Runs all threads' shares of a transformation from the element `shift` of an aligned buffer on, and checks
/// that every element is written exactly once and nothing else.
template <class From, class To>
void check_shares(std::size_t size, std::size_t from_shift, std::size_t to_shift, std::size_t threads) {
    std::vector<From> from(from_shift + size);
    std::vector<To> to(to_shift + size + 1, To(7.0F));
    std::vector<int> visits(size);
    for (std::size_t i = 0; i < size; ++i) from[from_shift + i] = From(static_cast<float>(i % 5));
    const auto split = split_into_chunks(from.data() + from_shift, to.data() + to_shift, size);
    for (std::size_t thread = 0; thread < threads; ++thread) {
        mp::detail::transform_share(thread, threads, from.data() + from_shift, to.data() + to_shift, split,
                                    [&](From x, std::size_t index) {
                                        ++visits[index];
                                        return To(static_cast<float>(x));
                                    });
    }
    bool right = true;
    for (std::size_t i = 0; i < size; ++i) {
        right = right && visits[i] == 1 && static_cast<float>(to[to_shift + i]) == static_cast<float>(i % 5);
    }
    for (std::size_t i = 0; i < to_shift; ++i) right = right && static_cast<float>(to[i]) == 7.0F;
    right = right && static_cast<float>(to[to_shift + size]) == 7.0F;
    CAPTURE(size);
    CAPTURE(from_shift);
    CAPTURE(to_shift);
    CAPTURE(threads);
    CHECK(right);
}

template <class From, class To>
void check_all_shares() {
    for (const std::size_t size : {0u, 1u, 2u, 3u, 7u, 8u, 15u, 16u, 17u, 31u, 33u, 64u, 100u, 333u}) {
        for (const std::size_t shift : {0u, 1u, 2u, 3u, 5u, 8u, 13u}) {
            check_shares<From, To>(size, shift, shift, 1);
            check_shares<From, To>(size, shift, 0, 5);
            check_shares<From, To>(size, 0, shift, 64);
        }
    }
}

TEST_CASE("the shares of the threads are the whole array, at every size and alignment") {
    check_all_shares<mp::half, float>();
    check_all_shares<float, mp::half>();
    check_all_shares<float, float>();
    check_all_shares<mp::bfloat16, mp::float8_e5m2>();
    check_all_shares<mp::float8_e4m3fn, double>();
}

TEST_CASE("an array that is aligned, or can be after some elements, moves in chunks") {
    alignas(16) const mp::half from[64] = {};
    alignas(16) float to[64] = {};
    CHECK(chunk_count<mp::half, float> == 4);
    CHECK(chunk_count<mp::half, mp::bfloat16> == 8);
    CHECK(chunk_count<double, mp::half> == 2);
    auto split = split_into_chunks(from, to, 64);
    CHECK((split.head == 0 && split.chunks == 16));
    split = split_into_chunks(from + 1, to + 1, 63);
    CHECK((split.head == 3 && split.chunks == 15));
    split = split_into_chunks(from + 1, to + 1, 62);
    CHECK((split.head == 3 && split.chunks == 14 && split.singles<4>() == 6));
    split = split_into_chunks(from + 1, to, 63);
    CHECK((split.chunks == 0 && split.singles<4>() == 63));
    split = split_into_chunks(from, to, 3);
    CHECK((split.chunks == 0 && split.singles<4>() == 3));
}

TEST_CASE("launches have at least one block and at most what the hardware takes") {
    using mp::detail::chunk_split;
    using mp::detail::elementwise_blocks;
    CHECK(elementwise_blocks<4>(chunk_split{0, 1, 4}) == 1);
    CHECK(elementwise_blocks<4>(chunk_split{0, 1024, 4096}) == 1);
    CHECK(elementwise_blocks<4>(chunk_split{0, 1025, 4100}) == 2);
    CHECK(elementwise_blocks<4>(chunk_split{1025, 0, 1025}) == 2);
    const std::size_t enormous = std::size_t{1} << 50;
    CHECK(elementwise_blocks<1>(chunk_split{0, enormous, enormous}) == 1u << 30);
}

/// What unscale_kernel does, thread after thread.
template <class Gradient>
mp::device_gradient_report unscale_on_host(std::span<const Gradient> in, std::span<float> out, float inverse,
                                           unsigned long long parameter) {
    mp::device_gradient_report report;
    const auto split = split_into_chunks(in.data(), out.data(), in.size());
    for (std::size_t thread = 0; thread < 37; ++thread) {
        mp::detail::unscale_findings found;
        mp::detail::unscale_share(thread, 37, in.data(), out.data(), split, inverse, parameter, found);
        report.infinities += found.infinities;
        report.nans += found.nans;
        report.first = std::min(report.first, found.first);
    }
    report.checked += in.size();
    return report;
}

template <class Gradient>
void check_unscale(float inverse) {
    std::mt19937 random(11);
    for (const std::size_t size : {1u, 5u, 64u, 1000u, 4097u}) {
        for (const int bad : {0, 1, 30}) {
            std::vector<Gradient> in(size);
            for (Gradient& value : in) value = Gradient(std::normal_distribution<float>()(random));
            for (int i = 0; i < bad; ++i) {
                const float value = i % 3 == 1 ? std::numeric_limits<float>::quiet_NaN()
                                               : std::numeric_limits<float>::infinity();
                in[random() % size] = Gradient(i % 2 == 0 ? value : -value);
            }
            std::vector<float> expected(size);
            std::vector<float> out(size);
            const auto on_cpu = mp::unscale_and_check(mp::cpu{}, in, expected, inverse);
            const auto found = unscale_on_host<Gradient>(in, out, inverse, 3);
            CHECK(found.checked == size);
            CHECK(found.infinities == on_cpu.infinities);
            CHECK(found.nans == on_cpu.nans);
            CHECK(found.found() == on_cpu.found());
            CHECK(found.first_element() == on_cpu.first_index);
            CHECK(found.first_parameter() == (on_cpu.found() ? 3 : mp::no_index));
            CHECK(std::memcmp(out.data(), expected.data(), size * sizeof(float)) == 0);
        }
    }
}

TEST_CASE("a thread's share of unscale_and_check does what the CPU does") {
    check_unscale<float>(0x1p-16F);
    check_unscale<float>(1.0F);
    check_unscale<mp::half>(1.0F / 3.0F);
    check_unscale<mp::half>(0x1p126F);  // makes infinities of its own
    check_unscale<mp::bfloat16>(0x1p-126F);
    check_unscale<mp::float8_e5m2>(2.0F);
}

TEST_CASE("a place names array and index, and orders by array first") {
    using mp::detail::gradient_place;
    CHECK(gradient_place(1, 0) > gradient_place(0, mp::detail::most_gradient_values - 1));
    CHECK(gradient_place(mp::detail::most_gradient_arrays - 1, mp::detail::most_gradient_values - 2) <
          mp::detail::no_place);
    mp::device_gradient_report report;
    CHECK(report.first_parameter() == mp::no_index);
    CHECK(report.first_element() == mp::no_index);
    report.first = gradient_place(1000000, 123456789012);
    CHECK(report.first_parameter() == 1000000);
    CHECK(report.first_element() == 123456789012);
    CHECK(report.on_host().first_element == 123456789012);
    CHECK_NOTHROW(mp::detail::check_gradient_place("f", (1u << 20) - 1, (std::size_t{1} << 44) - 1));
    CHECK_THROWS_WITH_AS(mp::detail::check_gradient_place("f", 1u << 20, 0),
                         "f: parameter is 1048576; it must be less than 2^20", mp::argument_error);
    CHECK_THROWS_AS(mp::detail::check_gradient_place("f", 0, std::size_t{1} << 44), mp::argument_error);
}

/// An optimizer whose gradients are what the test says.
struct scripted_optimizer {
    mp::gradient_report next;
    int steps = 0;

    mp::gradient_report unscale_gradients(float) { return next; }
    void step() { ++steps; }
    void skip_step() {}
};

TEST_CASE("the device's loss scale moves exactly as the host's scaler, for a thousand random iterations") {
    const mp::pytorch_policy policy{
        .initial_scale = 3.0F, .growth_factor = 1.7, .backoff_factor = 0.3, .growth_interval = 3};
    mp::loss_scaler<mp::pytorch_policy> scaler(policy);
    auto on_device = mp::make_device_loss_scale(policy);
    std::mt19937 random(5);
    unsigned long long skipped = 0;
    unsigned long long updates = 0;
    for (int iteration = 0; iteration < 1000; ++iteration) {
        scripted_optimizer optimizer;
        if (random() % 20 != 0) {
            optimizer.next.checked = 10;
            // Rare enough for the scale to reach the largest float, and frequent enough to leave it again.
            if (random() % 8 == 0) optimizer.next.infinities = 2;
            if (random() % 16 == 0) optimizer.next.nans = 1;
        }
        on_device.seen.checked += optimizer.next.checked;
        on_device.seen.infinities += optimizer.next.infinities;
        on_device.seen.nans += optimizer.next.nans;
        const auto seen = on_device.seen;
        CHECK(on_device.skips(policy) == !scaler.step(optimizer));
        const mp::scale_change change = scaler.update();
        mp::detail::end_iteration(mp::detail::rules_of(policy), on_device);
        updates += optimizer.next.checked != 0 ? 1 : 0;
        skipped += optimizer.next.found() ? 1 : 0;
        REQUIRE(on_device.change == change);
        REQUIRE(on_device.state == scaler.state().state);
        REQUIRE(on_device.inverse_scale == scaler.inverse_scale());
        REQUIRE(on_device.previous == seen);
        REQUIRE(on_device.seen == mp::device_gradient_report{});
    }
    CHECK(on_device.updates == updates);
    CHECK(on_device.skipped == skipped);
}

TEST_CASE("a policy that applies every step, and policies and states that make no sense") {
    const mp::static_policy always{.initial_scale = 8.0F, .skip_non_finite = false};
    auto scale = mp::make_device_loss_scale(always);
    CHECK(scale.inverse_scale == 0.125F);
    CHECK(scale.skips(always));  // there are no gradients yet
    scale.seen.checked = 1;
    scale.seen.nans = 1;
    CHECK_FALSE(scale.skips(always));
    mp::detail::end_iteration(mp::detail::rules_of(always), scale);
    CHECK(scale.skipped == 0);
    CHECK(scale.updates == 1);
    CHECK_THROWS_AS(static_cast<void>(mp::make_device_loss_scale(mp::pytorch_policy{.growth_factor = 1.0})),
                    mp::argument_error);
    CHECK_THROWS_AS(static_cast<void>(mp::make_device_loss_scale(mp::pytorch_policy{}, {-1.0F, 0})),
                    mp::argument_error);
    const auto resumed = mp::make_device_loss_scale(mp::pytorch_policy{}, {1024.0F, 7});
    CHECK(resumed.state.growth.tracker == 7);
    CHECK(resumed.inverse_scale == 0x1p-10F);
}

}  // namespace
