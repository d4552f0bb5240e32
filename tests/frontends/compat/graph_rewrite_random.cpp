// SPDX-License-Identifier: MIT
// Random small graphs against the published rules written down a second time: sets of nodes, and paths as
// powers of a relation, instead of searches.
#include <doctest/doctest.h>
#include <mp/frontends/compat/tensorflow/graph_rewrite.hpp>

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace {

namespace ac = mp::autocast;
using mp::element_format;
using mp::op_category;
using level = ac::graph_rewrite_level;

constexpr std::size_t most_nodes = 8;
constexpr std::size_t most = 64;  // type attributes of them
using node_set = std::bitset<most>;
using relation = std::array<node_set, most>;  // relation[a][b]: from a to b

constexpr std::array<ac::op_rule, 12> rules{{{"Add", op_category::infer},
                                             {"Enter", op_category::clear},
                                             {"Exp", op_category::deny},
                                             {"FusedBatchNormGradV3", op_category::infer},
                                             {"FusedBatchNormV3", op_category::infer},
                                             {"Identity", op_category::clear},
                                             {"IdentityN", op_category::clear},
                                             {"Log", op_category::infer},
                                             {"MatMul", op_category::allow},
                                             {"Mean", op_category::deny},
                                             {"Relu", op_category::clear},
                                             {"Reshape", op_category::clear}}};
constexpr ac::op_list list{"small", rules, op_category::clear};

struct random_graph {
    std::vector<ac::graph_node> nodes;
    node_set kernels;
    node_set defined;  // for the low precision; what has a kernel is
    ac::graph_rewrite_options options;
};

/// The graph in a form that a failing test can print.
std::string described(const random_graph& graph) {
    std::string text = std::string(ac::name_of(graph.options.level)) + " for " +
                       std::string(mp::name_of(graph.options.low_precision)) + "\n";
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        const auto& node = graph.nodes[i];
        text += node.name + " = " + node.op + "(";
        for (const auto& input : node.inputs) {
            text += (input.control ? " ^" : " ") + input.source + ":" + std::to_string(input.output) +
                    (input.fixed ? " fixed" : "") + (input.loop ? " loop" : "");
        }
        text += ") " + std::string(mp::name_of(node.element));
        for (const auto& own : node.fixed_outputs) text += ", result " + std::string(mp::name_of(own.type));
        if (!node.eligible) text += ", off the device";
        if (node.preserve) text += ", preserved";
        if (node.stateful) text += ", stateful";
        if (!graph.kernels[i]) text += ", no kernel";
        if (!graph.defined[i]) text += ", not defined";
        if (node.cluster) text += ", cluster " + std::to_string(*node.cluster);
        text += "\n";
    }
    return text;
}

