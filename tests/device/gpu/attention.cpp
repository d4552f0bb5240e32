// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/error.hpp>
#include <mp/nn/ops/attention.hpp>
#include <mp/nn/ops/attention/gpu.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
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

/// The unit roundoff of a format.
template <class Value>
constexpr double unit = 0;
template <>
constexpr double unit<float> = 0x1p-24;
template <>
constexpr double unit<half> = 0x1p-11;
template <>
constexpr double unit<bfloat16> = 0x1p-8;
template <>
constexpr double unit<mp::float8_e4m3fn> = 0x1p-4;

/// Operands of a case. v is in [-1, 1], so that an error of the probabilities shows as it is.
template <class Q, class K = Q, class V = Q, class Y = Q>
struct operands {
    attention_case of;
    matrix<Q> q;
    matrix<K> k;
    matrix<V> v;
    matrix<Y> y;
    std::vector<mp::ops::softmax_statistics> statistics;

    explicit operands(const attention_case& what, layout how = {}, float span = 2.0F)
        : of(what),
          q(what.query_rows(), what.columns(what.options.heads, what.head_dim), how),
          k(what.key_rows(), what.columns(what.options.key_heads, what.head_dim), how),
          v(what.key_rows(), what.columns(what.options.key_heads, what.value_head_dim), how),
          y(what.query_rows(), what.columns(what.options.heads, what.value_head_dim), how),
          statistics(static_cast<std::size_t>(what.heads() * what.queries)) {
        q.randomize(1, span);
        k.randomize(2, span);
        v.randomize(3);
    }

    template <class Executor, class Mask>
    void run(const Executor& exec, const Mask& mask) {
        mp::ops::scaled_dot_product_attention<mp::autocast::off>(exec, q.view, k.view, v.view, mask, y.view,
                                                                 of.options, statistics);
    }
};

/// Scores are sums of products in float, whose error is a relative one of the exponentials, twice in a
/// quotient: head_dim 2^-24 times the magnitudes by fused multiply-adds, less in tensor cores, which cut off
/// what is below 2^-24 of the largest term of a block of 8 or 16. Weights are rounded to the format that
/// tiles have, and what is below its smallest number is lost; the exponentials, scalings, sums and the
/// quotient add a few 2^-24.
template <class Input, class... Operands>
double bound_of(const operands<Operands...>& it, const gpu_test::exact_row& row) {
    const double of_scores = static_cast<double>(it.of.head_dim + 4) * 0x1p-23 * row.magnitude;
    const double lost = std::is_same_v<Input, half> ? 0x1p-25 * static_cast<double>(it.of.keys) : 0;
    return 2 * of_scores + (sizeof(Input) == 2 ? unit<Input> : 0) + lost + 0x1p-20;
}

template <class Q, class K, class V, class Y, class Mask>
void check_exact(operands<Q, K, V, Y>& it, const Mask& mask) {
    using input = mp::detail::attention_input<Q, K, V>;
    double worst = 0, worst_sum = 0;
    for (std::ptrdiff_t head = 0; head < it.of.heads(); ++head) {
        for (std::ptrdiff_t query = 0; query < it.of.queries; ++query) {
            const auto row = gpu_test::exact_probabilities(it.of, it.q.view, it.k.view, mask, head, query);
            const double bound = bound_of<input>(it, row);
            for (std::ptrdiff_t c = 0; c < it.of.value_head_dim; ++c) {
                double exact = 0;
                for (std::ptrdiff_t key = 0; key < it.of.keys; ++key) {
                    exact += row.p[static_cast<std::size_t>(key)] * it.of.of_value(it.v.view, head, key, c);
                }
                const double error = std::fabs(it.of.of_result(it.y.view, head, query, c) - exact);
                worst = tests::larger_error(
                    worst, error / (bound + unit<Y> * std::fabs(exact) * (1 + bound) + 0x1p-25));
                if (std::isinf(row.log_sum)) CHECK(error == 0);
            }
            const double found =
                it.statistics[static_cast<std::size_t>(head * it.of.queries + query)].log_sum();
            if (std::isinf(row.log_sum)) {
                CHECK(found == row.log_sum);
                continue;
            }
            const double of_sum = static_cast<double>(it.of.head_dim + 4) * 0x1p-23 * row.magnitude +
                                  0x1p-21 + 0x1p-24 * std::fabs(row.log_sum);
            worst_sum = tests::larger_error(worst_sum, std::fabs(found - row.log_sum) / of_sum);
        }
    }
    CHECK(worst <= 1);
    CHECK(worst_sum <= 1);
    CHECK(it.y.is_contained());
}

