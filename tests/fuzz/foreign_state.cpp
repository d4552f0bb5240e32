// SPDX-License-Identifier: MIT
// Fuzzes the readers of other systems' states: a text is refused with mp::error, or gives a scaler that can
// go on, be saved and be loaded.
#include <mp/frontends/compat/states.hpp>
#include <mp/nn/scaling/state_text.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

template <class Policy>
void check(mp::saved_loss_scaler<Policy> saved) {
    mp::loss_scaler<Policy> scaler;
    scaler.restore(saved);
    if (mp::load_state<Policy>(mp::save_state(saved)) != saved) std::abort();
    for (unsigned i = 0; i < 8; ++i) {
        (void)mp::update_scale(saved.policy, saved.state, {.infinities = i & 1});
    }
}

/// Checks what `function` imports, outside of where refusals are caught.
template <class Import>
void try_import(Import&& function) {
    decltype(function()) imported;
    try {
        imported = function();
    } catch (const mp::error&) {
        return;
    }
    if constexpr (requires { imported.begin(); }) {
        for (const auto& scaler : imported) check(scaler);
    } else {
        check(imported);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    try_import([&] { return mp::import_pytorch_state(text); });
    try_import([&] { return mp::import_apex_state(text); });
    try_import([&] { return mp::import_apex_states(text); });
    try_import([&] { return mp::import_deepspeed_state(text); });
    try_import([&] { return mp::import_deepspeed_fused_state(text); });
    try_import([&] { return mp::import_megatron_state(text); });
    return 0;
}
