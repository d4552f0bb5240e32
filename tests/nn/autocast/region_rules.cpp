// SPDX-License-Identifier: MIT
// What regions with options decide: lists, rules, layers, devices, and which of them wins.
// alone: it specialises templates of the library
#include <doctest/doctest.h>
#include <mp/autocast.hpp>

#include <array>
#include <string>
#include <string_view>
#include <thread>

namespace {

using mp::autocast_layer;
using mp::autocast_region;
using mp::half;
using mp::op_category;
using mp::precision;
namespace ac = mp::autocast;

// Dispatched on a float, these return 1 + 2^-12, which half rounds to 1 and bfloat16 as well.
constexpr float fine = 1.0F + 0x1p-12F;

struct identity_op {
    static constexpr std::string_view name = "identity";
    static constexpr std::array<std::string_view, 2> known_as = {"Identity", "_copy"};
    static constexpr auto category = op_category::pass_through;
    constexpr auto operator()(auto x) const { return x; }
};
struct identity_backward_op {
    static constexpr std::string_view name = "identity_backward";
    using forward_op = identity_op;
    static constexpr auto category = op_category::pass_through;
    constexpr auto operator()(auto x) const { return x; }
};

bool is_low() {
    return ac::dispatch(identity_op{}, fine) == 1.0F;
}
bool backward_is_low() {
    return ac::dispatch(identity_backward_op{}, fine) == 1.0F;
}

// MXNet's rule for LeakyReLU, in small.
struct leaky_op {
    static constexpr std::string_view name = "leaky";
    static constexpr auto category = op_category::pass_through;
    static constexpr std::string_view parameter(std::string_view parameter_name, auto,
                                                std::string_view kind) {
        return parameter_name == "act_type" ? kind : std::string_view();
    }
    constexpr auto operator()(auto x, std::string_view) const { return x; }
};
constexpr ac::op_rule small_rules[] = {
    {"Identity", op_category::lower_precision},
    {"forbidden", op_category::banned, {}, {}, "it is only an example"},
    {"leaky", op_category::lower_precision},
    {"leaky", op_category::full_precision, "act_type", "elu"},
    {"leaky", op_category::full_precision, "act_type", "selu"},
};
static_assert(ac::is_sorted_list(small_rules));
constexpr ac::op_list small{"small", small_rules, op_category::lower_precision};
constexpr ac::op_list nothing{"nothing", {}, op_category::pass_through};

struct forbidden_op {
    static constexpr std::string_view name = "forbidden";
    static constexpr auto category = op_category::pass_through;
    constexpr auto operator()(auto x) const { return x; }
};
struct stranger_op {
    static constexpr std::string_view name = "stranger";
    static constexpr auto category = op_category::pass_through;
    constexpr auto operator()(auto x) const { return x; }
};
struct registered_op {
    static constexpr std::string_view name = "registered";
    static constexpr auto category = op_category::pass_through;
    constexpr auto operator()(auto x) const { return x; }
};

std::string message_of(const auto& function) {
    try {
        function();
    } catch (const mp::argument_error& error) {
        return error.what();
    } catch (const mp::state_error& error) {
        return error.what();
    }
    return "nothing was thrown";
}

}  // namespace

template <mp::device_kind Device>
inline constexpr auto mp::autocast::registered_category<registered_op, Device> =
    mp::op_category::lower_precision;

