// SPDX-License-Identifier: MIT
// Heads where projections leave them, shared keys, caches of earlier keys, dropout: against the definition.
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/nn/ops/attention.hpp>
#include <mp/numbers/format/philox.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "reference.hpp"

namespace {

using mp::half;
using mp::storage_order;
using mp::ops::absent;
using mp::ops::attention_options;
using mp::ops::causal_alignment;
using mp::ops::head_layout;
using ops_test::cast;
using ops_test::matrix;
using ops_test::message_of;
using ops_test::same_bits;
namespace ac = mp::autocast;

constexpr auto side_by_side = head_layout::side_by_side;

/// Sizes of a problem, whatever its layout.
struct shape {
    std::ptrdiff_t batch, heads, key_heads, queries, keys, head_dim, value_head_dim;
};

/// Attention in double by its definition, element by element.
struct definition {
    shape size;
    attention_options options;
    matrix<double> q, k, v, dy, mask;

    definition(const shape& s, const attention_options& o)
        : size(s),
          options(o),
          q(rows(s.heads, s.queries), columns(s.heads, s.head_dim)),
          k(rows(s.key_heads, s.keys), columns(s.key_heads, s.head_dim)),
          v(rows(s.key_heads, s.keys), columns(s.key_heads, s.value_head_dim)),
          dy(rows(s.heads, s.queries), columns(s.heads, s.value_head_dim)),
          mask(s.batch * s.heads * s.queries, s.keys) {
        unsigned seed = 1;
        for (auto* m : {&q, &k, &v, &dy}) {
            m->randomize(seed++);
            m->fill([&](auto r, auto c) { return static_cast<double>(half(m->view(r, c))); });
        }
        mask.fill([](auto, auto) { return 0.0; });
    }

    std::ptrdiff_t rows(std::ptrdiff_t heads, std::ptrdiff_t tokens) const {
        return size.batch * tokens * (options.layout == side_by_side ? 1 : heads);
    }
    std::ptrdiff_t columns(std::ptrdiff_t heads, std::ptrdiff_t head_dim) const {
        return head_dim * (options.layout == side_by_side ? heads : 1);
    }
    /// Element c of a token of a head of a sequence.
    template <class Value>
    Value& at(const mp::matrix_view<Value>& m, std::ptrdiff_t sequence, std::ptrdiff_t head,
              std::ptrdiff_t token, std::ptrdiff_t c, std::ptrdiff_t heads, std::ptrdiff_t tokens,
              std::ptrdiff_t head_dim) const {
        return options.layout == side_by_side ? m(sequence * tokens + token, head * head_dim + c)
                                              : m((sequence * heads + head) * tokens + token, c);
    }
    bool sees(std::ptrdiff_t row, std::ptrdiff_t query, std::ptrdiff_t key) const {
        if (std::isinf(mask.view(row, key))) return false;
        if (!options.causal) return true;
        return options.alignment == causal_alignment::first_key
                   ? key <= query
                   : size.keys - 1 - key >= size.queries - 1 - query;
    }

