// SPDX-License-Identifier: MIT
// Products of tiles: of numbers by the exact model of tensor cores in mp/linalg/tensor_core, which is all that the interpreter takes
// from the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ptx {

enum class multiplicand { f16, bf16, tf32, e4m3, e5m2, s8, unknown };

multiplicand multiplicand_named(std::string_view name);
constexpr std::size_t bytes_of(multiplicand type) {
    if (type == multiplicand::tf32) return 4;
    return type == multiplicand::e4m3 || type == multiplicand::e5m2 || type == multiplicand::s8 ? 1 : 2;
}

/// c += a b: lines of A and of B (its columns) of `k` elements each follow each other, c is row after row. Warps and
/// warpgroups have different units for 8 bits. The architecture is 80 or 90.
void multiply_add(multiplicand a_type, multiplicand b_type, int rows, int columns, int k, const std::byte* a,
                  const std::byte* b, float* c, bool by_warpgroup, int architecture);
/// The same for sums of half, as their bits; operands are half.
void multiply_add_half(int rows, int columns, int k, const std::byte* a, const std::byte* b,
                       unsigned short* c, int architecture);
/// Of signed bytes, modulo 2^32.
void multiply_add_integers(int rows, int columns, int k, const std::byte* a, const std::byte* b,
                           std::uint32_t* c);

}  // namespace ptx
