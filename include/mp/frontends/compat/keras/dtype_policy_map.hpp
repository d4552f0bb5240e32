// SPDX-License-Identifier: MIT
/// \file
/// Policies of layers by their paths, exact or by regular expression, as Keras's DTypePolicyMap.
///
/// This header needs `<regex>`, which takes long to compile; mp/autocast.hpp does not include it.
#pragma once

#include <mp/error.hpp>
#include <mp/frontends/compat/keras/dtype_policy.hpp>
#include <mp/frontends/compat/keras/python_pattern.hpp>

#include <cstddef>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mp::autocast {

/// What of a path a regular expression has to match.
enum class path_match : unsigned char {
    whole,    ///< all of it, as in Keras now: "encoder" is one layer, "encoder/.*" what is inside
    anywhere  ///< a part of it, as in earlier versions: "encoder" is also "decoder/encoder_2/dense"
};

/// Which policy a layer has, by its path. A key is a path, and also a regular expression of Python for other paths
/// (see python_pattern.hpp for what of these there is not):
///
///     dtype_policy_map policies(dtype_policy_from_name("mixed_float16"));
///     policies.set("encoder/.*", dtype_policy_from_name("bfloat16"));
///     policies.set("encoder/norm", dtype_policy_from_name("float32"));
///     policies.at("encoder/norm");   // float32: a key that is the path itself wins
///     policies.at("encoder/dense");  // bfloat16
///     policies.at("head");           // mixed_float16, the default
///
/// Look-ups from several threads at once are safe as long as none changes the map. Keys should come from the
/// program, not from strangers: std::regex takes exponential time, and deep stacks, for some of them.
class dtype_policy_map {
public:
    /// \param default_policy  for paths that no key matches
    explicit dtype_policy_map(dtype_policy default_policy, path_match match = path_match::whole)
        : default_policy_(std::move(default_policy)), match_(match) {}

    const dtype_policy& default_policy() const noexcept { return default_policy_; }
    std::size_t size() const noexcept { return entries_.size(); }
    bool empty() const noexcept { return entries_.empty(); }

    /// Whether the key itself is in the map; nothing is matched.
    bool contains(std::string_view key) const noexcept { return find(key) != entries_.size(); }

    /// The keys in the order in which they were set.
    std::vector<std::string> keys() const {
        std::vector<std::string> result;
        for (const entry& e : entries_) result.push_back(e.key);
        return result;
    }

    /// Gives the key a policy. Throws argument_error if it has one already, or is no regular expression; the
    /// map is then as before.
    void set(std::string_view key, dtype_policy policy) {
        if (const std::size_t found = find(key); found != entries_.size()) {
            detail::throw_argument("mp::autocast::dtype_policy_map::set", "key", key,
                                   "must not be in the map already, as it is with the policy " +
                                       detail::error_text(entries_[found].policy.name));
        }
        const auto refuse = [&](std::string_view why) {
            detail::throw_argument("mp::autocast::dtype_policy_map::set", "key", key,
                                   "must be a regular expression of Python, and " + std::string(why));
        };
        detail::python_pattern pattern(key);
        const std::string translated = pattern.translate();
        if (!pattern.error().empty()) refuse(pattern.error());
        detail::attempt<std::regex_error>(
            [&] { entries_.push_back({std::string(key), std::regex(translated), std::move(policy)}); },
            [&](const std::regex_error& error) {
                refuse(std::string("std::regex does not take it: ") + error.what());
            });
    }

    /// Removes a key. Throws argument_error if it is not in the map.
    void erase(std::string_view key) {
        const std::size_t found = find(key);
        if (found == entries_.size()) {
            detail::throw_argument("mp::autocast::dtype_policy_map::erase", "key", key, "must be in the map");
        }
        entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(found));
    }

    /// The policy of the layer at this path: that of the key which is the path, else of the one key that
    /// matches it, else the default. Throws argument_error naming the keys if several match. The reference is
    /// good until the map changes.
    const dtype_policy& at(std::string_view path) const {
        if (const std::size_t exact = find(path); exact != entries_.size()) return entries_[exact].policy;
        const entry* match = nullptr;
        std::string ambiguous;
        for (const entry& e : entries_) {
            if (!matches(e, path)) continue;
            if (match != nullptr) {
                if (ambiguous.empty()) ambiguous = detail::error_text(match->key);
                ambiguous.append(", ").append(detail::error_text(e.key));
            }
            match = &e;
        }
        if (!ambiguous.empty()) {
            detail::throw_argument("mp::autocast::dtype_policy_map::at", "path", path,
                                   "must match at most one key, but matches " + ambiguous);
        }
        return match != nullptr ? match->policy : default_policy_;
    }

private:
    struct entry {
        std::string key;
        std::regex pattern;
        dtype_policy policy;
    };

    std::size_t find(std::string_view key) const noexcept {
        std::size_t i = 0;
        while (i < entries_.size() && entries_[i].key != key) ++i;
        return i;
    }

    bool matches(const entry& e, std::string_view path) const {
        return match_ == path_match::whole ? std::regex_match(path.begin(), path.end(), e.pattern)
                                           : std::regex_search(path.begin(), path.end(), e.pattern);
    }

    dtype_policy default_policy_;
    path_match match_;
    std::vector<entry> entries_;
};

}  // namespace mp::autocast
