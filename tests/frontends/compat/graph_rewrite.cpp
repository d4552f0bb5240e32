// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/error.hpp>
#include <mp/frontends/compat/tensorflow/graph_rewrite.hpp>
#include <mp/frontends/report/graph_dot.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace ac = mp::autocast;
using ac::graph_node;
using mp::element_format;
using mp::op_category;
using nodes = std::vector<graph_node>;
using decision = ac::graph_decision;
using level = ac::graph_rewrite_level;

constexpr std::array<ac::op_rule, 13> rules{{
    {"Add", op_category::infer},
    {"Concat", op_category::clear, "axis", "0"},
    {"Enter", op_category::clear},
    {"Exp", op_category::deny},
    {"FusedBatchNormGradV2", op_category::infer},
    {"FusedBatchNormV2", op_category::infer},
    {"Identity", op_category::clear},
    {"Log", op_category::infer},
    {"MatMul", op_category::allow},
    {"Mean", op_category::deny},
    {"Merge", op_category::clear},
    {"NextIteration", op_category::clear},
    {"Relu", op_category::clear},
}};
static_assert(ac::is_sorted_list(rules));
constexpr ac::op_list list{"a small list", rules, op_category::clear};

std::string low_nodes(const ac::graph_rewrite_plan& plan) {
    std::string names;
    for (const auto& node : plan.nodes) {
        if (node.low_precision) names += (names.empty() ? "" : " ") + node.name;
    }
    return names;
}

/// "x:0>float16 for y z", in the order of the plan.
std::vector<std::string> casts_of(const ac::graph_rewrite_plan& plan) {
    std::vector<std::string> texts;
    for (const auto& cast : plan.casts) {
        std::string text = plan.nodes[cast.source].name + ":" + std::to_string(cast.output) + ">" +
                           std::string(mp::name_of(cast.to)) + " for";
        for (const auto& reader : cast.readers) text += " " + plan.nodes[reader.node].name;
        texts.push_back(text);
    }
    return texts;
}

ac::graph_rewrite_plan plan_of(const nodes& graph, const ac::graph_rewrite_options& options = {}) {
    return ac::plan_graph_rewrite(graph, list, options);
}

const ac::planned_node& node_of(const ac::graph_rewrite_plan& plan, std::string_view name) {
    for (const auto& node : plan.nodes) {
        if (node.name == name) return node;
    }
    throw mp::argument_error("the test has no such node");
}

std::string message_of(auto&& call) {
    try {
        call();
    } catch (const mp::argument_error& error) {
        return error.what();
    }
    return "nothing was thrown";
}

bool names_all(const std::string& text, std::initializer_list<std::string_view> parts) {
    return std::all_of(parts.begin(), parts.end(),
                       [&](std::string_view part) { return text.find(part) != std::string::npos; });
}

/// deny -> clear -> infer -> clear -> allow -> clear -> infer -> clear -> deny, as in the graph by which
/// TensorFlow explains its steps.
nodes chain() {
    return {{"input", "Const"},
            {"deny1", "Exp", {"input"}},
            {"clear1", "Relu", {"deny1"}},
            {"infer1", "Log", {"clear1"}},
            {"clear2", "Relu", {"infer1"}},
            {"allow1", "MatMul", {"clear2", "clear2"}},
            {"clear3", "Relu", {"allow1"}},
            {"infer2", "Log", {"clear3"}},
            {"clear4", "Relu", {"infer2"}},
            {"deny2", "Mean", {"clear4"}},
            {"clear5", "Relu", {"deny2"}},
            {"fetch", "Identity", {"clear5"}}};
}

}  // namespace

