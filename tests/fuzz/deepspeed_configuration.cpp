// SPDX-License-Identifier: MIT
// Fuzzes the reader of DeepSpeed's configuration, and values for "auto": a file is refused with mp::error, or gives a policy that a
// scaler takes, and batch numbers that agree.
#include <mp/frontends/compat/deepspeed/configuration.hpp>
#include <mp/nn/scaling/state_text.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "require.hpp"

namespace {

using fuzzing::require;

template <class Policy>
void check(const Policy& policy) {
    const auto saved = mp::loss_scaler<Policy>(policy).state();
    require(mp::load_state<Policy>(mp::save_state(saved)) == saved);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const std::int64_t world_size = 1 + static_cast<std::int64_t>(size % 3);
    mp::deepspeed_configuration configuration;
    // Values for "auto" are short.
    try {
        if (size <= 64) {
            (void)mp::read_deepspeed_configuration("{fp16: {enabled: auto, loss_scale: auto}}", world_size,
                                                   {{"fp16.enabled", std::string(text.substr(0, size / 2))},
                                                    {"fp16.loss_scale", std::string(text.substr(size / 2))}});
        }
    } catch (const mp::error&) {
    }
    try {
        configuration = mp::read_deepspeed_configuration(text, world_size);
    } catch (const mp::error&) {
        return 0;
    }
    std::visit([](const auto& policy) { check(policy); }, configuration.scaling);
    if (configuration.batch) {
        const mp::deepspeed_batch& batch = *configuration.batch;
        require(batch.train_batch_size > 0 && batch.train_micro_batch_size_per_gpu > 0 &&
                batch.gradient_accumulation_steps > 0);
        require(batch.train_batch_size ==
                batch.train_micro_batch_size_per_gpu * batch.gradient_accumulation_steps * world_size);
    }
    require(configuration.zero_stage >= 0 && configuration.zero_stage <= 3);
    require(configuration.gradient_clipping >= 0.0);
    require(mp::read_deepspeed_configuration(text, world_size) == configuration);
    return 0;
}
