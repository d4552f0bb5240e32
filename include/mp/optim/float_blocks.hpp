// SPDX-License-Identifier: MIT
/// \file
/// How optimizers compute in float on arrays of any format: block by block, so that the arithmetic is a plain
/// float loop and the conversions before and after it stay in the first-level cache.
#pragma once

#include <mp/convert/bulk.hpp>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace mp::detail {

/// Elements a block; a handful of such float buffers fit in the first-level cache.
inline constexpr std::size_t float_block = 512;

/// Fewest elements that are worth a thread.
inline constexpr std::size_t update_grain = 64 * float_block;

/// A window of float on an array of Value: the array itself for float, else a buffer.
template <class Value>
class float_window {
public:
    /// The values of data[0, count) as float.
    float* load(Value* data, std::size_t count) noexcept {
        if constexpr (std::is_same_v<Value, float>) {
            return data;
        } else {
            convert_nearest(data, buffer_, count);
            return buffer_;
        }
    }

    /// Puts the window's values back, rounded once to nearest, ties to even.
    void store(Value* data, std::size_t count) const noexcept {
        if constexpr (!std::is_same_v<Value, float>) {
            convert_nearest(buffer_, data, count);
        }
    }

private:
    struct nothing {};
    [[no_unique_address]] std::conditional_t<std::is_same_v<Value, float>, nothing, float[float_block]>
        buffer_;
};

/// roots[i] = square root of values[i], correctly rounded; no value is negative. Compilers leave a loop over
/// std::sqrt scalar because it has to set errno for negative arguments; the instruction has no such duty.
inline void square_roots(const float* values, float* roots, std::size_t count) noexcept {
    std::size_t i = 0;
#if defined(__SSE2__) && defined(__GNUC__) && !defined(__CUDACC__)
    using four_floats [[gnu::vector_size(16)]] = float;
    for (; i + 4 <= count; i += 4) {
        four_floats lanes;
        std::memcpy(&lanes, values + i, sizeof lanes);
        lanes = __builtin_ia32_sqrtps(lanes);
        std::memcpy(roots + i, &lanes, sizeof lanes);
    }
#endif
    for (; i < count; ++i) roots[i] = std::sqrt(values[i]);
}

}  // namespace mp::detail
