// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/error.hpp>
#include <mp/nn/ops/attention.hpp>
#include <mp/nn/ops/attention/gpu.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "attention_reference.hpp"
#include "larger_error.hpp"
#include "matrices.hpp"

namespace {

using gpu_test::attention_case;
using gpu_test::layout;
using gpu_test::matrix;
using gpu_test::same_bits;
using gpu_test::simulated;
using gpu_test::watched;
using mp::bfloat16;
using mp::half;
using mp::ops::absent;
using mp::ops::causal_alignment;
using mp::ops::head_layout;

constexpr float infinity = std::numeric_limits<float>::infinity();

template <class Value>
constexpr double unit = std::is_same_v<Value, float>  ? 0x1p-24
                        : std::is_same_v<Value, half> ? 0x1p-11
                                                      : 0x1p-8;

/// Operands and gradients of a case, which all have one format.
template <class Value>
struct operands {
    attention_case of;
    matrix<Value> q, k, v, dy, dq, dk, dv;
    std::vector<mp::ops::softmax_statistics> statistics;

    explicit operands(const attention_case& what, layout how = {})
        : of(what),
          q(what.query_rows(), what.columns(what.options.heads, what.head_dim), how),
          k(what.key_rows(), what.columns(what.options.key_heads, what.head_dim), how),
          v(what.key_rows(), what.columns(what.options.key_heads, what.value_head_dim), how),
          dy(what.query_rows(), what.columns(what.options.heads, what.value_head_dim), how),
          dq(q.view.rows, q.view.columns, how),
          dk(k.view.rows, k.view.columns, how),
          dv(v.view.rows, v.view.columns, how) {
        q.randomize(1, 2.0F);
        k.randomize(2, 2.0F);
        v.randomize(3);
        dy.randomize(4);
    }

    template <class Executor, class Mask>
    void run(Executor exec, const Mask& mask) {
        const std::ptrdiff_t queries = of.heads() * of.queries;
        mp::host_workspace memory(mp::ops::attention_backward_workspace(queries));
        exec.workspace = &memory;
        mp::ops::scaled_dot_product_attention_backward<mp::autocast::off>(
            exec, q.view, k.view, v.view, mask, dy.view, dq.view, dk.view, dv.view, of.options, statistics);
        CHECK(memory.used() == 0);
        if constexpr (!std::is_same_v<Executor, mp::cpu>) {
            CHECK(memory.high_water() <= mp::ops::attention_backward_workspace(queries));
        }
    }
    /// Has statistics that no result may depend on: a GPU does not read them.
    void spoil_statistics() {
        constexpr float nan = std::numeric_limits<float>::quiet_NaN();
        statistics.assign(static_cast<std::size_t>(of.heads() * of.queries), {nan, nan});
    }
};

/// A gradient of all heads in double, and what its error may be.
struct exact_gradient {
    std::ptrdiff_t length, width;
    std::vector<double> value, bound;

    exact_gradient(std::ptrdiff_t heads, std::ptrdiff_t rows, std::ptrdiff_t columns)
        : length(rows),
          width(columns),
          value(static_cast<std::size_t>(heads * rows * columns)),
          bound(value.size()) {}

