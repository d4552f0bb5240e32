// SPDX-License-Identifier: MIT
/// \file
/// A picture of a rewritten graph, in the language of Graphviz.
#pragma once

#include <mp/error.hpp>
#include <mp/frontends/compat/tensorflow/graph_node.hpp>
#include <mp/nn/autocast/element_format.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The text in double quotes, as Graphviz reads it; line breaks become its \n.
inline std::string dot_quoted(std::string_view text) {
    std::string quoted(1, '"');
    for (const char c : text) {
        if (c == '\n') {
            quoted.append("\\n");
            continue;
        }
        if (c == '"' || c == '\\') quoted.push_back('\\');
        quoted.push_back(c);
    }
    return quoted.append(1, '"');
}

inline void dot_arrow(std::string& text, std::string_view from, std::string_view to, std::string_view style) {
    text.append("    ")
        .append(dot_quoted(from))
        .append(" -> ")
        .append(dot_quoted(to))
        .append(style)
        .append(";\n");
}

}}  // namespace mp::detail

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

/// The graph with its casts for Graphviz's `dot`: green nodes run in low precision, red ones are deny ops or
/// lie behind them, white ones stay as they are for another reason, which is their tooltip in an SVG file.
/// Casts are diamonds, loops dashed and control inputs dotted.
///
/// \param nodes  those that the plan was made from; argument_error if their number is another
inline std::string to_dot(std::span<const graph_node> nodes, const graph_rewrite_plan& plan) {
    if (nodes.size() != plan.nodes.size()) {
        detail::throw_argument("mp::autocast::to_dot", "the number of nodes", nodes.size(),
                               "must be that of the plan, " + std::to_string(plan.nodes.size()));
    }
    const detail::graph_topology graph(nodes);
    std::string text = "digraph mixed_precision {\n    node [shape=box, style=filled, fillcolor=white];\n";
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const planned_node& node = plan.nodes[i];
        const bool denied =
            node.decision == graph_decision::deny_op || node.decision == graph_decision::behind_deny;
        text.append("    ").append(detail::dot_quoted(node.name));
        text.append(" [label=").append(detail::dot_quoted(node.name + "\n" + node.op));
        text.append(", tooltip=").append(detail::dot_quoted(explain(plan, i)));
        if (node.low_precision) text.append(", fillcolor=palegreen");
        if (denied) text.append(", fillcolor=lightcoral");
        text.append("];\n");
    }
    std::vector<std::vector<const planned_cast*>> cast_of(nodes.size());  // by input of a node
    for (std::size_t i = 0; i < nodes.size(); ++i) cast_of[i].resize(nodes[i].inputs.size());
    for (const planned_cast& cast : plan.casts) {
        text.append("    ").append(detail::dot_quoted(cast.name));
        text.append(" [shape=diamond, label=").append(detail::dot_quoted(name_of(cast.to))).append("];\n");
        detail::dot_arrow(text, plan.nodes.at(cast.source).name, cast.name, "");
        for (const graph_port& reader : cast.readers) cast_of.at(reader.node).at(reader.input) = &cast;
    }
    for (const detail::graph_edge& edge : graph.edges()) {
        const planned_cast* const cast = cast_of[edge.target][edge.input];
        detail::dot_arrow(text, cast != nullptr ? cast->name : nodes[edge.source].name,
                          nodes[edge.target].name, edge.loop ? " [style=dashed]" : "");
    }
    for (const graph_node& node : nodes) {
        for (const graph_input& input : node.inputs) {
            if (input.control) detail::dot_arrow(text, input.source, node.name, " [style=dotted]");
        }
    }
    return text.append("}\n");
}

}}  // namespace mp::autocast
