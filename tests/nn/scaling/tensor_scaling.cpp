// SPDX-License-Identifier: MIT
// Scales of tensors in 8 bits against separate readings of the published rules, by vectors and the floats of
// the compiler.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/block_scaled.hpp>
#include <mp/convert.hpp>
#include <mp/float4.hpp>
#include <mp/float6.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/nn/scaling/tensor_scaling.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "nn/scaling/amax_values.hpp"
#include "nn/scaling/thrown.hpp"

using namespace amax_values;

namespace {

/// Transformer Engine's delayed scaling of one tensor, read from its description: the history in a deque's
/// order, fmax where it says fmax, and the compiler's division.
struct interpreter {
    std::vector<float> history;
    float scale = 1.0F;

    void record(float amax) {
        // The kernels take an atomic maximum of the bits.
        if (bits(amax) > bits(history[0])) history[0] = amax;
    }
    void update(float format_max, int margin, bool most_recent) {
        const float newest = history[0];
        float amax = 0.0F;
        if (newest != 0.0F) {
            std::vector<float> rolled(history.begin() + 1, history.end());
            rolled.push_back(newest);
            for (const float a : rolled) amax = std::fmax(amax, a);
            rolled[0] = 0.0F;
            history = rolled;
        }
        if (most_recent) amax = newest;
        if (std::isfinite(amax) && amax > 0.0F)
            scale = format_max * std::pow(2.0F, -static_cast<float>(margin)) / amax;
        if (std::isinf(scale)) scale = largest;
    }
};

/// The window of a history in the interpreter's form, NaNs as bits.
bool same_window(const mp::amax_window& window, const std::vector<float>& expected) {
    return std::ranges::equal(window, expected, [](float a, float b) { return bits(a) == bits(b); });
}

/// MS-AMP's rule by the compiler's logarithm in double, which is far from an integer where it matters.
float power_of_two_by_logarithm(float format_max, float amax, int margin) {
    const double quotient = static_cast<double>(format_max / amax);
    if (std::isinf(quotient)) return 0x1p127F;
    const int exponent = static_cast<int>(std::floor(std::log2(quotient))) - margin;
    return std::ldexp(1.0F, std::clamp(exponent, -126, 127));
}

template <class State>
std::map<std::string, double> visited(State& state) {
    std::map<std::string, double> found;
    State::visit(
        state, [&found](auto name, auto& member) { found[std::string(name)] = static_cast<double>(member); });
    return found;
}

template <class Value>
void check_amax_of_codes() {
    using word = decltype(Value{}.bits());
    std::vector<Value> values;
    float expected = 0.0F;
    for (std::uint32_t code = 0; code < (sizeof(word) == 1 ? 256U : 65536U); ++code) {
        const Value value = Value::from_bits(static_cast<word>(code));
        const float wide = static_cast<float>(value);
        // One value alone has its own magnitude.
        const float own = mp::amax(mp::cpu{}, std::vector<Value>(3, value));
        CHECK((std::isnan(wide) ? std::isnan(own) : own == std::fabs(wide)));
        if (!std::isfinite(wide)) continue;
        values.push_back(value);
        expected = std::max(expected, std::fabs(wide));
        if (code % 509 == 0) CHECK(mp::amax(mp::cpu{}, values) == expected);
    }
    CHECK(mp::amax(mp::cpu{}, values) == expected);
}

}  // namespace

TEST_CASE("amax of every code of the formats is its magnitude") {
    check_amax_of_codes<mp::half>();
    check_amax_of_codes<mp::bfloat16>();
    check_amax_of_codes<mp::float8_e4m3fn>();
    check_amax_of_codes<mp::float8_e5m2>();
    check_amax_of_codes<mp::float8_e4m3fnuz>();
    check_amax_of_codes<mp::float8_e8m0fnu>();
}

