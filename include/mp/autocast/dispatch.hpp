// SPDX-License-Identifier: MIT
/// \file
/// The dispatcher at run time: the calling thread's autocast region chooses the policy.
#pragma once

#include <mp/autocast/call.hpp>
#include <mp/autocast/decision.hpp>
#include <mp/autocast/region.hpp>
#include <mp/detail/write_watch.hpp>
#include <mp/error.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace mp::detail::inline MP_ISA_NAMESPACE {

template <class Op>
[[noreturn]] void throw_banned(const region_decision& decision) {
    std::string message("mp::autocast::dispatch: op '");
    message.append(Op::name).append("' is banned in an autocast region of precision ");
    message.append(name_of(decision.active)).append(": ");
    if (decision.rule != nullptr && !decision.rule->reason.empty()) {
        message.append(decision.rule->reason);
    } else {
        message.append(banned_reason_of<Op>().view());
    }
    if (decision.by != autocast::decided_by::op) message.append(" (").append(rule_text(decision)).append(")");
    throw_error(state_error(message));
}

/// A promotion with a third floating-point format among the arguments.
[[noreturn]] inline void throw_third_type(std::string_view op, std::string_view third,
                                          std::string_view low_precision) {
    std::string message("mp::autocast::dispatch: op '");
    message.append(op).append("' promotes its arguments to one type, and one of them is ").append(third);
    message.append("; it must be float or ").append(low_precision);
    message.append(", or the op in the category promote_widest");
    throw_error(argument_error(message));
}

/// The policies of a region's precisions.
template <precision Value, class... Overrides>
struct region_policies;
template <class... Overrides>
struct region_policies<precision::fp16, Overrides...> : autocast::policy<half, Overrides...> {};
template <class... Overrides>
struct region_policies<precision::bf16, Overrides...> : autocast::policy<bfloat16, Overrides...> {};
template <class... Overrides>
struct region_policies<precision::fp8, Overrides...>
    : autocast::float8_policy<bfloat16, float8_e4m3fn, float8_e5m2, Overrides...> {};

/// List with Element at its end, unless it is in the list already.
template <class List, class Element>
struct with_element;
template <class... Elements, class Element>
struct with_element<type_list<Elements...>, Element> {
    using type = std::conditional_t<(std::same_as<Elements, Element> || ...), type_list<Elements...>,
                                    type_list<Elements..., Element>>;
};

template <class List, class... Elements>
struct without_repetition {
    using type = List;
};
template <class List, class First, class... Rest>
struct without_repetition<List, First, Rest...>
    : without_repetition<typename with_element<List, First>::type, Rest...> {};

template <class Element, class... Elements>
constexpr std::size_t index_of(type_list<Elements...>) {
    std::size_t index = 0;
    std::size_t result = 0;
    ((std::same_as<Element, Elements> ? void(result = index++) : void(++index)), ...);
    return result;
}

/// All that regions may do with a call of Op on Arguments: the plans that differ, and which of them belongs
/// to a precision and category.
template <class Op, class... Arguments>
struct region_plans {
    template <precision Value, op_category Category>
    using types = resolution<region_policies<Value>, Op, Category, Arguments...>;

    struct entry {
        std::size_t plan;
        std::string_view compute;     ///< name of the type that the op computes in
        std::string_view third_type;  ///< of a promotion that is refused; empty if it is fine
    };

    static constexpr std::size_t categories =
        static_cast<std::size_t>(op_category::banned);  // all but this one

    template <precision Value, std::size_t... Category>
    static constexpr auto plans_in(std::index_sequence<Category...>) {
        return type_list<typename types<Value, static_cast<op_category>(Category)>::plan...>{};
    }
    template <class... First, class... Second, class... Third>
    static constexpr auto different(type_list<First...>, type_list<Second...>, type_list<Third...>) {
        return typename without_repetition<type_list<>, First..., Second..., Third...>::type{};
    }
    using each_category = std::make_index_sequence<categories>;
    using plans = decltype(different(plans_in<precision::fp16>(each_category{}),
                                     plans_in<precision::bf16>(each_category{}),
                                     plans_in<precision::fp8>(each_category{})));

    template <precision Value, op_category Category>
    static constexpr entry entry_of() {
        using resolved = types<Value, Category>;
        using third = typename resolved::third_type;
        return {index_of<typename resolved::plan>(plans{}), autocast::type_name<typename resolved::compute>(),
                std::is_void_v<third> ? std::string_view() : autocast::type_name<third>()};
    }
    template <precision Value, std::size_t... Category>
    static constexpr std::array<entry, categories> entries_in(std::index_sequence<Category...>) {
        return {entry_of<Value, static_cast<op_category>(Category)>()...};
    }
    static constexpr std::array<std::array<entry, categories>, 3> entries = {
        entries_in<precision::fp16>(each_category{}), entries_in<precision::bf16>(each_category{}),
        entries_in<precision::fp8>(each_category{})};

    static constexpr const entry& entry_for(precision value, op_category category) {
        return entries[static_cast<std::size_t>(value) - 1][static_cast<std::size_t>(category)];
    }
};

/// Tells the observer what product an op computes, if it says so.
template <class Op, class... Arguments>
void report_product(const region_decision& decision, const region_observer& observer,
                    std::string_view compute, const Arguments&... arguments) {
    if constexpr (requires { Op::product(arguments...); }) {
        const bool quantised =
            decision.active == precision::fp8 && decision.category == op_category::lower_precision;
        observer.multiplied(Op::product(arguments...), quantised ? std::string_view("float8") : compute);
    }
}

