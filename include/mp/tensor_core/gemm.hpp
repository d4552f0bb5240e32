// SPDX-License-Identifier: MIT
/// \file
/// The general matrix product on the model of tensor cores.
#pragma once

#include <mp/detail/bits.hpp>
#include <mp/detail/parallel.hpp>
#include <mp/gemm/epilogue.hpp>
#include <mp/gemm/gemm.hpp>
#include <mp/gemm/tile_output.hpp>
#include <mp/gemm/validation.hpp>
#include <mp/matrix_view.hpp>
#include <mp/simd/floating_point_modes.hpp>
#include <mp/simd/processor.hpp>
#include <mp/simd/select_target.hpp>
#include <mp/tensor_core/block_fma.hpp>
#include <mp/tensor_core/block_products.hpp>
#include <mp/tensor_core/emulated.hpp>
#include <mp/tensor_core/panels.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// Rows, columns and products for which operands are unpacked at a time.
inline constexpr std::ptrdiff_t emulated_tile_rows = 128;
inline constexpr std::ptrdiff_t emulated_tile_columns = 64;
inline constexpr std::ptrdiff_t emulated_tile_k = 128;

/// a b on the model, with its types.
template <arch Arch, class Accumulator, class A, class B>
struct emulated_product {
    matrix_view<const A> a;
    matrix_view<const B> b;
    float8_unit unit;
    instruction_set isa;
    std::ptrdiff_t promotion_interval;  ///< zero for none

    static constexpr block_rule rule = checked_block_rule<Arch, A, B, Accumulator>();

    /// Memory of a thread.
    struct scratch {
        operand_panels a_panels;
        operand_panels b_panels;
        std::vector<A> a_vector;
        std::vector<B> b_vector;
        std::vector<float> floats;
        std::vector<float> sums;
        std::vector<float> promoted;
    };

    /// The output of a tile of a b.
    struct tile {
        std::ptrdiff_t row;
        std::ptrdiff_t column;
        std::ptrdiff_t rows;
        std::ptrdiff_t columns;
    };

    /// A chunk of a tile, for what goes through block_step_bits.
    struct chunk {
        const emulated_product* product;
        tile output;
        std::ptrdiff_t begin;  ///< of k
        std::ptrdiff_t end;

        [[nodiscard]] std::uint32_t step(std::ptrdiff_t row, std::ptrdiff_t column, std::ptrdiff_t block,
                                         std::uint32_t addend) const {
            const std::ptrdiff_t products = products_of<A>(rule, product->unit);
            const std::ptrdiff_t p = begin + block * products;
            return block_step_bits<Arch, Accumulator, A, B>(
                product->unit, static_cast<int>((std::min)(products, end - p)),
                [&](int i) { return product->a(output.row + row, p + i); },
                [&](int i) { return product->b(p + i, output.column + column); }, addend);
        }
    };

    static std::uint32_t slow_step(const void* context, std::ptrdiff_t row, std::ptrdiff_t column,
                                   std::ptrdiff_t block, std::uint32_t addend) {
        return static_cast<const chunk*>(context)->step(row, column, block, addend);
    }

    /// Adds the products of a chunk to the accumulators.
    void add_chunk(const chunk& it, scratch& memory) const {
        const tile& output = it.output;
        float* const sums = memory.sums.data();
        if constexpr (rule.products != 0) {
            if (unit == float8_unit::native) {
                add_panels(it, memory);
                return;
            }
        }
        const std::ptrdiff_t products = products_of<A>(rule, unit);
        for (std::ptrdiff_t row = 0; row < output.rows; ++row) {
            for (std::ptrdiff_t column = 0; column < output.columns; ++column) {
                float& sum = sums[row * emulated_tile_columns + column];
                auto bits = bit_cast<std::uint32_t>(sum);
                for (std::ptrdiff_t block = 0; it.begin + block * products < it.end; ++block) {
                    bits = it.step(row, column, block, bits);
                }
                sum = bit_cast<float>(bits);
            }
        }
    }

