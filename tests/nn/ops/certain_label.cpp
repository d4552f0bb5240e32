// SPDX-License-Identifier: MIT
// The cross entropy of a nearly certain label on the CPU.
#include "certain_label.hpp"

#include <mp/executor.hpp>

namespace {

using certain_label_test::check;

TEST_CASE("the loss and the gradient of a nearly certain label come from the other classes") {
    for (const std::size_t columns : {2U, 3U, 17U, 300U, 2500U}) {
        for (const double smoothing : {0.0, 0.1}) {
            check<float>(mp::cpu{}, columns, smoothing, 5e-7);
            check<double>(mp::cpu{}, columns, smoothing, 1e-13);
        }
    }
}

TEST_CASE("a class that is nearly certain and not the label has the whole loss") {
    std::vector<double> logits{40, 0, 1}, dlogits(3);
    const auto view = [](std::vector<double>& row) { return mp::row_major(row.data(), 1, 3); };
    const std::vector<int> labels{1};
    CHECK(mp::ops::softmax_cross_entropy(mp::cpu{}, view(logits), labels) == 40.0);
    mp::ops::softmax_cross_entropy_backward(mp::cpu{}, view(logits), labels, view(dlogits));
    CHECK(dlogits[0] == 1.0);
    CHECK(dlogits[1] == -1.0);
    CHECK(dlogits[2] == doctest::Approx(std::exp(-39.0)).epsilon(1e-14));
}

TEST_CASE("a class that is all of its row has a loss and a gradient of zero") {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    std::vector<float> logits{3, -infinity, -1e30F, -200}, dlogits(4);
    const auto view = [](std::vector<float>& row) { return mp::row_major(row.data(), 1, 4); };
    const std::vector<int> labels{0};
    CHECK(mp::ops::softmax_cross_entropy(mp::cpu{}, view(logits), labels) == 0.0F);
    mp::ops::softmax_cross_entropy_backward(mp::cpu{}, view(logits), labels, view(dlogits));
    CHECK(std::all_of(dlogits.begin(), dlogits.end(), [](float x) { return x == 0.0F; }));
}

}  // namespace
