// SPDX-License-Identifier: MIT
/// \file
/// The dispatcher at run time: the calling thread's autocast region chooses the policy.
#pragma once

#include <mp/error.hpp>
#include <mp/nn/autocast/call.hpp>
#include <mp/nn/autocast/decision.hpp>
#include <mp/nn/autocast/library_op.hpp>
#include <mp/nn/autocast/region.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Properties of a call in a precision and category.
struct plan_entry {
    std::size_t plan;  ///< index among the plans of the call
    resolution_names types;
};
inline constexpr std::size_t casting_categories = static_cast<std::size_t>(op_category::banned);
/// By precision, without `off`, and category, without `banned`.
using plan_table = std::array<std::array<plan_entry, casting_categories>, 3>;

/// The entry for what was decided. Throws where that is a ban, or a promotion that is refused.
inline const plan_entry& allowed_entry(const plan_table& table, const region_decision& decision,
                                       std::string_view op, std::string_view banned_reason) {
    if (decision.category == op_category::banned) throw_banned(op, banned_reason, decision);
    const plan_entry& entry =
        table[static_cast<std::size_t>(decision.active) - 1][static_cast<std::size_t>(decision.category)];
    if (!entry.types.third_type.empty()) throw_third_type(op, entry.types.third_type, decision.active);
    return entry;
}

/// The policies of a region's precisions.
template <precision Value>
struct region_policies;
template <>
struct region_policies<precision::fp16> : autocast::fp16 {
    using low = half;
};
template <>
struct region_policies<precision::bf16> : autocast::bf16 {
    using low = bfloat16;
};
template <>
struct region_policies<precision::fp8> : autocast::fp8_hybrid {
    using low = bfloat16;
};

template <class Element, class... Elements>
constexpr std::size_t index_of(type_list<Elements...>) {
    std::size_t index = 0;
    std::size_t result = 0;
    ((std::same_as<Element, Elements> ? void(result = index++) : void(++index)), ...);
    return result;
}

/// For an op that reads any format, rounds once and returns nothing, casts to float are no casts: the plan
/// that has the same effect.
template <class Plan>
struct without_float;
template <class Target, class Output, class Quantising>
struct without_float<cast_plan<Target, Output, Quantising>> {
    template <class Type>
    using unless_float =
        std::conditional_t<std::same_as<Type, float> && std::is_void_v<Quantising>, void, Type>;
    using type = cast_plan<unless_float<Target>, unless_float<Output>, Quantising>;
};

/// All that regions may do with a call on these types of data: the plans that differ, and which of them
/// belongs to a precision and category. One table for all ops whose calls resolve alike.
/// \tparam Requested    the type of result that the call asks for, or void
/// \tparam Multiplies   whether the op has operands that fp8 quantises
/// \tparam FloatIsFree  see without_float
template <class Requested, bool Multiplies, bool FloatIsFree, class DataList>
struct region_plans {
    template <precision Value, op_category Category>
    using types = data_resolution<
        Category, typename region_policies<Value>::low, Requested,
        std::conditional_t<Multiplies && Value == precision::fp8 && Category == op_category::lower_precision,
                           region_policies<Value>, void>,
        DataList>;
    template <precision Value, op_category Category, class Plan = typename types<Value, Category>::plan>
    using plan =
        typename std::conditional_t<FloatIsFree, without_float<Plan>, std::type_identity<Plan>>::type;

    template <precision Value, std::size_t... Category>
    static constexpr auto plans_in(std::index_sequence<Category...>) {
        return type_list<plan<Value, static_cast<op_category>(Category)>...>{};
    }
    template <class... First, class... Second, class... Third>
    static constexpr auto different(type_list<First...>, type_list<Second...>, type_list<Third...>) {
        return typename distinct<type_list<uncast_plan>, First..., Second..., Third...>::type{};
    }
    using each_category = std::make_index_sequence<casting_categories>;
    /// The first of them casts nothing.
    using plans = decltype(different(plans_in<precision::fp16>(each_category{}),
                                     plans_in<precision::bf16>(each_category{}),
                                     plans_in<precision::fp8>(each_category{})));

    template <precision Value, op_category Category>
    static constexpr plan_entry entry_of() {
        return {index_of<plan<Value, Category>>(plans{}), names_of_resolution<types<Value, Category>>()};
    }
    template <precision Value, std::size_t... Category>
    static constexpr std::array<plan_entry, casting_categories> entries_in(std::index_sequence<Category...>) {
        return {entry_of<Value, static_cast<op_category>(Category)>()...};
    }
    static constexpr plan_table table = {entries_in<precision::fp16>(each_category{}),
                                         entries_in<precision::bf16>(each_category{}),
                                         entries_in<precision::fp8>(each_category{})};
};

