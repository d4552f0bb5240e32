// SPDX-License-Identifier: MIT
// Results that are added: every gradient of every op is written, or added to what is there, as the caller says; on
// the CPU and on a GPU, in a region and outside of it, with one rounding.
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/gpu.hpp>
#include <mp/half.hpp>
#include <mp/ops.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace {

using mp::bfloat16;
using mp::half;
using mp::row_major;
using mp::ops::absent;
using mp::ops::add_to;
using simulated = mp::simulated_gpu<mp::arch::sm_75>;

constexpr std::ptrdiff_t rows = 6;
constexpr std::ptrdiff_t columns = 16;

template <class Value = float>
std::vector<Value> random_values(std::ptrdiff_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> draw;
    std::vector<Value> values;
    for (std::ptrdiff_t i = 0; i < count; ++i) values.push_back(static_cast<Value>(draw(random)));
    return values;
}

/// Inputs of the ops, of any of their shapes.
struct inputs {
    std::vector<float> x = random_values(rows * columns, 1);
    std::vector<float> dy = random_values(rows * columns, 2);
    std::vector<float> w = random_values(columns * columns, 3);
    std::vector<float> gamma = random_values(columns, 4);
    std::vector<int> labels = {3, 0, 15, 3, 7, 9};

    [[nodiscard]] mp::matrix_view<const float> x_view() const { return row_major(x.data(), rows, columns); }
    [[nodiscard]] mp::matrix_view<const float> dy_view() const { return row_major(dy.data(), rows, columns); }
    [[nodiscard]] mp::matrix_view<const float> w_view() const {
        return row_major(w.data(), columns, columns);
    }
};
const inputs in;

/// Checks op(exec, y), which writes a matrix of this shape, or adds to it, as y says: against old values plus what
/// it writes to a matrix of floats. In a region the op must not round to the low precision on the way to a sum.
template <class Value, class Executor, class Op>
void check(const Executor& exec, std::ptrdiff_t height, std::ptrdiff_t width, Op op) {
    const std::ptrdiff_t size = height * width;
    std::vector<float> written(static_cast<std::size_t>(size), 9.0F);
    const std::vector<Value> old = random_values<Value>(size, 5);
    std::vector<Value> added = old;
    std::vector<Value> replaced = old;
    op(exec, add_to(row_major(written.data(), height, width), false));
    op(exec, add_to(row_major(added.data(), height, width)));
    op(exec, add_to(row_major(replaced.data(), height, width), false));
    int wrong = 0;
    bool moved = false;
    for (std::size_t i = 0; i < added.size(); ++i) {
        wrong += added[i] != static_cast<Value>(static_cast<float>(old[i]) + written[i]) ? 1 : 0;
        wrong += replaced[i] != static_cast<Value>(written[i]) ? 1 : 0;
        moved = moved || written[i] != 0.0F;
    }
    CHECK(wrong == 0);
    CHECK(moved);
}

/// In and outside of regions, to floats, and to bfloat16 on the CPU: on a GPU the sum is one kernel, whatever the op.
template <class Executor, class Op>
void check(const Executor& exec, std::ptrdiff_t height, std::ptrdiff_t width, Op op) {
    for (const auto precision : {mp::precision::off, mp::precision::bf16, mp::precision::fp16}) {
        mp::autocast_region region(precision);
        check<float>(exec, height, width, op);
        if constexpr (std::is_same_v<Executor, mp::cpu>) check<bfloat16>(exec, height, width, op);
    }
}

/// What is not marked is written as if it were marked so.
template <class Executor, class Op>
void check_unmarked(const Executor& exec, std::ptrdiff_t height, std::ptrdiff_t width, Op op) {
    std::vector<float> plain(static_cast<std::size_t>(height * width), 9.0F);
    std::vector<float> written = plain;
    op(exec, row_major(plain.data(), height, width));
    op(exec, add_to(row_major(written.data(), height, width), false));
    CHECK(plain == written);
}

/// The first row of a matrix as the array that an op writes.
template <class Element>
auto first_row(mp::matrix_view<Element> y) {
    return std::span<Element>(y.data, static_cast<std::size_t>(y.columns));
}
template <class Element>
auto first_row(mp::autocast::sum_operand<mp::matrix_view<Element>> y) {
    return add_to(first_row(y.view), y.adds);
}

