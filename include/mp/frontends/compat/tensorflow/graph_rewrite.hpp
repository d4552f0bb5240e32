// SPDX-License-Identifier: MIT
/// \file
/// TensorFlow's automatic mixed precision for graphs: which ops run in low precision, and where casts go.
///
/// graph_node.hpp has the graph, the result and its text, graph_rewrite_options.hpp the options,
/// <mp/frontends/report/graph_dot.hpp> a picture.
///
/// Source: tensorflow/core/grappler/optimizers/auto_mixed_precision.cc.
#pragma once

#include <mp/error.hpp>
#include <mp/frontends/compat/tensorflow/graph_node.hpp>
#include <mp/frontends/compat/tensorflow/graph_rewrite_options.hpp>
#include <mp/nn/autocast/category.hpp>
#include <mp/nn/autocast/element_format.hpp>
#include <mp/nn/autocast/op_list.hpp>

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Paints the nodes of a graph, step after step.
class graph_painter {
public:
    using decision = autocast::graph_decision;
    static constexpr std::size_t none = autocast::no_node;

    /// \param has_kernel, allows  of nodes: whether there is a kernel for the low precision, and whether the definition
    ///                            of the op has that type
    graph_painter(const graph_topology& graph, const autocast::op_list& list,
                  const autocast::graph_rewrite_options& options, std::vector<char> has_kernel,
                  std::vector<char> allows)
        : graph_(graph),
          options_(options),
          has_kernel_(std::move(has_kernel)),
          allows_(std::move(allows)),
          allow_(graph.attributes().size()),
          deny_(graph.attributes().size()) {
        const auto categories = categories_for_graph(list, options);
        for (std::size_t i = 0; i < graph.size(); ++i) {
            const auto found = categories.find(graph.op(i));
            const auto category = found == categories.end() ? std::nullopt : std::optional(found->second);
            nodes_.push_back(
                {graph.node(i).name, graph.op(i), category, false, decision::not_reached, none, none, {}});
        }
    }

    autocast::graph_rewrite_plan run() {
        find_clusters();
        if (paint_allow_ops()) {
            if (options_.level != autocast::graph_rewrite_level::unsafe_force_all) spread_deny();
            match_clusters();
            fill_between_allow();
            if (options_.infer_follows_allow.value_or(follows_in_version())) paint_infer_behind_allow();
            spread_allow_through_clear();
            drop_what_is_not_allowed();
            match_clusters();
            match_loops();
            reuse_casts();
            for (std::size_t i = 0; i < graph_.size(); ++i) nodes_[i].low_precision = allow_[i] != 0;
            name_other_attributes();
            explain_others(decision::not_reached);
        } else {
            explain_others(decision::nothing_to_gain);
        }
        return {options_.low_precision, std::move(nodes_), {}};
    }

    /// The attributes that are in low precision, after run().
    const std::vector<char>& colours() const noexcept { return allow_; }

private:
    struct reach {
        std::vector<char> reached;
        std::vector<std::size_t> origin;  ///< the node of the start that a node was reached from
    };

    // Attributes go by their numbers; those of nodes are the first.
    std::size_t node_of(std::size_t i) const { return graph_.attributes()[i].node; }
    bool is(std::size_t i, op_category category) const { return nodes_[node_of(i)].category == category; }

    bool follows_in_version() const {
        return options_.low_precision == element_format::bf16 ||
               options_.version == autocast::graph_rewrite_version::tensorflow_2_21;
    }
    bool is_clear_or_infer(std::size_t i) const {
        return is(i, op_category::clear) || is(i, op_category::infer);
    }

    /// Whether step 0 lets the node take part. TensorFlow looks at the type later, with the same result.
    bool takes_part(std::size_t i) const {
        const autocast::graph_node& node = graph_.node(node_of(i));
        const graph_attribute& attribute = graph_.attributes()[i];
        return node.eligible && !node.preserve && attribute.type == element_format::f32 &&
               attribute.what != graph_attribute::kind::fixed;
    }