/// The plans of a call of Op on Arguments.
template <class Op, class... Arguments>
using plans_of_call = region_plans<typename requested_result<Op>::type, has_product_operands<Op>(),
                                   computes_in_float<Op>() && (is_array_operand<Arguments> || ...) &&
                                       std::is_void_v<result_with_plan<uncast_plan, Op, Arguments...>>,
                                   data_list<std::remove_const_t<Arguments>...>>;

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

/// The type of the result of a call under one of several plans, of which the first casts nothing.
template <class Plans, class Op, class... Arguments>
struct result_of_plans;
template <class First, class... Plans, class Op, class... Arguments>
struct result_of_plans<type_list<First, Plans...>, Op, Arguments...> {
    using uncast = result_with_plan<First, Op, Arguments...>;
    static constexpr auto find() {
        if constexpr (std::is_void_v<uncast>) {
            return std::type_identity<void>{};
        } else {
            return run_time_result<uncast, result_with_plan<Plans, Op, Arguments...>...>{};
        }
    }
    using type = typename decltype(find())::type;
};

/// The observer of a call in a region, or of one that is not cast, which has no entry.
inline region_observer observer_of(const autocast_state* state, const region_decision& decision,
                                   const plan_entry* entry, std::string_view op,
                                   std::string_view (*argument)(std::size_t)) {
    if (entry == nullptr) return {nullptr, nullptr, {}};
    return {state->cache.get(),
            state->ledger,
            {op, argument, &decision, entry->types.compute, autocast_layer_path(), 0}};
}

/// Runs an op as the region has decided, if there is one.
template <class Result, class... Overrides, class... Plans, std::size_t... Index, class Op,
          class... Arguments>
Result call_in_region(autocast::region_policy<Overrides...>, type_list<Plans...> plans,
                      const plan_table& table, std::index_sequence<Index...> indices, const Op& tag,
                      Arguments&... arguments) {
    const autocast_state* const state = autocast_thread.state;
    region_decision decision;
    if (state != nullptr) {
        constexpr device_kind device = device_of_call<std::remove_cvref_t<Arguments>...>;
        using op = typename original_op<Op>::type;
        if constexpr (tells_parameters<op, std::remove_cvref_t<decltype(without_cache(arguments))>...>) {
            decision = decide<op, device, Overrides...>(*state, without_cache(arguments)...);
        } else {
            decision = decide<op, device, Overrides...>(*state);
        }
    }
    const plan_entry* const entry =
        decision.casts() ? &allowed_entry(table, decision, Op::name, banned_reason<Op>.view()) : nullptr;
    validate(tag, without_cache(arguments)...);
    const region_observer observer = observer_of(state, decision, entry, Op::name, &argument_name<Op>);
    const autocast_excluded kernel_is_not_cast_again(entry != nullptr);
    if (observer.records())
        report_product<Op>(decision, observer, entry->types.compute, without_cache(arguments)...);
    // Gives back the memory of the casts.
    const workspace::frame frame(workspace_of(executor_among(arguments...)));
    using modes_of_op = std::conditional_t<computes_in_float<Op>() && std::is_void_v<Result>,
                                           default_floating_point_modes, any_floating_point_modes>;
    const modes_of_op modes;
    return call_with_plan<Result>(plans, entry == nullptr ? 0 : entry->plan, indices, tag, &observer,
                                  arguments...);
}

}}  // namespace mp::detail

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

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
    if constexpr (detail::runs_by_record<Op, std::remove_cvref_t<Arguments>...>) {
        return detail::run_op_by_record<Policy>(tag, arguments...);
    } else {
        using plans = detail::plans_of_call<Op, std::remove_reference_t<Arguments>...>;
        using result = typename detail::result_of_plans<typename plans::plans, Op,
                                                        std::remove_reference_t<Arguments>...>::type;
        constexpr std::index_sequence_for<Arguments...> indices;
        if constexpr (std::is_void_v<result>) {
            {
                const detail::write_watch::silence inside;
                detail::call_in_region<result>(Policy{}, typename plans::plans{}, plans::table, indices, tag,
                                               arguments...);
            }
            (detail::tell_written(arguments), ...);
        } else {
            return detail::call_and_tell(
                [&] {
                    return detail::call_in_region<result>(Policy{}, typename plans::plans{}, plans::table,
                                                          indices, tag, arguments...);
                },
                arguments...);
        }
    }
}

/// call<by_region>, or with overrides call<region_policy<Overrides...>>: see there.
///
///     mp::autocast_region region(mp::precision::bf16);
///     mp::autocast::dispatch(matmul_op{}, exec, a, b, mp::autocast::out(c));
template <class... Overrides, op Op, class... Arguments>
auto dispatch(const Op& tag, Arguments&&... arguments) {
    return call<region_policy<Overrides...>>(tag, arguments...);
}

}}  // namespace mp::autocast
