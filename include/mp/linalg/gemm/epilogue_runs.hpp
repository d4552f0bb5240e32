// SPDX-License-Identifier: MIT
/// \file
/// How products on the CPU call their epilogues: for runs of values that are neighbours in C.
#pragma once

#include <mp/base/view_extent.hpp>
#include <mp/config.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/elementwise.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <cstddef>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// values[j] += terms[j], each as a float, for `count` neighbours.
template <class Value>
void add_terms_to_run(float* values, std::ptrdiff_t count, const Value* terms) {
    if constexpr (std::is_same_v<Value, float>) {
        const float* const from = values;
        map_floats<sum_function>(best_instruction_set(), static_cast<std::size_t>(count), values, from,
                                 terms);
    } else {
        for (std::ptrdiff_t j = 0; j < count; ++j) {
            values[j] = float_add(values[j], static_cast<float>(terms[j]));
        }
    }
}

/// Calls the epilogue on values that lie in a row of C from (row, column) on, or in a column where `down`: by
/// its member apply(values, count, row, column, down) if it has one.
template <class Epilogue>
void apply_to_run(const Epilogue& epilogue, float* values, std::ptrdiff_t count, std::ptrdiff_t row,
                  std::ptrdiff_t column, bool down) {
    if constexpr (requires { epilogue.apply(values, count, row, column, down); }) {
        epilogue.apply(values, count, row, column, down);
    } else if (down) {
        for (std::ptrdiff_t j = 0; j < count; ++j) values[j] = epilogue(values[j], row + j, column);
    } else {
        for (std::ptrdiff_t j = 0; j < count; ++j) values[j] = epilogue(values[j], row, column + j);
    }
}

/// Runs of `count` values, `stride` apart: rows of C from (row, column) on, or columns where `down`.
struct epilogue_runs {
    float* values;
    std::ptrdiff_t stride;
    std::ptrdiff_t runs;
    std::ptrdiff_t count;
    std::ptrdiff_t row;
    std::ptrdiff_t column;
    bool down;

    /// Calls f(values, row, column) for every run.
    template <class Function>
    void for_each(Function f) const {
        for (std::ptrdiff_t i = 0; i < runs; ++i) {
            f(values + i * stride, down ? row : row + i, down ? column + i : column);
        }
    }
};

/// The same for runs. An epilogue of this file may have a member apply_runs(runs) that says whether it has
/// served them at once, which saves the calls for each.
template <class Epilogue>
void apply_to_runs(const Epilogue& epilogue, const epilogue_runs& all) {
    if constexpr (requires { epilogue.apply_runs(all); }) {
        if (epilogue.apply_runs(all)) return;
    }
    all.for_each([&](float* values, std::ptrdiff_t row, std::ptrdiff_t column) {
        apply_to_run(epilogue, values, all.count, row, column, all.down);
    });
}

/// Whether an epilogue writes a matrix of C's shape, which the products of a batch cannot share.
template <class Epilogue>
inline constexpr bool stores_matrix = requires { requires Epilogue::stores_matrix; };

/// Has the epilogue check the shape of C, and that what it writes does not overlap C.
template <class Epilogue, class C>
void validate_epilogue(const Epilogue& epilogue, const matrix_view<C>& c) {
    if constexpr (requires { epilogue.validate(c.rows, c.columns); }) epilogue.validate(c.rows, c.columns);
    if constexpr (stores_matrix<Epilogue>) epilogue.check_outputs(extent_of(c));
}
/// The same for several products, one of which has this C.
template <class Epilogue, class C>
void validate_batch_epilogue(const Epilogue& epilogue, const matrix_view<C>& c) {
    static_assert(!stores_matrix<Epilogue>,
                  "mp: store_auxiliary has one matrix, and these products have more than one C");
    validate_epilogue(epilogue, c);
}

}}  // namespace mp::detail
