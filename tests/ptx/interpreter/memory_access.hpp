// SPDX-License-Identifier: MIT
// The short way to memory, for accesses in which nothing is special; locate() is the long one.
#pragma once

#include "machine.hpp"
#include "memory.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ptx {

template <std::size_t Bytes>
std::uint64_t gather_states(const std::uint8_t* states, std::uint64_t& other) {
    std::uint64_t first = 0;
    other = 0;
    std::memcpy(&first, states, Bytes < 8 ? Bytes : 8);
    if constexpr (Bytes > 8) std::memcpy(&other, states + 8, 8);
    return first;
}

/// Whether this access needs no look at single bytes; a store then has marked them.
template <std::size_t Bytes>
bool is_usual(std::uint8_t* states, access how) {
    constexpr std::uint64_t ones = 0x0101'0101'0101'0101U >> (8 * (8 - (Bytes < 8 ? Bytes : 8)));
    std::uint64_t second = 0;
    const std::uint64_t first = gather_states<Bytes>(states, second);
    const bool all = first == ones && (Bytes <= 8 || second == ones);
    if (all) return true;
    if (how != access::write || ((first | second) & ~ones) != 0) return false;
    std::memset(states, 1, Bytes);
    return true;
}

/// The bytes that a lane accesses, which no other access may race with. A strong access is atomic or volatile.
template <std::size_t Bytes>
std::byte* reach(warp& w, int lane, space in, std::uint64_t address, access how, bool strong = false) {
    if (address % Bytes == 0) {
        if (in == space::global || (in == space::generic && address >> window_shift == 0)) {
            allocation* const last = w.in->in->memory->last();
            if (last != nullptr && !last->is_constant) {
                const std::uint64_t offset = address - last->begin;
                if (offset < last->size && last->size - offset >= Bytes &&
                    is_usual<Bytes>(last->states.get() + offset, how)) {
                    if (w.dependent != 0) check_dependency(w, lane);
                    note_access(w, lane, {nullptr, nullptr, &last->accesses, offset}, Bytes, how, strong);
                    return reinterpret_cast<std::byte*>(address);
                }
            }
        } else if (in == space::shared) {
            shared_memory& memory = w.in->shared;
            const std::uint64_t offset = address - shared_begin;
            if (offset < memory.bytes.size() && memory.bytes.size() - offset >= Bytes &&
                is_usual<Bytes>(memory.states.data() + offset, how)) {
                note_access(w, lane, {nullptr, nullptr, &memory.accesses, offset, true}, Bytes, how, strong);
                return memory.bytes.data() + offset;
            }
        } else if (in == space::parameter) {
            std::vector<std::byte>& memory = w.in->in->parameters;
            if (how == access::read && address < memory.size() && memory.size() - address >= Bytes) {
                return memory.data() + address;
            }
        } else if (in == space::local && address < w.local_stride && w.local_stride - address >= Bytes) {
            return w.local.data() + static_cast<std::size_t>(lane) * w.local_stride + address;
        }
    }
    const place found = locate(w, lane, in, address, Bytes, how);
    if (found.accesses != nullptr) note_access(w, lane, found, Bytes, how, strong);
    return found.bytes;
}

/// The address that an instruction's operand means in a lane.
inline std::uint64_t address_of(const warp& w, const instruction& i, std::size_t slot, int lane) {
    const operand& base = i.o[slot];
    const std::uint64_t start = base.is_used() ? read_lane(w, base, lane) : w.local_base;
    const std::uint64_t address = start + static_cast<std::uint64_t>(i.value);
    return base.bytes == 4 ? static_cast<std::uint32_t>(address) : address;
}

}  // namespace ptx
