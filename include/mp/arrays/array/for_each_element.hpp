// SPDX-License-Identifier: MIT
/// \file
/// How the ops walk over the elements of matrices of one shape: along the lines of the output, split over
/// threads, in runs of floats or row by row. Where an element is a double, everything here is doubles in
/// place of floats.
///
/// A view with leading_dimension 0 in row-major order is a row that is repeated; it may be read here.
#pragma once

#include <mp/arrays/array/parallel.hpp>
#include <mp/arrays/convert/bulk.hpp>
#include <mp/base/parallel.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/format/basic_float.hpp>
#include <mp/numbers/rules/double_functions.hpp>
#include <mp/numbers/rules/elementwise.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstring>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The strides of views that are walked along the lines of one of them.
struct vector_walk {
    bool by_rows;

    template <class Value>
    explicit vector_walk(matrix_view<Value> out) : by_rows(out.order == storage_order::row_major) {}

    template <class Value>
    [[nodiscard]] std::ptrdiff_t lines(matrix_view<Value> view) const {
        return by_rows ? view.rows : view.columns;
    }
    template <class Value>
    [[nodiscard]] std::ptrdiff_t length(matrix_view<Value> view) const {
        return by_rows ? view.columns : view.rows;
    }
    template <class Value>
    [[nodiscard]] std::ptrdiff_t vector_stride(matrix_view<Value> view) const {
        return by_rows ? view.row_stride() : view.column_stride();
    }
    /// Distance between neighbours in a line.
    template <class Value>
    [[nodiscard]] std::ptrdiff_t step(matrix_view<Value> view) const {
        return by_rows ? view.column_stride() : view.row_stride();
    }
};

/// Calls f(line, begin, end) for chunks of the lines of `out`, on the threads of `exec`.
template <class Out, class Function>
void for_each_segment(cpu exec, matrix_view<Out> out, Function f) {
    const vector_walk walk(out);
    const std::ptrdiff_t length = walk.length(out);
    if (length == 0) return;
    constexpr std::ptrdiff_t longest = 16384;  // some ten microseconds of work, as a thread costs
    const std::ptrdiff_t segments = (length - 1) / longest + 1;
    const auto count = static_cast<std::size_t>(walk.lines(out) * segments);
    const auto grain = static_cast<std::size_t>(1 + longest / length);
    parallel_arithmetic(exec, count, grain, [&](std::size_t begin, std::size_t end) {
        for (auto i = static_cast<std::ptrdiff_t>(begin); i < static_cast<std::ptrdiff_t>(end); ++i) {
            const std::ptrdiff_t first = i % segments * longest;
            f(i / segments, first, (std::min)(length, first + longest));
        }
    });
}

/// Whether views of one shape lie in memory in the same order and without gaps, so that they are one line.
template <class First, class... Rest>
bool is_one_vector(matrix_view<First> first, matrix_view<Rest>... rest) {
    const vector_walk walk(first);
    const std::ptrdiff_t length = walk.length(first);
    return walk.vector_stride(first) == length &&
           ((walk.step(rest) == 1 && walk.vector_stride(rest) == length) && ...);
}

/// The elements of such a view as one row.
template <class Value>
matrix_view<Value> as_one_vector(matrix_view<Value> view) {
    return row_major(view.data, 1, view.rows * view.columns);
}

/// Most elements that are converted to float and back at once.
inline constexpr std::size_t element_block = 64;
/// Of runs, whose calls take longer.
inline constexpr std::size_t run_block = 256;

/// Up to run_block elements that are `step` apart, as floats; exact.
template <class Value>
void load_floats(const Value* from, std::ptrdiff_t step, std::size_t count, float* to) {
    if (step == 1) {
        if constexpr (std::same_as<Value, float>) {
            std::memcpy(to, from, count * sizeof(float));
        } else {
            widen_to_float(conversion_isa(), from, to, count);
        }
    } else if constexpr (std::same_as<Value, float>) {
        for (std::size_t i = 0; i < count; ++i) to[i] = from[static_cast<std::ptrdiff_t>(i) * step];
    } else {
        Value gathered[run_block];
        for (std::size_t i = 0; i < count; ++i) gathered[i] = from[static_cast<std::ptrdiff_t>(i) * step];
        widen_to_float(conversion_isa(), gathered, to, count);
    }
}

/// The same as doubles.
template <class Value>
void load_floats(const Value* from, std::ptrdiff_t step, std::size_t count, double* to) {
    for (std::size_t i = 0; i < count; ++i) {
        to[i] = as<double>(from[static_cast<std::ptrdiff_t>(i) * step]);
    }
}

