// SPDX-License-Identifier: MIT
/// \file
/// Formats of gradients between ranks, the conversions to what travels and back, and the sum of what comes from all of them.
#pragma once

#include <mp/arrays/array/elementwise.hpp>
#include <mp/arrays/convert/convert.hpp>
#include <mp/arrays/io/tensor_header.hpp>
#include <mp/base/parallel.hpp>
#include <mp/bfloat16.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/convert.hpp>
#include <mp/device/gpu/rank_sum.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/half.hpp>
#include <mp/matrix_view.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace mp {

/// The format in which gradients travel between ranks. Whatever it is, sums are in float and in the order of
/// the ranks, and are rounded to it once, however many ranks there are.
enum class wire_format : unsigned char {
    as_stored,  ///< that of the gradients: float, bfloat16 or half. From where they lie, without a copy
    float32,    ///< 4 bytes a gradient
    bfloat16,   ///< 2 bytes, the range of float
    half,       ///< 2 bytes; under loss scaling, which finds what overflows
    /// 33 bytes for 32 gradients: float8_e4m3fn with a power of two for each 32. What rounding loses is kept, 4
    /// bytes a gradient, and sent with the next step's.
    mxfp8,
};

/// "as_stored", "float32", "bfloat16", "half", "mxfp8".
constexpr std::string_view name_of(wire_format wire) noexcept {
    constexpr std::array<std::string_view, 5> names{"as_stored", "float32", "bfloat16", "half", "mxfp8"};
    return names[static_cast<std::size_t>(wire)];
}

}  // namespace mp

namespace mp::detail {

/// How gradients of one type travel in one format, by an executor.
template <class Executor>
struct wire_codec {
    std::string_view gradient_type;  ///< as safetensors names it: types of one size are not the same
    std::size_t gradient_size;       ///< bytes of an element
    std::size_t wire_size;           ///< 0 for blocks, which block_wire.hpp is about
    bool same;                       ///< as they are stored
    /// Between gradients and floats, on the host.
    void (*to_floats)(const std::byte* gradients, float* to, std::size_t count);
    void (*from_floats)(const float* from, std::byte* gradients, std::size_t count);
    void (*pack)(const Executor& exec, const std::byte* gradients, std::byte* wire, std::size_t count);
    void (*unpack)(const Executor& exec, const std::byte* wire, std::byte* gradients, std::size_t count);
    /// The sum or mean over `ranks` parts, `stride` bytes apart, to the wire or to gradients.
    void (*sum)(const Executor& exec, const std::byte* from, std::size_t stride, std::size_t ranks, bool mean,
                std::byte* wire, std::size_t count);
    void (*sum_to_gradients)(const Executor& exec, const std::byte* from, std::size_t stride,
                             std::size_t ranks, bool mean, std::byte* gradients, std::size_t count);
};

}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// The codec of gradients that are stored as float32, half or bfloat16. Throws argument_error in the name of `function`.
MP_CORE_FUNCTION wire_codec<cpu> cpu_codec(std::string_view function, wire_format stored, wire_format wire);

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class From, class To, class Executor>
void copy_as(const Executor& exec, const std::byte* from, std::byte* to, std::size_t count) {
    if (count == 0) return;
    if constexpr (std::is_same_v<From, To> && std::is_same_v<Executor, cpu>) {
        std::memcpy(to, from, count * sizeof(To));
    } else {
        convert(exec, std::span<const From>(reinterpret_cast<const From*>(from), count),
                std::span<To>(reinterpret_cast<To*>(to), count));
    }
}

/// to[i] is the sum over r of from[r * stride + i], the stride in bytes: in float, in the order of the ranks,
/// divided by their number if the mean is wanted, and rounded once.
template <class Wire, class To>
void sum_over_ranks(cpu exec, const std::byte* from, std::size_t stride, std::size_t ranks, bool mean,
                    std::byte* to, std::size_t count) {
    constexpr std::size_t block = 2048;  // in the first-level cache, also beside what is read
    const cpu one{.instructions = exec.instructions};
    parallel_for(exec, count, std::size_t{1} << 15, [&](std::size_t begin, std::size_t end) {
        alignas(64) std::array<float, block> sum;
        alignas(64) std::array<float, block> term;
        for (std::size_t first = begin; first < end; first += block) {
            const std::size_t n = (std::min)(block, end - first);
            const auto part = [&](std::size_t rank, std::span<float> room) {
                const auto* const values = reinterpret_cast<const Wire*>(from + rank * stride) + first;
                if constexpr (std::is_same_v<Wire, float>) {
                    return std::span<const float>(values, n);
                } else {
                    convert(one, std::span<const Wire>(values, n), room.first(n));
                    return std::span<const float>(room.first(n));
                }
            };
            const std::span<float> result = std::span<float>(sum).first(n);
            add(one, part(0, sum), part(1, term), result);
            for (std::size_t rank = 2; rank < ranks; ++rank) {
                add(one, std::span<const float>(result), part(rank, term), result);
            }
            if (mean) {
                const std::span<float> divisors = std::span<float>(term).first(n);
                std::fill(divisors.begin(), divisors.end(), static_cast<float>(ranks));
                divide(one, std::span<const float>(result), std::span<const float>(divisors), result);
            }
            copy_as<float, To>(one, reinterpret_cast<const std::byte*>(result.data()),
                               to + first * sizeof(To), n);
        }
    });
}

