// SPDX-License-Identifier: MIT
// What the categories mean for types, beyond those that policy.cpp has; mostly proven when this is compiled.
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/float8.hpp>

#include <concepts>
#include <span>
#include <string>
#include <string_view>

namespace {

using mp::bfloat16;
using mp::half;
using mp::op_category;
namespace ac = mp::autocast;

template <op_category Category>
struct op_in {
    static constexpr std::string_view name = "test";
    static constexpr auto category = Category;
};
using output_only = op_in<op_category::full_precision_output>;
using append = op_in<op_category::append_output_type>;
using promote = op_in<op_category::promote>;

template <class Policy, class Op, class Argument, class... Arguments>
using cast = ac::cast_type_t<Policy, Op, Argument, Arguments...>;
template <class Policy, class Op, class... Arguments>
using result = ac::output_type_t<Policy, Op, Arguments...>;

// full_precision_output: arguments stay, the result is float if the first may be cast.
static_assert(std::same_as<cast<ac::fp16, output_only, half, half>, half>);
static_assert(std::same_as<ac::compute_type_t<ac::fp16, output_only, half>, half>);
static_assert(std::same_as<result<ac::fp16, output_only, half>, float>);
static_assert(std::same_as<result<ac::fp16, output_only, bfloat16, double>, float>);
static_assert(std::same_as<result<ac::fp16, output_only, double, half>, double>);  // as without autocast
static_assert(std::same_as<result<ac::off, output_only, half>, half>);

// append_output_type: the same, but a first argument that is not cast gives its type to the result.
static_assert(std::same_as<cast<ac::bf16, append, half, half>, half>);
static_assert(std::same_as<result<ac::bf16, append, half>, float>);
static_assert(std::same_as<result<ac::bf16, append, double, long double>, double>);
static_assert(std::same_as<result<ac::bf16, output_only, double, long double>, long double>);

// A type that the call asks for wins over both, and changes nothing else.
static_assert(std::same_as<result<ac::fp16, ac::returning_op<half, output_only>, float>, half>);
static_assert(std::same_as<result<ac::fp16, ac::returning_op<bfloat16, append>, float>, bfloat16>);
static_assert(std::same_as<result<ac::fp16, ac::returning_op<half, promote>, float>, float>);
static_assert(std::same_as<cast<ac::fp16, ac::returning_op<half, output_only>, float, float>, float>);

// promote: float where one is float, else the low precision; doubles are ignored.
static_assert(std::same_as<cast<ac::fp16, promote, half, half, half>, half>);
static_assert(std::same_as<cast<ac::fp16, promote, half, half, float>, float>);
static_assert(std::same_as<cast<ac::fp16, promote, half, half, double>, half>);
static_assert(std::same_as<cast<ac::fp16, promote, double, half, double>, double>);
static_assert(std::same_as<result<ac::fp16, promote, half, float>, float>);
static_assert(std::same_as<result<ac::bf16, promote, bfloat16>, bfloat16>);

struct sum_op {
    static constexpr std::string_view name = "sum";
    static constexpr auto category = op_category::full_precision_output;
    template <class X>
    float operator()(std::span<const X> x) const {
        float sum = 0.0F;
        for (const X value : x) sum += static_cast<float>(value);
        return sum;
    }
};

struct halve_op {
    static constexpr std::string_view name = "halve";
    static constexpr auto category = op_category::full_precision_output;
    template <class X, class Y>
    void operator()(std::span<const X> x, std::span<Y> y) const {
        static_assert(std::same_as<X, half>);
        static_assert(std::same_as<Y, float>);
        for (std::size_t i = 0; i < x.size(); ++i) y[i] = static_cast<Y>(static_cast<float>(x[i]) / 3.0F);
    }
};

TEST_CASE("a sum of full_precision_output reads what is there and returns float, or what the call asks for") {
    const half values[] = {half(60000.0F), half(60000.0F), half(0.25F)};
    const auto sum = ac::call<ac::fp16>(sum_op{}, std::span<const half>(values));
    static_assert(std::same_as<decltype(sum), const float>);
    CHECK(sum == 120000.25F);
    const auto narrow = ac::call<ac::fp16>(ac::returning<half>(sum_op{}), std::span<const half>(values));
    static_assert(std::same_as<decltype(narrow), const half>);
    CHECK(isinf(narrow));
    const mp::autocast_region region(mp::precision::fp16);
    CHECK(ac::dispatch(sum_op{}, std::span<const half>(values)) == 120000.25F);
    CHECK(mp::isinf(ac::dispatch(ac::returning<half>(sum_op{}), std::span<const half>(values))));
}

TEST_CASE("an array result of full_precision_output is float before it is the caller's format") {
    const half x[] = {half(1.0F)};
    half y[1] = {};
    ac::call<ac::bf16>(halve_op{}, std::span<const half>(x), ac::out(std::span<half>(y)));
    CHECK(y[0] == half(1.0F / 3.0F));
}

struct add_op {
    static constexpr std::string_view name = "addcmul";
    static constexpr auto category = op_category::promote;
    constexpr auto operator()(auto a, auto b) const { return a + b; }
};

TEST_CASE("a third format in a promotion is refused at run time with the op and the format") {
    const mp::autocast_region region(mp::precision::fp16);
    CHECK(ac::dispatch(add_op{}, half(1.0F), 2.0F) == 3.0F);
    std::string message;
    try {
        (void)ac::dispatch(add_op{}, 1.0F, bfloat16(2.0F));
    } catch (const mp::argument_error& error) {
        message = error.what();
    }
    CHECK(message ==
          "mp::autocast::dispatch: op 'addcmul' promotes its arguments to one type, and one of them is "
          "bfloat16; "
          "it must be float or half, or the op in the category promote_widest");
    const mp::autocast_region other(mp::precision::bf16);
    CHECK(ac::dispatch(add_op{}, 1.0F, bfloat16(2.0F)) == 3.0F);
}

TEST_CASE("explain says that a promotion has a third format") {
    const auto why = ac::explain<ac::fp16, add_op, float, bfloat16>();
    CHECK_FALSE(why.allowed);
    CHECK(why.rule == "the op must not have a third floating-point format among its arguments");
    CHECK(ac::explain<ac::fp16, add_op, float, half>().allowed);
}

TEST_CASE("every category has a name and a sentence") {
    for (int i = 0; i <= static_cast<int>(op_category::banned); ++i) {
        CHECK(mp::name_of(static_cast<op_category>(i)) != "unknown");
        CHECK_FALSE(mp::detail::description_of(static_cast<op_category>(i)).empty());
    }
    CHECK(mp::name_of(op_category::full_precision_output) == "full_precision_output");
    CHECK(mp::name_of(op_category::append_output_type) == "append_output_type");
    CHECK(mp::name_of(op_category::promote) == "promote");
}

}  // namespace
