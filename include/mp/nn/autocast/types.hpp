// SPDX-License-Identifier: MIT
/// \file
/// Properties of element types: whether autocast may cast them, their order by width, their names.
#pragma once

#include <mp/numbers/format/basic_float.hpp>
#include <mp/numbers/format/descriptor.hpp>
#include <mp/numbers/format/operations.hpp>

#include <concepts>
#include <cstdint>
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

/// Whether every value of Narrow, infinities and NaN included, is a value of Wide. A finite value of Narrow
/// is a multiple of its quantum with at most `precision` significant bits, so both being at least as fine in
/// Wide, and its largest finite value at least as large, is enough.
template <format_descriptor Wide, format_descriptor Narrow>
constexpr bool format_holds() {
    using wide = layout_of<Wide>;
    using narrow = layout_of<Narrow>;
    if (narrow::precision > wide::precision || narrow::quantum_exponent < wide::quantum_exponent)
        return false;
    if (narrow::has_infinity && !wide::has_infinity) return false;
    if (narrow::has_nan && !wide::has_nan) return false;
    if (narrow::has_signed_zero && !wide::has_signed_zero) return false;
    if (Narrow::is_signed && !Wide::is_signed) return false;
    if (narrow::max_exponent != wide::max_exponent) return narrow::max_exponent < wide::max_exponent;
    constexpr std::uint64_t narrow_top = narrow::max_finite_code & narrow::fraction_mask;
    constexpr std::uint64_t wide_top = wide::max_finite_code & wide::fraction_mask;
    constexpr int shift =
        wide::fraction_bits > narrow::fraction_bits ? wide::fraction_bits - narrow::fraction_bits : 0;
    return (narrow_top << shift) <= wide_top;
}

template <class Wide, class Narrow>
constexpr bool type_holds() {
    if constexpr (std::same_as<Wide, Narrow> || std::same_as<Wide, long double>) {
        return true;
    } else if constexpr (std::same_as<Narrow, long double>) {
        return false;
    } else {
        return format_holds<format_of_t<Wide>, format_of_t<Narrow>>();
    }
}

template <class... Elements>
struct type_list {};

template <class List, class... Elements>
struct floating_only {
    using type = List;
};

template <class... Kept, class Element, class... Rest>
struct floating_only<type_list<Kept...>, Element, Rest...>
    : floating_only<
          std::conditional_t<autocast::floating<Element>, type_list<Kept..., Element>, type_list<Kept...>>,
          Rest...> {};

/// The first candidate that holds all values of all elements.
template <class Candidates, class... Elements>
struct first_that_holds;

template <class Candidate, class... Rest, class... Elements>
struct first_that_holds<type_list<Candidate, Rest...>, Elements...> {
    static constexpr auto choose() {
        if constexpr ((type_holds<Candidate, Elements>() && ...)) {
            return std::type_identity<Candidate>{};
        } else {
            return typename first_that_holds<type_list<Rest...>, Elements...>::choice{};
        }
    }
    using choice = decltype(choose());
};

template <class List>
struct widest {
    using type = void;
};

template <class First, class... Rest>
struct widest<type_list<First, Rest...>> {
    using type =
        typename first_that_holds<type_list<First, Rest..., float, double>, First, Rest...>::choice::type;
};

}}  // namespace mp::detail

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

/// The type among the floating-point ones of Elements that holds every value of all the others; float where
/// none does, as for half and bfloat16; void where there is no floating-point type. The order of Elements
/// does not matter.
template <class... Elements>
using widest_t =
    typename detail::widest<typename detail::floating_only<detail::type_list<>, Elements...>::type>::type;

/// The name of an element type: "half", "bfloat16", "float"; "none" for a type without floating-
/// point values.
template <class Element>
constexpr std::string_view type_name() {
    if constexpr (std::same_as<Element, long double>) {
        return "long double";
    } else if constexpr (floating<Element>) {
        return detail::format_of_t<Element>::name;
    } else {
        return "none";
    }
}

}}  // namespace mp::autocast