TEST_CASE(
    "amax finds the largest magnitude, infinity and NaN wherever they are, with any number of threads") {
    std::mt19937 random(7);
    for (const std::size_t size : {1U, 63U, 64U, 65U, 5000U, 600001U}) {
        std::vector<float> values(size);
        for (float& value : values) value = std::ldexp(static_cast<float>(random()), -40);
        values[random() % size] = -1.0F;
        for (const int threads : {1, 2, 3}) {
            const mp::cpu exec{threads};
            CHECK(mp::amax(exec, values) == 1.0F);
            const std::size_t at = random() % size;
            const float old = values[at];
            for (const float special : {-largest, infinity, -infinity}) {
                values[at] = special;
                CHECK(mp::amax(exec, values) == std::fabs(special));
            }
            values[0] = infinity;
            values[size - 1] = -not_a_number;
            CHECK(std::isnan(mp::amax(exec, values)));
            values[0] = values[size - 1] = 0.5F;
            values[at] = old;
            if (at == 0 || at == size - 1 || mp::amax(exec, values) != 1.0F) values[at] = -1.0F;
        }
    }
    CHECK(mp::amax(mp::cpu{}, std::vector<float>{}) == 0.0F);
    CHECK(mp::amax(mp::cpu{}, std::array{-0.0F}) == 0.0F);
    CHECK(bits(mp::amax(mp::cpu{}, std::array{-0.0F})) == 0);
    CHECK(mp::amax(mp::cpu{}, std::array{-smallest}) == smallest);
    CHECK(thrown<mp::argument_error>([] { (void)mp::amax(mp::cpu{0}, std::array{1.0F}); }) ==
          "mp::amax: exec.threads is 0; it must be at least 1");
    CHECK(holds(thrown<mp::argument_error>([] {
                    (void)mp::amax(mp::cpu{}, std::span<const float>(static_cast<const float*>(nullptr), 2));
                }),
                "values.data()"));
}

TEST_CASE("amax over ranks is the largest of each place, and a NaN of one rank reaches all") {
    /// Two ranks, of which the other one's values are known; more than one chunk of values.
    struct reducer {
        std::vector<float> other;
        std::size_t at = 0;
        void max(std::span<std::uint64_t> values) {
            for (std::uint64_t& value : values) value = std::max<std::uint64_t>(value, bits(other[at++]));
        }
        void sum(std::span<std::uint64_t>) {}
    };
    std::vector<float> mine(600);
    std::vector<float> other(600);
    std::vector<float> expected(600);
    for (std::size_t i = 0; i < mine.size(); ++i) {
        mine[i] = static_cast<float>((i * 37) % 101);
        other[i] = static_cast<float>((i * 53) % 97);
        expected[i] = std::max(mine[i], other[i]);
    }
    other[3] = infinity;
    expected[3] = infinity;
    other[599] = not_a_number;
    mine[5] = -1000.0F;  // signs are dropped
    expected[5] = 1000.0F;
    reducer ranks{other};
    mp::reduce_amax(ranks, mine);
    CHECK(std::isnan(mine[599]));
    mine[599] = expected[599];
    CHECK(mine == expected);
    float one = 2.0F;
    reducer pair{{8.0F}};
    mp::reduce_amax(pair, one);
    CHECK(one == 8.0F);
    mp::single_rank alone;
    mp::reduce_amax(alone, one);
    CHECK(one == 8.0F);
}

TEST_CASE("current scaling is Transformer Engine's rule for every kind of amax") {
    std::mt19937 random(11);
    for (const float format_max : {448.0F, 57344.0F, 240.0F, 6.0F, 1.0F}) {
        for (const float epsilon : {0.0F, 1e-12F, 1.0F}) {
            for (int i = 0; i < 20000; ++i) {
                const float amax = any_amax(random);
                const float raised = amax < epsilon ? epsilon : amax;
                float expected = 1.0F;
                if (std::isfinite(raised) && raised != 0.0F) {
                    expected = format_max / raised;
                    if (std::isinf(expected)) expected = largest;
                }
                const mp::current_scaling recipe{format_max, epsilon};
                CHECK(bits(recipe.scale(amax)) == bits(expected));
                const float power = mp::current_scaling{format_max, epsilon, true}.scale(amax);
                CHECK(power == std::ldexp(1.0F, std::ilogb(expected)));
            }
        }
    }
    // Where the given maximum of a narrower type stands for infinity.
    constexpr mp::current_scaling narrow{448.0F, 0.0F, false, 0x1.fep127F};
    static_assert(narrow.scale(0x1p-140F) == 0x1.fep127F);
    static_assert(narrow.scale(56.0F) == 8.0F);
    static_assert(mp::current_scaling{}.scale(0.0F) == 1.0F);
    CHECK(mp::current_scaling{.power_of_two = true}.scale(smallest) == 0x1p127F);
}

