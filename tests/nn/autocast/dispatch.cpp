// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/autocast.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace {

using mp::bfloat16;
using mp::half;
using mp::op_category;
namespace ac = mp::autocast;

// A user's own op, registered by three lines.
struct squash_op {
    static constexpr std::string_view name = "squash";
    static constexpr auto category = op_category::full_precision;
    constexpr auto operator()(auto x) const { return x / (decltype(x)(1) + x * x); }
};

struct multiply_op {
    static constexpr std::string_view name = "multiply";
    static constexpr auto category = op_category::lower_precision;
    constexpr auto operator()(auto a, auto b) const { return a * b; }
};

struct add_op {
    static constexpr std::string_view name = "add";
    static constexpr auto category = op_category::promote_widest;
    constexpr auto operator()(auto a, auto b) const { return a + b; }
};

struct less_op {
    static constexpr std::string_view name = "less";
    static constexpr auto category = op_category::lower_precision;
    constexpr bool operator()(auto a, auto b) const { return a < b; }
};

// Its kernel returns the float that it summed in; the policy says that the result is low precision.
struct dot_op {
    static constexpr std::string_view name = "dot";
    static constexpr auto category = op_category::lower_precision;
    template <class A, class B>
    float operator()(std::span<const A> a, std::span<const B> b) const {
        float sum = 0;
        for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<float>(a[i]) * static_cast<float>(b[i]);
        return sum;
    }
};

/// What a kernel has seen of its arguments.
struct sighting {
    const void* x = nullptr;
    const void* y = nullptr;
    std::string_view x_type;
    std::string_view y_type;
    bool autocast_was_active = false;
};

// y = alpha x, or y += alpha x through in_out.
template <op_category Category, bool InFloat = false>
struct scale_op {
    static constexpr std::string_view name = "scale";
    static constexpr auto category = Category;
    static constexpr bool computes_in_float = InFloat;
    sighting* seen;

    template <class X, class Y>
    void operator()(mp::cpu, float alpha, std::span<const X> x, std::span<Y> y, bool add) const {
        *seen = {x.data(), y.data(), ac::type_name<X>(), ac::type_name<Y>(), mp::autocast_active()};
        for (std::size_t i = 0; i < x.size(); ++i) {
            const float old = add ? static_cast<float>(y[i]) : 0.0F;
            y[i] = mp::round_to<Y>(old + alpha * static_cast<float>(x[i]));
        }
    }
};

// y = a x + b, where b is added in float.
struct biased_op {
    static constexpr std::string_view name = "biased";
    static constexpr auto category = op_category::promote_widest;
    std::string_view* types;

    static void validate(const auto&, std::span<const float> bias, const auto&) {
        if (bias.empty()) throw mp::argument_error("no bias");
    }
    template <class X, class B, class Y>
    void operator()(std::span<const X> x, std::span<const B> bias, std::span<Y> y) const {
        types[0] = ac::type_name<X>();
        types[1] = ac::type_name<B>();
        types[2] = ac::type_name<Y>();
        for (std::size_t i = 0; i < x.size(); ++i) {
            y[i] = static_cast<Y>(static_cast<float>(x[i]) + static_cast<float>(bias[i]));
        }
    }
};

struct checked_op {
    static constexpr std::string_view name = "checked";
    static constexpr auto category = op_category::lower_precision;
    static void validate(const auto& x, const auto& y) {
        static_assert(std::same_as<std::remove_cvref_t<decltype(x)>, std::span<const float>>);
        if (x.size() != y.view.size()) throw mp::argument_error("sizes differ");
    }
    template <class X, class Y>
    void operator()(std::span<const X> x, std::span<Y> y) const {
        for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i];
        if (x[0] == X(13.0F)) throw std::runtime_error("the kernel fails");
    }
};

struct banned_op {
    static constexpr std::string_view name = "binary_cross_entropy";
    static constexpr auto category = op_category::banned;
    static constexpr auto banned_reason =
        ac::fixed_string("its logarithm of a rounded probability overflows; use the form with logits");
    constexpr auto operator()(auto x) const { return x + x; }
};

const std::array<float, 5> values = {0.1F, -1.0F / 3, 1000.001F, 70000.0F, 1e-8F};