    [[nodiscard]] std::size_t at(std::ptrdiff_t head, std::ptrdiff_t row, std::ptrdiff_t column) const {
        return static_cast<std::size_t>((head * length + row) * width + column);
    }
    void add(std::ptrdiff_t head, std::ptrdiff_t row, std::ptrdiff_t column, double weight, double error,
             double factor) {
        value[at(head, row, column)] += weight * factor;
        // Sums in float lose some 2^-24 of their terms at each of a few hundred additions.
        bound[at(head, row, column)] += (error + 0x1p-16 * std::fabs(weight)) * std::fabs(factor);
    }
    /// The largest error of a result in units of the bound.
    template <class Value, class Function>
    [[nodiscard]] double worst(Function result) const {
        double worst = 0;
        const auto heads = static_cast<std::ptrdiff_t>(value.size()) / (length * width);
        for (std::ptrdiff_t head = 0; head < heads; ++head) {
            for (std::ptrdiff_t row = 0; row < length; ++row) {
                for (std::ptrdiff_t c = 0; c < width; ++c) {
                    const double exact = value[at(head, row, c)], allowed = bound[at(head, row, c)];
                    const double last = unit<Value> * (std::fabs(exact) + allowed) +
                                        (std::is_same_v<Value, half> ? 0x1p-25 : 0);
                    const double error = std::fabs(result(head, row, c) - exact);
                    if (std::isnan(error)) return error;
                    if (error != 0) worst = tests::larger_error(worst, error / (allowed + last));
                }
            }
        }
        return worst;
    }
};

/// Errors of a probability p: relatively those of its score and of the logarithm of the sum. Of g = p (slope
/// - mean): that, times the magnitudes of slope and mean, and p times the error of two sums of products. Both
/// are rounded to the format of the tensor cores, below which half loses what is less than 2^-25.
template <class Value, class Mask>
void check_exact(const operands<Value>& it, const Mask& mask) {
    const attention_case& of = it.of;
    const double scale = of.options.scale ? static_cast<double>(*of.options.scale)
                                          : 1 / std::sqrt(static_cast<double>(of.head_dim));
    const double rounding = sizeof(Value) == 2 ? unit<Value> : 0;
    const double lost = std::is_same_v<Value, half> ? 0x1p-25 : 0;
    exact_gradient dq(of.heads(), of.queries, of.head_dim), dk(of.key_heads(), of.keys, of.head_dim),
        dv(of.key_heads(), of.keys, of.value_head_dim);
    for (std::ptrdiff_t head = 0; head < of.heads(); ++head) {
        const std::ptrdiff_t key_head = head / of.group();
        for (std::ptrdiff_t query = 0; query < of.queries; ++query) {
            const auto row = gpu_test::exact_probabilities(of, it.q.view, it.k.view, mask, head, query);
            std::vector<double> slopes;
            double mean = 0, magnitude = 0, largest = 0;
            for (std::ptrdiff_t key = 0; key < of.keys; ++key) {
                double slope = 0, sum = 0;
                for (std::ptrdiff_t c = 0; c < of.value_head_dim; ++c) {
                    const double term =
                        of.of_result(it.dy.view, head, query, c) * of.of_value(it.v.view, head, key, c);
                    slope += term;
                    sum += std::fabs(term);
                }
                slopes.push_back(slope);
                const double p = row.p[static_cast<std::size_t>(key)];
                mean += p * slope;
                magnitude += p * std::fabs(slope);
                largest = std::max(largest, sum);
            }
            const double of_p = 2 * static_cast<double>(of.head_dim + 4) * 0x1p-23 * row.magnitude + 0x1p-20 +
                                (std::isinf(row.log_sum) ? 0 : 0x1p-23 * std::fabs(row.log_sum));
            const double of_slope = 2 * static_cast<double>(of.value_head_dim + 4) * 0x1p-23 * largest;
            for (std::ptrdiff_t key = 0; key < of.keys; ++key) {
                const double p = row.p[static_cast<std::size_t>(key)];
                const double slope = slopes[static_cast<std::size_t>(key)];
                const double g = p * (slope - mean);
                const double of_g = p * ((std::fabs(slope) + magnitude) * 2 * of_p + of_slope) +
                                    rounding * std::fabs(g) + lost;
                for (std::ptrdiff_t c = 0; c < of.head_dim; ++c) {
                    dq.add(head, query, c, g, of_g, scale * of.of_key(it.k.view, head, key, c));
                    dk.add(key_head, key, c, g, of_g, scale * of.of_query(it.q.view, head, query, c));
                }
                for (std::ptrdiff_t c = 0; c < of.value_head_dim; ++c) {
                    dv.add(key_head, key, c, p, p * (of_p + rounding) + lost,
                           of.of_result(it.dy.view, head, query, c));
                }
            }
        }
    }
    const auto first = [&](auto key_head) { return key_head * of.group(); };
    CHECK(dq.worst<Value>([&](auto h, auto r, auto c) { return of.of_query(it.dq.view, h, r, c); }) <= 1);
    CHECK(dk.worst<Value>([&](auto h, auto r, auto c) { return of.of_key(it.dk.view, first(h), r, c); }) <=
          1);
    CHECK(dv.worst<Value>([&](auto h, auto r, auto c) { return of.of_value(it.dv.view, first(h), r, c); }) <=
          1);
    CHECK(it.dq.is_contained());
    CHECK(it.dk.is_contained());
    CHECK(it.dv.is_contained());
}

template <class Value>
void check_case(const attention_case& of, bool saved = false) {
    CAPTURE(of.queries);
    CAPTURE(of.keys);
    CAPTURE(of.head_dim);
    operands<Value> it(of);
    if (saved) it.spoil_statistics();
    it.run(watched(simulated{.seed = 3}), absent);
    check_exact(it, absent);
}

TEST_CASE_TEMPLATE("gradients of attention are those of its definition, for any sizes", Value, half, bfloat16,
                   float) {
    check_case<Value>({1, 1, 1, 1, {.key_heads = 1}});
    check_case<Value>({7, 33, 16, 8, {.key_heads = 1}}, true);
    check_case<Value>({33, 65, 40, 24, {.key_heads = 1}});
    check_case<Value>({65, 7, 8, 65, {.key_heads = 1}}, true);
    check_case<Value>({5, 130, 64, 64, {.key_heads = 1}});
    check_case<Value>({130, 5, 20, 20, {.key_heads = 1}});
    check_case<Value>({9, 20, 130, 20, {.key_heads = 1}});
    check_case<Value>({9, 20, 20, 130, {.key_heads = 1}});
}

TEST_CASE_TEMPLATE("gradients under a causal mask, from the first key or the last", Value, half, float) {
    for (const auto alignment : {causal_alignment::first_key, causal_alignment::last_key}) {
        check_case<Value>({130, 130, 8, 8, {.causal = true, .key_heads = 1, .alignment = alignment}});
        check_case<Value>({5, 75, 8, 8, {.causal = true, .key_heads = 1, .alignment = alignment}});
        check_case<Value>({75, 6, 8, 8, {.causal = true, .key_heads = 1, .alignment = alignment}}, true);
    }
}

TEST_CASE_TEMPLATE("gradients of heads in either layout, and sums over the heads that share keys", Value,
                   half, float) {
    for (const auto where : {head_layout::stacked, head_layout::side_by_side}) {
        const std::ptrdiff_t batch = where == head_layout::stacked ? 1 : 2;
        for (const std::ptrdiff_t key_heads : {1, 2, 4}) {
            check_case<Value>(
                {9, 12, 24, 16, {.heads = 4, .layout = where, .batch = batch, .key_heads = key_heads}});
        }
    }
}

TEST_CASE_TEMPLATE("gradients with masks; what is hidden has no influence on g", Value, half, float) {
    for (const bool per_head : {false, true}) {
        const attention_case of{9, 70, 8, 5, {.heads = 2, .causal = per_head, .key_heads = 2}};
        operands<Value> it(of);
        matrix<half> mask((per_head ? 2 : 1) * of.queries, of.keys, gpu_test::layouts[4]);
        mask.fill([&](auto r, auto c) {
            if (r == 4) return -infinity;  // sees nothing
            return (r + 2 * c) % 5 == 0 ? -infinity : 0.25F * static_cast<float>((r + c) % 3);
        });
        it.run(watched(simulated{.seed = 2}), mask.view);
        check_exact(it, mask.view);
    }
}

TEST_CASE_TEMPLATE("gradients have the same bits in every layout, on every schedule and each time", Value,
                   half, float) {
    const attention_case of{20,
                            67,
                            11,
                            9,
                            {.heads = 2,
                             .causal = true,
                             .layout = head_layout::side_by_side,
                             .key_heads = 1,
                             .dropout = {.probability = 0.25F, .seed = 5}}};
    operands<Value> first(of);
    first.run(simulated{}, absent);
    std::uint64_t seed = 1;
    for (const layout& how : gpu_test::layouts) {
        operands<Value> again(of, how);
        again.run(watched(simulated{.seed = seed++}), absent);
        CHECK(same_bits(first.dq, again.dq));
        CHECK(same_bits(first.dk, again.dk));
        CHECK(same_bits(first.dv, again.dv));
        CHECK(again.dk.is_contained());
    }
}

/// The largest difference between two matrices.
template <class Value>
double difference(const matrix<Value>& a, const matrix<Value>& b) {
    double worst = 0;
    for (std::ptrdiff_t r = 0; r < a.view.rows; ++r) {
        for (std::ptrdiff_t c = 0; c < a.view.columns; ++c) {
            const double error =
                std::fabs(static_cast<double>(a.view(r, c)) - static_cast<double>(b.view(r, c)));
            if (std::isnan(error)) return error;
            worst = tests::larger_error(worst, error);
        }
    }
    return worst;
}

TEST_CASE_TEMPLATE("gradients with dropout drop what the forward pass drops on the CPU", Value, half, float) {
    const std::uint64_t added = 6;  // in memory that a device reads, too
    for (const std::uint64_t offset : {0u, 3u}) {
        const attention_case of{
            70,
            67,
            8,
            8,
            {.heads = 2,
             .causal = true,
             .key_heads = 1,
             .alignment = causal_alignment::last_key,
             .dropout = {.probability = 0.4F, .seed = 99, .offset = offset, .added_offset = &added}}};
        operands<Value> it(of), expected(of);
        it.run(watched(simulated{.seed = 4}), absent);
        expected.run(mp::cpu{}, absent);
        // Sums of up to 140 terms whose weights are rounded; one bit too many dropped would be 1/64 and more.
        const double bound = sizeof(Value) == 2 ? 0x1p-8 : 0x1p-18;
        CHECK(difference(it.dq, expected.dq) <= bound);
        CHECK(difference(it.dk, expected.dk) <= bound);
        CHECK(difference(it.dv, expected.dv) <= bound);
    }
}

TEST_CASE("each gradient alone has the same bits, and absent ones are not computed") {
    const attention_case of{20, 40, 16, 8, {.key_heads = 1}};
    operands<half> all(of), one(of);
    all.run(simulated{}, absent);
    mp::host_workspace memory;
    const simulated exec{.seed = 3, .workspace = &memory};
    const auto run = [&](const auto& dq, const auto& dk, const auto& dv) {
        mp::ops::scaled_dot_product_attention_backward<mp::autocast::off>(
            exec, one.q.view, one.k.view, one.v.view, absent, one.dy.view, dq, dk, dv, of.options);
    };
    run(one.dq.view, absent, absent);
    run(absent, one.dk.view, absent);
    run(absent, absent, one.dv.view);
    run(absent, absent, absent);
    CHECK(same_bits(all.dq, one.dq));
    CHECK(same_bits(all.dk, one.dk));
    CHECK(same_bits(all.dv, one.dv));
}

TEST_CASE("gradients are added in float to what is there") {
    const attention_case of{20, 40, 16, 8, {.key_heads = 1}};
    operands<float> it(of), before(of);
    it.run(simulated{}, absent);
    before.dq.fill([](auto, auto) { return 2.0F; });
    mp::host_workspace memory;
    mp::ops::scaled_dot_product_attention_backward<mp::autocast::off>(
        simulated{.workspace = &memory}, before.q.view, before.k.view, before.v.view, absent, before.dy.view,
        mp::ops::add_to(before.dq.view), absent, absent, of.options);
    for (std::ptrdiff_t r = 0; r < 20; ++r) CHECK(before.dq.view(r, 3) == 2.0F + it.dq.view(r, 3));
}

TEST_CASE_TEMPLATE("rows without a meaning spoil what they see, and no other row", Value, half, float) {
    const attention_case of{3, 70, 8, 4, {.key_heads = 1}};
    operands<Value> it(of), clean(of);
    it.q.view(1, 0) = static_cast<Value>(std::numeric_limits<float>::quiet_NaN());
    matrix<float> mask(3, 70);
    mask.fill([](auto r, auto c) { return r == 1 && c % 2 == 0 ? -infinity : 0.0F; });
    it.run(simulated{}, mask.view);
    clean.run(simulated{}, mask.view);
    for (std::ptrdiff_t c = 0; c < 8; ++c) {
        CHECK(same_bits(it.dq.view(0, c), clean.dq.view(0, c)));
        CHECK(gpu_test::is_nan(it.dq.view(1, c)));
        CHECK(gpu_test::is_nan(it.dk.view(1, c)));
    }
    CHECK(gpu_test::is_nan(it.dv.view(5, 2)));
    CHECK_FALSE(gpu_test::is_nan(it.dv.view(6, 2)));
}

TEST_CASE("without bfloat16 in tensor cores gradients are fused multiply-adds") {
    operands<bfloat16> it({9, 70, 24, 12, {.key_heads = 1}});
    it.run(mp::simulated_gpu<mp::arch::sm_75>{}, absent);
    check_exact(it, absent);
}

TEST_CASE("wrong arguments are refused as on the CPU, and nothing is done for no elements") {
    operands<half> it({4, 6, 8, 3, {.key_heads = 1}});
    it.dq.fill([](auto, auto) { return 5.0F; });
    const auto run = [&](const auto& exec, const auto& dq) {
        mp::ops::scaled_dot_product_attention_backward(exec, it.q.view, it.k.view, it.v.view, absent,
                                                       it.dy.view, dq, absent, absent);
    };
    mp::host_workspace memory;
    CHECK_THROWS_WITH_AS(
        run(simulated{.workspace = &memory}, it.dk.view),
        "mp::ops::scaled_dot_product_attention_backward: dq.rows is 6; it must equal q.rows, "
        "which is 4",
        mp::argument_error);
    CHECK_THROWS_WITH_AS(
        run(simulated{}, it.dq.view),
        "mp::ops::scaled_dot_product_attention_backward: exec.workspace is 'null'; it must be "
        "a workspace in the memory of the executor, of at least 64 bytes",
        mp::argument_error);
    CHECK(static_cast<float>(it.dq.view(0, 0)) == 5.0F);
    // No keys: zeros. No queries: zeros for the keys.
    const mp::matrix_view<half> no_keys{nullptr, 0, 8, 8}, no_values{nullptr, 0, 3, 3};
    const simulated exec{.workspace = &memory};
    mp::ops::scaled_dot_product_attention_backward(exec, it.q.view, no_keys, no_values, absent, it.dy.view,
                                                   it.dq.view, no_keys, no_values);
    CHECK(static_cast<float>(it.dq.view(3, 7)) == 0.0F);
    it.dk.fill([](auto, auto) { return 5.0F; });
    mp::ops::scaled_dot_product_attention_backward(exec, no_keys, it.k.view, it.v.view, absent, no_values,
                                                   no_keys, it.dk.view, it.dv.view);
    CHECK(static_cast<float>(it.dk.view(5, 7)) == 0.0F);
}

}  // namespace
