// SPDX-License-Identifier: MIT
/// \file
/// Executors: where a bulk algorithm runs. Every bulk algorithm takes one as its first argument, as the
/// standard's parallel algorithms take an execution policy. mp::cuda_stream is in <mp/cuda.hpp>.
#pragma once

#include <mp/simd/instruction_set.hpp>

namespace mp {

/// In which order, and with how many roundings, a matrix product adds its terms on the CPU.
enum class accumulation : unsigned char {
    /// As the fastest instructions of the processor do, some of which add pairs of products before the
    /// accumulator and take subnormal numbers for zero. The same bits for any number of threads, but not on
    /// every processor; see mp::gemm.
    fastest,
    /// One fused multiply-add after the other, in ascending order of the terms: the same bits on every
    /// processor. Costs nothing for factors of float and half, and on processors without dot products of
    /// bfloat16.
    ordered,
};

/// Runs on the calling thread and, with threads > 1, on that many threads in all. Results never depend on
/// the number of threads.
///
///     mp::convert(mp::cpu{}, from, to);               // on this thread, with its best instructions
///     mp::convert(mp::cpu{.threads = 8}, from, to);
///     mp::convert(mp::cpu{.instructions = mp::instruction_set::avx2}, from, to);
///
/// Instructions that the processor lacks are refused with an argument_error by every algorithm that is
/// given them. See also mp::best_instruction_set in <mp/simd/processor.hpp>.
struct cpu {
    int threads = 1;
    instruction_set instructions = instruction_set::best;
    accumulation products = accumulation::fastest;
};

}  // namespace mp
