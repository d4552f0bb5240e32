// SPDX-License-Identifier: MIT
/// \file
/// Packed numbers from and to ordinary arrays of any numbers.
#pragma once

#include <mp/arrays/convert/convert.hpp>
#include <mp/arrays/convert/kernels/packed_codes.hpp>
#include <mp/arrays/convert/packed_array.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <algorithm>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Numbers that are on their way at a time; a multiple of a group.
inline constexpr std::size_t pack_block = 256;

/// Whether the kernels pack such numbers, or unpack them.
template <class Number, class Packed>
inline constexpr bool has_packing_vectors = [] {
    if constexpr (has_number_vectors<Number> && has_number_vectors<Packed>) {
        return layout_of<typename Packed::format>::width == 4 ||
               layout_of<typename Packed::format>::width == 6;
    } else {
        return false;
    }
}();

/// Whether a projection to a packable format gives what nearest even gives: without infinity and NaN all
/// kinds of saturation are alike.
template <packable To>
constexpr bool packs_to_nearest(const projection& p) noexcept {
    using layout = layout_of<typename To::format>;
    if (p == projection{}) return true;
    return p.round == rounding::nearest_even && !layout::has_infinity && !layout::has_nan &&
           layout::is_signed && p.without_nan == nan_substitute::largest;
}

/// Packs into a stream that begins at a byte.
template <class From, class To>
void pack_projected(const From* from, std::byte* to, std::size_t count, const projection& p) noexcept {
    const default_floating_point_modes modes;
    constexpr int width = packed_span<To>::width;
    for (std::size_t i = 0; i < count; i += pack_block) {
        const std::size_t part = (std::min)(pack_block, count - i);
        To rounded[pack_block];
        convert_projected<From, To>(from + i, rounded, part, p);
        pack_codes<width>(codes_of(rounded), to + i / 8 * width, part);
    }
}
template <class From, class To>
void pack_portable(const From* from, std::byte* to, std::size_t count) {
    pack_projected<From, To>(from, to, count, {});
}

/// Unpacks from a stream that begins at a byte.
template <class From, class To>
void unpack_projected(const std::byte* from, To* to, std::size_t count, const projection& p) noexcept {
    const default_floating_point_modes modes;
    constexpr int width = packed_span<From>::width;
    for (std::size_t i = 0; i < count; i += pack_block) {
        const std::size_t part = (std::min)(pack_block, count - i);
        From values[pack_block];
        unpack_codes<width>(from + i / 8 * width, codes_of(values), part);
        convert_projected<From, To>(values, to + i, part, p);
    }
}
template <class From, class To>
void unpack_portable(const std::byte* from, To* to, std::size_t count) {
    unpack_projected<From, To>(from, to, count, {});
}

