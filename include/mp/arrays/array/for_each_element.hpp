// SPDX-License-Identifier: MIT
/// \file
/// Traversals of matrices of one shape and any element types: along the rows or columns of the output that are
/// contiguous, split over threads, in runs of floats; in runs of doubles where an element is a double.
#pragma once

#include <mp/arrays/array/element_rows.hpp>
#include <mp/arrays/array/element_type.hpp>
#include <mp/arrays/array/parallel.hpp>
#include <mp/arrays/convert/bulk.hpp>
#include <mp/arrays/convert/portable.hpp>
#include <mp/base/parallel.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/format/basic_float.hpp>
#include <mp/numbers/rules/double_functions.hpp>
#include <mp/numbers/rules/elementwise.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Most elements of a run, which are converted to floats and back at once.
inline constexpr std::size_t run_block = 256;
/// Most columns that are added up at once.
inline constexpr std::size_t element_block = 64;

/// Reads `count` elements, `step` apart, as floats or doubles; exact.
MP_CORE_FUNCTION void load_elements(const element_type& type, const std::byte* from, std::ptrdiff_t step,
                                    std::size_t count, float* to);
MP_CORE_FUNCTION void load_elements(const element_type& type, const std::byte* from, std::ptrdiff_t step,
                                    std::size_t count, double* to);
/// Writes `count` elements, `step` apart, each rounded once to nearest even.
MP_CORE_FUNCTION void store_elements(const element_type& type, const float* from, std::size_t count,
                                     std::byte* to, std::ptrdiff_t step = 1);
MP_CORE_FUNCTION void store_elements(const element_type& type, const double* from, std::size_t count,
                                     std::byte* to, std::ptrdiff_t step = 1);

/// Kernels for arrays of Reals.
template <class Real>
using unary_kernel = void (*)(instruction_set, std::size_t count, Real* to, const Real* x);
template <class Real>
using binary_kernel = void (*)(instruction_set, std::size_t count, Real* to, const Real* a, const Real* b);

/// Writes kernel(in...) to every element of `out`, rounded once to its type. Elements are read before those in the same
/// places are written, so that `out` may be one of the inputs.
MP_CORE_FUNCTION void map_matrices(const cpu& exec, const any_matrix& out, unary_kernel<float> kernel,
                                   const any_matrix& x);
MP_CORE_FUNCTION void map_matrices(const cpu& exec, const any_matrix& out, unary_kernel<double> kernel,
                                   const any_matrix& x);
MP_CORE_FUNCTION void map_matrices(const cpu& exec, const any_matrix& out, binary_kernel<float> kernel,
                                   const any_matrix& a, const any_matrix& b);
MP_CORE_FUNCTION void map_matrices(const cpu& exec, const any_matrix& out, binary_kernel<double> kernel,
                                   const any_matrix& a, const any_matrix& b);

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Calls f(std::integral_constant<std::size_t, size>) for the size of an element: 1, 2, 4 or 8 bytes.
template <class Function>
void with_element_size(std::size_t size, Function f) {
    switch (size) {
        case 1:
            return f(std::integral_constant<std::size_t, 1>{});
        case 2:
            return f(std::integral_constant<std::size_t, 2>{});
        case 4:
            return f(std::integral_constant<std::size_t, 4>{});
        default:
            return f(std::integral_constant<std::size_t, 8>{});
    }
}

/// Copies `count` elements of `size` bytes that lie from_step elements apart to places that are to_step apart.
inline void copy_strided(std::size_t size, const std::byte* from, std::ptrdiff_t from_step, std::byte* to,
                         std::ptrdiff_t to_step, std::ptrdiff_t count) {
    if (count <= 0) return;
    if (from_step == 1 && to_step == 1) {
        std::memcpy(to, from, static_cast<std::size_t>(count) * size);
        return;
    }
    with_element_size(size, [&]<std::size_t Size>(std::integral_constant<std::size_t, Size>) {
        constexpr auto bytes = static_cast<std::ptrdiff_t>(Size);
        for (std::ptrdiff_t i = 0; i < count; ++i) {
            std::memcpy(to + i * to_step * bytes, from + i * from_step * bytes, Size);
        }
    });
}

/// Whether the elements are floats (doubles), which are used where they are.
template <class Real>
[[nodiscard]] bool holds_reals(const any_matrix& view) {
    return !view.type->is_reduced && view.type->size == sizeof(Real);
}