/// The ops that run everywhere.
template <class Executor>
void check_everywhere(const Executor& exec) {
    namespace ops = mp::ops;
    check(exec, rows, columns,
          [](auto& on, auto y) { ops::gelu_backward(on, in.x_view(), in.dy_view(), y); });
    check(exec, rows, columns,
          [](auto& on, auto y) { ops::silu_backward(on, in.x_view(), in.dy_view(), y); });
    check(exec, rows, columns,
          [](auto& on, auto y) { ops::tanh_backward(on, in.x_view(), in.dy_view(), y); });
    check(exec, rows, columns,
          [](auto& on, auto y) { ops::sigmoid_backward(on, in.x_view(), in.dy_view(), y); });
    check(exec, rows, columns,
          [](auto& on, auto y) { ops::relu_backward(on, in.x_view(), in.dy_view(), y); });
    check(exec, rows, columns,
          [](auto& on, auto y) { ops::softmax_backward(on, in.x_view(), in.dy_view(), y); });
    check(exec, rows, columns,
          [](auto& on, auto y) { ops::log_softmax_backward(on, in.x_view(), in.dy_view(), y); });
    check(exec, rows, columns, [](auto& on, auto y) { ops::add_backward(on, in.dy_view(), y, absent); });
    check(exec, 1, columns,
          [](auto& on, auto y) { ops::add_backward(on, in.dy_view(), absent, first_row(y)); });
    check(exec, rows, columns, [](auto& on, auto y) {
        ops::multiply_backward(on, in.x_view(), in.dy_view(), in.dy_view(), y, absent);
    });
    check(exec, rows, columns, [](auto& on, auto y) {
        ops::layer_norm_backward(on, in.x_view(), in.gamma, in.dy_view(), y, absent, absent);
    });
    check(exec, 1, columns, [](auto& on, auto y) {
        ops::layer_norm_backward(on, in.x_view(), in.gamma, in.dy_view(), absent, first_row(y), absent);
    });
    check(exec, 1, columns, [](auto& on, auto y) {
        ops::rms_norm_backward(on, in.x_view(), in.gamma, in.dy_view(), absent, first_row(y));
    });
    check(exec, rows, columns, [](auto& on, auto y) {
        ops::softmax_cross_entropy_backward(on, in.x_view(), in.labels, y, {.scale = 64.0F});
    });
    check(exec, rows, columns, [](auto& on, auto y) {
        std::vector<float> losses(rows);
        float loss = 0;
        ops::softmax_cross_entropy_with_gradient(on, in.x_view(), in.labels, &loss, losses, y,
                                                 {.scale = 64.0F},
                                                 {.ignore_index = 3, .label_smoothing = 0.1F});
    });
    check(exec, rows, columns, [](auto& on, auto y) {
        ops::linear_backward(on, in.x_view(), in.w_view(), in.dy_view(), y, absent, absent);
    });
    check(exec, columns, columns, [](auto& on, auto y) {
        ops::linear_backward(on, in.x_view(), in.w_view(), in.dy_view(), absent, y, absent);
    });
    check(exec, 1, columns, [](auto& on, auto y) {
        ops::linear_backward(on, in.x_view(), in.w_view(), in.dy_view(), absent, absent, first_row(y));
    });
    check(exec, rows, columns, [](auto& on, auto y) {
        ops::linear_backward_with_preactivation(on, in.x_view(), in.w_view(), in.dy_view(), in.x_view(), y,
                                                absent, absent, ops::activation::gelu);
    });
    check(exec, rows, columns, [](auto& on, auto y) {
        ops::concatenate(on, ops::parts_along::columns,
                         std::tuple(in.x_view().block(0, 0, rows, 3), in.dy_view().block(0, 3, rows, 13)), y);
    });
    check(exec, rows, columns, [](auto& on, auto y) {
        ops::split(on, ops::parts_along::rows, in.w_view().block(0, 0, rows, columns), std::tuple(y));
    });
    check(exec, rows * 2, columns / 2,
          [](auto& on, auto y) { ops::permute_heads(on, in.x_view(), y, {.heads = 2, .batch = 3}); });
    const ops::dropout_options dropped{.probability = 0.5F, .seed = 7};
    check(exec, rows, columns,
          [&](auto& on, auto y) { ops::dropout_backward(on, in.dy_view(), y, dropped); });
    check(exec, rows, columns, [](auto& on, auto y) {
        ops::rotary_embedding_backward(on, in.dy_view(), y, {.heads = 2, .first_position = 5});
    });
    check(exec, rows, columns,
          [](auto& on, auto y) { ops::mean_squared_error_backward(on, in.x_view(), in.dy_view(), y); });
    check(exec, rows, columns,
          [](auto& on, auto y) { ops::mean_absolute_error_backward(on, in.x_view(), in.dy_view(), y); });
    const ops::pool2d_geometry pooled{.height = 4, .width = 4, .kernel = {2, 2}};
    check(exec, rows, columns, [&](auto& on, auto y) {
        ops::max_pool2d_backward(on, in.x_view(), in.dy_view().block(0, 0, rows, 4), y, pooled);
    });
    check(exec, rows, columns, [&](auto& on, auto y) {
        ops::average_pool2d_backward(on, in.dy_view().block(0, 0, rows, 4), y, pooled);
    });
    check(exec, columns, columns,
          [](auto& on, auto y) { ops::embedding_backward(on, in.labels, in.dy_view(), y); });
    check(exec, columns, columns,
          [](auto& on, auto y) { ops::matmul(on, mp::transposed(in.x_view()), in.dy_view(), y); });
}

