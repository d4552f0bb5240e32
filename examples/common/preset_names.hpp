// SPDX-License-Identifier: MIT
/// \file
/// The presets of autocast by their names on a command line.
#pragma once

#include <mp/frontends/compat/presets.hpp>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.hpp"

namespace examples {

/// The names of all presets, in their order.
inline std::vector<std::string_view> preset_names() {
    std::vector<std::string_view> names;
    for (const mp::autocast::preset* it : mp::autocast::presets::all) names.push_back(it->name);
    return names;
}

/// The names with commas between them.
inline std::string joined(std::span<const std::string_view> names) {
    std::string text;
    for (const std::string_view name : names) text.append(text.empty() ? "" : ", ").append(name);
    return text;
}

/// Adds the presets in a list such as "fp16,pytorch_cuda", or "all" of them. Throws user_error, which lists
/// the names, for others.
inline void add_presets(std::string_view option, std::string_view list, std::vector<std::string>& into) {
    std::vector<std::string_view> known = preset_names();
    known.emplace_back("all");
    add_names(option, list, known, into);
    if (std::find(into.begin(), into.end(), "all") == into.end()) return;
    known.pop_back();
    into.assign(known.begin(), known.end());
}

}  // namespace examples