/// The type of the result of a call under one of several plans.
template <class Op, class Plans, class... Arguments>
struct result_of_plans;
template <class Op, class... Plans, class... Arguments>
struct result_of_plans<Op, type_list<Plans...>, Arguments...> {
    using type = typename run_time_result<
        decltype(autocast::call<autocast::off>(std::declval<const Op&>(), std::declval<Arguments&>()...)),
        decltype(call_with_plan<Plans>(std::declval<const Op&>(), std::declval<const region_observer&>(),
                                       std::declval<Arguments&>()...))...>::type;
};

/// Calls the op under the plan with this index.
template <class Result, class First, class... Rest, class Op, class... Arguments>
Result call_plan(type_list<First, Rest...>, std::size_t index, const Op& tag, const region_observer& observer,
                 Arguments&... arguments) {
    if constexpr (sizeof...(Rest) != 0) {
        if (index != 0)
            return call_plan<Result>(type_list<Rest...>{}, index - 1, tag, observer, arguments...);
    }
    return static_cast<Result>(call_with_plan<First>(tag, observer, arguments...));
}

/// Runs an op as the region has decided.
template <class Result, class Op, class... Overrides, class... Arguments>
Result call_in_region(const autocast_state& state, type_list<Overrides...>, const Op& tag,
                      Arguments&... arguments) {
    constexpr device_kind device = device_of_call<std::remove_cvref_t<Arguments>...>;
    const region_decision decision =
        decide<typename original_op<Op>::type, device, Overrides...>(state, without_cache(arguments)...);
    if (!decision.casts()) return static_cast<Result>(autocast::call<autocast::off>(tag, arguments...));
    if (decision.category == op_category::banned) throw_banned<Op>(decision);
    using plans = region_plans<Op, std::remove_cvref_t<Arguments>...>;
    const auto& entry = plans::entry_for(decision.active, decision.category);
    if (!entry.third_type.empty()) {
        throw_third_type(Op::name, entry.third_type,
                         decision.active == precision::fp16 ? "half" : "bfloat16");
    }
    validate(tag, without_cache(arguments)...);
    const region_observer observer(
        state.cache.get(), state.ledger,
        {Op::name, &argument_name<Op>, &decision, entry.compute, autocast_layer_path(), 0});
    const autocast_excluded kernel_is_not_cast_again;
    if (observer.records())
        report_product<Op>(decision, observer, entry.compute, without_cache(arguments)...);
    return call_plan<Result>(typename plans::plans{}, entry.plan, tag, observer, arguments...);
}

/// Tells those that watch the thread of an argument that the op has written and not added to.
template <class Argument>
void tell_written(const Argument& /*argument*/) {}
template <class View>
void tell_written(const autocast::output_operand<View, false>& output) {
    write_watch::tell(operand_of<View>::address(output.view));
}
template <class View>
void tell_written(const autocast::sum_operand<View>& sum) {
    if (!sum.adds) write_watch::tell(operand_of<View>::address(sum.view));
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE

namespace mp::autocast::inline MP_ISA_NAMESPACE {

/// Runs Op on the arguments under the policy that the calling thread's autocast region chooses: fp16 means
/// policy<half>, bf16 means policy<bfloat16>, fp8 means fp8_hybrid, and outside of regions or in one that is
/// off nothing is cast. The category is decided by, from the strongest: override_op types among Overrides;
/// rules of the innermost region, then of those around it; registered_category; the region's list; the op.
///
/// What has the same effect is compiled once. The choice costs two thread-local loads outside of regions,
/// inside some ten nanoseconds, and some fifty where the op is looked up in a region's list.
///
/// The kernel runs with autocast off. A floating-point result has the widest of the types that any region can
/// give it, which holds all of them exactly: float, for an op on float or on reduced formats. Throws
/// state_error for an op that is banned in the region, argument_error for a third format in a promotion, and
/// otherwise as call() with the chosen policy.
template <class Policy, op Op, class... Arguments>
    requires detail::follows_region<Policy>
auto call(const Op& tag, Arguments&&... arguments) {
    detail::check_operands(tag, arguments...);
    return [&]<class... Overrides>(region_policy<Overrides...>) {
        using result = typename detail::result_of_plans<
            Op, typename detail::region_plans<Op, std::remove_cvref_t<Arguments>...>::plans,
            std::remove_reference_t<Arguments>...>::type;
        const detail::autocast_state* state = detail::autocast_thread.state;
        const auto run = [&] {
            if (state == nullptr) return static_cast<result>(call<off>(tag, arguments...));
            return detail::call_in_region<result>(*state, detail::type_list<Overrides...>{}, tag,
                                                  arguments...);
        };
        if constexpr (std::is_void_v<result>) {
            run();
            (detail::tell_written(arguments), ...);
        } else {
            return run();
        }
    }(Policy{});
}

/// call<by_region>, or with overrides call<region_policy<Overrides...>>: see there.
///
///     mp::autocast_region region(mp::precision::bf16);
///     mp::autocast::dispatch(matmul_op{}, exec, a, b, mp::autocast::out(c));
template <class... Overrides, op Op, class... Arguments>
auto dispatch(const Op& tag, Arguments&&... arguments) {
    return call<region_policy<Overrides...>>(tag, arguments...);
}

}  // namespace mp::autocast::inline MP_ISA_NAMESPACE
