// SPDX-License-Identifier: MIT
/// \file
/// The dispatcher for a policy that is known at compile time: cast what needs it, call the kernel, write
/// back.
#pragma once

#include <mp/base/write_watch.hpp>
#include <mp/nn/autocast/argument_adaptor.hpp>
#include <mp/nn/autocast/library_op.hpp>
#include <mp/nn/autocast/observer.hpp>
#include <mp/nn/autocast/policy.hpp>
#include <mp/nn/autocast/resolution.hpp>
#include <mp/numbers/format/operations.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/workspace.hpp>

#include <concepts>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Calls a kernel in the default modes of the processor, whatever the caller's are.
template <class Op, class... Arguments>
auto run_in_default_modes(const Op& tag, Arguments&&... arguments) {
    const default_floating_point_modes modes;
    if constexpr (std::is_void_v<decltype(tag(std::forward<Arguments>(arguments)...))>) {
        tag(std::forward<Arguments>(arguments)...);
    } else {
        return modes.held(tag(std::forward<Arguments>(arguments)...));
    }
}
template <class Op, class... Arguments>
constexpr decltype(auto) run_kernel(const Op& tag, Arguments&&... arguments) {
    if constexpr (computes_in_float<Op>()) {
        return run_in_default_modes(tag, std::forward<Arguments>(arguments)...);
    } else {
        return tag(std::forward<Arguments>(arguments)...);
    }
}

/// The result of a call under Plan, with an observer, or a null pointer where the policy is known at compile time: a
/// floating-point number that the kernel returns is rounded like one that it writes to
/// an array.
template <class Plan, class Value, class Observer>
constexpr auto finish_result(Observer observer, Value result) {
    using output = typename Plan::output;
    constexpr std::size_t index = autocast::observed_call::returned;
    if constexpr (autocast::eligible<Value> && autocast::eligible<output> && !std::same_as<Value, output>) {
        const auto rounded = static_cast<output>(result);
        if constexpr (!std::is_null_pointer_v<Observer>) {
            if (observer->records()) {
                const auto before = static_cast<float>(result);
                const auto after = static_cast<float>(rounded);
                observer->cast(index, autocast::cast_direction::output, autocast::type_name<Value>(),
                               sizeof(Value), autocast::cast_target_of<output>(), {&before, 1}, {&after, 1},
                               false);
            }
        }
        return rounded;
    } else {
        if constexpr (autocast::floating<Value> && !std::is_null_pointer_v<Observer>) {
            const auto value = static_cast<observed<Value>>(result);
            observer->look_at(index, std::span(&value, 1), autocast::value_origin::kernel);
        }
        return result;
    }
}

/// Calls the kernel on arguments as it receives them.
template <class Plan, class Op, class Observer, class... Adapted>
constexpr auto call_adapted(const Op& tag, Observer observer, Adapted&&... arguments) {
    static_assert(
        requires { tag(std::forward<Adapted>(arguments)...); },
        "mp::autocast: the call operator of the op does not take these arguments after the casts; "
        "inputs have const elements, and outputs are marked by mp::autocast::out or in_out");
    using result = decltype(run_kernel(tag, std::forward<Adapted>(arguments)...));
    if constexpr (std::is_void_v<result>) {
        run_kernel(tag, std::forward<Adapted>(arguments)...);
    } else {
        return finish_result<Plan, std::remove_cvref_t<result>>(
            observer, run_kernel(tag, std::forward<Adapted>(arguments)...));
    }
}

/// Calls the kernel on the arguments as Plan adapts them. `passed` are their operands; null where none is staged.
template <class Plan, std::size_t... Index, class Op, class Observer, class... Arguments>
constexpr auto adapt_and_call(std::index_sequence<Index...>, const Op& tag, Observer observer,
                              [[maybe_unused]] const any_operand* passed, Arguments&... arguments) {
    if constexpr ((is_array_operand<Arguments> || ...)) {
        return call_adapted<Plan>(tag, observer,
                                  argument_adaptor<Plan, Op, Index, Arguments>::get(arguments, passed)...);
    } else {
        if constexpr (!std::is_null_pointer_v<Observer>) {
            if (observer->records())
                (number_adaptor<Plan, Op, Index, Arguments>::report(*observer, arguments), ...);
        }
        // In their order, as by hand.
        const std::tuple<typename number_adaptor<Plan, Op, Index, Arguments>::type...> numbers{
            number_adaptor<Plan, Op, Index, Arguments>::get(arguments)...};
        return call_adapted<Plan>(tag, observer,
                                  static_cast<typename number_adaptor<Plan, Op, Index, Arguments>::type>(
                                      std::get<Index>(numbers))...);
    }
}
template <class Plan, class Op, class... Arguments>
using result_with_plan =
    decltype(adapt_and_call<Plan>(std::index_sequence_for<Arguments...>{}, std::declval<const Op&>(), nullptr,
                                  nullptr, std::declval<Arguments&>()...));

