// SPDX-License-Identifier: MIT
// Whether a page is well formed, for pages without scripts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// The first tag that is not closed in its turn, or what else keeps a page from being well formed; empty if
/// nothing does.
inline std::string first_fault(std::string_view html) {
    std::vector<std::string> open;
    for (std::size_t at = html.find_first_of("<>"); at != std::string_view::npos;
         at = html.find_first_of("<>", at + 1)) {
        if (html[at] == '>') return "a > without a tag";
        const std::size_t end = html.find('>', at);
        if (end == std::string_view::npos) return "unfinished";
        std::string_view tag = html.substr(at + 1, end - at - 1);
        if (tag.find('<') != std::string_view::npos) return "a < within a tag";
        if (std::count(tag.begin(), tag.end(), '"') % 2 != 0) return "quotes of " + std::string(tag);
        at = end;
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
    // References to characters: every & begins one.
    for (std::size_t at = html.find('&'); at != std::string_view::npos; at = html.find('&', at + 1)) {
        const std::size_t end = html.find(';', at);
        if (end == std::string_view::npos || end - at > 8) return "a bare &";
    }
    return open.empty() ? std::string() : open.back();
}

inline std::size_t occurrences(std::string_view text, std::string_view part) {
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
        ++count;
    return count;
}

/// Path data holds commands and numbers only: no nan, no inf, no exponent that a browser would not take.
inline bool has_clean_paths(std::string_view html) {
    for (std::size_t at = html.find(" d=\""); at != std::string_view::npos; at = html.find(" d=\"", at + 1)) {
        const std::string_view data = html.substr(at + 4, html.find('"', at + 4) - at - 4);
        if (data.find_first_not_of("MLHVZmlhvaz0123456789.- ") != std::string_view::npos) return false;
    }
    return true;
}