template <class Gradient>
void to_floats(const std::byte* gradients, float* to, std::size_t count) {
    copy_as<Gradient, float>(cpu{}, gradients, reinterpret_cast<std::byte*>(to), count);
}
template <class Gradient>
void from_floats(const float* from, std::byte* gradients, std::size_t count) {
    copy_as<float, Gradient>(cpu{}, reinterpret_cast<const std::byte*>(from), gradients, count);
}

template <class Wire, class To, class Executor>
void wire_sum(const Executor& exec, const std::byte* from, std::size_t stride, std::size_t ranks, bool mean,
              std::byte* to, std::size_t count) {
    if constexpr (std::is_same_v<Executor, cpu>) {
        sum_over_ranks<Wire, To>(exec, from, stride, ranks, mean, to, count);
    } else {
        const auto columns = static_cast<std::ptrdiff_t>(count);
        const auto step = static_cast<std::ptrdiff_t>(stride / sizeof(Wire));
        sum_over_ranks(
            "mp::gradient_reduction", exec,
            matrix_view<const Wire>{reinterpret_cast<const Wire*>(from), static_cast<std::ptrdiff_t>(ranks),
                                    columns, step, storage_order::row_major},
            row_major(reinterpret_cast<To*>(to), 1, columns), mean);
    }
}

template <class Executor, class Gradient, class Wire>
constexpr wire_codec<Executor> codec_as() {
    return {dtype_of<Gradient>(),
            sizeof(Gradient),
            sizeof(Wire),
            std::is_same_v<Gradient, Wire>,
            &to_floats<Gradient>,
            &from_floats<Gradient>,
            &copy_as<Gradient, Wire, Executor>,
            &copy_as<Wire, Gradient, Executor>,
            &wire_sum<Wire, Wire, Executor>,
            &wire_sum<Wire, Gradient, Executor>};
}

template <class Executor, class Gradient>
wire_codec<Executor> make_codec(std::string_view function, wire_format wire) {
    switch (wire) {
        case wire_format::as_stored:
            return codec_as<Executor, Gradient, Gradient>();
        case wire_format::float32:
            return codec_as<Executor, Gradient, float>();
        case wire_format::bfloat16:
            return codec_as<Executor, Gradient, bfloat16>();
        case wire_format::half:
            return codec_as<Executor, Gradient, half>();
        case wire_format::mxfp8:
            if constexpr (std::is_same_v<Executor, cpu>) {
                auto blocks = codec_as<Executor, Gradient, float>();
                blocks.wire_size = 0;
                blocks.same = false;
                return blocks;
            }
            break;
    }
    throw_argument(function, "options.wire", name_of(wire),
                   std::is_same_v<Executor, cpu> ? "must be one of mp::wire_format"
                                                 : "must be another one: 8 bits are for mp::cpu");
}

/// The codec of an executor, which the compiled part has for CPUs.
template <class Executor, class Gradient>
wire_codec<Executor> codec_for(std::string_view function, wire_format wire) {
    static_assert(std::is_same_v<Gradient, float> || std::is_same_v<Gradient, half> ||
                      std::is_same_v<Gradient, bfloat16>,
                  "mp::gradient_reduction: gradients are float, half or bfloat16");
    if constexpr (!std::is_same_v<Executor, cpu>) {
        return make_codec<Executor, Gradient>(function, wire);
    } else if constexpr (std::is_same_v<Gradient, float>) {
        return cpu_codec(function, wire_format::float32, wire);
    } else {
        return cpu_codec(function, std::is_same_v<Gradient, half> ? wire_format::half : wire_format::bfloat16,
                         wire);
    }
}

}}  // namespace mp::detail

#if MP_CORE_BODIES
namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION wire_codec<cpu> cpu_codec(std::string_view function, wire_format stored, wire_format wire) {
    if (stored == wire_format::float32) return make_codec<cpu, float>(function, wire);
    return stored == wire_format::half ? make_codec<cpu, half>(function, wire)
                                       : make_codec<cpu, bfloat16>(function, wire);
}

}}  // namespace mp::detail
#endif