/// Calls the kernel under the plan with this index.
template <class Result, class Plan, class... Rest, class Indices, class Op, class Observer,
          class... Arguments>
constexpr Result call_one_of(std::size_t plan, Indices indices, const Op& tag, Observer observer,
                             const any_operand* passed, Arguments&... arguments) {
    if constexpr (sizeof...(Rest) != 0) {
        if (plan != 0) {
            return call_one_of<Result, Rest...>(plan - 1, indices, tag, observer, passed, arguments...);
        }
    }
    return static_cast<Result>(adapt_and_call<Plan>(indices, tag, observer, passed, arguments...));
}

/// Calls of an op on these arguments with casts, which run_staged() makes.
template <class Op, class Executor, class Plans, class Indices, class... Arguments>
struct staged_calls;
template <class Op, class Executor, class... Plans, std::size_t... Index, class... Arguments>
struct staged_calls<Op, Executor, type_list<Plans...>, std::index_sequence<Index...>, Arguments...> {
    template <class Plan>
    static constexpr bool is_staged =
        !(std::is_void_v<typename argument_adaptor<Plan, Op, Index, Arguments>::staged> && ...);
    /// Whether an array is copied under a plan.
    static constexpr bool stages[] = {is_staged<Plans>...};
    template <class Plan>
    static constexpr cast_types types_of =
        staged_types<Plan, Executor, typename argument_adaptor<Plan, Op, Index, Arguments>::quantised...>();
    static constexpr cast_types types[] = {types_of<Plans>...};
    static constexpr op_record record =
        make_staged_record<Op, Executor, (is_sum_operand<std::remove_const_t<Arguments>> || ...)>(
            std::index_sequence<Index...>{});

    /// One instance for calls with and without casts.
    template <class Kernel>
    MP_NEVER_INLINE static void call(void* kernel, const any_operand* operands) {
        (*static_cast<Kernel*>(kernel))(operands);
    }

    /// Casts, runs kernel(operands as it receives them) and writes back.
    template <class Kernel>
    static void run(std::size_t plan, const Executor& exec, const region_observer* observer, Kernel kernel,
                    Arguments&... arguments) {
        if (!stages[plan] && (observer == nullptr || !observer->observes())) {
            return call<Kernel>(&kernel, nullptr);
        }
        foreign_view foreign[sizeof...(Arguments)];
        any_operand operands[] = {operand_of_argument<Op, Index>(
            type_list<Plans...>{}, exec, std::as_const(arguments), foreign[Index])...};
        static_assert(std::size(operands) <= max_operands, "mp::autocast: an op takes at most 16 arguments");
        cpu memory;
        memory.workspace = workspace_of(exec);
        if constexpr (std::same_as<Executor, cpu>) memory = exec;
        run_staged(record, memory, operands, std::size(operands), types[plan], observer, &call<Kernel>,
                   &kernel);
    }
};

/// Calls an op under one of Plans: casts, calls the kernel and writes back.
template <class Result, class... Plans, std::size_t... Index, class Op, class Observer, class... Arguments>
constexpr Result call_with_plan(type_list<Plans...>, std::size_t plan, std::index_sequence<Index...> indices,
                                const Op& tag, Observer observer, Arguments&... arguments) {
    using executor = std::remove_cvref_t<decltype(executor_among(arguments...))>;
    using calls =
        staged_calls<Op, executor, type_list<Plans...>, std::index_sequence<Index...>, Arguments...>;
    const auto run = [&](const any_operand* operands) {
        return call_one_of<Result, Plans...>(plan, indices, tag, observer, operands, arguments...);
    };
    constexpr bool is_plain = std::is_null_pointer_v<Observer> && !(calls::template is_staged<Plans> || ...);
    if constexpr (is_plain || !(is_array_operand<Arguments> || ...)) {
        return run(nullptr);
    } else if constexpr (std::is_void_v<Result>) {
        calls::run(plan, executor_among(arguments...), observer, run, arguments...);
    } else {
        std::optional<Result> result;
        calls::run(
            plan, executor_among(arguments...), observer,
            [&](const any_operand* operands) { result.emplace(run(operands)); }, arguments...);
        return *std::move(result);
    }
}