TEST_CASE("torchao's scaling is a division in double, rounded to float") {
    std::mt19937 random(13);
    for (const float format_max : {448.0F, 57344.0F}) {
        for (int i = 0; i < 20000; ++i) {
            const float amax = any_amax(random);
            const float scale = mp::torchao_scaling{format_max}.scale(amax);
            if (std::isnan(amax)) {
                CHECK(std::isnan(scale));
                continue;
            }
            const double divisor = std::max(static_cast<double>(amax), 1e-12);
            const auto expected = static_cast<float>(static_cast<double>(format_max) / divisor);
            CHECK(bits(scale) == bits(expected));
            const float power = mp::torchao_scaling{format_max, 1e-12, true}.scale(amax);
            CHECK(power == (expected == 0.0F ? 0.0F : std::ldexp(1.0F, std::ilogb(expected))));
        }
    }
    static_assert(mp::torchao_scaling{}.scale(0.0F) == static_cast<float>(448.0 / 1e-12));
    static_assert(mp::torchao_scaling{}.scale(2.0F) == 224.0F);
}

TEST_CASE("delayed scaling goes as Transformer Engine's for any sequence of amax values") {
    std::mt19937 random(17);
    for (const std::int32_t length : {1, 2, 3, 16}) {
        for (const bool most_recent : {false, true}) {
            for (const int margin : {0, 1, 5}) {
                const mp::delayed_scaling policy{
                    57344.0F, margin,
                    most_recent ? mp::amax_algorithm::most_recent : mp::amax_algorithm::max};
                mp::amax_history history(length);
                interpreter expected{std::vector<float>(static_cast<std::size_t>(length))};
                for (int iteration = 0; iteration < 400; ++iteration) {
                    CAPTURE(iteration);
                    for (auto calls = random() % 3; calls > 0; --calls) {
                        const float amax = any_amax(random);
                        history.record(amax);
                        expected.record(amax);
                    }
                    const float before = history.scale();
                    const float newest = history.newest();
                    const mp::amax_update update = history.update(policy);
                    expected.update(57344.0F, margin, most_recent);
                    CHECK(bits(history.scale()) == bits(expected.scale));
                    CHECK(same_window(history.window(), expected.history));
                    CHECK(update.before == before);
                    CHECK(update.after == history.scale());
                    CHECK((update.kind == mp::amax_update_kind::unused) == (newest == 0.0F));
                    if (update.kind != mp::amax_update_kind::scaled) CHECK(update.after == before);
                }
            }
        }
    }
}

TEST_CASE(
    "the amax that falls out of the window still counts, and a module that does not run rolls nothing") {
    mp::amax_history history(3);
    const mp::delayed_scaling policy;
    const auto iterate = [&](float amax) {
        history.record(amax);
        return history.update(policy);
    };
    CHECK(iterate(448.0F).after == 1.0F);
    CHECK(iterate(4.0F).after == 1.0F);
    CHECK(same_window(history.window(), {0.0F, 448.0F, 4.0F}));
    // Unused: nothing falls out, however often.
    for (int i = 0; i < 5; ++i) {
        CHECK(iterate(0.0F).kind == mp::amax_update_kind::unused);
        CHECK(same_window(history.window(), {0.0F, 448.0F, 4.0F}));
    }
    CHECK(iterate(2.0F) == mp::amax_update{1.0F, 1.0F, 448.0F, mp::amax_update_kind::scaled});
    CHECK(iterate(2.0F) == mp::amax_update{1.0F, 112.0F, 4.0F, mp::amax_update_kind::scaled});
    CHECK(iterate(2.0F) == mp::amax_update{112.0F, 224.0F, 2.0F, mp::amax_update_kind::scaled});
    // An infinity keeps the scale for as long as it is in the window; a NaN only where it is picked.
    CHECK(iterate(infinity).kind == mp::amax_update_kind::non_finite);
    CHECK(iterate(1.0F).kind == mp::amax_update_kind::non_finite);
    CHECK(iterate(1.0F).kind == mp::amax_update_kind::non_finite);
    CHECK(iterate(1.0F).after == 448.0F);
    CHECK(iterate(not_a_number).kind == mp::amax_update_kind::scaled);
    CHECK(history.scale() == 448.0F);
}