random_graph draw(std::mt19937_64& random) {
    const auto one_in = [&](unsigned n) { return random() % n == 0; };
    constexpr std::array<const char*, 20> ops{"MatMul",
                                              "MatMul",
                                              "MatMul",
                                              "Add",
                                              "Log",
                                              "Add",
                                              "Exp",
                                              "Mean",
                                              "Relu",
                                              "Relu",
                                              "Reshape",
                                              "Identity",
                                              "Enter",
                                              "Cast",
                                              "Variable",
                                              "Unknown",
                                              "IdentityN",
                                              "IdentityN",
                                              "FusedBatchNormV3",
                                              "FusedBatchNormGradV3"};
    random_graph graph;
    const std::size_t count = 1 + random() % most_nodes;
    std::vector<std::size_t> order(count);  // inputs come from nodes earlier in it
    for (std::size_t i = 0; i < count; ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    graph.nodes.resize(count);
    for (std::size_t at = 0; at < count; ++at) {
        ac::graph_node& node = graph.nodes[order[at]];
        node.name = "n" + std::to_string(order[at]);
        node.op = ops[random() % ops.size()];
        node.eligible = !one_in(10);
        node.preserve = one_in(16);
        node.stateful = one_in(8);
        if (one_in(10)) node.element = one_in(2) ? element_format::int32 : element_format::f16;
        if (one_in(5)) node.cluster = static_cast<int>(random() % 2);
        if (one_in(10))
            node.fixed_outputs.push_back({0, one_in(2) ? element_format::f32 : element_format::int32});
        graph.kernels[order[at]] = !one_in(10);
        graph.defined[order[at]] = graph.kernels[order[at]] || one_in(2);
        const std::size_t inputs = random() % (node.op.starts_with("Fused") ? 7 : 4);
        for (std::size_t i = 0; i < inputs; ++i) {
            const bool loop = one_in(10);
            if (!loop && at == 0) continue;
            const std::size_t source = loop ? random() % count : order[random() % at];
            ac::graph_input input("n" + std::to_string(source));
            input.output = one_in(6) ? 1 : 0;
            input.control = one_in(12);
            input.fixed = one_in(12);
            input.loop = loop;
            node.inputs.push_back(input);
        }
    }
    if (one_in(2)) graph.options.low_precision = element_format::bf16;
    if (one_in(3)) graph.options.version = ac::graph_rewrite_version::tensorflow_2_18;
    constexpr std::array<level, 6> levels{level::standard,         level::standard,
                                          level::standard,         level::tensor_cores_only,
                                          level::unsafe_force_all, level::treat_infer_as_deny};
    graph.options.level = levels[random() % levels.size()];
    return graph;
}

/// One or more steps of the relation, each landing in `entered`.
relation paths(const relation& steps, const node_set& entered) {
    relation result;
    for (std::size_t a = 0; a < most; ++a) result[a] = steps[a] & entered;
    for (bool grows = true; grows;) {
        grows = false;
        for (std::size_t a = 0; a < most; ++a) {
            const node_set before = result[a];
            for (std::size_t b = 0; b < most && before.any(); ++b) {
                if (before[b]) result[a] |= steps[b] & entered;
            }
            grows |= result[a] != before;
        }
    }
    return result;
}

/// What `paths` from any node of a set lead to.
node_set image(const relation& of, const node_set& set) {
    node_set result;
    for (std::size_t a = 0; a < most; ++a) {
        if (set[a]) result |= of[a];
    }
    return result;
}

relation reversed(const relation& of) {
    relation result;
    for (std::size_t a = 0; a < most; ++a) {
        for (std::size_t b = 0; b < most; ++b) result[b][a] = of[a][b];
    }
    return result;
}

/// An edge with data: types at its two ends, as the nodes would have them without and with low precision.
struct data_edge {
    std::size_t source;
    int output;
    std::size_t target;
    std::size_t input;
    element_format type;
    std::size_t from;  // attribute of the source
    std::size_t to;
    bool loop;
};

/// A type attribute by the place in TensorFlow's definition of the op: "element", "value 2", "U", "SrcT int32", "own int32".
struct attribute {
    std::size_t node;
    std::string name;
    element_format type;
};

using cast_key = std::tuple<std::size_t, int, element_format, std::set<std::pair<std::size_t, std::size_t>>>;

struct expectation {
    node_set low;
    std::set<cast_key> casts;
};

class naive {
public:
    explicit naive(const random_graph& graph) : graph_(graph) {
        for (std::size_t i = 0; i < graph.nodes.size(); ++i) find(i, "element", graph.nodes[i].element);
        for (std::size_t target = 0; target < graph.nodes.size(); ++target) {
            const auto& node = graph.nodes[target];
            const bool forward_norm = node.op == "FusedBatchNormV3";
            const bool backward_norm = node.op == "FusedBatchNormGradV3";
            for (std::size_t i = 0; i < node.inputs.size(); ++i) {
                const auto& input = node.inputs[i];
                if (input.control) continue;
                const std::size_t source = static_cast<std::size_t>(input.source[1] - '0');
                const std::size_t from = of_output(source, input.output);
                const element_format type = attributes_[from].type;
                std::string name = "element";
                if (node.op == "IdentityN" && i > 0) name = "value " + std::to_string(i);
                const bool statistic =
                    (forward_norm && i >= 1 && i <= 4) || (backward_norm && i >= 3 && i <= 5);
                const bool own = input.fixed || (backward_norm && i == 2) ||
                                 type != (statistic ? element_format::f32 : node.element);
                if (statistic) name = "U";
                if (own) name = "own " + std::string(mp::name_of(type));
                if (node.op == "Cast") name = "SrcT " + std::string(mp::name_of(type));
                edges_.push_back(
                    {source, input.output, target, i, type, from, find(target, name, type), input.loop});
            }
        }
        for (const data_edge& edge : edges_) forward_[edge.from][edge.to] = true;
        backward_ = reversed(forward_);
    }

    expectation judge() {
        const bool force = graph_.options.level == level::unsafe_force_all;
        node_set allow_ops = by_category(op_category::allow);
        node_set infer_ops = by_category(op_category::infer);
        node_set deny_ops = by_category(op_category::deny);
        node_set clear_ops = by_category(op_category::clear);
        if (graph_.options.level == level::tensor_cores_only) infer_ops = deny_ops = clear_ops = {};
        if (graph_.options.level == level::treat_infer_as_deny) {
            deny_ops |= infer_ops;
            infer_ops = {};
        }
        const node_set mains = named("element");
        const node_set statistics = named("U");
        const node_set preserved = where([](const auto& n) { return n.preserve; });
        node_set floats;
        for (std::size_t i = 0; i < attributes_.size(); ++i)
            floats[i] = attributes_[i].type == element_format::f32;
        const node_set part = floats & where([](const auto& n) { return n.eligible; }) & ~preserved &
                              (mains | statistics | named("value"));
        node_set defined = by_node(graph_.defined) & ~statistics;
        if (graph_.options.low_precision == element_format::bf16) {
            defined |= by_node(graph_.defined) & statistics &
                       where([](const auto& n) { return n.op == "FusedBatchNormV3"; });
        }
        const node_set kernels = by_node(graph_.kernels) & defined & ~statistics;

        node_set deny;
        std::vector<node_set> clusters;
        for (int id = 0; id < 2; ++id) {
            const node_set members = floats & mains & where([&](const auto& n) { return n.cluster == id; });
            if ((members & part).none()) continue;
            clusters.push_back(members);
            if ((members & ~part).any()) deny[first(members & part)] = true;
        }

        node_set allow = allow_ops & part;
        if (force) {
            allow |= part & ~statistics & where([](const auto& n) { return !n.stateful && n.op != "Const"; });
        }
        if (allow.none()) return {};

        if (!force) {
            // x is ahead of trouble if it is clear and a path over clear nodes ends in a deny or infer op.
            const node_set ends = deny_ops | infer_ops;
            const node_set ahead = ends | (image(paths(backward_, clear_ops), ends) & clear_ops);
            const node_set starts = deny_ops & ~deny;
            deny |= starts | image(paths(forward_, ahead & ~deny), starts);
        }
        match(clusters, allow, deny);

        const node_set roots = allow_ops & part & ~deny;
        const node_set fit = (clear_ops | infer_ops) & part & kernels & ~deny;
        const node_set behind = image(paths(forward_, fit), roots) & fit;
        const node_set before = image(paths(backward_, fit), roots) & fit;
        allow |= behind & before;

        if (graph_.options.low_precision == element_format::bf16 ||
            graph_.options.version == ac::graph_rewrite_version::tensorflow_2_21) {
            for (std::size_t node = 0; node < graph_.nodes.size(); ++node) {
                for (std::size_t i = 0; i < attributes_.size(); ++i) {
                    if (attributes_[i].node != node || !(infer_ops & part & defined & ~deny)[i]) continue;
                    if ((backward_[i] & allow).any() && (backward_[i] & deny).none()) allow[i] = true;
                }
            }
        }

        relation both = forward_;
        for (std::size_t a = 0; a < most; ++a) both[a] |= backward_[a];
        const node_set spread = clear_ops & part & kernels & ~deny & ~allow & ~by_node(variable_readers());
        allow |= image(paths(both, spread), allow & part);

        allow &= ~(allow_ops & ~defined);
        match(clusters, allow, deny);
        match_loops(allow, preserved);

        node_set reused;
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
            if (graph_.nodes[i].op != "Cast" || !floats[i] || preserved[i]) continue;
            const auto readers =
                std::count_if(edges_.begin(), edges_.end(), [&](auto& e) { return e.from == i; });
            const auto willing = std::count_if(edges_.begin(), edges_.end(),
                                               [&](auto& e) { return e.from == i && allow[e.to]; });
            reused[i] = readers > 0 && readers == willing;
        }
        allow |= reused;
        return {allow, casts(allow)};
    }

    const std::vector<data_edge>& edges() const { return edges_; }

    const std::vector<attribute>& attributes() const { return attributes_; }

private:
    std::size_t find(std::size_t node, const std::string& name, element_format type) {
        for (std::size_t i = 0; i < attributes_.size(); ++i) {
            if (attributes_[i].node == node && attributes_[i].name == name) return i;
        }
        attributes_.push_back({node, name, type});
        return attributes_.size() - 1;
    }
    std::size_t of_output(std::size_t source, int output) {
        const auto& node = graph_.nodes[source];
        for (const auto& fixed : node.fixed_outputs) {
            if (fixed.index == output)
                return find(source, "own " + std::string(mp::name_of(fixed.type)), fixed.type);
        }
        if (output > 0 && node.op.starts_with("Fused")) return find(source, "U", element_format::f32);
        if (output > 0 && node.op == "IdentityN") {
            return find(source, "value " + std::to_string(output), node.element);
        }
        return source;
    }

    /// Attributes of the nodes that have a property.
    template <class Property>
    node_set where(Property has) const {
        node_set result;
        for (std::size_t i = 0; i < attributes_.size(); ++i)
            result[i] = has(graph_.nodes[attributes_[i].node]);
        return result;
    }
    node_set named(std::string_view name) const {
        node_set result;
        for (std::size_t i = 0; i < attributes_.size(); ++i)
            result[i] = attributes_[i].name.starts_with(name);
        return result;
    }
    node_set by_node(const node_set& nodes) const {
        node_set result;
        for (std::size_t i = 0; i < attributes_.size(); ++i) result[i] = nodes[attributes_[i].node];
        return result;
    }

    node_set by_category(op_category category) const {
        return where([&](const auto& n) {
            return std::any_of(rules.begin(), rules.end(),
                               [&](const auto& r) { return r.op == n.op && r.category == category; });
        });
    }

    static std::size_t first(const node_set& set) {
        std::size_t i = 0;
        while (!set[i]) ++i;
        return i;
    }

    static void match(const std::vector<node_set>& clusters, node_set& allow, node_set& deny) {
        for (const node_set& members : clusters) {
            if ((members & deny).any()) {
                deny |= members;
                allow &= ~members;
            } else if ((members & allow).any()) {
                allow |= members;
            }
        }
    }

    /// The nodes whose first data input leads through Enter and one Identity to a variable.
    node_set variable_readers() const {
        std::array<std::optional<std::size_t>, most_nodes> argument;
        for (const data_edge& edge : edges_) {
            if (!argument[edge.target] && !edge.loop) argument[edge.target] = edge.source;
            if (edge.loop && !argument[edge.target])
                argument[edge.target] = most_nodes;  // not looked through
        }
        node_set identities;
        node_set enters;
        node_set variables;
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
            identities[i] = graph_.nodes[i].op == "Identity";
            enters[i] = graph_.nodes[i].op == "Enter";
            variables[i] = graph_.nodes[i].op == "Variable";
        }
        node_set readers;
        for (std::size_t round = 0; round < most_nodes; ++round) {
            for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
                if (!argument[i] || *argument[i] == most_nodes) continue;
                if (identities[i] && variables[*argument[i]]) readers[i] = true;
                if (enters[i] && readers[*argument[i]]) readers[i] = true;
            }
        }
        return readers;
    }

    void match_loops(node_set& allow, const node_set& preserved) const {
        relation linked;
        node_set sources;
        node_set targets;
        for (const data_edge& e : edges_) {
            if (!e.loop || e.from != e.source || e.to != e.target || e.type != element_format::f32) continue;
            linked[e.source][e.target] = linked[e.target][e.source] = true;
            sources[e.source] = targets[e.target] = true;
        }
        const relation together = paths(linked, node_set{}.set());
        const node_set before = allow;
        for (std::size_t i = 0; i < most; ++i) {
            if (!(sources | targets)[i]) continue;
            const node_set group = together[i];
            const bool low = (group & targets & ~before).none() && (group & sources & preserved).none();
            allow[i] = low;
        }
    }

    std::set<cast_key> casts(const node_set& low) const {
        std::set<cast_key> result;
        for (std::size_t source = 0; source < graph_.nodes.size(); ++source) {
            for (int output = 0; output < 2; ++output) {
                for (const bool to_low : {false, true}) {
                    std::set<std::pair<std::size_t, std::size_t>> readers;
                    for (const data_edge& e : edges_) {
                        if (e.source != source || e.output != output || e.type != element_format::f32)
                            continue;
                        const bool is_low = low[e.from];
                        const bool wants_low = low[e.to];
                        if (is_low != wants_low && wants_low == to_low) readers.insert({e.target, e.input});
                    }
                    if (readers.empty()) continue;
                    const element_format to = to_low ? graph_.options.low_precision : element_format::f32;
                    result.insert({source, output, to, readers});
                }
            }
        }
        return result;
    }

    const random_graph& graph_;
    std::vector<attribute> attributes_;  // the first are what nodes work in
    std::vector<data_edge> edges_;
    relation forward_;
    relation backward_;
};

}  // namespace