// Numbers, at compile time: the result equals the cast and the operation written by hand.
static_assert(std::same_as<decltype(ac::call<ac::fp16>(multiply_op{}, 0.1F, 0.3F)), half>);
static_assert(ac::call<ac::fp16>(multiply_op{}, 0.1F, 0.3F) == half(0.1F) * half(0.3F));
static_assert(ac::call<ac::bf16>(multiply_op{}, 0.1F, half(0.3F)) == bfloat16(0.1F) * bfloat16(half(0.3F)));
static_assert(ac::call<ac::off>(multiply_op{}, 0.1F, 0.3F) == 0.1F * 0.3F);
static_assert(ac::call<ac::fp16>(squash_op{}, half(3)) == 3.0F / (1.0F + 9.0F));
static_assert(std::same_as<decltype(ac::call<ac::fp16>(squash_op{}, half(3))), float>);
static_assert(std::same_as<decltype(ac::call<ac::fp16>(add_op{}, half(3), half(4))), half>);
static_assert(ac::call<ac::fp16>(add_op{}, half(3), bfloat16(0x1p-20F)) == 3.0F + 0x1p-20F);
static_assert(ac::call<ac::fp16>(multiply_op{}, 0.1, 0.3) == 0.1 * 0.3);  // double is not cast
static_assert(ac::call<ac::fp16>(multiply_op{}, 3, 5) == 15);             // nor are integers
static_assert(!ac::call<ac::fp16>(less_op{}, 1.0F, 1.0001F));             // equal once they are half
static_assert(ac::call<ac::off>(less_op{}, 1.0F, 1.0001F));
static_assert(std::same_as<decltype(ac::call<ac::fp16>(less_op{}, 1.0F, 2.0F)), bool>);

TEST_CASE("arrays are cast, computed and written back as by hand, bit for bit") {
    sighting seen;
    std::array<float, 5> y{};
    ac::call<ac::fp16>(scale_op<op_category::lower_precision>{&seen}, mp::cpu{}, 1.7F, std::span(values),
                       ac::out(std::span(y)), false);
    CHECK(seen.x_type == "half");
    CHECK(seen.y_type == "half");
    for (std::size_t i = 0; i < values.size(); ++i) {
        // alpha is a parameter of an op on arrays: it is not rounded to half.
        const half by_hand(1.7F * static_cast<float>(half(values[i])));
        CHECK(mp::detail::bits_of(y[i]) == mp::detail::bits_of(static_cast<float>(by_hand)));
    }
    CHECK(y[3] == std::numeric_limits<float>::infinity());  // 70000 does not fit in half
    CHECK(y[4] == 0.0F);                                    // and 1e-8 is too small
}

TEST_CASE("where types match nothing is copied") {
    sighting seen;
    std::array<half, 2> x = {half(1), half(2)};
    std::array<half, 2> y{};
    const auto run = [&](auto tag, auto policy) {
        ac::call<decltype(policy)>(tag, mp::cpu{}, 2.0F, std::span(x), ac::out(std::span<half>(y)), false);
    };
    run(scale_op<op_category::lower_precision>{&seen}, ac::fp16{});
    CHECK(seen.x == x.data());
    CHECK(seen.y == y.data());
    CHECK(y[1] == half(4));
    for (const bool in_float : {false, true}) {
        seen = {};
        if (in_float) {
            run(scale_op<op_category::full_precision, true>{&seen}, ac::fp16{});
        } else {
            run(scale_op<op_category::full_precision>{&seen}, ac::fp16{});
        }
        // A kernel that computes in float by itself reads half where it lies; any other gets a copy in float.
        CHECK((seen.x == x.data()) == in_float);
        CHECK((seen.y == y.data()) == in_float);
        CHECK(seen.x_type == (in_float ? "half" : "float"));
        CHECK(y[1] == half(4));
    }
    run(scale_op<op_category::pass_through>{&seen}, ac::bf16{});
    CHECK(seen.x == x.data());
    run(scale_op<op_category::lower_precision>{&seen}, ac::off{});
    CHECK(seen.x == x.data());
    run(scale_op<op_category::lower_precision, true>{&seen}, ac::bf16{});
    CHECK(seen.x != x.data());  // half to bfloat16 is no exact cast
    CHECK(seen.y_type == "bfloat16");
}

TEST_CASE("the widest of the argument types decides a promotion, and the output follows") {
    sighting seen;
    std::array<half, 1> x = {half(0.1F)};
    std::array<float, 1> y{};
    ac::call<ac::bf16>(scale_op<op_category::promote_widest>{&seen}, mp::cpu{}, 3.0F, std::span(x),
                       ac::out(std::span<float>(y)), false);
    CHECK(seen.x == x.data());
    CHECK(seen.y_type == "half");
    CHECK(y[0] == static_cast<float>(half(3.0F * half(0.1F))));
}