TEST_CASE("gradients are added, or written, with one rounding on the CPU") {
    check_everywhere(mp::cpu{.products = mp::accumulation::ordered});
    mp::host_workspace workspace;
    check_everywhere(mp::cpu{.threads = 2, .products = mp::accumulation::ordered, .workspace = &workspace});
    CHECK(workspace.used() == 0);
}

TEST_CASE("gradients are added, or written, with one rounding on a GPU") {
    mp::host_workspace workspace;
    check_everywhere(simulated{.workspace = &workspace});
    CHECK(workspace.used() == 0);
}

TEST_CASE("gradients are added with one rounding to arrays of half on the CPU and of 16 bits on a GPU") {
    const auto silu = [](auto& on, auto y) { mp::ops::silu_backward(on, in.x_view(), in.dy_view(), y); };
    const auto linear = [](auto& on, auto y) {
        mp::ops::linear_backward(on, in.x_view(), in.w_view(), in.dy_view(), absent, y, absent);
    };
    for (const auto precision : {mp::precision::off, mp::precision::fp16}) {
        mp::autocast_region region(precision);
        mp::host_workspace workspace;
        check<half>(mp::cpu{}, rows, columns, silu);
        check<bfloat16>(simulated{.workspace = &workspace}, rows, columns, silu);
        check<half>(simulated{.workspace = &workspace}, rows, columns, silu);
        check<half>(mp::cpu{.products = mp::accumulation::ordered}, columns, columns, linear);
        check<half>(simulated{.workspace = &workspace}, columns, columns, linear);
    }
    mp::host_workspace workspace;
    check_unmarked(mp::cpu{}, rows, columns, silu);
    check_unmarked(mp::cpu{}, columns, columns, linear);
    check_unmarked(simulated{.workspace = &workspace}, rows, columns, silu);
    check_unmarked(simulated{.workspace = &workspace}, columns, columns, linear);
}

