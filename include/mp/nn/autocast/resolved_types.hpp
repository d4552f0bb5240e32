// SPDX-License-Identifier: MIT
/// \file
/// From a category and the types of the data of a call to the types that it works with: the one rule for policies at
/// compile time and for regions at run time.
#pragma once

#include <mp/config.hpp>
#include <mp/nn/autocast/category.hpp>
#include <mp/numbers/format/number_facts.hpp>

#include <cstddef>
#include <span>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Types that a category gives to the data of a call.
struct resolved_types {
    const number_facts* target = &no_number;  ///< of the casts; no_number if data stay as they are
    const number_facts* output = &no_number;  ///< of results; no_number if they stay as the kernel makes them
    const number_facts* third = &no_number;   ///< of a promotion that is rejected
};

/// Whether autocast may cast numbers of the type: float and the reduced formats.
[[nodiscard]] constexpr bool is_eligible(const number_facts& type) {
    return type.is_reduced || (!type.is_double && type.size == sizeof(float));
}

/// Resolves a category for data of the given types, of which no_number does not count; `requested` is the type of result
/// that the call asks for, or no_number.
constexpr resolved_types resolve_types(op_category category, const number_facts& low,
                                       const number_facts& float32, const number_facts* requested,
                                       std::span<const number_facts* const> data) {
    constexpr std::size_t most = 16;
    const number_facts* cast[most];
    const auto widest_cast_to = [&](const number_facts* target) {
        for (std::size_t i = 0; i < data.size(); ++i) {
            cast[i] = data[i]->is_number && is_eligible(*data[i]) ? target : data[i];
        }
        return widest_of({cast, data.size()}, float32);
    };
    const number_facts* first = &no_number;
    for (const number_facts* it : data) {
        if (!first->is_number) first = it;
    }
    const bool first_is_eligible = first->is_number && is_eligible(*first);
    switch (category) {
        case op_category::lower_precision:
            return {&low, widest_cast_to(&low)};
        case op_category::full_precision:
            return {&float32, widest_cast_to(&float32)};
        case op_category::full_precision_output:
            return {&no_number, requested->is_number ? requested : first_is_eligible ? &float32 : &no_number};
        case op_category::append_output_type:
            return {&no_number, requested->is_number ? requested : first_is_eligible ? &float32 : first};
        case op_category::promote: {
            const number_facts* target = &low;
            const number_facts* third = &no_number;
            for (const number_facts* it : data) {
                if (!it->is_number) continue;
                if (is_same_type(*it, float32)) target = &float32;
                if (!third->is_number && it->is_reduced && !is_same_type(*it, low)) third = it;
            }
            return {target, widest_cast_to(target), third};
        }
        case op_category::promote_widest: {
            const number_facts* const target = widest_of(data, float32);
            return {target, target};
        }
        case op_category::pass_through:
        case op_category::banned:
            break;
    }
    return {};
}

/// The meaning of a category, in words.
constexpr std::string_view description_of(op_category category) {
    switch (category) {
        case op_category::lower_precision:
            return "float and reduced arguments are cast to the low precision of the policy";
        case op_category::full_precision:
            return "float and reduced arguments are cast to float";
        case op_category::full_precision_output:
            return "arguments stay as they are, and the result is float unless the call asks for another "
                   "type";
        case op_category::append_output_type:
            return "arguments stay as they are, and the result is float, or of the type of a first argument "
                   "that "
                   "autocast does not touch";
        case op_category::promote:
            return "float and reduced arguments are cast to float if one of them is float, else to the low "
                   "precision of "
                   "the policy";
        case op_category::promote_widest:
            return "float and reduced arguments are cast to the widest of the argument types";
        case op_category::pass_through:
            return "arguments stay as they are";
        case op_category::banned:
            break;
    }
    return "the op must not run under autocast";
}

}}  // namespace mp::detail
