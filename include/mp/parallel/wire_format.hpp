// SPDX-License-Identifier: MIT
/// \file
/// What gradients are between ranks, and the sum of what comes from all of them.
#pragma once

#include <mp/array/elementwise.hpp>
#include <mp/bfloat16.hpp>
#include <mp/convert/convert.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/half.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
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

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// The float sum of what came from all ranks, divided by their number if the mean is wanted.
class rank_sum {
public:
    /// Elements at a time: in the first-level cache, also beside what is read.
    static constexpr std::size_t block = 2048;

    rank_sum(int ranks, bool mean) : ranks_(static_cast<std::size_t>(ranks)), mean_(mean) {
        std::fill(divisors_.begin(), divisors_.end(), static_cast<float>(ranks));
    }

    /// to[i] is the sum over r of from[r * stride + i], in bytes; each difference of types is a conversion
    /// rounded once.
    template <class Wire, class To>
    void operator()(cpu exec, const std::byte* from, std::size_t stride, std::byte* to,
                    std::size_t count) const {
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
                for (std::size_t rank = 2; rank < ranks_; ++rank) {
                    add(one, std::span<const float>(result), part(rank, term), result);
                }
                if (mean_) divide(one, std::span<const float>(result), std::span(divisors_).first(n), result);
                auto* const out = reinterpret_cast<To*>(to) + first;
                if constexpr (std::is_same_v<To, float>) {
                    std::memcpy(out, result.data(), n * sizeof(float));
                } else {
                    convert(one, std::span<const float>(result), std::span<To>(out, n));
                }
            }
        });
    }

private:
    std::size_t ranks_;
    bool mean_;
    alignas(64) std::array<float, block> divisors_;
};

/// How gradients of one type travel in one format.
struct wire_codec {
    std::size_t gradient_size;  ///< bytes of an element
    std::size_t wire_size;      ///< 0 for blocks, which block_wire.hpp is about
    bool same;                  ///< as they are stored
    void (*to_floats)(const std::byte* gradients, float* to, std::size_t count);
    void (*from_floats)(const float* from, std::byte* gradients, std::size_t count);
    void (*pack)(cpu exec, const std::byte* gradients, std::byte* wire, std::size_t count);
    void (*unpack)(cpu exec, const std::byte* wire, std::byte* gradients, std::size_t count);
    void (*sum)(const rank_sum& sum, cpu exec, const std::byte* from, std::size_t stride, std::byte* wire,
                std::size_t count);
    void (*sum_to_gradients)(const rank_sum& sum, cpu exec, const std::byte* from, std::size_t stride,
                             std::byte* gradients, std::size_t count);
};

template <class From, class To>
void copy_as(cpu exec, const std::byte* from, std::byte* to, std::size_t count) {
    if (count == 0) return;
    if constexpr (std::is_same_v<From, To>) {
        std::memcpy(to, from, count * sizeof(To));
    } else {
        convert(exec, std::span<const From>(reinterpret_cast<const From*>(from), count),
                std::span<To>(reinterpret_cast<To*>(to), count));
    }
}

template <class Gradient>
void to_floats(const std::byte* gradients, float* to, std::size_t count) {
    copy_as<Gradient, float>(cpu{}, gradients, reinterpret_cast<std::byte*>(to), count);
}
template <class Gradient>
void from_floats(const float* from, std::byte* gradients, std::size_t count) {
    copy_as<float, Gradient>(cpu{}, reinterpret_cast<const std::byte*>(from), gradients, count);
}

template <class Gradient, class Wire>
constexpr wire_codec codec_as() {
    return {sizeof(Gradient),
            sizeof(Wire),
            std::is_same_v<Gradient, Wire>,
            &to_floats<Gradient>,
            &from_floats<Gradient>,
            &copy_as<Gradient, Wire>,
            &copy_as<Wire, Gradient>,
            [](const rank_sum& sum, cpu exec, const std::byte* from, std::size_t stride, std::byte* wire,
               std::size_t count) { sum.template operator()<Wire, Wire>(exec, from, stride, wire, count); },
            [](const rank_sum& sum, cpu exec, const std::byte* from, std::size_t stride, std::byte* gradients,
               std::size_t count) {
                sum.template operator()<Wire, Gradient>(exec, from, stride, gradients, count);
            }};
}

template <class Gradient>
wire_codec codec_for(std::string_view function, wire_format wire) {
    static_assert(std::is_same_v<Gradient, float> || std::is_same_v<Gradient, half> ||
                      std::is_same_v<Gradient, bfloat16>,
                  "mp::gradient_reduction: gradients are float, half or bfloat16");
    switch (wire) {
        case wire_format::as_stored:
            return codec_as<Gradient, Gradient>();
        case wire_format::float32:
            return codec_as<Gradient, float>();
        case wire_format::bfloat16:
            return codec_as<Gradient, bfloat16>();
        case wire_format::half:
            return codec_as<Gradient, half>();
        case wire_format::mxfp8: {
            wire_codec blocks = codec_as<Gradient, float>();
            blocks.wire_size = 0;
            blocks.same = false;
            return blocks;
        }
    }
    throw_argument(function, "options.wire", static_cast<int>(wire), "must be one of mp::wire_format");
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