    /// Whether the op's definition has the low precision for the attribute. Statistics may be bfloat16 in the third
    /// version of batch norm, not in its gradient.
    bool allowed(std::size_t i) const {
        using enum graph_attribute::kind;
        const graph_attribute& attribute = graph_.attributes()[i];
        if (attribute.what == fixed || attribute.what == source) return false;
        if (attribute.what == statistics && (options_.low_precision != element_format::bf16 ||
                                             graph_.op(attribute.node) != "FusedBatchNormV3")) {
            return false;
        }
        return allows_[attribute.node] != 0;
    }
    /// Whether there also is a kernel. Of statistics in another type than the rest there is none.
    bool supported(std::size_t i) const {
        return graph_.attributes()[i].what != graph_attribute::kind::statistics && allowed(i) &&
               has_kernel_[node_of(i)] != 0;
    }

    bool is_free(std::size_t i) const { return takes_part(i) && allow_[i] == 0 && deny_[i] == 0; }

    /// All nodes that can be reached from those for which `starts`, over nodes that may be entered.
    template <class Starts, class Enters>
    reach find_reachable(bool with_inputs, bool with_outputs, Starts starts, Enters enters) const {
        const std::size_t count = graph_.attributes().size();
        reach result{std::vector<char>(count), std::vector<std::size_t>(count, none)};
        std::vector<std::size_t> queue;
        for (std::size_t i = 0; i < count; ++i) {
            if (!starts(i)) continue;
            result.reached[i] = 1;
            result.origin[i] = i;
            queue.push_back(i);
        }
        for (std::size_t at = 0; at < queue.size(); ++at) {
            const std::size_t from = queue[at];
            const auto visit = [&](std::size_t to) {
                if (result.reached[to] != 0 || !enters(to)) return;
                result.reached[to] = 1;
                result.origin[to] = result.origin[from];
                queue.push_back(to);
            };
            if (with_inputs) {
                for (const std::size_t e : graph_.incoming(from)) visit(graph_.edges()[e].from);
            }
            if (with_outputs) {
                for (const std::size_t e : graph_.outgoing(from)) visit(graph_.edges()[e].to);
            }
        }
        return result;
    }

    /// What decided the colour of an attribute, which is told of those that nodes work in.
    void decide(std::size_t i, decision why, std::size_t because_of, std::size_t and_of = none) {
        if (i >= graph_.size()) return;
        nodes_[i].decision = why;
        nodes_[i].because_of = because_of == none ? none : node_of(because_of);
        nodes_[i].and_of = and_of == none ? none : node_of(and_of);
    }

    void paint_deny(std::size_t i, decision why, std::size_t because_of) {
        if (deny_[i] != 0 && allow_[i] == 0) return;
        deny_[i] = 1;
        allow_[i] = 0;
        decide(i, why, because_of);
    }

    void paint_allow(std::size_t i, decision why, std::size_t because_of = none, std::size_t and_of = none) {
        if (allow_[i] != 0) return;
        allow_[i] = 1;
        decide(i, why, because_of, and_of);
    }

    void take_allow(std::size_t i, decision why, std::size_t because_of = none) {
        if (allow_[i] == 0) return;
        allow_[i] = 0;
        decide(i, why, because_of);
    }

    /// Collects the clusters, and denies those with a member that must not change.
    void find_clusters() {
        std::map<int, std::vector<std::size_t>> clusters;
        for (std::size_t i = 0; i < graph_.size(); ++i) {
            const auto& node = graph_.node(i);
            if (node.cluster && node.element == element_format::f32) clusters[*node.cluster].push_back(i);
        }
        for (auto& [id, members] : clusters) {
            std::size_t first = none;
            std::size_t outsider = none;
            for (std::size_t i = members.size(); i-- > 0;) {
                (takes_part(members[i]) ? first : outsider) = members[i];
            }
            if (first == none) continue;
            if (outsider != none) paint_deny(first, decision::cluster_match, outsider);
            clusters_.push_back(std::move(members));
        }
    }

    /// Step 1. False if there is nothing to do.
    bool paint_allow_ops() {
        bool any = false;
        for (std::size_t i = 0; i < graph_.attributes().size(); ++i) {
            const graph_attribute::kind what = graph_.attributes()[i].what;
            if (!takes_part(i) || what == graph_attribute::kind::source ||
                what == graph_attribute::kind::statistics)
                continue;
            const std::size_t node = node_of(i);
            const bool listed = is(i, op_category::allow);
            const bool forced = options_.level == autocast::graph_rewrite_level::unsafe_force_all &&
                                !graph_.node(node).stateful && graph_.op(node) != "Const" &&
                                graph_.op(node) != "SoftmaxCrossEntropyWithLogits";
            if (!listed && !forced) continue;
            paint_allow(i, listed ? decision::allow_op : decision::forced);
            any = true;
        }
        return any;
    }

