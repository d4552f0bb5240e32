// SPDX-License-Identifier: MIT
/// \file
/// A graph of ops, described by its user, which the graph rewrite works on; and the decisions of the rewrite, for programs and
/// as text.
#pragma once

#include <mp/error.hpp>
#include <mp/nn/autocast/category.hpp>
#include <mp/nn/autocast/element_format.hpp>

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace mp::autocast {

/// Where an input of a node comes from. Texts convert to it, in TensorFlow's notation: "conv1" is the first
/// output of the node conv1, "split:1" the second one of split, "^init" waits for init without reading it.
struct graph_input {
    std::string source;  ///< the name of a node
    int output = 0;
    bool control = false;  ///< carries no data
    bool fixed = false;    ///< read in its own type, whatever the op works in, as scales of a batch norm are
    bool loop = false;     ///< closes a loop: the value is that of the iteration before

    template <class Text>
        requires std::convertible_to<const Text&, std::string_view>
    /* implicit */ graph_input(const Text& text) {
        std::string_view name(text);
        control = name.starts_with('^');
        if (control) name.remove_prefix(1);
        if (const std::size_t colon = name.rfind(':'); colon != std::string_view::npos) {
            const char* const end = name.data() + name.size();
            const auto [rest, error] = std::from_chars(name.data() + colon + 1, end, output);
            if (error == std::errc{} && rest == end && output >= 0) {
                name = name.substr(0, colon);
            } else {
                output = 0;  // part of the name
            }
        }
        source = name;
    }
};

/// An output whose type does not follow the op's, as the int64 of an ArgMax.
struct graph_output {
    int index = 0;
    element_format type = element_format::int32;
};

/// An op in a graph. The op works in one type, `element`, which the rewrite may change from float32 to the
/// low precision; inputs and outputs have this type unless they are said to have one of their own. An input
/// from an output of another type counts as one that is read in its own type. Cast reads its input in any
/// type, and `element` is what it casts to; batch norms' statistics have a type of their own, and so has each value of
/// an IdentityN, whose `element` is that of all: these are known by the op's name.
struct graph_node {
    std::string name{};                 ///< another one for each node
    std::string op{};                   ///< as the list of ops has it: "MatMul"
    std::vector<graph_input> inputs{};  ///< in the order of the op's arguments
    element_format element = element_format::f32;
    std::vector<graph_output> fixed_outputs{};  ///< outputs with types of their own
    bool eligible = true;                       ///< false: not on the device that the low precision is for
    bool preserve = false;                      ///< true: somebody outside looks at it, it must not change
    bool stateful = false;                      ///< a variable or queue; unsafe_force_all leaves it alone

    /// Nodes of one cluster get one colour. TensorFlow makes a cluster of the ops that share a TensorList;
    /// edges from those that write it to those that read it belong to the graph.
    std::optional<int> cluster{};
};

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

inline constexpr std::string_view graph_function = "mp::autocast::plan_graph_rewrite";

/// Data that flows from an output of one node to an input of another.
struct graph_edge {
    std::size_t source = 0;
    int output = 0;
    std::size_t target = 0;
    std::size_t input = 0;
    element_format type = element_format::f32;
    std::size_t from = 0;  ///< attribute of the source that its type is of
    std::size_t to = 0;    ///< of the target
    bool loop = false;
};

/// A type attribute of a node, which has a colour of its own: what a node works in, `element`, is the attribute of the
/// node's number; batch norms' statistics, Cast's source, each value of an IdentityN, and each type that does not
/// follow the op have more. Colours spread from attribute to attribute.
struct graph_attribute {
    enum class kind : unsigned char {
        element,     ///< what the op works in
        value,       ///< of an IdentityN, behind the first
        statistics,  ///< a batch norm's U
        source,      ///< what a Cast reads
        fixed        ///< written into the op, or not to be changed
    };
    std::size_t node = 0;
    kind what = kind::element;
    int index = 0;  ///< of a value; for others the type
    element_format type = element_format::f32;

    bool is_main() const noexcept { return what == kind::element; }
};

/// Which inputs of a batch norm are of the type of its statistics, as a half-open range; all outputs but the first are. The
/// scale of a gradient, before them, is float32 by definition.
struct batch_norm_ports {
    std::string_view op;
    std::size_t first_input;
    std::size_t last_input;
};

inline constexpr batch_norm_ports batch_norms[] = {
    {"FusedBatchNormV2", 1, 5},     {"FusedBatchNormV3", 1, 5},     {"_FusedBatchNormEx", 1, 5},
    {"FusedBatchNormGradV2", 3, 5}, {"FusedBatchNormGradV3", 3, 6},
};

inline const batch_norm_ports* find_batch_norm(std::string_view op) noexcept {
    for (const batch_norm_ports& ports : batch_norms) {
        if (ports.op == op) return &ports;
    }
    return nullptr;
}

/// The nodes with their names resolved. Refers to the nodes.
class graph_topology {
public:
    /// Throws argument_error for names that are empty, used twice or unknown, and for cycles.
    explicit graph_topology(std::span<const autocast::graph_node> nodes)
        : nodes_(nodes), inputs_(nodes.size()), incoming_(nodes.size()), outgoing_(nodes.size()) {
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            const std::string& name = nodes[i].name;
            if (name.empty()) throw_argument(graph_function, "the name of a node", name, "must not be empty");
            if (!names_.emplace(name, i).second) {
                throw_argument(graph_function, "the name of a node", name, "must be of one node only");
            }
        }
        std::vector<std::vector<std::size_t>> waits_for(nodes.size());
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            ops_.push_back(op_to_run(nodes[i]));
            attributes_.push_back({i, graph_attribute::kind::element, 0, nodes[i].element});
        }
        for (std::size_t target = 0; target < nodes.size(); ++target) {
            for (std::size_t i = 0; i < nodes[target].inputs.size(); ++i)
                add_edge(target, i, waits_for[target]);
        }
        check_cycles(waits_for);
    }

    std::size_t size() const noexcept { return nodes_.size(); }
    const autocast::graph_node& node(std::size_t i) const { return nodes_[i]; }
    bool has_node(std::string_view name) const { return names_.contains(name); }

    /// The op that the node runs after the rewrite: batch norms that know one type only give way to their
    /// second version.
    const std::string& op(std::size_t i) const { return ops_[i]; }

    /// The attributes; the first of them are those that the nodes work in.
    const std::vector<graph_attribute>& attributes() const noexcept { return attributes_; }
    const std::vector<graph_edge>& edges() const noexcept { return edges_; }

    /// Indices of the edges into a node, in the order of its inputs; and of those into and out of an attribute.
    const std::vector<std::size_t>& inputs(std::size_t node) const { return inputs_[node]; }
    const std::vector<std::size_t>& incoming(std::size_t attribute) const { return incoming_[attribute]; }
    const std::vector<std::size_t>& outgoing(std::size_t attribute) const { return outgoing_[attribute]; }