TEST_CASE("random graphs are coloured and cast as the published rules say") {
    std::mt19937_64 random(20260);
    std::size_t painted = 0;
    std::size_t cast_count = 0;
    std::size_t others = 0;
    std::set<ac::graph_decision> seen;
    for (int trial = 0; trial < 20000; ++trial) {
        const random_graph graph = draw(random);
        const auto plan = ac::plan_graph_rewrite(
            graph.nodes, list, graph.options,
            [&](const ac::graph_node& node) {
                return graph.kernels[static_cast<std::size_t>(node.name[1] - '0')];
            },
            [&](const ac::graph_node& node) {
                return graph.defined[static_cast<std::size_t>(node.name[1] - '0')];
            });
        naive judge(graph);
        const expectation expected = judge.judge();
        node_set low;
        for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
            low[i] = plan.nodes[i].low_precision;
            for (const ac::planned_type& other : plan.nodes[i].others) {
                const std::string name =
                    other.name == "U" ? other.name : "value " + other.name.substr(2, other.name.size() - 3);
                for (std::size_t at = 0; at < judge.attributes().size(); ++at) {
                    if (judge.attributes()[at].node == i && judge.attributes()[at].name == name) {
                        low[at] = other.low_precision;
                        others += other.low_precision ? 1 : 0;
                    }
                }
            }
            seen.insert(plan.nodes[i].decision);
            // A reason that speaks of another node has one.
            CHECK(ac::explain(plan, i).find('?') == std::string::npos);
        }
        std::set<cast_key> casts;
        for (const auto& cast : plan.casts) {
            std::set<std::pair<std::size_t, std::size_t>> readers;
            for (const auto& reader : cast.readers) readers.insert({reader.node, reader.input});
            CHECK(readers.size() == cast.readers.size());
            CHECK(casts.insert({cast.source, cast.output, cast.to, readers}).second);
        }
        CAPTURE(trial);
        CAPTURE(described(graph));
        CAPTURE(ac::to_string(plan));
        CAPTURE(expected.low.to_string());
        REQUIRE((low == expected.low));
        REQUIRE((casts == expected.casts));
        painted += low.count();
        cast_count += casts.size();
    }
    CHECK(painted > 20000);
    CHECK(cast_count > 10000);
    CHECK(others > 1000);
    CHECK(seen.size() ==
          static_cast<std::size_t>(ac::graph_decision::unlisted_op) + 1);  // every reason occurs
}

