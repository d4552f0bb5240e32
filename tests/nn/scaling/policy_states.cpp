// SPDX-License-Identifier: MIT
// What holds of the states of all policies: they can be copied as bytes, the update runs at compile time, a
// failed update leaves everything as it was, and `visit` names every member once.
#include <doctest/doctest.h>
#include <mp/loss_scaling.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "frontends/compat/preset_traces.hpp"

namespace {

using kind = mp::scale_change_kind;

/// A member as it is met by `visit`.
struct visited {
    std::string name;
    std::vector<std::byte> bytes;

    friend bool operator==(const visited&, const visited&) = default;
};

/// All members of a state or a policy, byte for byte.
template <class Rules, class Self>
std::vector<visited> members(const Self& self) {
    std::vector<visited> all;
    Rules::visit(self, [&](std::string_view name, const auto& member) {
        std::vector<std::byte> bytes(sizeof(member));
        std::memcpy(bytes.data(), &member, sizeof(member));
        all.push_back({std::string(name), bytes});
    });
    return all;
}

template <class Rules, class Self>
std::vector<std::string> names(const Self& self) {
    std::vector<std::string> all;
    for (const visited& member : members<Rules>(self)) all.push_back(member.name);
    return all;
}

/// Writes all visited members of one object into another.
template <class Rules, class Self>
void copy_members(const Self& from, Self& to) {
    const std::vector<visited> all = members<Rules>(from);
    std::size_t next = 0;
    Rules::visit(to, [&](std::string_view, auto& member) {
        std::memcpy(&member, all[next].bytes.data(), sizeof(member));
        ++next;
    });
}

/// Whether `visit` reaches every member of `changed`, in which none has its default value: what is copied by
/// it into a default object makes that equal. And no name twice.
template <class Rules, class Self>
bool visits_everything(const Self& changed, std::size_t count) {
    Self copy{};
    copy_members<Rules>(changed, copy);
    std::vector<std::string> all = names<Rules>(changed);
    std::sort(all.begin(), all.end());
    const bool distinct = std::adjacent_find(all.begin(), all.end()) == all.end();
    const std::vector<visited> plain = members<Rules>(Self{});
    const std::vector<visited> other = members<Rules>(changed);
    for (std::size_t i = 0; i < plain.size(); ++i) {
        if (plain[i].bytes == other[i].bytes) return false;  // not changed, so it proves nothing
    }
    return copy == changed && distinct && all.size() == count;
}

template <class Policy>
constexpr bool good_state =
    mp::scale_policy<Policy> && std::is_trivially_copyable_v<mp::scale_state_of<Policy>> &&
    std::is_standard_layout_v<mp::scale_state_of<Policy>> &&
    std::is_same_v<mp::scale_change,
                   decltype(mp::update_scale(std::declval<const Policy&>(),
                                             std::declval<mp::scale_state_of<Policy>&>(),
                                             std::declval<const mp::gradient_observation&>()))>;

static_assert(good_state<mp::pytorch_policy> && good_state<mp::sharded_pytorch_policy> &&
              good_state<mp::tensorflow_policy> && good_state<mp::keras_policy> &&
              good_state<mp::jmp_policy> && good_state<mp::apex_policy> &&
              good_state<mp::apex_fp16_utils_policy> && good_state<mp::apex_hysteresis_policy> &&
              good_state<mp::mxnet_policy> && good_state<mp::deepspeed_policy> &&
              good_state<mp::deepspeed_fused_policy> && good_state<mp::megatron_policy> &&
              good_state<mp::fairseq_policy> && good_state<mp::openseq2seq_policy> &&
              good_state<mp::chainer_policy> && good_state<mp::static_policy> &&
              good_state<mp::logmax_policy> && good_state<mp::histogram_policy> &&
              good_state<mp::dynamic_policy<mp::growth_on_underflow, mp::tolerated_overflow_share, double>>);

/// Three clean iterations, an overflow and a clean one; the scale that follows. At compile time.
template <class Policy>
constexpr double scale_after(const Policy& policy) {
    auto state = mp::initial_scale_state(policy);
    for (int i = 0; i < 3; ++i) mp::update_scale(policy, state, {});
    mp::update_scale(policy, state, {.infinities = 1});
    mp::update_scale(policy, state, {});
    return static_cast<double>(state.scale);
}

static_assert(scale_after(mp::pytorch_policy{.initial_scale = 8.0F, .growth_interval = 2}) == 8.0);
static_assert(scale_after(mp::sharded_pytorch_policy{.initial_scale = 8.0F, .growth_interval = 1}) == 64.0);
static_assert(scale_after(mp::tensorflow_policy{8.0F, 3}) == 8.0);
static_assert(scale_after(mp::keras_policy{8.0F, 3}) == 8.0);
static_assert(scale_after(mp::jmp_policy{9.0F, 3, 3}) == 9.0);
static_assert(scale_after(mp::apex_policy{8.0, 3}) == 8.0);
static_assert(scale_after(mp::apex_fp16_utils_policy{8.0, 2.0, 3}) == 8.0);
static_assert(scale_after(mp::apex_hysteresis_policy{8.0F, 2.0, 0.5, 3}) == 16.0);
static_assert(scale_after(mp::mxnet_policy{8.0, 2.0, 3}) == 8.0);
static_assert(scale_after(mp::deepspeed_policy{8.0, 2, 1}) == 8.0);
static_assert(scale_after(mp::deepspeed_fused_policy{8.0, 2}) == 8.0);
static_assert(scale_after(mp::megatron_policy{8.0F, 1.0F, 2.0F, 0.5F, 3}) == 16.0);
static_assert(scale_after(mp::fairseq_policy{8.0, 2.0, 3}) == 8.0);
static_assert(scale_after(mp::openseq2seq_policy{1.0F, 8.0F, 2.0F, 3}) == 4.0);
static_assert(scale_after(mp::static_policy{8.0F}) == 8.0);
static_assert(scale_after(mp::histogram_policy{8.0F}) == 64.0);
static_assert(scale_after(mp::dynamic_policy<mp::growth_continuous>{.initial_scale = 8.0F}) ==
              static_cast<double>(static_cast<float>(32.0 * 1.0006933874625807)));

/// Leads `policy` through the events, the last of which fails and must leave every member as it was.
template <class Policy>
void check_failure(const Policy& policy, std::string_view events) {
    using rules = mp::detail::rules_type<Policy>;
    policy.validate();
    auto state = mp::initial_scale_state(policy);
    const char last = events.back();
    events.remove_suffix(1);
    for (const char event : events) {
        REQUIRE(mp::update_scale(policy, state, traces::seen(event)).kind != kind::failed);
    }
    const std::vector<visited> before = members<rules>(state);
    const float scale = static_cast<float>(state.scale);
    for (int i = 0; i < 3; ++i) {
        const mp::scale_change change = mp::update_scale(policy, state, traces::seen(last));
        CHECK(change == mp::scale_change{scale, scale, kind::failed});
        CHECK(members<rules>(state) == before);
    }
    mp::validate_scale_state(policy, state);
}

using watchful_policy = mp::dynamic_policy<mp::growth_on_underflow, mp::tolerated_overflow_share, double>;

}  // namespace

