// SPDX-License-Identifier: MIT
/// \file
/// From a category and the types of the arguments to the types that an op reads and returns.
#pragma once

#include <mp/nn/autocast/operand.hpp>
#include <mp/nn/autocast/policy.hpp>
#include <mp/nn/autocast/resolved_types.hpp>
#include <mp/nn/autocast/types.hpp>

#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Type of the input data in Argument, one of Arguments; void if there is none.
template <class Argument, class... Arguments>
using data_of = std::conditional_t<is_input<Argument, Arguments...>, element_of<Argument>, void>;

template <class Op>
struct requested_result {
    using type = void;
};
template <class Op>
    requires requires { typename Op::requested_result; }
struct requested_result<Op> {
    using type = typename Op::requested_result;
};

template <class Policy, class Op, std::size_t Index>
struct quantised_format {
    using type = void;
};
template <class Policy, class Op, std::size_t Index>
    requires requires { typename Policy::template quantised<Op, Index>; }
struct quantised_format<Policy, Op, Index> {
    using type = typename Policy::template quantised<Op, Index>;
};

/// What becomes of the arguments and results of a call. Eligible inputs are cast to Target, or left alone
/// where that is void; results are rounded to Output, or left as the kernel makes them where that is void.
/// Quantising names the policy whose quantised formats the operands go through; void if none do.
template <class Target, class Output, class Quantising>
struct cast_plan {
    using target = Target;
    using output = Output;
    using quantising = Quantising;
};

/// The plan that casts nothing.
using uncast_plan = cast_plan<void, void, void>;

/// Types without void and repetitions, in the order of their first appearance.
template <class List, class... Elements>
struct distinct {
    using type = List;
};
template <class... Kept, class First, class... Rest>
struct distinct<type_list<Kept...>, First, Rest...>
    : distinct<std::conditional_t<std::is_void_v<First> || (std::same_as<Kept, First> || ...),
                                  type_list<Kept...>, type_list<Kept..., First>>,
               Rest...> {};

/// The different types of the input data in Arguments. Calls resolve alike where these are the same, whatever
/// the ops and their other arguments.
template <class... Arguments>
using data_list = typename distinct<type_list<>, data_of<Arguments, Arguments...>...>::type;

/// What a category makes of data types. Quantising is the policy that quantises the op's operands, or void.
template <op_category Category, class Low, class Requested, class Quantising, class DataList>
struct data_resolution;
template <op_category Category, class Low, class Requested, class Quantising, class... Data>
struct data_resolution<Category, Low, Requested, Quantising, type_list<Data...>> {
    static constexpr resolved_types found = [] {
        const number_facts* data[] = {&no_number, facts_or_none<Data>()...};
        using low = std::conditional_t<std::is_void_v<Low>, float, Low>;
        return resolve_types(Category, facts_v<low>, facts_v<float>, facts_or_none<Requested>(), data);
    }();
    struct chosen_target {
        static constexpr const number_facts* facts() { return found.target; }
    };
    struct chosen_output {
        static constexpr const number_facts* facts() { return found.output; }
    };
    struct chosen_third {
        static constexpr const number_facts* facts() { return found.third; }
    };
    template <class Choose>
    using chosen = typename type_among<Choose, Data..., Low, Requested, float>::type;
    /// The type that eligible data are cast to, void if they stay; that results are rounded to, void if they stay as the
    /// kernel makes them; of a promotion that is rejected, void if all is well.
    using target = chosen<chosen_target>;
    using rounded = chosen<chosen_output>;
    using third_type = chosen<chosen_third>;

    /// Whether the arguments that may be cast have the target's type already.
    static constexpr bool casts_nothing =
        std::is_void_v<Quantising> && ((!autocast::eligible<Data> || std::same_as<Data, target>) && ...);
    // Categories with the same effect give the same plan, so that a kernel is compiled once for them.
    using plan = cast_plan<std::conditional_t<casts_nothing, void, target>, rounded, Quantising>;

    template <class Type>
    using cast_of = std::conditional_t<!std::is_void_v<target> && autocast::eligible<Type>, target, Type>;

    using compute = autocast::widest_t<cast_of<Data>...>;
    using output = std::conditional_t<std::is_void_v<rounded>, compute, rounded>;
};

/// The names of a resolution's types.
struct resolution_names {
    std::string_view compute;
    std::string_view output;
    std::string_view target;      ///< that eligible data is cast to; empty if it stays as it is
    std::string_view third_type;  ///< of a promotion that is refused; empty if it is fine
};
template <class Resolution>
constexpr resolution_names names_of_resolution() {
    const auto name_unless_void = []<class Type>(std::type_identity<Type>) {
        return std::is_void_v<Type> ? std::string_view() : autocast::type_name<Type>();
    };
    return {autocast::type_name<typename Resolution::compute>(),
            autocast::type_name<typename Resolution::output>(),
            name_unless_void(std::type_identity<typename Resolution::target>{}),
            name_unless_void(std::type_identity<typename Resolution::third_type>{})};
}

template <class Policy, class Op, op_category Category>
struct quantising_policy {
    using type = void;
};
template <class Policy, class Op>
    requires(Policy::enabled && requires { typename Policy::template quantised<Op, 0>; })
struct quantising_policy<Policy, Op, op_category::lower_precision> {
    using type = Policy;
};

template <class Policy, class Op, op_category Category, class... Arguments>
using data_resolution_of =
    data_resolution<Policy::enabled ? Category : op_category::pass_through,
                    typename Policy::template low_precision<Op>, typename requested_result<Op>::type,
                    typename quantising_policy<Policy, Op, Category>::type, data_list<Arguments...>>;

/// The types that an op on Arguments works with under Policy when it is in Category.
template <class Policy, class Op, op_category Category, class... Arguments>
struct resolution : data_resolution_of<Policy, Op, Category, Arguments...> {
    using by_data = data_resolution_of<Policy, Op, Category, Arguments...>;

    template <class Argument>
    using data = data_of<Argument, Arguments...>;

    template <class Argument>
    using cast = typename by_data::template cast_of<data<Argument>>;
};

/// The resolution with the category that Policy gives to Op, conditions left aside.
template <class Policy, class Op, class... Arguments>
using policy_resolution = resolution<Policy, Op, autocast::category_of<Policy, Op>, Arguments...>;

}}  // namespace mp::detail

namespace mp::autocast {

/// The type that the data in Argument, one of Arguments, has when Op runs under Policy. Arguments are types
/// of numbers or of views; those without input data give void.
template <class Policy, op Op, class Argument, class... Arguments>
using cast_type_t = typename detail::policy_resolution<Policy, Op, Arguments...>::template cast<Argument>;

/// The type that Op computes in under Policy: the widest of the types of its inputs after the casts. A double
/// is not cast, so an op with a double among its inputs computes in double. void without floating-point
/// inputs.
///
///     static_assert(std::same_as<compute_type_t<fp16, matmul_op, float, float>, mp::half>);
///
/// Accumulators are not meant here: the library's ops keep theirs in float.
template <class Policy, op Op, class... Arguments>
using compute_type_t = typename detail::policy_resolution<Policy, Op, Arguments...>::compute;

/// The type of the floating-point results of Op under Policy: the type it computes in, or float where the
/// category asks for full precision of the output alone. Where a result goes to an array of another format it
/// is rounded to this type first; under `off` and for pass_through ops it is not.
template <class Policy, op Op, class... Arguments>
using output_type_t = typename detail::policy_resolution<Policy, Op, Arguments...>::output;

}  // namespace mp::autocast
