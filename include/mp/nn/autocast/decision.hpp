// SPDX-License-Identifier: MIT
/// \file
/// The decision of a region about a call: the category of the op, and the rule that gives it.
#pragma once

#include <mp/error.hpp>
#include <mp/nn/autocast/name_pattern.hpp>
#include <mp/nn/autocast/op_names.hpp>
#include <mp/nn/autocast/op_record.hpp>
#include <mp/nn/autocast/policy.hpp>
#include <mp/nn/autocast/region.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// The decision of a region about an op.
struct region_decision {
    precision active = precision::off;
    op_category category = op_category::pass_through;
    autocast::decided_by by = autocast::decided_by::op;
    bool selected = true;                     ///< false where only other ops or layers are cast
    const autocast::op_list* list = nullptr;  ///< that decided, if a list did
    const autocast::op_rule* rule = nullptr;  ///< of the list, if it has one for the op
    const autocast::region_rule* scope = nullptr;

    /// Whether the op runs under a policy at all.
    MP_ALWAYS_INLINE bool casts() const { return active != precision::off && selected; }
};

/// Decides about a call of an op on the device: overrides of the call, rules of regions from the inside out,
/// registered_category, the region's list, the op's own category, in this order.
MP_CORE_FUNCTION region_decision decide_call(const autocast_state& state, device_kind device,
                                             const decided_op& op, const void* arguments);

/// The deciding rule, as text.
MP_CORE_FUNCTION std::string rule_text(autocast::decided_by by, std::string_view list,
                                       const autocast::op_rule* rule, const autocast::region_rule* scope);
MP_CORE_FUNCTION std::string rule_text(const region_decision& decision);

#if MP_CORE_BODIES
MP_CORE_FUNCTION bool layer_matches(std::string_view pattern) {
    return pattern.empty() || autocast::matches_pattern(pattern, autocast_layer_path());
}

MP_NEVER_INLINE MP_CORE_FUNCTION bool has_name(const decided_op& op, std::string_view name) {
    return std::find(op.names.begin(), op.names.end(), name) != op.names.end();
}

/// The first rule of the region, and then of those around it, that fits; null where none does.
MP_CORE_FUNCTION const autocast::region_rule* find_scope_rule(const autocast_state* state, device_kind device,
                                                              const decided_op& op) {
    for (; state != nullptr; state = state->outer) {
        for (const autocast::region_rule& rule : state->rules) {
            if (rule.device && *rule.device != device) continue;
            if ((rule.op == "*" || has_name(op, rule.op)) && layer_matches(rule.layer)) return &rule;
        }
    }
    return nullptr;
}

/// Whether the region casts in this op and layer at all.
MP_CORE_FUNCTION bool is_selected(const autocast_state& state, const decided_op& op) {
    const auto any = [](const std::vector<std::string>& names, auto fits) {
        return names.empty() || std::any_of(names.begin(), names.end(), fits);
    };
    return any(state.only_ops, [&](std::string_view name) { return has_name(op, name); }) &&
           any(state.only_layers, [](std::string_view pattern) { return layer_matches(pattern); });
}

/// The rule whose condition holds for the arguments, else the one without a condition, else null.
MP_CORE_FUNCTION const autocast::op_rule* matching_rule(std::span<const autocast::op_rule> rules,
                                                        const decided_op& op, const void* arguments) {
    for (const autocast::op_rule& rule : rules) {
        if (op.parameter != nullptr && !rule.parameter.empty() &&
            op.parameter(arguments, rule.parameter) == rule.value) {
            return &rule;
        }
    }
    return rules.empty() || !rules.front().parameter.empty() ? nullptr : &rules.front();
}

