// SPDX-License-Identifier: MIT
/// \file
/// Epilogues that pass a gradient back through an activation: products with its slope at what came before it.
#pragma once

#include <mp/arrays/convert/kernels/number_vectors.hpp>
#include <mp/base/view_extent.hpp>
#include <mp/config.hpp>
#include <mp/linalg/gemm/epilogue_operands.hpp>
#include <mp/linalg/gemm/epilogue_runs.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/format/basic_float.hpp>
#include <mp/numbers/rules/elementwise.hpp>
#include <mp/numbers/simd/processor.hpp>
#include <mp/numbers/simd/select_target.hpp>

#include <algorithm>
#include <cstddef>
#include <type_traits>

#define MP_KERNEL_FILE <mp/linalg/gemm/kernels/gradient_runs.inl>
#include <mp/numbers/simd/for_each_target.inl>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Function, class Value>
void map_runs_with_operand_portably(float* values, std::ptrdiff_t stride, std::ptrdiff_t runs,
                                    std::size_t count, const Value* operands, std::ptrdiff_t leading) {
    constexpr std::size_t most = 256;
    float floats[most];
    for (; runs > 0; --runs, values += stride, operands += leading) {
        for (std::size_t i = 0; i < count; i += most) {
            const std::size_t some = (std::min)(most, count - i);
            for (std::size_t j = 0; j < some; ++j) floats[j] = static_cast<float>(operands[i + j]);
            portable_vectors::map_arrays<Function>(some, values + i, static_cast<const float*>(floats),
                                                   static_cast<const float*>(values + i));
        }
    }
}

/// values = Function(operand, value) for runs of `count` floats, `stride` apart, whose operands are `leading` apart.
template <class Function, class Value>
void map_runs_with_operand(instruction_set isa, float* values, std::ptrdiff_t stride, std::ptrdiff_t runs,
                           std::size_t count, const Value* operands, std::ptrdiff_t leading) {
    if constexpr (has_number_vectors<Value>) {
        const auto kernel = MP_SELECT_TARGET(isa, (&map_runs_with_operand_portably<Function, Value>),
                                             map_runs_with_operand<Function, Value>);
        kernel(values, stride, runs, count, operands, leading);
    } else {
        map_runs_with_operand_portably<Function>(values, stride, runs, count, operands, leading);
    }
}

/// The slope of one function, as activation_gradient_epilogue takes it.
template <class Function>
struct slope_of_function {
    /// Calls f with the type that names it.
    MP_ANY_EXECUTION_SPACE
    template <class Call>
    MP_HOST_DEVICE MP_ALWAYS_INLINE decltype(auto) visit(Call f) const {
        return f(slope_of<Function>{});
    }
};

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Multiplies the value by the slope of an activation at an element of a matrix of C's shape. Made by dgelu and its kin.
template <class Slope, class Value>
struct activation_gradient_epilogue {
    static_assert(reduced<Value> || std::is_same_v<Value, float>,
                  "mp::dgelu and its kin: the matrix must be of float or of a reduced format");
    matrix_view<const Value> preactivation;
    Slope slope;

    MP_HOST_DEVICE float operator()(float value, std::ptrdiff_t row, std::ptrdiff_t column) const {
        const auto before = static_cast<float>(preactivation(row, column));
        return slope.visit(
            [=](auto function) { return detail::apply_elementwise<decltype(function)>(before, value); });
    }
    bool apply_runs(const detail::epilogue_runs& all) const {
        const Value* const first = &preactivation(all.row, all.column);
        const bool down = preactivation.order == storage_order::column_major;
        if (down == all.down) {
            multiply(all, first, preactivation.leading_dimension);
            return true;
        }
        // Elements of neighbouring runs are neighbours in the matrix.
        constexpr std::ptrdiff_t most = 256;
        Value along[std::size_t{most}];
        for (std::ptrdiff_t run = 0; run < all.runs; ++run) {
            for (std::ptrdiff_t i = 0; i < all.count; i += most) {
                const std::ptrdiff_t some = (std::min)(most, all.count - i);
                for (std::ptrdiff_t n = 0; n < some; ++n) {
                    along[n] = first[(i + n) * preactivation.leading_dimension + run];
                }
                multiply({all.values + run * all.stride + i, 0, 1, some, 0, 0, all.down}, along, 0);
            }
        }
        return true;
    }
    /// As operator(), for a run of C.
    void apply(float* values, std::ptrdiff_t count, std::ptrdiff_t row, std::ptrdiff_t column,
               bool down) const {
        apply_runs({values, 0, 1, count, row, column, down});
    }