    /// The results of a query of a head of a sequence.
    std::vector<double> output(std::ptrdiff_t sequence, std::ptrdiff_t head, std::ptrdiff_t query) const {
        const std::ptrdiff_t key_head = head / (size.heads / size.key_heads);
        const std::ptrdiff_t row = (sequence * size.heads + head) * size.queries + query;
        std::vector<double> p(static_cast<std::size_t>(size.keys));
        double sum = 0;
        for (std::ptrdiff_t key = 0; key < size.keys; ++key) {
            if (!sees(row, query, key)) continue;
            double score = 0;
            for (std::ptrdiff_t c = 0; c < size.head_dim; ++c) {
                score += at(q.view, sequence, head, query, c, size.heads, size.queries, size.head_dim) *
                         at(k.view, sequence, key_head, key, c, size.key_heads, size.keys, size.head_dim);
            }
            auto& value = p[static_cast<std::size_t>(key)];
            value = std::exp(score / std::sqrt(static_cast<double>(size.head_dim)) + mask.view(row, key));
            sum += value;
        }
        std::vector<double> result(static_cast<std::size_t>(size.value_head_dim));
        if (sum == 0) return result;
        const double probability = static_cast<double>(options.dropout.probability);
        for (std::ptrdiff_t key = 0; key < size.keys; ++key) {
            const auto index = static_cast<std::uint64_t>(row * size.keys + key);
            const std::uint64_t* const added = options.dropout.added_offset;
            const auto word = mp::random_bits(
                options.dropout.seed, options.dropout.offset + (added == nullptr ? 0 : *added) + index);
            if (static_cast<double>(word) < probability * 0x1p32) continue;
            for (std::ptrdiff_t c = 0; c < size.value_head_dim; ++c) {
                result[static_cast<std::size_t>(c)] +=
                    p[static_cast<std::size_t>(key)] / sum / (1 - probability) *
                    at(v.view, sequence, key_head, key, c, size.key_heads, size.keys, size.value_head_dim);
            }
        }
        return result;
    }
    template <class Function>
    void for_each_query(Function f) const {
        for (std::ptrdiff_t sequence = 0; sequence < size.batch; ++sequence) {
            for (std::ptrdiff_t head = 0; head < size.heads; ++head) {
                for (std::ptrdiff_t query = 0; query < size.queries; ++query) f(sequence, head, query);
            }
        }
    }
    double loss() const {
        double sum = 0;
        for_each_query([&](auto sequence, auto head, auto query) {
            const auto y = output(sequence, head, query);
            for (std::ptrdiff_t c = 0; c < size.value_head_dim; ++c) {
                sum += y[static_cast<std::size_t>(c)] *
                       at(dy.view, sequence, head, query, c, size.heads, size.queries, size.value_head_dim);
            }
        });
        return sum;
    }
};

/// y against the definition, and dq, dk and dv against its central differences.
void check(const shape& size, attention_options options, bool masked) {
    definition exact(size, options);
    if (masked) {
        exact.mask.fill([](auto r, auto c) {
            return r == 1 || (r + c) % 4 == 0 ? -std::numeric_limits<double>::infinity()
                                              : 0.5 * static_cast<double>(c % 3);
        });
    }
    const auto q = cast<half>(exact.q), k = cast<half>(exact.k), v = cast<half>(exact.v);
    const auto dy = cast<half>(exact.dy);
    const auto mask = cast<float>(exact.mask);
    const auto like = [](const auto& m) { return matrix<float>(m.view.rows, m.view.columns, 1); };
    matrix<float> y = like(dy), dq = like(q), dk = like(k), dv = like(v);
    std::vector<mp::ops::softmax_statistics> statistics(
        static_cast<std::size_t>(size.batch * size.heads * size.queries));
    mp::ops::scaled_dot_product_attention<ac::off>(mp::cpu{}, q.view, k.view, v.view, mask.view, y.view,
                                                   options, statistics);
    bool y_is_right = true;
    exact.for_each_query([&](auto sequence, auto head, auto query) {
        const auto expected = exact.output(sequence, head, query);
        for (std::ptrdiff_t c = 0; c < size.value_head_dim; ++c) {
            const float found =
                exact.at(y.view, sequence, head, query, c, size.heads, size.queries, size.value_head_dim);
            // The exponentials are rounded to half, the format of v.
            y_is_right = y_is_right && std::abs(static_cast<double>(found) -
                                                expected[static_cast<std::size_t>(c)]) < 1.5e-3;
        }
    });
    CHECK(y_is_right);
    CHECK(y.padding_is_untouched());
    for (const bool saved : {true, false}) {
        if (!saved) statistics.clear();
        mp::ops::scaled_dot_product_attention_backward<ac::off>(mp::cpu{}, q.view, k.view, v.view, mask.view,
                                                                dy.view, dq.view, dk.view, dv.view, options,
                                                                statistics);
        bool close = true;
        const auto compare = [&](const matrix<float>& found, matrix<double>& variable) {
            for (std::ptrdiff_t r = 0; r < variable.view.rows; ++r) {
                for (std::ptrdiff_t c = 0; c < variable.view.columns; ++c) {
                    const double expected =
                        ops_test::derivative(variable.view(r, c), [&] { return exact.loss(); }, 0x1p-13);
                    close = close && std::abs(static_cast<double>(found.view(r, c)) - expected) < 4e-6;
                }
            }
        };
        compare(dq, exact.q);
        compare(dk, exact.k);
        compare(dv, exact.v);
        CHECK(close);
        CHECK(dk.padding_is_untouched());
    }
}

constexpr std::uint64_t added_offset = 101;

TEST_CASE(
    "every layout, group of heads, causal alignment and dropout is the definition's, with its gradients") {
    for (int bits = 0; bits < 64; ++bits) {
        const bool stacked = (bits & 1) != 0, grouped = (bits & 2) != 0, drops = (bits & 4) != 0;
        const bool causal = (bits & 8) != 0, last = (bits & 16) != 0, masked = (bits & 32) != 0;
        if (last && !causal) continue;
        CAPTURE(bits);
        // More queries than keys, so that the first of them see nothing from the last key's side, and fewer.
        for (const std::ptrdiff_t keys : {2, 5}) {
            const shape size{.batch = 2,
                             .heads = 2,
                             .key_heads = grouped ? 1 : 2,
                             .queries = 3,
                             .keys = keys,
                             .head_dim = 2,
                             .value_head_dim = 3};
            attention_options options{
                .causal = causal,
                .alignment = last ? causal_alignment::last_key : causal_alignment::first_key,
                .dropout = {.probability = drops ? 0.25F : 0.0F,
                            .seed = 11,
                            .offset = 900,
                            .added_offset = &added_offset}};
            options.heads = stacked ? size.batch * size.heads : size.heads;
            options.key_heads = grouped ? (stacked ? size.batch * size.key_heads : size.key_heads) : 0;
            if (!stacked) {
                options.layout = side_by_side;
                options.batch = size.batch;
            }
            check(size, options, masked);
        }
    }
}

/// A problem of several blocks of queries in one matrix of queries, keys and values, as one projection leaves it.
struct fused {
    static constexpr std::ptrdiff_t batch = 2, heads = 3, tokens = 100, head_dim = 8,
                                    width = heads * head_dim;
    matrix<float> qkv{batch * tokens, 3 * width, 5}, dy{batch * tokens, width, 2};
    attention_options options{.heads = heads,
                              .causal = true,
                              .layout = side_by_side,
                              .batch = batch,
                              .dropout = {.probability = 0.1F, .seed = 3}};

