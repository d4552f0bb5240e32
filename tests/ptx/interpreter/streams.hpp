// SPDX-License-Identifier: MIT
// Work of several streams. Launches and copies run one after the other, but only some are ordered so: whatever two that
// are not do to the same bytes, and one of them writes, is a race. The runtime says of each which others it is beside.
#pragma once

#include "history.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptx {

struct function;
struct allocation;
enum class access : std::uint8_t;

/// A launch or a copy that has been run, with its clocks from `begin` to `end`.
struct stream_work {
    std::uint32_t begin = 0, end = 0;
    std::uint32_t stream = 0;         ///< number of the stream
    std::string_view name{};          ///< of the kernel or the call
    const function* entry = nullptr;  ///< null for a copy
};

/// "the default stream", which is number 0, or "stream 2".
std::string stream_text(std::uint32_t number);

/// Where a launch or a copy is.
struct stream_position {
    std::uint32_t stream = 0;
    /// What has been run though nothing orders it before, by clocks.
    std::vector<stream_work> beside{};

    /// The clock below which everything has happened, where this begins at `begin`.
    [[nodiscard]] std::uint32_t since(std::uint32_t begin) const {
        return beside.empty() ? begin : beside.front().begin;
    }
    /// What is beside it and ran at this clock, or null.
    [[nodiscard]] const stream_work* work_beside(std::uint32_t clock) const;
    /// Who that was, and what it did: "kernel k on stream 2 wrote in line 7 (st.global.u32)".
    [[nodiscard]] std::string beside_text(stamp other, bool wrote) const;
};

/// The line of a kernel, and its instruction.
std::string line_text(const function& entry, std::uint32_t behind_entry);

/// A copy by the call `name` at a clock: fails if what is beside it has accessed the bytes, and remembers it.
void note_copy(allocation& of, std::size_t offset, std::size_t bytes, access how, std::string_view name,
               const stream_position& where, std::uint32_t clock);
/// An allocation in the order of a stream, before which nobody may come.
void note_allocation(allocation& of, std::uint32_t clock);
/// Its end, behind which nobody may come: fails if what is beside it has accessed the memory.
void check_release(const allocation& of, std::string_view name, const stream_position& where);

}  // namespace ptx
