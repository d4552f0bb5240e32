// SPDX-License-Identifier: MIT
/// \file
/// Policies: from an op and the types of its arguments to the types it computes in, at compile time.
#pragma once

#include <mp/autocast/category.hpp>
#include <mp/autocast/operand.hpp>
#include <mp/autocast/types.hpp>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>

#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>

namespace mp::autocast {

/// Gives Op another category in a policy than its own. It also lifts or imposes a ban.
template <op Op, op_category Category>
struct override_op {
    using op_type = Op;
    static constexpr op_category category = Category;
};

/// The policy that computes in LowPrecision where the category of an op says so. Overrides are override_op
/// types, at most one for an op:
///
///     using my_policy = mp::autocast::policy<mp::half, mp::autocast::override_op<softmax_op,
///                                                         mp::op_category::lower_precision>>;
///
/// A policy of your own is any type with these members; `low_precision` may depend on the op.
template <eligible LowPrecision, class... Overrides>
struct policy {
    /// Whether anything is cast at all.
    static constexpr bool enabled = true;
    static constexpr std::string_view name = type_name<LowPrecision>();

    template <op Op>
    using low_precision = LowPrecision;

    template <op Op>
    static constexpr op_category category = [] {
        constexpr std::size_t matches =
            (std::size_t{0} + ... + std::size_t{std::same_as<Op, typename Overrides::op_type>});
        static_assert(matches <= 1, "mp::autocast::policy: an op has more than one override_op");
        op_category result = Op::category;
        ((std::same_as<Op, typename Overrides::op_type> ? void(result = Overrides::category) : void()), ...);
        return result;
    }();
};

/// The policy that casts nothing: every op runs in the formats of its arguments.
struct off {
    static constexpr bool enabled = false;
    static constexpr std::string_view name = "off";

    template <op Op>
    using low_precision = void;

    template <op Op>
    static constexpr op_category category = Op::category;
};

/// IEEE half for the ops that allow it.
using fp16 = policy<half>;

/// bfloat16 for the ops that allow it.
using bf16 = policy<bfloat16>;

/// Stands for the policy that the calling thread's autocast region chooses at run time: policy<half,
/// Overrides...>, policy<bfloat16, Overrides...> or off.
template <class... Overrides>
struct region_policy {};

/// The region's policy without overrides.
using by_region = region_policy<>;

/// The category of Op under Policy. Besides override_op, a specialisation of this variable changes it:
///
///     template <>
///     constexpr auto mp::autocast::category_of<mp::autocast::fp16, softmax_op> =
///         mp::op_category::lower_precision;
template <class Policy, op Op>
inline constexpr op_category category_of = Policy::template category<Op>;

/// Whether Policy lets Op run.
template <class Policy, class Op>
concept allowed = op<Op> && !(Policy::enabled && category_of<Policy, Op> == op_category::banned);

}  // namespace mp::autocast

namespace mp::detail {

/// What becomes of the eligible inputs of an op. `target` is the type that they are cast to, void to leave
/// them alone. One specialisation for each category.
template <op_category Category>
struct category_rule {
    template <class Low, class... Inputs>
    using target = void;
    static constexpr std::string_view sentence = "arguments stay as they are";
};

template <>
struct category_rule<op_category::lower_precision> {
    template <class Low, class... Inputs>
    using target = Low;
    static constexpr std::string_view sentence =
        "float and reduced arguments are cast to the low precision of the policy";
};

template <>
struct category_rule<op_category::full_precision> {
    template <class Low, class... Inputs>
    using target = float;
    static constexpr std::string_view sentence = "float and reduced arguments are cast to float";
};

template <>
struct category_rule<op_category::promote_widest> {
    template <class Low, class... Inputs>
    using target = autocast::widest_t<Inputs...>;
    static constexpr std::string_view sentence =
        "float and reduced arguments are cast to the widest of the argument types";
};

template <class Policy>
inline constexpr bool follows_region = false;
template <class... Overrides>
inline constexpr bool follows_region<autocast::region_policy<Overrides...>> = true;

/// The types that an op on Arguments works with under Policy.
template <class Policy, autocast::op Op, class... Arguments>
struct resolution {
    static constexpr op_category category = autocast::category_of<Policy, Op>;
    using rule = category_rule<Policy::enabled ? category : op_category::pass_through>;

    /// Type of the input data in Argument, void if there is none.
    template <class Argument>
    using data = std::conditional_t<is_input<Argument, Arguments...>, element_of<Argument>, void>;

    using target =
        typename rule::template target<typename Policy::template low_precision<Op>, data<Arguments>...>;

    /// Whether the category decides the types, rather than the arguments.
    static constexpr bool decides = !std::is_void_v<target>;

    template <class Argument>
    using cast = std::conditional_t<decides && autocast::eligible<data<Argument>>, target, data<Argument>>;

    using compute = autocast::widest_t<cast<Arguments>...>;
};

}  // namespace mp::detail

namespace mp::autocast {

/// The type that the data in Argument, one of Arguments, has when Op runs under Policy. Arguments are types
/// of numbers or of views; those without input data give void.
template <class Policy, op Op, class Argument, class... Arguments>
using cast_type_t = typename detail::resolution<Policy, Op, Arguments...>::template cast<Argument>;

/// The type that Op computes in under Policy: the widest of the types of its inputs after the casts. A double
/// is not cast, so an op with a double among its inputs computes in double. void without floating-point
/// inputs.
///
///     static_assert(std::same_as<compute_type_t<fp16, matmul_op, float, float>, mp::half>);
///
/// Accumulators are not meant here: the library's ops keep theirs in float.
template <class Policy, op Op, class... Arguments>
using compute_type_t = typename detail::resolution<Policy, Op, Arguments...>::compute;

/// The type of the floating-point results of Op under Policy: the type it computes in. Where a result goes to
/// an array of another format it is rounded to this type first; under `off` and for pass_through ops it is
/// not.
template <class Policy, op Op, class... Arguments>
using output_type_t = compute_type_t<Policy, Op, Arguments...>;

}  // namespace mp::autocast