/// Reads the elements of a row.
template <class Real>
void load_row(const any_matrix& matrix, std::ptrdiff_t row, Real* to) {
    load_elements(*matrix.type, matrix.at(row, 0), matrix.column_stride(),
                  static_cast<std::size_t>(matrix.columns), to);
}
/// The elements of a row: in place if they are contiguous Reals, else copied to `scratch`.
template <class Real>
const Real* reals_of_row(const any_matrix& matrix, std::ptrdiff_t row, Real* scratch) {
    if (holds_reals<Real>(matrix) && matrix.column_stride() == 1) {
        return reinterpret_cast<const Real*>(matrix.at(row, 0));
    }
    load_row(matrix, row, scratch);
    return scratch;
}
/// Memory for the results of a row: the row itself if it holds contiguous Reals, else `scratch`, from which
/// put_row() rounds them to the row.
template <class Real>
Real* row_target(const any_matrix& matrix, std::ptrdiff_t row, Real* scratch) {
    if (holds_reals<Real>(matrix) && matrix.column_stride() == 1) {
        return reinterpret_cast<Real*>(matrix.at(row, 0));
    }
    return scratch;
}
/// Rounds results to the elements of a row, unless they are in it already.
template <class Real>
void put_row(const Real* from, const any_matrix& matrix, std::ptrdiff_t row) {
    std::byte* const to = matrix.at(row, 0);
    if (to == reinterpret_cast<const std::byte*>(from)) return;
    store_elements(*matrix.type, from, static_cast<std::size_t>(matrix.columns), to, matrix.column_stride());
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

/// Distance between the vectors of `view` when it is traversed along the rows, or the columns, of another.
[[nodiscard]] inline std::ptrdiff_t vector_stride(const any_matrix& view, bool by_rows) {
    return by_rows ? view.row_stride() : view.column_stride();
}
/// Distance between neighbours in such a vector.
[[nodiscard]] inline std::ptrdiff_t element_stride(const any_matrix& view, bool by_rows) {
    return by_rows ? view.column_stride() : view.row_stride();
}
/// Address of element `at` of vector `index`.
[[nodiscard]] inline std::byte* element_of_vector(const any_matrix& view, bool by_rows, std::ptrdiff_t index,
                                                  std::ptrdiff_t at) {
    return by_rows ? view.at(index, at) : view.at(at, index);
}

/// Elements that follow each other along a row or column of the output; at most run_block.
struct element_run {
    std::ptrdiff_t row;     ///< of the first element
    std::ptrdiff_t column;  ///< of the first element
    bool along_row;         ///< whether the others are in the next columns, not the next rows
    std::size_t count;
};

/// Calls f(vector, begin, end) for chunks of the vectors of `out`, on the threads of `exec`.
template <class Function>
void for_each_segment(const cpu& exec, const any_matrix& out, Function f) {
    const std::ptrdiff_t length = out.vector_length();
    if (length == 0) return;
    constexpr std::ptrdiff_t longest = 16384;  // some ten microseconds of work, as a thread costs
    const std::ptrdiff_t segments = (length - 1) / longest + 1;
    const auto count = static_cast<std::size_t>(out.vector_count() * segments);
    const auto grain = static_cast<std::size_t>(1 + longest / length);
    parallel_arithmetic(exec, count, grain, [&](std::size_t begin, std::size_t end) {
        for (auto i = static_cast<std::ptrdiff_t>(begin); i < static_cast<std::ptrdiff_t>(end); ++i) {
            const std::ptrdiff_t first = i % segments * longest;
            f(i / segments, first, (std::min)(length, first + longest));
        }
    });
}

/// Calls f(run, to, from...) with arrays of Reals, the elements of `in` at the places of the run, and rounds what f writes
/// to `to` to the elements of `out`. Elements are read before those at the same places are written, so that `out` may be
/// one of `in`.
template <class Real, class Function, class... In>
void for_each_run(const cpu& exec, Function f, const any_matrix& out, const In&... in) {
    const bool by_rows = out.row_major;
    for_each_segment(exec, out, [&](std::ptrdiff_t vector, std::ptrdiff_t begin, std::ptrdiff_t end) {
        constexpr auto block = static_cast<std::ptrdiff_t>(run_block);
        for (std::ptrdiff_t first = begin; first < end; first += block) {
            const auto count = static_cast<std::size_t>((std::min)(block, end - first));
            const element_run run{by_rows ? vector : first, by_rows ? first : vector, by_rows, count};
            Real results[run_block];
            Real values[sizeof...(In) + 1][run_block];
            [[maybe_unused]] std::size_t next = 0;
            [[maybe_unused]] const auto loaded = [&](const any_matrix& view) -> const Real* {
                Real* const to = values[next++];
                load_elements(*view.type, element_of_vector(view, by_rows, vector, first),
                              element_stride(view, by_rows), count, to);
                return to;
            };
            // Braces, so that arguments are read in their order.
            const std::array<const Real*, sizeof...(In) + 1> from{loaded(in)..., nullptr};
            [&]<std::size_t... I>(std::index_sequence<I...>) {
                f(run, results, from[I]...);
            }(std::index_sequence_for<In...>{});
            store_elements(*out.type, results, count, element_of_vector(out, by_rows, vector, first));
        }
    });
}

/// The elements of a contiguous matrix as one row.
[[nodiscard]] inline any_matrix as_one_row(const any_matrix& view) {
    any_matrix result = view;
    result.rows = 1;
    result.columns = view.rows * view.columns;
    result.leading_dimension = result.columns;
    result.row_major = true;
    return result;
}
/// Whether views of one shape lie in memory in the same order and without gaps.
template <class... Rest>
[[nodiscard]] bool are_one_vector(const any_matrix& first, const Rest&... rest) {
    [[maybe_unused]] const auto fits = [&](const any_matrix& view) {
        return element_stride(view, first.row_major) == 1 &&
               vector_stride(view, first.row_major) == first.vector_length();
    };
    return first.is_contiguous() && (fits(rest) && ...);
}

/// Calls f(count, to, from...) with arrays of Reals, as for_each_run() does with runs, for functions that do not depend on
/// the places of their elements. Contiguous Reals are not copied.
template <class Real, class Function, class... In>
void for_each_real_run(const cpu& exec, const Function& f, const any_matrix& out, const In&... in) {
    if (out.vector_count() > 1 && are_one_vector(out, in...)) {
        return for_each_real_run<Real>(exec, f, as_one_row(out), as_one_row(in)...);
    }
    const bool by_rows = out.row_major;
    if (holds_reals<Real>(out) && ((holds_reals<Real>(in) && element_stride(in, by_rows) == 1) && ...)) {
        return for_each_segment(
            exec, out, [&](std::ptrdiff_t vector, std::ptrdiff_t begin, std::ptrdiff_t end) {
                const auto at = [&](const any_matrix& view) {
                    return reinterpret_cast<Real*>(element_of_vector(view, by_rows, vector, begin));
                };
                f(static_cast<std::size_t>(end - begin), at(out), static_cast<const Real*>(at(in))...);
            });
    }
    for_each_run<Real>(
        exec, [&f](const element_run& run, Real* to, const auto*... from) { f(run.count, to, from...); }, out,
        in...);
}

/// Writes Function(in...) of <mp/numbers/rules/elementwise.hpp> to every element of `out`, computed in Real and rounded
/// once to its type.
template <class Function, class Real>
void map_operands(const cpu& exec, const any_matrix& out, const any_matrix& x) {
    map_matrices(exec, out, static_cast<unary_kernel<Real>>(&map_floats<Function>), x);
}
template <class Function, class Real>
void map_operands(const cpu& exec, const any_matrix& out, const any_matrix& a, const any_matrix& b) {
    map_matrices(exec, out, static_cast<binary_kernel<Real>>(&map_floats<Function>), a, b);
}

/// Writes Function(in...) to every element of `out`, rounded once to its format. On a GPU the function of this name in <mp/device/gpu/map_elements.hpp> does.
template <class Function, class Out, class... In>
void map_elements(Function, const cpu& exec, matrix_view<Out> out, matrix_view<const In>... in) {
    map_operands<Function, real_of<Out, In...>>(exec, any_matrix_of(out), any_matrix_of(in)...);
}

/// Writes f(in...) to every element of `out`, rounded to float and from there to its format. f is a function
/// of rounded_doubles of any number of lanes.
template <class Real, class Function, class... In>
void for_each_number(const cpu& exec, Function f, const any_matrix& out, const In&... in) {
    for_each_real_run<Real>(
        exec,
        [&f](std::size_t count, Real* to, const auto*... from) {
            for_each_double(count, [&](auto kind, std::size_t i) {
                using number = decltype(kind);
                f(number::load(from + i)...).store(to + i);
            });
        },
        out, in...);
}

/// Writes f(in...), a float of floats (or a double of doubles), to every element of `out`, rounded once to
/// its format.
template <class Real, class Function, class... In>
void for_each_real(const cpu& exec, Function f, const any_matrix& out, const In&... in) {
    if (out.vector_count() > 1 && are_one_vector(out, in...)) {
        return for_each_real<Real>(exec, f, as_one_row(out), as_one_row(in)...);
    }
    for_each_run<Real>(
        exec,
        [&f](const element_run& run, Real* to, const auto*... from) {
            if (run.count == run_block) {  // a loop of constant length is vectorised at -O2 already
                for (std::size_t i = 0; i < run_block; ++i) to[i] = f(from[i]...);
            } else {
                for (std::size_t i = 0; i < run.count; ++i) to[i] = f(from[i]...);
            }
        },
        out, in...);
}

}}  // namespace mp::detail

