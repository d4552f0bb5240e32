// SPDX-License-Identifier: MIT
// Views of a user's own type as operands: the example of operand_traits, with elements that are not contiguous.
// alone: it specializes a template of the library
#include <doctest/doctest.h>
#include <mp/autocast.hpp>

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "numbers/format/flushing_scope.hpp"

namespace own_view {

/// Every stride-th element of an array.
template <class Element>
struct strided {
    Element* data;
    std::size_t size;
    std::size_t stride = 1;

    Element& operator[](std::size_t i) const { return data[i * stride]; }
};

}  // namespace own_view

template <class Element>
    requires mp::autocast::floating<std::remove_const_t<Element>>
struct mp::autocast::operand_traits<own_view::strided<Element>> {
    using view = own_view::strided<Element>;
    static constexpr operand_kind kind = operand_kind::array;
    using element = std::remove_const_t<Element>;
    static constexpr bool writable = !std::is_const_v<Element>;

    static own_view::strided<const element> as_input(view from) {
        return {from.data, from.size, from.stride};
    }
    static std::size_t size(view from) { return from.size; }
    static const void* address(view from) { return from.data; }
    static std::array<std::ptrdiff_t, 4> shape(view from) {
        return {static_cast<std::ptrdiff_t>(from.size), static_cast<std::ptrdiff_t>(from.stride)};
    }
    template <class To>
    static own_view::strided<To> dense(To* storage, view from) {
        return {storage, from.size};
    }
    template <class From, class To>
    static void copy(const mp::cpu&, own_view::strided<From> from, own_view::strided<To> to) {
        for (std::size_t i = 0; i < to.size; ++i) to[i] = mp::round_to<To>(static_cast<float>(from[i]));
    }
    template <class From, class To>
    static void add(const mp::cpu&, own_view::strided<From> from, own_view::strided<To> to) {
        for (std::size_t i = 0; i < to.size; ++i) {
            to[i] = mp::round_to<To>(static_cast<float>(to[i]) + static_cast<float>(from[i]));
        }
    }
};

namespace {

using mp::bfloat16;
using mp::half;
using own_view::strided;
namespace ac = mp::autocast;

/// y = 2 x, or y += 2 x where y is read, in the types that the kernel receives.
struct twice_op {
    static constexpr std::string_view name = "twice";
    static constexpr auto category = mp::op_category::lower_precision;
    static constexpr std::string_view argument_names[] = {"x", "y", "reads"};
    std::vector<std::string>* types;

    template <class X, class Y>
    void operator()(strided<const X> x, strided<Y> y, bool reads) const {
        *types = {std::string(ac::type_name<X>()), std::string(ac::type_name<Y>())};
        for (std::size_t i = 0; i < x.size; ++i) {
            const float old = reads ? static_cast<float>(y[i]) : 0.0F;
            y[i] = mp::round_to<Y>(old + 2.0F * static_cast<float>(x[i]));
        }
    }
};

/// y = x, as it is.
struct copy_op {
    static constexpr std::string_view name = "copy";
    static constexpr auto category = mp::op_category::pass_through;

    void operator()(std::span<const float> x, std::span<float> y) const {
        std::memcpy(y.data(), x.data(), x.size_bytes());
    }
};

struct arrays {
    std::array<float, 6> x{0.1F, -9.0F, 1.0F / 3, -9.0F, 1000.5F, -9.0F};
    std::array<float, 6> y{1.0F, 7.0F, 2.0F, 7.0F, 3.0F, 7.0F};
    std::vector<std::string> types;

    strided<const float> in() const { return {x.data(), 3, 2}; }
    strided<float> out() { return {y.data(), 3, 2}; }
    /// Whether only the elements of out() are written.
    bool gaps_are_untouched() const { return y[1] == 7.0F && y[3] == 7.0F && y[5] == 7.0F; }
};

template <class Low>
float rounded(float x) {
    return static_cast<float>(static_cast<Low>(x));
}

const std::vector<std::string> both_half = {"half", "half"};
const std::vector<std::string> both_bfloat16 = {"bfloat16", "bfloat16"};

TEST_CASE("a view of a user's own type is cast and written back under a policy and in a region") {
    arrays a;
    ac::call<ac::fp16>(twice_op{&a.types}, a.in(), ac::out(a.out()), false);
    CHECK(a.types == both_half);
    for (std::size_t i = 0; i < 3; ++i) CHECK(a.out()[i] == rounded<half>(2.0F * rounded<half>(a.in()[i])));
    CHECK(a.gaps_are_untouched());

    arrays b;
    const mp::autocast_region region(mp::precision::bf16);
    ac::dispatch(twice_op{&b.types}, b.in(), ac::out(b.out()), false);
    CHECK(b.types == both_bfloat16);
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(b.out()[i] == rounded<bfloat16>(2.0F * rounded<bfloat16>(b.in()[i])));
    }
    CHECK(b.gaps_are_untouched());
}