TEST_CASE("a chain through all lists is coloured as TensorFlow's own test expects") {
    const auto plan = plan_of(chain());
    CHECK(low_nodes(plan) == "clear2 allow1 clear3");
    CHECK(casts_of(plan) ==
          std::vector<std::string>{"infer1:0>float16 for clear2", "clear3:0>float32 for infer2"});
    CHECK(node_of(plan, "deny1").decision == decision::deny_op);
    CHECK(node_of(plan, "clear1").decision == decision::behind_deny);
    CHECK(node_of(plan, "infer1").decision == decision::behind_deny);
    CHECK(node_of(plan, "infer1").because_of == 1);
    CHECK(node_of(plan, "clear2").decision == decision::near_allow);
    CHECK(node_of(plan, "allow1").decision == decision::allow_op);
    CHECK(node_of(plan, "infer2").decision == decision::not_reached);
    CHECK(node_of(plan, "clear5").decision == decision::not_reached);
    CHECK(node_of(plan, "input").decision == decision::unlisted_op);
    CHECK(plan.converted() == 3);
}

TEST_CASE("step 0: nodes off the device, preserved ones and other types stay as they are") {
    nodes graph{{"x", "Const"},
                {"a", "MatMul", {"x"}},
                {"b", "MatMul", {"x"}},
                {"c", "MatMul", {"x"}},
                {"d", "MatMul"}};
    graph[2].eligible = false;
    graph[3].preserve = true;
    graph[4].element = element_format::f64;
    const auto plan = plan_of(graph);
    CHECK(low_nodes(plan) == "a");
    CHECK(node_of(plan, "b").decision == decision::not_eligible);
    CHECK(node_of(plan, "c").decision == decision::preserved);
    CHECK(node_of(plan, "d").decision == decision::other_type);
    CHECK(casts_of(plan) == std::vector<std::string>{"x:0>float16 for a"});
}

TEST_CASE("step 1: without an allow op that can be changed nothing is done") {
    nodes graph{{"x", "Const"}, {"y", "MatMul", {"x"}}, {"c", "Cast", {"x"}}, {"z", "Add", {"y", "c"}}};
    graph[1].eligible = false;
    const auto plan = plan_of(graph);
    CHECK(low_nodes(plan).empty());
    CHECK(plan.casts.empty());
    CHECK(node_of(plan, "z").decision == decision::nothing_to_gain);
    CHECK(node_of(plan, "y").decision == decision::not_eligible);
}

TEST_CASE("step 2: deny spreads only towards a deny or infer op, and only through infer and clear ops") {
    // Behind the deny op: a clear op that leads to an allow op only, one that leads to an infer op, and an
    // infer op behind an unlisted op.
    const nodes graph{{"x", "Const"},
                      {"deny", "Exp", {"x"}},
                      {"dead_end", "Relu", {"deny"}},
                      {"allow1", "MatMul", {"dead_end"}},
                      {"passage", "Relu", {"deny"}},
                      {"infer1", "Add", {"passage", "allow1"}},
                      {"allow2", "MatMul", {"infer1"}},
                      {"wall", "Unknown", {"deny"}},
                      {"infer2", "Add", {"allow1", "wall"}},
                      {"allow3", "MatMul", {"infer2"}}};
    const auto plan = plan_of(graph);
    CHECK(low_nodes(plan) == "dead_end allow1 allow2 infer2 allow3");
    CHECK(node_of(plan, "passage").decision == decision::behind_deny);
    CHECK(node_of(plan, "infer1").decision == decision::behind_deny);
    CHECK(node_of(plan, "dead_end").decision == decision::near_allow);
    CHECK(node_of(plan, "infer2").decision == decision::between_allow);
    CHECK(casts_of(plan) ==
          std::vector<std::string>{"deny:0>float16 for dead_end", "allow1:0>float32 for infer1",
                                   "infer1:0>float16 for allow2", "wall:0>float16 for infer2"});
}

