// SPDX-License-Identifier: MIT
#include "memory.hpp"

#include "machine.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace ptx {

namespace {

/// Bytes around an allocation, so that addresses a little outside belong to nobody else.
constexpr std::size_t margin = 512;

std::string hexadecimal(std::uint64_t value) {
    std::string text;
    for (int shift = 60; shift >= 0; shift -= 4) {
        const auto digit = (value >> shift) & 15U;
        if (digit != 0 || !text.empty() || shift == 0) text += "0123456789abcdef"[digit];
    }
    return "0x" + text;
}

}  // namespace

std::uint64_t global_memory::allocate(std::size_t size, bool is_constant) {
    allocation it;
    it.owned.reset(new (std::nothrow) std::byte[size + 2 * margin]);
    it.states.reset(new (std::nothrow) std::uint8_t[size + 1]());
    if (!it.owned || !it.states) return 0;
    const auto raw = reinterpret_cast<std::uint64_t>(it.owned.get());
    it.begin = (raw + margin - 1) / margin * margin;
    it.size = size;
    it.is_constant = is_constant;
    std::memset(it.owned.get(), 0xA5, size + 2 * margin);
    allocated_ += size;
    const std::uint64_t begin = it.begin;
    allocations_.emplace(begin, std::move(it));
    last_ = nullptr;
    return begin;
}

bool global_memory::free(std::uint64_t address) {
    const auto found = allocations_.find(address);
    if (found == allocations_.end()) return false;
    allocated_ -= found->second.size;
    allocations_.erase(found);
    last_ = nullptr;
    return true;
}

void global_memory::free_all() {
    allocations_.clear();
    allocated_ = 0;
    last_ = nullptr;
}

allocation* global_memory::find(std::uint64_t address, std::size_t bytes) {
    if (last_ != nullptr && address - last_->begin < last_->size &&
        address - last_->begin + bytes <= last_->size) {
        return last_;
    }
    auto found = allocations_.upper_bound(address);
    if (found == allocations_.begin()) return nullptr;
    --found;
    allocation& it = found->second;
    const std::uint64_t offset = address - it.begin;
    if (offset > it.size || offset + bytes > it.size) return nullptr;
    last_ = &it;
    return &it;
}

void global_memory::mark_written(std::uint64_t address, std::size_t bytes) {
    if (allocation* const it = find(address, bytes)) {
        std::memset(it->states.get() + (address - it->begin), static_cast<int>(byte_state::written), bytes);
    }
}

std::string global_memory::describe(std::uint64_t address) const {
    const auto after = allocations_.upper_bound(address);
    if (after == allocations_.begin()) return "address " + hexadecimal(address) + " is in no allocation";
    const allocation& it = std::prev(after)->second;
    return "byte " + std::to_string(address - it.begin) + " of an allocation of " + std::to_string(it.size) +
           " bytes";
}

place locate_shared(const warp& w, int lane, std::uint64_t address, std::size_t bytes) {
    const auto rank_code = static_cast<std::size_t>(address >> shared_rank_shift);
    const std::size_t offset = address & ((std::uint64_t{1} << shared_rank_shift) - 1);
    std::vector<block>& blocks = w.in->in->blocks;
    if (rank_code > blocks.size()) {
        w.fail(lane, "address " + hexadecimal(address) + " is not in shared memory of the cluster");
    }
    shared_memory& memory = rank_code == 0 ? w.in->shared : blocks[rank_code - 1].shared;
    if (offset < shared_begin || offset - shared_begin + bytes > memory.bytes.size()) {
        w.fail(lane, std::to_string(bytes) + " bytes at " +
                         std::to_string(static_cast<std::int64_t>(offset) - shared_begin) +
                         " are outside of the " + std::to_string(memory.bytes.size()) +
                         " bytes of shared memory");
    }
    const std::size_t at = offset - shared_begin;
    return {memory.bytes.data() + at, memory.states.data() + at, &memory.accesses, at, true};
}

void check_dependency(const warp& w, int lane) {
    if ((w.dependent >> lane & 1U) != 0) w.fail(lane, "touches global memory before griddepcontrol.wait");
}

namespace {

place find_place(warp& w, int lane, space in, std::uint64_t address, std::size_t bytes, access how) {
    if (in == space::generic) {
        const std::uint64_t window = address >> window_shift << window_shift;
        if (window == shared_window) return find_place(w, lane, space::shared, address - window, bytes, how);
        if (window == local_window) return find_place(w, lane, space::local, address - window, bytes, how);
        if (window == parameter_window)
            return find_place(w, lane, space::parameter, address - window, bytes, how);
        in = space::global;
    }
    switch (in) {
        case space::global: {
            allocation* const it = w.in->in->memory->find(address, bytes);
            if (it == nullptr) {
                w.fail(lane, std::string(how == access::read ? "reads " : "writes ") + std::to_string(bytes) +
                                 " bytes outside of global memory: " + w.in->in->memory->describe(address));
            }
            if (!it->is_constant) check_dependency(w, lane);
            if (it->is_constant && how != access::read) w.fail(lane, "writes constant memory");
            const std::size_t offset = address - it->begin;
            return {reinterpret_cast<std::byte*>(address), it->states.get() + offset, &it->accesses, offset};
        }
        case space::shared:
            return locate_shared(w, lane, address, bytes);
        case space::local:
            if (address + bytes > w.local_stride) w.fail(lane, "accesses bytes outside of local memory");
            return {w.local.data() + static_cast<std::size_t>(lane) * w.local_stride + address, nullptr};
        default:
            if (how != access::read || address + bytes > w.in->in->parameters.size()) {
                w.fail(lane, "accesses bytes outside of the parameters");
            }
            return {w.in->in->parameters.data() + address, nullptr};
    }
}

[[noreturn]] void fail_for_state(const warp& w, int lane, std::uint8_t state, access how) {
    switch (static_cast<byte_state>(state)) {
        case byte_state::unwritten:
            w.fail(lane, "reads memory that nobody has written");
        case byte_state::arriving:
            w.fail(lane, how == access::read ? "reads memory that a copy is still going to write"
                                             : "writes memory that a copy is still going to write");
        default:
            w.fail(lane, "writes memory that an asynchronous unit is still going to read");
    }
}

}  // namespace

place locate(warp& w, int lane, space in, std::uint64_t address, std::size_t bytes, access how) {
    if (address % bytes != 0)
        w.fail(lane, "address " + hexadecimal(address) + " is not a multiple of " + std::to_string(bytes));
    const place found = find_place(w, lane, in, address, bytes, how);
    if (found.states == nullptr) return found;
    for (std::size_t i = 0; i < bytes; ++i) {
        std::uint8_t& state = found.states[i];
        if (state == static_cast<std::uint8_t>(byte_state::written)) continue;
        if (how == access::write && state == static_cast<std::uint8_t>(byte_state::unwritten)) {
            state = static_cast<std::uint8_t>(byte_state::written);
            continue;
        }
        if (how == access::read && state == static_cast<std::uint8_t>(byte_state::leaving)) continue;
        fail_for_state(w, lane, state, how);
    }
    return found;
}

}  // namespace ptx
