// SPDX-License-Identifier: MIT
/// \file
/// What gradients are between ranks.
#pragma once

#include <mp/config.hpp>
#include <mp/executor.hpp>

#include <array>
#include <cstddef>
#include <string_view>

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