TEST_CASE("step 3: infer and clear ops between allow ops are painted, if all of the way has kernels") {
    const nodes graph{{"x", "Const"},
                      {"allow1", "MatMul", {"x"}},
                      {"clear1", "Relu", {"allow1"}},
                      {"infer1", "Log", {"clear1"}},
                      {"clear2", "Relu", {"infer1"}},
                      {"allow2", "MatMul", {"clear2"}},
                      {"infer2", "Log", {"allow2"}}};
    const auto plan = plan_of(graph);
    CHECK(low_nodes(plan) == "allow1 clear1 infer1 clear2 allow2 infer2");
    CHECK(low_nodes(plan_of(graph, {.version = ac::graph_rewrite_version::tensorflow_2_18})) ==
          "allow1 clear1 infer1 clear2 allow2");
    CHECK(node_of(plan, "infer1").decision == decision::between_allow);
    CHECK(node_of(plan, "infer1").because_of == 1);
    CHECK(node_of(plan, "infer1").and_of == 5);

    const auto is_no_log = [](const graph_node& node) { return node.op != "Log"; };
    const auto without = ac::plan_graph_rewrite(graph, list, {}, is_no_log, is_no_log);
    CHECK(low_nodes(without) == "allow1 clear1 clear2 allow2");
    // Step 4 does not ask for a kernel.
    CHECK(low_nodes(ac::plan_graph_rewrite(graph, list, {}, is_no_log)) ==
          "allow1 clear1 clear2 allow2 infer2");
    CHECK(node_of(without, "infer1").decision == decision::no_kernel);
    CHECK(node_of(without, "clear1").decision == decision::near_allow);
}

TEST_CASE("step 4: infer ops behind allow are painted unless something before them is denied") {
    const nodes graph{{"x", "Const"},
                      {"deny", "Exp", {"x"}},
                      {"allow", "MatMul", {"x"}},
                      {"infer1", "Log", {"allow"}},
                      {"infer2", "Log", {"infer1"}},
                      {"infer3", "Add", {"infer1", "x"}},
                      {"clear", "Relu", {"infer3"}},
                      {"infer4", "Log", {"clear"}},
                      {"mixed", "Add", {"allow", "deny"}}};
    const ac::graph_rewrite_options bfloat16{.low_precision = element_format::bf16};
    const auto plan = plan_of(graph, bfloat16);
    CHECK(low_nodes(plan) == "allow infer1 infer2 infer3 clear");
    CHECK(node_of(plan, "infer3").decision == decision::follows_allow);
    CHECK(node_of(plan, "infer3").because_of == 3);
    CHECK(node_of(plan, "mixed").decision == decision::behind_deny);
    CHECK(casts_of(plan) == std::vector<std::string>{"x:0>bfloat16 for allow infer3",
                                                     "allow:0>float32 for mixed",
                                                     "clear:0>float32 for infer4"});

    // In float16 since TensorFlow 2.21.
    using enum ac::graph_rewrite_version;
    CHECK(low_nodes(plan_of(graph)) == "allow infer1 infer2 infer3 clear");
    CHECK(low_nodes(plan_of(graph, {.version = tensorflow_2_18})) == "allow");
    CHECK(low_nodes(plan_of(graph, {.low_precision = element_format::bf16, .version = tensorflow_2_18})) ==
          "allow infer1 infer2 infer3 clear");
    CHECK(low_nodes(plan_of(graph, {.version = tensorflow_2_18, .infer_follows_allow = true})) ==
          "allow infer1 infer2 infer3 clear");
    CHECK(low_nodes(plan_of(graph, {.low_precision = element_format::bf16, .infer_follows_allow = false})) ==
          "allow");
}

TEST_CASE(
    "step 4 follows the order of the nodes, so that a chain listed backwards is painted at its head only") {
    const nodes graph{{"infer2", "Log", {"infer1"}}, {"infer1", "Log", {"allow"}}, {"allow", "MatMul"}};
    CHECK(low_nodes(plan_of(graph, {.infer_follows_allow = true})) == "infer1 allow");
}

TEST_CASE(
    "step 5: the paint spreads through clear ops both ways, but not over variables that are no resources") {
    const nodes graph{{"v", "VariableV2"},
                      {"read", "Identity", {"v"}},
                      {"enter", "Enter", {"read"}},
                      {"r", "Placeholder"},
                      {"copy", "Identity", {"r"}},
                      {"before", "Relu", {"copy"}},
                      {"sibling", "Relu", {"before"}},
                      {"allow", "MatMul", {"before", "enter"}},
                      {"after", "Relu", {"allow"}},
                      {"off", "Relu", {"after"}},
                      {"beyond", "Relu", {"off"}}};
    auto with_obstacle = graph;
    with_obstacle[9].eligible = false;
    const auto plan = plan_of(with_obstacle);
    CHECK(low_nodes(plan) == "copy before sibling allow after");
    CHECK(node_of(plan, "sibling").decision == decision::near_allow);
    CHECK(node_of(plan, "sibling").because_of == 7);
    CHECK(node_of(plan, "read").decision == decision::not_reached);
    CHECK(casts_of(plan) == std::vector<std::string>{"enter:0>float16 for allow", "r:0>float16 for copy",
                                                     "after:0>float32 for off"});
    CHECK(low_nodes(plan_of(graph)) == "copy before sibling allow after off beyond");
}

