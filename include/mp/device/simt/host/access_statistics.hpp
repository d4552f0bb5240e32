// SPDX-License-Identifier: MIT
/// \file
/// How well the memory accesses of a kernel fit the banks of shared memory and the sectors of global memory.
#pragma once

#include <mp/config.hpp>
#include <mp/device/simt/kernel_traits.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace mp::simt {

/// Cost of the warps' accesses of one kind at one source line of a kernel.
struct access_cost {
    std::string place;               ///< file and line
    std::string operation;           ///< load, store, load_matrix ...
    bool shared = true;              ///< shared memory, or global
    std::uint64_t instructions = 0;  ///< by warps
    /// Shared memory: passes over the 32 banks of 4 bytes. Global memory: sectors of 32 bytes.
    std::uint64_t transactions = 0;
    /// The fewest that move as many bytes.
    std::uint64_t ideal = 0;
};

namespace detail { inline namespace MP_ISA_NAMESPACE {

/// One lane's part of an access.
struct lane_access {
    int lane;
    std::uint64_t address;
    std::uint32_t bytes;
};

/// The largest number of different words of 4 bytes that lanes want from one bank.
inline std::uint64_t passes_together(std::span<const lane_access> lanes) {
    constexpr std::size_t banks = 32;
    std::array<std::vector<std::uint64_t>, banks> words;
    for (const lane_access& lane : lanes) {
        for (std::uint64_t word = lane.address / 4; word <= (lane.address + lane.bytes - 1) / 4; ++word) {
            std::vector<std::uint64_t>& bank = words[word % banks];
            if (std::find(bank.begin(), bank.end(), word) == bank.end()) bank.push_back(word);
        }
    }
    std::size_t most = 0;
    for (const std::vector<std::uint64_t>& bank : words) most = (std::max)(most, bank.size());
    return most;
}

/// Passes over the banks that a warp's access takes. Lanes of 8 (16) bytes are served by halves (quarters) of
/// the warp; of the lanes that are served together those that want different words of one bank wait for each
/// other, and those that want the same word do not.
inline std::uint64_t shared_passes(std::span<const lane_access> lanes) {
    if (passes_together(lanes) <= 1) return 1;
    const int together = 128 / static_cast<int>((std::max<std::uint32_t>)(4, lanes[0].bytes));
    std::uint64_t passes = 0;
    for (std::size_t begin = 0; begin < lanes.size();) {
        std::size_t end = begin;
        while (end < lanes.size() && lanes[end].lane / together == lanes[begin].lane / together) ++end;
        passes += passes_together(lanes.subspan(begin, end - begin));
        begin = end;
    }
    return passes;
}

/// The number of different units of `unit` bytes that lanes access.
inline std::uint64_t units_of(std::span<const lane_access> lanes, std::uint64_t unit) {
    std::vector<std::uint64_t> units;
    for (const lane_access& lane : lanes) {
        for (std::uint64_t i = lane.address / unit; i <= (lane.address + lane.bytes - 1) / unit; ++i) {
            units.push_back(i);
        }
    }
    std::sort(units.begin(), units.end());
    return static_cast<std::uint64_t>(std::unique(units.begin(), units.end()) - units.begin());
}

/// The passes without any conflict: 128 different bytes each.
inline std::uint64_t ideal_shared_passes(std::span<const lane_access> lanes) {
    return (units_of(lanes, 4) + 31) / 32;
}

/// Sectors of 32 bytes that a warp's access touches, and the fewest that hold as many bytes.
inline std::pair<std::uint64_t, std::uint64_t> global_sectors(std::span<const lane_access> lanes) {
    std::uint64_t bytes = 0;
    for (const lane_access& lane : lanes) bytes += lane.bytes;
    const std::uint64_t sectors = units_of(lanes, 32);
    return {sectors, (std::min)(sectors, (bytes + 31) / 32)};
}

}}  // namespace detail

/// Counts the cost of a launch's accesses: pass it to an executor, launch, and read the costs.
///
/// Lanes run one after another on the host, so their accesses are combined to those of warps by counting:
/// the n-th time that a lane reaches a line belongs to the n-th time of the other lanes. Where lanes diverge,
/// that is a guess.
class access_statistics {
public:
    /// The costs by line, in the order of source positions; after the launch.
    [[nodiscard]] std::vector<access_cost> costs() const {
        std::vector<access_cost> result;
        for (const auto& [key, cost] : costs_) result.push_back(cost);
        return result;
    }

    /// Passes over the banks beyond the fewest, in the whole kernel.
    [[nodiscard]] std::uint64_t bank_conflicts() const { return beyond_ideal(true); }
    /// Sectors beyond the fewest.
    [[nodiscard]] std::uint64_t wasted_sectors() const { return beyond_ideal(false); }

    /// For the host backend: one lane's access. The texts must live as long as this, as literals do.
    void note(std::size_t warp, int lane, const char* file, unsigned line, unsigned column,
              const char* operation, bool shared, std::uint64_t address, std::uint32_t bytes) {
        const site place{file, line, column, operation, shared};
        std::uint64_t& turn = turns_[{warp, lane, place}];
        std::vector<detail::lane_access>& lanes = open_[{warp, place, turn++}];
        lanes.push_back({lane, address, bytes});
        if (lanes.size() == static_cast<std::size_t>(warp_size)) {
            add(place, lanes);
            open_.erase({warp, place, turn - 1});
        }
    }
    /// For the host backend: an access of a whole warp.
    void note_warp(const char* file, unsigned line, unsigned column, const char* operation, bool shared,
                   std::span<const detail::lane_access> lanes) {
        add({file, line, column, operation, shared}, lanes);
    }
    /// For the host backend: a block has ended.
    void end_block() {
        for (const auto& [key, lanes] : open_) add(std::get<1>(key), lanes);
        open_.clear();
        turns_.clear();
    }

private:
    /// File, line, column, operation, whether the memory is shared.
    using site = std::tuple<std::string_view, unsigned, unsigned, std::string_view, bool>;

    void add(const site& place, std::span<const detail::lane_access> in_any_order) {
        std::vector<detail::lane_access> lanes(in_any_order.begin(), in_any_order.end());
        std::sort(lanes.begin(), lanes.end(), [](const auto& a, const auto& b) { return a.lane < b.lane; });
        access_cost& cost = costs_[place];
        const auto& [file, line, column, operation, shared] = place;
        cost.place = std::string(file) + ":" + std::to_string(line);
        cost.operation = operation;
        cost.shared = shared;
        ++cost.instructions;
        if (shared) {
            cost.transactions += detail::shared_passes(lanes);
            cost.ideal += detail::ideal_shared_passes(lanes);
        } else {
            const auto [sectors, ideal] = detail::global_sectors(lanes);
            cost.transactions += sectors;
            cost.ideal += ideal;
        }
    }

    [[nodiscard]] std::uint64_t beyond_ideal(bool shared) const {
        std::uint64_t sum = 0;
        for (const auto& [key, cost] : costs_) {
            if (cost.shared == shared) sum += cost.transactions - cost.ideal;
        }
        return sum;
    }

    std::map<site, access_cost> costs_;
    std::map<std::tuple<std::size_t, int, site>, std::uint64_t> turns_;
    std::map<std::tuple<std::size_t, site, std::uint64_t>, std::vector<detail::lane_access>> open_;
};

}  // namespace mp::simt
