// SPDX-License-Identifier: MIT
/// \file
/// The names under which rules find an op, and the rules that a list has for it.
#pragma once

#include <mp/config.hpp>
#include <mp/nn/autocast/category.hpp>
#include <mp/nn/autocast/op_list.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <span>
#include <string_view>
#include <type_traits>

namespace mp::autocast {

/// Gives an op a result type of the caller's choice, where the op's category would choose one: PyTorch's
/// `dtype=` argument of sums and softmax. Everything else is as with Op. Made by returning().
template <class Result, op Op>
struct returning_op : Op {
    using wrapped_op = Op;
    using requested_result = Result;
};

}  // namespace mp::autocast

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

/// The op with results of type Result under the categories full_precision_output and append_output_type.
///
///     half s = mp::autocast::call<mp::autocast::fp16>(mp::autocast::returning<mp::half>(sum_op{}), values);
template <class Result, op Op>
constexpr returning_op<Result, Op> returning(const Op& tag) {
    return {tag};
}

}}  // namespace mp::autocast

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The op that a tag stands for: what returning() has wrapped, else the tag itself.
template <class Op>
struct original_op {
    using type = Op;
};
template <class Op>
    requires requires { typename Op::wrapped_op; }
struct original_op<Op> {
    using type = typename Op::wrapped_op;
};

/// The op whose backward Op is; void for others.
template <class Op>
struct forward_of {
    using type = void;
};
template <class Op>
    requires requires { typename Op::forward_op; }
struct forward_of<Op> {
    using type = typename Op::forward_op;
};

/// The names of an op, and then those of its forward op.
template <class Op>
constexpr std::size_t count_names() {
    std::size_t count = 1;
    if constexpr (requires { Op::known_as; }) count += std::size(Op::known_as);
    using forward = typename forward_of<Op>::type;
    if constexpr (!std::is_void_v<forward>) count += count_names<forward>();
    return count;
}
template <class Op>
constexpr void copy_names(std::string_view* to) {
    *to++ = Op::name;
    if constexpr (requires { Op::known_as; }) {
        for (const std::string_view name : Op::known_as) *to++ = name;
    }
    using forward = typename forward_of<Op>::type;
    if constexpr (!std::is_void_v<forward>) copy_names<forward>(to);
}
template <class Op>
inline constexpr auto names_of_op = [] {
    std::array<std::string_view, count_names<Op>()> names;
    copy_names<Op>(names.data());
    return names;
}();

/// The rules that a list has for an op of these names, by the first of them that it has any for.
constexpr std::span<const autocast::op_rule> rules_for(const autocast::op_list& list,
                                                       std::span<const std::string_view> names) {
    for (const std::string_view name : names) {
        const auto rules = autocast::find_rules(list, name);
        if (!rules.empty()) return rules;
    }
    return {};
}

/// The category without regard to conditions.
constexpr op_category unconditional(std::span<const autocast::op_rule> rules, op_category otherwise) {
    return rules.empty() || !rules.front().parameter.empty() ? otherwise : rules.front().category;
}

/// Whether some of the rules have conditions.
constexpr bool any_condition(std::span<const autocast::op_rule> rules) {
    return !rules.empty() && !rules.back().parameter.empty();  // those without come first
}

/// Whether the op tells the values of its parameters for these arguments.
template <class Op, class... Arguments>
concept tells_parameters = requires(const Arguments&... arguments) {
    { Op::parameter(std::string_view(), arguments...) } -> std::convertible_to<std::string_view>;
};

/// The name of an argument of an op by its place; empty where the op does not say it.
template <class Op>
constexpr std::string_view argument_name(std::size_t index) {
    if constexpr (requires { Op::argument_names; }) {
        if (index < std::size(Op::argument_names)) return Op::argument_names[index];
    }
    return {};
}

/// Whether the argument is the gradient that a backward op is given.
template <class Op, std::size_t Index>
inline constexpr bool is_incoming_gradient =
    !std::is_void_v<typename forward_of<Op>::type> && argument_name<Op>(Index) == "dy";

template <class Op>
constexpr bool computes_in_float() {
    if constexpr (requires { Op::computes_in_float; }) {
        return Op::computes_in_float;
    } else {
        return false;
    }
}

/// Whether the op multiplies matrices. Where it does not say it: unless it computes in float.
template <class Op>
constexpr bool has_product_operands() {
    return requires { Op::product_operands; } || !computes_in_float<Op>();
}

/// Whether the argument is an operand of the product that the op computes; any, where the op does not say it.
template <class Op, std::size_t Index>
constexpr bool is_product_operand() {
    if constexpr (requires { Op::product_operands; }) {
        for (const std::string_view name : Op::product_operands) {
            if (name == argument_name<Op>(Index)) return true;
        }
        return false;
    } else {
        return has_product_operands<Op>();
    }
}

/// Whether the kernel of Op itself adds to the argument of this name: Op::sums lists those that it does.
template <class Op, std::size_t Index>
constexpr bool adds_itself() {
    if constexpr (requires { Op::sums; }) {
        for (const std::string_view name : Op::sums) {
            if (name == argument_name<Op>(Index)) return true;
        }
    }
    return false;
}

}}  // namespace mp::detail
