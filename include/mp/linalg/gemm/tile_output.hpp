// SPDX-License-Identifier: MIT
/// \file
/// From a tile of float accumulators to the memory of C: alpha and beta, the epilogue, one rounding. The
/// types of C and of the epilogue are behind functions that work on a row of a tile, so that the loops
/// around them are compiled once.
#pragma once

#include <mp/arrays/convert/bulk.hpp>
#include <mp/arrays/convert/kernels/number_vectors.hpp>
#include <mp/base/bits.hpp>
#include <mp/base/parallel.hpp>
#include <mp/executor.hpp>
#include <mp/linalg/gemm/epilogue.hpp>
#include <mp/linalg/gemm/product.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/select_target.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Elements of a vector that are finished at a time.
inline constexpr std::ptrdiff_t output_run = 256;

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Vectors of floats that are to become rows of a row-major C, or columns of a column-major one.
struct output_floats {
    const float* first;
    std::ptrdiff_t stride;  ///< from one vector to the next
    std::ptrdiff_t vectors;
    std::ptrdiff_t count;  ///< in each vector
};

/// How elements of C are read and written.
struct result_functions {
    /// Elements of C as floats (a double is rounded).
    void (*read)(const void* c, float* to, std::ptrdiff_t count);
    /// Floats rounded to elements of C.
    void (*write)(const output_floats& from, void* c, std::ptrdiff_t leading_dimension);
    /// The same, faster, for floats that are not subnormal, or null.
    void (*write_normal)(const output_floats& from, void* c, std::ptrdiff_t leading_dimension);
    /// Adds to a C of floats; null for others.
    void (*add)(const output_floats& from, void* c, std::ptrdiff_t leading_dimension);
};

/// What products need of the element type of C.
struct result_kernels {
    std::ptrdiff_t size;
    bool is_float;
    result_functions (*functions)(instruction_set);
};

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// C and what is done to it. Its vectors are the rows of a row-major C and the columns of a column-major one.
struct tile_output : result_functions {
    void* data;
    std::ptrdiff_t leading_dimension;  ///< elements from one vector to the next
    std::ptrdiff_t element_size;
    bool column_major;
    /// The kernels compute C with its columns along their tiles' rows: the product of the transposed
    /// operands.
    bool transposed;
    float alpha;
    float beta;
    /// Null for the identity. value = epilogue(value, row, column) for the values of runs.
    void (*apply)(const void* epilogue, const epilogue_runs& all);
    const void* epilogue;
    bool is_float;
    bool adds = false;  ///< whether write() adds to C, which is all that alpha and beta ask for
    /// Where the rows of a row-major C lie in pieces, one for each image of a batch: the columns of a piece and the
    /// elements from one piece to the next. C is then not read.
    std::ptrdiff_t piece = 0;
    std::ptrdiff_t piece_stride = 0;

    /// The memory of C where the sums themselves are what it shall hold, else null.
    [[nodiscard]] float* sums_in_place() const {
        return is_float && !adds && !prepares() && !needs_columns() ? static_cast<float*>(data) : nullptr;
    }

    /// Whether the vectors of C lie across the rows of the tiles.
    [[nodiscard]] bool needs_columns() const { return column_major != transposed; }

    /// Whether anything is done to the sums before they are rounded.
    [[nodiscard]] bool prepares() const {
        return !same_value(alpha, 1.0F) || (!same_value(beta, 0.0F) && !adds) || apply != nullptr;
    }

    /// The memory of an element of C.
    [[nodiscard]] void* at(std::ptrdiff_t row, std::ptrdiff_t column) const {
        std::ptrdiff_t offset =
            column_major ? column * leading_dimension + row : row * leading_dimension + column;
        if (piece != 0) offset += column / piece * (piece_stride - piece);
        return static_cast<std::byte*>(data) + offset * element_size;
    }

    /// Calls f(first, count, element) for the parts of columns [column, column + columns) that are neighbours in C,
    /// `first` of them after the first one, with the memory of the part's first element of a row.
    template <class Function>
    void for_each_part(std::ptrdiff_t row, std::ptrdiff_t column, std::ptrdiff_t columns, Function f) const {
        for (std::ptrdiff_t first = 0; first < columns;) {
            const std::ptrdiff_t left = columns - first;
            const std::ptrdiff_t count =
                piece == 0 ? left : (std::min)(left, piece - (column + first) % piece);
            f(first, count, at(row, column + first));
            first += count;
        }
    }
};

/// values = alpha * values + beta * c, with both terms as scale_and_add_floats does it. Without accumulators
/// (alpha == 0, or k == 0) the values are not read; beta is not 0.
inline void scale_and_add(float* values, std::ptrdiff_t count, bool has_accumulators,
                          const tile_output& output, const void* c) {
    const float alpha = output.alpha;
    const float beta = output.beta;
    float kept[output_run];
    output.read(c, kept, count);
    if (has_accumulators && same_value(alpha, 1.0F) && same_value(beta, 1.0F)) {
        // The sum of two floats, by way of double or not.
        add_terms_to_run(values, count, static_cast<const float*>(kept));
        return;
    }
    if (!has_accumulators) {
        for (std::ptrdiff_t j = 0; j < count; ++j) values[j] = beta * kept[j];
        return;
    }
    scale_and_add_floats(best_instruction_set(), static_cast<std::size_t>(count), values, values, alpha, kept,
                         beta);
}