TEST_CASE("a failed update leaves every member of the state as it was") {
    SUBCASE("DeepSpeed at its floor") {
        check_failure(mp::deepspeed_policy{.initial_scale = 4.0, .hysteresis = 3}, "icicicii");
    }
    SUBCASE("fairseq at its minimum, with an overflow that is not tolerated and one that is") {
        check_failure(mp::fairseq_policy{.init_scale = 4.0, .tolerance = 0.4, .min_loss_scale = 1.0},
                      "cciiccii");
        check_failure(mp::fairseq_policy{.init_scale = 4.0, .tolerance = 0.4, .min_loss_scale = 4.0},
                      "cccci");
    }
    SUBCASE("a floor, under each growth rule") {
        mp::dynamic_policy<> run{.initial_scale = 4.0F, .floor = {3.0, mp::limit_action::fail}};
        check_failure(run, "ccicci");
        mp::dynamic_policy<mp::growth_by_window> window{.initial_scale = 4.0F,
                                                        .floor = {3.0, mp::limit_action::fail}};
        check_failure(window, "ccicci");
        mp::dynamic_policy<mp::growth_continuous> continuous{.initial_scale = 4.0F,
                                                             .floor = {4.0, mp::limit_action::fail}};
        check_failure(continuous, "i");
        watchful_policy watchful{.initial_scale = 4.0, .floor = {3.0, mp::limit_action::fail}};
        check_failure(watchful, "ccicci");
    }
    SUBCASE("a ceiling") {
        mp::dynamic_policy<mp::growth_after_clean_run, mp::hysteresis_budget> policy{
            .initial_scale = 4.0F, .growth = {2.0, 3}, .ceiling = {8.0, mp::limit_action::fail}};
        check_failure(policy, "iccciccicccccc");
        mp::dynamic_policy<mp::growth_by_window, mp::tolerated_overflow_share> window{
            .initial_scale = 4.0F, .growth = {2.0, 3}, .ceiling = {7.0, mp::limit_action::fail}};
        check_failure(window, "ccc");
    }
    SUBCASE("a NaN") {
        mp::dynamic_policy<mp::growth_by_window, mp::hysteresis_budget> policy{
            .initial_scale = 4.0F, .nans = mp::nan_reaction::fail};
        check_failure(policy, "ccicciin");
    }
    SUBCASE("too many skips") {
        mp::dynamic_policy<mp::growth_after_clean_run, mp::hysteresis_budget> policy{.initial_scale = 64.0F,
                                                                                     .skip_tolerance = 3};
        check_failure(policy, "cciicciiin");
    }
}

