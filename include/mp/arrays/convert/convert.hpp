// SPDX-License-Identifier: MIT
/// \file
/// Conversion of whole arrays and matrices.
#pragma once

#include <mp/arrays/convert/bulk.hpp>
#include <mp/arrays/convert/number_range.hpp>
#include <mp/base/parallel.hpp>
#include <mp/base/view_extent.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/memory.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Throws unless the arrays have the same size, are not null while not empty, and do not overlap.
inline void check_memory(std::string_view function, std::size_t from_size, std::span<const std::byte> from,
                         std::size_t to_size, std::span<const std::byte> to) {
    if (from_size != to_size) {
        throw_argument(function, "to.size()", to_size,
                       join_text({"must equal from.size(), which is ", error_text(from_size)}));
    }
    if (!from.empty() && from.data() == nullptr)
        throw_argument(function, "from.data()", "null", "must point to from.size() elements");
    if (!to.empty() && to.data() == nullptr)
        throw_argument(function, "to.data()", "null", "must point to to.size() elements");
    const auto from_begin = reinterpret_cast<std::uintptr_t>(from.data());
    const auto to_begin = reinterpret_cast<std::uintptr_t>(to.data());
    if (from_begin < to_begin + to.size_bytes() && to_begin < from_begin + from.size_bytes()) {
        throw_argument(function, "to", "overlapping from", "must be memory of its own");
    }
}

template <class From, class To>
void check_arrays(std::string_view function, std::span<From> from, std::span<To> to) {
    // Without a call where all is well: a few elements take no longer than the checks.
    const auto from_begin = reinterpret_cast<std::uintptr_t>(from.data());
    const auto to_begin = reinterpret_cast<std::uintptr_t>(to.data());
    if (from.size() == to.size() && from_begin != 0 && to_begin != 0 &&
        (to_begin + to.size_bytes() <= from_begin || from_begin + from.size_bytes() <= to_begin)) {
        return;
    }
    check_memory(function, from.size(), std::as_bytes(from), to.size(), std::as_bytes(to));
}

/// Bytes of source and target together from which on the target is written around the caches: a share of the
/// last one, since what is left there of so much is of little use and other cores want their part.
inline std::size_t streaming_threshold() noexcept {
    constexpr std::size_t unknown = std::size_t{16} << 20;
    const cache_sizes& caches = processor_caches();
    return caches.last == 0 ? unknown : (std::max)(caches.last / 8, 4 * caches.level_2);
}

/// Elements of a buffer that is then streamed: whole cache lines of every type.
inline constexpr std::size_t streaming_block = 1024;

/// Whether elements of this array begin cache lines. Those of one that is not aligned for its type never do, and are
/// written by ordinary stores, which may go to any address.
template <class To>
bool has_whole_cache_lines(const To* to) noexcept {
    return reinterpret_cast<std::uintptr_t>(to) % sizeof(To) == 0;
}

/// Elements from `to`, which has whole cache lines, up to the next one.
template <class To>
std::size_t elements_to_cache_line(const To* to) noexcept {
    const std::size_t past = reinterpret_cast<std::uintptr_t>(to) % cache_line;
    return past == 0 ? 0 : (cache_line - past) / sizeof(To);
}

/// Applies convert(from, to, count, index of the first element) in blocks whose results go around the caches.
/// Converted into a buffer first, so that conversions need not know of it; meanwhile the next source is
/// fetched.
template <class From, class To, class Convert>
void convert_streaming(const From* from, To* to, std::size_t count, std::size_t first, Convert convert) {
    alignas(cache_line) To buffer[streaming_block];
    const std::size_t head = (std::min)(count, elements_to_cache_line(to));
    convert(from, to, head, first);
    std::size_t i = head;
    for (; i + streaming_block <= count; i += streaming_block) {
        convert(from + i, buffer, streaming_block, first + i);
        const std::size_t ahead = (i + streaming_block) * sizeof(From) + 1024;
        copy_nontemporal(to + i, buffer, sizeof buffer, reinterpret_cast<std::uintptr_t>(from) + ahead,
                         streaming_block * sizeof(From));
    }
    finish_streaming();
    convert(from + i, to + i, count - i, first + i);
}

