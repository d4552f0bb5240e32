// SPDX-License-Identifier: MIT
/// \file
/// DeepSpeed's configuration file as it stands: which scaler it asks for, the batch numbers, and clipping.
/// Needs nlohmann-json 3.
///
///     const auto configuration = mp::read_deepspeed_configuration(text_of_file, world_size);
///     std::visit([&](const auto& policy) { train(mp::loss_scaler(policy)); }, configuration.scaling);
///
/// A misspelled key must not fall back to a default in silence, so keys that are not DeepSpeed's are errors:
/// all of them in the blocks fp16, bf16 and at the top. What is inside the other blocks, which this library
/// has no use for, is not looked at.
///
/// Rules and defaults: deepspeed/runtime/precision_config.py and config.py.
#pragma once

#include <mp/compat/deepspeed/scaler.hpp>
#include <mp/error.hpp>
#include <mp/scaling/policy.hpp>
#include <mp/scaling/scale_checks.hpp>
#include <mp/scaling/static_policy.hpp>
#include <mp/scaling/text_excerpt.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <set>
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

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wfloat-equal"  // all members are equal, numbers too
#endif
    friend bool operator==(const deepspeed_batch&, const deepspeed_batch&) = default;
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
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
    double gradient_clipping = 1.0;        ///< largest norm of the gradients; 0 does not clip

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wfloat-equal"  // all members are equal, numbers too
#endif
    friend bool operator==(const deepspeed_configuration&, const deepspeed_configuration&) = default;
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
};

namespace detail {

inline constexpr std::string_view deepspeed_function = "mp::read_deepspeed_configuration";

[[noreturn]] inline void fail_deepspeed(std::string_view what) {
    throw_error(argument_error(std::string(deepspeed_function).append(": ").append(what)));
}

/// How many letters have to be inserted, removed or replaced to make one name of the other.
inline std::size_t edit_distance(std::string_view from, std::string_view to) {
    std::vector<std::size_t> row(to.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < from.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < to.size(); ++j) {
            const std::size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = (std::min)({replaced, diagonal + 1, row[j] + 1});
        }
    }
    return row.back();
}

/// A block of the configuration, which is asked for its keys one by one.
class deepspeed_block {
public:
    /// \param path  of the block; empty for the whole file
    deepspeed_block(const nlohmann::json& block, std::string path) : block_(&block), path_(std::move(path)) {
        if (!block.is_object()) {
            fail_deepspeed((path_.empty() ? std::string("the configuration") : path_) + " must be an object");
        }
    }

    /// The value of a key; null if it is not there. From then on the key is known.
    const nlohmann::json* find(std::string_view key) {
        known_.emplace_back(key);
        const auto found = block_->find(known_.back());
        return found == block_->end() ? nullptr : &*found;
    }

    std::optional<deepspeed_block> find_block(std::string_view key) {
        const nlohmann::json* const value = find(key);
        if (value == nullptr) return std::nullopt;
        return deepspeed_block(*value, path_of(key));
    }

    bool boolean(std::string_view key, bool otherwise) {
        const nlohmann::json* const value = find(key);
        if (value == nullptr) return otherwise;
        if (!value->is_boolean()) fail_about(key, *value, "must be true or false");
        return value->get<bool>();
    }

    /// A finite number from `least` on; truth values are none.
    double number(std::string_view key, double least, double otherwise) {
        const nlohmann::json* const value = find(key);
        if (value == nullptr) return otherwise;
        if (!value->is_number()) fail_about(key, *value, "must be a number");
        const auto number = value->get<double>();
        if (is_non_finite(number) || number < least) {
            fail_about(key, *value, "must be finite and at least " + error_text(least));
        }
        return number;
    }

    /// A whole number, which may be written as 2.0.
    std::optional<std::int64_t> integer(std::string_view key, std::int64_t least, std::int64_t greatest) {
        const nlohmann::json* const value = find(key);
        if (value == nullptr) return std::nullopt;
        std::int64_t number = 0;
        if (value->is_number_unsigned()) {
            const auto large = value->get<std::uint64_t>();
            number = std::in_range<std::int64_t>(large) ? static_cast<std::int64_t>(large) : INT64_MAX;
        } else if (value->is_number_integer()) {
            number = value->get<std::int64_t>();
        } else {
            const double fractional = value->is_number_float() ? value->get<double>() : 0.5;
            if (!(std::abs(fractional) < 0x1p53) || std::trunc(fractional) < fractional ||
                std::trunc(fractional) > fractional) {
                fail_about(key, *value, "must be a whole number");
            }
            number = static_cast<std::int64_t>(fractional);
        }
        if (number < least || number > greatest) {
            fail_about(key, *value, "must lie between " + error_text(least) + " and " + error_text(greatest));
        }
        return number;
    }

    /// Keys that are DeepSpeed's and of no interest here.
    template <std::size_t Count>
    void ignore(const std::string_view (&keys)[Count]) {
        known_.insert(known_.end(), std::begin(keys), std::end(keys));
    }

    /// Throws if there is a key that was not read.
    void finish() const {
        for (const auto& [key, value] : block_->items()) {
            if (std::find(known_.begin(), known_.end(), key) == known_.end()) fail_unknown(key);
        }
    }

    [[nodiscard]] std::string path_of(std::string_view key) const {
        return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
    }