TEST_CASE("a tiny amax has the largest float for its scale, which the next update replaces") {
    mp::amax_history history(1);
    const mp::delayed_scaling policy;
    history.record(smallest);
    CHECK(history.update(policy).after == largest);
    history.record(0x1p-119F);
    CHECK(history.update(policy).after == 448.0F * 0x1p119F);
    history.record(0x1p-120F);
    CHECK(history.update(policy).after == largest);
    history.record(7.0F);
    CHECK(history.update(policy).after == 64.0F);
    // The same amax again: the same scale.
    history.record(7.0F);
    CHECK(history.update(policy).after == 64.0F);
    // The margin lowers it.
    history.record(7.0F);
    CHECK(history.update({.margin = 3}).after == 8.0F);
}

TEST_CASE("recording the same amax again changes nothing") {
    mp::fixed_amax_history<4> once;
    once.record(3.0F);
    mp::fixed_amax_history<4> twice = once;
    twice.record(3.0F);
    twice.record(-2.0F);
    CHECK(once == twice);
}

TEST_CASE("MS-AMP's scales are powers of two, and what is not finite is left out of its window") {
    std::mt19937 random(19);
    for (const int margin : {0, 2}) {
        const mp::delayed_scaling policy{448.0F, margin, mp::amax_algorithm::max, mp::delayed_rule::ms_amp};
        mp::amax_history history(4);
        std::vector<float> window(4);
        float scale = 1.0F;
        int warm = 0;
        for (int iteration = 0; iteration < 2000; ++iteration) {
            const float amax = any_amax(random);
            history.record(amax);
            history.update(policy);
            const bool finite = std::isfinite(amax);
            window[0] = finite ? amax : 0.0F;
            const float most = *std::max_element(window.begin(), window.end());
            if (most > 0.0F) scale = power_of_two_by_logarithm(448.0F, most, margin);
            std::rotate(window.begin(), window.begin() + 1, window.end());
            window[0] = 0.0F;
            warm = finite ? warm + 1 : 0;
            CHECK(history.scale() == scale);
            CHECK(same_window(history.window(), window));
            CHECK(history.warming_up() == (warm < 4));
        }
    }
    // An infinity leaves the scale to what is behind it in the window.
    mp::amax_history two(2);
    for (const auto& [amax, scale] : {std::pair{8.0F, 32.0F}, {1.0F, 32.0F}, {infinity, 256.0F}}) {
        two.record(amax);
        const mp::amax_update update = two.update({.rule = mp::delayed_rule::ms_amp});
        CHECK(update.after == scale);
        CHECK(update.kind ==
              (amax < infinity ? mp::amax_update_kind::scaled : mp::amax_update_kind::non_finite));
    }
    two.record(not_a_number);
    CHECK(two.update({.rule = mp::delayed_rule::ms_amp}) ==
          mp::amax_update{256.0F, 256.0F, 0.0F, mp::amax_update_kind::non_finite});
    // The examples of its own tests.
    const mp::delayed_scaling policy{.rule = mp::delayed_rule::ms_amp};
    CHECK(policy.scale_for(0.0F, 1.0F) == 1.0F);
    CHECK(policy.scale_for(10.0F, 1.0F) == 32.0F);
    CHECK(policy.scale_for(10000.0F, 1.0F) == 1.0F / 32.0F);
    CHECK(policy.scale_for(smallest, 1.0F) == 0x1p127F);
    CHECK(mp::delayed_scaling{1.0F, 64, {}, mp::delayed_rule::ms_amp}.scale_for(largest, 1.0F) == 0x1p-126F);
}

