// SPDX-License-Identifier: MIT
// Fuzzes mp::load_state: a text is refused with mp::error, or the scaler goes on and is saved as the same
// text again, except for the order of lines and the checksum that a text of version 1 gets.
#include <mp/loss_scaling.hpp>
#include <mp/nn/scaling/state_text.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "require.hpp"

namespace {

using fuzzing::require;

template <class Policy>
void load_as(std::string_view text) {
    mp::saved_loss_scaler<Policy> saved;
    try {
        saved = mp::load_state<Policy>(text);
    } catch (const mp::error&) {
        return;
    }
    const std::string again = mp::save_state(saved);
    const std::size_t checksum = text.starts_with("mp loss scaler 1") ? 26 : 0;
    require(again.size() == text.size() + checksum || again.size() == text.size() + checksum + 1);
    require(mp::save_state(mp::load_state<Policy>(again)) == again);
    mp::loss_scaler<Policy> scaler;
    scaler.restore(saved);
    require(scaler.state() == saved);
    for (unsigned i = 0; i < 8; ++i) {
        const mp::gradient_observation seen{.infinities = i & 1, .nans = i & 2, .values = 9, .flushed = i};
        (void)mp::update_scale(saved.policy, saved.state, seen);
    }
}

/// Loads a text as the policy that it names, and as one other, which refuses it.
template <class... Policies>
void load_as_any(std::string_view text, std::string_view name) {
    std::size_t index = 0;
    const auto load = [&]<class Policy>(std::type_identity<Policy>) {
        const bool other = index++ == text.size() % sizeof...(Policies);
        if (other || name == std::string_view(Policy::name)) load_as<Policy>(text);
    };
    (load(std::type_identity<Policies>{}), ...);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    std::string name;
    try {
        name = mp::saved_policy_name(text);
    } catch (const mp::error&) {
    }
    load_as_any<mp::static_policy, mp::pytorch_policy, mp::apex_policy, mp::mxnet_policy,
                mp::deepspeed_policy, mp::megatron_policy, mp::fairseq_policy, mp::logmax_policy,
                mp::dynamic_policy<>>(text, name);
    return 0;
}
