// SPDX-License-Identifier: MIT
/// \file
/// Why an op runs in the precision it does.
#pragma once

#include <mp/nn/autocast/call.hpp>
#include <mp/nn/autocast/decision.hpp>
#include <mp/nn/autocast/dispatch.hpp>
#include <mp/nn/autocast/policy.hpp>
#include <mp/nn/autocast/region.hpp>
#include <mp/nn/autocast/resolution.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace mp::autocast {

/// The treatment of one argument; both names are "none" for arguments without floating-point
/// data and for those that the op writes.
struct explained_cast {
    std::string_view from;              ///< the type of its numbers or elements
    std::string_view to;                ///< the type that they have when the kernel sees them
    std::string_view through = "none";  ///< the float8 format that they are rounded to on the way
};

/// The decision of a policy about one op and its argument types.
template <std::size_t ArgumentCount>
struct explanation {
    std::string_view op;            ///< the op's name
    std::string_view policy;        ///< "half", "bfloat16", "off": the policy's name
    op_category category;           ///< the category that decided
    bool overridden;                ///< whether it is another category than the op's own
    bool allowed;                   ///< false if the op does not run: it is banned, or a third type is there
    std::string_view rule;          ///< what the category means, as a sentence
    std::string_view compute_type;  ///< name of compute_type_t
    std::string_view output_type;   ///< name of output_type_t
    std::array<explained_cast, ArgumentCount> arguments;
    decided_by by = decided_by::op;      ///< which rule decided
    std::string_view list = {};          ///< name of the list that decided, if one did
    const op_rule* list_rule = nullptr;  ///< its rule for the op; null where it does not name it
    const region_rule* scope_rule =
        nullptr;           ///< the region's rule, if one decided; lives as long as the region
    bool selected = true;  ///< false where the region casts in other ops or layers only

    /// The decision in one line of English.
    std::string text() const {
        std::string line(op);
        line.append(" under policy ").append(policy).append(": ").append(rule);
        line.append(" (category ").append(name_of(category)).append(", ");
        line.append(detail::rule_text(by, list, list_rule, scope_rule));
        line.append(")");
        if (allowed)
            line.append("; computes in ").append(compute_type).append(", returns ").append(output_type);
        return line;
    }
};

}  // namespace mp::autocast

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// What an explanation says of the data in an argument, whatever becomes of it.
struct explained_argument {
    std::string_view data;
    bool is_eligible;
    std::string_view quantised;  ///< the float8 format that quantising policies round it to, or "none"
};

template <class Policy, class Op, class... Arguments>
constexpr std::array<explained_argument, sizeof...(Arguments)> explained_arguments() {
    const auto argument = []<class Data, std::size_t Index>(std::type_identity<Data>,
                                                            std::integral_constant<std::size_t, Index>) {
        constexpr bool eligible = autocast::eligible<Data>;
        using quantised =
            std::conditional_t<eligible, typename quantised_format<Policy, Op, Index>::type, void>;
        return explained_argument{autocast::type_name<Data>(), eligible, autocast::type_name<quantised>()};
    };
    return [&]<std::size_t... Index>(std::index_sequence<Index...>) {
        return std::array<explained_argument, sizeof...(Arguments)>{
            argument(std::type_identity<data_of<Arguments, Arguments...>>{},
                     std::integral_constant<std::size_t, Index>{})...};
    }(std::index_sequence_for<Arguments...>{});
}

/// An op under a policy.
struct explained_op {
    std::string_view op;
    op_category own_category;
    std::string_view policy;
    bool is_enabled;       ///< whether the policy casts at all
    op_category category;  ///< that decided
    bool quantises;        ///< whether operands of products go through float8
};

template <std::size_t Count>
constexpr autocast::explanation<Count> explain_types(const explained_op& call, const resolution_names& types,
                                                     const std::array<explained_argument, Count>& arguments) {
    autocast::explanation<Count> result{};
    const bool is_refused = !types.third_type.empty();
    result.op = call.op;
    result.policy = call.policy;
    result.category = call.category;
    result.overridden = call.category != call.own_category;
    result.allowed = !is_refused && !(call.is_enabled && call.category == op_category::banned);
    result.rule =
        !call.is_enabled ? std::string_view("autocast is off and arguments stay as they are")
        : is_refused
            ? std::string_view("the op must not have a third floating-point format among its arguments")
            : description_of(call.category);
    result.compute_type = types.compute;
    result.output_type = types.output;
    for (std::size_t i = 0; i < Count; ++i) {
        const explained_argument& argument = arguments[i];
        const bool is_cast = argument.is_eligible && !types.target.empty();
        result.arguments[i] = {argument.data, is_cast ? types.target : argument.data};
        if (call.quantises) result.arguments[i].through = argument.quantised;
    }
    return result;
}

