// SPDX-License-Identifier: MIT
/// \file
/// Operands of a float8 matrix product that are rounded to 8 bits and back: by current scaling, with a scale
/// that is a power of two.
#pragma once

#include <mp/config.hpp>
#include <mp/numbers/rules/quantisation.hpp>
#include <mp/numbers/simd/loops.hpp>
#include <mp/numbers/simd/select_target.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

#define MP_KERNEL_FILE <mp/numbers/rules/quantised_operand.inl>
#include <mp/numbers/simd/for_each_loop.inl>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

#if MP_CORE_BODIES
MP_CORE_FUNCTION largest_magnitudes magnitudes_of(instruction_set isa, const float* values,
                                                  std::size_t count) {
    return MP_SELECT_TARGET(isa, &portable_vectors::find_magnitudes, find_magnitudes)(values, count);
}
MP_CORE_FUNCTION void quantise_floats(instruction_set isa, std::size_t count, float* to, const float* from,
                                      const quantisation& q) {
    MP_SELECT_TARGET(isa, &portable_vectors::quantise_array, quantise_array)(count, to, from, q);
}
MP_CORE_FUNCTION void quantise_floats(instruction_set isa, std::size_t count, std::uint16_t* to,
                                      const float* from, const quantisation& q) {
    const auto kernel =
        MP_SELECT_TARGET(isa, &portable_vectors::quantise_array_to_bfloat16, quantise_array_to_bfloat16);
    kernel(count, to, from, q);
}
#endif

}}  // namespace mp::detail
