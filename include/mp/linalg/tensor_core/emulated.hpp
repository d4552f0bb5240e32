// SPDX-License-Identifier: MIT
/// \file
/// The executor that runs matrix products on a model of a GPU's tensor cores.
#pragma once

#include <mp/base/instruction_set.hpp>
#include <mp/linalg/tensor_core/arch.hpp>

namespace mp {

/// Runs a matrix product on the model of an architecture's tensor cores, on the host: the result has the bits
/// that a GPU kernel returns which feeds blocks of ascending k into one accumulator from zero.
///
///     mp::gemm(mp::emulated<mp::arch::sm_90>{}, 1, a, b, 0, c);
///     mp::gemm(mp::emulated<mp::arch::sm_80, mp::half>{.threads = 4}, 1, a, b, 0, c);
///
/// `Accumulator` is float or half: what the matrix instruction adds into.
template <arch Arch, class Accumulator = float>
struct emulated {
    static constexpr arch architecture = Arch;
    using accumulator = Accumulator;

    /// As in mp::cpu: threads of the host, and instructions of its processor. No result depends on them.
    int threads = 1;
    instruction_set instructions = instruction_set::best;
    /// The unit that multiplies 8-bit numbers.
    float8_unit float8 = float8_unit::native;
    /// Where the accumulators of 8-bit operands have 13 fraction bits only (float8_unit::native on sm_89 and
    /// sm_90, accumulators of float), their sum is added to a float, rounded to nearest even, and they start
    /// again from zero, after this number of products, and at the end: what kernels such as DeepGEMM's do
    /// with CUDA cores. A multiple of 32. Zero never promotes: the accumulators run over all of k, as with
    /// cuBLAS's "fast accumulation". Of no meaning elsewhere.
    int promotion_interval = 128;
};

}  // namespace mp
