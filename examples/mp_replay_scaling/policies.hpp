// SPDX-License-Identifier: MIT
/// \file
/// The policies that are compared, each with its defaults, and the formats.
#pragma once

#include <mp/frontends/report/replay.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/numbers/format/limits.hpp>
#include <mp/numbers/format/named_formats.hpp>
#include <mp/numbers/format/operations.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

namespace replay_scaling {

/// A policy with a name, and how it is replayed.
struct policy_entry {
    using function = mp::replay_result (*)(std::span<const mp::trace_step>, std::string_view name,
                                           const mp::magnitude_range&);
    std::string_view name;
    std::string_view about;
    function replay;
};

namespace detail {

template <class Policy>
mp::replay_result replay_defaults(std::span<const mp::trace_step> trace, std::string_view name,
                                  const mp::magnitude_range& range) {
    return mp::replay(trace, Policy{}, name, range);
}

/// Grows when values are lost, not on a schedule.
inline mp::replay_result replay_on_underflow(std::span<const mp::trace_step> trace, std::string_view name,
                                             const mp::magnitude_range& range) {
    return mp::replay(trace, mp::dynamic_policy<mp::growth_on_underflow>{}, name, range);
}

template <int Scale>
mp::replay_result replay_static(std::span<const mp::trace_step> trace, std::string_view name,
                                const mp::magnitude_range& range) {
    return mp::replay(trace, mp::static_policy{.initial_scale = static_cast<float>(Scale)}, name, range);
}

}  // namespace detail

inline constexpr std::array<policy_entry, 19> all_policies{{
    {"pytorch", "torch.amp.GradScaler", detail::replay_defaults<mp::pytorch_policy>},
    {"tensorflow", "tf.keras.mixed_precision of TensorFlow 2",
     detail::replay_defaults<mp::tensorflow_policy>},
    {"keras", "Keras 3", detail::replay_defaults<mp::keras_policy>},
    {"jmp", "jmp.DynamicLossScale (JAX)", detail::replay_defaults<mp::jmp_policy>},
    {"apex", "Apex amp", detail::replay_defaults<mp::apex_policy>},
    {"apex_fp16_utils", "the older scaler of Apex", detail::replay_defaults<mp::apex_fp16_utils_policy>},
    {"apex_hysteresis", "Apex's kernel with hysteresis", detail::replay_defaults<mp::apex_hysteresis_policy>},
    {"mxnet", "MXNet amp", detail::replay_defaults<mp::mxnet_policy>},
    {"deepspeed", "DeepSpeed with ZeRO", detail::replay_defaults<mp::deepspeed_policy>},
    {"deepspeed_fused", "DeepSpeed without ZeRO", detail::replay_defaults<mp::deepspeed_fused_policy>},
    {"megatron", "Megatron", detail::replay_defaults<mp::megatron_policy>},
    {"fairseq", "fairseq", detail::replay_defaults<mp::fairseq_policy>},
    {"openseq2seq", "OpenSeq2Seq, back-off", detail::replay_defaults<mp::openseq2seq_policy>},
    {"chainer", "Chainer", detail::replay_defaults<mp::chainer_policy>},
    {"logmax", "OpenSeq2Seq, LogMax", detail::replay_defaults<mp::logmax_policy>},
    {"histogram", "PopART; it never skips", detail::replay_defaults<mp::histogram_policy>},
    {"underflow", "grows when values are lost", detail::replay_on_underflow},
    {"static", "always 1024", detail::replay_static<1024>},
    {"none", "no scaling", detail::replay_static<1>},
}};

/// A format with its name.
struct format_entry {
    std::string_view name;
    mp::magnitude_range range;
};

namespace detail {

/// "e5m2" for "float8_e5m2"; "half" as it is.
constexpr std::string_view short_name(std::string_view name) {
    return name.substr(name.find('_') + 1);
}

/// Formats that gradients are kept in: with a sign, and of 16 bits and fewer.
template <class Format>
inline constexpr bool holds_gradients = Format::is_signed && mp::layout_of<Format>::width <= 16;

template <class... Formats>
constexpr auto formats_of(mp::formats::list<Formats...>) {
    std::array<format_entry, (std::size_t{holds_gradients<Formats>} + ...)> result{};
    std::size_t count = 0;
    const auto add = [&]<class Format>(std::type_identity<Format>) {
        if constexpr (holds_gradients<Format>) {
            result[count++] = {short_name(Format::name), mp::magnitude_range::of<mp::basic_float<Format>>()};
        }
    };
    (add(std::type_identity<Formats>{}), ...);
    return result;
}

}  // namespace detail

inline constexpr auto all_formats = detail::formats_of(mp::formats::all{});

}  // namespace replay_scaling