TEST_CASE("and so are those of the ops that the CPU alone has") {
    namespace ops = mp::ops;
    const mp::cpu exec{.products = mp::accumulation::ordered};
    check(exec, rows, columns, [](auto& on, auto y) { ops::sum_backward(on, 3.0F, y); });
    for (int which = 0; which < 3; ++which) {
        check(exec, rows, columns, [which](auto& on, auto y) {
            const auto x = in.x_view();
            const auto dy = in.dy_view();
            const ops::attention_options options{.heads = 2};
            const auto backward = [&](auto dq, auto dk, auto dv) {
                ops::scaled_dot_product_attention_backward(on, x, dy, x, absent, dy, dq, dk, dv, options);
            };
            if (which == 0) backward(y, absent, absent);
            if (which == 1) backward(absent, y, absent);
            if (which == 2) backward(absent, absent, y);
        });
    }
    // Two images of 3 channels of 4 x 4, 2 filters of 3 x 3.
    const ops::conv2d_geometry geometry{.channels = 3, .height = 4, .width = 4, .kernel = {3, 3}};
    const auto images = random_values(2 * 48, 11);
    const auto filters = random_values(2 * 27, 12);
    const auto dimages = random_values(2 * 8, 13);
    for (int which = 0; which < 3; ++which) {
        const std::array<std::ptrdiff_t, 2> shapes[] = {{2, 48}, {2, 27}, {1, 2}};
        check(exec, shapes[which][0], shapes[which][1], [&](auto& on, auto y) {
            const auto backward = [&](auto dx, auto dw, auto db) {
                ops::conv2d_backward(on, row_major(images.data(), 2, 48), row_major(filters.data(), 2, 27),
                                     row_major(dimages.data(), 2, 8), dx, dw, db, geometry);
            };
            if (which == 0) backward(y, absent, absent);
            if (which == 1) backward(absent, y, absent);
            if (which == 2) backward(absent, absent, first_row(y));
        });
    }
}

/// Checks op(exec, y) of a low precision: a view of floats receives the result rounded to it, a sum does not.
template <class Low, class Executor, class Op>
void check_rounding(const Executor& exec, std::ptrdiff_t height, std::ptrdiff_t width, Op op) {
    const auto size = static_cast<std::size_t>(height * width);
    std::vector<float> plain(size), written(size, 9.0F), added(size, 1.0F);
    op(exec, row_major(plain.data(), height, width));
    op(exec, add_to(row_major(written.data(), height, width), false));
    op(exec, add_to(row_major(added.data(), height, width)));
    int wrong = 0;
    int rounded = 0;
    for (std::size_t i = 0; i < size; ++i) {
        wrong += plain[i] != static_cast<float>(static_cast<Low>(written[i])) ? 1 : 0;
        wrong += added[i] != 1.0F + written[i] ? 1 : 0;
        rounded += plain[i] != written[i] ? 1 : 0;
    }
    CHECK(wrong == 0);
    CHECK(rounded > 0);
}

template <class Low, class Executor>
void check_rounding_of_products(const Executor& exec) {
    namespace ops = mp::ops;
    check_rounding<Low>(exec, columns, columns, [](auto& on, auto y) {
        ops::linear_backward(on, in.x_view(), in.w_view(), in.dy_view(), absent, y, absent);
    });
    check_rounding<Low>(exec, rows, columns, [](auto& on, auto y) {
        ops::linear_backward(on, in.x_view(), in.w_view(), in.dy_view(), y, absent, absent);
    });
    check_rounding<Low>(exec, 1, columns, [](auto& on, auto y) {
        ops::linear_backward(on, in.x_view(), in.w_view(), in.dy_view(), absent, absent, first_row(y));
    });
    check_rounding<Low>(exec, rows, columns,
                        [](auto& on, auto y) { ops::linear(on, in.x_view(), in.w_view(), absent, y); });
    check_rounding<Low>(exec, rows, columns, [](auto& on, auto y) {
        ops::scaled_dot_product_attention_backward(on, in.x_view(), in.dy_view(), in.x_view(), absent,
                                                   in.dy_view(), absent, absent, y, {.heads = 2});
    });
}

