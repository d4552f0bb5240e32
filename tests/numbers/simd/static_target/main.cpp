// SPDX-License-Identifier: MIT
// One program of a source for any processor and of one with MP_STATIC_TARGET for AVX2.
#include "kernels.hpp"

#include <mp/numbers/simd/processor.hpp>

#include <doctest/doctest.h>

using mp::instruction_set;

TEST_CASE("kernels of one target have the bits of those that are chosen when the program runs") {
    REQUIRE(mp::processor_has(instruction_set::avx2));
    CHECK(results() == results_of_any_target());
}

TEST_CASE("a request for an instruction set without kernels is an error") {
    CHECK(refusal(instruction_set::avx2) == "");
    CHECK(refusal(instruction_set::best) == "");
    CHECK(refusal(instruction_set::portable) ==
          "mp::convert: exec.instructions is 'portable'; it must be an instruction set of the program, which "
          "has "
          "only kernels for avx2 (MP_STATIC_TARGET)");
    CHECK(
        refusal(instruction_set::avx512) ==
        "mp::convert: exec.instructions is 'avx512'; it must be an instruction set of the program, which has "
        "only kernels for avx2 (MP_STATIC_TARGET)");
    CHECK(refusal_of_any_target(instruction_set::portable) == "");
}