/// The explanation of a region's decision.
/// \param table  the region_plans of the call
template <std::size_t Count>
autocast::explanation<Count> explain_decision(const region_decision& decision, std::string_view op,
                                              op_category own_category, const plan_table& table,
                                              const std::array<explained_argument, Count>& arguments) {
    constexpr std::string_view policies[] = {autocast::off::name, region_policies<precision::fp16>::name,
                                             region_policies<precision::bf16>::name,
                                             region_policies<precision::fp8>::name};
    const bool casts = decision.casts();
    const auto active = static_cast<std::size_t>(decision.active);
    // What is banned, or in a region that is off, has the types of what passes through.
    const op_category resolved =
        casts && decision.category != op_category::banned ? decision.category : op_category::pass_through;
    const resolution_names& types = table[casts ? active - 1 : 0][static_cast<std::size_t>(resolved)].types;
    auto result = explain_types(
        {op, own_category, policies[casts ? active : 0], casts, decision.category,
         casts && decision.active == precision::fp8 && decision.category == op_category::lower_precision},
        types, arguments);
    result.by = decision.by;
    if (decision.list != nullptr) result.list = decision.list->name;
    result.list_rule = decision.rule;
    result.scope_rule = decision.scope;
    result.selected = decision.selected;
    if (!decision.selected) result.rule = "the region casts in other ops or layers only";
    return result;
}

/// The treatment of Op on Arguments by the calling thread's region. Values are the arguments themselves, or
/// none.
template <class Op, class Arguments, class... Overrides>
struct region_explainer;

template <class Op, class... Arguments, class... Overrides>
struct region_explainer<Op, type_list<Arguments...>, Overrides...> {
    template <class... Values>
    static autocast::explanation<sizeof...(Arguments)> explain(const Values&... values) {
        using original = typename original_op<Op>::type;
        using plans = region_plans<typename requested_result<Op>::type, has_product_operands<Op>(), false,
                                   data_list<Arguments...>>;
        const autocast_state* state = autocast_thread.state;
        region_decision decision;
        decision.category = Op::category;
        if (state != nullptr) {
            decision = decide<original, device_of_call<Arguments...>, Overrides...>(*state, values...);
        }
        return explain_decision(decision, Op::name, Op::category, plans::table,
                                explained_arguments<region_policies<precision::fp8>, Op, Arguments...>());
    }
};

}}  // namespace mp::detail

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

/// Says what call<Policy> does with an op on arguments of these types, numbers or views, and which rule
/// decided. With by_region it answers for the region that the calling thread is in. Rules with conditions
/// need values, which explain_call() has.
///
///     std::puts(mp::autocast::explain<mp::autocast::fp16, matmul_op, float, float>().text().c_str());
template <class Policy, op Op, class... Arguments>
    requires(!detail::follows_region<Policy>)
constexpr explanation<sizeof...(Arguments)> explain() {
    using original = typename detail::original_op<Op>::type;
    decided_by by = decided_by::op;
    std::string_view list;
    if constexpr (requires { Policy::template decision<original>; }) {
        by = Policy::template decision<original>.by;
        if (by == decided_by::list || by == decided_by::unlisted) list = Policy::list->name;
    }
    if (category_of<Policy, Op> != Op::category && by == decided_by::op) by = decided_by::call;
    using types = detail::resolution<Policy, Op, category_of<Policy, Op>, Arguments...>;
    auto result = detail::explain_types<sizeof...(Arguments)>(
        {Op::name, Op::category, Policy::name, Policy::enabled, category_of<Policy, Op>,
         !std::is_void_v<typename types::plan::quantising>},
        detail::names_of_resolution<types>(), detail::explained_arguments<Policy, Op, Arguments...>());
    result.by = by;
    result.list = list;
    return result;
}

template <class Policy, op Op, class... Arguments>
    requires detail::follows_region<Policy>
explanation<sizeof...(Arguments)> explain() {
    return [&]<class... Overrides>(region_policy<Overrides...>) {
        return detail::region_explainer<Op, detail::type_list<Arguments...>, Overrides...>::explain();
    }(Policy{});
}

/// As explain(), for the arguments themselves, so that rules that ask for the value of a parameter are known:
///
///     mp::autocast_region region(mp::precision::fp16, mp::autocast::lists::mxnet);
///     std::puts(mp::autocast::explain_call(leaky_relu_op{}, exec, x, out, activation::elu).text().c_str());
template <class Policy = by_region, op Op, class... Arguments>
    requires detail::follows_region<Policy>
explanation<sizeof...(Arguments)> explain_call(const Op&, const Arguments&... arguments) {
    return [&]<class... Overrides>(region_policy<Overrides...>) {
        return detail::region_explainer<Op, detail::type_list<Arguments...>, Overrides...>::explain(
            detail::without_cache(arguments)...);
    }(Policy{});
}

}}  // namespace mp::autocast