TEST_CASE("a view receives what the region rounds, and a sum the result itself, written or added") {
    mp::host_workspace workspace;
    {
        const mp::autocast_region region(mp::precision::fp16);
        check_rounding_of_products<half>(mp::cpu{.products = mp::accumulation::ordered});
        // The tensor core's sums of three steps are not those of two, but the same each time.
        check_rounding_of_products<half>(simulated{.workspace = &workspace});
        // The gradient of a float weight below half's range, in PyTorch zero.
        const std::vector<float> x = {0x1p-13F}, w = {1.0F}, dy = {0x1p-13F};
        std::vector<float> dw = {9.0F};
        const auto backward = [&](auto to) {
            mp::ops::linear_backward(mp::cpu{}, row_major(x.data(), 1, 1), row_major(w.data(), 1, 1),
                                     row_major(dy.data(), 1, 1), absent, to, absent);
        };
        backward(row_major(dw.data(), 1, 1));
        CHECK(dw[0] == 0.0F);
        backward(add_to(row_major(dw.data(), 1, 1), false));
        CHECK(dw[0] == 0x1p-26F);
        backward(add_to(row_major(dw.data(), 1, 1)));
        CHECK(dw[0] == 0x1p-25F);
    }
    const mp::autocast_region region(mp::precision::bf16);
    check_rounding_of_products<bfloat16>(mp::cpu{.products = mp::accumulation::ordered});
}

TEST_CASE("rows of a table that no index names keep their bits, a minus zero and a NaN among them") {
    std::vector<float> table(3 * 2, -0.0F);
    const std::vector<int> indices = {1};
    const std::vector<float> dy = {2.0F, 3.0F};
    mp::ops::embedding_backward(mp::cpu{}, indices, row_major(dy.data(), 1, 2),
                                add_to(row_major(table.data(), 3, 2)), {.padding_index = 2});
    CHECK(std::signbit(table[0]));
    CHECK(table[2] == 2.0F);
    CHECK(table[3] == 3.0F);
    CHECK(std::signbit(table[5]));
}

TEST_CASE("a sum in columns or with gaps is added to where it lies") {
    std::vector<float> y(static_cast<std::size_t>(rows * (columns + 3)), 1.0F);
    const mp::matrix_view<float> gaps{y.data(), rows, columns, columns + 3, mp::storage_order::row_major};
    std::vector<float> plain(static_cast<std::size_t>(rows * columns));
    mp::ops::silu_backward(mp::cpu{}, in.x_view(), in.dy_view(), row_major(plain.data(), rows, columns));
    mp::ops::silu_backward(mp::cpu{}, in.x_view(), in.dy_view(), add_to(gaps));
    int wrong = 0;
    for (std::ptrdiff_t r = 0; r < rows; ++r) {
        for (std::ptrdiff_t c = 0; c < columns; ++c) {
            wrong += gaps(r, c) != 1.0F + plain[static_cast<std::size_t>(r * columns + c)] ? 1 : 0;
        }
        for (std::ptrdiff_t c = columns; c < columns + 3; ++c) wrong += gaps(r, c) != 1.0F ? 1 : 0;
    }
    CHECK(wrong == 0);
}

TEST_CASE("what is refused leaves the sum as it was") {
    std::vector<float> y(static_cast<std::size_t>(rows * columns), 1.0F);
    CHECK_THROWS_AS(mp::ops::silu_backward(mp::cpu{}, in.x_view(), in.dy_view(),
                                           add_to(row_major(y.data(), rows, columns - 1))),
                    mp::argument_error);
    // On a GPU the result needs a workspace.
    std::string message;
    try {
        mp::ops::silu_backward(simulated{}, in.x_view(), in.dy_view(),
                               add_to(row_major(y.data(), rows, columns)));
    } catch (const mp::argument_error& error) {
        message = error.what();
    }
    CHECK(message.find("exec.workspace is") != std::string::npos);
    CHECK(y == std::vector<float>(static_cast<std::size_t>(rows * columns), 1.0F));
}

TEST_CASE("gradients 100, 10 and 1 of three micro batches make 111") {
    const std::vector<float> x = {1.0F};
    std::vector<float> dw = {5.0F};
    float batch = 100.0F;
    for (int micro = 0; micro < 3; ++micro, batch /= 10.0F) {
        const std::vector<float> dy = {batch};
        mp::ops::linear_backward(mp::cpu{}, row_major(x.data(), 1, 1), row_major(x.data(), 1, 1),
                                 row_major(dy.data(), 1, 1), absent,
                                 add_to(row_major(dw.data(), 1, 1), micro != 0), absent);
    }
    CHECK(dw[0] == 111.0F);
}

}  // namespace
