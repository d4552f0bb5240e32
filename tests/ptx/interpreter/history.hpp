// SPDX-License-Identifier: MIT
// What has been done to bytes of memory: for each piece the last write, and two reads that nothing had ordered before
// others. A piece has as many bytes as the smallest access to its page of 1024 bytes had.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ptx {

/// An access in a word: 31 bits of the clock of who made it, 13 bits who, 19 bits in which line behind the first one of
/// the kernel, and whether it was atomic (or volatile, which orders nothing, but is no race with others of its kind).
using stamp = std::uint64_t;
inline constexpr int stamp_clock_shift = 33;
inline constexpr int stamp_agent_shift = 20;
inline constexpr std::uint32_t most_agents = 1U << (stamp_clock_shift - stamp_agent_shift);
inline constexpr std::uint32_t stamp_lines = 1U << (stamp_agent_shift - 1);

constexpr stamp make_stamp(std::uint32_t clock, std::uint32_t agent) {
    return stamp{clock} << stamp_clock_shift | stamp{agent} << stamp_agent_shift;
}
constexpr std::uint32_t clock_of(stamp it) {
    return static_cast<std::uint32_t>(it >> stamp_clock_shift);
}
constexpr std::uint32_t agent_of(stamp it) {
    return static_cast<std::uint32_t>(it >> stamp_agent_shift) & (most_agents - 1);
}
constexpr std::uint32_t line_of(stamp it) {
    return static_cast<std::uint32_t>(it >> 1) & (stamp_lines - 1);
}
constexpr bool is_atomic(stamp it) {
    return (it & 1U) != 0;
}
constexpr bool same_moment(stamp a, stamp b) {
    return ((a ^ b) >> stamp_agent_shift) == 0;
}

class history {
public:
    static constexpr std::size_t page_bytes = 1024;
    struct page {
        static constexpr std::uint8_t untouched = 255;
        std::uint8_t shift = untouched;     ///< pieces have 2^shift bytes
        std::unique_ptr<stamp[]> writes{};  ///< one a piece; null while there is none
        std::unique_ptr<stamp[]> reads{};   ///< two a piece
        [[nodiscard]] std::size_t pieces() const { return page_bytes >> shift; }
        stamp* write_stamps() {
            if (!writes) writes.reset(new stamp[pieces()]());
            return writes.get();
        }
        stamp* read_stamps() {
            if (!reads) reads.reset(new stamp[2 * pieces()]());
            return reads.get();
        }
    };

    /// The page of an offset, in pieces of at most 2^shift bytes.
    page& at(std::size_t offset, std::uint8_t shift) {
        const std::size_t index = offset / page_bytes;
        if (index >= pages_.size()) pages_.resize(index + index / 4 + 1);
        page& it = pages_[index];
        if (it.shift > shift) refine(it, shift);
        return it;
    }

    /// Calls f(page, piece, offset) for pieces of at most `most` bytes.
    template <class Function>
    void for_pieces(std::size_t begin, std::size_t bytes, std::size_t most, Function f) {
        for (std::size_t done = 0; done < bytes;) {
            const std::size_t offset = begin + done;
            std::size_t step =
                offset == 0 ? most : std::min(most, std::size_t{1} << std::countr_zero(offset));
            while (step > bytes - done) step /= 2;
            page& of = at(offset, static_cast<std::uint8_t>(std::countr_zero(step)));
            const std::size_t first = offset % page_bytes >> of.shift;
            for (std::size_t k = 0; k < step >> of.shift; ++k) f(of, first + k, offset + (k << of.shift));
            done += step;
        }
    }
    /// Calls f(stamp, writes, offset) for all accesses that are remembered.
    template <class Function>
    void for_stamps(Function f) const {
        for (std::size_t index = 0; index < pages_.size(); ++index) {
            const page& of = pages_[index];
            if (of.shift == page::untouched) continue;
            for (std::size_t k = 0; k < of.pieces(); ++k) {
                const std::size_t offset = index * page_bytes + (k << of.shift);
                if (of.writes && of.writes[k] != 0) f(of.writes[k], true, offset);
                for (std::size_t slot = 0; of.reads && slot < 2; ++slot) {
                    if (of.reads[2 * k + slot] != 0) f(of.reads[2 * k + slot], false, offset);
                }
            }
        }
    }

private:
    static void refine(page& it, std::uint8_t shift);
    std::vector<page> pages_{};
};

}  // namespace ptx
