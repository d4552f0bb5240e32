// SPDX-License-Identifier: MIT
/// \file
/// Why an op runs in the precision it does.
#pragma once

#include <mp/autocast/call.hpp>
#include <mp/autocast/decision.hpp>
#include <mp/autocast/dispatch.hpp>
#include <mp/autocast/policy.hpp>
#include <mp/autocast/region.hpp>
#include <mp/autocast/resolution.hpp>

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

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// The treatment of Op in Category by Policy.
template <class Policy, op_category Category, autocast::op Op, class... Arguments>
constexpr autocast::explanation<sizeof...(Arguments)> explain_category(autocast::decided_by by,
                                                                       std::string_view list) {
    using types = resolution<Policy, Op, Category, Arguments...>;
    constexpr bool third = !std::is_void_v<typename types::third_type>;
    constexpr bool banned = Policy::enabled && Category == op_category::banned;
    const auto argument = []<class Argument, std::size_t Index>(std::type_identity<Argument>,
                                                                std::integral_constant<std::size_t, Index>) {
        using data = typename types::template data<Argument>;
        using plan = typename types::plan;
        using quantised =
            std::conditional_t<autocast::eligible<data>,
                               typename quantised_format<typename plan::quantising, Op, Index>::type, void>;
        return autocast::explained_cast{autocast::type_name<data>(),
                                        autocast::type_name<typename types::template cast<Argument>>(),
                                        autocast::type_name<quantised>()};
    };
    return [&]<std::size_t... Index>(std::index_sequence<Index...>) {
        return autocast::explanation<sizeof...(Arguments)>{
            Op::name,
            Policy::name,
            Category,
            Category != Op::category,
            !third && !banned,
            !Policy::enabled ? std::string_view("autocast is off and arguments stay as they are")
            : third
                ? std::string_view("the op must not have a third floating-point format among its arguments")
                : description_of(Category),
            autocast::type_name<typename types::compute>(),
            autocast::type_name<typename types::output>(),
            {argument(std::type_identity<Arguments>{}, std::integral_constant<std::size_t, Index>{})...},
            by,
            list};
    }(std::index_sequence_for<Arguments...>{});
}

/// The category's explanation, for a category that is known at run time.
template <class Policy, class Op, class... Arguments>
autocast::explanation<sizeof...(Arguments)> explain_decision(const region_decision& decision) {
    const auto in = [&]<op_category Category>(std::integral_constant<op_category, Category>) {
        auto result = explain_category<Policy, Category, Op, Arguments...>(decision.by, {});
        if (decision.list != nullptr) result.list = decision.list->name;
        result.list_rule = decision.rule;
        result.scope_rule = decision.scope;
        result.selected = decision.selected;
        if (!decision.selected) result.rule = "the region casts in other ops or layers only";
        return result;
    };
    const auto constant = [&]<op_category Category>() {
        return in(std::integral_constant<op_category, Category>{});
    };
    switch (decision.category) {
        case op_category::lower_precision:
            return constant.template operator()<op_category::lower_precision>();
        case op_category::full_precision:
            return constant.template operator()<op_category::full_precision>();
        case op_category::full_precision_output:
            return constant.template operator()<op_category::full_precision_output>();
        case op_category::append_output_type:
            return constant.template operator()<op_category::append_output_type>();
        case op_category::promote:
            return constant.template operator()<op_category::promote>();
        case op_category::promote_widest:
            return constant.template operator()<op_category::promote_widest>();
        case op_category::banned:
            return constant.template operator()<op_category::banned>();
        default:
            return constant.template operator()<op_category::pass_through>();
    }
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
        const autocast_state* state = autocast_thread.state;
        region_decision decision;
        decision.category = Op::category;
        if (state != nullptr) {
            decision = decide<original, device_of_call<Arguments...>, Overrides...>(*state, values...);
        }
        if (decision.casts()) {
            switch (decision.active) {
                case precision::fp16:
                    return explain_decision<region_policies<precision::fp16>, Op, Arguments...>(decision);
                case precision::bf16:
                    return explain_decision<region_policies<precision::bf16>, Op, Arguments...>(decision);
                default:
                    return explain_decision<region_policies<precision::fp8>, Op, Arguments...>(decision);
            }
        }
        return explain_decision<autocast::off, Op, Arguments...>(decision);
    }
};

}  // namespace mp::detail::inline MP_ISA_NAMESPACE

namespace mp::autocast::inline MP_ISA_NAMESPACE {

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
    return detail::explain_category<Policy, category_of<Policy, Op>, Op, Arguments...>(by, list);
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

}  // namespace mp::autocast::inline MP_ISA_NAMESPACE
