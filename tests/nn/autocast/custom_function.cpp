// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/autocast.hpp>

#include <array>
#include <concepts>
#include <span>
#include <thread>

namespace {

using mp::autocast_region;
using mp::bfloat16;
using mp::half;
using mp::precision;
namespace ac = mp::autocast;

TEST_CASE("backward runs in the state of the forward, after the region and on another thread") {
    ac::saved_state saved;
    {
        const autocast_region region({.cpu = precision::bf16, .list = &ac::own_categories});
        const int result = saved.forward(
            [](int x) {
                CHECK(mp::autocast_precision() == precision::bf16);
                return x + 1;
            },
            41);
        CHECK(result == 42);
    }
    CHECK_FALSE(mp::autocast_active());
    precision seen = precision::off;
    std::thread worker([&] { saved.backward([&] { seen = mp::autocast_precision(); }); });
    worker.join();
    CHECK(seen == precision::bf16);
    const autocast_region other(precision::fp16);
    CHECK(saved.backward([] { return mp::autocast_precision(); }) == precision::bf16);
    CHECK(mp::autocast_precision() == precision::fp16);
}

TEST_CASE("a forward outside of regions has a backward with autocast off") {
    ac::saved_state saved;
    const autocast_region region(precision::fp16);
    CHECK(saved.backward([] { return mp::autocast_precision(); }) == precision::off);  // no forward yet
    {
        const autocast_region off(precision::off);
        saved.forward([] {});
    }
    CHECK(saved.backward([] { return mp::autocast_precision(); }) == precision::off);
}

TEST_CASE("forward_in casts in a region and turns autocast off inside; elsewhere it does nothing") {
    ac::saved_state saved;
    std::array<half, 3> x = {half(1.0F), half(0.5F), half(0.25F)};
    std::array<half, 3> y{};
    bool active = true;
    const auto scale = [&](float alpha, auto from, auto to) {
        active = mp::autocast_active();
        using element = typename decltype(from)::element_type;
        for (std::size_t i = 0; i < from.size(); ++i)
            to[i] = static_cast<std::remove_const_t<element>>(alpha * static_cast<float>(from[i]));
        return sizeof(element);
    };
    const auto run = [&] {
        return saved.forward_in<float>(scale, 3.0F, std::span<const half>(x), ac::out(std::span<half>(y)));
    };
    CHECK(run() == sizeof(half));
    CHECK(y[2] == half(0.75F));
    const autocast_region region(precision::bf16);
    y = {};
    CHECK(run() == sizeof(float));
    CHECK_FALSE(active);
    CHECK(y[2] == half(0.75F));
    CHECK(mp::autocast_active());
    CHECK(saved.backward([] { return mp::autocast_precision(); }) == precision::off);
}

TEST_CASE("forward_in on numbers returns the wider type of both cases") {
    ac::saved_state saved;
    const auto product = [&](auto a, auto b) {
        return saved.forward_in<half>([](auto x, auto y) { return x * y; }, a, b);
    };
    static_assert(std::same_as<decltype(product(0.1F, 0.3F)), float>);
    static_assert(std::same_as<decltype(product(half(1.0F), half(2.0F))), half>);
    CHECK(product(0.1F, 0.3F) == 0.1F * 0.3F);
    const autocast_region region(precision::bf16);
    CHECK(product(0.1F, 0.3F) == static_cast<float>(half(0.1F) * half(0.3F)));
    CHECK(product(0.1, 0.3) == 0.1 * 0.3);  // double is not cast
}

}  // namespace