/// Calls f(begin, end) on parts of `view`, on several threads only where no two of them write one byte.
template <class T, class Function>
void for_packed_parts(cpu exec, packed_span<T> view, Function f) {
    constexpr std::size_t grain = (1 << 16) / pack_group;
    const std::size_t size = view.size();
    if (view.bit_offset() != 0) exec.threads = 1;
    parallel_for(exec, size / pack_group + 1, grain, [&](std::size_t begin, std::size_t end) {
        f(begin * pack_group, (std::min)(end * pack_group, size));
    });
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Converts an array of any numbers to packed ones: to[i] = round_to<To>(from[i], p), with the same bits for
/// every number of threads. `To` need not be named: it is what the target holds. A packed_array is passed by
/// its view(), or as it is.
///
/// Throws argument_error, with nothing written, if the sizes differ, one of them is null but not empty, the
/// memory overlaps, exec.threads is less than one, or the processor lacks
/// exec.instructions.
///
///     mp::packed_array<mp::float4_e2m1fn> small(weights.size());
///     mp::pack(mp::cpu{}, weights, small.view());
///     mp::unpack(mp::cpu{}, small.view(), weights);
template <detail::number_range Source, packable To>
void pack(cpu exec, const Source& from, packed_span<To> to, projection p = {}) {
    static_assert(!std::is_const_v<To>, "mp::pack writes its target, so it must not be const");
    const std::span source = detail::as_span(from);
    detail::check_threads("mp::pack", exec);
    detail::check_memory("mp::pack", source.size(), std::as_bytes(source), to.size(), to.bytes());
    using from_type = std::remove_cv_t<detail::contiguous_element<const Source>>;
    const instruction_set isa = detail::isa_of("mp::pack", exec);
    detail::for_packed_parts(exec, to, [&](std::size_t begin, std::size_t end) {
        const from_type* const numbers = source.data() + begin;
        const std::size_t bit = to.bit_offset() + begin * to.width;
        if (bit % 8 != 0) {
            const detail::default_floating_point_modes modes;
            To rounded[detail::pack_block];
            for (; begin < end; begin += detail::pack_block) {
                const std::size_t part = (std::min)(detail::pack_block, end - begin);
                detail::convert_projected<from_type, To>(source.data() + begin, rounded, part, p);
                for (std::size_t i = 0; i < part; ++i) to[begin + i] = rounded[i];
            }
            return;
        }
        if constexpr (detail::has_packing_vectors<from_type, To>) {
            if (detail::packs_to_nearest<To>(p)) {
                const auto kernel = MP_SELECT_TARGET(isa, (&detail::pack_portable<from_type, To>),
                                                     pack_numbers<from_type, To>);
                kernel(numbers, to.data() + bit / 8, end - begin);
                return;
            }
        }
        static_cast<void>(isa);
        detail::pack_projected<from_type, To>(numbers, to.data() + bit / 8, end - begin, p);
    });
}

/// Converts packed numbers to an ordinary array of any numbers, each rounded once; to float it is exact.
/// Errors as for pack.
template <packable From, detail::writable_number_range Target>
void unpack(cpu exec, packed_span<From> from, Target&& to, projection p = {}) {
    const std::span target = detail::as_span(to);
    detail::check_threads("mp::unpack", exec);
    detail::check_memory("mp::unpack", from.size(), from.bytes(), target.size(), std::as_bytes(target));
    using number = std::remove_const_t<From>;
    using to_type = detail::contiguous_element<Target>;
    const instruction_set isa = detail::isa_of("mp::unpack", exec);
    detail::for_packed_parts(exec, from, [&](std::size_t begin, std::size_t end) {
        to_type* const numbers = target.data() + begin;
        const std::size_t bit = from.bit_offset() + begin * from.width;
        if (bit % 8 != 0) {
            const detail::default_floating_point_modes modes;
            number values[detail::pack_block];
            for (; begin < end; begin += detail::pack_block) {
                const std::size_t part = (std::min)(detail::pack_block, end - begin);
                for (std::size_t i = 0; i < part; ++i) values[i] = from[begin + i];
                detail::convert_projected<number, to_type>(values, target.data() + begin, part, p);
            }
            return;
        }
        if constexpr (detail::has_packing_vectors<to_type, number>) {
            if (p == projection{}) {
                const auto kernel = MP_SELECT_TARGET(isa, (&detail::unpack_portable<number, to_type>),
                                                     unpack_numbers<number, to_type>);
                kernel(from.data() + bit / 8, numbers, end - begin);
                return;
            }
        }
        static_cast<void>(isa);
        detail::unpack_projected<number, to_type>(from.data() + bit / 8, numbers, end - begin, p);
    });
}

/// The same with a packed_array in place of a span.
template <detail::number_range Source, packable To>
void pack(cpu exec, const Source& from, packed_array<To>& to, projection p = {}) {
    pack(exec, from, to.view(), p);
}
template <packable From, detail::writable_number_range Target>
void unpack(cpu exec, const packed_array<From>& from, Target&& to, projection p = {}) {
    unpack(exec, from.view(), to, p);
}

}}  // namespace mp