TEST_CASE(
    "after the casts of a plan every reader gets the type it works in, and preserved nodes keep theirs") {
    std::mt19937_64 random(7);
    for (int trial = 0; trial < 5000; ++trial) {
        const random_graph graph = draw(random);
        const auto plan = ac::plan_graph_rewrite(graph.nodes, list, graph.options);
        const naive description(graph);
        for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
            if (graph.nodes[i].preserve) CHECK_FALSE(plan.nodes[i].low_precision);
            if (graph.nodes[i].element != element_format::f32) CHECK_FALSE(plan.nodes[i].low_precision);
        }
        std::set<std::pair<std::size_t, int>> outputs;
        for (const auto& cast : plan.casts) CHECK(outputs.insert({cast.source, cast.output}).second);
        for (const data_edge& e : description.edges()) {
            const auto type_of = [&](std::size_t at) {
                const attribute& it = description.attributes()[at];
                bool low = it.name == "element" && plan.nodes[it.node].low_precision;
                for (const ac::planned_type& other : plan.nodes[it.node].others) {
                    const std::string name = other.name == "U"
                                                 ? other.name
                                                 : "value " + other.name.substr(2, other.name.size() - 3);
                    low |= other.low_precision && name == it.name;
                }
                return low ? plan.low_precision : e.type;
            };
            element_format delivered = type_of(e.from);
            for (const auto& cast : plan.casts) {
                const ac::graph_port place{e.target, e.input};
                if (cast.source != e.source || cast.output != e.output) continue;
                if (std::find(cast.readers.begin(), cast.readers.end(), place) == cast.readers.end())
                    continue;
                CHECK(cast.from == delivered);
                delivered = cast.to;
            }
            CHECK(delivered == type_of(e.to));
        }
    }
}