TEST_CASE(
    "step 6: an allow op that is not defined for the type loses its paint after it has lent it to others") {
    const nodes graph{{"x", "Const"},
                      {"allow1", "MatMul", {"x"}},
                      {"infer", "Log", {"allow1"}},
                      {"allow2", "MatMul", {"infer"}}};
    const auto is_defined = [](const graph_node& node) { return node.name != "allow2"; };
    const auto plan = ac::plan_graph_rewrite(graph, list, {}, is_defined, is_defined);
    // Without a kernel, but defined, it keeps it.
    CHECK(low_nodes(ac::plan_graph_rewrite(graph, list, {}, is_defined)) == "allow1 infer allow2");
    CHECK(low_nodes(plan) == "allow1 infer");
    CHECK(node_of(plan, "allow2").decision == decision::no_kernel);
    CHECK(casts_of(plan) == std::vector<std::string>{"x:0>float16 for allow1", "infer:0>float32 for allow2"});
}

// As TensorFlow 2.21 rewrites these graphs, see tests/frontends/compat/installed.
TEST_CASE(
    "values of an IdentityN, statistics of a batch norm and the source of a cast have colours of their own") {
    const nodes pair{{"x", "Const"},
                     {"a", "MatMul", {"x"}},
                     {"both", "IdentityN", {"a", "x"}},
                     {"b", "MatMul", {"both"}},
                     {"u", "Unknown", {"both:1"}}};
    const ac::op_rule rules[] = {{"Exp", op_category::deny},
                                 {"FusedBatchNormGradV3", op_category::infer},
                                 {"FusedBatchNormV3", op_category::infer},
                                 {"IdentityN", op_category::clear},
                                 {"Log", op_category::infer},
                                 {"MatMul", op_category::allow},
                                 {"Relu", op_category::clear}};
    const ac::op_list with_norms{"with_norms", rules, op_category::full_precision};
    const auto plan = ac::plan_graph_rewrite(pair, with_norms);
    CHECK(low_nodes(plan) == "a both b");
    REQUIRE(node_of(plan, "both").others.size() == 1);
    CHECK(node_of(plan, "both").others[0].name == "T[1]");
    CHECK_FALSE(node_of(plan, "both").others[0].low_precision);
    CHECK(casts_of(plan) == std::vector<std::string>{"x:0>float16 for a"});

    // A deny op before a scale denies the statistics, and what reads them; not what is normed.
    const nodes norm{{"x", "Const"},
                     {"scale", "Exp", {"x"}},
                     {"a", "MatMul", {"x"}},
                     {"norm", "FusedBatchNormV3", {"a", "scale", "x", "x", "x"}},
                     {"b", "MatMul", {"norm"}},
                     {"mean", "Relu", {"norm:1"}},
                     {"log", "Log", {"mean"}}};
    const auto normed = ac::plan_graph_rewrite(norm, with_norms);
    CHECK(low_nodes(normed) == "a norm b");
    CHECK(node_of(normed, "log").decision == decision::behind_deny);
    CHECK(node_of(normed, "log").because_of == 1);

    // Statistics follow an allow op in bfloat16, of the third version alone, and infer ops follow them.
    nodes moments{{"x", "Const"},
                  {"a", "MatMul", {"x"}},
                  {"norm", "FusedBatchNormV3", {"x", "a", "x", "x", "x"}},
                  {"log", "Log", {"norm:1"}}};
    const ac::graph_rewrite_options bfloat16{.low_precision = element_format::bf16};
    const auto followed = ac::plan_graph_rewrite(moments, with_norms, bfloat16);
    CHECK(low_nodes(followed) == "a log");
    CHECK(node_of(followed, "norm").others[0].name == "U");
    CHECK(node_of(followed, "norm").others[0].low_precision);
    CHECK(casts_of(followed) == std::vector<std::string>{"x:0>bfloat16 for a norm norm norm"});
    CHECK(low_nodes(ac::plan_graph_rewrite(moments, with_norms)) == "a");
    moments[2].op = "FusedBatchNormV2";
    CHECK(low_nodes(ac::plan_graph_rewrite(moments, with_norms, bfloat16)) == "a");
}

