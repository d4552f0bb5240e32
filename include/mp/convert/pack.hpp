// SPDX-License-Identifier: MIT
/// \file
/// Packed numbers from and to ordinary arrays of any numbers.
#pragma once

#include <mp/convert/convert.hpp>
#include <mp/convert/packed_array.hpp>

#include <algorithm>

namespace mp {

namespace detail {

/// Eight codes take as many bytes as a code has bits: the unit in which arrays are packed.
inline constexpr std::size_t pack_group = 8;

/// Packs `count` codes into a stream that begins at a byte; bits behind the last one stay as they are.
template <int Width>
constexpr void pack_codes(const std::uint8_t* codes, std::byte* bytes, std::size_t count) noexcept {
    for (; count >= pack_group; count -= pack_group, codes += pack_group, bytes += Width) {
        std::uint64_t word = 0;
        for (int i = 0; i < 8; ++i) word |= std::uint64_t{codes[i]} << (i * Width);
        for (int i = 0; i < Width; ++i) bytes[i] = static_cast<std::byte>((word >> (8 * i)) & 0xff);
    }
    for (std::size_t i = 0; i < count; ++i) set_packed_code<Width>(bytes, i * Width, codes[i]);
}

/// The reverse.
template <int Width>
constexpr void unpack_codes(const std::byte* bytes, std::uint8_t* codes, std::size_t count) noexcept {
    for (; count >= pack_group; count -= pack_group, codes += pack_group, bytes += Width) {
        std::uint64_t word = 0;
        for (int i = 0; i < Width; ++i) word |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
        for (int i = 0; i < 8; ++i) {
            codes[i] = static_cast<std::uint8_t>((word >> (i * Width)) & ((1u << Width) - 1));
        }
    }
    for (std::size_t i = 0; i < count; ++i) {
        codes[i] = static_cast<std::uint8_t>(packed_code<Width>(bytes, i * Width));
    }
}

/// Numbers that are on their way at a time; a multiple of a group.
inline constexpr std::size_t pack_block = 256;

/// Calls f(begin, end) on parts of `view`, on several threads only where no two of them write one byte.
template <class T, class Function>
void for_packed_parts(cpu exec, packed_span<T> view, Function f) {
    constexpr std::size_t grain = (1 << 16) / pack_group;
    const std::size_t size = view.size();
    if (view.bit_offset() != 0) exec.threads = 1;
    parallel_for(exec, size / pack_group + 1, grain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin * pack_group; i < std::min(end * pack_group, size); i += pack_block) {
            f(i, std::min({i + pack_block, end * pack_group, size}));
        }
    });
}

/// Throws unless the arrays have the same size, are not null while not empty, and do not overlap.
template <class From, class To>
void check_packed(std::string_view function, std::size_t from_size, std::span<From> from_bytes,
                  std::size_t to_size, std::span<To> to_bytes) {
    if (from_size != to_size) {
        throw_argument(function, "to.size()", to_size,
                       "must equal from.size(), which is " + std::to_string(from_size));
    }
    check_memory(function, from_bytes, to_bytes);
}

}  // namespace detail

/// Converts an array of any numbers to packed ones: to[i] = round_to<To>(from[i], p), with the same bits for
/// every number of threads. `To` need not be named: it is what the target holds. A packed_array is passed by
/// its view(), or as it is.
///
/// Throws argument_error, with nothing written, if the sizes differ, one of them is null but not empty, the
/// memory overlaps, or exec.threads is less than one.
///
///     mp::packed_array<mp::float4_e2m1fn> small(weights.size());
///     mp::pack(mp::cpu{}, weights, small.view());
///     mp::unpack(mp::cpu{}, small.view(), weights);
template <detail::number_range Source, packable To>
void pack(cpu exec, const Source& from, packed_span<To> to, projection p = {}) {
    static_assert(!std::is_const_v<To>, "mp::pack writes its target, so it must not be const");
    const std::span source = detail::as_span(from);
    detail::check_threads("mp::pack", exec);
    detail::check_packed("mp::pack", source.size(), std::as_bytes(source), to.size(), to.bytes());
    using from_type = std::remove_cv_t<detail::contiguous_element<const Source>>;
    detail::for_packed_parts(exec, to, [&](std::size_t begin, std::size_t end) {
        To rounded[detail::pack_block];
        detail::convert_projected<from_type, To>(source.data() + begin, rounded, end - begin, p);
        const std::size_t bit = to.bit_offset() + begin * to.width;
        if (bit % 8 == 0) {
            detail::pack_codes<packed_span<To>::width>(detail::codes_of(rounded), to.data() + bit / 8,
                                                       end - begin);
        } else {
            for (std::size_t i = begin; i < end; ++i) to[i] = rounded[i - begin];
        }
    });
}

/// Converts packed numbers to an ordinary array of any numbers, each rounded once; to float it is exact.
/// Errors as for pack.
template <packable From, detail::writable_number_range Target>
void unpack(cpu exec, packed_span<From> from, Target&& to, projection p = {}) {
    const std::span target = detail::as_span(to);
    detail::check_threads("mp::unpack", exec);
    detail::check_packed("mp::unpack", from.size(), from.bytes(), target.size(),
                         std::as_writable_bytes(target));
    using number = std::remove_const_t<From>;
    detail::for_packed_parts(exec, from, [&](std::size_t begin, std::size_t end) {
        number values[detail::pack_block];
        const std::size_t bit = from.bit_offset() + begin * from.width;
        if (bit % 8 == 0) {
            detail::unpack_codes<packed_span<From>::width>(from.data() + bit / 8, detail::codes_of(values),
                                                           end - begin);
        } else {
            for (std::size_t i = begin; i < end; ++i) values[i - begin] = from[i];
        }
        detail::convert_projected<number, detail::contiguous_element<Target>>(values, target.data() + begin,
                                                                              end - begin, p);
    });
}

template <detail::number_range Source, packable To>
void pack(cpu exec, const Source& from, packed_array<To>& to, projection p = {}) {
    pack(exec, from, to.view(), p);
}
template <packable From, detail::writable_number_range Target>
void unpack(cpu exec, const packed_array<From>& from, Target&& to, projection p = {}) {
    unpack(exec, from.view(), to, p);
}

}  // namespace mp