    fused() {
        qkv.randomize(1);
        dy.randomize(2);
    }
    template <class Value>
    static auto part(const matrix<Value>& m, std::ptrdiff_t which) {
        return m.view.block(0, which * width, batch * tokens, width);
    }
};

struct fused_results {
    matrix<float> y{fused::batch * fused::tokens, fused::width};
    matrix<float> dqkv{fused::batch * fused::tokens, 3 * fused::width, 1};
    std::vector<mp::ops::softmax_statistics> statistics =
        std::vector<mp::ops::softmax_statistics>(fused::batch * fused::heads * fused::tokens);

    template <class Policy, class Value>
    void run(mp::cpu exec, const matrix<Value>& qkv, const matrix<Value>& dy,
             const attention_options& options) {
        mp::ops::scaled_dot_product_attention<Policy>(exec, fused::part(qkv, 0), fused::part(qkv, 1),
                                                      fused::part(qkv, 2), absent, y.view, options,
                                                      statistics);
        mp::ops::scaled_dot_product_attention_backward<Policy>(
            exec, fused::part(qkv, 0), fused::part(qkv, 1), fused::part(qkv, 2), absent, dy.view,
            fused::part(dqkv, 0), fused::part(dqkv, 1), fused::part(dqkv, 2), options, statistics);
    }
    bool operator==(const fused_results& other) const {
        return same_bits(y, other.y) && same_bits(dqkv, other.dqkv) && statistics == other.statistics;
    }
};

TEST_CASE("heads are read and written where a fused projection has them, with the bits of stacked heads") {
    const fused p;
    fused_results in_place;
    in_place.run<ac::off>({.products = mp::accumulation::ordered}, p.qkv, p.dy, p.options);
    CHECK(in_place.dqkv.padding_is_untouched());

    constexpr std::ptrdiff_t all = fused::batch * fused::heads;
    const auto for_each = [](auto f) {
        for (std::ptrdiff_t h = 0; h < all; ++h) {
            for (std::ptrdiff_t t = 0; t < fused::tokens; ++t) {
                for (std::ptrdiff_t c = 0; c < fused::head_dim; ++c) {
                    f(h * fused::tokens + t, c, h / fused::heads * fused::tokens + t,
                      h % fused::heads * fused::head_dim + c);
                }
            }
        }
    };
    std::vector<matrix<float>> stacked;  // q, k, v, dy, y, dq, dk, dv
    for (int i = 0; i < 8; ++i) stacked.emplace_back(all * fused::tokens, fused::head_dim);
    for_each([&](auto r, auto c, auto row, auto column) {
        for (std::ptrdiff_t i = 0; i < 3; ++i) {
            stacked[static_cast<std::size_t>(i)].view(r, c) = fused::part(p.qkv, i)(row, column);
        }
        stacked[3].view(r, c) = p.dy.view(row, column);
    });
    attention_options options{.heads = all, .causal = true, .dropout = p.options.dropout};
    std::vector<mp::ops::softmax_statistics> statistics(static_cast<std::size_t>(all * fused::tokens));
    const mp::cpu exec{.products = mp::accumulation::ordered};
    const auto view = [&](std::size_t i) { return stacked[i].view; };
    mp::ops::scaled_dot_product_attention(exec, view(0), view(1), view(2), absent, view(4), options,
                                          statistics);
    mp::ops::scaled_dot_product_attention_backward(exec, view(0), view(1), view(2), absent, view(3), view(5),
                                                   view(6), view(7), options, statistics);
    CHECK(statistics == in_place.statistics);
    bool same = true;
    for_each([&](auto r, auto c, auto row, auto column) {
        same = same && view(4)(r, c) == in_place.y.view(row, column);
        for (std::ptrdiff_t i = 0; i < 3; ++i) {
            same = same &&
                   view(static_cast<std::size_t>(5 + i))(r, c) == fused::part(in_place.dqkv, i)(row, column);
        }
    });
    CHECK(same);
}

TEST_CASE("heads side by side, shared keys and dropout do not depend on the number of threads") {
    fused p;
    fused_results one, three;
    one.run<ac::off>({.threads = 1}, p.qkv, p.dy, p.options);
    three.run<ac::off>({.threads = 3}, p.qkv, p.dy, p.options);
    CHECK(one == three);

    // Three heads of q over one of k and v, so that sums over the group are made.
    p.options.key_heads = 1;
    const auto run = [&](int threads) {
        const mp::cpu exec{.threads = threads};
        const auto q = fused::part(p.qkv, 0);
        const auto k = fused::part(p.qkv, 1).block(0, 0, 200, 8),
                   v = fused::part(p.qkv, 2).block(0, 0, 200, 8);
        matrix<float> dk(200, 8), dv(200, 8), dq(200, 24), y(200, 24);
        mp::ops::scaled_dot_product_attention(exec, q, k, v, absent, y.view, p.options);
        mp::ops::scaled_dot_product_attention_backward(exec, q, k, v, absent, p.dy.view, dq.view, dk.view,
                                                       dv.view, p.options);
        std::vector<float> all = y.elements;
        for (const auto* m : {&dq, &dk, &dv}) all.insert(all.end(), m->elements.begin(), m->elements.end());
        return all;
    };
    CHECK(run(1) == run(3));
}

TEST_CASE("autocast of heads in one matrix equals casting it by hand, bit for bit") {
    const fused p;
    fused_results region, by_hand, plain;
    {
        const mp::autocast_region fp16(mp::precision::fp16);
        region.run<ac::by_region>(mp::cpu{}, p.qkv, p.dy, p.options);
    }
    by_hand.run<ac::off>(mp::cpu{}, cast<half>(p.qkv), cast<half>(p.dy), p.options);
    plain.run<ac::off>(mp::cpu{}, p.qkv, p.dy, p.options);
    CHECK(region.statistics == by_hand.statistics);
    CHECK(same_bits(region.y, cast<half>(by_hand.y)));
    CHECK(same_bits(region.dqkv, cast<half>(by_hand.dqkv)));
    CHECK_FALSE(same_bits(region.y, plain.y));
}

TEST_CASE("gradients of a fused projection can be added where they lie") {
    const fused p;
    fused_results once;
    once.run<ac::off>(mp::cpu{}, p.qkv, p.dy, p.options);
    matrix<float> sums(fused::batch * fused::tokens, 3 * fused::width);
    sums.fill([](auto, auto) { return 1.0F; });
    mp::ops::scaled_dot_product_attention_backward(
        mp::cpu{}, fused::part(p.qkv, 0), fused::part(p.qkv, 1), fused::part(p.qkv, 2), absent, p.dy.view,
        mp::ops::add_to(fused::part(sums, 0)), mp::ops::add_to(fused::part(sums, 1)),
        mp::ops::add_to(fused::part(sums, 2)), p.options, once.statistics);
    bool same = true;
    for (std::ptrdiff_t r = 0; r < sums.view.rows; ++r) {
        for (std::ptrdiff_t c = 0; c < sums.view.columns; ++c) {
            same = same && sums.view(r, c) == 1.0F + once.dqkv.view(r, c);
        }
    }
    CHECK(same);
}

TEST_CASE("queries beside a cache of earlier keys have the rows of the whole sequence") {
    const fused p;
    attention_options options = p.options;
    options.batch = 1;
    options.dropout = {.probability = 0};
    options.alignment = causal_alignment::last_key;
    matrix<float> whole(fused::tokens, fused::width), cached(7, fused::width);
    const auto first = [](auto view) { return view.block(0, 0, fused::tokens, fused::width); };
    const auto q = first(fused::part(p.qkv, 0)), k = first(fused::part(p.qkv, 1));
    const auto v = first(fused::part(p.qkv, 2));
    const mp::cpu exec{.products = mp::accumulation::ordered};
    mp::ops::scaled_dot_product_attention(exec, q, k, v, absent, whole.view, options);
    mp::ops::scaled_dot_product_attention(exec, q.block(fused::tokens - 7, 0, 7, fused::width), k, v, absent,
                                          cached.view, options);
    bool close = true;
    for (std::ptrdiff_t r = 0; r < 7; ++r) {
        for (std::ptrdiff_t c = 0; c < fused::width; ++c) {
            const float difference = cached.view(r, c) - whole.view(fused::tokens - 7 + r, c);
            close = close && std::abs(difference) < 1e-6F;
        }
    }
    CHECK(close);
}

TEST_CASE("a dropout of everything gives zeros, and of nothing the bits without it") {
    fused p;
    fused_results none, without;
    p.options.dropout = {.probability = 0, .seed = 5, .offset = 77};
    none.run<ac::off>(mp::cpu{}, p.qkv, p.dy, p.options);
    p.options.dropout = {.probability = 0};
    without.run<ac::off>(mp::cpu{}, p.qkv, p.dy, p.options);
    CHECK(none == without);
    p.options.dropout = {.probability = 1};
    fused_results all;
    all.run<ac::off>(mp::cpu{}, p.qkv, p.dy, p.options);
    CHECK(all.statistics == without.statistics);
    matrix<float> zeros(fused::batch * fused::tokens, 3 * fused::width);
    zeros.fill([](auto, auto) { return 0.0F; });
    bool zero = true;
    for (const float x : all.y.elements) zero = zero && x == 0;
    for (std::ptrdiff_t r = 0; r < zeros.view.rows; ++r) {
        for (std::ptrdiff_t c = 0; c < zeros.view.columns; ++c) zero = zero && all.dqkv.view(r, c) == 0;
    }
    CHECK(zero);
}

TEST_CASE("attention names the option that does not fit the heads, and writes nothing") {
    matrix<float> q(6, 8), k(6, 4), v(6, 6), y(6, 12), mask(12, 3);
    for (auto* m : {&q, &k, &v, &mask}) m->randomize(1);
    const attention_options good{.heads = 4, .layout = side_by_side, .batch = 2, .key_heads = 2};
    const auto fails = [&](attention_options options, auto qv, auto kv, auto vv, auto yv, const auto& mv,
                           std::span<mp::ops::softmax_statistics> rows = {}) {
        std::string message = message_of(
            [&] { mp::ops::scaled_dot_product_attention(mp::cpu{}, qv, kv, vv, mv, yv, options, rows); });
        CHECK(y.elements == std::vector<float>(72, -88.0F));
        REQUIRE(message.starts_with("mp::ops::scaled_dot_product_attention: "));
        return message.substr(39);
    };
    const auto option = [&](auto change) {
        attention_options options = good;
        change(options);
        return fails(options, q.view, k.view, v.view, y.view, absent);
    };
    CHECK(option([](auto& o) { o.batch = 0; }) == "options.batch is 0; it must be at least 1");
    CHECK(option([](auto& o) { o.batch = 4; }) ==
          "q.rows is 6; it must be a multiple of options.batch, which is 4");
    CHECK(option([](auto& o) { o.layout = head_layout::stacked; }) ==
          "options.batch is 2; it must be 1 where heads are stacked; options.heads are those of all "
          "sequences then");
    CHECK(option([](auto& o) { o.key_heads = -1; }) == "options.key_heads is -1; it must not be negative");
    CHECK(option([](auto& o) { o.key_heads = 3; }) ==
          "options.heads is 4; it must be a multiple of options.key_heads, which is 3");
    CHECK(option([](auto& o) { o.heads = 6; }) ==
          "q.columns is 8; it must be a multiple of options.heads, which is 6");
    CHECK(option([](auto& o) { o.key_heads = 4; }) ==
          "v.columns is 6; it must be a multiple of options.key_heads, which is 4");
    CHECK(option([](auto& o) { o.key_heads = 1; }) ==
          "k.columns is 4; it must equal options.key_heads * q.columns / options.heads, which is 2");
    CHECK(option([](auto& o) { o.dropout.probability = 1.5F; }) ==
          "options.dropout.probability is 1.5; it must be from 0 to 1");
    CHECK(fails(good, q.view, k.view.block(0, 0, 4, 4), v.view, y.view, absent) ==
          "v.rows is 6; it must equal k.rows, which is 4");
    CHECK(fails(good, q.view, k.view, v.view, y.view.block(0, 0, 6, 6), absent) ==
          "y.columns is 6; it must equal options.heads * v.columns / options.key_heads, which is 12");
    CHECK(fails(good, q.view, k.view, v.view, y.view, mask.view) ==
          "mask.rows is 12; it must be q.rows / options.batch, which is 3, or q.rows * options.heads, which "
          "is 24");
    CHECK(fails(good, q.view, k.view, v.view, y.view, mask.view.block(0, 0, 3, 2)) ==
          "mask.columns is 2; it must equal k.rows / options.batch, which is 3");
    std::vector<mp::ops::softmax_statistics> rows(6);
    CHECK(fails(good, q.view, k.view, v.view, y.view, absent, rows) ==
          "statistics.size() is 6; it must equal q.rows * options.heads, which is 24");
}

}  // namespace