namespace {

TEST_CASE("a list gives the category by any name of the op, and backward follows forward") {
    const autocast_region own(precision::fp16);
    CHECK_FALSE(is_low());
    const autocast_region region(precision::fp16, small);
    CHECK(is_low());
    CHECK(backward_is_low());
    CHECK(ac::dispatch(stranger_op{}, fine) == 1.0F);  // not named: what the list says about such ops
    {
        const autocast_region inner(precision::bf16);  // keeps the list
        CHECK(is_low());
        const autocast_region without({.list = &ac::own_categories});
        CHECK_FALSE(is_low());
    }
    {
        const autocast_region other({.list = &nothing});
        CHECK_FALSE(is_low());
        CHECK(mp::autocast_precision() == precision::fp16);
    }
}

TEST_CASE("a rule with a condition looks at the value of the call") {
    const autocast_region region(precision::fp16, small);
    CHECK(ac::dispatch(leaky_op{}, fine, std::string_view("leaky")) == 1.0F);
    CHECK(ac::dispatch(leaky_op{}, fine, std::string_view("elu")) == fine);
    CHECK(ac::dispatch(leaky_op{}, fine, std::string_view("selu")) == fine);
    CHECK(ac::explain_call(leaky_op{}, fine, std::string_view("elu")).text() ==
          "leaky under policy half: float and reduced arguments are cast to float (category full_precision, "
          "the "
          "list small, as 'leaky' with act_type = elu); computes in float, returns float");
    using listed = ac::policy<half, ac::use_list<small>>;
    const auto leaky = [](std::string_view kind) { return ac::call<listed>(leaky_op{}, fine, kind); };
    static_assert(std::same_as<decltype(leaky("")), float>);
    CHECK(leaky("gelu") == 1.0F);
    CHECK(leaky("elu") == fine);
    static_assert(ac::call<listed>(leaky_op{}, fine, std::string_view("selu")) == fine);
    static_assert(ac::call<listed>(identity_op{}, fine) == half(1.0F));
    static_assert(std::same_as<decltype(ac::call<listed>(identity_backward_op{}, fine)), half>);
}

TEST_CASE("a list bans with its reason") {
    const autocast_region region(precision::bf16, small);
    CHECK(message_of([] { (void)ac::dispatch(forbidden_op{}, 1.0F); }) ==
          "mp::autocast::dispatch: op 'forbidden' is banned in an autocast region of precision bf16: it is "
          "only an "
          "example (the list small, as 'forbidden')");
    const autocast_region exact(precision::off);
    CHECK(ac::dispatch(forbidden_op{}, 1.0F) == 1.0F);
}

TEST_CASE("a region bans an op, on one device only if it says so, and lifts a ban") {
    const autocast_region region({.cpu = precision::fp16,
                                  .rules = {{"stranger", op_category::banned, mp::device_kind::cuda},
                                            {"identity", op_category::banned}}});
    CHECK(ac::dispatch(stranger_op{}, fine) == fine);
    CHECK(message_of([] { (void)is_low(); }) ==
          "mp::autocast::dispatch: op 'identity' is banned in an autocast region of precision fp16: the "
          "policy bans "
          "it; call it outside autocast or choose another op (a rule of the region for 'identity')");
    const autocast_region lifted({.list = &small, .rules = {{"forbidden", op_category::full_precision}}});
    CHECK(ac::dispatch(forbidden_op{}, fine) == fine);
}

TEST_CASE("call wins over scope, scope over registration, registration over the list, the list over the op") {
    using keep = ac::override_op<registered_op, op_category::full_precision>;
    const auto low = [](auto result) { return result == 1.0F; };
    const autocast_region own(precision::fp16);
    CHECK(low(ac::dispatch(registered_op{}, fine)));  // registration over the op
    const autocast_region listed(precision::fp16, nothing);
    CHECK(low(ac::dispatch(registered_op{}, fine)));  // and over the list
    CHECK_FALSE(is_low());
    {
        const autocast_region scope({.rules = {{"registered", op_category::full_precision}}});
        CHECK_FALSE(low(ac::dispatch(registered_op{}, fine)));  // scope over registration
        using lower = ac::override_op<registered_op, op_category::lower_precision>;
        CHECK(low(ac::dispatch<lower>(registered_op{}, fine)));  // call over scope
        const autocast_region inner({.rules = {{"registered", op_category::lower_precision}}});
        CHECK(low(ac::dispatch(registered_op{}, fine)));  // the inner scope over the outer
        const autocast_region innermost(precision::bf16);
        CHECK(low(ac::dispatch(registered_op{}, fine)));  // and further in, without rules of its own
    }
    CHECK_FALSE(low(ac::dispatch<keep>(registered_op{}, fine)));
    const autocast_region small_list({.list = &small});
    CHECK(low(ac::dispatch(stranger_op{}, fine)));
    // The same at compile time.
    using policy = ac::policy<half, ac::use_list<nothing>>;
    static_assert(std::same_as<decltype(ac::call<policy>(registered_op{}, fine)), half>);
    static_assert(std::same_as<decltype(ac::call<ac::policy<half, keep>>(registered_op{}, fine)), float>);
    CHECK(ac::explain<policy, registered_op, float>().by == ac::decided_by::registration);
    CHECK(ac::explain<ac::policy<half, keep>, registered_op, float>().by == ac::decided_by::call);
    CHECK(ac::explain<policy, stranger_op, float>().by == ac::decided_by::unlisted);
    CHECK(ac::explain<ac::policy<half, ac::use_list<small>>, identity_op, float>().list == "small");
    CHECK(ac::explain<ac::fp16, stranger_op, float>().by == ac::decided_by::op);
}

TEST_CASE("rules are for ops by name, for all, for layers, for devices; the first that fits wins") {
    const autocast_region region({.cpu = precision::fp16,
                                  .rules = {{"identity", op_category::pass_through, mp::device_kind::cuda},
                                            {"*", op_category::full_precision, {}, "encoder.norm*"},
                                            {"_copy", op_category::lower_precision, mp::device_kind::cpu},
                                            {"identity", op_category::pass_through}}});
    CHECK(is_low());
    CHECK(backward_is_low());
    CHECK_FALSE(ac::dispatch(stranger_op{}, fine) == 1.0F);
    const autocast_layer encoder("encoder");
    CHECK(is_low());
    {
        const autocast_layer norm("norm1");
        CHECK(mp::autocast_layer_path() == "encoder.norm1");
        CHECK_FALSE(is_low());
        CHECK(ac::explain<ac::by_region, identity_op, float>().text() ==
              "identity under policy half: float and reduced arguments are cast to float (category "
              "full_precision, a "
              "rule of the region for '*' in layers 'encoder.norm*'); computes in float, returns float");
    }
    CHECK(is_low());
    CHECK(mp::autocast_layer_path() == "encoder");
}

TEST_CASE("only named ops or layers are cast where the region says so") {
    const autocast_region ops({.cpu = precision::fp16, .list = &small, .only_ops = {"identity", "leaky"}});
    CHECK(is_low());
    CHECK(backward_is_low());
    CHECK(ac::dispatch(stranger_op{}, fine) == fine);
    CHECK(ac::dispatch(forbidden_op{}, fine) == fine);  // a ban holds where ops are cast
    CHECK(ac::explain<ac::by_region, stranger_op, float>().rule ==
          "the region casts in other ops or layers only");
    const autocast_region layers({.only_layers = {"head", "block.?.mlp*"}});
    CHECK_FALSE(is_low());
    const autocast_layer block("block");
    const autocast_layer number("7");
    CHECK_FALSE(is_low());
    const autocast_layer mlp("mlp_in");
    CHECK(is_low());
    CHECK(ac::dispatch(stranger_op{}, fine) == fine);  // both conditions hold
}

TEST_CASE("each device has a precision of its own") {
    const autocast_region region({.cpu = precision::bf16, .cuda = precision::fp16});
    CHECK(mp::autocast_precision() == precision::bf16);
    CHECK(mp::autocast_precision(mp::device_kind::cuda) == precision::fp16);
    const autocast_region cpu_only({.cuda = precision::off});
    CHECK(mp::autocast_active(mp::device_kind::cpu));
    CHECK_FALSE(mp::autocast_active(mp::device_kind::cuda));
    const autocast_region only_cuda({.cpu = precision::off, .cuda = precision::fp8});
    CHECK_FALSE(is_low());
    CHECK(message_of(
              [] { const autocast_region refused({.cuda = precision::bf16, .compute_capability = 75}); }) ==
          "mp::autocast_region: cuda is 'bf16'; it must be a precision that CUDA devices of compute "
          "capability 75 "
          "have");
    CHECK(mp::supports(mp::device_kind::cuda, precision::bf16, 80));
    CHECK(mp::supports(mp::device_kind::cuda, precision::fp16, 75));
    CHECK_FALSE(mp::supports(mp::device_kind::cuda, precision::fp8, 86));
    CHECK(mp::supports(mp::device_kind::cuda, precision::fp8));
    CHECK(mp::supports(mp::device_kind::cpu, precision::fp8, 10));
    CHECK(mp::autocast_precision(mp::device_kind::cuda) == precision::fp8);
}

TEST_CASE("bad options are refused by name, and change nothing") {
    CHECK(message_of([] { const autocast_region bad({.rules = {{"", op_category::banned}}}); }) ==
          "mp::autocast_region: rules[].op is ''; it must be the name of an op or '*'");
    CHECK(message_of([] { const autocast_region bad({.rules = {{"x", static_cast<op_category>(77)}}}); }) ==
          "mp::autocast_region: rules[].category is 77; it must be an enumerator of mp::op_category");
    CHECK(message_of([] { const autocast_region bad({.only_ops = {""}}); }) ==
          "mp::autocast_region: only_ops[] is ''; it must be the name of an op");
    CHECK(message_of([] { const autocast_region bad({.only_layers = {"a", ""}}); }) ==
          "mp::autocast_region: only_layers[] is ''; it must be the name of a layer or a pattern");
    CHECK_FALSE(mp::autocast_active());
}

TEST_CASE("a token carries rules, list and layer to another thread and past the end of its region") {
    mp::autocast_token token;
    {
        const autocast_region outer(
            {.cpu = precision::fp16, .rules = {{"stranger", op_category::full_precision}}});
        const autocast_region inner({.list = &small, .rules = {{"leaky", op_category::pass_through}}});
        const autocast_layer layer("decoder");
        token = mp::capture_autocast();
    }
    bool identity = false;
    float stranger = 0.0F;
    float leaky = 0.0F;
    std::string layer;
    std::thread worker([&] {
        const autocast_layer mine("mine");
        {
            const autocast_region region(token);
            identity = is_low();
            stranger = ac::dispatch(stranger_op{}, fine);
            leaky = ac::dispatch(leaky_op{}, fine, std::string_view("relu"));
            layer = mp::autocast_layer_path();
        }
        layer += "/" + std::string(mp::autocast_layer_path());
    });
    worker.join();
    CHECK(identity);
    CHECK(stranger == fine);
    CHECK(leaky == fine);
    CHECK(layer == "decoder/mine");
}

TEST_CASE("patterns match whole names") {
    CHECK(ac::matches_pattern("", ""));
    CHECK_FALSE(ac::matches_pattern("", "a"));
    CHECK(ac::matches_pattern("*", ""));
    CHECK(ac::matches_pattern("a*c", "abbc"));
    CHECK(ac::matches_pattern("a*c", "ac"));
    CHECK(ac::matches_pattern("*a*b*", "xxaxxbxx"));
    CHECK_FALSE(ac::matches_pattern("a*c", "acb"));
    CHECK(ac::matches_pattern("a?c", "abc"));
    CHECK_FALSE(ac::matches_pattern("a?c", "ac"));
    CHECK(ac::matches_pattern("*ab", "aab"));  // needs to go back
    CHECK_FALSE(ac::matches_pattern("layer", "layers"));
}

}  // namespace
