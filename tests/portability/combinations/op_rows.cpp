// SPDX-License-Identifier: MIT
// Ops on rows, losses and sums: types of operands and results, policies and storage orders.
#include <mp/nn/ops/argmax.hpp>
#include <mp/nn/ops/losses.hpp>
#include <mp/nn/ops/normalization.hpp>
#include <mp/nn/ops/reductions.hpp>
#include <mp/nn/ops/softmax.hpp>
#include <mp/nn/ops/softmax_cross_entropy.hpp>

#include "ops.hpp"

#include <utility>

namespace portability {

namespace {

namespace ops = mp::ops;

/// Returns the numbers of statistics that a forward pass saves. The factor of a row with NaN is of no meaning.
template <class Real>
std::vector<Real> contents(const std::vector<ops::basic_normalization_statistics<Real>>& rows) {
    std::vector<Real> result;
    for (const auto& it : rows) {
        for (const Real x : {it.center, it.center_tail, it.inverse}) result.push_back(x);
        if (!mp::isnan(it.inverse)) result.push_back(it.factor);
    }
    return result;
}
template <class Real>
std::vector<Real> contents(const std::vector<ops::basic_softmax_statistics<Real>>& rows) {
    std::vector<Real> result;
    for (const auto& it : rows) {
        result.push_back(it.max);
        result.push_back(it.others);
    }
    return result;
}

template <class Policy, class X, class Y>
void add_softmax(combinations& to) {
    for_each_op_shape([&](auto rows, auto columns, bool by_column, unsigned number) {
        const stored_matrix<X> x(rows, columns, by_column, number % 3, number, number % 3 == 1);
        const stored_matrix<Y> dy(rows, columns, number % 4 < 2, 1, number + 1);
        stored_matrix<Y> y(rows, columns, by_column, number % 2, number + 2);
        stored_matrix<X> dx(rows, columns, by_column, 2, number + 3);
        const mp::cpu exec = ordered_exec(number);
        std::string name = "softmax." + type_names<X, Y>();
        add_outcome(to, name, [&] {
            ops::softmax<Policy>(exec, x.view(), y.view());
            to.add(name, y.values);
            ops::softmax_backward<Policy>(exec, std::as_const(y).view(), dy.view(), dx.view());
            to.add(name, dx.values);
            ops::softmax_backward<Policy>(exec, std::as_const(y).view(), dy.view(), ops::add_to(dx.view()));
            to.add(name, dx.values);
        });
        name = "log_softmax." + type_names<X, Y>();
        add_outcome(to, name, [&] {
            ops::log_softmax<Policy>(exec, x.view(), y.view());
            to.add(name, y.values);
            ops::log_softmax_backward<Policy>(exec, std::as_const(y).view(), dy.view(), dx.view());
            to.add(name, dx.values);
        });
    });
}

template <class Policy, class X, class Gamma, class Y>
void add_norms(combinations& to) {
    using real = std::conditional_t<std::is_same_v<X, double>, double, float>;
    for_each_op_shape([&](auto rows, auto columns, bool by_column, unsigned number) {
        const stored_matrix<X> x(rows, columns, by_column, number % 3, number, number % 3 == 1);
        const std::vector<Gamma> gamma = numbers<Gamma>(static_cast<std::size_t>(columns), number + 1);
        const std::vector<Gamma> beta = numbers<Gamma>(gamma.size(), number + 2);
        const stored_matrix<Y> dy(rows, columns, number % 4 < 2, 1, number + 3);
        stored_matrix<Y> y(rows, columns, by_column, number % 2, number + 4);
        stored_matrix<X> dx(rows, columns, by_column, 2, number + 5);
        std::vector<Gamma> dgamma(gamma.size()), dbeta(gamma.size());
        std::vector<ops::basic_normalization_statistics<real>> saved(static_cast<std::size_t>(rows));
        const mp::cpu exec = ordered_exec(number);
        std::string name = "layer_norm." + type_names<X, Gamma, Y>();
        add_outcome(to, name, [&] {
            ops::layer_norm<Policy>(exec, x.view(), gamma, beta, y.view(), {}, saved);
            to.add(name, y.values, contents(saved));
            ops::layer_norm_backward<Policy>(exec, x.view(), gamma, dy.view(), dx.view(), dgamma, dbeta);
            to.add(name, dx.values, dgamma, dbeta);
            ops::layer_norm_backward<Policy>(exec, x.view(), gamma, dy.view(), dx.view(), ops::add_to(dgamma),
                                             ops::absent, {}, saved);
            to.add(name, dx.values, dgamma);
        });
        name = "rms_norm." + type_names<X, Gamma, Y>();
        add_outcome(to, name, [&] {
            ops::rms_norm<Policy>(exec, x.view(), gamma, y.view(), {}, saved);
            to.add(name, y.values, contents(saved));
            ops::rms_norm_backward<Policy>(exec, x.view(), gamma, dy.view(), dx.view(), dgamma, {}, saved);
            to.add(name, dx.values, dgamma);
        });
    });
}

template <class Policy, class X, class DX>
void add_cross_entropy(combinations& to) {
    using real = std::conditional_t<std::is_same_v<X, double>, double, float>;
    const std::string name = "softmax_cross_entropy." + type_names<X, DX>();
    for_each_op_shape([&](auto rows, auto columns, bool by_column, unsigned number) {
        const stored_matrix<X> x(rows, columns, by_column, number % 3, number, number % 3 == 1);
        stored_matrix<DX> dx(rows, columns, number % 4 < 2, 1, number + 1);
        generator random(number);
        std::vector<int> labels(static_cast<std::size_t>(rows));
        for (int& label : labels) label = static_cast<int>(random.next() % static_cast<unsigned>(columns));
        const ops::loss_factors factors{.weight = 0.7F, .scale = 1024.0F};
        const ops::cross_entropy_options smooth{.ignore_index = labels.front(), .label_smoothing = 0.1F};
        const mp::cpu exec = ordered_exec(number);
        for (const ops::cross_entropy_options& options : {ops::cross_entropy_options{}, smooth}) {
            add_outcome(to, name, [&] {
                to.add(name, ops::softmax_cross_entropy<Policy>(exec, x.view(), labels, factors, options));
                ops::softmax_cross_entropy_backward<Policy>(exec, x.view(), labels, dx.view(), factors,
                                                            options);
                to.add(name, dx.values);
                const real loss = ops::softmax_cross_entropy_with_gradient<Policy>(
                    exec, x.view(), labels, dx.view(), factors, options);
                to.add(name, loss, dx.values);
            });
        }
        std::vector<int> columns_of_max(labels.size());
        ops::argmax(exec, x.view(), columns_of_max);
        to.add(name, columns_of_max, ops::accuracy(exec, x.view(), labels));
        real loss = 0;
        std::vector<real> each(labels.size());
        std::vector<ops::basic_softmax_statistics<real>> saved(labels.size());
        add_outcome(to, name, [&] {
            ops::softmax_cross_entropy<Policy>(exec, x.view(), labels, &loss, std::span(each), factors, {},
                                               std::span(saved));
            to.add(name, loss, each, contents(saved));
        });
    });
}

template <class Policy, class X, class T>
void add_losses(combinations& to) {
    for_each_op_shape([&](auto rows, auto columns, bool by_column, unsigned number) {
        const stored_matrix<X> x(rows, columns, by_column, number % 3, number, number % 3 == 1);
        const stored_matrix<T> target(rows, columns, number % 4 < 2, 1, number + 1);
        stored_matrix<X> dx(rows, columns, by_column, 2, number + 2);
        const ops::loss_factors factors{.weight = 0.7F, .scale = 1024.0F};
        const mp::cpu exec = ordered_exec(number);
        std::string name = "mean_squared_error." + type_names<X, T>();
        add_outcome(to, name, [&] {
            to.add(name, ops::mean_squared_error<Policy>(exec, x.view(), target.view(), factors));
            ops::mean_squared_error_backward<Policy>(exec, x.view(), target.view(), dx.view(), factors);
            to.add(name, dx.values);
        });
        name = "mean_absolute_error." + type_names<X, T>();
        add_outcome(to, name, [&] {
            to.add(name, ops::mean_absolute_error<Policy>(exec, x.view(), target.view(), factors));
            ops::mean_absolute_error_backward<Policy>(exec, x.view(), target.view(), dx.view(), factors);
            to.add(name, dx.values);
        });
    });
}

template <class Policy, class X, class Y>
void add_reductions(combinations& to) {
    for_each_op_shape([&](auto rows, auto columns, bool by_column, unsigned number) {
        const stored_matrix<X> x(rows, columns, by_column, number % 3, number, number % 3 == 1);
        stored_matrix<X> dx(rows, columns, by_column, 2, number + 1);
        const mp::cpu exec = ordered_exec(number);
        const std::string sum = "sum." + type_names<X, Y>();
        const std::string mean = "mean." + type_names<X, Y>();
        add_outcome(to, sum, [&] { to.add(sum, ops::sum<Policy>(exec, x.view())); });
        add_outcome(to, mean, [&] { to.add(mean, ops::mean<Policy>(exec, x.view())); });
        for (const ops::per axis : {ops::per::row, ops::per::column}) {
            const auto size = static_cast<std::size_t>(axis == ops::per::row ? rows : columns);
            std::vector<Y> y(size);
            add_outcome(to, sum, [&] {
                ops::sum<Policy>(exec, x.view(), y, axis);
                to.add(sum, y);
                ops::sum_backward<Policy>(exec, y, dx.view(), axis);
                to.add(sum, dx.values);
            });
            add_outcome(to, mean, [&] {
                ops::mean<Policy>(exec, x.view(), y, axis);
                to.add(mean, y);
                ops::mean_backward<Policy>(exec, y, ops::add_to(dx.view()), axis);
                to.add(mean, dx.values);
            });
        }
    });
}

}  // namespace

void add_row_op_combinations(combinations& to) {
    using mp::bfloat16, mp::half;
    in_regions([&]<class Policy>() {
        add_softmax<Policy, float, float>(to);
        add_softmax<Policy, half, half>(to);
        add_softmax<Policy, bfloat16, float>(to);
        add_softmax<Policy, double, double>(to);
        add_norms<Policy, float, float, float>(to);
        add_norms<Policy, half, float, half>(to);
        add_norms<Policy, bfloat16, bfloat16, float>(to);
        add_cross_entropy<Policy, float, float>(to);
        add_cross_entropy<Policy, half, half>(to);
        add_cross_entropy<Policy, bfloat16, float>(to);
        add_losses<Policy, float, float>(to);
        add_losses<Policy, half, float>(to);
        add_losses<Policy, bfloat16, half>(to);
        add_reductions<Policy, float, float>(to);
        add_reductions<Policy, half, float>(to);
        add_reductions<Policy, bfloat16, bfloat16>(to);
        add_reductions<Policy, mp::float8_e4m3fn, half>(to);
    });
    under_policies([&]<class Policy>() {
        add_softmax<Policy, half, float>(to);
        add_norms<Policy, float, half, bfloat16>(to);
        add_losses<Policy, half, half>(to);
        add_reductions<Policy, custom_float, float>(to);
    });
}

}  // namespace portability
