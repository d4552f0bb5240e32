// SPDX-License-Identifier: MIT
/// \file
/// The state of torch.optim's AdamW, Adam and SGD, to go on here with a run that began there.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/error.hpp>
#include <mp/nn/optim/gradient_limits.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Throws argument_error for tensors "state.<i>.<name>" of other parameters than the first `count`, or of
/// unknown names.
template <bool IsAdam, class TensorFile>
void require_known_states(std::string_view function, const TensorFile& file, std::size_t count) {
    constexpr std::string_view begin = "state.";
    for (const auto& [tensor, contents] : file.tensors()) {
        const std::string_view text = tensor;
        const std::size_t end = text.find_first_not_of("0123456789", begin.size());
        if (!text.starts_with(begin) || end == begin.size() || end >= text.size() || text[end] != '.')
            continue;
        const std::string_view index = text.substr(begin.size(), end - begin.size());
        std::size_t number = count;
        std::from_chars(index.data(), index.data() + index.size(), number);  // left as it is if out of range
        if (number >= count) {
            throw_argument(function, "file", tensor,
                           "must not be in it: the optimizer has no parameter " + std::string(index) +
                               ", only " + error_text(count));
        }
        const std::string_view name = text.substr(end + 1);
        if (IsAdam ? name == "exp_avg" || name == "exp_avg_sq" || name == "step" : name == "momentum_buffer")
            continue;
        throw_argument(function, "file", tensor,
                       name == "max_exp_avg_sq"
                           ? "must not be in it: it is the maximum of AMSGrad, which mp::adamw does "
                             "not have; train without amsgrad"
                       : IsAdam ? "must not be in it: mp::adamw has exp_avg, exp_avg_sq and step"
                                : "must not be in it: mp::sgd has momentum_buffer");
    }
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Takes over the state of an optimizer of PyTorch, whose tensors lie in a file under "state.<i>.<name>", where
/// i is the number of the parameter here and in torch's state_dict(): exp_avg, exp_avg_sq and step of AdamW and
/// Adam for mp::adamw, momentum_buffer of SGD for mp::sgd. State is rounded to nearest to what the optimizer
/// keeps. A parameter of which the file has none begins anew. Weights and options are not touched; master
/// weights follow weights that are read into mutable_values() of their tensors.
///
///     # Python: save_file({f"state.{i}.{k}": torch.as_tensor(v, dtype=torch.float32).contiguous()
///     #                    for i, s in optimizer.state_dict()["state"].items()
///     #                    for k, v in s.items() if v is not None}, "optimizer.safetensors")
///     mp::import_pytorch_optimizer(mp::tensor_file("optimizer.safetensors"), optimizer);
///
/// SGD counts no steps there; a parameter with a momentum counts as updated once, after which dampening
/// applies.
///
/// \param file  a mp::tensor_file
/// \throws argument_error  a parameter has a part of the tensors only; a step is not a whole number from 1 to
///                         2^24; there is state of a parameter that the optimizer does not have, or of
///                         another kind, such as AMSGrad's max_exp_avg_sq; a value is not finite, or a mean
///                         of squares is negative; nothing has changed
/// \throws file_error      a tensor has another number of elements, or is not of floats; nothing has changed
template <class TensorFile, class Optimizer>
void import_pytorch_optimizer(const TensorFile& file, Optimizer& optimizer) {
    constexpr std::string_view function = "mp::import_pytorch_optimizer";
    constexpr bool is_adam = requires { optimizer.gradient_mean_square(0); };
    static_assert(
        is_adam || requires { optimizer.options().nesterov; },
        "mp::import_pytorch_optimizer: there are states for mp::adamw and mp::sgd");
    std::vector<std::string_view> names = {"momentum_buffer"};
    if constexpr (is_adam) names = {"exp_avg", "exp_avg_sq"};
    const std::size_t count = optimizer.parameters().size();
    detail::require_known_states<is_adam>(function, file, count);
    std::vector<std::vector<float>> states(count * names.size());
    std::vector<std::uint64_t> updates(count);
    for (std::size_t i = 0; i < count; ++i) {
        const std::string prefix = "state." + detail::error_text(i) + ".";
        const auto has = [&](std::string_view name) {
            return file.tensors().contains(prefix + std::string(name));
        };
        bool any = is_adam && has("step");
        for (const std::string_view name : names) any = any || has(name);
        if (!any) continue;
        for (std::size_t s = 0; s < names.size(); ++s) {
            if (!has(names[s])) {
                detail::throw_argument(function, "file", prefix + std::string(names[s]),
                                       "must be in it, as other state of this parameter is");
            }
            states[i * names.size() + s].resize(optimizer.parameters()[i].weights.size());
            file.read_converted(prefix + std::string(names[s]), states[i * names.size() + s]);
            detail::require_moments(function, prefix + std::string(names[s]), states[i * names.size() + s],
                                    detail::largest_float_as_double, s == 1);
        }
        updates[i] = 1;
        if constexpr (is_adam) {
            if (!has("step")) {
                detail::throw_argument(function, "file", prefix + "step",
                                       "must be in it, as other state of this parameter is");
            }
            std::vector<double> step(1);
            file.read_converted(prefix + "step", step);
            if (!(step[0] >= 1.0 && step[0] <= 0x1p24)) {
                detail::throw_argument(function, prefix + "step", step[0], "must be from 1 to 2^24");
            }
            updates[i] = static_cast<std::uint64_t>(step[0]);
            if (!detail::same_value(static_cast<double>(updates[i]), step[0])) {
                detail::throw_argument(function, prefix + "step", step[0], "must be a whole number");
            }
        }
    }
    if constexpr (is_adam) {
        for (std::size_t i = 0; i < states.size(); ++i) {
            const double divisor =
                optimizer.state_divisor(i / names.size(), i % names.size(), updates[i / names.size()]);
            if (detail::same_value(divisor, 1.0)) continue;
            for (float& value : states[i]) {
                value = static_cast<float>(detail::double_divide(static_cast<double>(value), divisor));
            }
        }
    }
    optimizer.set_states(states, updates);
}

}}  // namespace mp