TEST_CASE("a failed update behind a lag changes neither scale") {
    mp::lagged_policy<mp::dynamic_policy<>> policy;
    policy.rules_ahead.initial_scale = 8.0F;
    policy.rules_ahead.floor = {4.0, mp::limit_action::fail};
    auto state = mp::initial_scale_state(policy);
    CHECK(mp::update_scale(policy, state, {.nans = 1}) == mp::scale_change{8.0F, 8.0F, kind::backed_off});
    const auto before = state;
    for (int i = 0; i < 3; ++i) {
        CHECK(mp::update_scale(policy, state, {.nans = 1}) == mp::scale_change{8.0F, 8.0F, kind::failed});
        CHECK(state == before);
    }
    CHECK(mp::update_scale(policy, state, {}) == mp::scale_change{8.0F, 4.0F, kind::unchanged});
}

TEST_CASE("visit names the members of states, and every one of them") {
    using strings = std::vector<std::string>;
    CHECK(names<mp::dynamic_policy<>>(mp::scale_state{}) ==
          strings{"growth_tracker", "scale", "skipped", "disabled"});
    CHECK(visits_everything<mp::dynamic_policy<>>(mp::scale_state{2.0F, {3}, {}, 4, true}, 4));

    using budget = mp::dynamic_policy<mp::growth_by_window, mp::hysteresis_budget, double>;
    CHECK(names<budget>(budget::state_type{}) ==
          strings{"iteration", "last_overflow", "hysteresis_left", "scale", "skipped", "disabled"});
    CHECK(visits_everything<budget>(budget::state_type{2.0, {3, 4}, {5}, 6, true}, 6));

    using share = mp::dynamic_policy<mp::growth_by_window, mp::tolerated_overflow_share, double>;
    CHECK(names<share>(share::state_type{}) == strings{"iteration", "last_overflow", "tolerance_iteration",
                                                       "last_change", "overflows_since_change", "scale",
                                                       "skipped", "disabled"});
    CHECK(visits_everything<share>(share::state_type{2.0, {3, 4}, {5, 6, 7}, 8, true}, 8));

    using continuous = mp::dynamic_policy<mp::growth_continuous>;
    CHECK(visits_everything<continuous>(continuous::state_type{2.0F, {true}, {}, 3, true}, 4));
    using watchful = mp::dynamic_policy<mp::growth_on_underflow>;
    CHECK(visits_everything<watchful>(watchful::state_type{2.0F, {3, 4}, {}, 5, true}, 5));

    using lagged = mp::lagged_policy<mp::dynamic_policy<>>;
    CHECK(names<lagged>(lagged::state_type{}) ==
          strings{"lagged_scale", "growth_tracker", "scale", "skipped", "disabled"});
    CHECK(visits_everything<lagged>(lagged::state_type{2.0F, {3.0F, {4}, {}, 5, true}}, 5));

    CHECK(visits_everything<mp::static_policy>(mp::static_policy::state_type{2.0F}, 1));
    CHECK(visits_everything<mp::logmax_policy>(
        mp::logmax_policy::state_type{2.0F, 3.0F, 4.0F, 5.0F, 0.25F, 0.5F}, 6));
    CHECK(visits_everything<mp::histogram_policy>(mp::histogram_policy::state_type{2.0F, 3, 4, 5}, 4));
}

