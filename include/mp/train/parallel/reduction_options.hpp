// SPDX-License-Identifier: MIT
/// \file
/// How gradients are reduced over ranks, and what reductions have done.
#pragma once

#include <mp/config.hpp>
#include <mp/train/parallel/wire_format.hpp>

#include <cstddef>
#include <cstdint>

namespace mp {

/// How gradients are reduced. The same on all ranks.
struct reduction_options {
    wire_format wire = wire_format::as_stored;
    std::size_t bucket_bytes = std::size_t{8} << 20;  ///< of gradients; a larger parameter has its own bucket
    bool mean = true;                                 ///< else the sum
    int in_flight = 4;  ///< buckets that are under way at once, each with memory
    /// Every rank gets the sums of its own share only, for mp::sharded_optimizer.
    bool share_only = false;
    /// Whether to look for gradients that are changed after they were sent, which no op tells, on CPUs; reads
    /// all gradients twice. By default in builds without NDEBUG.
    bool compare_sent = MP_CHECK_KEPT_CASTS != 0;
};

/// What reductions have done so far.
struct reduction_statistics {
    std::uint64_t steps = 0;
    std::uint64_t bytes_sent = 0;     ///< to other ranks, by this one
    std::uint64_t buckets = 0;        ///< reduced
    std::uint64_t buckets_early = 0;  ///< of them, those that were sent while the backward pass went on
    /// Under wire_format::mxfp8, of the last step: the norm of what this rank has not sent yet, over that of its
    /// gradients.
    double lost = 0;
    double seconds_waited = 0;  ///< in finish(): what was not hidden behind the backward pass
};

}  // namespace mp
