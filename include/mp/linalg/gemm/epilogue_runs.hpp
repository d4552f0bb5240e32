// SPDX-License-Identifier: MIT
/// \file
/// How products on the CPU call their epilogues: for runs of values that are neighbours in C.
#pragma once

#include <mp/config.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/elementwise.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <cstddef>
#include <type_traits>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

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
    MP_ALWAYS_INLINE void for_each(Function f) const {
        for (std::ptrdiff_t i = 0; i < runs; ++i) {
            f(values + i * stride, down ? row : row + i, down ? column + i : column);
        }
    }
};

}}  // namespace mp::detail

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

/// Calls the epilogue on runs. An epilogue of the library may have a member apply_runs(runs) that returns whether
/// it has served them at once, which saves the calls for each.
template <class Epilogue>
void apply_to_runs(const Epilogue& epilogue, const epilogue_runs& all) {
    if constexpr (requires { epilogue.apply_runs(all); }) {
        if (epilogue.apply_runs(all)) return;
    }
    all.for_each([&](float* values, std::ptrdiff_t row, std::ptrdiff_t column) {
        apply_to_run(epilogue, values, all.count, row, column, all.down);
    });
}

}}  // namespace mp::detail