#if MP_CORE_BODIES
namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Calls kernel(isa, count, to, in...) for runs of Reals.
template <class Real, class Kernel, class... In>
void map_real_runs(const cpu& exec, Kernel kernel, const any_matrix& out, const In&... in) {
    for_each_real_run<Real>(
        exec,
        [kernel, isa = best_instruction_set()](std::size_t count, Real* to, const auto*... from) {
            kernel(isa, count, to, from...);
        },
        out, in...);
}

/// Calls f(elements, first, count) for blocks of elements that lie `step` apart, copied to be neighbours.
template <class Function>
void for_each_gathered(std::size_t size, const std::byte* from, std::ptrdiff_t step, std::size_t count,
                       Function f) {
    alignas(double) std::byte gathered[run_block * sizeof(double)];
    for (std::size_t first = 0; first < count; first += run_block) {
        const std::size_t length = (std::min)(run_block, count - first);
        copy_strided(size, from + static_cast<std::ptrdiff_t>(first * size) * step, step, gathered, 1,
                     static_cast<std::ptrdiff_t>(length));
        f(gathered, first, length);
    }
}
template <class Function>
void for_each_scattered(std::size_t size, std::byte* to, std::ptrdiff_t step, std::size_t count, Function f) {
    alignas(double) std::byte values[run_block * sizeof(double)];
    for (std::size_t first = 0; first < count; first += run_block) {
        const std::size_t length = (std::min)(run_block, count - first);
        f(values, first, length);
        copy_strided(size, values, 1, to + static_cast<std::ptrdiff_t>(first * size) * step, step,
                     static_cast<std::ptrdiff_t>(length));
    }
}

