// SPDX-License-Identifier: MIT
/// \file
/// How a graph is rewritten: TensorFlow's levels, and changes to the lists of ops, also from its environment
/// variables.
///
/// Source: tensorflow/core/grappler/optimizers/auto_mixed_precision.cc and auto_mixed_precision_lists.h.
#pragma once

#include <mp/error.hpp>
#include <mp/nn/autocast/category.hpp>
#include <mp/nn/autocast/element_format.hpp>
#include <mp/nn/autocast/op_list.hpp>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mp::autocast {

/// How bold the rewrite is.
enum class graph_rewrite_level : unsigned char {
    standard,             ///< all four lists
    tensor_cores_only,    ///< the allow list only
    unsafe_force_all,     ///< every op but constants, variables and SoftmaxCrossEntropyWithLogits
    treat_infer_as_deny,  ///< the ops of the infer list are on the deny list
};

/// Whose rules the rewrite follows.
enum class graph_rewrite_version : unsigned char {
    tensorflow_2_18,  ///< and earlier sources: step 4 for bfloat16 only
    tensorflow_2_21,  ///< step 4 for float16, too
};

/// Changes to one list of ops; what is both added and removed is removed.
struct graph_list_changes {
    std::vector<std::string> add{};
    std::vector<std::string> remove{};
};

/// How plan_graph_rewrite() works.
struct graph_rewrite_options {
    graph_rewrite_level level = graph_rewrite_level::standard;
    element_format low_precision = element_format::f16;  ///< what float32 is replaced by

    graph_rewrite_version version = graph_rewrite_version::tensorflow_2_21;

    /// Whether step 4 is taken: an infer op right behind a node in low precision gets it too. Where this is empty, as
    /// in that version of TensorFlow.
    std::optional<bool> infer_follows_allow{};

    graph_list_changes allow{};
    graph_list_changes infer{};
    graph_list_changes deny{};
    graph_list_changes clear{};
};

}  // namespace mp::autocast

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

/// The word that TensorFlow has for a level; empty for `standard`, "unknown" for a value that is no
/// enumerator.
constexpr std::string_view name_of(graph_rewrite_level level) noexcept {
    constexpr std::string_view names[] = {"", "TENSOR_CORES_ONLY", "UNSAFE_FORCE_ALL", "TREAT_INFER_AS_DENY"};
    return level <= graph_rewrite_level::treat_infer_as_deny ? names[static_cast<int>(level)] : "unknown";
}

}}  // namespace mp::autocast

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

using string_set = std::set<std::string, std::less<>>;

/// The four lists, in the order allow, infer, deny, clear.
inline constexpr std::array<op_category, 4> graph_categories{op_category::allow, op_category::infer,
                                                             op_category::deny, op_category::clear};
inline constexpr std::array<std::string_view, 4> graph_list_names{"allow", "infer", "deny", "clear"};

inline std::size_t graph_list_of(const autocast::op_list& list, const autocast::op_rule& rule) {
    for (std::size_t i = 0; i < graph_categories.size(); ++i) {
        if (graph_categories[i] == rule.category) return i;
    }
    throw_argument(
        "mp::autocast::plan_graph_rewrite",
        std::string("in the list ").append(error_text(list.name)).append(" the category of ").append(rule.op),
        name_of(rule.category), "must be one of those that are also called allow, infer, deny and clear");
}

/// The list after the changes: a category for every op that one of the four lists names. Rules with a
/// condition are left out. Throws argument_error for ops in two lists and for categories without a list.
inline std::map<std::string, op_category, std::less<>> categories_for_graph(
    const autocast::op_list& list, const autocast::graph_rewrite_options& options) {
    std::array<string_set, 4> ops;
    for (const autocast::op_rule& rule : list.rules) {
        if (rule.parameter.empty()) ops[graph_list_of(list, rule)].emplace(rule.op);
    }
    const std::array<const autocast::graph_list_changes*, 4> changes{&options.allow, &options.infer,
                                                                     &options.deny, &options.clear};
    std::map<std::string, op_category, std::less<>> result;
    std::map<std::string_view, std::size_t> place;
    for (std::size_t i = 0; i < ops.size(); ++i) {
        if (i > 0 && options.level == autocast::graph_rewrite_level::tensor_cores_only) break;
        ops[i].insert(changes[i]->add.begin(), changes[i]->add.end());
        for (const std::string& op : changes[i]->remove) ops[i].erase(op);
        const bool as_deny = graph_categories[i] == op_category::infer &&
                             options.level == autocast::graph_rewrite_level::treat_infer_as_deny;
        for (const std::string& op : ops[i]) {
            const auto [other, is_new] = place.emplace(op, i);
            if (!is_new) {
                throw_argument("mp::autocast::plan_graph_rewrite", "an op", op,
                               std::string("must be in one list only, but is in ")
                                   .append(graph_list_names[other->second])
                                   .append(" and ")
                                   .append(graph_list_names[i])
                                   .append("; remove it from one of them"));
            }
            result.emplace(op, as_deny ? op_category::deny : graph_categories[i]);
        }
    }
    return result;
}