template <class Q, class K = Q, class V = Q, class Y = Q>
void check_case(const attention_case& of, layout how = {}, std::uint64_t seed = 3) {
    CAPTURE(of.queries);
    CAPTURE(of.keys);
    operands<Q, K, V, Y> it(of, how);
    it.run(watched(simulated{.seed = seed}), absent);
    check_exact(it, absent);
}

template <class Value>
void check_lengths() {
    check_case<Value>({1, 1, 1, 1, {.key_heads = 1}});
    check_case<Value>({7, 33, 16, 8, {.key_heads = 1}});
    check_case<Value>({33, 65, 40, 24, {.key_heads = 1}});
    check_case<Value>({65, 7, 8, 65, {.key_heads = 1}});
    check_case<Value>({5, 130, 64, 64, {.key_heads = 1}});
    check_case<Value>({5, 130, 130, 20, {.key_heads = 1}});
    check_case<Value>({9, 20, 20, 130, {.key_heads = 1}});
}

TEST_CASE_TEMPLATE("attention is softmax(scale q k^T) v, for any sizes", Value, half, bfloat16, float) {
    check_lengths<Value>();
}

TEST_CASE("operands may have different formats, which are multiplied as floats") {
    const attention_case of{17, 70, 24, 12, {.heads = 2, .key_heads = 2}};
    check_case<half, bfloat16, float, half>(of);
    check_case<bfloat16, bfloat16, bfloat16, float>(of);
    check_case<mp::float8_e4m3fn, mp::float8_e4m3fn, mp::float8_e4m3fn, float>(of);
    check_case<mp::float8_e4m3fn, half, mp::float8_e4m3fn, half>(of);
    check_case<float, half, half, bfloat16>(of);
}

TEST_CASE_TEMPLATE("a causal mask counts from the first key or the last", Value, half, float) {
    for (const auto alignment : {causal_alignment::first_key, causal_alignment::last_key}) {
        check_case<Value>({70, 70, 8, 8, {.causal = true, .key_heads = 1, .alignment = alignment}});
        check_case<Value>({5, 75, 8, 8, {.causal = true, .key_heads = 1, .alignment = alignment}});
        // Aligned to the last key, the first queries see nothing.
        check_case<Value>({75, 6, 8, 8, {.causal = true, .key_heads = 1, .alignment = alignment}});
    }
}

TEST_CASE_TEMPLATE("heads lie one below the other or side by side, and groups share keys", Value, half,
                   float) {
    for (const auto where : {head_layout::stacked, head_layout::side_by_side}) {
        const std::ptrdiff_t batch = where == head_layout::stacked ? 1 : 2;
        for (const std::ptrdiff_t key_heads : {1, 2, 4}) {
            const attention_case of{
                9, 12, 24, 16, {.heads = 4, .layout = where, .batch = batch, .key_heads = key_heads}};
            check_case<Value>(of);
        }
    }
}

TEST_CASE_TEMPLATE("in every layout and on every schedule results have the same bits", Value, half, float) {
    const attention_case of{
        20, 67, 11, 9, {.heads = 2, .causal = true, .layout = head_layout::side_by_side, .key_heads = 1}};
    operands<Value> first(of);
    first.run(simulated{}, absent);
    std::uint64_t seed = 1;
    for (const layout& how : gpu_test::layouts) {
        operands<Value> again(of, how);
        again.run(watched(simulated{.seed = seed++}), absent);
        CHECK(same_bits(first.y, again.y));
        CHECK(first.statistics == again.statistics);
        CHECK(again.y.is_contained());
    }
    // Aligned heads take the asynchronous copies, others do not.
    const attention_case aligned{20, 67, 16, 8, {.key_heads = 1}};
    operands<Value> wide(aligned), narrow(aligned, {mp::storage_order::row_major, 0, 1});
    wide.run(simulated{}, absent);
    narrow.run(watched(simulated{.seed = 5}), absent);
    CHECK(same_bits(wide.y, narrow.y));
}

