// SPDX-License-Identifier: MIT
#pragma once

#include <mp/executor.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <initializer_list>
#include <vector>

/// An executor for each instruction set that this processor has and that optimizers have kernels for, which
/// are none beyond AVX-512, with each of these numbers of threads.
inline std::vector<mp::cpu> optimizer_executors(std::initializer_list<int> threads = {1}) {
    std::vector<mp::cpu> result;
    for (int i = 0; i <= static_cast<int>(mp::instruction_set::avx512); ++i) {
        const auto isa = static_cast<mp::instruction_set>(i);
        if (!mp::processor_has(isa)) continue;
        for (const int count : threads) result.push_back(mp::cpu{count, isa});
    }
    return result;
}
