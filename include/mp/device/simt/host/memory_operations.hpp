// SPDX-License-Identifier: MIT
/// \file
/// Loads, stores and atomic operations of a thread on the host, in shared and in global memory, and copies into shared
/// memory that run beside the thread: their target is out of bounds from the call until the thread has waited, and the
/// bytes arrive as late as they may.
#pragma once

#include <mp/device/simt/host/basic_operations.hpp>
#include <mp/device/simt/host/cluster.hpp>
#include <mp/device/simt/host/global_memory.hpp>
#include <mp/device/simt/shared_pointer.hpp>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

class memory_operations : public basic_operations {
public:
    using basic_operations::basic_operations;

    // --- shared memory

    template <class Value>
    [[nodiscard]] Value load(shared_pointer<Value> from, const site& where = site::current()) const {
        constexpr std::size_t size = checked_size<Value>();
        shared_memory& memory = owner().memory_of(state());
        owner().check_access(state(), where, "reads", size, from.offset, [&] {
            memory.check_range(from.offset, size, size);
            memory.read(state().access(), from.offset, size);
        });
        if (state().observed) note(where, "load", true, from.offset, size);
        return read_value<Value>(memory.data() + from.offset);
    }
    template <class Value>
    void store(shared_pointer<Value> to, std::type_identity_t<Value> value,
               const site& where = site::current()) const {
        constexpr std::size_t size = checked_size<Value>();
        shared_memory& memory = owner().memory_of(state());
        owner().check_access(state(), where, "writes", size, to.offset, [&] {
            memory.check_range(to.offset, size, size);
            memory.write(state().access(), to.offset, size,
                         owner().settings().equal_writes ? &value : nullptr);
        });
        if (state().observed) {
            owner().layouts(state().block).forget(to.offset, size);
            check_sums(&value, size, where);
            note(where, "store", true, to.offset, size);
        }
        std::memcpy(memory.data() + to.offset, &value, size);
    }

    // --- global memory

    template <class Value>
    [[nodiscard]] Value load(const Value* from, const site& where = site::current()) const {
        constexpr std::size_t size = checked_size<Value>();
        check_global(from, "reads", size, where);
        if (state().observed) {
            watch_read(from, "reads", size, where);
            note(where, "load", false, reinterpret_cast<std::uintptr_t>(from), size);
        }
        return read_value<Value>(reinterpret_cast<const unsigned char*>(from));
    }
    template <class Value>
    [[nodiscard]] Value load_streaming(const Value* from, const site& where = site::current()) const {
        return load(from, where);
    }
    template <class Value>
    void store(Value* to, std::type_identity_t<Value> value, const site& where = site::current()) const {
        constexpr std::size_t size = checked_size<Value>();
        check_global(to, "writes", size, where);
        if (state().observed) {
            check_sums(&value, size, where);
            owner().check_global(state(), where, "writes", size,
                                 [&](global_memory& memory, const global_accessor& who) {
                                     memory.write(who, to, &value, size);
                                 });
            note(where, "store", false, reinterpret_cast<std::uintptr_t>(to), size);
        }
        std::memcpy(static_cast<void*>(to), &value, size);
    }
    template <class Value>
    void store_streaming(Value* to, std::type_identity_t<Value> value,
                         const site& where = site::current()) const {
        store(to, value, where);
    }

    // --- atomic operations

    template <class Value>
    Value atomic_add(Value* at, std::type_identity_t<Value> value,
                     const site& where = site::current()) const {
        return update(at, where, [value](Value before) { return static_cast<Value>(before + value); });
    }
    template <class Value>
    Value atomic_min(Value* at, std::type_identity_t<Value> value,
                     const site& where = site::current()) const {
        return update(at, where, [value](Value before) { return before < value ? before : value; });
    }
    template <class Value>
    Value atomic_max(Value* at, std::type_identity_t<Value> value,
                     const site& where = site::current()) const {
        return update(at, where, [value](Value before) { return before < value ? value : before; });
    }
    template <class Value>
    Value atomic_or(Value* at, std::type_identity_t<Value> value, const site& where = site::current()) const {
        return update(at, where, [value](Value before) { return static_cast<Value>(before | value); });
    }
    template <class Value>
    Value atomic_add(shared_pointer<Value> at, std::type_identity_t<Value> value,
                     const site& where = site::current()) const {
        return update_shared(at, where, [value](Value before) { return static_cast<Value>(before + value); });
    }
    template <class Value>
    Value atomic_max(shared_pointer<Value> at, std::type_identity_t<Value> value,
                     const site& where = site::current()) const {
        return update_shared(at, where, [value](Value before) { return before < value ? value : before; });
    }
    template <class Value>
    Value atomic_min(shared_pointer<Value> at, std::type_identity_t<Value> value,
                     const site& where = site::current()) const {
        return update_shared(at, where, [value](Value before) { return before < value ? before : value; });
    }

