// SPDX-License-Identifier: MIT
// Every rule of every published list decides the types that its op is run in, under a policy that uses the
// list. What a category means is written down here a second time, without the library. Most of it is proven
// when this file is compiled.
#include <doctest/doctest.h>

// Policies that use lists come with this header.
#if __has_include(<mp/nn/autocast/op_names.hpp>)

#include <mp/autocast.hpp>
#include <mp/frontends/compat/op_lists.hpp>

#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

namespace {

using mp::bfloat16;
using mp::half;
using mp::op_category;
namespace ac = mp::autocast;
namespace lists = mp::autocast::lists;

/// An op with the name of a rule. Its own category is never that of the rule, so the list must decide.
template <const ac::op_list& List, std::size_t I>
struct listed_op {
    static constexpr std::string_view name = List.rules[I].op;
    static constexpr auto category =
        List.rules[I].category == op_category::banned ? op_category::pass_through : op_category::banned;
};

/// An op that no list names.
struct unlisted_op {
    static constexpr std::string_view name = "no system has this op";
    static constexpr auto category = op_category::banned;
};

// --- what a category means

template <class T>
inline constexpr bool can_be_cast =
    std::same_as<T, float> || std::same_as<T, half> || std::same_as<T, bfloat16>;

/// The narrowest of half, bfloat16, float and double that holds all of these; void if none is among them.
template <class... T>
using widest = std::conditional_t<
    (std::same_as<T, double> || ...), double,
    std::conditional_t<
        (std::same_as<T, float> || ...) ||
            ((std::same_as<T, half> || ...) && (std::same_as<T, bfloat16> || ...)),
        float,
        std::conditional_t<(std::same_as<T, half> || ...), half,
                           std::conditional_t<(std::same_as<T, bfloat16> || ...), bfloat16, void>>>>;

template <op_category Category, class Low, class... Arguments>
constexpr auto expected_target() {
    if constexpr (Category == op_category::lower_precision) {
        return std::type_identity<Low>{};
    } else if constexpr (Category == op_category::full_precision) {
        return std::type_identity<float>{};
    } else if constexpr (Category == op_category::promote) {
        return std::type_identity<std::conditional_t<(std::same_as<Arguments, float> || ...), float, Low>>{};
    } else if constexpr (Category == op_category::promote_widest) {
        return std::type_identity<widest<Arguments...>>{};
    } else {
        return std::type_identity<void>{};
    }
}

/// The data of an argument: an integer has none, it is a parameter of the op.
template <class Argument>
using data_in = std::conditional_t<std::integral<Argument>, void, Argument>;

template <op_category Category, class Low, class Argument, class... Arguments>
using expected_cast = std::conditional_t<
    can_be_cast<Argument> &&
        !std::is_void_v<typename decltype(expected_target<Category, Low, Arguments...>())::type>,
    typename decltype(expected_target<Category, Low, Arguments...>())::type, Argument>;

template <op_category Category, class Policy, class Low, class Op, class... Arguments>
constexpr bool casts_as_defined =
    (std::same_as<ac::cast_type_t<Policy, Op, Arguments, Arguments...>,
                  expected_cast<Category, Low, data_in<Arguments>, data_in<Arguments>...>> &&
     ...);

// --- every rule

/// What can be seen of a category in its casts and results.
template <op_category Category, class Policy, class Low, class Op>
constexpr bool means_its_category() {
    using other = std::conditional_t<std::same_as<Low, half>, bfloat16, half>;
    static_assert(casts_as_defined<Category, Policy, Low, Op, float>);
    static_assert(casts_as_defined<Category, Policy, Low, Op, Low>);
    static_assert(casts_as_defined<Category, Policy, Low, Op, double>);
    static_assert(casts_as_defined<Category, Policy, Low, Op, int>);
    static_assert(casts_as_defined<Category, Policy, Low, Op, Low, float>);
    static_assert(casts_as_defined<Category, Policy, Low, Op, Low, int>);
    static_assert(casts_as_defined<Category, Policy, Low, Op, double, Low>);
    if constexpr (Category != op_category::promote) {  // where a third format is an error
        static_assert(casts_as_defined<Category, Policy, Low, Op, other>);
        static_assert(casts_as_defined<Category, Policy, Low, Op, Low, other>);
    }
    if constexpr (Category == op_category::full_precision_output ||
                  Category == op_category::append_output_type) {
        static_assert(std::same_as<ac::output_type_t<Policy, Op, Low>, float>);
        static_assert(std::same_as<ac::output_type_t<Policy, Op, float>, float>);
    }
    if constexpr (Category == op_category::append_output_type) {
        static_assert(std::same_as<ac::output_type_t<Policy, Op, double>, double>);
    }
    return true;
}

/// Everything above for the first op of a category in a list; for each of the others the category itself and
/// one set of arguments, which tells apart all categories but two.
template <const ac::op_list& List, class Low, class Op, op_category Category, bool First>
constexpr bool treated_as_published() {
    using policy = ac::policy<Low, ac::use_list<List>>;
    static_assert(ac::category_of<policy, Op> == Category);
    if constexpr (Category == op_category::banned) {
        static_assert(!ac::allowed<policy, Op>);
    } else {
        static_assert(casts_as_defined<Category, policy, Low, Op, double, Low, float>);
        if constexpr (First) static_assert(means_its_category<Category, policy, Low, Op>());
    }
    return true;
}

/// What holds for an op that does not tell the values of its parameters: rules with a condition do not apply.
template <const ac::op_list& List, std::size_t I>
constexpr op_category published = List.rules[I].parameter.empty() ? List.rules[I].category : List.unlisted;

template <const ac::op_list& List, std::size_t I>
constexpr bool first_of_its_category = [] {
    for (std::size_t i = 0; i < I; ++i) {
        if (List.rules[i].category == List.rules[I].category) return false;
    }
    return true;
}();

template <const ac::op_list& List, class Low>
constexpr bool all_treated_as_published = []<std::size_t... I>(std::index_sequence<I...>) {
    // Neither a fold nor std::array, whose type is deduced with one: clang folds no more than 256 terms.
    const bool each[] = {treated_as_published<List, Low, unlisted_op, List.unlisted, true>(),
                         treated_as_published<List, Low, listed_op<List, I>, published<List, I>,
                                              first_of_its_category<List, I>>()...};
    for (const bool as_published : each) {
        if (!as_published) return false;
    }
    return true;
}(std::make_index_sequence<List.rules.size()>{});

static_assert(all_treated_as_published<lists::pytorch_cuda, half>);
static_assert(all_treated_as_published<lists::pytorch_cuda, bfloat16>);
static_assert(all_treated_as_published<lists::pytorch_cpu, bfloat16>);
static_assert(all_treated_as_published<lists::pytorch_mps, half>);
static_assert(all_treated_as_published<lists::tensorflow, half>);
static_assert(all_treated_as_published<lists::tensorflow_bfloat16, bfloat16>);
static_assert(all_treated_as_published<lists::apex, half>);
static_assert(all_treated_as_published<lists::mxnet, half>);
static_assert(all_treated_as_published<lists::mxnet_bfloat16, bfloat16>);
static_assert(all_treated_as_published<lists::nvidia, half>);

}  // namespace

TEST_CASE("every published rule decides the types of its op") {
    // Proven above.
    CHECK(lists::all_lists.size() == 9);
}

#endif
