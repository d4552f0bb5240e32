// SPDX-License-Identifier: MIT
// Compiled for any processor. Calls the other source only where the processor can do what that was compiled
// for.
#include "mixed.hpp"

#include <mp/numbers/simd/processor.hpp>

#include <cstdio>

std::uint64_t results_on_a_newer_processor(mp::half* first);

int main() {
    const std::uint64_t here = results();
    if (mp::processor_instruction_set() < mp::instruction_set::avx2) {
        std::puts("only the source for every processor was run");
        return here != 0 ? 0 : 1;
    }
    mp::half x{3};
    const bool same = results_on_a_newer_processor(&x) == here && x == mp::half{9};
    std::puts(same ? "both sources give the same results" : "the sources differ");
    return same ? 0 : 1;
}