    [[noreturn]] void fail_about(std::string_view key, const nlohmann::json& value,
                                 std::string_view expected) const {
        std::string message = path_of(key);
        if (value.is_structured()) {
            message.append(" is ").append(value.type_name());
        } else {
            // What is not UTF-8 was refused when the file was read.
            message.append(" is ").append(quoted_excerpt(value.dump()));
        }
        message.append("; it ").append(expected);
        if (value.is_string() && value.get_ref<const std::string&>() == "auto") {
            message.append(" (\"auto\" is filled in by the program that hands the file to DeepSpeed)");
        }
        fail_deepspeed(message);
    }

private:
    [[noreturn]] void fail_unknown(const std::string& key) const {
        std::string message =
            "there is no key " + quoted_excerpt(path_of(key)) + " in DeepSpeed's configuration";
        if (key.size() <= 64) {
            const auto nearest = std::min_element(
                known_.begin(), known_.end(),
                [&](const auto& a, const auto& b) { return edit_distance(key, a) < edit_distance(key, b); });
            if (edit_distance(key, *nearest) <= 3) {
                message.append("; did you mean ").append(quoted_excerpt(path_of(*nearest))).append("?");
            }
        }
        fail_deepspeed(message);
    }

    const nlohmann::json* block_;
    std::string path_;
    std::vector<std::string> known_;
};

/// Reads JSON and refuses keys that are there twice, of which nlohmann-json would keep the last.
inline nlohmann::json parse_deepspeed_json(std::string_view text) {
    constexpr int deepest = 100;
    std::vector<std::set<std::string>> open;
    const auto callback = [&open](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
        using parse_event = nlohmann::json::parse_event_t;
        if (depth > deepest) fail_deepspeed("the file is nested too deeply");
        if (event == parse_event::object_start) open.emplace_back();
        if (event == parse_event::object_end) open.pop_back();
        if (event == parse_event::key) {
            const auto& key = parsed.get_ref<const std::string&>();
            if (!open.back().insert(key).second) {
                fail_deepspeed("the key " + quoted_excerpt(key) + " is there twice");
            }
        }
        return true;
    };
    return attempt<nlohmann::json::exception>(
        [&] { return nlohmann::json::parse(text.begin(), text.end(), callback); },
        [](const nlohmann::json::exception& refused) -> nlohmann::json {
            fail_deepspeed("this is no JSON: " + quoted_excerpt(refused.what(), 200));
        });
}

/// The rule of DeepSpeed's: two of the numbers give the third, and one of the batch sizes alone means that
/// nothing is accumulated.
inline std::optional<deepspeed_batch> read_deepspeed_batch(deepspeed_block& top, std::int64_t world_size) {
    constexpr std::int64_t most = 2147483647;  // so that products of two stay within 64 bits
    const auto train = top.integer("train_batch_size", 1, most);
    const auto micro = top.integer("train_micro_batch_size_per_gpu", 1, most);
    const auto steps = top.integer("gradient_accumulation_steps", 1, most);
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
    const nlohmann::json* const value = top.find(key);
    if (value == nullptr) return 0;
    if (value->is_boolean()) return value->get<bool>() ? 1 : 0;
    deepspeed_block zero(*value, std::string(key));
    return static_cast<std::int32_t>(zero.integer("stage", 0, 3).value_or(0));
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
    const std::int64_t hysteresis =
        fp16.integer("hysteresis", least, dynamic ? std::int64_t{INT32_MAX} : any).value_or(2);
    const bool consecutive = fp16.boolean("consecutive_hysteresis", false);
    const auto floor = static_cast<double>(fp16.integer("min_loss_scale", least, any).value_or(1));
    if (fp16.boolean("fp16_master_weights_and_grads", false) && zero_stage == 0) {
        fail_deepspeed("fp16.fp16_master_weights_and_grads needs zero_optimization.stage to be 1, 2 or 3");
    }
    fp16.finish();
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
    bf16.finish();
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

/// Keys at the top that have no meaning for this library.
inline constexpr std::string_view ignored_deepspeed_keys[] = {
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
/// \param world_size  the number of ranks that share a batch, which the batch numbers are completed with;
///                    from 1 to 2^31 - 1
/// \throws argument_error  naming the path of the key, such as fp16.loss_scale: the text is not JSON, a key
/// is
///                         unknown or there twice, a value is of the wrong type or out of range, two of fp16,
///                         bf16 and amp are enabled, the batch numbers contradict each other, or amp or
///                         torch_autocast is enabled, with which the scaler is not DeepSpeed's
[[nodiscard]] inline deepspeed_configuration read_deepspeed_configuration(std::string_view json_text,
                                                                          std::int64_t world_size = 1) {
    if (world_size < 1 || world_size > 2147483647) {
        detail::throw_argument(detail::deepspeed_function, "world_size", world_size,
                               "must lie between 1 and 2147483647");
    }
    const nlohmann::json json = detail::parse_deepspeed_json(json_text);
    detail::deepspeed_block top(json, "");
    deepspeed_configuration configuration;
    configuration.zero_stage = detail::read_zero_stage(top);
    configuration.batch = detail::read_deepspeed_batch(top, world_size);
    configuration.gradient_clipping = top.number("gradient_clipping", 0.0, 1.0);

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
    const bool autocast = detail::deepspeed_block_enabled(top, "torch_autocast");
    top.ignore(detail::ignored_deepspeed_keys);
    top.finish();
    if (int{fp16} + int{bf16} + int{amp} > 1) {
        detail::fail_deepspeed("only one of fp16, bf16 and amp can be enabled");
    }
    if (amp) {
        detail::fail_deepspeed("amp.enabled is true: the scaler is then Apex's, see mp::apex_policy");
    }
    if (autocast) {
        detail::fail_deepspeed(
            "torch_autocast.enabled is true: the scaler is then PyTorch's, see mp::pytorch_policy");
    }
    return configuration;
}

}  // namespace mp
