// SPDX-License-Identifier: MIT
/// \file
/// DeepSpeed's configuration file as it stands: which scaler it asks for, the batch numbers, and clipping.
/// Needs nlohmann-json 3.
///
///     const auto configuration = mp::read_deepspeed_configuration(text_of_file, world_size);
///     std::visit([&](const auto& policy) { train(mp::loss_scaler(policy)); }, configuration.scaling);
///
/// The file is Hjson, and its values may be "True", "1000" or "auto", as they may for DeepSpeed. A misspelled key
/// must not fall back to a default in silence: in the blocks fp16 and bf16 it is an error, as there, and at the
/// top, where DeepSpeed ignores it, a warning. What is inside the other blocks, which this library has no use for,
/// is not looked at.
///
/// Rules and defaults: deepspeed/runtime/precision_config.py and config.py, version 0.19.8, and for `amp`, which is
/// gone there, earlier ones.
#pragma once

#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/frontends/compat/deepspeed/configuration_block.hpp>
#include <mp/frontends/compat/deepspeed/scaler.hpp>
#include <mp/nn/scaling/policy.hpp>
#include <mp/nn/scaling/scale_checks.hpp>
#include <mp/nn/scaling/static_policy.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

namespace mp {

/// What DeepSpeed keeps the model's weights and gradients in.
enum class deepspeed_dtype : unsigned char { fp32, fp16, bf16 };

/// How many samples make a step: train_batch_size is the product of the other two and the world size.
struct deepspeed_batch {
    std::int64_t train_batch_size = 1;
    std::int64_t train_micro_batch_size_per_gpu = 1;
    std::int64_t gradient_accumulation_steps = 1;

    MP_MEMBERWISE_EQUALITY(deepspeed_batch);
};

/// What a configuration file says of mixed precision.
struct deepspeed_configuration {
    deepspeed_dtype dtype = deepspeed_dtype::fp32;
    /// fp16 with a loss_scale of 0: deepspeed_policy with ZeRO, and without it deepspeed_fused_policy, since
    /// DeepSpeed then takes an optimizer that ignores hysteresis (with an Adam other than its own it takes
    /// one that begins at the same scale). With another loss_scale, and without fp16, static_policy; it skips
    /// steps with infinities and NaNs for fp16, and for bf16 unless check_grad_overflow is false.
    std::variant<static_policy, deepspeed_policy, deepspeed_fused_policy> scaling =
        static_policy{1.0F, false};
    std::int32_t zero_stage = 0;           ///< of zero_optimization; 0 to 3
    std::optional<deepspeed_batch> batch;  ///< empty if the file has none of the three numbers
    double gradient_clipping = 1.0;  ///< largest norm of the gradients; 0, or null in the file, does not clip
    std::vector<std::string> warnings;  ///< of keys that DeepSpeed ignores, and of defaults taken for "auto"

