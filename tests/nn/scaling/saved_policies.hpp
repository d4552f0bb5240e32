// SPDX-License-Identifier: MIT
// A scaler of every policy to be saved, and saved texts by their lines.
#pragma once

#include <mp/loss_scaling.hpp>
#include <mp/nn/scaling/state_text.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace saved_policies {

/// A policy of a user's own, which stands for itself.
struct patient_policy {
    enum class mood : unsigned char { calm, angry };
    struct state_type {
        double scale;
        std::uint64_t seen;
        friend bool operator==(const state_type&, const state_type&) = default;
    };
    static constexpr std::string_view name = "patient";
    std::int64_t patience = 7;
    mood how = mood::angry;
    friend bool operator==(const patient_policy&, const patient_policy&) = default;

    state_type initial_state() const { return {256.0, 0}; }
    void validate() const {}
    void validate(const state_type&) const {}
    mp::scale_change update(state_type& state, bool) const {
        ++state.seen;
        return {};
    }
    template <class Self, class Visitor>
    static void visit(Self& self, Visitor&& visitor) {
        if constexpr (requires { self.seen; }) {
            visitor("scale", self.scale);
            visitor("seen", self.seen);
        } else {
            visitor("patience", self.patience);
            visitor("how", self.how);
        }
    }
};

using by_window = mp::dynamic_policy<mp::growth_by_window, mp::tolerated_overflow_share, double>;
using by_underflow = mp::dynamic_policy<mp::growth_on_underflow, mp::hysteresis_budget>;

/// A policy that differs from the default, with the numbers of its parameters and of what makes up its state.
template <class Policy>
struct specimen {
    std::string_view name;
    std::size_t parameters;
    std::size_t counters;
    Policy policy;
};

/// Calls function(specimen) for every policy there is.
template <class Function>
void for_each_policy(Function&& function) {
    function(specimen<mp::static_policy>{"static", 2, 1, {3.0F, false}});
    function(specimen<mp::pytorch_policy>{"pytorch", 4, 4, {3.0F, 1.1, 0.3, 7}});
    function(specimen<mp::sharded_pytorch_policy>{"sharded_pytorch", 4, 4, {3.0F, 0.3, 1.1, 7}});
    function(specimen<mp::pytorch_scaled_check_policy>{"pytorch_scaled_check", 4, 4, {{3.0F, 1.1, 0.3, 7}}});
    function(specimen<mp::tensorflow_policy>{"tensorflow", 2, 4, {3.0F, 7}});
    function(specimen<mp::keras_policy>{"keras", 2, 4, {0.1F, 7}});
    function(specimen<mp::jmp_policy>{"jmp", 4, 4, {3.3F, 7, 3, 0.1F}});
    function(specimen<mp::apex_policy>{"apex", 4, 4, {3.3, 7, 0.1, 1e4}});
    function(specimen<mp::apex_fp16_utils_policy>{"apex_fp16_utils", 3, 5, {3.3, 1.1, 7}});
    function(specimen<mp::apex_hysteresis_policy>{"apex_hysteresis", 5, 5, {3.3F, 1.1, 0.3, 7, 3}});
    function(specimen<mp::mxnet_policy>{"mxnet", 4, 5, {3.3, 1.1, 7, 1e4}});
    function(specimen<mp::deepspeed_policy>{"deepspeed", 6, 6, {1e9, 7, 3, true, 0.1, false}});
    function(specimen<mp::deepspeed_fused_policy>{"deepspeed_fused", 3, 5, {3.3, 7, 0.1}});
    function(specimen<mp::megatron_policy>{"megatron", 6, 5, {3.3F, 0.1F, 1.1F, 0.3F, 7, 3}});
    function(specimen<mp::fairseq_policy>{"fairseq", 6, 8, {3e9, 1.1, 7, 0.25, 0.5, 1e-3}});
    function(specimen<mp::openseq2seq_policy>{"openseq2seq", 4, 5, {0.1F, 1e4F, 1.1F, 7}});
    function(specimen<mp::chainer_policy>{"chainer", 1, 4, {7}});
    function(
        specimen<mp::logmax_policy>{"logmax", 8, 6, {3.3F, 0.1F, 1e4F, 15.5F, 14.5F, 0.9F, 0.99F, 2.0F}});
    function(specimen<mp::histogram_policy>{"histogram", 5, 4, {3.3F, 7, 0.25F, 1e-3F, true}});
    by_window window;
    window.growth = {1.1, 7, 1};
    window.floor = {0.1, mp::limit_action::keep};
    window.ceiling = {1e300, mp::limit_action::disable};
    window.nans = mp::nan_reaction::keep_scale;
    window.skip_tolerance = 50;
    window.skip_action = mp::limit_action::disable;
    function(specimen<by_window>{"dynamic", 16, 8, window});
    by_underflow underflow;
    underflow.hysteresis = {3, mp::hysteresis_refill::at_clean_iteration, true};
    function(specimen<by_underflow>{"dynamic", 19, 6, underflow});
    function(specimen<mp::lagged_policy<by_underflow>>{"lagged", 19, 7, {underflow}});
    function(specimen<patient_policy>{"patient", 2, 2, {-9, patient_policy::mood::calm}});
}

/// The state after `events` iterations, of which some overflowed.
template <class Policy>
mp::saved_loss_scaler<Policy> after(const Policy& policy, int events, unsigned seed) {
    std::mt19937 random(seed);
    mp::saved_loss_scaler<Policy> saved{policy, mp::initial_scale_state(policy)};
    for (int i = 0; i < events; ++i) {
        mp::gradient_observation seen{.values = 1000, .zeros = 10, .flushed = random() % 3, .large = 5};
        if (random() % 9 == 0) seen.infinities = 1;
        seen.largest = static_cast<double>(random());
        (void)mp::update_scale(policy, saved.state, seen);
    }
    return saved;
}

inline std::vector<std::string> vectors_of(const std::string& text) {
    std::vector<std::string> lines(1);
    for (const char character : text) {
        lines.back().push_back(character);
        if (character == '\n') lines.emplace_back();
    }
    lines.pop_back();
    return lines;
}

/// What the version before checksums wrote.
inline std::string without_checksum(const std::string& text) {
    std::vector<std::string> lines = vectors_of(text);
    lines.at(0) = "mp loss scaler 1\n";
    lines.pop_back();
    std::string rest;
    for (const std::string& line : lines) rest += line;
    return rest;
}

}  // namespace saved_policies