TEST_CASE("old values of an output are cast for the kernel, and a sum grows by the rounded result") {
    arrays a;
    ac::call<ac::bf16>(twice_op{&a.types}, a.in(), ac::in_out(a.out()), true);
    const arrays fresh;
    for (std::size_t i = 0; i < 3; ++i) {
        const float sum = fresh.y[2 * i] + 2.0F * rounded<bfloat16>(fresh.in()[i]);
        CHECK(a.out()[i] == rounded<bfloat16>(sum));
    }

    arrays b;
    ac::call<ac::bf16>(twice_op{&b.types}, b.in(), ac::add_to(b.out()), false);
    CHECK(b.types == both_bfloat16);
    for (std::size_t i = 0; i < 3; ++i) {
        const float result = rounded<bfloat16>(2.0F * rounded<bfloat16>(fresh.in()[i]));
        CHECK(b.out()[i] == fresh.y[2 * i] + result);
    }
    CHECK(b.gaps_are_untouched());

    arrays c;
    ac::call<ac::off>(twice_op{&c.types}, c.in(), ac::add_to(c.out(), false), false);
    CHECK(c.types == std::vector<std::string>{"float", "float"});
    for (std::size_t i = 0; i < 3; ++i) CHECK(c.out()[i] == 2.0F * c.in()[i]);
}

TEST_CASE("the cast of a cached view is kept until its buffer changes, by shape") {
    arrays a;
    const mp::autocast_region region(mp::precision::fp16);
    mp::buffer_version version;
    const auto run = [&](strided<const float> x) {
        ac::dispatch(twice_op{&a.types}, ac::cached(x, version), ac::out(a.out()), false);
        return a.out()[1];
    };
    const float first = run(a.in());
    CHECK(run(a.in()) == first);
    CHECK(mp::autocast_cache()->statistics().hits == 1);
    CHECK(run({a.x.data(), 3, 1}) == rounded<half>(2.0F * -9.0F));  // another view of the same address
    a.x[2] = 5.0F;
    version.changed();
    CHECK(run(a.in()) == 10.0F);
    CHECK(mp::autocast_cache()->statistics().hits == 1);
}

TEST_CASE("operands of a float8 region are scaled and rounded to float8 on the way") {
    arrays a;
    const mp::autocast_region region(mp::precision::fp8);
    ac::dispatch(twice_op{&a.types}, a.in(), ac::out(a.out()), false);
    CHECK(a.types == both_bfloat16);
    // The largest value, 1000.5, is scaled by 1/4 into the range of e4m3, in which its neighbours are 16 apart.
    CHECK(a.out()[2] == 2.0F * 4.0F * rounded<mp::float8_e4m3fn>(1000.5F / 4.0F));
}

TEST_CASE("a ledger counts the casts of a view, there and back") {
    arrays a;
    a.x[4] = 70000.0F;
    ac::cast_ledger ledger;
    {
        const mp::autocast_region region({.cpu = mp::precision::fp16, .ledger = &ledger});
        ac::dispatch(twice_op{&a.types}, a.in(), ac::out(a.out()), false);
    }
    const auto casts = ledger.casts();
    REQUIRE(casts.size() == 2);
    CHECK(casts[0].argument == "x");
    CHECK(casts[0].to == "half");
    CHECK(casts[0].losses.elements == 3);
    CHECK(casts[0].losses.overflowed == 1);
    CHECK(casts[0].losses.inexact == 2);
    CHECK(casts[1].argument == "y");
    CHECK(casts[1].from == "half");
    CHECK(casts[1].direction == ac::cast_direction::output);
    CHECK(casts[1].losses.elements == 3);
    CHECK(casts[1].losses.largest == static_cast<double>(a.out()[1]));
}

#if defined(TEST_CAN_FLUSH)
TEST_CASE("a sum keeps subnormal numbers where the caller flushes them") {
    std::vector<std::string> types;
    const std::array<float, 1> x{0x1p-140F};
    std::array<float, 1> y{0x1p-139F};
    {
        const flushing_scope flushing;
        ac::call<ac::off>(copy_op{}, std::span<const float>(x), ac::add_to(std::span<float>(y)));
    }
    CHECK(y[0] == 0x1p-139F + 0x1p-140F);
}
#endif

}  // namespace