    void add_panels(const chunk& it, scratch& memory) const {
        const tile& output = it.output;
        const std::ptrdiff_t k = it.end - it.begin;
        const std::ptrdiff_t blocks = (k + rule.products - 1) / rule.products;
        memory.a_panels.resize(1, rule.products, static_cast<std::size_t>(output.rows),
                               static_cast<std::size_t>(blocks));
        memory.b_panels.resize(panel_columns, rule.products, static_cast<std::size_t>(output.columns),
                               static_cast<std::size_t>(blocks));
        pack_operand<rule.products>(isa, &a(output.row, it.begin), a.row_stride(), a.column_stride(),
                                    output.rows, k, memory.a_panels, memory.a_vector, memory.floats);
        pack_operand<rule.products>(isa, &b(it.begin, output.column), b.column_stride(), b.row_stride(),
                                    output.columns, k, memory.b_panels, memory.b_vector, memory.floats);
        const panel_task task{&memory.a_panels, &memory.b_panels, rule, blocks, &slow_step, &it};
        const panel_function multiply =
            MP_SELECT_TARGET(isa, (&every_processor::multiply_panel<rule.products, rule.output>),
                             multiply_panel<rule.products, rule.output>);
        for (std::ptrdiff_t j = 0; j < output.columns; j += panel_columns) {
            multiply(task, j / panel_columns, output.rows,
                     (std::min<std::ptrdiff_t>)(panel_columns, output.columns - j), memory.sums.data() + j,
                     emulated_tile_columns);
        }
    }

    /// memory.sums = a b at the output, in rows of emulated_tile_columns.
    void compute(const tile& output, scratch& memory) const {
        constexpr std::size_t size = std::size_t{emulated_tile_rows} * emulated_tile_columns;
        memory.sums.assign(size, 0.0F);
        const bool promotes = promotion_interval != 0;
        if (promotes) memory.promoted.assign(size, 0.0F);
        const std::ptrdiff_t k = a.columns;
        for (std::ptrdiff_t begin = 0; begin < k;) {
            std::ptrdiff_t end = (std::min)(k, begin + emulated_tile_k);
            if (promotes) {
                const std::ptrdiff_t since = begin % promotion_interval;
                if (promotion_interval - since < end - begin) end = begin + (promotion_interval - since);
            }
            add_chunk({this, output, begin, end}, memory);
            if (promotes && (end % promotion_interval == 0 || end == k)) {
                for (std::size_t i = 0; i < size; ++i) {
                    memory.promoted[i] = promoted_sum(memory.promoted[i], memory.sums[i]);
                    memory.sums[i] = 0.0F;
                }
            }
            begin = end;
        }
        if (promotes) memory.sums.swap(memory.promoted);
    }

    /// An ordinary float addition with the NaN of GPUs.
    static float promoted_sum(float before, float sum) {
        const float result = before + sum;
        const std::uint32_t magnitude = bit_cast<std::uint32_t>(result) & 0x7FFF'FFFF;
        return magnitude > 0x7F80'0000 ? bit_cast<float>(tensor_core_nan) : result;
    }
};