TEST_CASE("visit names the parameters of policies, and every one of them") {
    const auto common = [](auto policy) {
        policy.initial_scale = 2.0F;
        policy.backoff = {1.0, 3.0};
        policy.floor = {0.5, mp::limit_action::keep};
        policy.ceiling = {4.0, mp::limit_action::fail};
        policy.failure_scale = 0.25;
        policy.guards_infinity = false;
        policy.nans = mp::nan_reaction::fail;
        policy.skip_tolerance = 7;
        policy.skip_action = mp::limit_action::disable;
        return policy;
    };
    auto run = common(mp::dynamic_policy<mp::growth_after_clean_run, mp::hysteresis_budget>{});
    run.growth = {3.0, 5, true};
    run.hysteresis = {3, mp::hysteresis_refill::at_clean_iteration, true};
    CHECK(visits_everything<decltype(run)>(run, 12 + 3 + 3));
    CHECK(names<decltype(run)>(run) ==
          std::vector<std::string>{"growth_factor", "growth_interval", "growth_at_least",
                                   "hysteresis_allowance", "hysteresis_refill", "hysteresis_counts_on",
                                   "initial_scale", "backoff_factor", "backoff_divisor", "floor",
                                   "floor_action", "ceiling", "ceiling_action", "failure_scale",
                                   "guards_infinity", "nans", "skip_tolerance", "skip_action"});
    auto window = common(mp::dynamic_policy<mp::growth_by_window, mp::tolerated_overflow_share, double>{});
    window.growth = {3.0, 5, 1};
    window.hysteresis = {0.5};
    CHECK(visits_everything<decltype(window)>(window, 12 + 3 + 1));
    auto continuous = common(mp::dynamic_policy<mp::growth_continuous>{});
    continuous.growth = {3.0, 1.5};
    CHECK(visits_everything<decltype(continuous)>(continuous, 12 + 2));
    auto watchful = common(mp::dynamic_policy<mp::growth_on_underflow>{});
    watchful.growth = {3.0, 0.5, 5, 6};
    CHECK(visits_everything<decltype(watchful)>(watchful, 12 + 4));
    mp::lagged_policy<decltype(watchful)> lagged{watchful};
    CHECK(visits_everything<decltype(lagged)>(lagged, 12 + 4));

    CHECK(visits_everything<mp::static_policy>(mp::static_policy{2.0F, false}, 2));
    CHECK(visits_everything<mp::logmax_policy>(
        mp::logmax_policy{2.0F, 0.5F, 4.0F, 5.0F, 6.0F, 0.25, 0.5, 1.0F}, 8));
    CHECK(visits_everything<mp::histogram_policy>(mp::histogram_policy{2.0F, 3, 0.5F, 0.25F, true}, 5));
}
