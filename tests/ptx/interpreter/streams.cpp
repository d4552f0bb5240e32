// SPDX-License-Identifier: MIT
#include "streams.hpp"

#include "machine.hpp"

#include <algorithm>

namespace ptx {

std::string stream_text(std::uint32_t number) {
    return number == 0 ? "the default stream" : "stream " + std::to_string(number);
}

const stream_work* stream_position::work_beside(std::uint32_t clock) const {
    const auto behind = std::ranges::upper_bound(beside, clock, {}, &stream_work::begin);
    if (behind == beside.begin() || clock > std::prev(behind)->end) return nullptr;
    return &*std::prev(behind);
}

std::string stream_position::beside_text(stamp other, bool wrote) const {
    const stream_work& it = *work_beside(clock_of(other));
    std::string text = (it.entry != nullptr ? "kernel " : "") + std::string(it.name) + " on " +
                       stream_text(it.stream) + (wrote ? " wrote" : " read");
    if (it.entry != nullptr) text += " in line " + line_text(*it.entry, line_of(other));
    return text;
}

namespace {

/// Stamps of copies; they have no threads.
constexpr stamp copy_stamp(std::uint32_t clock) {
    return make_stamp(clock, 0);
}

void check(stamp other, bool wrote, std::size_t offset, std::string_view does, std::string_view name,
           const stream_position& where) {
    if (other == 0 || where.work_beside(clock_of(other)) == nullptr) return;
    throw failure(std::string(name) + " on " + stream_text(where.stream) + " " + std::string(does) +
                  " memory that " + where.beside_text(other, wrote) +
                  ", and nothing orders that before (a race between streams): byte " +
                  std::to_string(offset) + " of its allocation");
}

}  // namespace

void note_copy(allocation& of, std::size_t offset, std::size_t bytes, access how, std::string_view name,
               const stream_position& where, std::uint32_t clock) {
    const bool reads = how == access::read;
    const std::string_view does = reads ? "reads" : "writes";
    // Coarse pieces where nobody has come yet: threads that do make them finer.
    constexpr std::size_t piece = 256;
    of.accesses.for_pieces(offset, bytes, piece, [&](history::page& page, std::size_t k, std::size_t at) {
        stamp* const others = page.reads ? page.reads.get() + 2 * k : nullptr;
        if (!where.beside.empty()) {
            if (page.writes) check(page.writes[k], true, at, does, name, where);
            for (int slot = 0; others != nullptr && !reads && slot < 2; ++slot)
                check(others[slot], false, at, does, name, where);
        }
        if (!reads) {
            page.write_stamps()[k] = copy_stamp(clock);
            if (others != nullptr) others[0] = others[1] = 0;
            return;
        }
        stamp* const readers = page.read_stamps() + 2 * k;
        const bool first_is_beside = where.work_beside(clock_of(readers[0])) != nullptr;
        readers[first_is_beside ? 1 : 0] = copy_stamp(clock);
    });
}

void note_allocation(allocation& of, std::uint32_t clock) {
    of.accesses.for_pieces(
        0, of.size, history::page_bytes,
        [&](history::page& page, std::size_t k, std::size_t) { page.write_stamps()[k] = copy_stamp(clock); });
}

void check_release(const allocation& of, std::string_view name, const stream_position& where) {
    if (where.beside.empty()) return;
    of.accesses.for_stamps([&](stamp other, bool wrote, std::size_t offset) {
        check(other, wrote, offset, "frees", name, where);
    });
}

}  // namespace ptx