/// What becomes of runs of up to output_run values that are neighbours in C, before they are rounded; the
/// coordinate is that in C.
inline void prepare_runs(const tile_output& output, const epilogue_runs& all, bool has_accumulators) {
    if (!same_value(output.beta, 0.0F) && !output.adds) {
        all.for_each([&](float* values, std::ptrdiff_t row, std::ptrdiff_t column) {
            scale_and_add(values, all.count, has_accumulators, output, output.at(row, column));
        });
    } else if (!has_accumulators) {
        all.for_each([&](float* values, std::ptrdiff_t /*row*/, std::ptrdiff_t /*column*/) {
            std::fill_n(values, all.count, 0.0F);
        });
    } else if (!same_value(output.alpha, 1.0F)) {
        scale_each_run(best_instruction_set(), all.values, all.stride, all.runs,
                       static_cast<std::size_t>(all.count), &output.alpha, 0);
    }
    if (output.apply != nullptr) output.apply(output.epilogue, all);
}

/// Writes the rows x columns elements at (row, column) of the product from a tile, which is scratch
/// afterwards. Row and column are those of the product that the kernels compute.
inline void finish_tile(const tile_output& output, float* tile, std::ptrdiff_t tile_stride,
                        std::ptrdiff_t row, std::ptrdiff_t column, std::ptrdiff_t rows,
                        std::ptrdiff_t columns) {
    const std::ptrdiff_t c_row = output.transposed ? column : row;
    const std::ptrdiff_t c_column = output.transposed ? row : column;
    if (!output.needs_columns()) {
        if (output.prepares()) {
            prepare_runs(output, {tile, tile_stride, rows, columns, c_row, c_column, output.column_major},
                         true);
        }
        if (output.piece == 0) {
            output.write({tile, tile_stride, rows, columns}, output.at(c_row, c_column),
                         output.leading_dimension);
            return;
        }
        output.for_each_part(
            c_row, c_column, columns, [&](std::ptrdiff_t first, std::ptrdiff_t count, void* to) {
                output.write({tile + first, tile_stride, rows, count}, to, output.leading_dimension);
            });
        return;
    }
    float run[output_run];
    for (std::ptrdiff_t j = 0; j < columns; ++j) {
        for (std::ptrdiff_t r = 0; r < rows; ++r) run[r] = tile[r * tile_stride + j];
        const std::ptrdiff_t run_row = output.transposed ? c_row + j : c_row;
        const std::ptrdiff_t run_column = output.transposed ? c_column : c_column + j;
        prepare_runs(output, {run, 0, 1, rows, run_row, run_column, output.column_major}, true);
        output.write({run, 0, 1, rows}, output.at(run_row, run_column), 0);
    }
}

/// c = epilogue(beta * c), or epilogue(0) where beta is 0: the product without its operands.
inline void finish_without_product(const tile_output& output, std::ptrdiff_t c_rows,
                                   std::ptrdiff_t c_columns) {
    if (output.adds) return;
    const default_floating_point_modes modes;
    float run[output_run];
    const std::ptrdiff_t vectors = output.column_major ? c_columns : c_rows;
    const std::ptrdiff_t length = output.column_major ? c_rows : c_columns;
    for (std::ptrdiff_t i = 0; i < vectors; ++i) {
        for (std::ptrdiff_t j = 0; j < length; j += output_run) {
            const std::ptrdiff_t count = (std::min)(output_run, length - j);
            const std::ptrdiff_t row = output.column_major ? j : i;
            const std::ptrdiff_t column = output.column_major ? i : j;
            prepare_runs(output, {run, 0, 1, count, row, column, output.column_major}, false);
            output.write({run, 0, 1, count}, output.at(row, column), 0);
        }
    }
}

template <class Value>
void read_output_portably(const void* c, float* to, std::ptrdiff_t count) {
    const auto* values = static_cast<const Value*>(c);
    if constexpr (reduced<Value>) {
        widen_to_float(values, to, static_cast<std::size_t>(count));
    } else {
        for (std::ptrdiff_t j = 0; j < count; ++j) to[j] = static_cast<float>(values[j]);
    }
}

template <class Value>
void write_output_portably(const output_floats& from, void* c, std::ptrdiff_t leading_dimension) {
    for (std::ptrdiff_t i = 0; i < from.vectors; ++i) {
        const float* const floats = from.first + i * from.stride;
        Value* const values = static_cast<Value*>(c) + i * leading_dimension;
        if constexpr (reduced<Value>) {
            convert_nearest(floats, values, static_cast<std::size_t>(from.count));
        } else {
            for (std::ptrdiff_t j = 0; j < from.count; ++j) values[j] = static_cast<Value>(floats[j]);
        }
    }
}

