// SPDX-License-Identifier: MIT
/// \file
/// Executors: where a bulk algorithm runs. Every bulk algorithm takes one as its first argument, as the
/// standard's parallel algorithms take an execution policy. mp::cuda_stream is in <mp/cuda.hpp>.
#pragma once

namespace mp {

/// Runs on the calling thread and, with threads > 1, on that many threads in all. Results never depend on
/// the number of threads.
///
///     mp::convert(mp::cpu{}, from, to);               // on this thread
///     mp::convert(mp::cpu{.threads = 8}, from, to);
struct cpu {
    int threads = 1;
};

}  // namespace mp
