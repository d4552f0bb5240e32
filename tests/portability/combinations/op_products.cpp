// SPDX-License-Identifier: MIT
// Ops that are matrix products: types of operands, policies, storage orders, activations, operands that are absent, cached or
// added to.
#include <mp/gemm.hpp>
#include <mp/nn/ops/linear.hpp>

#include "ops.hpp"

#include <utility>

namespace portability {

namespace {

namespace ops = mp::ops;

constexpr std::ptrdiff_t shapes[][3] = {{1, 1, 1},    {3, 5, 2},    {17, 33, 5},
                                        {64, 40, 33}, {2, 130, 70}, {5, 0, 3}};
constexpr ops::activation activations[] = {ops::activation::none, ops::activation::relu,
                                           ops::activation::gelu, ops::activation::gelu_tanh,
                                           ops::activation::silu};

/// Calls f(batch, in, out, orders, number) for each shape in all orders of three matrices.
template <class Function>
void for_each_shape(const Function& f) {
    unsigned number = 0;
    for (const auto& [batch, in, out] : shapes) {
        for (unsigned orders = 0; orders < 8; ++orders) f(batch, in, out, orders, number++);
    }
}

/// Runs a call with products in order, and as fast as the processor can.
template <class Function>
void run(combinations& to, const std::string& name, unsigned number, const Function& f) {
    mp::cpu exec = ordered_exec(number);
    add_outcome(to, name, [&] { f(exec, [&](const auto&... values) { to.add(name, values...); }); });
    if (number % 3 != 0) return;
    exec.products = mp::accumulation::fastest;
    add_outcome(to, name, [&] { f(exec, [&](const auto&... values) { to.add_local(name, values...); }); });
}

template <class Policy, class A, class B, class C>
void add_matmul(combinations& to) {
    const std::string name = "matmul." + type_names<A, B, C>();
    for_each_shape([&](auto m, auto k, auto n, unsigned orders, unsigned number) {
        const stored_matrix<A> a(m, k, (orders & 1U) != 0, number % 3, number, number % 5 == 2);
        const stored_matrix<B> b(k, n, (orders & 2U) != 0, number % 2, number + 1);
        const stored_matrix<C> before(m, n, (orders & 4U) != 0, 1, number + 2);
        run(to, name, number, [&](mp::cpu exec, auto keep) {
            stored_matrix<C> c = before;
            ops::matmul<Policy>(exec, a.view(), b.view(), c.view());
            keep(c.values);
            ops::matmul<Policy>(exec, a.view(), b.view(), ops::add_to(c.view()));
            keep(c.values);
        });
    });
}

template <class Policy, class X, class W, class B, class Y>
void add_linear(combinations& to) {
    const std::string name = "linear." + type_names<X, W, B, Y>();
    for_each_shape([&](auto batch, auto in, auto out, unsigned orders, unsigned number) {
        const stored_matrix<X> x(batch, in, (orders & 1U) != 0, number % 3, number, number % 5 == 2);
        const stored_matrix<W> w(out, in, (orders & 2U) != 0, number % 2, number + 1);
        const std::vector<B> b = numbers<B>(static_cast<std::size_t>(out), number + 2);
        for (const ops::activation act : activations) {
            run(to, name, number, [&](mp::cpu exec, auto keep) {
                stored_matrix<Y> y(batch, out, (orders & 4U) != 0, 1, number + 3);
                ops::linear<Policy>(exec, x.view(), w.view(), b, y.view(), act);
                keep(y.values);
            });
        }
    });
}

/// Without a bias, and with casts of the weights that are kept.
template <class X, class W>
void add_cached(combinations& to) {
    const std::string name = "linear.cached_" + type_names<X, W>();
    const mp::autocast::buffer_version version;
    for_each_shape([&](auto batch, auto in, auto out, unsigned orders, unsigned number) {
        const stored_matrix<X> x(batch, in, (orders & 1U) != 0, 0, number);
        stored_matrix<W> w(out, in, (orders & 2U) != 0, number % 2, number + 1);
        const std::vector<float> gradient = numbers<float>(static_cast<std::size_t>(batch * out), number + 3);
        for (unsigned call = 0; call < 3; ++call) {
            stored_matrix<X> y(batch, out, (orders & 4U) != 0, 1, number + 2);
            stored_matrix<X> dx(batch, in, false, 0, number + 4);
            const auto cached = mp::autocast::cached(std::as_const(w).view(), version);
            run(to, name, number, [&](mp::cpu exec, auto keep) {
                ops::linear(exec, x.view(), cached, ops::absent, y.view(), activations[call]);
                ops::linear_backward(exec, x.view(), cached, mp::row_major(gradient.data(), batch, out),
                                     dx.view(), ops::absent, ops::absent);
                keep(y.values, dx.values);
            });
            if (call == 1 && !w.values.empty()) {
                w.values.front() = w.values.back();
                version.changed();
            }
        }
        version.changed();
    });
}

/// With all gradients, some of them added to what is there, and with one of them.
template <class Policy, class X, class W, class DY>
void add_linear_backward(combinations& to) {
    const std::string name = "linear_backward." + type_names<X, W, DY>();
    for_each_shape([&](auto batch, auto in, auto out, unsigned orders, unsigned number) {
        const stored_matrix<X> x(batch, in, (orders & 1U) != 0, number % 3, number);
        const stored_matrix<W> w(out, in, (orders & 2U) != 0, number % 2, number + 1);
        const stored_matrix<DY> dy(batch, out, (orders & 4U) != 0, 0, number + 2, number % 5 == 2);
        run(to, name, number, [&](mp::cpu exec, auto keep) {
            stored_matrix<X> dx(batch, in, number % 3 == 0, 1, number + 3);
            stored_matrix<W> dw(out, in, number % 2 == 0, 0, number + 4);
            std::vector<float> db = numbers<float>(static_cast<std::size_t>(out), number + 5);
            ops::linear_backward<Policy>(exec, x.view(), w.view(), dy.view(), dx.view(), dw.view(), db);
            keep(dx.values, dw.values, db);
            ops::linear_backward<Policy>(exec, x.view(), w.view(), dy.view(), ops::absent,
                                         ops::add_to(dw.view()), ops::add_to(db));
            keep(dw.values, db);
        });
    });
}

template <class Policy, class X, class W, class Z>
void add_preactivations(combinations& to) {
    const std::string name = "linear_with_preactivation." + type_names<X, W, Z>();
    for_each_shape([&](auto batch, auto in, auto out, unsigned orders, unsigned number) {
        const stored_matrix<X> x(batch, in, (orders & 1U) != 0, number % 3, number);
        const stored_matrix<W> w(out, in, (orders & 2U) != 0, number % 2, number + 1);
        const std::vector<float> b = numbers<float>(static_cast<std::size_t>(out), number + 2);
        const stored_matrix<X> dy(batch, out, false, 0, number + 6);
        const stored_matrix<Z> before(batch, in, (orders & 4U) != 0, 0, number + 7);
        const ops::activation act = activations[1 + number % 4];  // of which relu is rejected
        run(to, name, number, [&](mp::cpu exec, auto keep) {
            stored_matrix<Z> z(batch, out, (orders & 4U) != 0, 1, number + 3);
            stored_matrix<X> y(batch, out, number % 2 == 0, 1, number + 4);
            ops::linear_with_preactivation<Policy>(exec, x.view(), w.view(), b, z.view(), y.view(), act);
            keep(z.values, y.values);
            stored_matrix<X> dz(batch, in, false, 1, number + 5);
            stored_matrix<W> dw(out, in, false, 0, number + 8);
            std::vector<float> db(b.size());
            ops::linear_backward_with_preactivation<Policy>(exec, x.view(), w.view(), dy.view(),
                                                            before.view(), dz.view(), dw.view(), db, act);
            keep(dz.values, dw.values, db);
        });
    });
}

}  // namespace

void add_op_product_combinations(combinations& to) {
    using mp::bfloat16, mp::half;
    in_regions([&]<class Policy>() {
        add_matmul<Policy, float, float, float>(to);
        add_matmul<Policy, half, half, half>(to);
        add_matmul<Policy, bfloat16, float, half>(to);
        add_matmul<Policy, mp::float8_e4m3fn, bfloat16, bfloat16>(to);
        add_linear<Policy, float, float, float, float>(to);
        add_linear<Policy, half, half, float, half>(to);
        add_linear<Policy, half, float, half, float>(to);
        add_linear<Policy, bfloat16, bfloat16, bfloat16, bfloat16>(to);
        add_linear<Policy, float, bfloat16, half, bfloat16>(to);
        add_linear<Policy, mp::float8_e5m2, custom_float, float, half>(to);
        add_linear<Policy, double, double, double, double>(to);
        add_cached<float, float>(to);
        add_cached<half, float>(to);
        add_linear_backward<Policy, float, float, float>(to);
        add_linear_backward<Policy, half, float, half>(to);
        add_linear_backward<Policy, bfloat16, bfloat16, half>(to);
        add_preactivations<Policy, float, float, float>(to);
        add_preactivations<Policy, half, half, float>(to);
    });
    under_policies([&]<class Policy>() {
        add_matmul<Policy, float, half, bfloat16>(to);
        add_linear<Policy, float, half, float, half>(to);
        add_linear_backward<Policy, bfloat16, float, float>(to);
    });
}

}  // namespace portability
