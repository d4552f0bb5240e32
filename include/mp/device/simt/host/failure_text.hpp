// SPDX-License-Identifier: MIT
/// \file
/// How messages about a kernel on the host name its threads.
#pragma once

#include <mp/device/simt/host/thread_state.hpp>
#include <mp/device/simt/launch_shape.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

/// "block 0, thread 37 (warp 1, lane 5)"
inline std::string thread_text(std::ptrdiff_t block, int index) {
    std::string text = "block " + std::to_string(block);
    text.append(", thread ").append(std::to_string(index)).append(" (warp ");
    text.append(std::to_string(index / warp_size)).append(", lane ");
    return text.append(std::to_string(index % warp_size)).append(")");
}

/// Who waits where, of the threads of a cluster that begins with a block.
inline std::string deadlock_text(const std::vector<std::unique_ptr<thread_state>>& threads,
                                 std::ptrdiff_t first_block) {
    std::string text = "no thread can go on";
    std::vector<bool> told(threads.size(), false);
    std::size_t gone = 0;
    for (std::size_t i = 0; i < threads.size(); ++i) {
        const thread_state& first = *threads[i];
        if (first.stack.finished()) ++gone;
        if (told[i] || first.stack.finished()) continue;
        std::size_t count = 0;
        for (std::size_t j = i; j < threads.size(); ++j) {
            const thread_state& other = *threads[j];
            if (other.stack.finished() || other.block != first.block ||
                other.waiting_for != first.waiting_for || !same_site(other.where, first.where)) {
                continue;
            }
            told[j] = true;
            ++count;
        }
        text.append("; ").append(thread_text(first_block + first.block, first.index));
        if (count > 1) text.append(" and ").append(std::to_string(count - 1)).append(" more");
        text.append(count > 1 ? " wait in " : " waits in ").append(first.waiting_for).append(" at ");
        text.append(place_of(first.where));
    }
    if (gone != 0) text.append("; ").append(std::to_string(gone)).append(" have left the kernel");
    return text;
}

}}  // namespace mp::simt::detail