TEST_CASE("in_out arrays bring their old values along") {
    sighting seen;
    std::array<float, 2> x = {1.0F, 2.0F};
    std::array<float, 2> y = {0.1F, 4096.0F};
    ac::call<ac::fp16>(scale_op<op_category::lower_precision>{&seen}, mp::cpu{}, 1.0F, std::span(x),
                       ac::in_out(std::span<float>(y)), true);
    CHECK(seen.y_type == "half");
    CHECK(y[0] == static_cast<float>(half(1.0F + half(0.1F))));
    CHECK(y[1] == 4096.0F);  // 4098 is halfway to 4100, and 4096 is even
}

TEST_CASE("an uncast array keeps its type, and does not decide that of the others") {
    std::string_view types[3];
    const biased_op op{types};
    std::array<float, 2> bias = {2000.3F, 1999.6F};
    std::array<half, 2> x = {half(0.5F), half(1)};
    std::array<half, 2> y{};
    const auto seen = [&](std::string_view a, std::string_view b, std::string_view c) {
        CHECK(types[0] == a);
        CHECK(types[1] == b);
        CHECK(types[2] == c);
        CHECK(y[0] == half(2000.8F));
        std::fill(std::begin(types), std::end(types), std::string_view());
        y = {};
    };
    // Among the inputs that decide, the bias would make float the widest.
    ac::call<ac::fp16>(op, std::span(x), ac::uncast(std::span(bias)), ac::out(std::span(y)));
    seen("half", "float", "half");
    {
        const mp::autocast_region region(mp::precision::fp16);
        ac::dispatch(op, std::span(x), ac::uncast(std::span(bias)), ac::out(std::span(y)));
        seen("half", "float", "half");
        const mp::autocast_region lower(
            {.cpu = mp::precision::fp16, .rules = {{"biased", op_category::lower_precision}}});
        std::array<float, 2> wide = {0.5F, 1.0F};
        ac::dispatch(op, std::span(wide), ac::uncast(std::span(bias)), ac::out(std::span(y)));
        seen("half", "float", "half");
    }
    ac::dispatch(op, std::span(x), ac::uncast(std::span(bias)), ac::out(std::span(y)));
    seen("half", "float", "half");
    CHECK_THROWS_AS(
        ac::dispatch(op, std::span(x), ac::uncast(std::span(bias).first(0)), ac::out(std::span(y))),
        mp::argument_error);
    const auto explained = ac::explain<ac::fp16, biased_op, std::span<const float>,
                                       ac::uncast_operand<std::span<const float>>>();
    CHECK(explained.arguments[1].from == "none");
    using types_of_bias = ac::compute_type_t<ac::fp16, biased_op, std::span<const half>,
                                             ac::uncast_operand<std::span<const float>>>;
    static_assert(std::same_as<types_of_bias, half>);
}

TEST_CASE("a number that a kernel returns is rounded to the output type") {
    const std::array<float, 2> a = {100.0F, 0.01F};
    const std::array<float, 2> b = {100.0F, 1.0F};
    const auto result = ac::call<ac::fp16>(dot_op{}, std::span(a.data(), 2), std::span(b.data(), 2));
    static_assert(std::same_as<decltype(result), const half>);
    CHECK(result == half(10000.0F + static_cast<float>(half(0.01F))));
    CHECK(ac::call<ac::off>(dot_op{}, std::span(a.data(), 2), std::span(b.data(), 2)) == 10000.0F + 0.01F);
}

TEST_CASE("validate sees the caller's arguments, and a failed call leaves the outputs alone") {
    const std::array<float, 2> x = {13.0F, 1.0F};
    std::array<float, 3> y = {5.0F, 6.0F, 7.0F};
    CHECK_THROWS_AS(ac::call<ac::fp16>(checked_op{}, std::span<const float>(x), ac::out(std::span<float>(y))),
                    mp::argument_error);
    CHECK_THROWS_AS(
        ac::call<ac::fp16>(checked_op{}, std::span<const float>(x), ac::out(std::span<float>(y).first(2))),
        std::runtime_error);
    CHECK(y == std::array<float, 3>{5.0F, 6.0F, 7.0F});
}

TEST_CASE("the region chooses the policy, and the result is what the static call gives") {
    sighting seen;
    const auto dispatched = [&] {
        std::array<float, 5> y{};
        ac::dispatch(scale_op<op_category::lower_precision>{&seen}, mp::cpu{}, 1.7F, std::span(values),
                     ac::out(std::span(y)), false);
        return y;
    };
    const auto called = [&](auto policy) {
        std::array<float, 5> y{};
        sighting ignored;
        ac::call<decltype(policy)>(scale_op<op_category::lower_precision>{&ignored}, mp::cpu{}, 1.7F,
                                   std::span(values), ac::out(std::span(y)), false);
        return y;
    };
    CHECK(dispatched() == called(ac::off{}));
    CHECK(seen.x_type == "float");
    CHECK(seen.x == values.data());
    const mp::autocast_region region(mp::precision::fp16);
    CHECK(dispatched() == called(ac::fp16{}));
    CHECK(seen.x_type == "half");
    CHECK_FALSE(seen.autocast_was_active);  // ops inside the kernel are not cast again
    CHECK(mp::autocast_active());
    {
        const mp::autocast_region inner(mp::precision::bf16);
        CHECK(dispatched() == called(ac::bf16{}));
        CHECK(seen.x_type == "bfloat16");
    }
    const mp::autocast_region exact(mp::precision::fp16, false);
    CHECK(dispatched() == called(ac::off{}));
}