/// Converts arrays between two types, of which float holds all values unless one is double.
inline void convert_elements(const cpu& exec, const element_type& from_type, const std::byte* from,
                             const element_type& to_type, std::byte* to, std::size_t count) {
    if (from_type.is_double || to_type.is_double) {
        double values[run_block];
        for (std::size_t i = 0; i < count; i += run_block) {
            const std::size_t length = (std::min)(run_block, count - i);
            from_type.to_doubles(from + i * from_type.size, values, length);
            for (std::size_t j = 0; j < length; ++j) values[j] = quieted(values[j]);
            to_type.from_doubles(values, to + i * to_type.size, length);
        }
        return;
    }
    const auto convert_few = [&](instruction_set isa, std::size_t begin, std::size_t end) {
        float values[run_block];
        for (std::size_t i = begin; i < end; i += run_block) {
            const std::size_t length = (std::min)(run_block, end - i);
            from_type.widen(isa, from + i * from_type.size, values, length);
            to_type.narrow(isa, values, to + i * to_type.size, length);
        }
    };
    constexpr std::size_t few = 4096;  // not worth a thread, nor the checks before
    if (count <= few) {
        const instruction_set isa = conversion_isa();
        if (!from_type.is_reduced)
            return to_type.narrow(isa, reinterpret_cast<const float*>(from), to, count);
        if (!to_type.is_reduced) return from_type.widen(isa, from, reinterpret_cast<float*>(to), count);
        return convert_few(isa, 0, count);
    }
    if (!from_type.is_reduced) {
        return to_type.narrow_array(exec, reinterpret_cast<const float*>(from), to, count);
    }
    if (!to_type.is_reduced) return from_type.widen_array(exec, from, reinterpret_cast<float*>(to), count);
    const instruction_set isa = isa_of("mp::convert", exec);
    parallel_arithmetic(exec, count, std::size_t{1} << 16,
                        [&](std::size_t begin, std::size_t end) { convert_few(isa, begin, end); });
}

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION void copy_elements(const cpu& exec, const any_matrix& from, const any_matrix& to) {
    const std::ptrdiff_t vectors = to.vector_count();
    const std::ptrdiff_t length = to.vector_length();
    if (vectors == 0 || length == 0) return;
    if (vectors == 1 || (from.is_contiguous() && to.is_contiguous())) {
        return convert_elements(exec, *from.type, from.at(0, 0), *to.type, to.at(0, 0),
                                static_cast<std::size_t>(vectors * length));
    }
    cpu inner = exec;
    inner.threads = 1;
    constexpr std::ptrdiff_t elements_per_chunk = 16384;  // some ten microseconds of work, as a thread costs
    parallel_arithmetic(exec, static_cast<std::size_t>(vectors),
                        static_cast<std::size_t>((std::max<std::ptrdiff_t>)(1, elements_per_chunk / length)),
                        [&](std::size_t begin, std::size_t end) {
                            for (auto vector = static_cast<std::ptrdiff_t>(begin);
                                 vector < static_cast<std::ptrdiff_t>(end); ++vector) {
                                convert_elements(inner, *from.type,
                                                 element_of_vector(from, from.row_major, vector, 0), *to.type,
                                                 element_of_vector(to, to.row_major, vector, 0),
                                                 static_cast<std::size_t>(length));
                            }
                        });
}

