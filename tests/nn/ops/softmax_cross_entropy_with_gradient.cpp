// SPDX-License-Identifier: MIT
// Loss and gradient in one pass have the bits of the two calls.
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/nn/ops/softmax_cross_entropy.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "reference.hpp"

namespace {

using mp::bfloat16;
using mp::half;
using mp::storage_order;
using mp::ops::cross_entropy_options;
using mp::ops::loss_factors;
using ops_test::matrix;
using ops_test::same_bits;

struct batch {
    matrix<half> logits{6, 10};
    std::vector<int> labels = {0, 9, -100, 3, -100, 1};
    cross_entropy_options options{.ignore_index = -100, .label_smoothing = 0.1F};

    batch() { logits.randomize(1); }
};

template <class Logit, class Gradient>
void check_one_pass(std::ptrdiff_t rows, std::ptrdiff_t columns, const cross_entropy_options& options) {
    const loss_factors factors{.weight = 0.7F, .scale = 512.0F};
    std::vector<std::int64_t> labels(static_cast<std::size_t>(rows));
    for (std::size_t i = 0; i < labels.size(); ++i) {
        labels[i] = i % 5 == 2 && options.ignore_index ? -100 : static_cast<std::int64_t>(i * 7) % columns;
    }
    ops_test::for_each_layout([&](storage_order order, std::ptrdiff_t padding) {
        matrix<Logit> logits(rows, columns, padding, order);
        matrix<Gradient> expected(rows, columns), found(rows, columns, 3 - padding, order);
        logits.randomize(4);
        const float loss = mp::ops::softmax_cross_entropy(mp::cpu{}, logits.view, labels, factors, options);
        mp::ops::softmax_cross_entropy_backward(mp::cpu{}, logits.view, labels, expected.view, factors,
                                                options);
        std::vector<float> alone(labels.size()), together(labels.size());
        float to_memory = -1, with_gradient = -1;
        mp::ops::softmax_cross_entropy(mp::cpu{}, logits.view, labels, &to_memory, alone, factors, options);
        mp::ops::softmax_cross_entropy_with_gradient(mp::cpu{.threads = 3}, logits.view, labels,
                                                     &with_gradient, together, found.view, factors, options);
        CHECK(to_memory == loss);
        CHECK(with_gradient == loss);
        CHECK(alone == together);
        CHECK(same_bits(found, expected));
        CHECK(found.padding_is_untouched());
        CHECK(mp::ops::softmax_cross_entropy_with_gradient({.threads = 1}, logits.view, labels, found.view,
                                                           factors, options) == loss);
        CHECK(same_bits(found, expected));
        if constexpr (std::is_same_v<Logit, Gradient>) {
            CHECK(mp::ops::softmax_cross_entropy_with_gradient({.threads = 3}, logits.view, labels,
                                                               logits.view, factors, options) == loss);
            CHECK(same_bits(logits, expected));
            CHECK(logits.padding_is_untouched());
        }
    });
}

TEST_CASE("one pass has the bits of two, in every layout and in place, for any number of threads") {
    for (const cross_entropy_options& options :
         {cross_entropy_options{}, cross_entropy_options{.ignore_index = -100, .label_smoothing = 0.1F}}) {
        check_one_pass<float, float>(23, 10, options);
        check_one_pass<half, half>(23, 10, options);
        check_one_pass<bfloat16, bfloat16>(5, 300, options);
        check_one_pass<half, float>(5, 300, options);
        check_one_pass<float, half>(5, 2500, options);
        check_one_pass<float, float>(3000, 12, options);
    }
}

TEST_CASE("a region changes neither loss nor gradient") {
    const batch b;
    matrix<float> outside(6, 10), inside(6, 10);
    const float loss = mp::ops::softmax_cross_entropy_with_gradient(mp::cpu{}, b.logits.view, b.labels,
                                                                    outside.view, {}, b.options);
    const mp::autocast_region region(mp::precision::fp16);
    CHECK(mp::ops::softmax_cross_entropy_with_gradient(mp::cpu{}, b.logits.view, b.labels, inside.view, {},
                                                       b.options) == loss);
    CHECK(same_bits(inside, outside));
    CHECK(mp::ops::softmax_cross_entropy(mp::cpu{}, b.logits.view, b.labels, {}, b.options) == loss);
}

TEST_CASE("a gradient may be added, the loss is written") {
    const batch b;
    matrix<float> written(6, 10), sum(6, 10);
    sum.randomize(8);
    const auto before = ops_test::cast<float>(sum);
    const float loss = mp::ops::softmax_cross_entropy_with_gradient(mp::cpu{}, b.logits.view, b.labels,
                                                                    written.view, {}, b.options);
    CHECK(mp::ops::softmax_cross_entropy_with_gradient(mp::cpu{}, b.logits.view, b.labels,
                                                       mp::ops::add_to(sum.view), {}, b.options) == loss);
    matrix<float> expected(6, 10);
    expected.fill([&](auto r, auto c) { return before.view(r, c) + written.view(r, c); });
    CHECK(same_bits(sum, expected));
}

}  // namespace