    /// Step 2: deny spreads forward from deny ops, as far as there is an infer or deny op ahead with only
    /// clear ops before it.
    void spread_deny() {
        const auto is_end = [&](std::size_t i) {
            return is(i, op_category::deny) || is(i, op_category::infer);
        };
        const auto is_clear = [&](std::size_t i) { return is(i, op_category::clear); };
        const reach ahead = find_reachable(true, false, is_end, is_clear);
        const auto starts = [&](std::size_t i) { return is(i, op_category::deny) && deny_[i] == 0; };
        const auto enters = [&](std::size_t i) { return ahead.reached[i] != 0 && deny_[i] == 0; };
        const reach denied = find_reachable(false, true, starts, enters);
        for (std::size_t i = 0; i < graph_.attributes().size(); ++i) {
            if (denied.reached[i] == 0) continue;
            const bool listed = is(i, op_category::deny);
            paint_deny(i, listed ? decision::deny_op : decision::behind_deny,
                       listed ? none : denied.origin[i]);
        }
    }

    /// Gives all nodes of a cluster one colour: deny if one has it, else allow if one has it.
    void match_clusters() {
        for (const std::vector<std::size_t>& members : clusters_) {
            std::size_t denied = none;
            std::size_t allowed = none;
            for (std::size_t i = members.size(); i-- > 0;) {
                if (deny_[members[i]] != 0) denied = members[i];
                if (allow_[members[i]] != 0) allowed = members[i];
            }
            for (const std::size_t i : members) {
                if (denied != none) {
                    paint_deny(i, decision::cluster_match, denied);
                } else if (allowed != none) {
                    paint_allow(i, decision::cluster_match, allowed);
                }
            }
        }
    }

    /// Step 3.
    void fill_between_allow() {
        const auto starts = [&](std::size_t i) {
            return takes_part(i) && is(i, op_category::allow) && deny_[i] == 0;
        };
        const auto enters = [&](std::size_t i) {
            return is_clear_or_infer(i) && takes_part(i) && supported(i) && deny_[i] == 0;
        };
        const reach behind = find_reachable(false, true, starts, enters);
        const reach between =
            find_reachable(true, false, starts, [&](std::size_t i) { return behind.reached[i] != 0; });
        for (std::size_t i = 0; i < graph_.attributes().size(); ++i) {
            if (between.reached[i] == 0) continue;
            paint_allow(i, decision::between_allow, behind.origin[i], between.origin[i]);
        }
    }

    /// Step 4, in the order of the nodes: an infer op that has just been painted counts for those after it.
    void paint_infer_behind_allow() {
        std::vector<std::vector<std::size_t>> of_node(graph_.size());
        for (std::size_t i = 0; i < graph_.attributes().size(); ++i) of_node[node_of(i)].push_back(i);
        for (const std::vector<std::size_t>& attributes : of_node) {
            for (const std::size_t i : attributes) {
                if (is(i, op_category::infer) && is_free(i) && allowed(i)) follow_allow(i);
            }
        }
    }
    void follow_allow(std::size_t i) {
        std::size_t painted = none;
        for (const std::size_t e : graph_.incoming(i)) {
            const std::size_t before = graph_.edges()[e].from;
            if (deny_[before] != 0) return;
            if (allow_[before] != 0 && painted == none) painted = before;
        }
        if (painted != none) paint_allow(i, decision::follows_allow, painted);
    }

    /// Whether a node only hands on a variable that is no resource, which other readers expect in its own
    /// type.
    bool reads_variable(std::size_t i) const {
        for (;;) {
            const bool identity = graph_.op(i) == "Identity";
            if (!identity && graph_.op(i) != "Enter") return false;
            const auto& inputs = graph_.inputs(i);
            if (inputs.empty() || graph_.edges()[inputs.front()].loop) return false;
            i = graph_.edges()[inputs.front()].source;
            if (identity) return graph_.op(i) == "Variable" || graph_.op(i) == "VariableV2";
        }
    }

    /// Step 5.
    void spread_allow_through_clear() {
        const auto starts = [&](std::size_t i) { return takes_part(i) && allow_[i] != 0; };
        const auto enters = [&](std::size_t i) {
            return is(i, op_category::clear) && is_free(i) && supported(i) && !reads_variable(node_of(i));
        };
        const reach beside = find_reachable(true, true, starts, enters);
        for (std::size_t i = 0; i < graph_.attributes().size(); ++i) {
            if (beside.reached[i] != 0) paint_allow(i, decision::near_allow, beside.origin[i]);
        }
    }