/// A product on the model behind the checks of its matrices: checks the rest, and computes a b in tiles by
/// make(product), which is the product without promotion put into something that computes a tile.
template <arch Arch, class Accumulator, class Product, class A, class B, class C, class Epilogue, class Make>
void multiply_emulated(std::string_view function, const emulated<Arch, Accumulator>& exec, float alpha,
                       matrix_view<A> a, matrix_view<B> b, float beta, matrix_view<C> c,
                       const Epilogue& epilogue, Make make) {
    const cpu host{.threads = exec.threads, .instructions = exec.instructions};
    check_threads(function, host);
    check_float8_unit<Arch, std::remove_const_t<A>, Accumulator>(function, "exec.float8", exec.float8);
    if (exec.promotion_interval < 0 || exec.promotion_interval % 32 != 0) {
        throw_argument(function, "exec.promotion_interval", exec.promotion_interval,
                       "must be zero or a positive multiple of 32");
    }
    if constexpr (requires { epilogue.validate(c.rows, c.columns); }) epilogue.validate(c.rows, c.columns);
    const instruction_set isa = isa_of(function, host);
    if (c.rows == 0 || c.columns == 0) return;

    const bool column_major = c.order == storage_order::column_major;
    const tile_output output =
        make_tile_output(isa, c.data, c.leading_dimension, column_major, false, alpha, beta, epilogue);
    if (same_value(alpha, 0.0F) || a.columns == 0) {
        const default_floating_point_modes modes;
        finish_without_product(output, c.rows, c.columns);
        return;
    }
    const auto it = make(Product{a, b, unit_for<std::remove_const_t<A>>(exec.float8), isa, 0});
    const std::ptrdiff_t tiles_down = (c.rows + emulated_tile_rows - 1) / emulated_tile_rows;
    const std::ptrdiff_t tiles_across = (c.columns + emulated_tile_columns - 1) / emulated_tile_columns;
    const auto count = static_cast<std::size_t>(tiles_down * tiles_across);
    parallel_for(host, count, 1, [&](std::size_t begin, std::size_t end) {
        const default_floating_point_modes modes;
        typename Product::scratch memory;
        for (std::size_t i = begin; i < end; ++i) {
            const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(i) / tiles_across * emulated_tile_rows;
            const std::ptrdiff_t column =
                static_cast<std::ptrdiff_t>(i) % tiles_across * emulated_tile_columns;
            const std::ptrdiff_t rows = (std::min)(emulated_tile_rows, c.rows - row);
            const std::ptrdiff_t columns = (std::min)(emulated_tile_columns, c.columns - column);
            it.compute({row, column, rows, columns}, memory);
            finish_tile(output, memory.sums.data(), emulated_tile_columns, row, column, rows, columns);
        }
    });
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE

namespace mp::inline MP_ISA_NAMESPACE {

/// The general matrix product c = epilogue(alpha * a b + beta * c) on the model of an architecture's tensor
/// cores: a b has the bits that the GPU's accumulators have.
///
/// Each element of a b starts from zero and takes blocks of ascending k, each as mp::block_fma; zeros fill
/// the last one up. Any GPU kernel that does the same gives these bits, however it divides rows and columns
/// among its instructions, but not one that splits k. What happens to a b afterwards is what mp::gemm does on
/// the CPU, and so are shapes, storage orders, beta == 0, alpha == 0, epilogues and the errors that are
/// thrown: see mp::gemm(cpu, ...). 8-bit operands on sm_89 and sm_90 are promoted every 128 products unless
/// the executor says otherwise: see mp::emulated.
///
/// Also throws argument_error for a promotion_interval that is no multiple of 32, and for a float8 unit that
/// the architecture lacks. Types that it does not multiply do not compile.
///
/// The result does not depend on exec.threads or exec.instructions. Memory for each thread is about 250 KiB;
/// std::bad_alloc may leave a part of c written.
template <arch Arch, class Accumulator, class A, class B, gemm_output C,
          gemm_epilogue Epilogue = identity_epilogue>
void gemm(emulated<Arch, Accumulator> exec, float alpha, matrix_view<A> a, matrix_view<B> b, float beta,
          matrix_view<C> c, Epilogue epilogue = {}) {
    const auto promotion = [&]() -> std::ptrdiff_t {
        constexpr block_rule rule = detail::checked_block_rule<Arch, A, B, Accumulator>();
        const bool promotes = rule.products != 0 && rule.output == output_rule::e8m13_truncated &&
                              exec.float8 == float8_unit::native;
        return promotes ? exec.promotion_interval : 0;
    };
    using product =
        detail::emulated_product<Arch, Accumulator, std::remove_const_t<A>, std::remove_const_t<B>>;
    detail::check_product("mp::gemm", detail::extent_of(a), detail::extent_of(b), detail::extent_of(c));
    detail::multiply_emulated<Arch, Accumulator, product>("mp::gemm", exec, alpha, a, b, beta, c, epilogue,
                                                          [&](const product& it) {
                                                              product promoted = it;
                                                              promoted.promotion_interval = promotion();
                                                              return promoted;
                                                          });
}

}  // namespace mp::inline MP_ISA_NAMESPACE
