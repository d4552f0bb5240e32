// SPDX-License-Identifier: MIT
/// \file
/// The names of the kinds of change that an update makes to a scale.
#pragma once

#include <mp/nn/scaling/policy.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// In the order of the enumeration.
inline constexpr std::array<std::string_view, 13> scale_change_names{
    "unchanged", "grown",    "growth_refused", "backed_off", "vanished", "replaced", "no_gradients",
    "absorbed",  "nan_kept", "at_floor",       "at_ceiling", "disabled", "failed"};
static_assert(static_cast<std::size_t>(scale_change_kind::failed) + 1 == scale_change_names.size());

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The name of the enumerator, such as "backed_off". A value that is none of them gives "unknown".
[[nodiscard]] constexpr std::string_view to_string(scale_change_kind kind) noexcept {
    const auto index = static_cast<std::size_t>(kind);
    return index < detail::scale_change_names.size() ? detail::scale_change_names[index] : "unknown";
}

/// The kind with that name; nothing if there is none.
[[nodiscard]] constexpr std::optional<scale_change_kind> scale_change_kind_named(
    std::string_view name) noexcept {
    for (std::size_t i = 0; i < detail::scale_change_names.size(); ++i) {
        if (detail::scale_change_names[i] == name) return static_cast<scale_change_kind>(i);
    }
    return std::nullopt;
}

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The name in words, for sentences: "backed off".
inline std::string scale_change_words(scale_change_kind kind) {
    if (kind == scale_change_kind::nan_kept) return "kept in spite of NaN";
    std::string words(to_string(kind));
    for (char& c : words) {
        if (c == '_') c = ' ';
    }
    return words;
}

}}  // namespace mp::detail
