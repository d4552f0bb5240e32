// SPDX-License-Identifier: MIT
/// \file
/// What an op is to autocast: a tag with a name and a category.
#pragma once

#include <mp/config.hpp>

#include <concepts>
#include <cstddef>
#include <string_view>

namespace mp {

/// What autocast does with the floating-point arguments and results of an op. The words of TensorFlow's graph
/// rewrite (allow, deny, infer, clear) name four of the categories; without a graph, `infer` can only look at
/// the op's own arguments.
enum class op_category : unsigned char {
    lower_precision,        ///< arguments cast to the policy's low precision: matrix products, convolutions
    full_precision,         ///< arguments cast to float: exponentials, losses, long sums
    full_precision_output,  ///< arguments stay; the result is float if the first argument may be cast at all
                            ///< and the caller has not chosen a type with result_type
    append_output_type,  ///< arguments stay; the result is float if the first argument may be cast, else of
                         ///< the first argument's own type, whatever the others are
    promote,             ///< arguments cast to float if one is float, else to the low precision; it is an
                         ///< error if one has another reduced format than that
    promote_widest,      ///< arguments cast to the widest of their types: ops that mix several arrays
    pass_through,        ///< arguments stay as they are: ops that are right in any format
    banned,              ///< refused while autocast is on: there is a safer op to call instead

    allow = lower_precision,
    deny = full_precision,
    infer = promote_widest,
    clear = pass_through
};

}  // namespace mp

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The name of a category as written in the enumeration; "unknown" for any other value.
constexpr std::string_view name_of(op_category category) noexcept {
    switch (category) {
        case op_category::lower_precision:
            return "lower_precision";
        case op_category::full_precision:
            return "full_precision";
        case op_category::full_precision_output:
            return "full_precision_output";
        case op_category::append_output_type:
            return "append_output_type";
        case op_category::promote:
            return "promote";
        case op_category::promote_widest:
            return "promote_widest";
        case op_category::pass_through:
            return "pass_through";
        case op_category::banned:
            return "banned";
    }
    return "unknown";
}

}}  // namespace mp

namespace mp {

/// Everything that decides in which precision an op runs, and runs it.
namespace autocast {

/// A tag type that names an op and says its category. Three lines register an op of your own:
///
///     struct squash_op {
///         static constexpr std::string_view name = "squash";
///         static constexpr auto category = mp::op_category::full_precision;
///         constexpr auto operator()(auto x) const { return x / (decltype(x)(1) + x * x); }
///     };
///     auto y = mp::autocast::call<mp::autocast::fp16>(squash_op{}, x);
///
/// The call operator is the kernel: it receives the arguments after autocast has cast them. A tag may also
/// have these members:
///
/// - `static void validate(args...)` checks the caller's own arguments before anything is cast,
///   if it can be called with them;
/// - `static constexpr bool computes_in_float = true` says that the kernel reads any format, computes in
///   float and rounds once when it writes, so that casts to float, which are exact, need no copy;
/// - `static constexpr auto banned_reason = mp::autocast::fixed_string("...")` says why the op is banned and what
///   to call instead;
/// - `known_as`, an array of std::string_view: what the lists of other systems call the op, such as "MatMul";
/// - `using forward_op = ...` in the tag of a backward op: rules for the forward op hold for it as well, so
///   that backward runs in the precision of the forward;
/// - `argument_names`, an array of std::string_view, for reports; the gradient that a backward op is given is
///   called "dy";
/// - `product_operands`, an array of the names of the arguments that are multiplied with each other: where a policy
///   quantises to float8, it quantises these and not, say, the bias. Without it that is all data of the op, or
///   none where it computes_in_float;
/// - `sums`, an array of the names of the outputs that the kernel itself adds to: where the caller passes
///   add_to() of an array for one of them, the kernel receives that sum_operand. It computes in float;
/// - `static constexpr std::string_view parameter(std::string_view name, args...)` returns the value of a
///   parameter, such as act_type, written out; rules with a condition ask for it. Empty if there is none.
/// - `static product_size product(args...)` says the size of the matrix product that the op computes.
template <class Op>
concept op = requires {
    { Op::name } -> std::convertible_to<std::string_view>;
    { Op::category } -> std::convertible_to<op_category>;
};

/// The size of a matrix product: m x k times k x n.
struct product_size {
    std::ptrdiff_t m = 0;
    std::ptrdiff_t n = 0;
    std::ptrdiff_t k = 0;
};

/// A string literal that can be a template argument, so that compilers print it in their messages.
template <std::size_t Size>
struct fixed_string {
    char text[Size]{};

    /* implicit */ consteval fixed_string(const char (&literal)[Size]) {
        for (std::size_t i = 0; i < Size; ++i) text[i] = literal[i];
    }

    /// The characters without the terminating zero.
    constexpr std::string_view view() const { return {text, Size - 1}; }
};

}  // namespace autocast

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Why an op is banned: its own sentence, or one that holds for every banned op.
template <class Op>
constexpr auto banned_reason_of() {
    if constexpr (requires { Op::banned_reason; }) {
        return Op::banned_reason;
    } else {
        return autocast::fixed_string("the policy bans it; call it outside autocast or choose another op");
    }
}

}}  // namespace mp::detail
