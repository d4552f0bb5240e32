// SPDX-License-Identifier: MIT
// Ops with names for their arguments, whose kernels do nothing that could hide what autocast has cast.
#pragma once

#include <mp/autocast.hpp>
#include <mp/ops.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace ledger_ops {

/// Copies x, times a factor, to y.
template <mp::op_category Category>
struct copy_op {
    static constexpr std::string_view name = "copy";
    static constexpr auto category = Category;
    static constexpr std::array<std::string_view, 2> argument_names = {"x", "y"};
    template <class X, class Y>
    void operator()(std::span<const X> x, std::span<Y> y) const {
        for (std::size_t i = 0; i < x.size(); ++i) y[i] = static_cast<Y>(static_cast<float>(x[i]));
    }
};
using low_copy = copy_op<mp::op_category::lower_precision>;
using full_copy = copy_op<mp::op_category::full_precision>;

/// y = x w, for square matrices in a row; the first operand's size says which.
template <mp::op_category Category>
struct product_op {
    static constexpr std::string_view name = "product";
    static constexpr auto category = Category;
    static constexpr std::array<std::string_view, 3> argument_names = {"x", "w", "y"};
    static mp::autocast::product_size product(const auto& x, const auto& w, const auto& y) {
        return {static_cast<std::ptrdiff_t>(x.size()), static_cast<std::ptrdiff_t>(w.size()),
                static_cast<std::ptrdiff_t>(y.view.size())};
    }
    template <class X, class W, class Y>
    void operator()(std::span<const X> x, std::span<const W> w, std::span<Y> y) const {
        for (std::size_t i = 0; i < y.size(); ++i) {
            y[i] = static_cast<Y>(static_cast<float>(x[i % x.size()]) * static_cast<float>(w[i % w.size()]));
        }
    }
};
using low_product = product_op<mp::op_category::lower_precision>;
using full_product = product_op<mp::op_category::full_precision>;

/// The gradient dx = dy.
struct low_product_backward {
    static constexpr std::string_view name = "product_backward";
    static constexpr auto category = mp::op_category::lower_precision;
    static constexpr std::array<std::string_view, 2> argument_names = {"dy", "dx"};
    using forward_op = low_product;
    template <class DY, class DX>
    void operator()(std::span<const DY> dy, std::span<DX> dx) const {
        for (std::size_t i = 0; i < dy.size(); ++i) dx[i] = static_cast<DX>(static_cast<float>(dy[i]));
    }
};

/// y += x, in the format of the policy.
struct add_to_op {
    static constexpr std::string_view name = "add_to";
    static constexpr auto category = mp::op_category::lower_precision;
    static constexpr std::array<std::string_view, 2> argument_names = {"x", "y"};
    template <class X, class Y>
    void operator()(std::span<const X> x, std::span<Y> y) const {
        for (std::size_t i = 0; i < x.size(); ++i) {
            y[i] = static_cast<Y>(static_cast<float>(y[i]) + static_cast<float>(x[i]));
        }
    }
};

/// x * y for numbers.
struct multiply_op {
    static constexpr std::string_view name = "multiply";
    static constexpr auto category = mp::op_category::lower_precision;
    static constexpr std::array<std::string_view, 2> argument_names = {"x", "y"};
    constexpr auto operator()(auto x, auto y) const {
        return static_cast<decltype(x)>(static_cast<float>(x) * static_cast<float>(y));
    }
};

}  // namespace ledger_ops
