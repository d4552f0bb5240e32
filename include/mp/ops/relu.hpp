// SPDX-License-Identifier: MIT
/// \file
/// The rectifier, forward and backward.
#pragma once

#include <mp/autocast/dispatch.hpp>
#include <mp/detail/parallel.hpp>
#include <mp/executor.hpp>
#include <mp/format/operations.hpp>
#include <mp/matrix_view.hpp>
#include <mp/ops/arguments.hpp>
#include <mp/ops/matrix_operand.hpp>

#include <cstddef>
#include <string_view>

namespace mp::detail {

/// Whether x is less than zero, zero or minus zero: false for NaN of either sign. On codes, so that it holds
/// under -ffast-math. The negative codes of every format follow each other, from the smallest magnitude to
/// the largest, and NaNs come before (fnuz formats) or after them.
template <class Value>
constexpr bool not_positive(Value x) {
    using layout = layout_of<format_of_t<Value>>;
    using code = typename layout::storage;
    constexpr code first = static_cast<code>(layout::sign_mask + (layout::has_signed_zero ? 0 : 1));
    constexpr code last = static_cast<code>(
        layout::sign_mask + (layout::has_infinity ? layout::infinity_code : layout::max_finite_code));
    const code bits = bits_of(x);
    return bits == 0 || (layout::sign_mask != 0 && static_cast<code>(bits - first) <= last - first);
}

/// Calls f(out, in...) for the elements at the same place of matrices of the same shape, line after line of
/// `out`.
template <class Function, class Out, class... In>
void for_each_element(cpu exec, Function f, matrix_view<Out> out, matrix_view<const In>... in) {
    const bool by_rows = out.order == storage_order::row_major;
    const std::ptrdiff_t lines = by_rows ? out.rows : out.columns;
    const std::ptrdiff_t length = by_rows ? out.columns : out.rows;
    if (length == 0) return;
    const auto line_stride = [&](auto view) { return by_rows ? view.row_stride() : view.column_stride(); };
    const auto step = [&](auto view) { return by_rows ? view.column_stride() : view.row_stride(); };
    const bool dense = ((step(in) == 1) && ...);
    constexpr std::size_t elements_per_piece = 16384;  // some ten microseconds of work, as a thread costs
    const std::size_t grain = 1 + elements_per_piece / static_cast<std::size_t>(length);
    parallel_for(exec, static_cast<std::size_t>(lines), grain, [&](std::size_t begin, std::size_t end) {
        for (auto line = static_cast<std::ptrdiff_t>(begin); line < static_cast<std::ptrdiff_t>(end);
             ++line) {
            const auto run = [&](Out* to, const In*... from) {
                if (dense) {
                    for (std::ptrdiff_t i = 0; i < length; ++i) f(to[i], from[i]...);
                } else {
                    for (std::ptrdiff_t i = 0; i < length; ++i) f(to[i], from[i * step(in)]...);
                }
            };
            run(out.data + line * line_stride(out), (in.data + line * line_stride(in))...);
        }
    });
}

}  // namespace mp::detail

namespace mp::ops {

/// Tag of relu(): right in any format, so nothing is cast.
struct relu_op {
    static constexpr std::string_view name = "relu";
    static constexpr auto category = op_category::pass_through;

    static void validate(cpu exec, const auto& x, const auto& y) {
        constexpr std::string_view function = "mp::ops::relu";
        detail::check_threads(function, exec);
        const auto input = detail::named("x", x);
        const auto output = detail::named("y", y);
        detail::check_operand(function, input);
        detail::check_shape(function, output, input.extent.rows, "x.rows", input.extent.columns, "x.columns");
        detail::check_separate_or_same(function, output, input);
    }

    template <element X, element Y>
    void operator()(cpu exec, matrix_view<const X> x, matrix_view<Y> y) const {
        detail::for_each_element(
            exec, [](Y& to, X from) { to = detail::not_positive(from) ? Y{} : static_cast<Y>(from); }, y, x);
    }
};

/// y = max(x, 0), element by element; -0 becomes +0 and NaN stays NaN. x and y are matrices of one shape, in
/// any storage order; y may be x, but not overlap it otherwise. Where y has another format, x is rounded to
/// it once. Throws argument_error for shapes that differ and invalid views; y is then unchanged.
template <class Policy = autocast::by_region, element X, element Y>
void relu(cpu exec, matrix_view<X> x, matrix_view<Y> y) {
    autocast::call<Policy>(relu_op{}, exec, detail::input_view(x), detail::output_view(y));
}

/// Tag of relu_backward(): right in any format, so nothing is cast.
struct relu_backward_op {
    static constexpr std::string_view name = "relu_backward";
    static constexpr auto category = op_category::pass_through;

    static void validate(cpu exec, const auto& y, const auto& dy, const auto& dx) {
        constexpr std::string_view function = "mp::ops::relu_backward";
        detail::check_threads(function, exec);
        const auto output = detail::named("y", y);
        const auto gradient = detail::named("dy", dy);
        const auto result = detail::named("dx", dx);
        const auto rows = output.extent.rows;
        const auto columns = output.extent.columns;
        detail::check_operand(function, output);
        detail::check_shape(function, gradient, rows, "y.rows", columns, "y.columns");
        detail::check_shape(function, result, rows, "y.rows", columns, "y.columns");
        detail::check_separate_or_same(function, result, output);
        detail::check_separate_or_same(function, result, gradient);
    }

    template <element Y, element DY, element DX>
    void operator()(cpu exec, matrix_view<const Y> y, matrix_view<const DY> dy, matrix_view<DX> dx) const {
        detail::for_each_element(
            exec,
            [](DX& to, Y output, DY gradient) {
                to = detail::not_positive(output) ? DX{} : static_cast<DX>(gradient);
            },
            dx, y, dy);
    }
};

/// The gradient of y = relu(x): dx = dy where y > 0 and +0 elsewhere; where y is NaN, dx = dy. y is the
/// result of relu, or its argument, which has the same signs. All are matrices of one shape, in any storage
/// order; dx may be dy or y, but not overlap them otherwise. Where dx has another format, dy is rounded to it
/// once. Throws argument_error for shapes that differ and invalid views; dx is then unchanged.
template <class Policy = autocast::by_region, element Y, element DY, element DX>
void relu_backward(cpu exec, matrix_view<Y> y, matrix_view<DY> dy, matrix_view<DX> dx) {
    autocast::call<Policy>(relu_backward_op{}, exec, detail::input_view(y), detail::input_view(dy),
                           detail::output_view(dx));
}

}  // namespace mp::ops
