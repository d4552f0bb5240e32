// SPDX-License-Identifier: MIT
/// \file
/// Matrix products of ops: mp::gemm, or, where an operand has doubles, a plain product in double.
#pragma once

#include <mp/arrays/array/for_each_element.hpp>
#include <mp/arrays/array/parallel.hpp>
#include <mp/arrays/array/staging_buffer.hpp>
#include <mp/executor.hpp>
#include <mp/linalg/gemm/gemm.hpp>
#include <mp/linalg/gemm/workspace.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/autocast/operand.hpp>
#include <mp/nn/ops/matrix_operand.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/double_functions.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The view with the kernels of products of its type.
template <class Value>
[[nodiscard]] any_matrix matrix_of_product(matrix_view<Value> view) {
    return {extent_of(view), &element_record<std::remove_const_t<Value>, true>::record};
}

/// c = ending(alpha a b + beta c, row, column), a sum in ascending k and everything in double, rounded once.
/// Where beta is 0, c is not read. A and B are copied as doubles: gradient checks are not fast.
template <class Ending>
void product_in_double(const cpu& exec, double alpha, const any_matrix& a, const any_matrix& b, double beta,
                       const any_matrix& c, const Ending& ending) {
    const mp::workspace::frame frame(exec.workspace);
    const std::ptrdiff_t size = a.columns;
    const staging_buffer<double> columns(exec, static_cast<std::size_t>(size * b.columns));
    for (std::ptrdiff_t j = 0; j < b.columns && size > 0; ++j) {
        load_row(b.transposed(), j, columns.data() + j * size);
    }
    const auto work = static_cast<std::size_t>((std::max<std::ptrdiff_t>)(1, size * c.columns));
    thread_buffers<double> buffers(exec, static_cast<std::size_t>(size + c.columns));
    parallel_arithmetic(exec, static_cast<std::size_t>(c.rows), 1 + 16384 / work,
                        [&](std::size_t begin, std::size_t end) {
                            double* const row = buffers.take();
                            double* const results = row + size;
                            for (auto i = static_cast<std::ptrdiff_t>(begin);
                                 i < static_cast<std::ptrdiff_t>(end) && c.columns > 0; ++i) {
                                if (size > 0) load_row(a, i, row);
                                if (beta > 0) load_row(c, i, results);
                                for (std::ptrdiff_t j = 0; j < c.columns; ++j) {
                                    const double* const column = columns.data() + j * size;
                                    rounded_doubles<1> sum = 0.0;
                                    for (std::ptrdiff_t k = 0; k < size; ++k) {
                                        sum += rounded_doubles<1>(row[k]) * column[k];
                                    }
                                    sum = sum * alpha;
                                    if (beta > 0) sum += rounded_doubles<1>(beta) * results[j];
                                    results[j] = ending(sum.value(), i, j);
                                }
                                store_elements(*c.type, results, static_cast<std::size_t>(c.columns),
                                               c.at(i, 0), c.column_stride());
                            }
                        });
}
/// Ends a product in double: leaves the value as it is.
struct double_identity {
    double operator()(double value, std::ptrdiff_t /*row*/, std::ptrdiff_t /*column*/) const { return value; }
};

/// c = epilogue(alpha a b + beta c) in float, without checks of the epilogue's operands, which the op has made; `workspace`
/// is memory for packed blocks, or null. The identity has a null `apply`.
inline void multiply_in_float(const cpu& exec, double alpha, const any_matrix& a, const any_matrix& b,
                              double beta, const any_matrix& c, gemm_workspace* workspace = nullptr,
                              const void* epilogue = nullptr,
                              void (*apply)(const void*, const epilogue_runs&) = nullptr) {
    multiply(exec, {.alpha = static_cast<float>(alpha),
                    .a = a,
                    .a_kernels = a.type->factor,
                    .b = b,
                    .b_kernels = b.type->factor,
                    .beta = static_cast<float>(beta),
                    .c = c,
                    .c_kernels = c.type->result,
                    .workspace = workspace,
                    .epilogue = epilogue,
                    .check = nullptr,
                    .apply = apply,
                    .is_packed = false,
                    .is_current = true});
}

/// c = alpha a b + beta c; beta is 0 or positive.
template <class Real>
void multiply_matrices(const cpu& exec, double alpha, const any_matrix& a, const any_matrix& b, double beta,
                       const any_matrix& c, gemm_workspace* workspace = nullptr) {
    if constexpr (std::same_as<Real, double>) {
        product_in_double(exec, alpha, a, b, beta, c, double_identity{});
    } else {
        multiply_in_float(exec, alpha, a, b, beta, c, workspace);
    }
}

}}  // namespace mp::detail