TEST_CASE("one cast serves all readers of an output, and outputs have casts of their own") {
    const nodes graph{
        {"x", "Const"},         {"a", "MatMul", {"x", "x"}},         {"b", "MatMul", {"x:1", "a"}},
        {"c", "MatMul", {"x"}}, {"u", "Unknown", {"a", "a:1", "b"}}, {"v", "Unknown", {"a"}}};
    const auto plan = plan_of(graph);
    CHECK(casts_of(plan) == std::vector<std::string>{"x:0>float16 for a a c", "x:1>float16 for b",
                                                     "a:0>float32 for u v", "a:1>float32 for u",
                                                     "b:0>float32 for u"});
    CHECK(plan.casts[0].from == element_format::f32);
    CHECK(plan.casts[0].readers == std::vector<ac::graph_port>{{1, 0}, {1, 1}, {3, 0}});
    CHECK(plan.casts[2].from == element_format::f16);
    CHECK(plan.casts[0].name == "x-0-CastToFp16-0-AutoMixedPrecision");
    CHECK(plan.casts[2].name == "a-0-CastToFp32-0-AutoMixedPrecision");
    auto taken = graph;
    taken[5].name = "x-0-CastToFp16-0-AutoMixedPrecision";
    CHECK(plan_of(taken).casts[0].name == "x-0-CastToFp16-1-AutoMixedPrecision");
    CHECK(plan_of(graph, {.low_precision = element_format::bf16}).casts[0].name ==
          "x-0-CastToBf16-0-AutoMixedPrecision");
}

TEST_CASE("an existing cast to float32 is reused if all of its readers are in low precision") {
    nodes graph{{"i", "Placeholder"},
                {"to_float", "Cast", {"i"}},
                {"a", "MatMul", {"to_float"}},
                {"b", "MatMul", {"to_float"}}};
    graph[0].element = element_format::int32;
    const auto plan = plan_of(graph);
    CHECK(low_nodes(plan) == "to_float a b");
    CHECK(node_of(plan, "to_float").decision == decision::reused_cast);
    CHECK(plan.casts.empty());

    graph.push_back({"u", "Unknown", {"to_float"}});
    CHECK(casts_of(plan_of(graph)) == std::vector<std::string>{"to_float:0>float16 for a b"});
    graph.pop_back();
    graph[1].preserve = true;
    CHECK(casts_of(plan_of(graph)) == std::vector<std::string>{"to_float:0>float16 for a b"});
    graph.pop_back();
    graph.pop_back();
    graph.push_back({"elsewhere", "MatMul"});
    graph[1].preserve = false;
    CHECK(low_nodes(plan_of(graph)) == "elsewhere");  // a cast that nobody reads stays
}

TEST_CASE("a cast reads any type, so what it reads in float32 is cast back") {
    nodes graph{{"a", "MatMul"},
                {"to_int", "Cast", {"a"}},
                {"max", "Relu", {"a"}},
                {"index", "ArgMax", {"max"}},
                {"use", "Unknown", {"index"}}};
    graph[1].element = element_format::int32;
    graph[3].fixed_outputs = {{0, element_format::int64}};
    graph[4].element = element_format::int64;
    CHECK(casts_of(plan_of(graph)) ==
          std::vector<std::string>{"a:0>float32 for to_int", "max:0>float32 for index"});
    // On the clear list, the op that finds the index is painted, and its result keeps its type.
    const auto plan = plan_of(graph, {.clear = {.add = {"ArgMax"}}});
    CHECK(low_nodes(plan) == "a max index");
    CHECK(casts_of(plan) == std::vector<std::string>{"a:0>float32 for to_int"});
}