TEST_CASE("an algorithm of the user's sees the newest amax first and the oldest next") {
    mp::amax_history history(4);
    const mp::delayed_scaling policy;
    for (const float amax : {1.0F, 2.0F, 3.0F}) {
        history.record(amax);
        history.update(policy);
    }
    history.record(4.0F);
    std::vector<float> seen;
    const mp::amax_update update = history.update(policy, [&](const mp::amax_window& window) {
        seen.assign(window.begin(), window.end());
        return (window[0] + window[window.size() - 1]) / 2.0F;
    });
    CHECK(seen == std::vector<float>{4.0F, 1.0F, 2.0F, 3.0F});
    CHECK(update.amax == 3.5F);
    CHECK(update.after == 128.0F);
    CHECK(same_window(history.window(), {0.0F, 2.0F, 3.0F, 4.0F}));
    history.record(1.0F);
    CHECK(history.update(policy, [](const mp::amax_window&) { return 0.0F; }).kind ==
          mp::amax_update_kind::zero);
    CHECK(history.scale() == 128.0F);
}

TEST_CASE("a history of constant length goes through the same states as one of run-time length") {
    static_assert(std::is_trivially_copyable_v<mp::fixed_amax_history<>>);
    static_assert(sizeof(mp::fixed_amax_history<1024>) == 1024 * 4 + 8);
    std::mt19937 random(23);
    mp::fixed_amax_history<5> fixed;
    mp::amax_history dynamic(5);
    const mp::delayed_scaling policy;
    for (int iteration = 0; iteration < 200; ++iteration) {
        const float amax = any_amax(random);
        fixed.record(amax);
        dynamic.record(amax);
        CHECK(fixed.update(policy) == dynamic.update(policy));
        CHECK(same_window({fixed.history, 5}, {dynamic.window().begin(), dynamic.window().end()}));
    }
    CHECK(fixed.warming_up() == dynamic.warming_up());
    CHECK(mp::amax_history().length() == 1024);
}

TEST_CASE("delayed scaling is a constant expression") {
    constexpr mp::fixed_amax_history<3> history = [] {
        mp::fixed_amax_history<3> state;
        for (const float amax : {7.0F, 0.0F, 3.5F}) {
            state.record(amax);
            state.update(mp::delayed_scaling{});
        }
        return state;
    }();
    static_assert(history.scale == 64.0F);
    static_assert(history.updates == 2);
    static_assert(history.history[1] == 7.0F && history.history[2] == 3.5F);
    CHECK(history.scale == 64.0F);
}

TEST_CASE("a history that was saved and restored goes on as if nothing had happened") {
    const mp::delayed_scaling policy;
    mp::amax_history history(12);
    for (int i = 1; i < 20; ++i) {
        history.record(static_cast<float>(i));
        history.update(policy);
    }
    const std::map<std::string, double> saved = visited(history);
    CHECK(saved.size() == 14);
    CHECK(saved.at("amax_history_11") == 19.0);
    CHECK(saved.at("amax_history_1") == 9.0);
    mp::amax_history restored(12);
    mp::amax_history::visit(restored, [&](auto name, auto& member) {
        member = static_cast<std::remove_reference_t<decltype(member)>>(saved.at(std::string(name)));
    });
    CHECK(restored == history);
    policy.validate(restored.view());
    mp::fixed_amax_history<12> fixed;
    CHECK(visited(fixed).size() == 14);
    mp::delayed_scaling visited_policy;
    CHECK(visited(visited_policy).at("format_max") == 448.0);
    mp::current_scaling visited_current;
    CHECK(visited(visited_current).at("amax_epsilon") == 0.0);
    mp::torchao_scaling visited_torchao;
    CHECK(visited(visited_torchao).at("amax_epsilon") == 1e-12);
    history.reset(2.0F);
    CHECK(history.scale() == 2.0F);
    CHECK(history.warming_up());
    CHECK(same_window(history.window(), std::vector<float>(12)));
}

