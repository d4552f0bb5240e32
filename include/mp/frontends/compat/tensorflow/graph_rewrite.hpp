// SPDX-License-Identifier: MIT
/// \file
/// TensorFlow's automatic mixed precision for graphs: which ops run in low precision, and where casts go.
///
/// graph_node.hpp is the graph, graph_rewrite_options.hpp what can be chosen, graph_plan.hpp the result and
/// its text, <mp/frontends/report/graph_dot.hpp> a picture of it.
#pragma once

#include <mp/error.hpp>
#include <mp/frontends/compat/tensorflow/graph_node.hpp>
#include <mp/frontends/compat/tensorflow/graph_painter.hpp>
#include <mp/frontends/compat/tensorflow/graph_plan.hpp>
#include <mp/frontends/compat/tensorflow/graph_rewrite_options.hpp>
#include <mp/nn/autocast/element_format.hpp>
#include <mp/nn/autocast/op_list.hpp>

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

inline std::string graph_cast_name(const graph_topology& graph, std::size_t source, int output,
                                   element_format to) {
    std::string stem = graph.node(source).name + "-" + error_text(output) + "-CastTo";
    stem.append(to == element_format::f16    ? "Fp16"
                : to == element_format::bf16 ? "Bf16"
                : to == element_format::f32  ? "Fp32"
                                             : name_of(to));
    for (int id = 0;; ++id) {
        std::string name = stem + "-" + error_text(id) + "-AutoMixedPrecision";
        if (!graph.has_node(name)) return name;
    }
}

/// One cast for every output that some node wants in the other type. An output has readers that need a cast
/// in one direction only: its own type is either float32 or the low precision.
inline std::vector<autocast::planned_cast> casts_for(const graph_topology& graph,
                                                     const autocast::graph_rewrite_plan& plan,
                                                     const std::vector<char>& colours) {
    std::vector<autocast::planned_cast> casts;
    for (std::size_t source = 0; source < graph.size(); ++source) {
        std::map<int, std::size_t> made;  // output, index of its cast
        for (const graph_edge& edge : graph.edges()) {
            if (edge.source != source) continue;
            const bool low = colours[edge.from] != 0;
            const bool wants_low = colours[edge.to] != 0;
            if (low == wants_low || edge.type != element_format::f32) continue;
            const auto [place, is_new] = made.emplace(edge.output, casts.size());
            if (is_new) {
                const element_format from = low ? plan.low_precision : element_format::f32;
                const element_format to = low ? element_format::f32 : plan.low_precision;
                casts.push_back(
                    {graph_cast_name(graph, source, edge.output, to), source, edge.output, from, to, {}});
            }
            casts[place->second].readers.push_back({edge.target, edge.input});
        }
    }
    return casts;
}

}}  // namespace mp::detail

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

/// Decides which float32 ops of a graph run in low precision, and where casts go: as few as the colours of
/// the nodes allow. Colours are found in the steps of TensorFlow's graph rewrite:
///
/// 0. Only nodes on the device take part; old batch norms give way to those that know mixed types.
/// 1. Nodes with an allow op are painted. If there is none, nothing is done at all.
/// 2. Deny ops are painted, and what lies behind them on the way to another deny op or an infer op.
/// 3. Infer and clear ops between two allow ops are painted, unless denied, where they have kernels.
/// 4. Infer ops right behind a painted node are painted if nothing before them is denied and their definition has the
///    low precision (before TensorFlow 2.21 for bfloat16 only).
/// 5. The paint of step 1 to 4 spreads through clear ops with kernels in both directions.
/// 6. Allow ops whose definition does not have the low precision lose their paint.
///
/// Then clusters and the ends of loops get one colour, casts that are there are reused, and others inserted.
///
/// \param nodes       in any order; step 4 follows the order given
/// \param list        which ops are allow, infer, deny and clear; rules with a condition are not looked at
/// \param has_kernel  called with a node, its op as after the rewrite; whether there is a kernel for the low precision
/// \param allows      the same; whether the op is defined for the low precision, which every op with a kernel is
///
/// Throws argument_error, naming the nodes, for names that are empty, used twice or unknown and for loops
/// that no input says to be one; for an op that is in two lists after the options' changes; for rules of
/// other categories; and for a low precision that is no floating-point format below float32.
///
/// It differs from TensorFlow in two things. Nodes that must be preserved never change, where TensorFlow
/// may still change a cast or the end of a loop. And overlapping loops get one colour too.
///
///     const graph_node nodes[] = {{"x", "Placeholder"}, {"w", "Placeholder"}, {"y", "MatMul", {"x", "w"}},
///                                 {"loss", "Mean", {"y"}}};
///     const auto plan = plan_graph_rewrite(nodes, lists::tensorflow);  // y in float16, three casts
template <class HasKernel, class Allows>
graph_rewrite_plan plan_graph_rewrite(std::span<const graph_node> nodes, const op_list& list,
                                      const graph_rewrite_options& options, HasKernel&& has_kernel,
                                      Allows&& allows) {
    const auto low = options.low_precision;
    if (!is_floating(low) || low == element_format::f32 || low == element_format::f64) {
        detail::throw_argument(detail::graph_function, "low_precision", name_of(low),
                               "must be a floating-point format below float32");
    }
    if (options.level > graph_rewrite_level::treat_infer_as_deny) {
        detail::throw_argument(detail::graph_function, "level", static_cast<unsigned>(options.level),
                               "must be an enumerator of mp::autocast::graph_rewrite_level");
    }
    const detail::graph_topology graph(nodes);
    std::vector<char> kernels;
    std::vector<char> allowed;
    const auto ask = [&](const graph_node& node) {
        kernels.push_back(has_kernel(node) ? 1 : 0);
        allowed.push_back(kernels.back() != 0 || allows(node) ? 1 : 0);
    };
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (graph.op(i) == nodes[i].op) {
            ask(nodes[i]);
        } else {
            graph_node renamed = nodes[i];
            renamed.op = graph.op(i);
            ask(renamed);
        }
    }
    detail::graph_painter painter(graph, list, options, std::move(kernels), std::move(allowed));
    graph_rewrite_plan plan = painter.run();
    plan.casts = detail::casts_for(graph, plan, painter.colours());
    return plan;
}

/// Overload where every op is defined for the low precision, with or without a kernel.
template <class HasKernel>
graph_rewrite_plan plan_graph_rewrite(std::span<const graph_node> nodes, const op_list& list,
                                      const graph_rewrite_options& options, HasKernel&& has_kernel) {
    return plan_graph_rewrite(nodes, list, options, has_kernel, [](const graph_node&) { return true; });
}

/// Overload for devices where every op has a kernel for the low precision.
inline graph_rewrite_plan plan_graph_rewrite(std::span<const graph_node> nodes, const op_list& list,
                                             const graph_rewrite_options& options = {}) {
    return plan_graph_rewrite(nodes, list, options, [](const graph_node&) { return true; });
}

}}  // namespace mp::autocast
