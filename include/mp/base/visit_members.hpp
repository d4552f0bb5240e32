// SPDX-License-Identifier: MIT
/// \file
/// Visits of the members of a struct by their names, by which options and states are saved and compared.
#pragma once

#include <mp/config.hpp>

#include <cstddef>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Calls visitor(name, member) for every member; `names` has theirs as the preprocessor writes a list.
template <class Visitor, class... Members>
constexpr void visit_members(std::string_view names, Visitor& visitor, Members&... members) {
    const auto next = [&names] {
        const std::size_t end = names.find(',');
        const std::string_view name = names.substr(0, end);
        names.remove_prefix(end == std::string_view::npos ? names.size() : end + 2);
        return name;
    };
    (visitor(next(), members), ...);
}

}}  // namespace mp::detail

/// Defines the static function visit(self, visitor) of a struct, which calls visitor(name, member) for every member. All
/// of them are listed, in the order in which they are declared.
#define MP_VISITS_MEMBERS(...)                                         \
    template <class Self, class Visitor>                               \
    static constexpr void visit(Self& self, Visitor&& visitor) {       \
        auto& [__VA_ARGS__] = self;                                    \
        mp::detail::visit_members(#__VA_ARGS__, visitor, __VA_ARGS__); \
    }