inline constexpr std::string_view graph_variable_prefix = "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_";

/// The ops between the commas; empty ones are skipped.
inline std::vector<std::string> split_ops(std::string_view text) {
    std::vector<std::string> ops;
    while (!text.empty()) {
        const std::size_t comma = text.find(',');
        if (comma != 0) ops.emplace_back(text.substr(0, comma));
        text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    }
    return ops;
}

/// Reads environment variables through a function like std::getenv.
template <class Lookup>
class graph_environment {
public:
    static constexpr std::string_view function = "mp::autocast::tensorflow_options_from_environment";

    explicit graph_environment(Lookup& lookup) : lookup_(lookup) {}

    autocast::graph_rewrite_level level() const {
        const std::string variable = std::string(graph_variable_prefix).append("LEVEL");
        const std::string text = value(variable);
        std::string upper = text;
        for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
        using enum autocast::graph_rewrite_level;
        for (const auto candidate : {standard, tensor_cores_only, unsafe_force_all, treat_infer_as_deny}) {
            if (upper == name_of(candidate)) return candidate;
        }
        throw_argument(function, variable, text,
                       "must be TENSOR_CORES_ONLY, UNSAFE_FORCE_ALL, TREAT_INFER_AS_DENY, or not set");
    }

    /// The changes that the variables of one list ask for. Those of the old name come after those of the new.
    autocast::graph_list_changes changes(std::initializer_list<std::string_view> names) {
        std::map<std::string, std::string> added;  // the op, and the variable that adds it
        string_set removed;
        for (const std::string_view name : names) {
            const std::string add = std::string(graph_variable_prefix).append(name).append("_ADD");
            for (std::string& op : split_ops(value(add))) {
                removed.erase(op);
                added.insert_or_assign(std::move(op), add);
            }
            const std::string remove = std::string(graph_variable_prefix).append(name).append("_REMOVE");
            for (std::string& op : split_ops(value(remove))) {
                added.erase(op);
                removed.insert(std::move(op));
            }
        }
        autocast::graph_list_changes result;
        for (const auto& [op, variable] : added) {
            const auto [other, is_new] = owner_.emplace(op, variable);
            if (!is_new) {
                throw_argument(function, variable, op,
                               "must not name an op that " + other->second + " names too");
            }
            result.add.push_back(op);
        }
        result.remove.assign(removed.begin(), removed.end());
        return result;
    }

private:
    std::string value(const std::string& variable) const {
        const char* const text = lookup_(variable.c_str());
        return text != nullptr ? text : "";
    }

    Lookup& lookup_;
    std::map<std::string, std::string> owner_;
};

}}  // namespace mp::detail

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

/// The options that TensorFlow's environment variables ask for:
///
/// - TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_LEVEL: a name of name_of(graph_rewrite_level), in capitals or not;
/// - TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_list_ADD and ..._REMOVE, where `list` is ALLOWLIST, INFERLIST,
///   DENYLIST or CLEARLIST, or one of the former names WHITELIST, GRAYLIST and BLACKLIST: ops with commas
///   between them. Variables of the former names are read after the others.
///
/// As in TensorFlow, only the variables of the allow list count at the level TENSOR_CORES_ONLY. An op that is
/// added to one list while the published lists have it in another must be removed from there.
///
/// \param lookup  called with the name of a variable, returns its value or a null pointer, as std::getenv
///
/// Throws argument_error naming the variable for an unknown level, which TensorFlow ignores, and for an op
/// that is added to two lists.
template <class Lookup>
graph_rewrite_options tensorflow_options_from_environment(Lookup&& lookup) {
    detail::graph_environment<std::remove_reference_t<Lookup>> environment(lookup);
    graph_rewrite_options options;
    options.level = environment.level();
    options.allow = environment.changes({"ALLOWLIST", "WHITELIST"});
    if (options.level == graph_rewrite_level::tensor_cores_only) return options;
    options.infer = environment.changes({"INFERLIST", "GRAYLIST"});
    options.deny = environment.changes({"DENYLIST", "BLACKLIST"});
    options.clear = environment.changes({"CLEARLIST"});
    return options;
}

/// Overload from the environment of the process. As with std::getenv, no other thread may change it
/// meanwhile.
inline graph_rewrite_options tensorflow_options_from_environment() {
    return tensorflow_options_from_environment([](const char* name) { return std::getenv(name); });
}

}}  // namespace mp::autocast