/// Applies convert(from, to, count, index of the first element) to chunks of arrays on the threads of `exec`.
/// No two threads write to the same cache line. A conversion that can go around the caches by itself has
/// stream(from, to, count).
template <class From, class To, class Convert>
void convert_in_chunks(cpu exec, instruction_set isa, const From* from, To* to, std::size_t count,
                       Convert convert) {
    // What takes longer than starting a thread.
    const std::size_t grain = std::size_t{1} << (isa == instruction_set::portable ? 16 : 18);
    const bool streams = has_streaming_stores && count >= grain && has_whole_cache_lines(to) &&
                         count * (sizeof(From) + sizeof(To)) > streaming_threshold();
    const auto convert_chunk = [&](std::size_t begin, std::size_t end) {
        const default_floating_point_modes modes;
        if (streams) {
            if constexpr (requires { convert.stream(from, to, count); }) {
                convert.stream(from + begin, to + begin, end - begin);
            } else {
                convert_streaming(from + begin, to + begin, end - begin, begin, convert);
            }
        } else {
            convert(from + begin, to + begin, end - begin, begin);
        }
    };
    if (exec.threads == 1 || count < 2 * grain_of(exec, grain)) {
        if (count != 0) convert_chunk(0, count);
        return;
    }
    // Chunks begin at a cache line of the target.
    constexpr std::size_t unit = 4096;
    const std::size_t lead = elements_to_cache_line(to);
    const std::size_t units = (count - lead + unit - 1) / unit;
    parallel_for(exec, units, grain / unit, [&](std::size_t begin, std::size_t end) {
        convert_chunk(begin == 0 ? 0 : lead + begin * unit, end == units ? count : lead + end * unit);
    });
}

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Arrays and matrices, to nearest even, after the checks, of the compiled part.
template <class From, class To>
void core_convert_array(const cpu& exec, instruction_set isa, const From* from, To* to, std::size_t count);
template <class From, class To>
void core_convert_matrix(const cpu& exec, instruction_set isa, matrix_view<const From> from,
                         matrix_view<To> to, const projection& p);

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Pairs for which convert_array_streaming is made: what large arrays are converted from and to.
template <class From, class To>
inline constexpr bool streams_without_buffer =
    has_streaming_stores && has_convert_array<From, To> && !std::same_as<From, To> &&
    (std::same_as<From, float> || std::same_as<To, float>);

/// Conversion to nearest even with the kernels of an instruction set.
struct nearest_array_conversion {
    instruction_set isa;

    template <class From, class To>
    void operator()(const From* from, To* to, std::size_t count, std::size_t /*first*/ = 0) const {
        convert_nearest(isa, from, to, count);
    }
#if MP_X86_TARGETS
    template <class From, class To>
        requires streams_without_buffer<From, To>
    void stream(const From* from, To* to, std::size_t count) const {
        const std::size_t head = (std::min)(count, elements_to_cache_line(to));
        const std::size_t lines = (count - head) / streamed_elements * streamed_elements;
        using function = void (*)(const From*, To*, std::size_t) noexcept;
        const auto kernel = MP_SELECT_TARGET(isa, (static_cast<function>(&convert_nearest<From, To>)),
                                             convert_array_streaming<From, To>);
        convert_nearest(isa, from, to, head);
        kernel(from + head, to + head, lines);
        finish_streaming();
        convert_nearest(isa, from + head + lines, to + head + lines, count - head - lines);
    }
#endif
};

/// mp::convert to nearest even after its checks.
template <class From, class To>
MP_ALWAYS_INLINE void convert_array_nearest(const cpu& exec, instruction_set isa, const From* from, To* to,
                                            std::size_t count) {
    if constexpr (has_core_conversion<From, To>) {
        core_convert_array(exec, isa, from, to, count);
    } else {
        const nearest_array_conversion conversion{isa};
        if constexpr (has_convert_array<From, To>) {
            // The modes cost more than a few elements do, and kernels see to them themselves.
            constexpr std::size_t few = 4096;
            if (isa != instruction_set::portable && count <= few) return conversion(from, to, count);
        }
        convert_in_chunks(exec, isa, from, to, count, conversion);
    }
}