/// Writes up to run_block elements that are `step` apart, each rounded once to nearest even.
template <class Value>
void store_floats(const float* from, std::size_t count, Value* to, std::ptrdiff_t step = 1) {
    if (step != 1) {
        Value rounded[run_block];
        store_floats(from, count, rounded);
        for (std::size_t i = 0; i < count; ++i) to[static_cast<std::ptrdiff_t>(i) * step] = rounded[i];
    } else if constexpr (std::same_as<Value, float>) {
        std::memcpy(to, from, count * sizeof(float));
    } else {
        convert_nearest(conversion_isa(), from, to, count);
    }
}

template <class Value>
void store_floats(const double* from, std::size_t count, Value* to, std::ptrdiff_t step = 1) {
    for (std::size_t i = 0; i < count; ++i) to[static_cast<std::ptrdiff_t>(i) * step] = as<Value>(from[i]);
}

/// The elements of a row as floats.
template <class Value, class Real>
void load_row(matrix_view<const Value> matrix, std::ptrdiff_t row, Real* to) {
    const std::ptrdiff_t step = matrix.column_stride();
    constexpr auto block = static_cast<std::ptrdiff_t>(element_block);
    for (std::ptrdiff_t first = 0; first < matrix.columns; first += block) {
        load_floats(matrix.data + row * matrix.row_stride() + first * step, step,
                    static_cast<std::size_t>((std::min)(block, matrix.columns - first)), to + first);
    }
}

/// The floats of a row: where they are if they lie side by side, else in `room`.
template <class Value, class Real>
const Real* floats_of_row(matrix_view<const Value> matrix, std::ptrdiff_t row, Real* room) {
    if constexpr (std::same_as<Value, Real>) {
        if (matrix.column_stride() == 1) return matrix.data + row * matrix.row_stride();
    }
    load_row(matrix, row, room);
    return room;
}
/// Where the floats of a row are to be written: into the row if they lie there side by side, else into
/// `room`, from where put_row takes them.
template <class Value, class Real>
Real* row_target(matrix_view<Value> matrix, std::ptrdiff_t row, Real* room) {
    if constexpr (std::same_as<Value, Real>) {
        if (matrix.column_stride() == 1) return matrix.data + row * matrix.row_stride();
    }
    return room;
}
/// Rounds the floats to the elements of a row, unless they are in it already.
template <class Value, class Real>
void put_row(const Real* from, matrix_view<Value> matrix, std::ptrdiff_t row) {
    const std::ptrdiff_t step = matrix.column_stride();
    Value* const to = matrix.data + row * matrix.row_stride();
    if constexpr (std::same_as<Value, Real>) {
        if (to == from) return;
    }
    constexpr auto block = static_cast<std::ptrdiff_t>(run_block);
    for (std::ptrdiff_t first = 0; first < matrix.columns; first += block) {
        store_floats(from + first, static_cast<std::size_t>((std::min)(block, matrix.columns - first)),
                     to + first * step, step);
    }
}

/// Calls f(row, room) for every row, where room is a Room(columns, memory of Room::size(columns) elements) that a
/// thread uses for one row after the other. Rows are some ten nanoseconds of work for each element.
template <class Room, class Function>
void for_each_row(cpu exec, std::ptrdiff_t rows, std::ptrdiff_t columns, Function f) {
    if (columns == 0) return;
    const std::size_t grain = 1 + 4096 / static_cast<std::size_t>(columns);
    thread_buffers<typename Room::element> buffers(exec, Room::size(static_cast<std::size_t>(columns)));
    parallel_arithmetic(exec, static_cast<std::size_t>(rows), grain, [&](std::size_t begin, std::size_t end) {
        Room room(static_cast<std::size_t>(columns), buffers.take());
        for (auto row = static_cast<std::ptrdiff_t>(begin); row < static_cast<std::ptrdiff_t>(end); ++row) {
            f(row, room);
        }
    });
}

/// Elements that follow each other along a line of the output; at most run_block.
struct element_run {
    std::ptrdiff_t row;     ///< of the first element
    std::ptrdiff_t column;  ///< of the first element
    bool along_row;         ///< whether the others are in the next columns, not the next rows
    std::size_t count;
};