template <class Policy, op_category Category, class Op, class... Arguments>
constexpr auto call_in_category(const Op& tag, Arguments&... arguments) {
    check_ban<Policy, Category, Op>();
    using plan = decltype(checked_plan<Policy, Category, Op, std::remove_cvref_t<Arguments>...>());
    // Gives back the memory of the casts.
    const workspace::frame frame(workspace_of(executor_among(arguments...)));
    return call_with_plan<result_with_plan<plan, Op, Arguments...>>(
        type_list<plan>{}, 0, std::index_sequence_for<Arguments...>{}, tag, nullptr, arguments...);
}

/// The rules with which Policy's list treats Op; empty for policies without one.
template <class Policy, class Op>
constexpr std::span<const autocast::op_rule> rules_of() {
    if constexpr (requires { Policy::template rules<Op>; }) {
        return Policy::template rules<Op>;
    } else {
        return {};
    }
}

/// Whether the op named here takes doubles on the executor.
template <class Op, class Executor>
inline constexpr bool takes_doubles = !(computes_in_float<Op>() && gpu_executor<Executor>);

template <class Op, class... Arguments>
constexpr void check_operands(const Op&, const Arguments&... arguments) {
    using run_on = std::remove_cvref_t<decltype(executor_among(arguments...))>;
    static_assert(!any_double<Arguments...> || takes_doubles<Op, run_on>,
                  "mp::ops: a GPU computes in float, and this op (the one that takes_doubles names) has an "
                  "operand of doubles; they are for mp::cpu, to check gradients with");
    static_assert(!(data_but_no_operand<Arguments> || ...),
                  "mp::autocast: pass an array as std::span, or as a view that operand_traits is specialised "
                  "for (mp::matrix_view is when <mp/ops.hpp> is included), not as a container or a pointer");
}

/// The argument; the view of a cached() or uncast() one.
template <class Argument>
constexpr const auto& without_cache(const Argument& argument) {
    if constexpr (is_cached_operand<Argument> || is_uncast_operand<Argument>) {
        return argument.view;
    } else {
        return argument;
    }
}

/// Lets the op check the caller's arguments, if it does.
template <class Op, class... Arguments>
constexpr void validate(const Op& tag, const Arguments&... arguments) {
    if constexpr (requires { tag.validate(arguments...); }) tag.validate(arguments...);
}

/// The type of a result that is Results, one of them chosen at run time: the same for all, or the widest.
template <class... Results>
struct run_time_result {
    static_assert((autocast::floating<Results> && ...),
                  "mp::autocast: the op returns types that differ between policies and are no floating-point "
                  "numbers");
    using type = autocast::widest_t<Results...>;
};
template <class First, class... Rest>
    requires(std::same_as<First, Rest> && ...)
struct run_time_result<First, Rest...> {
    using type = First;
};

/// Calls the op in the category of the first of the rules whose condition holds, else in `Otherwise`.
template <class Policy, op_category Otherwise, std::size_t Rule, class Result, class Op, class... Arguments>
constexpr Result call_by_condition(const Op& tag, Arguments&... arguments) {
    constexpr auto rules = rules_of<Policy, typename original_op<Op>::type>();
    if constexpr (Rule == rules.size()) {
        return static_cast<Result>(call_in_category<Policy, Otherwise>(tag, arguments...));
    } else {
        constexpr autocast::op_rule rule = rules[Rule];
        if (!rule.parameter.empty() &&
            std::string_view(Op::parameter(rule.parameter, without_cache(arguments)...)) == rule.value) {
            return static_cast<Result>(call_in_category<Policy, rule.category>(tag, arguments...));
        }
        return call_by_condition<Policy, Otherwise, Rule + 1, Result>(tag, arguments...);
    }
}

