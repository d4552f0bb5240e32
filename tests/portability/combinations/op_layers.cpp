// SPDX-License-Identifier: MIT
// Ops of layers: convolution, attention, embeddings, pooling, rotary embeddings and rearrangements.
#include <mp/nn/ops/attention.hpp>
#include <mp/nn/ops/convolution.hpp>
#include <mp/nn/ops/embedding.hpp>
#include <mp/nn/ops/pooling.hpp>
#include <mp/nn/ops/rearrange.hpp>
#include <mp/nn/ops/rotary_embedding.hpp>

#include "ops.hpp"

#include <tuple>
#include <utility>

namespace portability {

namespace {

namespace ops = mp::ops;

template <class Policy, class X, class W, class B>
void add_convolution(combinations& to) {
    const std::string name = "conv2d." + type_names<X, W, B>();
    unsigned number = 0;
    for (const std::ptrdiff_t channels : {1, 2, 4}) {
        for (const int kernel : {1, 2, 3}) {
            for (const int stride : {1, 2}) {
                ++number;
                const ops::conv2d_geometry geometry{.channels = channels,
                                                    .height = 6,
                                                    .width = 7,
                                                    .kernel = {kernel, kernel},
                                                    .stride = {stride, stride},
                                                    .padding = {kernel / 2, kernel / 2}};
                const std::ptrdiff_t across = (7 + 2 * (kernel / 2) - kernel) / stride + 1;
                const std::ptrdiff_t pixels = ((6 + 2 * (kernel / 2) - kernel) / stride + 1) * across;
                const stored_matrix<X> x(3, channels * 42, false, 0, number, number % 5 == 2);
                const stored_matrix<W> w(5, channels * kernel * kernel, false, 0, number + 1);
                const std::vector<B> b = numbers<B>(5, number + 2);
                stored_matrix<X> y(3, 5 * pixels, false, 0, number + 3);
                const stored_matrix<X> dy(3, 5 * pixels, false, 0, number + 4);
                stored_matrix<X> dx(3, channels * 42, false, 0, number + 5);
                stored_matrix<W> dw(5, channels * kernel * kernel, false, 0, number + 6);
                std::vector<B> db(5);
                const mp::cpu exec = ordered_exec(number);
                add_outcome(to, name, [&] {
                    ops::conv2d<Policy>(exec, x.view(), w.view(), b, y.view(), geometry);
                    to.add(name, y.values);
                    ops::conv2d_backward<Policy>(exec, x.view(), w.view(), dy.view(), dx.view(),
                                                 ops::add_to(dw.view()), db, geometry);
                    to.add(name, dx.values, dw.values, db);
                });
            }
        }
    }
}

template <class Policy, class Q, class V, class Y>
void add_attention(combinations& to) {
    const std::string name = "attention." + type_names<Q, V, Y>();
    unsigned number = 0;
    for (const std::ptrdiff_t queries : {1, 5, 17}) {
        for (const std::ptrdiff_t size : {1, 8, 33}) {
            for (const bool causal : {false, true}) {
                ++number;
                const std::ptrdiff_t keys = queries + 2;
                const ops::attention_options options{.heads = 2, .causal = causal};
                const stored_matrix<Q> q(2 * queries, size, number % 3 == 0, 1, number);
                const stored_matrix<Q> k(2 * keys, size, number % 4 == 0, 0, number + 1);
                const stored_matrix<V> v(2 * keys, 7, number % 5 == 0, 2, number + 2, number % 5 == 1);
                const stored_matrix<float> mask(queries, keys, false, 0, number + 3);
                const stored_matrix<Y> dy(2 * queries, 7, false, 0, number + 4);
                stored_matrix<Y> y(2 * queries, 7, number % 2 == 0, 1, number + 5);
                stored_matrix<Q> dq(2 * queries, size, false, 0, number + 6);
                stored_matrix<Q> dk(2 * keys, size, false, 1, number + 7);
                stored_matrix<V> dv(2 * keys, 7, true, 0, number + 8);
                const mp::cpu exec = ordered_exec(number);
                add_outcome(to, name, [&] {
                    ops::scaled_dot_product_attention<Policy>(exec, q.view(), k.view(), v.view(), mask.view(),
                                                              y.view(), options);
                    to.add(name, y.values);
                    ops::scaled_dot_product_attention_backward<Policy>(
                        exec, q.view(), k.view(), v.view(), mask.view(), dy.view(), dq.view(),
                        ops::add_to(dk.view()), dv.view(), options);
                    to.add(name, dq.values, dk.values, dv.values);
                });
            }
        }
    }
}

template <class Policy, class T, class Y>
void add_embedding(combinations& to) {
    const std::string name = "embedding." + type_names<T, Y>();
    for_each_op_shape([&](auto rows, auto columns, bool by_column, unsigned number) {
        const stored_matrix<T> table(11, columns, by_column, number % 3, number, number % 3 == 1);
        const stored_matrix<Y> dy(rows, columns, number % 4 < 2, 1, number + 1);
        stored_matrix<Y> y(rows, columns, by_column, number % 2, number + 2);
        stored_matrix<T> dtable(11, columns, by_column, 2, number + 3);
        generator random(number);
        std::vector<int> indices(static_cast<std::size_t>(rows));
        for (int& index : indices) index = static_cast<int>(random.next() % 11);
        const mp::cpu exec = ordered_exec(number);
        add_outcome(to, name, [&] {
            ops::embedding<Policy>(exec, table.view(), indices, y.view());
            to.add(name, y.values);
            ops::embedding_backward<Policy>(exec, indices, dy.view(), dtable.view());
            to.add(name, dtable.values);
            ops::embedding_backward<Policy>(exec, indices, dy.view(), ops::add_to(dtable.view()));
            to.add(name, dtable.values);
        });
    });
}

template <class Policy, class X, class Y>
void add_pooling(combinations& to) {
    for (const int size : {1, 2, 3}) {
        const ops::pool2d_geometry geometry{.channels = 2,
                                            .height = 6,
                                            .width = 7,
                                            .kernel = {size, size},
                                            .stride = {2, 2},
                                            .padding = {size / 2, size / 2}};
        const std::ptrdiff_t across = (7 + 2 * (size / 2) - size) / 2 + 1;
        const std::ptrdiff_t pixels = ((6 + 2 * (size / 2) - size) / 2 + 1) * across;
        const auto number = static_cast<unsigned>(size);
        const stored_matrix<X> x(3, 84, false, 0, number, size == 2);
        const stored_matrix<Y> dy(3, 2 * pixels, false, 0, number + 1);
        stored_matrix<Y> y(3, 2 * pixels, false, 0, number + 2);
        stored_matrix<X> dx(3, 84, false, 0, number + 3);
        const mp::cpu exec = ordered_exec(number);
        const std::string name = "pool2d." + type_names<X, Y>();
        add_outcome(to, name, [&] {
            ops::max_pool2d<Policy>(exec, x.view(), y.view(), geometry);
            ops::max_pool2d_backward<Policy>(exec, x.view(), dy.view(), dx.view(), geometry);
            to.add(name, y.values, dx.values);
            for (const auto over : {ops::average_over::pixels_inside, ops::average_over::whole_window}) {
                ops::average_pool2d<Policy>(exec, x.view(), y.view(), geometry, over);
                ops::average_pool2d_backward<Policy>(exec, dy.view(), dx.view(), geometry, over);
                to.add(name, y.values, dx.values);
            }
        });
    }
}

template <class Policy, class X, class Y>
void add_rearrangements(combinations& to) {
    for (unsigned number = 0; number < 6; ++number) {
        const bool by_column = number % 2 == 1;
        const mp::cpu exec = ordered_exec(number);
        const stored_matrix<X> x(10, 24, by_column, number, number);
        stored_matrix<Y> y(10, 24, by_column, 1, number + 1);
        const stored_matrix<Y> dy(10, 24, !by_column, 0, number + 2);
        stored_matrix<X> dx(10, 24, by_column, 0, number + 3);
        std::string name = "rotary_embedding." + type_names<X, Y>();
        const ops::rotary_options turned{
            .heads = 3,
            .layout = ops::head_layout::side_by_side,
            .batch = 2,
            .pairing = number < 3 ? ops::rotary_pairing::half_split : ops::rotary_pairing::interleaved,
            .rotated = 6,
            .first_position = 1000};
        add_outcome(to, name, [&] {
            ops::rotary_embedding<Policy>(exec, x.view(), y.view(), turned);
            ops::rotary_embedding_backward<Policy>(exec, dy.view(), dx.view(), turned);
            to.add(name, y.values, dx.values);
        });
        name = "rearrange." + type_names<X, Y>();
        stored_matrix<Y> heads(30, 8, by_column, 0, number + 4);
        add_outcome(to, name, [&] {
            const ops::permute_heads_options options{.heads = 3, .batch = 2};
            ops::permute_heads<Policy>(exec, x.view(), heads.view(), options);
            ops::permute_heads_backward<Policy>(exec, std::as_const(heads).view(), ops::add_to(dx.view()),
                                                options);
            to.add(name, heads.values, dx.values);
        });
        for (const auto along : {ops::parts_along::rows, ops::parts_along::columns}) {
            const bool rows = along == ops::parts_along::rows;
            stored_matrix<Y> whole(rows ? 20 : 10, rows ? 24 : 48, by_column, 1, number + 5);
            add_outcome(to, name, [&] {
                ops::concatenate<Policy>(exec, along, std::tuple(x.view(), dy.view()), whole.view());
                ops::split<Policy>(exec, along, std::as_const(whole).view(),
                                   std::tuple(ops::add_to(dx.view()), y.view()));
                to.add(name, whole.values, dx.values, y.values);
            });
        }
    }
}

}  // namespace

void add_layer_op_combinations(combinations& to) {
    using mp::bfloat16, mp::half;
    in_regions([&]<class Policy>() {
        add_convolution<Policy, float, float, float>(to);
        add_convolution<Policy, half, float, half>(to);
        add_convolution<Policy, bfloat16, bfloat16, float>(to);
        add_attention<Policy, float, float, float>(to);
        add_attention<Policy, half, half, half>(to);
        add_attention<Policy, bfloat16, float, bfloat16>(to);
        add_embedding<Policy, float, float>(to);
        add_embedding<Policy, float, half>(to);
        add_embedding<Policy, bfloat16, bfloat16>(to);
        add_pooling<Policy, float, half>(to);
        add_pooling<Policy, bfloat16, bfloat16>(to);
        add_rearrangements<Policy, float, float>(to);
        add_rearrangements<Policy, half, float>(to);
    });
    under_policies([&]<class Policy>() {
        add_convolution<Policy, float, half, float>(to);
        add_attention<Policy, float, half, float>(to);
        add_embedding<Policy, half, float>(to);
    });
}

}  // namespace portability