    MP_MEMBERWISE_EQUALITY(deepspeed_configuration);
};

namespace detail {

/// The rule of DeepSpeed's: two of the numbers give the third, and one of the batch sizes alone means that
/// nothing is accumulated. Without a number, "auto" is HuggingFace's per_device_train_batch_size.
inline std::optional<deepspeed_batch> read_deepspeed_batch(deepspeed_block& top, std::int64_t world_size) {
    constexpr std::int64_t most = 2147483647;  // so that products of two stay within 64 bits
    constexpr std::int64_t huggingface_micro_batch = 8;
    const auto integer = [&](std::string_view key) -> std::optional<std::int64_t> {
        const nlohmann::json* const value = top.find_unless_null(key);
        if (value == nullptr) return std::nullopt;
        return top.integer(key, *value, 1, most);
    };
    const auto train = integer("train_batch_size");
    auto micro = integer("train_micro_batch_size_per_gpu");
    const auto steps = integer("gradient_accumulation_steps");
    if (!train && !micro &&
        (top.took_default("train_batch_size") || top.took_default("train_micro_batch_size_per_gpu"))) {
        micro = huggingface_micro_batch;
    }
    if (!train && !micro && !steps) return std::nullopt;
    if (!train && !micro) {
        fail_deepspeed(
            "there is gradient_accumulation_steps and neither train_batch_size nor "
            "train_micro_batch_size_per_gpu");
    }
    // Divisions round down; what does not come out even is found below.
    deepspeed_batch batch;
    batch.gradient_accumulation_steps = steps ? *steps : train && micro ? *train / *micro / world_size : 1;
    batch.train_micro_batch_size_per_gpu =
        micro ? *micro : *train / world_size / batch.gradient_accumulation_steps;
    const std::int64_t per_gpu = batch.train_micro_batch_size_per_gpu * batch.gradient_accumulation_steps;
    const bool fits = per_gpu > 0 && per_gpu <= most / world_size;
    batch.train_batch_size = fits ? per_gpu * world_size : 0;
    if (!fits || (train && *train != batch.train_batch_size)) {
        const auto text = [](const std::optional<std::int64_t>& given) {
            return given ? error_text(*given) : std::string("not given");
        };
        fail_deepspeed("train_batch_size (" + text(train) + ") must be train_micro_batch_size_per_gpu (" +
                       text(micro) + ") times gradient_accumulation_steps (" + text(steps) +
                       ") times the world size (" + error_text(world_size) +
                       "), all of them whole and in 31 bits");
    }
    return batch;
}

/// The stage of ZeRO; the old form of the block is true or false.
inline std::int32_t read_zero_stage(deepspeed_block& top) {
    constexpr std::string_view key = "zero_optimization";
    const nlohmann::json* const value = top.find_unless_null(key);
    if (value == nullptr) return 0;
    if (value->is_boolean()) return value->get<bool>() ? 1 : 0;
    return static_cast<std::int32_t>(top.find_block(key)->integer("stage", 0, 3).value_or(0));
}

/// The block fp16; empty unless it is enabled.
inline std::optional<std::variant<static_policy, deepspeed_policy, deepspeed_fused_policy>>
read_deepspeed_fp16(deepspeed_block& fp16, std::int32_t zero_stage) {
    constexpr std::int64_t any = INT64_MAX;
    const bool enabled = fp16.boolean("enabled", false);
    (void)fp16.boolean("auto_cast", false);
    const double loss_scale = fp16.number("loss_scale", 0.0, 0.0);
    const bool dynamic = enabled && !(loss_scale > 0.0);
    // As there, numbers that nothing uses may be anything.
    const std::int64_t least = dynamic ? 1 : INT64_MIN;
    const auto power = fp16.integer("initial_scale_power", dynamic ? 0 : INT64_MIN, dynamic ? 1023 : any);
    const std::int64_t window = fp16.integer("loss_scale_window", least, any).value_or(1000);
    // With ZeRO a hysteresis of 0 is counted down from there, and the scale is never lowered.
    const bool has_hysteresis = dynamic && zero_stage > 0;
    const std::int64_t hysteresis =
        fp16.integer("hysteresis", has_hysteresis ? 1 : INT64_MIN, has_hysteresis ? INT32_MAX : any)
            .value_or(2);
    const bool consecutive = fp16.boolean("consecutive_hysteresis", false);
    const auto floor = static_cast<double>(fp16.integer("min_loss_scale", least, any).value_or(1));
    if (fp16.boolean("fp16_master_weights_and_grads", false) && zero_stage == 0) {
        fail_deepspeed("fp16.fp16_master_weights_and_grads needs zero_optimization.stage to be 1, 2 or 3");
    }
    fp16.refuse_others();
    if (!enabled) return std::nullopt;
    if (!dynamic) {
        const float scale = scale_as_float(loss_scale);
        if (is_non_finite(scale) || !(scale > largest_scale_without_inverse)) {
            throw_argument(deepspeed_function, "fp16.loss_scale", loss_scale,
                           "must be 0 or a float greater than 2^-128");
        }
        return static_policy{scale, true};
    }
    const double initial = std::ldexp(1.0, static_cast<int>(power.value_or(16)));
    if (floor > initial) {
        throw_argument(deepspeed_function, "fp16.min_loss_scale", floor,
                       "must not be greater than 2^initial_scale_power, which is " + error_text(initial));
    }
    if (zero_stage == 0) return deepspeed_fused_policy{initial, window, floor};
    deepspeed_policy policy;
    policy.initial_scale = initial;
    policy.loss_scale_window = window;
    policy.hysteresis = static_cast<std::int32_t>(hysteresis);
    policy.consecutive_hysteresis = consecutive;
    policy.min_loss_scale = floor;
    return policy;
}

/// The block bf16 or bfloat16; empty unless it is enabled.
inline std::optional<static_policy> read_deepspeed_bf16(deepspeed_block& bf16, std::int32_t zero_stage) {
    const bool enabled = bf16.boolean("enabled", false);
    (void)bf16.boolean("immediate_grad_update", false);
    const bool check = bf16.boolean("check_grad_overflow", true);
    const bool masters = bf16.boolean("bf16_master_weights_and_grads", false);
    const bool states = bf16.boolean("bf16_optimizer_states", false);
    bf16.refuse_others();
    if (masters && zero_stage == 0) {
        fail_deepspeed(bf16.path_of("bf16_master_weights_and_grads") +
                       " needs zero_optimization.stage to be 1, 2 or 3");
    }
    if (states && !masters) {
        fail_deepspeed(bf16.path_of("bf16_optimizer_states") + " needs bf16_master_weights_and_grads");
    }
    if (!enabled) return std::nullopt;
    return static_policy{1.0F, check};
}

/// Whether a block that has `enabled` is enabled; the rest of it is not looked at.
inline bool deepspeed_block_enabled(deepspeed_block& top, std::string_view key) {
    std::optional<deepspeed_block> block = top.find_block(key);
    return block && block->boolean("enabled", false);
}

/// Whether torch_autocast is enabled in float16; in bfloat16, and without a dtype, nothing is scaled.
inline bool deepspeed_makes_grad_scaler(deepspeed_block& top) {
    constexpr std::string_view float16[] = {"torch.float16", "fp16", "float16", "half"};
    std::optional<deepspeed_block> block = top.find_block("torch_autocast");
    if (!block || !block->boolean("enabled", false)) return false;
    const nlohmann::json* const dtype = block->find("dtype");
    if (dtype == nullptr || !dtype->is_string()) return false;
    const std::string_view word = dtype->get_ref<const std::string&>();
    return std::find(std::begin(float16), std::end(float16), word) != std::end(float16);
}

/// Keys at the top that have no meaning for this library.
inline constexpr std::array<std::string_view, 51> ignored_deepspeed_keys = {
    "activation_checkpointing",
    "aio",
    "autotuning",
    "checkpoint",
    "comet",
    "comms_logger",
    "communication_data_type",
    "compile",
    "compression_training",
    "csv_monitor",
    "curriculum_learning",
    "data_efficiency",
    "data_types",
    "dataloader_drop_last",
    "datastates_ckpt",
    "disable_allgather",
    "dump_state",
    "eigenvalue",
    "elasticity",
    "expert_parallel",
    "flops_profiler",
    "gradient_allreduce_op",
    "gradient_predivide_factor",
    "graph_harvesting",
    "hybrid_engine",
    "log_level",
    "managed_gradient_accumulation",
    "memory_breakdown",
    "monitor_config",
    "nebula",
    "optimizer",
    "pipeline",
    "prescale_gradients",
    "progressive_layer_drop",
    "quantize_training",
    "scheduler",
    "seq_parallel_communication_data_type",
    "sequence_parallel_size",
    "sparse_attention",
    "sparse_gradients",
    "steps_per_print",
    "tensor_parallel",
    "tensorboard",
    "timers",
    "use_data_before_expert_parallelism",
    "vocabulary_size",
    "wall_clock_breakdown",
    "wandb",
    "weight_quantization",
    "zero_allow_untested_optimizer",
    "zero_force_ds_cpu_optimizer",
};

}  // namespace detail

/// Reads the text of a DeepSpeed configuration file.
///
/// \param world_size   the number of ranks that share a batch, which the batch numbers are completed with;
///                     from 1 to 2^31 - 1
/// \param auto_values  what stands for "auto", which HuggingFace fills in before DeepSpeed sees it, by the path of
///                     the key: {{"fp16.enabled", "true"}, {"train_micro_batch_size_per_gpu", "4"}}. Without a
///                     value the default is taken: DeepSpeed's in blocks, HuggingFace's at the top, and a warning
///                     says so
/// \throws argument_error  naming the path of the key, such as fp16.loss_scale, and its value: the text is not
///                         Hjson, a key is there twice or unknown in fp16 or bf16, a value is of the wrong type or
///                         out of range, two of fp16, bf16 and amp are enabled, the batch numbers contradict each
///                         other, or amp is enabled, or torch_autocast in float16,
///                         with which the scaler is not DeepSpeed's
[[nodiscard]] inline deepspeed_configuration read_deepspeed_configuration(
    std::string_view text, std::int64_t world_size = 1, const deepspeed_auto_values& auto_values = {}) {
    if (world_size < 1 || world_size > 2147483647) {
        detail::throw_argument(detail::deepspeed_function, "world_size", world_size,
                               "must lie between 1 and 2147483647");
    }
    const nlohmann::json json = detail::hjson_reader(detail::deepspeed_function, text).object();
    detail::deepspeed_reading reading{&auto_values};
    detail::deepspeed_block top(json, "", reading);
    deepspeed_configuration configuration;
    configuration.zero_stage = detail::read_zero_stage(top);
    configuration.batch = detail::read_deepspeed_batch(top, world_size);
    const nlohmann::json* const clipping = top.find("gradient_clipping");
    const bool clips = clipping == nullptr || !clipping->is_null();
    configuration.gradient_clipping = clips ? top.number("gradient_clipping", 0.0, 1.0) : 0.0;

    bool fp16 = false;
    if (auto block = top.find_block("fp16")) {
        if (const auto scaling = detail::read_deepspeed_fp16(*block, configuration.zero_stage)) {
            fp16 = true;
            configuration.dtype = deepspeed_dtype::fp16;
            configuration.scaling = *scaling;
        }
    }
    bool bf16 = false;
    auto bf16_block = top.find_block("bf16");
    auto old_block = top.find_block("bfloat16");
    if (bf16_block && old_block) {
        detail::fail_deepspeed("there are bf16 and bfloat16, which are two names of one block");
    }
    if (auto& block = bf16_block ? bf16_block : old_block) {
        if (const auto scaling = detail::read_deepspeed_bf16(*block, configuration.zero_stage)) {
            bf16 = true;
            if (!fp16) {
                configuration.dtype = deepspeed_dtype::bf16;
                configuration.scaling = *scaling;
            }
        }
    }
    const bool amp = detail::deepspeed_block_enabled(top, "amp");
    const bool grad_scaler = detail::deepspeed_makes_grad_scaler(top);
    top.ignore(detail::ignored_deepspeed_keys);
    top.warn_of_others();
    configuration.warnings = std::move(reading.warnings);
    if (int{fp16} + int{bf16} + int{amp} > 1) {
        detail::fail_deepspeed("only one of fp16, bf16 and amp can be enabled");
    }
    if (amp) {
        detail::fail_deepspeed("amp.enabled is true: the scaler is then Apex's, see mp::apex_policy");
    }
    if (grad_scaler) {
        detail::fail_deepspeed(
            "torch_autocast is enabled with float16: the scaler is then PyTorch's, see mp::pytorch_policy");
    }
    return configuration;
}

}  // namespace mp