/// Checks the arguments of mp::convert and calls convert(isa, from, to) with pointers and a count.
template <class Source, class Target, class Convert>
void with_checked_arrays(cpu exec, const Source& from, Target&& to, Convert convert) {
    const std::span source = as_span(from);
    const std::span target = as_span(to);
    check_threads("mp::convert", exec);
    check_arrays("mp::convert", source, target);
    using from_type = std::remove_cv_t<contiguous_element<const Source>>;
    convert(isa_of("mp::convert", exec), static_cast<const from_type*>(source.data()), target.data(),
            source.size());
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Converts an array of numbers to another type, element by element: to[i] = round_to<To>(from[i], p), with
/// the same bits whatever the instructions and the number of threads, and whatever rounding direction and
/// flushing of subnormal numbers the processor is set to.
///
/// `from` and `to` are contiguous ranges (vector, array, span) of any number types, float and double
/// included, with the same number of elements. Throws argument_error, with nothing written, if the sizes
/// differ, a range is null but not empty, the ranges overlap, exec.threads is less than one, or the
/// processor lacks exec.instructions. May be called from several threads on different targets.
///
/// Targets of many megabytes are written by non-temporal stores, unless they are not aligned for their type. With a
/// stochastic p all elements have the same random bits; see convert_stochastic. convert_in_place() writes to the memory of
/// the source.
///
///     std::vector<float> weights = ...;
///     std::vector<mp::half> copy(weights.size());
///     mp::convert(mp::cpu{}, weights, copy);
template <detail::number_range Source, detail::writable_number_range Target>
void convert(cpu exec, const Source& from, Target&& to, projection p) {
    detail::with_checked_arrays(
        exec, from, to, [&](instruction_set isa, const auto* values, auto* results, std::size_t count) {
            detail::convert_in_chunks(exec, isa, values, results, count,
                                      [&](const auto* f, auto* t, std::size_t n, std::size_t) {
                                          detail::convert_projected(isa, f, t, n, p);
                                      });
        });
}

/// Overload to nearest even, with saturation::none. (Not a default argument: those who need no other
/// projection do not wait for the compiler to make their code.)
template <detail::number_range Source, detail::writable_number_range Target>
void convert(cpu exec, const Source& from, Target&& to) {
    detail::with_checked_arrays(
        exec, from, to, [&](instruction_set isa, const auto* values, auto* results, std::size_t count) {
            detail::convert_array_nearest(exec, isa, values, results, count);
        });
}

/// Rounds an array stochastically with separate random bits for each element: to[i] =
/// round_to<To>(from[i], q) where q is p with q.random = random_bits(seed, first_index + i). The same bits
/// whatever the instructions and the number of threads; a large array may be converted in parts, each with
/// the index of its first element.
///
/// `p` chooses among the kinds of stochastic rounding, the number of random bits and the rest; p.random is
/// not looked at. Arguments and errors are those of mp::convert; p.round must be one of the stochastic
/// modes, and first_index + from.size() must not exceed 2^64.
///
///     mp::convert_stochastic(mp::cpu{}, weights, copy, seed, step * weights.size());
template <detail::number_range Source, detail::writable_number_range Target>
void convert_stochastic(cpu exec, const Source& from, Target&& to, std::uint64_t seed,
                        std::uint64_t first_index = 0, projection p = stochastic(0)) {
    const std::span source = detail::as_span(from);
    const std::span target = detail::as_span(to);
    detail::check_threads("mp::convert_stochastic", exec);
    if (!detail::is_stochastic(p.round)) {
        detail::throw_argument("mp::convert_stochastic", "p.round", static_cast<int>(p.round),
                               "must be stochastic_a, stochastic_b or stochastic_c");
    }
    detail::check_arrays("mp::convert_stochastic", source, target);
    const instruction_set isa = detail::isa_of("mp::convert_stochastic", exec);
    using from_type = std::remove_cv_t<detail::contiguous_element<const Source>>;
    using to_type = detail::contiguous_element<Target>;
    detail::convert_in_chunks(
        exec, isa, static_cast<const from_type*>(source.data()), target.data(), source.size(),
        [&](const from_type* values, to_type* results, std::size_t count, std::size_t first) {
            detail::convert_stochastically(isa, values, results, count, p, seed, first_index + first);
        });
}

/// Converts an array to a type that is not larger, over its own memory, and returns the results: a span of
/// To that begins where the array began and has as many elements. Behind it, the array's memory holds
/// nothing of meaning.
///
/// The elements of the array are gone: read the memory through the returned span, and through the array
/// again only after assigning to its elements. The results are those of mp::convert. Runs on the calling
/// thread. Throws argument_error, with nothing written, if the array is null but not empty or the processor
/// lacks exec.instructions.
///
///     std::span<float> gradients = ...;
///     std::span<mp::half> sent = mp::convert_in_place<mp::half>(mp::cpu{}, gradients);
template <number To, detail::writable_number_range Range>
std::span<To> convert_in_place(cpu exec, Range&& numbers, projection p = {}) {
    const std::span source = detail::as_span(numbers);
    using from_type = detail::contiguous_element<Range>;
    static_assert(sizeof(To) <= sizeof(from_type),
                  "mp::convert_in_place: the new type must not be larger than the old one");
    static_assert(alignof(To) <= alignof(from_type));
    detail::check_threads("mp::convert_in_place", exec);
    if (!source.empty() && source.data() == nullptr) {
        detail::throw_argument("mp::convert_in_place", "numbers.data()", "null",
                               "must point to numbers.size() elements");
    }
    const instruction_set isa = detail::isa_of("mp::convert_in_place", exec);
    const detail::default_floating_point_modes modes;
    // Through buffers and bytes, which have no type that a compiler could draw conclusions from; front to
    // back, where a result never reaches an element that is still to be read.
    constexpr std::size_t block = 512;
    from_type values[block];
    To results[block];
    auto* const memory = reinterpret_cast<unsigned char*>(source.data());
    for (std::size_t i = 0; i < source.size(); i += block) {
        const std::size_t length = (std::min)(block, source.size() - i);
        std::memcpy(values, memory + i * sizeof(from_type), length * sizeof(from_type));
        detail::convert_projected(isa, values, results, length, p);
        std::memcpy(memory + i * sizeof(To), results, length * sizeof(To));
    }
    return {reinterpret_cast<To*>(source.data()), source.size()};
}

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Throws unless both views are sound, have the same shape, and lie in memory apart.
inline void check_matrices(std::string_view function, const view_extent& from, const view_extent& to) {
    check_view(function, "from", from);
    check_view(function, "to", to);
    if (from.rows != to.rows) {
        throw_argument(function, "to.rows", to.rows,
                       "must equal from.rows, which is " + std::to_string(from.rows));
    }
    if (from.columns != to.columns) {
        throw_argument(function, "to.columns", to.columns,
                       "must equal from.columns, which is " + std::to_string(from.columns));
    }
    if (from.empty()) return;
    if (from.address < to.address + to.byte_count() && to.address < from.address + from.byte_count())
        throw_argument(function, "to", "overlapping from", "must be memory of its own");
}

/// Converts vectors [begin, end) of a matrix whose elements are not neighbours in the source: from_step
/// apart, and neighbours in another direction. By tiles, so that every cache line of the source is used while
/// it is there.
template <class From, class To>
void convert_transposing(instruction_set isa, const From* from, std::ptrdiff_t from_step, To* to,
                         std::ptrdiff_t to_step, std::ptrdiff_t begin, std::ptrdiff_t end,
                         std::ptrdiff_t length, const projection& p) {
    constexpr std::ptrdiff_t tile = 32;
    From gathered[tile * tile];
    for (std::ptrdiff_t vector = begin; vector < end; vector += tile) {
        const std::ptrdiff_t vectors = (std::min)(tile, end - vector);
        for (std::ptrdiff_t at = 0; at < length; at += tile) {
            const std::ptrdiff_t count = (std::min)(tile, length - at);
            for (std::ptrdiff_t j = 0; j < count; ++j) {
                const From* const source = from + (at + j) * from_step + vector;
                for (std::ptrdiff_t i = 0; i < vectors; ++i) gathered[i * tile + j] = source[i];
            }
            for (std::ptrdiff_t i = 0; i < vectors; ++i) {
                convert_projected(isa, gathered + i * tile, to + (vector + i) * to_step + at,
                                  static_cast<std::size_t>(count), p);
            }
        }
    }
}

/// mp::convert of a matrix after its checks; it is not empty.
template <class From, class To>
void convert_matrix(const cpu& exec, instruction_set isa, matrix_view<const From> from, matrix_view<To> to,
                    const projection& p) {
    if constexpr (has_core_conversion<From, To>) {
        core_convert_matrix(exec, isa, from, to, p);
    } else {
        const view_extent extent = extent_of(to);
        const std::ptrdiff_t vectors = extent.vector_count();
        const std::ptrdiff_t length = extent.vector_length();
        const auto convert_array = [&](const From* values, To* results, std::size_t count, std::size_t) {
            convert_projected(isa, values, results, count, p);
        };
        const bool same_order = from.order == to.order;
        if (same_order &&
            (vectors == 1 || (from.leading_dimension == length && to.leading_dimension == length))) {
            convert_in_chunks(exec, isa, from.data, to.data, static_cast<std::size_t>(vectors * length),
                              convert_array);
            return;
        }
        constexpr std::ptrdiff_t grain = std::ptrdiff_t{1} << 17;
        parallel_for(exec, static_cast<std::size_t>(vectors), static_cast<std::size_t>(grain / length + 1),
                     [&](std::size_t first, std::size_t last) {
                         const default_floating_point_modes modes;
                         const auto begin = static_cast<std::ptrdiff_t>(first);
                         const auto end = static_cast<std::ptrdiff_t>(last);
                         if (!same_order) {
                             convert_transposing(isa, from.data, from.leading_dimension, to.data,
                                                 to.leading_dimension, begin, end, length, p);
                             return;
                         }
                         for (std::ptrdiff_t vector = begin; vector < end; ++vector) {
                             convert_array(from.data + vector * from.leading_dimension,
                                           to.data + vector * to.leading_dimension,
                                           static_cast<std::size_t>(length), 0);
                         }
                     });
    }
}

}}  // namespace mp::detail