inline void add_output_portably(const output_floats& from, void* c, std::ptrdiff_t leading_dimension) {
    for (std::ptrdiff_t i = 0; i < from.vectors; ++i) {
        const float* const floats = from.first + i * from.stride;
        float* const values = static_cast<float*>(c) + i * leading_dimension;
        for (std::ptrdiff_t j = 0; j < from.count; ++j) values[j] = float_add(floats[j], values[j]);
    }
}

}}  // namespace mp::detail

#define MP_KERNEL_FILE <mp/linalg/gemm/kernels/output.inl>
#include <mp/numbers/simd/for_each_target.inl>

#define MP_HIGHEST_TARGET MP_TARGET_AVX512_BF16
#define MP_KERNEL_FILE <mp/linalg/gemm/kernels/output_bfloat16.inl>
#include <mp/numbers/simd/for_each_target.inl>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Value>
constexpr result_functions result_functions_for(instruction_set isa) {
    result_functions functions{};
    if constexpr (has_number_vectors<Value>) {
        functions.read = MP_SELECT_TARGET(isa, &read_output_portably<Value>, read_output<Value>);
        functions.write = MP_SELECT_TARGET(isa, &write_output_portably<Value>, write_output<Value>);
    } else {
        functions.read = &read_output_portably<Value>;
        functions.write = &write_output_portably<Value>;
    }
#if MP_BEST_TARGET >= MP_TARGET_AVX512_BF16
    if constexpr (std::is_same_v<Value, basic_float<formats::bfloat16>>) {
        if (isa >= instruction_set::avx512_bf16) functions.write_normal = &avx512_bf16::write_normal_bfloat16;
    }
#endif
    if constexpr (std::is_same_v<Value, float>) {
        functions.add = MP_SELECT_TARGET(isa, &add_output_portably, add_output);
    }
    return functions;
}

/// C in `data`, before transposed operands are thought of. `epilogue` and `apply` are null for the identity.
inline tile_output make_tile_output(instruction_set isa, const result_kernels& kernels, void* data,
                                    std::ptrdiff_t leading_dimension, bool column_major, float alpha,
                                    float beta, const void* epilogue,
                                    void (*apply)(const void*, const epilogue_runs&)) {
    tile_output output{kernels.functions(isa),
                       data,
                       leading_dimension,
                       kernels.size,
                       column_major,
                       false,
                       alpha,
                       beta,
                       apply,
                       epilogue,
                       kernels.is_float};
    if (apply == nullptr && output.add != nullptr) {
        output.adds = same_value(alpha, 1.0F) && same_value(beta, 1.0F);
        if (output.adds) output.write = output.add;
    }
    return output;
}

/// C with an epilogue, which must outlive the result.
template <class Value, class Epilogue>
tile_output make_tile_output(instruction_set isa, Value* data, std::ptrdiff_t leading_dimension,
                             bool column_major, float alpha, float beta, const Epilogue& epilogue) {
    return make_tile_output(isa, product_kernels<Value>::of_result, data, leading_dimension, column_major,
                            alpha, beta, &epilogue, apply_of<Epilogue>());
}

/// Overload for a matrix view.
template <class Value, class Epilogue>
tile_output make_tile_output(instruction_set isa, matrix_view<Value> c, float alpha, float beta,
                             const Epilogue& epilogue) {
    return make_tile_output(isa, c.data, c.leading_dimension, c.order == storage_order::column_major, alpha,
                            beta, epilogue);
}

/// Calls compute(memory, row, column, rows, columns) for the tiles of a matrix, of at most tile_rows x tile_columns, on the
/// threads of `exec`, in the default floating-point modes; `memory` is a Memory of the thread.
template <class Memory, class Compute>
void for_each_tile(const cpu& exec, std::ptrdiff_t all_rows, std::ptrdiff_t all_columns,
                   std::ptrdiff_t tile_rows, std::ptrdiff_t tile_columns, Compute compute) {
    const std::ptrdiff_t across = (all_columns + tile_columns - 1) / tile_columns;
    const auto count = static_cast<std::size_t>((all_rows + tile_rows - 1) / tile_rows * across);
    parallel_for(exec, count, 1, [&](std::size_t begin, std::size_t end) {
        const default_floating_point_modes modes;
        Memory memory;
        for (std::size_t i = begin; i < end; ++i) {
            const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(i) / across * tile_rows;
            const std::ptrdiff_t column = static_cast<std::ptrdiff_t>(i) % across * tile_columns;
            compute(memory, row, column, (std::min)(tile_rows, all_rows - row),
                    (std::min)(tile_columns, all_columns - column));
        }
    });
}

template <class Value>
constexpr result_kernels make_result_kernels() {
    return {sizeof(Value), std::is_same_v<Value, float>, &result_functions_for<Value>};
}

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

template <class Value, class Owner>
constinit const result_kernels owned_product_kernels<Value, Owner>::of_result = make_result_kernels<Value>();

}}  // namespace mp::detail
