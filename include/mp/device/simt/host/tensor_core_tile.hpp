// SPDX-License-Identifier: MIT
/// \file
/// The result of one matrix instruction, by the exact model.
#pragma once

#include <mp/base/instruction_set.hpp>
#include <mp/device/simt/fragments.hpp>
#include <mp/linalg/tensor_core/arch.hpp>
#include <mp/linalg/tensor_core/block_fma.hpp>
#include <mp/linalg/tensor_core/emulated_product.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

/// The unit by which mma.sync multiplies numbers of 8 bits.
template <arch Arch>
constexpr float8_unit synchronous_unit() {
    return has_float8_through_half(Arch) ? float8_unit::through_half : float8_unit::native;
}

/// c += a b of signed bytes, modulo 2^32, for `rows` lines of A and `columns` lines of B, of mma_k_bytes each.
inline void add_integer_products(int rows, int columns, const unsigned char* a, const unsigned char* b,
                                 std::uint32_t* c) {
    for (int row = 0; row < rows; ++row) {
        for (int column = 0; column < columns; ++column) {
            std::int32_t products = 0;  // at most 32 * 2^14
            for (int k = 0; k < mma_k_bytes; ++k) {
                products += static_cast<std::int8_t>(a[row * mma_k_bytes + k]) *
                            static_cast<std::int8_t>(b[column * mma_k_bytes + k]);
            }
            c[row * columns + column] += static_cast<std::uint32_t>(products);
        }
    }
}

/// c += a b for `rows` lines of A, `columns` lines of B and `k` elements in each, as lines of bytes that
/// follow each other; c has `columns` floats a row. Blocks of ascending k, each with the sum before as
/// its addend.
template <arch Arch, class A, class B>
class tile_product {
public:
    tile_product(int rows, int columns, int k, const unsigned char* a, const unsigned char* b,
                 float8_unit unit)
        : rows_(rows),
          columns_(columns),
          k_(k),
          unit_(mp::detail::unit_for<A>(unit)),
          a_(static_cast<std::size_t>(rows * k)),
          b_(static_cast<std::size_t>(columns * k)) {
        std::memcpy(static_cast<void*>(a_.data()), a, a_.size() * sizeof(A));
        std::memcpy(static_cast<void*>(b_.data()), b, b_.size() * sizeof(B));
    }

    void add_to(float* c) const {
        using product = mp::detail::emulated_product<Arch, float, A, B>;
        const product whole{mp::row_major(a_.data(), rows_, k_), mp::column_major(b_.data(), k_, columns_),
                            unit_, best_instruction_set(), 0};
        // Rows of sums are read and written in whole panels.
        constexpr std::ptrdiff_t panel = mp::detail::panel_columns;
        const std::ptrdiff_t stride = (columns_ + panel - 1) / panel * panel;
        typename product::scratch memory;
        memory.sums.resize(static_cast<std::size_t>(rows_ * stride));
        for (std::ptrdiff_t i = 0; i < rows_; ++i) {
            std::copy_n(c + i * columns_, columns_, memory.sums.begin() + i * stride);
        }
        whole.add_chunk({&whole, {0, 0, rows_, columns_, stride}, 0, k_}, memory);
        for (std::ptrdiff_t i = 0; i < rows_; ++i) {
            std::copy_n(memory.sums.begin() + i * stride, columns_, c + i * columns_);
        }
    }

private:
    int rows_;
    int columns_;
    int k_;
    float8_unit unit_;
    std::vector<A> a_;
    std::vector<B> b_;
};

}}  // namespace mp::simt::detail