#if defined(MP_COMPILED_SOURCE)
namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

template <class From, class To>
void core_convert_nearest(instruction_set isa, const From* from, To* to, std::size_t count) noexcept {
    convert_nearest(isa, from, to, count);
}
template <class From, class To>
void core_convert_projected(instruction_set isa, const From* from, To* to, std::size_t count,
                            const projection& p) noexcept {
    convert_projected(isa, from, to, count, p);
}
template <class From, class To>
void core_convert_array(const cpu& exec, instruction_set isa, const From* from, To* to, std::size_t count) {
    convert_array_nearest(exec, isa, from, to, count);
}
template <class From, class To>
void core_convert_matrix(const cpu& exec, instruction_set isa, matrix_view<const From> from,
                         matrix_view<To> to, const projection& p) {
    convert_matrix(exec, isa, from, to, p);
}

}}  // namespace mp::detail
#endif

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Converts a matrix, element by element, as the function for arrays does. The views may have different
/// leading dimensions and storage orders; padding is neither read nor written.
///
/// Throws argument_error, with nothing written, if the shapes differ, a view is not sound (negative sizes,
/// a leading dimension smaller than a vector, null data), the memory from the first to the last element of
/// one view overlaps that of the other, exec.threads is less than one, or the processor lacks
/// exec.instructions.
///
///     mp::convert(mp::cpu{}, mp::row_major(weights, 512, 768, 1024), mp::row_major(copy, 512, 768));
template <class From, number To>
    requires number<std::remove_const_t<From>>
void convert(cpu exec, matrix_view<From> from, matrix_view<To> to, projection p = {}) {
    using from_type = std::remove_const_t<From>;
    detail::check_threads("mp::convert", exec);
    const detail::view_extent extent = detail::extent_of(to);
    detail::check_matrices("mp::convert", detail::extent_of(from), extent);
    const instruction_set isa = detail::isa_of("mp::convert", exec);
    if (extent.empty()) return;
    detail::convert_matrix(exec, isa, matrix_view<const from_type>(from), to, p);
}

}}  // namespace mp