TEST_CASE("a dispatched number has the widest type of the three policies") {
    const auto product = [] { return ac::dispatch(multiply_op{}, 0.1F, 0.3F); };
    static_assert(std::same_as<decltype(product()), float>);
    CHECK(product() == 0.1F * 0.3F);
    {
        const mp::autocast_region region(mp::precision::fp16);
        CHECK(product() == static_cast<float>(half(0.1F) * half(0.3F)));
    }
    {
        const mp::autocast_region region(mp::precision::bf16);
        CHECK(product() == static_cast<float>(bfloat16(0.1F) * bfloat16(0.3F)));
    }
    static_assert(std::same_as<decltype(ac::dispatch(less_op{}, 1.0F, 2.0F)), bool>);
    static_assert(std::same_as<decltype(ac::dispatch(add_op{}, half(1), half(2))), float>);
    static_assert(std::same_as<decltype(ac::dispatch(add_op{}, 1.0, 2.0)), double>);
}

TEST_CASE("overrides apply to a dispatched call") {
    using keep = ac::override_op<multiply_op, op_category::full_precision>;
    const mp::autocast_region region(mp::precision::fp16);
    CHECK(ac::dispatch<keep>(multiply_op{}, 0.1F, 0.3F) == 0.1F * 0.3F);
    CHECK(ac::call<ac::region_policy<keep>>(multiply_op{}, 0.1F, 0.3F) == 0.1F * 0.3F);
    CHECK(ac::dispatch(multiply_op{}, 0.1F, 0.3F) != 0.1F * 0.3F);
}

TEST_CASE("an exception from a kernel restores the region") {
    const std::array<float, 1> x = {13.0F};
    std::array<float, 1> y = {5.0F};
    const mp::autocast_region region(mp::precision::bf16);
    CHECK_THROWS_AS(ac::dispatch(checked_op{}, std::span<const float>(x), ac::out(std::span<float>(y))),
                    std::runtime_error);
    CHECK(mp::autocast_precision() == mp::precision::bf16);
    CHECK(y[0] == 5.0F);
}

TEST_CASE("a banned op runs outside of regions and is refused with its reason inside") {
    CHECK(ac::dispatch(banned_op{}, 1.5F) == 3.0F);
    CHECK(ac::call<ac::off>(banned_op{}, 1.5F) == 3.0F);
    const mp::autocast_region region(mp::precision::fp16);
    std::string message;
    try {
        (void)ac::dispatch(banned_op{}, 1.5F);
    } catch (const mp::state_error& error) {
        message = error.what();
    }
    CHECK(message ==
          "mp::autocast::dispatch: op 'binary_cross_entropy' is banned in an autocast region of precision "
          "fp16: "
          "its logarithm of a rounded probability overflows; use the form with logits");
    using lifted = ac::override_op<banned_op, op_category::full_precision>;
    CHECK(ac::dispatch<lifted>(banned_op{}, 1.5F) == 3.0F);
    const mp::autocast_region exact(mp::precision::off);
    CHECK(ac::dispatch(banned_op{}, 1.5F) == 3.0F);
}

TEST_CASE("empty arrays are fine") {
    sighting seen;
    ac::call<ac::fp16>(scale_op<op_category::lower_precision>{&seen}, mp::cpu{}, 1.0F,
                       std::span<const float>(), ac::out(std::span<float>()), false);
    CHECK(seen.x_type == "half");
}

TEST_CASE("casts run on the op's executor") {
    std::vector<float> x(100'000, 0.1F);
    std::vector<float> one(x.size());
    std::vector<float> three(x.size());
    sighting seen;
    const scale_op<op_category::lower_precision> scale{&seen};
    ac::call<ac::bf16>(scale, mp::cpu{}, 3.0F, std::span(x), ac::out(std::span(one)), false);
    ac::call<ac::bf16>(scale, mp::cpu{.threads = 3}, 3.0F, std::span(x), ac::out(std::span(three)), false);
    CHECK(one == three);
}

}  // namespace
