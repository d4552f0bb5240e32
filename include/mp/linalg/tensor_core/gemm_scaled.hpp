// SPDX-License-Identifier: MIT
/// \file
/// Matrix products whose operands have a scale for each block of k, on the model of tensor cores.
#pragma once

#include <mp/base/view_extent.hpp>
#include <mp/config.hpp>
#include <mp/linalg/gemm/epilogue.hpp>
#include <mp/linalg/gemm/gemm.hpp>
#include <mp/linalg/gemm/k_scales.hpp>
#include <mp/linalg/gemm/scaled.hpp>
#include <mp/linalg/tensor_core/block_fma.hpp>
#include <mp/linalg/tensor_core/emulated.hpp>
#include <mp/linalg/tensor_core/gemm.hpp>
#include <mp/matrix_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A product on the model, and the scales of its operands.
template <arch Arch, class A, class B>
struct emulated_scaled_product {
    using product = emulated_product<Arch, float, A, B>;
    using scratch = typename product::scratch;

    product operands;
    k_scale_view a_scales;
    k_scale_view b_scales;

    /// memory.sums = the scaled a b at the output.
    void compute(const typename product::tile& output, scratch& memory) const {
        static_assert(emulated_tile_k == k_per_scale);
        constexpr std::size_t size = std::size_t{emulated_tile_rows} * emulated_tile_columns;
        memory.promoted.assign(size, 0.0F);
        const std::ptrdiff_t k = operands.a.columns;
        for (std::ptrdiff_t begin = 0; begin < k; begin += k_per_scale) {
            memory.sums.assign(size, 0.0F);
            operands.add_chunk({&operands, output, begin, (std::min)(k, begin + k_per_scale)}, memory);
            add_scaled_block(memory.promoted.data(), memory.sums.data(), emulated_tile_columns, output.rows,
                             output.columns, a_scales, b_scales, output.row, output.column,
                             begin / k_per_scale);
        }
        memory.sums.swap(memory.promoted);
        // The NaN of GPUs.
        for (float& sum : memory.sums) {
            if ((bit_cast<std::uint32_t>(sum) & 0x7FFF'FFFF) > 0x7F80'0000) {
                sum = bit_cast<float>(tensor_core_nan);
            }
        }
    }
};

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The matrix product with scales of blocks of k on the model of an architecture's tensor cores: see
/// mp::gemm_scaled(cpu, ...). The sum over each block of 128 of k has the bits that the GPU's
/// accumulators have which start there from zero, whatever exec.promotion_interval is. What GPU kernels with
/// one accumulator and one fused multiply-add for each block return, bit for bit: mp::gemm_scaled on a GPU.
template <arch Arch, class A, class B, gemm_output C, gemm_epilogue Epilogue = identity_epilogue>
void gemm_scaled(emulated<Arch> exec, float alpha, matrix_view<A> a, const k_block_scales& a_scales,
                 matrix_view<B> b, const k_block_scales& b_scales, float beta, matrix_view<C> c,
                 Epilogue epilogue = {}) {
    constexpr std::string_view function = "mp::gemm_scaled";
    using scaled = detail::emulated_scaled_product<Arch, std::remove_const_t<A>, std::remove_const_t<B>>;
    using product = typename scaled::product;
    detail::check_scaled_product(function, detail::extent_of(a), a_scales, detail::extent_of(b), b_scales,
                                 detail::extent_of(c));
    detail::validate_epilogue(epilogue, c, detail::product_input{"a", a}, detail::product_input{"b", b},
                              detail::product_input{"a_scales.values", a_scales},
                              detail::product_input{"b_scales.values", b_scales});
    detail::multiply_emulated<Arch, float, product>(
        function, exec, alpha, a, b, beta, c, epilogue, [&](const product& operands) {
            return scaled{operands, detail::k_scales_of_a(a_scales, c.rows),
                          detail::k_scales_of_b(b_scales, c.columns)};
        });
}

}}  // namespace mp
