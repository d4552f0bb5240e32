// SPDX-License-Identifier: MIT
/// \file
/// Short words in which lists of ops are written down.
#pragma once

#include <mp/nn/autocast/category.hpp>
#include <mp/nn/autocast/op_list.hpp>

#include <array>
#include <cstddef>
#include <string_view>

/// One word for each category, so that several rules fit on a line. The lists' rules stand in the same
/// namespace; in one of your own, say which words you use:
///
///     namespace my_rules {
///     using mp::autocast::lists::rules::full, mp::autocast::lists::rules::low;
///     inline constexpr mp::autocast::op_rule mine[] = {{"exp", full}, {"matmul", low}};
///     }
///     inline constexpr mp::autocast::op_list mine{"mine", my_rules::mine, mp::op_category::pass_through};
///
/// The suffix sv, which the lists have, halves the time that the compiler takes for a long one.
namespace mp::autocast::lists::rules {

using std::string_view_literals::operator""sv;

inline constexpr auto low = op_category::lower_precision;
inline constexpr auto full = op_category::full_precision;
inline constexpr auto full_output = op_category::full_precision_output;
inline constexpr auto append_type = op_category::append_output_type;
inline constexpr auto promote = op_category::promote;
inline constexpr auto widest = op_category::promote_widest;
inline constexpr auto keep = op_category::pass_through;
inline constexpr auto banned = op_category::banned;

/// Why PyTorch and Apex ban binary_cross_entropy.
inline constexpr std::string_view use_logits =
    "a sigmoid rounded to half is often exactly 0 or 1, where the loss or its gradient is infinite: call "
    "binary_cross_entropy_with_logits with the values before the sigmoid";

/// The rules of another version of a list: without some ops, and with others.
template <std::size_t Rules, std::size_t Removed, std::size_t Added = 0>
constexpr auto revised(const op_rule (&rules)[Rules], const std::array<std::string_view, Removed>& removed,
                       const std::array<op_rule, Added>& added = {}) {
    std::array<op_rule, Rules - Removed + Added> result{};
    [[maybe_unused]] const auto comes_before = [](const op_rule& a, const op_rule& b) { return a.op < b.op; };
    std::size_t next = 0;
    std::size_t filled = 0;
    for (const op_rule& rule : rules) {
        bool keeps = true;
        for (const std::string_view op : removed) keeps &= op != rule.op;
        if (!keeps) continue;
        if constexpr (Added != 0) {
            while (next < Added && comes_before(added[next], rule)) result[filled++] = added[next++];
        }
        result[filled++] = rule;
    }
    if constexpr (Added != 0) {
        while (next < Added) result[filled++] = added[next++];
    }
    return result;
}

}  // namespace mp::autocast::lists::rules
