// SPDX-License-Identifier: MIT
/// \file
/// The decision of a region about a call: the category of the op, and the rule that gives it.
#pragma once

#include <mp/error.hpp>
#include <mp/nn/autocast/name_pattern.hpp>
#include <mp/nn/autocast/op_names.hpp>
#include <mp/nn/autocast/policy.hpp>
#include <mp/nn/autocast/region.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

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
    bool casts() const { return active != precision::off && selected; }
};

/// Whether `name` is one of the op's names, or of its forward op's.
template <class Op>
bool has_name(std::string_view name) {
    return first_by_name<Op>([&](std::string_view own) { return own == name; });
}

inline bool layer_matches(std::string_view pattern) {
    return pattern.empty() || autocast::matches_pattern(pattern, autocast_layer_path());
}

/// The first rule of the region, and then of those around it, that fits; null where none does.
template <class Op>
const autocast::region_rule* find_scope_rule(const autocast_state* state, device_kind device) {
    for (; state != nullptr; state = state->outer) {
        for (const autocast::region_rule& rule : state->rules) {
            if (rule.device && *rule.device != device) continue;
            if ((rule.op == "*" || has_name<Op>(rule.op)) && layer_matches(rule.layer)) return &rule;
        }
    }
    return nullptr;
}

/// Whether the region casts in this op and layer at all.
template <class Op>
bool is_selected(const autocast_state& state) {
    const auto any = [](const std::vector<std::string>& names, auto fits) {
        if (names.empty()) return true;
        for (const std::string& name : names) {
            if (fits(name)) return true;
        }
        return false;
    };
    return any(state.only_ops, [](std::string_view name) { return has_name<Op>(name); }) &&
           any(state.only_layers, [](std::string_view pattern) { return layer_matches(pattern); });
}

/// Decides about a call of Op on the device: overrides of the call, rules of regions from the inside out,
/// registered_category, the region's list, the op's own category, in this order.
template <class Op, device_kind Device, class... Overrides, class... Arguments>
region_decision decide(const autocast_state& state, const Arguments&... arguments) {
    region_decision result;
    result.active = state.precisions[static_cast<std::size_t>(Device)];
    if (result.active == precision::off) {
        result.category = Op::category;
        return result;
    }
    result.selected = is_selected<Op>(state);
    if constexpr (constexpr found_category overridden = find_override<Op, Overrides...>(); overridden.found) {
        result.category = overridden.category;
        result.by = autocast::decided_by::call;
        return result;
    }
    if (const autocast::region_rule* scope = find_scope_rule<Op>(&state, Device)) {
        result.category = scope->category;
        result.by = autocast::decided_by::scope;
        result.scope = scope;
        return result;
    }
    if constexpr (constexpr found_category registered = find_registration<Op, Device>(); registered.found) {
        result.category = registered.category;
        result.by = autocast::decided_by::registration;
    } else if (state.list != &autocast::own_categories) {
        result.list = state.list;
        result.rule = matching_rule<Op>(rules_for<Op>(*state.list), arguments...);
        result.category = result.rule != nullptr ? result.rule->category : state.list->unlisted;
        result.by = result.rule != nullptr ? autocast::decided_by::list : autocast::decided_by::unlisted;
    } else {
        result.category = Op::category;
    }
    return result;
}

/// The deciding rule, as text.
inline std::string rule_text(autocast::decided_by by, std::string_view list, const autocast::op_rule* rule,
                             const autocast::region_rule* scope) {
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

inline std::string rule_text(const region_decision& decision) {
    return rule_text(decision.by, decision.list == nullptr ? std::string_view() : decision.list->name,
                     decision.rule, decision.scope);
}

/// The device of an op: that of its executor, its first argument, and the CPU where it has none.
template <class... Arguments>
inline constexpr device_kind device_of_call = device_kind::cpu;
template <class First, class... Rest>
inline constexpr device_kind device_of_call<First, Rest...> = device_of<First>;

}}  // namespace mp::detail
