// SPDX-License-Identifier: MIT
// Ops on single elements, forward and backward: types of operands and results, policies and storage orders.
#include <mp/nn/ops/activations.hpp>
#include <mp/nn/ops/arithmetic.hpp>
#include <mp/nn/ops/dropout.hpp>

#include "ops.hpp"

namespace portability {

namespace {

namespace ops = mp::ops;

/// Calls forward(exec, x, y) and backward(exec, x, dy, dx) for each shape.
template <class X, class Y, class Forward, class Backward>
void add_unary(combinations& to, const char* op, const Forward& forward, const Backward& backward) {
    const std::string name = op + ("." + type_names<X, Y>());
    for_each_op_shape([&](auto rows, auto columns, bool by_column, unsigned number) {
        const stored_matrix<X> x(rows, columns, by_column, number % 3, number, true);
        const stored_matrix<Y> dy(rows, columns, number % 4 < 2, 1, number + 1);
        stored_matrix<Y> y(rows, columns, by_column == (number % 3 != 0), number % 2, number + 2);
        stored_matrix<X> dx(rows, columns, by_column, 2, number + 3);
        const mp::cpu exec = ordered_exec(number);
        add_outcome(to, name, [&] {
            forward(exec, x.view(), y.view());
            to.add(name, y.values);
            backward(exec, x.view(), dy.view(), dx.view());
            to.add(name, dx.values);
            backward(exec, x.view(), dy.view(), ops::add_to(dx.view()));
            to.add(name, dx.values);
        });
    });
}

template <class Policy, class X, class Y>
void add_functions(combinations& to) {
    for (const auto formula : {ops::gelu_formula::exact, ops::gelu_formula::tanh}) {
        add_unary<X, Y>(
            to, formula == ops::gelu_formula::exact ? "gelu" : "gelu_tanh",
            [&](mp::cpu exec, auto x, auto y) { ops::gelu<Policy>(exec, x, y, formula); },
            [&](mp::cpu exec, auto x, auto dy, auto dx) {
                ops::gelu_backward<Policy>(exec, x, dy, dx, formula);
            });
    }
    add_unary<X, Y>(
        to, "silu", [](mp::cpu exec, auto x, auto y) { ops::silu<Policy>(exec, x, y); },
        [](mp::cpu exec, auto x, auto dy, auto dx) { ops::silu_backward<Policy>(exec, x, dy, dx); });
    add_unary<X, Y>(
        to, "tanh", [](mp::cpu exec, auto x, auto y) { ops::tanh<Policy>(exec, x, y); },
        [](mp::cpu exec, auto x, auto dy, auto dx) { ops::tanh_backward<Policy>(exec, x, dy, dx); });
    add_unary<X, Y>(
        to, "sigmoid", [](mp::cpu exec, auto x, auto y) { ops::sigmoid<Policy>(exec, x, y); },
        [](mp::cpu exec, auto x, auto dy, auto dx) { ops::sigmoid_backward<Policy>(exec, x, dy, dx); });
    add_unary<X, Y>(
        to, "relu", [](mp::cpu exec, auto x, auto y) { ops::relu<Policy>(exec, x, y); },
        [](mp::cpu exec, auto x, auto dy, auto dx) { ops::relu_backward<Policy>(exec, x, dy, dx); });
    const ops::dropout_options dropped{.probability = 0.3F, .seed = 7};
    add_unary<X, Y>(
        to, "dropout", [&](mp::cpu exec, auto x, auto y) { ops::dropout<Policy>(exec, x, y, dropped); },
        [&](mp::cpu exec, auto, auto dy, auto dx) { ops::dropout_backward<Policy>(exec, dy, dx, dropped); });
}

/// Sums and products with a matrix and with a row.
template <class Policy, class A, class B, class Y>
void add_arithmetic(combinations& to) {
    for_each_op_shape([&](auto rows, auto columns, bool by_column, unsigned number) {
        const stored_matrix<A> a(rows, columns, by_column, number % 3, number, true);
        const stored_matrix<B> b(rows, columns, number % 4 < 2, number % 2, number + 1);
        const std::vector<B> row = numbers<B>(static_cast<std::size_t>(columns), number + 2);
        const stored_matrix<Y> dy(rows, columns, by_column, 0, number + 3);
        stored_matrix<Y> y(rows, columns, by_column, 1, number + 4);
        stored_matrix<A> da(rows, columns, by_column, 1, number + 5);
        stored_matrix<B> db(rows, columns, !by_column, 1, number + 6);
        std::vector<B> drow(row.size());
        const mp::cpu exec = ordered_exec(number);
        std::string name = "add." + type_names<A, B, Y>();
        add_outcome(to, name, [&] {
            ops::add<Policy>(exec, a.view(), b.view(), y.view());
            to.add(name, y.values);
            ops::add<Policy>(exec, a.view(), row, y.view());
            to.add(name, y.values);
            ops::add_backward<Policy>(exec, dy.view(), da.view(), db.view());
            to.add(name, da.values, db.values);
            ops::add_backward<Policy>(exec, dy.view(), ops::absent, drow);
            to.add(name, drow);
        });
        name = "multiply." + type_names<A, B, Y>();
        add_outcome(to, name, [&] {
            ops::multiply<Policy>(exec, a.view(), b.view(), y.view());
            to.add(name, y.values);
            ops::multiply<Policy>(exec, a.view(), row, y.view());
            to.add(name, y.values);
            ops::multiply_backward<Policy>(exec, a.view(), b.view(), dy.view(), da.view(), db.view());
            to.add(name, da.values, db.values);
            ops::multiply_backward<Policy>(exec, a.view(), row, dy.view(), ops::add_to(da.view()), drow);
            to.add(name, da.values, drow);
        });
    });
}

}  // namespace

void add_elementwise_op_combinations(combinations& to) {
    using mp::bfloat16, mp::half;
    in_regions([&]<class Policy>() {
        add_functions<Policy, float, float>(to);
        add_functions<Policy, half, half>(to);
        add_functions<Policy, bfloat16, float>(to);
        add_functions<Policy, float, half>(to);
        add_functions<Policy, custom_float, mp::float8_e4m3fn>(to);
        add_functions<Policy, double, double>(to);
        add_arithmetic<Policy, float, float, float>(to);
        add_arithmetic<Policy, half, half, half>(to);
        add_arithmetic<Policy, bfloat16, float, bfloat16>(to);
        add_arithmetic<Policy, half, bfloat16, float>(to);
        add_arithmetic<Policy, double, float, float>(to);
    });
    under_policies([&]<class Policy>() {
        add_functions<Policy, bfloat16, bfloat16>(to);
        add_arithmetic<Policy, float, bfloat16, bfloat16>(to);
    });
}

}  // namespace portability