    /// Throws argument_error unless the matrix has the shape of C.
    void validate(std::ptrdiff_t rows, std::ptrdiff_t columns) const {
        detail::check_view("mp::gemm", "preactivation", detail::extent_of(preactivation));
        detail::check_equal_sizes("mp::gemm", "preactivation.rows", preactivation.rows, "c.rows", rows);
        detail::check_equal_sizes("mp::gemm", "preactivation.columns", preactivation.columns, "c.columns",
                                  columns);
    }
    /// Passes the operand to f.
    template <class Function>
    void for_each_operand(const Function& f) const {
        f(detail::epilogue_operand{{"preactivation", detail::extent_of(preactivation)},
                                   detail::epilogue_access::read_by_element});
    }

private:
    void multiply(const detail::epilogue_runs& all, const Value* before, std::ptrdiff_t leading) const {
        slope.visit([&](auto function) {
            detail::map_runs_with_operand<decltype(function)>(best_instruction_set(), all.values, all.stride,
                                                              all.runs, static_cast<std::size_t>(all.count),
                                                              before, leading);
        });
    }
};

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Function, class Value>
[[nodiscard]] constexpr auto gradient_epilogue(matrix_view<Value> preactivation) {
    using element = std::remove_const_t<Value>;
    return activation_gradient_epilogue<slope_of_function<Function>, element>{preactivation, {}};
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Epilogue that multiplies the value by the slope of gelu_epilogue at the element of a matrix of C's shape, in any
/// storage order (cuBLASLt's DGELU): the gradient of what store_auxiliary kept before an activation, from the product that is the
/// gradient of its result.
///
///     mp::gemm(exec, 1, x, mp::transposed(w1), 0, y, mp::compose(mp::store_auxiliary(z), mp::gelu_epilogue{}));
///     ...
///     mp::gemm(exec, 1, dy2, w2, 0, dz, mp::dgelu(z));         // of y w2^T
///
/// The bits of mp::ops::gelu_backward for a gradient in float: the product is not rounded to the type of C before the slope,
/// which is closer to the exact value. The matrix is read while C is written: it may be C itself, from the same place on,
/// but not overlap it otherwise; mp::gemm throws argument_error for another shape.
template <class Value>
[[nodiscard]] constexpr auto dgelu(matrix_view<Value> preactivation) {
    return detail::gradient_epilogue<detail::gelu_function>(preactivation);
}
/// The same of gelu_tanh_epilogue.
template <class Value>
[[nodiscard]] constexpr auto dgelu_tanh(matrix_view<Value> preactivation) {
    return detail::gradient_epilogue<detail::gelu_tanh_function>(preactivation);
}
/// The same of silu_epilogue.
template <class Value>
[[nodiscard]] constexpr auto dsilu(matrix_view<Value> preactivation) {
    return detail::gradient_epilogue<detail::silu_function>(preactivation);
}
/// The same of relu_epilogue (cuBLASLt's DRELU): +0 where the element is not positive. relu's result serves as well as
/// its argument.
template <class Value>
[[nodiscard]] constexpr auto drelu(matrix_view<Value> preactivation) {
    return detail::gradient_epilogue<detail::relu_function>(preactivation);
}

}}  // namespace mp