TEST_CASE("queries, keys and values are column blocks of one projection") {
    constexpr std::ptrdiff_t tokens = 37, width = 32;
    matrix<half> qkv(tokens, 3 * width), y(tokens, width);
    qkv.randomize(4, 2.0F);
    const mp::ops::attention_options options{
        .heads = 2, .causal = true, .layout = head_layout::side_by_side, .batch = 1};
    const auto part = [&](std::ptrdiff_t i) { return qkv.view.block(0, i * width, tokens, width); };
    mp::ops::scaled_dot_product_attention(simulated{}, part(0), part(1), part(2), absent, y.view, options);
    operands<half> apart({tokens,
                          tokens,
                          16,
                          16,
                          {.heads = 2, .causal = true, .layout = head_layout::side_by_side, .key_heads = 2}});
    apart.q.fill([&](auto r, auto c) { return part(0)(r, c); });
    apart.k.fill([&](auto r, auto c) { return part(1)(r, c); });
    apart.v.fill([&](auto r, auto c) { return part(2)(r, c); });
    apart.run(simulated{}, absent);
    CHECK(same_bits(y, apart.y));
}

TEST_CASE_TEMPLATE("masks are added, and -infinity takes keys out", Value, half, float) {
    for (const bool per_head : {false, true}) {
        for (const layout& how : {gpu_test::layouts[0], gpu_test::layouts[4]}) {
            const attention_case of{9, 70, 8, 5, {.heads = 2, .causal = per_head, .key_heads = 2}};
            operands<Value> it(of);
            matrix<half> mask((per_head ? 2 : 1) * of.queries, of.keys, how);
            mask.fill([&](auto r, auto c) {
                if (r == 4) return -infinity;  // sees nothing
                return (r + 2 * c) % 5 == 0 ? -infinity : 0.25F * static_cast<float>((r + c) % 3);
            });
            // What is hidden has no influence.
            it.k.view(64, 0) = static_cast<Value>(std::numeric_limits<float>::quiet_NaN());
            mask.fill(
                [&](auto r, auto c) { return c == 64 ? -infinity : static_cast<float>(mask.view(r, c)); });
            it.run(watched(simulated{.seed = 2}), mask.view);
            it.k.view(64, 0) = static_cast<Value>(0.0F);
            check_exact(it, mask.view);
        }
    }
}

TEST_CASE_TEMPLATE("scores that rise or fall all the way are scaled to the largest one", Value, half, float) {
    for (const float step : {1.0F, -1.0F, 20.0F}) {
        operands<Value> it({3, 300, 1, 2, {.scale = 1.0F, .key_heads = 1}});
        it.q.fill([](auto r, auto) { return static_cast<float>(r + 1); });
        it.k.fill([&](auto r, auto) { return step * static_cast<float>(r); });
        it.run(simulated{}, absent);
        // These scores are exact.
        for (std::ptrdiff_t query = 0; query < 3; ++query) {
            const auto row = gpu_test::exact_probabilities(it.of, it.q.view, it.k.view, absent, 0, query);
            double exact = 0;
            for (std::ptrdiff_t key = 0; key < 300; ++key) {
                exact += row.p[static_cast<std::size_t>(key)] * static_cast<double>(it.v.view(key, 0));
            }
            const double bound = (sizeof(Value) == 2 ? 2 * unit<Value> : 0) + 0x1p-20;
            CHECK(std::fabs(static_cast<double>(it.y.view(query, 0)) - exact) <= bound);
        }
    }
}

TEST_CASE_TEMPLATE("scores without a meaning make their row NaN, as on the CPU", Value, half, float) {
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    const attention_case of{6, 70, 1, 2, {.scale = 1.0F, .key_heads = 1}};
    operands<Value> it(of), expected(of);
    const std::vector<float> queries = {nan, infinity, -infinity, 1.0F, 0.0F, -nan};
    for (auto* m : {&it, &expected}) {
        m->q.fill([&](auto r, auto) { return queries[static_cast<std::size_t>(r)]; });
        m->k.fill([](auto, auto) { return 1.0F; });
    }
    it.run(simulated{}, absent);
    expected.run(mp::cpu{}, absent);
    for (std::size_t r = 0; r < 6; ++r) {
        const auto row = static_cast<std::ptrdiff_t>(r);
        CAPTURE(r);
        CHECK(gpu_test::is_nan(it.y.view(row, 1)) == gpu_test::is_nan(expected.y.view(row, 1)));
        CHECK(gpu_test::is_nan(it.statistics[r].max) == gpu_test::is_nan(expected.statistics[r].max));
    }
}

