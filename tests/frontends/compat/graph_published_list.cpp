// SPDX-License-Identifier: MIT
// TensorFlow's published list on the graph of a small network, worked out by hand.
#include <doctest/doctest.h>
#include <mp/frontends/compat/tensorflow/graph_rewrite.hpp>
#include <mp/frontends/compat/tensorflow/op_lists.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

namespace ac = mp::autocast;

// Two convolutions, a dense layer and a loss.
const std::vector<ac::graph_node> network = {
    {"image", "Placeholder"},
    {"kernel1", "Placeholder"},
    {"conv1", "Conv2D", {"image", "kernel1"}},
    {"bias1", "BiasAdd", {"conv1", "kernel1"}},
    {"relu1", "Relu", {"bias1"}},
    {"pool1", "MaxPool", {"relu1"}},
    {"conv2", "Conv2D", {"pool1", "kernel1"}},
    {"scale", "Exp", {"conv2"}},
    {"scaled", "Mul", {"scale", "conv2"}},
    {"dense", "MatMul", {"scaled", "kernel1"}},
    {"softmax", "Softmax", {"dense"}},
    {"loss", "Mean", {"softmax"}},
};

std::string painted(const ac::graph_rewrite_plan& plan) {
    std::string names;
    for (const ac::planned_node& node : plan.nodes) {
        if (node.low_precision) names.append(names.empty() ? "" : " ").append(node.name);
    }
    return names;
}

TEST_CASE("the published list on a small network: float16") {
    const auto plan = ac::plan_graph_rewrite(network, ac::lists::tensorflow);
    // scaled is behind Exp, which is denied, on the way to softmax, which may be: it stays in float32.
    // softmax lies between no two allow ops, and right behind one.
    CHECK(painted(plan) == "conv1 bias1 relu1 pool1 conv2 dense softmax");
    const ac::graph_rewrite_options before{.version = ac::graph_rewrite_version::tensorflow_2_18};
    CHECK(painted(ac::plan_graph_rewrite(network, ac::lists::tensorflow_2_18, before)) ==
          "conv1 bias1 relu1 pool1 conv2 dense");
    // Down: image, kernel1 (shared by four), scaled. Up: conv2 (shared by two), softmax.
    std::vector<std::string> casts;
    for (const ac::planned_cast& cast : plan.casts) casts.push_back(plan.nodes[cast.source].name);
    CHECK(casts == std::vector<std::string>{"image", "kernel1", "conv2", "scaled", "softmax"});
    CHECK(plan.casts[1].readers.size() == 4);
    CHECK(plan.casts[2].readers.size() == 2);
}

TEST_CASE("lists from the environment change the published one") {
    using variables = std::vector<std::pair<std::string_view, const char*>>;
    const auto plan_with = [](const variables& set) {
        const auto options = ac::tensorflow_options_from_environment([&](std::string_view name) {
            const char* value = nullptr;
            for (const auto& [suffix, text] : set) {
                if (name == "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_" + std::string(suffix)) value = text;
            }
            return value;
        });
        return painted(ac::plan_graph_rewrite(network, ac::lists::tensorflow, options));
    };
    CHECK(plan_with({}) == "conv1 bias1 relu1 pool1 conv2 dense softmax");
    // The way from conv1 to conv2 now leads through a denied op: bias1 only follows conv1.
    CHECK(plan_with({{"CLEARLIST_REMOVE", "MaxPool"}, {"DENYLIST_ADD", "MaxPool"}}) ==
          "conv1 bias1 relu1 conv2 dense softmax");
    CHECK(plan_with({{"ALLOWLIST_REMOVE", "MatMul"}}) == "conv1 bias1 relu1 pool1 conv2");
    // A BiasAdd that is denied cuts conv1 off; relu1 and pool1 are clear and next to conv2.
    CHECK(plan_with({{"LEVEL", "TREAT_INFER_AS_DENY"}}) == "conv1 relu1 pool1 conv2 dense");
}

}  // namespace