/// Calls f(run, to, from...) with arrays of floats, the elements of `in` at the places of the run, and rounds
/// what f writes to `to` to the elements of `out`. Elements are read before those at the same places are
/// written, so that `out` may be one of `in`.
template <class Function, class Out, class... In>
void for_each_run(cpu exec, Function f, matrix_view<Out> out, matrix_view<const In>... in) {
    using real = real_of<Out, In...>;
    const vector_walk walk(out);
    for_each_segment(exec, out, [&](std::ptrdiff_t line, std::ptrdiff_t begin, std::ptrdiff_t end) {
        constexpr auto block = static_cast<std::ptrdiff_t>(run_block);
        for (std::ptrdiff_t first = begin; first < end; first += block) {
            const auto count = static_cast<std::size_t>((std::min)(block, end - first));
            const element_run run{walk.by_rows ? line : first, walk.by_rows ? first : line, walk.by_rows,
                                  count};
            real results[run_block];
            const auto loaded = [&](auto view, real* values) -> const real* {
                load_floats(view.data + line * walk.vector_stride(view) + first * walk.step(view),
                            walk.step(view), count, values);
                return values;
            };
            struct values {
                real value[run_block];
            };
            const auto call = [&](auto... room) { f(run, results, loaded(in, room.value)...); };
            call((static_cast<void>(in), values{})...);
            store_floats(results, count, out.data + line * walk.vector_stride(out) + first);
        }
    });
}

/// Calls f(count, to, from...) with arrays of floats, as for_each_run does with runs, for functions that do
/// not ask where their elements are. Floats that lie side by side are not copied.
template <class Function, class Out, class... In>
void for_each_float_run(cpu exec, Function f, matrix_view<Out> out, matrix_view<const In>... in) {
    if (out.rows > 1 && is_one_vector(out, in...)) {
        return for_each_float_run(exec, f, as_one_vector(out), as_one_vector(in)...);
    }
    using real = real_of<Out, In...>;
    if constexpr (std::same_as<Out, real> && (std::same_as<In, real> && ...)) {
        const vector_walk walk(out);
        if (((walk.step(in) == 1) && ...)) {
            return for_each_segment(exec, out,
                                    [&](std::ptrdiff_t line, std::ptrdiff_t begin, std::ptrdiff_t end) {
                                        const auto at = [&](auto view) {
                                            return view.data + line * walk.vector_stride(view) + begin;
                                        };
                                        f(static_cast<std::size_t>(end - begin), at(out), at(in)...);
                                    });
        }
    }
    for_each_run(
        exec, [&f](const element_run& run, auto* to, const auto*... from) { f(run.count, to, from...); }, out,
        in...);
}

/// Writes Function(in...) of <mp/numbers/rules/elementwise.hpp> to every element of `out`, rounded once to its
/// format. On a GPU the function of this name in <mp/device/gpu/map_elements.hpp> does.
template <class Function, class Out, class... In>
void map_elements(Function, const cpu& exec, matrix_view<Out> out, matrix_view<const In>... in) {
    for_each_float_run(
        exec,
        [isa = best_instruction_set()](std::size_t count, auto* to, const auto*... from) {
            map_floats<Function>(isa, count, to, from...);
        },
        out, in...);
}

/// Writes f(in...) to every element of `out`, rounded to float and from there to its format. f is a function
/// of rounded_doubles of any number of lanes.
template <class Function, class Out, class... In>
void for_each_number(cpu exec, Function f, matrix_view<Out> out, matrix_view<const In>... in) {
    for_each_float_run(
        exec,
        [&f](std::size_t count, auto* to, const auto*... from) {
            for_each_double(count, [&](auto kind, std::size_t i) {
                using number = decltype(kind);
                f(number::load(from + i)...).store(to + i);
            });
        },
        out, in...);
}

/// Writes f(in...), a float of floats (or a double of doubles), to every element of `out`, rounded once to
/// its format.
template <class Function, class Out, class... In>
void for_each_float(cpu exec, Function f, matrix_view<Out> out, matrix_view<const In>... in) {
    if (out.rows > 1 && is_one_vector(out, in...)) {
        return for_each_float(exec, f, as_one_vector(out), as_one_vector(in)...);
    }
    for_each_run(
        exec,
        [&f](const element_run& run, auto* to, const auto*... from) {
            if (run.count == run_block) {  // a loop of constant length is vectorised at -O2 already
                for (std::size_t i = 0; i < run_block; ++i) to[i] = f(from[i]...);
            } else {
                for (std::size_t i = 0; i < run.count; ++i) to[i] = f(from[i]...);
            }
        },
        out, in...);
}

}}  // namespace mp::detail
