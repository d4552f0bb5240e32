// SPDX-License-Identifier: MIT
/// \file
/// Products of a warpgroup that are under way, on the host.
#pragma once

#include <mp/config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace mp::simt::detail::inline MP_ISA_NAMESPACE {

/// The sums of one set of registers while products are added to them: what the registers will hold.
struct sums_in_flight {
    std::vector<float*> registers;  ///< of each thread of the warpgroup
    int per_thread = 0;
    std::vector<float> values;  ///< rows of `columns`
    int columns = 0;
    std::size_t last_group = 0;  ///< the group of the last product that is added
};

/// Bytes of shared memory that a product reads.
using read_ranges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

struct product_group {
    read_ranges ranges;
    int warps_that_wait = 4;
};

struct warpgroup_state {
    bool fenced = false;
    std::vector<std::shared_ptr<sums_in_flight>> sums;
    product_group open;
    std::deque<product_group> groups;  ///< from number `first` on, which not all warps have waited for
    std::size_t first = 0;
    std::size_t committed = 0;            ///< groups that have been ended
    std::array<std::size_t, 4> waited{};  ///< groups that each warp has waited for
};

}  // namespace mp::simt::detail::inline MP_ISA_NAMESPACE
