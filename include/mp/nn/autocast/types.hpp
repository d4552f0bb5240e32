// SPDX-License-Identifier: MIT
/// \file
/// Properties of element types: whether autocast may cast them, their order by width, their names.
#pragma once

#include <mp/numbers/format/basic_float.hpp>
#include <mp/numbers/format/number_facts.hpp>
#include <mp/numbers/format/operations.hpp>

#include <concepts>
#include <string_view>
#include <type_traits>

namespace mp::autocast {

/// A type that autocast may cast: float and the reduced formats. double and long double are asked for on
/// purpose and stay what they are, as in PyTorch; integers are no floating-point data at all.
template <class Element>
concept eligible = reduced<Element> || std::same_as<Element, float>;

/// A floating-point type, eligible or not.
template <class Element>
concept floating = reduced<Element> || std::floating_point<Element>;

}  // namespace mp::autocast

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class... Elements>
struct type_list {};

/// The facts of a type; no_number where it is no floating-point type.
template <class Element>
constexpr const number_facts* facts_or_none() {
    if constexpr (autocast::floating<Element>) {
        return &facts_v<Element>;
    } else {
        return &no_number;
    }
}

/// The first of the types that the facts are of; void for no_number.
template <class... Types>
struct type_among {
    using type = void;
};
template <class Choose, class First, class... Rest>
struct type_among<Choose, First, Rest...>
    : std::conditional_t<autocast::floating<First> && is_same_type(*facts_or_none<First>(), *Choose::facts()),
                         std::type_identity<First>, type_among<Choose, Rest...>> {};

template <class... Elements>
struct widest_type {
    static constexpr const number_facts* facts() {
        const number_facts* all[] = {&no_number, facts_or_none<Elements>()...};
        return widest_of(all, facts_v<float>);
    }
    using type = typename type_among<widest_type, Elements..., float>::type;
};

}}  // namespace mp::detail

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

/// The type among the floating-point ones of Elements that holds every value of all the others; float where
/// none does, as for half and bfloat16; void where there is no floating-point type. The order of Elements
/// does not matter.
template <class... Elements>
using widest_t = typename detail::widest_type<Elements...>::type;

/// The name of an element type: "half", "bfloat16", "float"; "none" for a type without floating-
/// point values.
template <class Element>
constexpr std::string_view type_name() {
    if constexpr (floating<Element>) {
        return detail::facts_v<Element>.name;
    } else {
        return "none";
    }
}

}}  // namespace mp::autocast