MP_CORE_FUNCTION void load_elements(const element_type& type, const std::byte* from, std::ptrdiff_t step,
                                    std::size_t count, float* to) {
    if (step == 1 && !type.is_reduced) {
        std::memcpy(to, from, count * sizeof(float));
    } else if (step == 1) {
        type.widen(conversion_isa(), from, to, count);
    } else {
        for_each_gathered(type.size, from, step, count,
                          [&](const std::byte* values, std::size_t first, std::size_t length) {
                              load_elements(type, values, 1, length, to + first);
                          });
    }
}
MP_CORE_FUNCTION void load_elements(const element_type& type, const std::byte* from, std::ptrdiff_t step,
                                    std::size_t count, double* to) {
    if (step == 1) return type.to_doubles(from, to, count);
    for_each_gathered(type.size, from, step, count,
                      [&](const std::byte* values, std::size_t first, std::size_t length) {
                          type.to_doubles(values, to + first, length);
                      });
}
MP_CORE_FUNCTION void store_elements(const element_type& type, const float* from, std::size_t count,
                                     std::byte* to, std::ptrdiff_t step) {
    if (step == 1 && !type.is_reduced) {
        std::memcpy(to, from, count * sizeof(float));
    } else if (step == 1) {
        type.narrow(conversion_isa(), from, to, count);
    } else {
        for_each_scattered(type.size, to, step, count,
                           [&](std::byte* values, std::size_t first, std::size_t length) {
                               store_elements(type, from + first, length, values);
                           });
    }
}
MP_CORE_FUNCTION void store_elements(const element_type& type, const double* from, std::size_t count,
                                     std::byte* to, std::ptrdiff_t step) {
    if (step == 1) return type.from_doubles(from, to, count);
    for_each_scattered(type.size, to, step, count,
                       [&](std::byte* values, std::size_t first, std::size_t length) {
                           type.from_doubles(from + first, values, length);
                       });
}

MP_CORE_FUNCTION void map_matrices(const cpu& exec, const any_matrix& out, unary_kernel<float> kernel,
                                   const any_matrix& x) {
    map_real_runs<float>(exec, kernel, out, x);
}
MP_CORE_FUNCTION void map_matrices(const cpu& exec, const any_matrix& out, unary_kernel<double> kernel,
                                   const any_matrix& x) {
    map_real_runs<double>(exec, kernel, out, x);
}
MP_CORE_FUNCTION void map_matrices(const cpu& exec, const any_matrix& out, binary_kernel<float> kernel,
                                   const any_matrix& a, const any_matrix& b) {
    map_real_runs<float>(exec, kernel, out, a, b);
}
MP_CORE_FUNCTION void map_matrices(const cpu& exec, const any_matrix& out, binary_kernel<double> kernel,
                                   const any_matrix& a, const any_matrix& b) {
    map_real_runs<double>(exec, kernel, out, a, b);
}

}}  // namespace mp::detail
#endif