    void fence_device() const {
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (owner().settings().global == nullptr) return;
        global_memory::fence(state(), owner().first_block());
        cluster::next_epoch(state());
    }

protected:
    /// Checks a read of global memory, where that is watched.
    void watch_read(const void* from, const char* verb, std::size_t bytes, const site& where) const {
        owner().check_global(
            state(), where, verb, bytes,
            [&](global_memory& memory, const global_accessor& who) { memory.read(who, from, bytes); });
    }
    void check_global(const void* address, const char* verb, std::size_t bytes, const site& where) const {
        check_dependencies(verb, where);
        if ((reinterpret_cast<std::uintptr_t>(address) & (bytes - 1)) == 0) return;
        owner().fail(state(), where, kernel_violation::alignment,
                     std::string(verb) + " " + std::to_string(bytes) +
                         " bytes of global memory at an address that is no multiple of that");
    }

    /// Global memory belongs to the kernels before until they have been waited for.
    void check_dependencies(const char* verb, const site& where) const {
        if (!state().is_dependent) return;
        owner().fail(state(), where, kernel_violation::race,
                     std::string(verb) + " global memory before wait_dependencies()");
    }

    void note(const site& where, const char* operation, bool shared, std::uint64_t address,
              std::size_t bytes) const {
        if (owner().statistics() == nullptr) return;
        owner().statistics()->note(static_cast<std::size_t>(state().warp()), lane(), where.file_name(),
                                   where.line(), where.column(), operation, shared, address,
                                   static_cast<std::uint32_t>(bytes));
    }

    /// Sums of products that were read too early look like that where they are stored.
    void check_sums(const void* value, std::size_t bytes, const site& where) const {
        const site* const product = owner().poison().found_in(value, bytes);
        if (product == nullptr) return;
        owner().fail(state(), where, kernel_violation::unfinished_copy,
                     "stores a sum of multiply_async at " + place_of(*product) +
                         " that was read before wait_products() said that it is done");
    }

private:
    template <class Value>
    static constexpr std::size_t checked_size() {
        static_assert(
            std::is_trivially_copyable_v<Value> && std::has_single_bit(sizeof(Value)) && sizeof(Value) <= 16,
            "mp: a thread reads and writes values of 1, 2, 4, 8 or 16 bytes");
        return sizeof(Value);
    }
    template <class Value>
    static Value read_value(const unsigned char* from) {
        std::remove_const_t<Value> value;
        std::memcpy(static_cast<void*>(&value), from, sizeof value);
        return value;
    }

    /// What a std::atomic_ref does, which not every standard library of C++20 has.
    template <class Value, class Function>
    Value update(Value* at, const site& where, Function next) const {
        check_global(at, "updates", sizeof(Value), where);
        owner().check_global(state(), where, "updates", sizeof(Value),
                             [&](global_memory& memory, const global_accessor& who) {
                                 memory.update(who, state(), at, sizeof(Value));
                             });
        Value before;
        __atomic_load(at, &before, __ATOMIC_RELAXED);
        for (;;) {
            Value after = next(before);
            if (__atomic_compare_exchange(at, &before, &after, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
                return before;
            }
        }
    }
    template <class Value, class Function>
    Value update_shared(shared_pointer<Value> at, const site& where, Function next) const {
        constexpr std::size_t size = checked_size<Value>();
        shared_memory& memory = owner().memory_of(state());
        owner().check_access(state(), where, "updates", size, at.offset, [&] {
            memory.check_range(at.offset, size, size);
            memory.update(state().access(), at.offset, size);
        });
        const Value before = read_value<Value>(memory.data() + at.offset);
        const Value after = next(before);
        std::memcpy(memory.data() + at.offset, &after, size);
        return before;
    }

public:
    // --- copies that run beside the thread

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