    /// Step 6. The other nodes have been asked before they were painted.
    void drop_what_is_not_allowed() {
        for (std::size_t i = 0; i < graph_.attributes().size(); ++i) {
            if (is(i, op_category::allow) && !allowed(i)) take_allow(i, decision::no_kernel);
        }
    }

    /// Nodes that loop inputs connect get one colour: low precision if all that the loops lead to have it.
    void match_loops() {
        std::vector<std::size_t> group(graph_.size());
        for (std::size_t i = 0; i < group.size(); ++i) group[i] = i;
        std::vector<const graph_edge*> loops;
        for (const graph_edge& edge : graph_.edges()) {
            if (!edge.loop || edge.from != edge.source || edge.to != edge.target ||
                edge.type != element_format::f32)
                continue;
            loops.push_back(&edge);
            const std::size_t old = group[edge.source];
            for (std::size_t& id : group) id = id == old ? group[edge.target] : id;
        }
        std::vector<std::size_t> obstacle(graph_.size(), none);
        for (const graph_edge* const edge : loops) {
            if (graph_.node(edge->source).preserve) obstacle[group[edge->source]] = edge->source;
            if (allow_[edge->target] == 0) obstacle[group[edge->target]] = edge->target;
        }
        for (const graph_edge* const edge : loops) {
            const std::size_t why = obstacle[group[edge->source]];
            if (why == none) {
                paint_allow(edge->source, decision::loop_match, edge->target);
            } else {
                take_allow(edge->source, decision::loop_match, why);
                take_allow(edge->target, decision::loop_match, why);
            }
        }
    }

    /// A cast to float32 all of whose readers want the low precision casts to that right away.
    void reuse_casts() {
        std::vector<std::size_t> reused;
        for (std::size_t i = 0; i < graph_.size(); ++i) {
            const auto& node = graph_.node(i);
            const auto& outgoing = graph_.outgoing(i);
            if (graph_.op(i) != "Cast" || node.preserve || node.element != element_format::f32) continue;
            bool all = !outgoing.empty();
            for (const std::size_t e : outgoing) {
                const graph_edge& edge = graph_.edges()[e];
                all = all && allow_[edge.to] != 0;
            }
            if (all) reused.push_back(i);
        }
        for (const std::size_t i : reused) {
            paint_allow(i, decision::reused_cast, graph_.edges()[graph_.outgoing(i).front()].target);
        }
    }

    /// Tells the attributes besides those that nodes work in.
    void name_other_attributes() {
        using enum graph_attribute::kind;
        for (std::size_t i = graph_.size(); i < graph_.attributes().size(); ++i) {
            const graph_attribute& it = graph_.attributes()[i];
            if (it.what != value && it.what != statistics) continue;
            nodes_[it.node].others.push_back(
                {it.what == value ? "T[" + error_text(it.index) + "]" : std::string("U"), allow_[i] != 0});
        }
    }

    /// Says why nodes are not in low precision that no step has said it of.
    void explain_others(decision rest) {
        for (std::size_t i = 0; i < graph_.size(); ++i) {
            autocast::planned_node& node = nodes_[i];
            if (node.low_precision) continue;
            decision& why = node.decision;
            if (graph_.node(i).preserve) {
                why = decision::preserved;
            } else if (graph_.node(i).element != element_format::f32) {
                why = decision::other_type;
            } else if (!graph_.node(i).eligible) {
                why = decision::not_eligible;
            } else if (rest != decision::not_reached) {
                why = rest;
            } else if (why == decision::not_reached && !node.category) {
                why = decision::unlisted_op;
            } else if (why == decision::not_reached && (has_kernel_[i] == 0 || allows_[i] == 0)) {
                why = decision::no_kernel;
            } else {
                continue;
            }
            node.because_of = none;
        }
    }

    const graph_topology& graph_;
    const autocast::graph_rewrite_options& options_;
    std::vector<char> has_kernel_;
    std::vector<char> allows_;
    std::vector<char> allow_;
    std::vector<char> deny_;
    std::vector<autocast::planned_node> nodes_;
    std::vector<std::vector<std::size_t>> clusters_;
};

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