MP_CORE_FUNCTION region_decision decide_call(const autocast_state& state, device_kind device,
                                             const decided_op& op, const void* arguments) {
    region_decision result;
    result.category = op.category;
    result.active = state.precisions[static_cast<std::size_t>(device)];
    if (result.active == precision::off) return result;
    result.selected = is_selected(state, op);
    if (op.overridden.found) {
        result.category = op.overridden.category;
        result.by = autocast::decided_by::call;
    } else if (const autocast::region_rule* scope = find_scope_rule(&state, device, op)) {
        result.category = scope->category;
        result.by = autocast::decided_by::scope;
        result.scope = scope;
    } else if (op.registered.found) {
        result.category = op.registered.category;
        result.by = autocast::decided_by::registration;
    } else if (state.list != &autocast::own_categories) {
        result.list = state.list;
        result.rule = matching_rule(rules_for(*state.list, op.names), op, arguments);
        result.category = result.rule != nullptr ? result.rule->category : state.list->unlisted;
        result.by = result.rule != nullptr ? autocast::decided_by::list : autocast::decided_by::unlisted;
    }
    return result;
}

MP_CORE_FUNCTION std::string rule_text(autocast::decided_by by, std::string_view list,
                                       const autocast::op_rule* rule, const autocast::region_rule* scope) {
    std::string text(name_of(by));
    if (scope != nullptr) {
        append_text(text, {" for '", scope->op, "'"});
        if (!scope->layer.empty()) append_text(text, {" in layers '", scope->layer, "'"});
    }
    if (!list.empty()) append_text(text, {" ", list});
    if (rule != nullptr) {
        append_text(text, {", as '", rule->op, "'"});
        if (!rule->parameter.empty()) append_text(text, {" with ", rule->parameter, " = ", rule->value});
    }
    return text;
}

MP_CORE_FUNCTION std::string rule_text(const region_decision& decision) {
    return rule_text(decision.by, decision.list == nullptr ? std::string_view() : decision.list->name,
                     decision.rule, decision.scope);
}
#endif

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

[[noreturn]] inline void throw_banned(std::string_view op, std::string_view reason,
                                      const region_decision& decision) {
    const bool by_rule = decision.rule != nullptr && !decision.rule->reason.empty();
    const bool by_op = decision.by == autocast::decided_by::op;
    throw_joined<state_error>({"mp::autocast::dispatch: op '", op,
                               "' is banned in an autocast region of precision ", name_of(decision.active),
                               ": ", by_rule ? decision.rule->reason : reason, by_op ? "" : " (",
                               by_op ? "" : rule_text(decision), by_op ? "" : ")"});
}

/// A promotion with a third floating-point format among the arguments.
[[noreturn]] inline void throw_third_type(std::string_view op, std::string_view third, precision active) {
    throw_joined<argument_error>({"mp::autocast::dispatch: op '", op,
                                  "' promotes its arguments to one type, and one of them is ", third,
                                  "; it must be float or ", active == precision::fp16 ? "half" : "bfloat16",
                                  ", or the op in the category promote_widest"});
}

/// Decides about a call of Op. Arguments are those that its parameters are read from, or none.
template <class Op, device_kind Device, class... Overrides, class... Arguments>
region_decision decide(const autocast_state& state, const Arguments&... arguments) {
    static constexpr decided_op op = decided_op_of<Op, Device, Overrides...>();
    if constexpr (tells_parameters<Op, Arguments...>) {
        const auto parameter = [&](std::string_view name) -> std::string_view {
            return Op::parameter(name, arguments...);
        };
        decided_op with_parameters = op;
        with_parameters.parameter = [](const void* f, std::string_view name) {
            return (*static_cast<const decltype(parameter)*>(f))(name);
        };
        return decide_call(state, Device, with_parameters, &parameter);
    } else {
        return decide_call(state, Device, op, nullptr);
    }
}

/// The device of an op: that of its executor, its first argument, and the CPU where it has none.
template <class... Arguments>
inline constexpr device_kind device_of_call = device_kind::cpu;
template <class First, class... Rest>
inline constexpr device_kind device_of_call<First, Rest...> = device_of<First>;

}}  // namespace mp::detail
