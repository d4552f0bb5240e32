// SPDX-License-Identifier: MIT
// Ops that need memory while they run take it from the workspace, and nothing from the heap after the first call.
#include "count_allocations.hpp"

#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/ops.hpp>
#include <mp/thread_pool.hpp>
#include <mp/workspace.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "nn/ops/reference.hpp"

namespace {

using mp::bfloat16;
using mp::half;
using mp::ops::absent;
using mp::ops::conv2d_geometry;
using ops_test::matrix;

/// Calls each of some ops a few times; the first calls may grow the workspace.
void check(const std::vector<std::pair<std::string, std::function<void(const mp::cpu&)>>>& ops) {
    for (const int threads : {1, 3}) {
        mp::host_workspace workspace;
        mp::thread_pool pool(threads);
        const mp::cpu exec{.threads = threads, .workspace = &workspace, .pool = &pool};
        for (const auto& [name, run] : ops) {
            for (int i = 0; i < 2; ++i) run(exec);
            const long before = allocations;
            run(exec);
            const long taken = allocations - before;
            CAPTURE(name);
            CAPTURE(threads);
            CHECK(taken == 0);
        }
    }
}

template <class Value>
void check_convolutions() {
    const conv2d_geometry single{
        .channels = 8, .height = 12, .width = 14, .kernel = {3, 3}, .padding = {1, 1}};
    const conv2d_geometry strided{
        .channels = 3, .height = 12, .width = 14, .kernel = {3, 3}, .stride = {2, 2}};
    constexpr std::ptrdiff_t images = 6;
    for (const conv2d_geometry& g : {single, strided}) {
        for (const std::ptrdiff_t outputs : {4, 40}) {
            matrix<Value> x(images, g.image_size()), w(outputs, g.patch_size());
            matrix<Value> y(images, outputs * g.output_positions()),
                dy(images, outputs * g.output_positions());
            matrix<Value> dx(images, g.image_size()), dw(outputs, g.patch_size());
            x.randomize(1);
            w.randomize(2);
            dy.randomize(3);
            std::vector<Value> b(static_cast<std::size_t>(outputs)), db(static_cast<std::size_t>(outputs));
            check({{"conv2d",
                    [&](const mp::cpu& exec) { mp::ops::conv2d(exec, x.view, w.view, b, y.view, g); }},
                   {"conv2d_backward", [&](const mp::cpu& exec) {
                        mp::ops::conv2d_backward(exec, x.view, w.view, dy.view, dx.view, dw.view, db, g);
                    }}});
        }
    }
}

TEST_CASE("convolutions allocate nothing after the first call") {
    check_convolutions<float>();
    check_convolutions<half>();
    check_convolutions<bfloat16>();
}

TEST_CASE("pooling, sums, softmax and rotary embeddings allocate nothing after the first call") {
    const mp::ops::pool2d_geometry g{.channels = 3, .height = 12, .width = 12, .kernel = {2, 2}};
    matrix<half> x(40, 3 * 144), y(40, 3 * 36), dy(40, 3 * 36), dx(40, 3 * 144);
    x.randomize(1);
    dy.randomize(2);
    half sum{};
    const mp::ops::rotary_options options{
        .heads = 3, .layout = mp::ops::head_layout::side_by_side, .batch = 4};
    const mp::ops::rotary_table table(mp::cpu{}, 10, 144, options);
    check({{"max_pool2d_backward",
            [&](const mp::cpu& exec) { mp::ops::max_pool2d_backward(exec, x.view, dy.view, dx.view, g); }},
           {"average_pool2d_backward",
            [&](const mp::cpu& exec) { mp::ops::average_pool2d_backward(exec, dy.view, dx.view, g); }},
           {"sum", [&](const mp::cpu& exec) { sum = half(static_cast<float>(mp::ops::sum(exec, x.view))); }},
           {"softmax", [&](const mp::cpu& exec) { mp::ops::softmax(exec, x.view, dx.view); }},
           {"softmax_backward",
            [&](const mp::cpu& exec) { mp::ops::softmax_backward(exec, x.view, x.view, dx.view); }},
           {"rotary_embedding",
            [&](const mp::cpu& exec) { mp::ops::rotary_embedding(exec, x.view, table, dx.view, options); }}});
}

}  // namespace