TEST_CASE_TEMPLATE("dropout drops what it drops on the CPU", Value, half, float) {
    // With the unit matrix as v, y has the probabilities.
    const std::uint64_t added = 6;  // in memory that a device reads, too
    for (const std::uint64_t offset : {0u, 3u}) {
        const attention_case of{
            9,
            70,
            8,
            70,
            {.heads = 2,
             .causal = true,
             .key_heads = 1,
             .alignment = causal_alignment::last_key,
             .dropout = {.probability = 0.4F, .seed = 99, .offset = offset, .added_offset = &added}}};
        operands<Value> it(of), expected(of);
        for (auto* m : {&it, &expected}) m->v.fill([](auto r, auto c) { return r == c ? 1.0F : 0.0F; });
        it.run(simulated{}, absent);
        expected.run(mp::cpu{}, absent);
        std::size_t different = 0, dropped = 0;
        double worst = 0;
        for (std::ptrdiff_t r = 0; r < 18; ++r) {
            for (std::ptrdiff_t c = 0; c < 70; ++c) {
                const auto a = static_cast<double>(it.y.view(r, c));
                const auto b = static_cast<double>(expected.y.view(r, c));
                different += (a == 0) != (b == 0) ? 1 : 0;
                dropped += b == 0 ? 1 : 0;
                worst = tests::larger_error(worst, std::fabs(a - b));
            }
        }
        CHECK(different == 0);
        CHECK(dropped > 400);
        CHECK(worst <= (sizeof(Value) == 2 ? 0x1p-10 : 0x1p-20));
    }
}

TEST_CASE("tensor cores without bfloat16 are replaced by fused multiply-adds") {
    operands<bfloat16> it({9, 70, 24, 12, {.key_heads = 1}});
    it.run(mp::simulated_gpu<mp::arch::sm_75>{}, absent);
    check_exact(it, absent);
    operands<half> of_half({9, 70, 24, 12, {.key_heads = 1}});
    of_half.run(mp::simulated_gpu<mp::arch::sm_75>{}, absent);
    check_exact(of_half, absent);
}

TEST_CASE("aligned heads are read in full sectors, and shared memory is free of conflicts") {
    operands<half> it({64, 128, 64, 64, {.key_heads = 1}});
    mp::simt::access_statistics statistics;
    it.run(simulated{.statistics = &statistics}, absent);
    CHECK(statistics.bank_conflicts() == 0);
}

TEST_CASE("wrong arguments are refused as on the CPU, and nothing is done for no elements") {
    matrix<half> q(4, 8), k(6, 8), v(6, 3), y(4, 3), narrow(4, 2);
    y.fill([](auto, auto) { return 5.0F; });
    const auto run = [&](const auto& exec, const auto& to, const mp::ops::attention_options& options) {
        mp::ops::scaled_dot_product_attention(exec, q.view, k.view, v.view, absent, to, options);
    };
    CHECK_THROWS_WITH_AS(run(simulated{}, narrow.view, {}),
                         "mp::ops::scaled_dot_product_attention: y.columns is 2; it must equal v.columns, "
                         "which is 3",
                         mp::argument_error);
    CHECK_THROWS_AS(run(simulated{}, y.view, {.heads = 3}), mp::argument_error);
    CHECK_THROWS_AS(run(simulated{}, y.view, {.scale = infinity}), mp::argument_error);
    CHECK(static_cast<float>(y.view(0, 0)) == 5.0F);
    const mp::matrix_view<half> empty{nullptr, 0, 8, 8}, nothing{nullptr, 0, 3, 3};
    // No queries; no keys, so zeros.
    mp::ops::scaled_dot_product_attention(simulated{}, empty, k.view, v.view, absent, nothing);
    mp::ops::scaled_dot_product_attention(simulated{}, q.view, empty, nothing, absent, y.view);
    CHECK(static_cast<float>(y.view(3, 2)) == 0.0F);
    // No head_dim: all keys alike.
    mp::ops::scaled_dot_product_attention(simulated{}, mp::row_major(q.view.data, 4, 0),
                                          mp::row_major(k.view.data, 6, 0), v.view, absent, y.view);
    double mean = 0;
    for (int r = 0; r < 6; ++r) mean += static_cast<double>(v.view(r, 1)) / 6;
    CHECK(std::fabs(static_cast<double>(y.view(2, 1)) - mean) < 0x1p-10);
}

}  // namespace
