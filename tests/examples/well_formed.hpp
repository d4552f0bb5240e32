// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace examples_test {

/// The first tag that is not closed in its turn; empty if the page is well formed.
inline std::string first_unbalanced_tag(std::string_view html) {
    std::vector<std::string> open;
    for (std::size_t at = html.find('<'); at != std::string_view::npos; at = html.find('<', at + 1)) {
        const std::size_t end = html.find('>', at);
        if (end == std::string_view::npos) return "unfinished";
        std::string_view tag = html.substr(at + 1, end - at - 1);
        if (tag.starts_with('!') || tag.ends_with('/') || tag.starts_with("meta")) continue;
        const bool closes = tag.starts_with('/');
        if (closes) tag.remove_prefix(1);
        std::string name(tag.substr(0, tag.find_first_of(" \n")));
        if (!closes) {
            open.push_back(name);
        } else if (open.empty() || open.back() != name) {
            return name;
        } else {
            open.pop_back();
        }
    }
    return open.empty() ? std::string() : open.back();
}

}  // namespace examples_test