TEST_CASE("a batch norm becomes the version with mixed types, whose statistics stay in float32") {
    nodes graph{{"x", "Const"},
                {"scale", "Relu", {"x"}},
                {"conv1", "MatMul", {"x"}},
                {"norm", "FusedBatchNorm", {"conv1", "scale", "scale", "x", "x"}},
                {"conv2", "MatMul", {"norm"}},
                {"moving_mean", "Relu", {"norm:1"}},
                {"gradient", "FusedBatchNormGrad", {"conv2", "conv1", "scale", "norm:3", "norm:4"}},
                {"conv3", "MatMul", {"gradient"}}};
    std::vector<std::string> asked;
    const auto plan = ac::plan_graph_rewrite(graph, list, {}, [&](const graph_node& node) {
        if (node.op.starts_with("Fused")) asked.push_back(node.op);
        return true;
    });
    CHECK(asked == std::vector<std::string>{"FusedBatchNormV2", "FusedBatchNormGradV2"});
    CHECK(node_of(plan, "norm").op == "FusedBatchNormV2");
    CHECK(node_of(plan, "gradient").op == "FusedBatchNormGradV2");
    CHECK(low_nodes(plan) == "conv1 norm conv2 gradient conv3");
    CHECK(casts_of(plan) == std::vector<std::string>{"x:0>float16 for conv1"});

    graph[3].eligible = false;
    const auto kept = plan_of(graph);
    CHECK(node_of(kept, "norm").op == "FusedBatchNorm");
    CHECK(low_nodes(kept) == "conv1 conv2 gradient conv3");
}

TEST_CASE("inputs that are read in their own type carry no colour") {
    const nodes graph{{"s", "Relu"}, {"a", "MatMul", {"s"}}, {"b", "MatMul", {"a", ac::fixed_input("s")}}};
    const auto plan = plan_of(graph);
    CHECK(low_nodes(plan) == "s a b");
    CHECK(casts_of(plan) == std::vector<std::string>{"s:0>float32 for b"});
}

TEST_CASE("a cluster has one colour: denied if one of it is or must not change, painted if one is painted") {
    const auto graph_with = [](std::string_view feed, bool eligible) {
        nodes graph{{"x", "Const"},           {"deny", "Exp", {"x"}}, {"allow", "MatMul", {"x"}},
                    {"push", "Relu", {feed}}, {"set", "Relu", {"x"}}, {"pop", "Log", {"x"}},
                    {"late", "Add", {"push"}}};
        for (const std::size_t i : {3U, 4U, 5U}) graph[i].cluster = 7;
        graph[4].eligible = eligible;
        return graph;
    };
    const auto painted = plan_of(graph_with("allow", true));
    CHECK(low_nodes(painted) == "allow push set pop");
    CHECK(node_of(painted, "pop").decision == decision::cluster_match);
    CHECK(low_nodes(plan_of(graph_with("deny", true))) == "allow");
    const auto unsafe = plan_of(graph_with("allow", false));
    CHECK(low_nodes(unsafe) == "allow");
    CHECK(node_of(unsafe, "push").decision == decision::cluster_match);
    CHECK(node_of(unsafe, "push").because_of == 4);
}

TEST_CASE("the ends of a loop have one colour") {
    const auto graph_with = [](std::string_view last) {
        return nodes{{"x", "Const"},
                     {"merge", "Merge", {"x", "next"}},
                     {"body", "MatMul", {"merge"}},
                     {"last", std::string(last), {"body"}},
                     {"next", "NextIteration", {"last"}}};
    };
    CHECK(low_nodes(plan_of(graph_with("Relu"))) == "merge body last next");
    // The end behind the deny op would not be painted by itself, but the beginning is.
    const auto matched = plan_of(graph_with("Exp"));
    CHECK(low_nodes(matched) == "merge body next");

    auto kept = graph_with("Relu");
    kept[1].eligible = false;
    const auto plan = plan_of(kept);
    CHECK(low_nodes(plan) == "body last");
    CHECK(node_of(plan, "next").decision == decision::loop_match);
    CHECK(node_of(plan, "next").because_of == 1);

    auto preserved = graph_with("Relu");
    preserved[4].preserve = true;
    CHECK(low_nodes(plan_of(preserved)) == "body last");
}

