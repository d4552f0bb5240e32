// SPDX-License-Identifier: MIT
/// \file
/// Copies into shared memory that run beside the thread, on the host: their target is out of bounds from the
/// call until the thread has waited, and the bytes arrive as late as they may.
#pragma once

#include <mp/device/simt/host/cluster.hpp>
#include <mp/device/simt/host/memory_operations.hpp>
#include <mp/device/simt/shared_pointer.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

class copy_operations : public memory_operations {
public:
    using memory_operations::memory_operations;

    template <int Bytes, class Value>
    void copy_async(shared_pointer<Value> to, const void* from, int valid_bytes = Bytes,
                    const site& where = site::current()) const {
        static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "mp: copies have 4, 8 or 16 bytes");
        cluster& all = owner();
        if (valid_bytes < 0 || valid_bytes > Bytes) {
            all.fail(state(), where, kernel_violation::argument,
                     "valid_bytes is " + std::to_string(valid_bytes) + "; it must be from 0 to " +
                         std::to_string(Bytes));
        }
        check_global(from, "copies", Bytes, where);
        shared_memory& memory = all.memory_of(state());
        all.check_access(state(), where, "begins to copy", Bytes, to.offset, [&] {
            memory.check_range(to.offset, Bytes, Bytes);
            memory.begin_copy(state().access(), to.offset, Bytes);
        });
        const auto source_bytes = static_cast<std::size_t>(valid_bytes);
        if (state().observed) {
            note(where, "copy_async to", true, to.offset, Bytes);
            if (source_bytes != 0) {
                watch_read(from, "copies", source_bytes, where);
                note(where, "copy_async from", false, reinterpret_cast<std::uintptr_t>(from), source_bytes);
            }
        }
        pending_copy copy{to.offset, static_cast<const unsigned char*>(from), source_bytes,
                          std::vector<unsigned char>(Bytes)};
        if (source_bytes != 0) std::memcpy(copy.bytes.data(), from, source_bytes);
        state().open_copies.push_back(std::move(copy));
    }

    void commit_copies() const { state().copy_groups.push_back(std::exchange(state().open_copies, {})); }

    template <int Pending>
    void wait_copies(const site& where = site::current()) const {
        auto& groups = state().copy_groups;
        while (groups.size() > static_cast<std::size_t>(Pending)) {
            for (const pending_copy& copy : groups.front()) land(copy, where);
            groups.pop_front();
        }
    }

private:
    void land(const pending_copy& copy, const site& where) const {
        // It may have been read as late as now.
        if (state().observed && copy.source_bytes != 0) {
            watch_read(copy.source, "waits for a copy of", copy.source_bytes, where);
        }
        if (copy.source_bytes != 0 && std::memcmp(copy.bytes.data(), copy.source, copy.source_bytes) != 0) {
            owner().fail(state(), where, kernel_violation::unfinished_copy,
                         "waits for a copy whose source has changed since it began",
                         static_cast<std::ptrdiff_t>(copy.offset));
        }
        owner().layouts(state().block).forget(copy.offset, copy.bytes.size());
        owner().memory_of(state()).land_copy(state().number,
                                             state().clock[static_cast<std::size_t>(state().number)], false,
                                             copy.offset, copy.bytes.data(), copy.bytes.size());
    }
};

}}  // namespace mp::simt::detail
