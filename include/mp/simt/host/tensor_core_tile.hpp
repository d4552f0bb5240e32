// SPDX-License-Identifier: MIT
/// \file
/// The result of one matrix instruction, by the exact model.
#pragma once

#include <mp/detail/bits.hpp>
#include <mp/simd/instruction_set.hpp>
#include <mp/simd/processor.hpp>
#include <mp/simd/select_target.hpp>
#include <mp/tensor_core/arch.hpp>
#include <mp/tensor_core/block_fma.hpp>
#include <mp/tensor_core/block_products.hpp>
#include <mp/tensor_core/panels.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace mp::simt::detail::inline MP_ISA_NAMESPACE {

/// The unit by which mma.sync multiplies numbers of 8 bits.
template <arch Arch>
constexpr float8_unit synchronous_unit() {
    return has_float8_through_half(Arch) ? float8_unit::through_half : float8_unit::native;
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
        if constexpr (rule.products != 0) {
            if (unit_ == float8_unit::native) {
                add_panels(c);
                return;
            }
        }
        const int products = mp::detail::products_of<A>(rule, unit_);
        for (int i = 0; i < rows_; ++i) {
            for (int j = 0; j < columns_; ++j) {
                auto bits = mp::detail::bit_cast<std::uint32_t>(c[i * columns_ + j]);
                for (int block = 0; block * products < k_; ++block) bits = step(i, j, block, bits);
                c[i * columns_ + j] = mp::detail::bit_cast<float>(bits);
            }
        }
    }

private:
    static constexpr block_rule rule = mp::detail::checked_block_rule<Arch, A, B, float>();

    /// One block by the integer model.
    [[nodiscard]] std::uint32_t step(std::ptrdiff_t row, std::ptrdiff_t column, std::ptrdiff_t block,
                                     std::uint32_t addend) const {
        const std::ptrdiff_t products = mp::detail::products_of<A>(rule, unit_);
        const A* const a = a_.data() + row * k_ + block * products;
        const B* const b = b_.data() + column * k_ + block * products;
        return mp::detail::block_step_bits<Arch, float, A, B>(
            unit_, static_cast<int>((std::min)(products, k_ - block * products)), [a](int i) { return a[i]; },
            [b](int i) { return b[i]; }, addend);
    }
    static std::uint32_t slow_step(const void* context, std::ptrdiff_t row, std::ptrdiff_t column,
                                   std::ptrdiff_t block, std::uint32_t addend) {
        return static_cast<const tile_product*>(context)->step(row, column, block, addend);
    }

    /// The same bits by the loops of mp::gemm on mp::emulated.
    void add_panels(float* c) const {
        const instruction_set isa = best_instruction_set();
        const std::ptrdiff_t blocks = (k_ + rule.products - 1) / rule.products;
        mp::detail::operand_panels a_panels;
        mp::detail::operand_panels b_panels;
        a_panels.resize(1, rule.products, static_cast<std::size_t>(rows_), static_cast<std::size_t>(blocks));
        b_panels.resize(mp::detail::panel_columns, rule.products, static_cast<std::size_t>(columns_),
                        static_cast<std::size_t>(blocks));
        std::vector<A> a_vector;
        std::vector<B> b_vector;
        std::vector<float> floats;
        mp::detail::pack_operand<rule.products>(isa, a_.data(), k_, 1, rows_, k_, a_panels, a_vector, floats);
        mp::detail::pack_operand<rule.products>(isa, b_.data(), k_, 1, columns_, k_, b_panels, b_vector,
                                                floats);
        const mp::detail::panel_task task{&a_panels, &b_panels, rule, blocks, &slow_step, this};
        const mp::detail::panel_function multiply =
            MP_SELECT_TARGET(isa, (&mp::detail::every_processor::multiply_panel<rule.products, rule.output>),
                             multiply_panel<rule.products, rule.output>);
        // Rows are read and written in whole panels.
        const std::ptrdiff_t width = (columns_ + mp::detail::panel_columns - 1) / mp::detail::panel_columns *
                                     mp::detail::panel_columns;
        std::vector<float> sums(static_cast<std::size_t>(rows_ * width));
        for (std::ptrdiff_t i = 0; i < rows_; ++i) {
            std::copy_n(c + i * columns_, columns_, sums.begin() + i * width);
        }
        for (std::ptrdiff_t j = 0; j < columns_; j += mp::detail::panel_columns) {
            multiply(task, j / mp::detail::panel_columns, rows_,
                     (std::min<std::ptrdiff_t>)(mp::detail::panel_columns, columns_ - j), sums.data() + j,
                     width);
        }
        for (std::ptrdiff_t i = 0; i < rows_; ++i) {
            std::copy_n(sums.begin() + i * width, columns_, c + i * columns_);
        }
    }

    std::ptrdiff_t rows_;
    std::ptrdiff_t columns_;
    std::ptrdiff_t k_;
    float8_unit unit_;
    std::vector<A> a_;
    std::vector<B> b_;
};

}  // namespace mp::simt::detail::inline MP_ISA_NAMESPACE