TEST_CASE("loops that share an end have one colour all together") {
    nodes graph{{"n1", "Relu"},
                {"n2", "Relu"},
                {"m1", "Relu", {ac::loop_input("n1")}},
                {"m2", "Relu", {ac::loop_input("n1"), ac::loop_input("n2")}},
                {"m3", "Relu", {ac::loop_input("n2")}},
                {"a", "MatMul", {"m1", "m2", "m3"}}};
    CHECK(low_nodes(plan_of(graph)) == "n1 n2 m1 m2 m3 a");
    graph[4].eligible = false;
    CHECK(low_nodes(plan_of(graph)) == "a");
}

TEST_CASE("the levels change the lists as TensorFlow does") {
    const nodes graph{{"x", "Const"},
                      {"v", "VariableV2"},
                      {"allow1", "MatMul", {"x"}},
                      {"clear", "Relu", {"allow1"}},
                      {"infer", "Log", {"clear"}},
                      {"allow2", "MatMul", {"infer"}},
                      {"deny", "Exp", {"allow2"}},
                      {"loss", "SoftmaxCrossEntropyWithLogits", {"deny"}},
                      {"other", "Unknown", {"loss", "v"}}};
    CHECK(low_nodes(plan_of(graph)) == "allow1 clear infer allow2");
    CHECK(low_nodes(plan_of(graph, {.level = level::tensor_cores_only})) == "allow1 allow2");
    const auto careful = plan_of(graph, {.level = level::treat_infer_as_deny});
    CHECK(low_nodes(careful) == "allow1 clear allow2");
    CHECK(node_of(careful, "infer").decision == decision::deny_op);
    auto with_state = graph;
    with_state[1].stateful = true;
    const auto forced = plan_of(with_state, {.level = level::unsafe_force_all});
    CHECK(low_nodes(forced) == "allow1 clear infer allow2 deny other");
    CHECK(node_of(forced, "allow1").decision == decision::allow_op);
    CHECK(node_of(forced, "deny").decision == decision::forced);
    CHECK_THROWS_AS((void)plan_of(graph, {.level = static_cast<level>(4)}), mp::argument_error);
}

TEST_CASE("changes to the lists are followed, and an op in two lists is an error naming both") {
    const nodes graph{{"x", "Const"}, {"a", "Custom", {"x"}}, {"b", "Relu", {"a"}}, {"c", "Log", {"b"}}};
    CHECK(low_nodes(plan_of(graph)).empty());
    CHECK(low_nodes(plan_of(graph, {.allow = {.add = {"Custom"}}})) == "a b");
    CHECK(low_nodes(plan_of(graph, {.allow = {.add = {"Custom", "Relu"}}, .clear = {.remove = {"Relu"}}})) ==
          "a b c");
    CHECK(low_nodes(plan_of(graph, {.allow = {.add = {"Custom"}}, .clear = {.remove = {"Relu", "None"}}})) ==
          "a");
    CHECK(low_nodes(plan_of(graph, {.allow = {.add = {"Custom"}, .remove = {"Custom"}}})).empty());
    const std::string message = message_of([&] { (void)plan_of(graph, {.allow = {.add = {"Log"}}}); });
    CHECK(names_all(message, {"'Log'", "allow and infer"}));
    // The other lists do not count with the allow list alone.
    CHECK(low_nodes(plan_of(graph, {.level = level::tensor_cores_only, .allow = {.add = {"Log"}}})) == "c");

    constexpr std::array<ac::op_rule, 1> banned{{{"Exp", op_category::banned}}};
    const ac::op_list other{"another", banned, op_category::clear};
    CHECK(names_all(message_of([&] { (void)ac::plan_graph_rewrite(graph, other); }),
                    {"'another'", "Exp", "'banned'"}));
}

TEST_CASE("a rule with a condition does not put its op on a list") {
    const nodes graph{{"a", "MatMul"}, {"b", "Concat", {"a"}}};
    CHECK(node_of(plan_of(graph), "b").decision == decision::unlisted_op);
}