TEST_CASE("parameters and states that make no sense are named") {
    const auto message = [](auto value) { return thrown<mp::argument_error>([&] { value.validate(); }); };
    CHECK(message(mp::delayed_scaling{}) == "(nothing was thrown)");
    CHECK(message(mp::delayed_scaling{.margin = -1}) ==
          "mp::delayed_scaling: margin is -1; it must be at least 0 and at most 64");
    CHECK(holds(message(mp::delayed_scaling{.margin = 65}), "margin is 65"));
    CHECK(holds(message(mp::delayed_scaling{.format_max = infinity}), "format_max is inf"));
    CHECK(holds(message(mp::delayed_scaling{.format_max = 0.5F}), "format_max is 0.5"));
    CHECK(holds(message(mp::current_scaling{.format_max = not_a_number}), "format_max"));
    CHECK(holds(message(mp::current_scaling{.epsilon = -1.0F}), "epsilon is -1"));
    CHECK(holds(message(mp::current_scaling{.largest_scale = 0.0F}), "largest_scale is 0"));
    CHECK(holds(message(mp::torchao_scaling{.epsilon = 0.0}), "epsilon is 0"));
    CHECK(holds(message(mp::torchao_scaling{.format_max = -448.0F}), "format_max is -448"));
    CHECK(thrown<mp::argument_error>([] { mp::amax_history(0); }) ==
          "mp::amax_history: length is 0; it must be at least 1");
    CHECK(holds(thrown<mp::argument_error>([] { mp::amax_history(-3); }), "length is -3"));
    CHECK(holds(thrown<mp::argument_error>([] { mp::amax_history(4, 0.0F); }), "initial_scale is 0"));
    mp::amax_history history(4);
    CHECK(holds(thrown<mp::argument_error>([&] { history.reset(not_a_number); }), "scale"));
    history.view().history[2] = -1.0F;
    CHECK(thrown<mp::argument_error>([&] { mp::delayed_scaling{}.validate(history.view()); }) ==
          "mp::delayed_scaling: state.history[2] is -1; it must not be negative");
    history.view().history[2] = 1.0F;
    *history.view().updates = -1;
    CHECK(holds(thrown<mp::argument_error>([&] { mp::delayed_scaling{}.validate(history.view()); }),
                "state.updates is -1"));
    *history.view().updates = 0;
    *history.view().scale = infinity;
    CHECK(holds(thrown<mp::argument_error>([&] { mp::delayed_scaling{}.validate(history.view()); }),
                "state.scale is inf"));
}

TEST_CASE("block scales are those that quantising a block gives") {
    CHECK_THROWS_WITH_AS(
        (void)mp::power_of_two_block_scale<mp::float4_e2m1fn>(1.0F, mp::scale_rule::four_over_six_mse),
        "mp::power_of_two_block_scale: rule is 'four_over_six_mse'; it must be a rule for scales that are "
        "powers of two",
        mp::argument_error);
    std::mt19937 random(31);
    for (const mp::scale_rule rule :
         {mp::scale_rule::standard, mp::scale_rule::floor, mp::scale_rule::ceil, mp::scale_rule::even,
          mp::scale_rule::nearest, mp::scale_rule::torchao_rceil, mp::scale_rule::torchao_ceil}) {
        for (int i = 0; i < 500; ++i) {
            std::vector<float> block(32);
            for (float& value : block) value = any_amax(random);
            if (i % 4 != 0) {
                for (float& value : block) {
                    if (!std::isfinite(value)) value = 1.0F;
                }
            }
            const auto quantized = mp::quantize<mp::mxfp8_e4m3>(mp::cpu{}, block, {.rule = rule});
            CHECK(mp::power_of_two_block_scale<mp::float8_e4m3fn>(mp::amax(mp::cpu{}, block), rule).bits() ==
                  quantized.scales()[0].bits());
        }
    }
}
