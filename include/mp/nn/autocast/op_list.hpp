// SPDX-License-Identifier: MIT
/// \file
/// Lists of ops by name: how systems publish which op runs in which precision.
#pragma once

#include <mp/config.hpp>
#include <mp/nn/autocast/category.hpp>

#include <cstddef>
#include <span>
#include <string_view>

namespace mp::autocast {

/// The treatment of one op in a list.
struct op_rule {
    std::string_view op;           ///< the name that the system knows the op by
    op_category category;          ///< what happens to its arguments
    std::string_view parameter{};  ///< if not empty, the rule holds only where this parameter of the op ...
    std::string_view value{};      ///< ... has this value, written out
    std::string_view reason{};     ///< readable, mostly why the op is banned and what to call instead

    friend constexpr bool operator==(const op_rule&, const op_rule&) = default;
};

/// A system's treatment of ops, as data. Rules are sorted by op, parameter and value, so that rules without a
/// condition come first; is_sorted_list() says whether they are. A list refers to its rules and does not own
/// them; the published ones have static storage.
struct op_list {
    std::string_view name;           ///< "pytorch_cuda", for messages
    std::span<const op_rule> rules;  ///< at most one rule for an op and condition
    op_category unlisted;            ///< what happens to ops that no rule names
    std::string_view version{};      ///< "2.15": of the system whose list it is, from which on it holds
};

}  // namespace mp::autocast

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Less than, equal to or greater than 0 as a comes before b, is b, or comes after it. Evaluated at compile
/// time by the compiler's own memcmp, which takes a tenth of the time of comparing string_views there: lists
/// have hundreds of names.
constexpr int compare_names(std::string_view a, std::string_view b) {
    const std::size_t length = a.size() < b.size() ? a.size() : b.size();
    const int order = length == 0 ? 0 : __builtin_memcmp(a.data(), b.data(), length);
    return order != 0 ? order : a.size() < b.size() ? -1 : a.size() > b.size() ? 1 : 0;
}

}}  // namespace mp::detail

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

/// Whether the rules are in the order that find_rules() searches in, without two for one op and condition.
constexpr bool is_sorted_list(std::span<const op_rule> rules) {
    const auto before = [](const op_rule& a, const op_rule& b) {
        if (const int order = detail::compare_names(a.op, b.op); order != 0) return order < 0;
        if (const int order = detail::compare_names(a.parameter, b.parameter); order != 0) return order < 0;
        return detail::compare_names(a.value, b.value) < 0;
    };
    for (std::size_t i = 1; i < rules.size(); ++i) {
        if (!before(rules[i - 1], rules[i])) return false;
    }
    return true;
}

/// All rules of the list for the op of this name; empty where it has none.
constexpr std::span<const op_rule> find_rules(const op_list& list, std::string_view op) {
    std::size_t first = 0;
    std::size_t count = list.rules.size();
    while (count > 0) {
        const std::size_t half = count / 2;
        if (detail::compare_names(list.rules[first + half].op, op) < 0) {
            first += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    std::size_t last = first;
    while (last < list.rules.size() && list.rules[last].op == op) ++last;
    return {list.rules.data() + first, last - first};
}

/// The category of the op of this name, without regard to rules with a condition; the list's `unlisted` where
/// no rule names the op.
constexpr op_category category_in(const op_list& list, std::string_view op) {
    const auto rules = find_rules(list, op);
    return rules.empty() || !rules.front().parameter.empty() ? list.unlisted : rules.front().category;
}

}}  // namespace mp::autocast