private:
    static std::string op_to_run(const autocast::graph_node& node) {
        const bool old = node.op == "FusedBatchNorm" || node.op == "FusedBatchNormGrad";
        return old && node.eligible && !node.preserve ? node.op + "V2" : node.op;
    }

    void add_edge(std::size_t target, std::size_t position, std::vector<std::size_t>& waits_for) {
        const autocast::graph_input& input = nodes_[target].inputs[position];
        const auto found = names_.find(input.source);
        if (found == names_.end()) {
            throw_argument(graph_function, "an input of the node " + error_text(nodes_[target].name),
                           input.source, "must be the name of a node");
        }
        const autocast::graph_node& source = nodes_[found->second];
        graph_edge edge{found->second,  input.output,  target, position,
                        source.element, found->second, target, false};
        edge.loop = input.loop || (source.op == "NextIteration" && nodes_[target].op == "Merge");
        if (!edge.loop) waits_for.push_back(edge.source);
        if (input.control) return;
        edge.from = attribute_of_output(edge.source, input.output);
        edge.type = attributes_[edge.from].type;
        edge.to = attribute_of_input(target, position, edge.type);
        inputs_[target].push_back(edges_.size());
        incoming_[edge.to].push_back(edges_.size());
        outgoing_[edge.from].push_back(edges_.size());
        edges_.push_back(edge);
    }

    std::size_t attribute_of_output(std::size_t node, int output) {
        for (const autocast::graph_output& own : nodes_[node].fixed_outputs) {
            if (own.index == output) return attribute(node, graph_attribute::kind::fixed, own.type);
        }
        if (output > 0 && find_batch_norm(ops_[node]) != nullptr) {
            return attribute(node, graph_attribute::kind::statistics, element_format::f32);
        }
        return value_attribute(node, static_cast<std::size_t>(output));
    }

    /// Of an input that reads this type.
    std::size_t attribute_of_input(std::size_t node, std::size_t position, element_format type) {
        using enum graph_attribute::kind;
        const batch_norm_ports* const norm = find_batch_norm(ops_[node]);
        if (ops_[node] == "Cast") return attribute(node, source, type);
        if (nodes_[node].inputs[position].fixed) return attribute(node, fixed, type);
        if (norm != nullptr && norm->first_input == 3 && position == 2) return attribute(node, fixed, type);
        if (norm != nullptr && position >= norm->first_input && position < norm->last_input) {
            return attribute(node, type == element_format::f32 ? statistics : fixed, type);
        }
        return type == nodes_[node].element ? value_attribute(node, position) : attribute(node, fixed, type);
    }

    std::size_t value_attribute(std::size_t node, std::size_t index) {
        if (ops_[node] != "IdentityN" || index == 0) return node;
        return attribute(node, graph_attribute::kind::value, nodes_[node].element, static_cast<int>(index));
    }

    /// The attribute, which is made when it is asked for first.
    std::size_t attribute(std::size_t node, graph_attribute::kind what, element_format type, int index = 0) {
        if (what != graph_attribute::kind::value) index = static_cast<int>(type);
        for (std::size_t i = size(); i < attributes_.size(); ++i) {
            const graph_attribute& it = attributes_[i];
            if (it.node == node && it.what == what && it.index == index) return i;
        }
        attributes_.push_back({node, what, index, type});
        incoming_.emplace_back();
        outgoing_.emplace_back();
        return attributes_.size() - 1;
    }

    /// Removes nodes that wait for no other, until none is left, or only nodes on cycles and behind them.
    void check_cycles(const std::vector<std::vector<std::size_t>>& waits_for) const {
        std::vector<std::size_t> waiting(size());
        std::vector<std::vector<std::size_t>> followers(size());
        std::vector<std::size_t> ready;
        for (std::size_t i = 0; i < size(); ++i) {
            waiting[i] = waits_for[i].size();
            if (waiting[i] == 0) ready.push_back(i);
            for (const std::size_t source : waits_for[i]) followers[source].push_back(i);
        }
        std::size_t done = 0;
        for (; done < ready.size(); ++done) {
            for (const std::size_t follower : followers[ready[done]]) {
                if (--waiting[follower] == 0) ready.push_back(follower);
            }
        }
        if (done == size()) return;

        std::size_t at = 0;
        while (waiting[at] == 0) ++at;
        std::vector<std::size_t> path;
        while (std::find(path.begin(), path.end(), at) == path.end()) {
            path.push_back(at);
            const auto& sources = waits_for[at];
            at = *std::find_if(sources.begin(), sources.end(),
                               [&](std::size_t source) { return waiting[source] != 0; });
        }
        // Every node reads the next one of the path, so the data flows from its end to its beginning.
        std::string cycle = error_text(nodes_[at].name);
        for (std::size_t i = path.size(); i-- > 0;) {
            cycle.append(" -> ").append(error_text(nodes_[path[i]].name));
            if (path[i] == at) break;
        }
        throw_joined<argument_error>({graph_function, ": nodes is a graph with the cycle ", cycle,
                                      "; it must have loops only through inputs that say so"});
    }

    std::span<const autocast::graph_node> nodes_;
    std::vector<std::string> ops_;
    std::map<std::string_view, std::size_t> names_;
    std::vector<graph_attribute> attributes_;
    std::vector<graph_edge> edges_;
    std::vector<std::vector<std::size_t>> inputs_;
    std::vector<std::vector<std::size_t>> incoming_;
    std::vector<std::vector<std::size_t>> outgoing_;
};

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

/// An input that the op reads in its own type, whatever it works in.
inline graph_input fixed_input(graph_input input) {
    input.fixed = true;
    return input;
}

/// An input whose value is that of the iteration before.
inline graph_input loop_input(graph_input input) {
    input.loop = true;
    return input;
}

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
