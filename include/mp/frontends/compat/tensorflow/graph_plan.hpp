// SPDX-License-Identifier: MIT
/// \file
/// What the graph rewrite has decided, for programs and as text.
#pragma once

#include <mp/nn/autocast/category.hpp>
#include <mp/nn/autocast/element_format.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mp::autocast {

/// What decided the colour of a node.
enum class graph_decision : unsigned char {
    preserved,        ///< step 0: it must not change
    not_eligible,     ///< step 0: it is not on the device
    other_type,       ///< step 0: it does not work in float32
    nothing_to_gain,  ///< step 1: no node of the graph has an allow op
    allow_op,         ///< step 1: its op is on the allow list
    forced,           ///< step 1: the level is unsafe_force_all
    deny_op,          ///< step 2: its op is on the deny list
    behind_deny,      ///< step 2: on the way from a deny op to a deny or infer op
    between_allow,    ///< step 3: an infer or clear op between two allow ops
    follows_allow,    ///< step 4: an infer op right behind a node in low precision
    near_allow,       ///< step 5: clear ops connect it to a node in low precision
    no_kernel,  ///< step 6 and before: its op has no kernel for the low precision, or is not defined for it
    cluster_match,  ///< it has the colour of the others in its cluster
    loop_match,     ///< it has the colour of the other end of a loop
    reused_cast,    ///< a cast to float32 that casts to the low precision instead, as all its readers want
    not_reached,    ///< an infer or clear op that none of the steps has reached
    unlisted_op     ///< its op is on no list
};

/// Stands for "no node".
inline constexpr std::size_t no_node = static_cast<std::size_t>(-1);

/// A type of a node besides the one that it works in: "U" of a batch norm, "T[1]" of an IdentityN.
struct planned_type {
    std::string name;
    bool low_precision = false;
};

/// What becomes of a node.
struct planned_node {
    std::string name;
    std::string op;                       ///< after the rewrite: FusedBatchNorm has become FusedBatchNormV2
    std::optional<op_category> category;  ///< that the lists give the op; empty: it is on none of them
    bool low_precision = false;           ///< its colour
    graph_decision decision = graph_decision::not_reached;
    std::size_t because_of = no_node;  ///< the node that the colour comes from, where there is one
    std::size_t and_of = no_node;      ///< for between_allow: the allow op behind it
    std::vector<planned_type>
        others;  ///< types that are read or written by some node and can have another colour
};

/// An input of a node.
struct graph_port {
    std::size_t node;
    std::size_t input;

    friend constexpr bool operator==(const graph_port&, const graph_port&) = default;
};

/// A cast to be inserted behind an output; all readers that want the other type share it.
struct planned_cast {
    std::string name;  ///< after TensorFlow's pattern: "conv1-0-CastToFp32-0-AutoMixedPrecision"
    std::size_t source;
    int output;
    element_format from;
    element_format to;
    std::vector<graph_port> readers;
};

/// The result of plan_graph_rewrite(). Indices are those of the nodes that it was given.
struct graph_rewrite_plan {
    element_format low_precision;
    std::vector<planned_node> nodes;
    std::vector<planned_cast> casts;

    /// How many nodes run in low precision.
    std::size_t converted() const noexcept {
        std::size_t count = 0;
        for (const planned_node& node : nodes) count += node.low_precision ? 1 : 0;
        return count;
    }
};

}  // namespace mp::autocast

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The reason as the end of a sentence; %1 and %2 stand for the nodes because_of and and_of.
constexpr std::string_view graph_reason(autocast::graph_decision decision, bool low) {
    using enum autocast::graph_decision;
    switch (decision) {
        case preserved:
            return "it must be preserved (step 0)";
        case not_eligible:
            return "it is not on the device (step 0)";
        case other_type:
            return "it does not work in float32 (step 0)";
        case nothing_to_gain:
            return "no node that could be changed has an allow op (step 1)";
        case allow_op:
            return "its op is on the allow list (step 1)";
        case forced:
            return "every op is forced (step 1)";
        case deny_op:
            return "its op is on the deny list (step 2)";
        case behind_deny:
            return "it is on the way from the deny op %1 to another deny op or an infer op (step 2)";
        case between_allow:
            return "it is between the allow ops %1 and %2 (step 3)";
        case follows_allow:
            return "it is right behind %1 (step 4)";
        case near_allow:
            return "clear ops connect it to %1 (step 5)";
        case no_kernel:
            return "its op has no kernel for the low precision (step 6)";
        case cluster_match:
            return low ? "%1 of its cluster is in low precision" : "%1 of its cluster must not change";
        case loop_match:
            return low ? "%1 at the other end of the loop is in low precision"
                       : "%1 on the same loop stays in float32";
        case reused_cast:
            return "it is a cast, and %1 and all other readers want the low precision";
        case not_reached:
            return "no step has reached it: an infer op is not between allow ops, or a clear op not near "
                   "them";
        case unlisted_op:
            return "its op is on no list";
    }
    return "of an unknown decision";
}

}}  // namespace mp::detail

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

/// The decision about a node in one sentence:
///
///     relu1 (Relu): float16, because it is between the allow ops conv1 and conv2 (step 3).
///
/// \param node  index of the node, below plan.nodes.size()
inline std::string explain(const graph_rewrite_plan& plan, std::size_t node) {
    const planned_node& it = plan.nodes.at(node);
    std::string text = it.name + " (" + it.op + "): ";
    text.append(it.low_precision ? name_of(plan.low_precision) : std::string_view("unchanged"))
        .append(", because ");
    const std::string_view reason = detail::graph_reason(it.decision, it.low_precision);
    for (std::size_t i = 0; i < reason.size(); ++i) {
        if (reason[i] != '%') {
            text.push_back(reason[i]);
            continue;
        }
        const std::size_t other = reason[++i] == '1' ? it.because_of : it.and_of;
        text.append(other < plan.nodes.size() ? plan.nodes[other].name : std::string("?"));
    }
    return text.append(".");
}

/// The plan as lines of text: a sentence for every node, then every cast with its readers.
inline std::string to_string(const graph_rewrite_plan& plan) {
    std::string text;
    for (std::size_t i = 0; i < plan.nodes.size(); ++i) text.append(explain(plan, i)).append("\n");
    for (const planned_cast& cast : plan.casts) {
        text.append("cast ")
            .append(plan.nodes.at(cast.source).name)
            .append(":")
            .append(std::to_string(cast.output));
        text.append(" from ")
            .append(name_of(cast.from))
            .append(" to ")
            .append(name_of(cast.to))
            .append(" for ");
        for (const graph_port& reader : cast.readers) {
            if (&reader != cast.readers.data()) text.append(", ");
            text.append(plan.nodes.at(reader.node).name);
        }
        text.append("\n");
    }
    return text;
}

}}  // namespace mp::autocast