template <class Policy, op_category Otherwise, class Op, class... Arguments>
constexpr auto result_by_condition(const Op& tag, Arguments&... arguments) {
    constexpr auto rules = rules_of<Policy, typename original_op<Op>::type>();
    return [&]<std::size_t... Rule>(std::index_sequence<Rule...>) {
        return std::type_identity<typename run_time_result<
            decltype(call_in_category<Policy, Otherwise>(tag, arguments...)),
            decltype(call_in_category<Policy, rules[Rule].category>(tag, arguments...))...>::type>{};
    }(std::make_index_sequence<rules.size()>{});
}

/// Tells those that watch the thread of an argument that the op has written or added to.
template <class Argument>
void tell_written(const Argument& /*argument*/) {}
template <class View, bool Reads>
void tell_written(const autocast::output_operand<View, Reads>& output) {
    write_watch::tell(operand_of<View>::address(output.view), Reads);
}
template <class View>
void tell_written(const autocast::sum_operand<View>& sum) {
    write_watch::tell(operand_of<View>::address(sum.view), sum.adds);
}

/// Calls `run`, which is an op on these arguments, and tells those that watch the thread what it wrote.
template <class Run, class... Arguments>
auto call_watched(Run run, const Arguments&... arguments) {
    const auto run_silently = [&run] {
        const write_watch::silence inside;
        return run();
    };
    if constexpr (std::is_void_v<decltype(run())>) {
        run_silently();
        (tell_written(arguments), ...);
    } else {
        auto result = run_silently();
        (tell_written(arguments), ...);
        return result;
    }
}
template <class Run, class... Arguments>
constexpr auto call_and_tell(Run run, const Arguments&... arguments) {
    if constexpr ((is_output<Arguments> || ...)) {
        if (!std::is_constant_evaluated()) return call_watched(run, arguments...);
    }
    return run();
}

}}  // namespace mp::detail

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

/// Runs Op on the arguments under a policy that is known at compile time.
///
/// Numbers are rounded, and views of arrays that need it are converted into dense temporaries on the op's
/// executor (its first argument, if it is one), by the rule of the op's category; then the kernel, the call
/// operator of `tag`, runs. What it writes to out() arrays, or returns as a floating-point number, is rounded
/// to output_type_t once and converted from there to the caller's format. Where all types match, nothing is
/// copied and the call is the kernel's. An op with arrays leaves its numbers, such as alpha, alone.
///
///     mp::half y = mp::autocast::call<mp::autocast::fp16>(multiply_op{}, 1.5f, 2.25f);
///     mp::autocast::call<mp::autocast::bf16>(matmul_op{}, exec, a, b, mp::autocast::out(c));
///
/// Where the policy's list has rules with conditions for the op, and the op tells its parameters, they are
/// compared at run time; a floating-point result then has the widest of the types that the rules give.
///
/// Arrays of arguments may overlap only as the kernel allows. Throws what the op's validate() and kernel
/// throw; outputs that were to be cast are then unchanged. Allocates only for temporaries; casts of cached()
/// arguments are not kept. The calling thread's autocast region has no say, and ops that the kernel itself
/// dispatches still follow it.
template <class Policy, op Op, class... Arguments>
    requires(!detail::follows_region<Policy>)
constexpr auto call(const Op& tag, Arguments&&... arguments) {
    detail::check_operands(tag, arguments...);
    constexpr op_category category = category_of<Policy, Op>;
    if constexpr (detail::runs_by_record<Op, std::remove_cvref_t<Arguments>...>) {
        return detail::run_op_by_record<Policy>(tag, arguments...);
    } else {
        detail::validate(tag, detail::without_cache(arguments)...);
        constexpr bool conditional =
            detail::any_condition(detail::rules_of<Policy, typename detail::original_op<Op>::type>());
        return detail::call_and_tell(
            [&] {
                if constexpr (conditional &&
                              detail::tells_parameters<
                                  Op, std::remove_cvref_t<decltype(detail::without_cache(arguments))>...>) {
                    using result = typename decltype(detail::result_by_condition<Policy, category>(
                        tag, arguments...))::type;
                    return detail::call_by_condition<Policy, category, 0, result>(tag, arguments...);
                } else {
                    return detail::call_in_category<Policy, category>(tag, arguments...);
                }
            },
            arguments...);
    }
}

}}  // namespace mp::autocast
