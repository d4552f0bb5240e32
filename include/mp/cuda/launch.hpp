// SPDX-License-Identifier: MIT
/// \file
/// How many threads an element-wise kernel is launched with.
#pragma once

#include <mp/cuda/chunks.hpp>

#include <algorithm>
#include <cstddef>

namespace mp::detail {

inline constexpr unsigned elementwise_threads = 256;

/// Most blocks of one launch. The hardware takes 2^31 - 1; what is more than this is left to the loop of each
/// thread.
inline constexpr std::size_t most_blocks = std::size_t{1} << 30;

/// Blocks for an array that is split as given: one round for each thread, unless the array is enormous.
template <int Count>
[[nodiscard]] unsigned elementwise_blocks(const chunk_split& split) {
    constexpr std::size_t share = std::size_t{elementwise_threads} * chunks_in_flight;
    const std::size_t items = std::max(split.chunks, split.singles<Count>());
    return static_cast<unsigned>(
        std::clamp(items / share + (items % share != 0 ? 1 : 0), std::size_t{1}, most_blocks));
}

}  // namespace mp::detail
