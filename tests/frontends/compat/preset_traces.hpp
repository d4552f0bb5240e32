// SPDX-License-Identifier: MIT
/// \file
/// Sequences of events, and how a policy is led through one beside an interpreter or for a table.
#pragma once

#include <mp/loss_scaling.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "frontends/compat/preset_interpreters.hpp"

namespace traces {

/// An iteration: 'c' clean, 'i' with infinities, 'n' with NaNs, 'b' with both.
inline mp::gradient_observation seen(char event) {
    return {.infinities = event == 'i' || event == 'b' ? 3U : 0U,
            .nans = event == 'n' || event == 'b' ? 1U : 0U};
}

inline std::string repeated(std::string_view part, int times) {
    std::string text;
    for (int i = 0; i < times; ++i) text += part;
    return text;
}

/// Events of which one in `rarity` is not clean. Half of those begin a burst, in which every other one is
/// not.
inline std::string random_events(std::uint32_t seed, int count, std::uint32_t rarity) {
    std::mt19937 random(seed);
    std::string text;
    bool burst = false;
    for (int i = 0; i < count; ++i) {
        const bool bad = random() % (burst ? 2 : rarity) == 0;
        if (random() % 2 == 0) burst = bad;
        text += bad ? "inb"[random() % 3] : 'c';
    }
    return text;
}

struct sequence {
    const char* name;
    std::string events;
};

/// What every scaler whose growth interval is `window` has to get right.
inline std::vector<sequence> sequences(int window) {
    std::vector<sequence> all;
    all.push_back({"clean over several growths", repeated("c", 5 * window + 3)});
    all.push_back({"alternating", repeated("ci", 40)});
    all.push_back({"two overflows in three", repeated("icni", 40)});
    std::string bursts;
    for (int length = 1; length <= 7; ++length) {
        bursts += repeated("i", length) + repeated("c", 2 * window + 1) + repeated("n", 8 - length) +
                  repeated("c", window);
    }
    all.push_back({"bursts", bursts});
    std::string due;
    for (int offset = -2; offset <= 2; ++offset) {
        if (window + offset > 0) due += repeated(repeated("c", window + offset) + "i", 4);
    }
    all.push_back({"overflows around the iteration that is due to grow", due});
    all.push_back({"down and on", repeated("i", 200) + repeated("c", 3 * window + 2) + repeated("n", 9) +
                                      repeated("c", 2 * window) + "i"});
    all.push_back({"up and back", repeated("c", 150 * window) + repeated("i", 30) +
                                      repeated("c", 3 * window + 1) + repeated("i", 160)});
    all.push_back({"infinities, NaNs and both", repeated("nccbcicccccnbic", 20)});
    all.push_back({"random, one in 2", random_events(17, 3000, 2)});
    all.push_back({"random, one in 9", random_events(18, 3000, 9)});
    all.push_back({"random, one in 60", random_events(19, 6000, 60)});
    return all;
}

/// Several growths by default parameters.
inline std::string long_run(int window) {
    return repeated("c", 3 * window + 2) + "i" + repeated("c", window - 1) + "ni" +
           repeated("c", 2 * window + 3) + repeated("ic", 9) + repeated("c", 2 * window);
}

/// Up beyond the largest double and down again, with a window of 1.
inline std::string beyond_double() {
    return repeated("c", 1100) + repeated("i", 40) + repeated("c", 9);
}
inline std::string below_double() {
    return repeated("i", 1200) + repeated("c", 40) + "i";
}

/// The kind by which the library calls an outcome that led to a scale.
inline mp::scale_change_kind kind_of(interpreters::outcome what, double scale) {
    using enum interpreters::outcome;
    using kind = mp::scale_change_kind;
    switch (what) {
        case grew:
            return kind::grown;
        case refused:
            return kind::growth_refused;
        case capped:
            return kind::at_ceiling;
        case lowered:
            return scale <= 0x1p-128 ? kind::vanished : kind::backed_off;
        case floored:
            return kind::at_floor;
        case absorbed:
            return kind::absorbed;
        case raised:
            return kind::failed;
        case counted:
        case held:
        case ignored:
            break;
    }
    return kind::unchanged;
}

/// Everything in a state of the library: the counters of its rules in the order in which it saves them, then
/// the scale. Not the skips in a row, which no other system counts.
template <class Rules, class State>
std::vector<double> values(const State& state, std::int32_t& skipped) {
    std::vector<double> all;
    double scale = 0.0;
    Rules::visit(state, [&](std::string_view name, const auto& member) {
        if (name == "skipped") {
            skipped = static_cast<std::int32_t>(member);
        } else if (name == "scale") {
            scale = static_cast<double>(member);
        } else if (name != "disabled") {
            all.push_back(static_cast<double>(member));
        }
    });
    all.push_back(scale);
    return all;
}

/// Leads policy and interpreter through the events and says where they first differ; empty if nowhere.
template <class Policy, class System>
std::string difference(const Policy& policy, System system, std::string_view events) {
    policy.validate();
    using rules = mp::detail::rules_type<Policy>;
    auto state = mp::initial_scale_state(policy);
    std::int32_t skipped = 0;
    std::int32_t skipped_in_a_row = 0;
    constexpr bool counts_skips = !std::is_same_v<Policy, mp::static_policy>;
    if (values<rules>(state, skipped) != system.values()) return "the initial state";
    for (std::size_t i = 0; i < events.size(); ++i) {
        const auto at = [&](const char* what) { return what + (" at event " + std::to_string(i)); };
        const auto before = state;
        const mp::gradient_observation observation = seen(events[i]);
        const interpreters::outcome expected = system.update(events[i] != 'c');
        const std::vector<double> after = system.values();
        if (mp::skips_step(policy, observation) != interpreters::skips(expected)) return at("skip");
        const mp::scale_change change = mp::update_scale(policy, state, observation);
        if (values<rules>(state, skipped) != after) return at("state");
        if (change.kind != kind_of(expected, after.back())) return at("kind");
        if (change.before != interpreters::as_float(static_cast<double>(before.scale))) return at("before");
        if (change.after != interpreters::as_float(static_cast<double>(state.scale))) return at("after");
        if (expected == interpreters::outcome::raised) {
            if (!(state == before)) return at("failed state");
        } else {
            skipped_in_a_row = events[i] != 'c' ? skipped_in_a_row + 1 : 0;
        }
        if (counts_skips && skipped != skipped_in_a_row) return at("skips in a row");
    }
    return "";
}

/// All the sequences. The first difference with the name of its sequence; empty if there is none.
template <class Policy, class System>
std::string difference_in_sequences(const Policy& policy, const System& system, int window) {
    for (const sequence& sequence : sequences(window)) {
        const std::string found = difference(policy, system, sequence.events);
        if (!found.empty()) return std::string(sequence.name) + ": " + found;
    }
    return "";
}

/// The scale after every event, with a mark for what happened: + grown, - backed off, v vanished, a absorbed,
/// _ at the floor, ^ at the ceiling, = growth refused, n kept for a NaN, d disabled, ! failed.
template <class Policy>
std::string table(const Policy& policy, std::string_view events) {
    policy.validate();
    using kind = mp::scale_change_kind;
    auto state = mp::initial_scale_state(policy);
    std::string text;
    for (const char event : events) {
        const mp::scale_change change = mp::update_scale(policy, state, seen(event));
        std::array<char, 32> digits{};
        std::snprintf(digits.data(), digits.size(), "%.9g", static_cast<double>(state.scale));
        text += (text.empty() ? "" : " ") + std::string(digits.data());
        switch (change.kind) {
            case kind::grown:
                text += '+';
                break;
            case kind::backed_off:
                text += '-';
                break;
            case kind::vanished:
                text += 'v';
                break;
            case kind::absorbed:
                text += 'a';
                break;
            case kind::at_floor:
                text += '_';
                break;
            case kind::at_ceiling:
                text += '^';
                break;
            case kind::growth_refused:
                text += '=';
                break;
            case kind::nan_kept:
                text += 'n';
                break;
            case kind::disabled:
                text += 'd';
                break;
            case kind::failed:
                text += '!';
                break;
            case kind::unchanged:
            case kind::replaced:
            case kind::no_gradients:
                break;
        }
    }
    return text;
}

}  // namespace traces