TEST_CASE("names that are empty, used twice or unknown, and cycles, are errors that name them") {
    const auto message = [](const nodes& graph) { return message_of([&] { (void)plan_of(graph); }); };
    CHECK(names_all(message({{"a", "Relu"}, {"b", "Relu"}, {"a", "Relu"}}), {"'a'", "one node only"}));
    CHECK(names_all(message({{"", "Relu"}}), {"must not be empty"}));
    CHECK(names_all(message({{"a", "Relu", {"missing"}}}), {"node 'a'", "is 'missing'"}));
    CHECK(names_all(message({{"a", "Relu", {"^missing"}}}), {"node 'a'", "is 'missing'"}));
    CHECK(names_all(message({{"a", "Relu", {"a:x"}}}), {"node 'a'", "is 'a:x'"}));
    CHECK(names_all(message({{"a", "Relu", {"a"}}}), {"'a' -> 'a';"}));
    CHECK(names_all(message({{"before", "Relu"},
                             {"behind", "Relu", {"c"}},
                             {"a", "Relu", {"before", "c"}},
                             {"b", "Relu", {"a"}},
                             {"c", "Relu", {"^b"}}}),
                    {"cycle 'c' -> 'a' -> 'b' -> 'c';"}));
    CHECK(message({{"a", "Relu", {ac::loop_input("b")}}, {"b", "Relu", {"a"}}}) == "nothing was thrown");
    CHECK(message({}) == "nothing was thrown");
    for (const auto format : {element_format::f32, element_format::f64, element_format::int8}) {
        const std::string low = message_of([&] { (void)plan_of({}, {.low_precision = format}); });
        CHECK(names_all(low, {"low_precision", std::string(mp::name_of(format))}));
    }
}

TEST_CASE("control inputs order nodes and carry neither colours nor casts") {
    const nodes graph{{"c", "Relu"}, {"a", "MatMul", {"^c"}}, {"b", "Unknown", {"^a"}}};
    const auto plan = plan_of(graph);
    CHECK(low_nodes(plan) == "a");
    CHECK(plan.casts.empty());
}

TEST_CASE("the plan explains itself in sentences, and draws itself") {
    nodes graph = chain();
    graph.push_back({"allow3", "MatMul", {"infer2"}});
    graph.push_back({"quoted\"name\\", "Unknown", {"allow3", "^input"}});
    const auto plan = plan_of(graph);
    CHECK(ac::explain(plan, 3) ==
          "infer1 (Log): unchanged, because it is on the way from the deny op deny1 to another deny op or an "
          "infer "
          "op (step 2).");
    CHECK(ac::explain(plan, 7) ==
          "infer2 (Log): float16, because it is between the allow ops allow1 and allow3 (step 3).");
    CHECK_THROWS(ac::explain(plan, plan.nodes.size()));
    const std::string text = ac::to_string(plan);
    CHECK(std::count(text.begin(), text.end(), '\n') ==
          static_cast<std::ptrdiff_t>(plan.nodes.size() + plan.casts.size()));
    CHECK(names_all(text, {"cast infer1:0 from float32 to float16 for clear2\n",
                           "cast clear4:0 from float16 to float32 for deny2\n"}));
    for (int i = 0; i <= static_cast<int>(decision::unlisted_op); ++i) {
        auto copy = plan;
        copy.nodes[0].decision = static_cast<decision>(i);
        CHECK(ac::explain(copy, 0).find("unknown") == std::string::npos);
    }

    const std::string dot = ac::to_dot(graph, plan);
    CHECK(names_all(dot, {"digraph", "\"infer1\" -> \"infer1-0-CastToFp16-0-AutoMixedPrecision\";",
                          "\"infer1-0-CastToFp16-0-AutoMixedPrecision\" -> \"clear2\";",
                          "\"clear2\" -> \"allow1\";", "\"quoted\\\"name\\\\\"", "lightcoral", "palegreen",
                          "\"input\" -> \"quoted\\\"name\\\\\" [style=dotted];"}));
    CHECK(dot.find("\"infer1\" -> \"clear2\"") == std::string::npos);
    graph.pop_back();
    CHECK_THROWS_AS((void)ac::to_dot(graph, plan), mp::argument_error);
}
