// SPDX-License-Identifier: MIT
/// \file
/// Policies of layers in JMP's notation, "p=f32,c=f16,o=f32".
#pragma once

#include <mp/error.hpp>
#include <mp/frontends/compat/keras/dtype_policy.hpp>
#include <mp/nn/autocast/element_format.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

struct jmp_alias {
    std::string_view name;
    element_format format;
};

/// The names of jmp/_src/policy.py; the first one of a format is the one that is written. "half" is missing:
/// what it means depends on the machine.
inline constexpr std::array<jmp_alias, 9> jmp_aliases{{
    {"bf16", element_format::bf16},
    {"bfloat16", element_format::bf16},
    {"f16", element_format::f16},
    {"float16", element_format::f16},
    {"full", element_format::f32},
    {"f32", element_format::f32},
    {"float32", element_format::f32},
    {"f64", element_format::f64},
    {"float64", element_format::f64},
}};

inline std::string_view jmp_name_of(element_format format, std::string_view policy) {
    for (const jmp_alias& alias : jmp_aliases) {
        if (alias.format == format) return alias.name;
    }
    throw_argument("mp::autocast::jmp_text_of",
                   std::string("a format of the policy ").append(error_text(policy)), name_of(format),
                   "must be one that JMP has a name for: bfloat16, float16, float32, float64");
}

[[noreturn]] inline void fail_jmp(std::string_view text, std::string_view part, std::string_view expected) {
    throw_argument("mp::autocast::dtype_policy_from_jmp",
                   std::string("in ").append(error_text(text)).append(" the part"), part, expected);
}

inline element_format jmp_format(std::string_view text, std::string_view name, element_format half) {
    if (name == "half") return half;
    for (const jmp_alias& alias : jmp_aliases) {
        if (alias.name == name) return alias.format;
    }
    fail_jmp(text, name, "must be half, full, bf16, bfloat16, f16, float16, f32, float32, f64 or float64");
}

}}  // namespace mp::detail

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

/// The policy as JMP writes it: "p=full,c=f16,o=full", where "full" is float32. Throws argument_error for
/// formats that JMP has no name for.
inline std::string jmp_text_of(const dtype_policy& policy) {
    std::string text("p=");
    text.append(detail::jmp_name_of(policy.variable, policy.name));
    text.append(",c=").append(detail::jmp_name_of(policy.compute, policy.name));
    return text.append(",o=").append(detail::jmp_name_of(policy.output, policy.name));
}

/// Reads a policy as JMP does: one format for everything ("half"), or parts "key=format" with commas between
/// them. The keys are p or params, c or compute, o or output. What is missing follows: parameters are
/// float32, the computation is in the format of the parameters, the result in that of the computation.
///
///     dtype_policy_from_jmp("c=f16")  // parameters in float32, computation and result in float16
///
/// \param half  what "half" means: JMP takes bfloat16 on TPUs and float16 elsewhere
///
/// Throws argument_error that names the part at fault; also for a key given twice, of which JMP takes the
/// last. Blanks are not skipped. Rules: jmp/_src/policy.py.
inline dtype_policy dtype_policy_from_jmp(std::string_view text, element_format half = element_format::f16) {
    if (half != element_format::f16 && half != element_format::bf16) {
        detail::throw_argument("mp::autocast::dtype_policy_from_jmp", "half", name_of(half),
                               "must be float16 or bfloat16");
    }
    dtype_policy policy{};
    if (text.find('=') == std::string_view::npos) {
        policy.variable = policy.compute = policy.output = detail::jmp_format(text, text, half);
    } else {
        std::optional<element_format> variable;
        std::optional<element_format> compute;
        std::optional<element_format> output;
        for (std::string_view rest = text;;) {
            const std::size_t comma = rest.find(',');
            const std::string_view part = rest.substr(0, comma);
            const std::size_t equals = part.find('=');
            if (equals == std::string_view::npos) detail::fail_jmp(text, part, "must be key=format");
            const std::string_view key = part.substr(0, equals);
            auto* const place = key == "p" || key == "params"    ? &variable
                                : key == "c" || key == "compute" ? &compute
                                : key == "o" || key == "output"  ? &output
                                                                 : nullptr;
            if (place == nullptr) {
                detail::fail_jmp(text, part, "must begin with p, params, c, compute, o or output");
            }
            if (place->has_value()) detail::fail_jmp(text, part, "must not set what an earlier part has set");
            *place = detail::jmp_format(text, part.substr(equals + 1), half);
            if (comma == std::string_view::npos) break;
            rest.remove_prefix(comma + 1);
        }
        policy.variable = variable.value_or(element_format::f32);
        policy.compute = compute.value_or(policy.variable);
        policy.output = output.value_or(policy.compute);
    }
    policy.name = jmp_text_of(policy);
    return policy;
}

}}  // namespace mp::autocast
