// SPDX-License-Identifier: MIT
/// \file
/// Matrix products on the model of tensor cores: the general one, with scales of blocks of k, and of 8-bit integers.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/base/view_extent.hpp>
#include <mp/config.hpp>
#include <mp/linalg/gemm/epilogue.hpp>
#include <mp/linalg/gemm/gemm.hpp>
#include <mp/linalg/gemm/integer.hpp>
#include <mp/linalg/gemm/k_scales.hpp>
#include <mp/linalg/gemm/scaled.hpp>
#include <mp/linalg/gemm/tile_output.hpp>
#include <mp/linalg/gemm/validation.hpp>
#include <mp/linalg/tensor_core/arch.hpp>
#include <mp/linalg/tensor_core/block_fma.hpp>
#include <mp/linalg/tensor_core/emulated.hpp>
#include <mp/linalg/tensor_core/emulated_product.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A product on the model behind the checks of its operands: checks the rest, and computes a b, whose sums are of k products, in
/// tiles by make(instruction set), an object that computes a tile.
template <arch Arch, class Accumulator, class C, class Epilogue, class Make>
void compute_emulated(std::string_view function, const emulated<Arch, Accumulator>& exec, float alpha,
                      std::ptrdiff_t k, float beta, matrix_view<C> c, const Epilogue& epilogue, Make make) {
    const cpu host{.threads = exec.threads, .instructions = exec.instructions};
    check_threads(function, host);
    if (exec.promotion_interval < 0 || exec.promotion_interval % 32 != 0) {
        throw_argument(function, "exec.promotion_interval", exec.promotion_interval,
                       "must be zero or a positive multiple of 32");
    }
    validate_epilogue(epilogue, c);
    const instruction_set isa = isa_of(function, host);
    if (c.rows == 0 || c.columns == 0) return;

    const tile_output output = make_tile_output(isa, c, alpha, beta, epilogue);
    if (same_value(alpha, 0.0F) || k == 0) return finish_without_product(output, c.rows, c.columns);
    const auto it = make(isa);
    using scratch = typename decltype(make(isa))::scratch;
    for_each_tile<scratch>(host, c.rows, c.columns, emulated_tile_rows, emulated_tile_columns,
                           [&](scratch& memory, std::ptrdiff_t row, std::ptrdiff_t column,
                               std::ptrdiff_t rows, std::ptrdiff_t columns) {
                               it.compute({row, column, rows, columns}, memory);
                               finish_tile(output, memory.sums.data(), emulated_tile_columns, row, column,
                                           rows, columns);
                           });
}

/// The same of matrices, by make(product), which is the product without promotion put into something that computes a tile.
template <arch Arch, class Accumulator, class Product, class A, class B, class C, class Epilogue, class Make>
void multiply_emulated(std::string_view function, const emulated<Arch, Accumulator>& exec, float alpha,
                       matrix_view<A> a, matrix_view<B> b, float beta, matrix_view<C> c,
                       const Epilogue& epilogue, Make make) {
    check_threads(function, cpu{.threads = exec.threads});
    check_float8_unit<Arch, std::remove_const_t<A>, Accumulator>(function, "exec.float8", exec.float8);
    validate_epilogue(epilogue, c, product_input{"a", a}, product_input{"b", b});
    compute_emulated(function, exec, alpha, a.columns, beta, c, epilogue, [&](instruction_set isa) {
        return make(Product{a, b, unit_for<std::remove_const_t<A>>(exec.float8), isa, 0});
    });
}

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
        for (float& sum : memory.sums) sum = with_tensor_core_nan(sum);
    }
};

template <arch Arch>
constexpr void check_integer_arch() {
    static_assert(Arch >= arch::sm_75,
                  "mp: the tensor cores of Volta do not multiply integers: Turing's do, from sm_75 on");
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

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

/// The product of 8-bit integers as the tensor cores of an architecture compute it: see mp::gemm(cpu, ...) of integers, whose
/// result it is.
template <arch Arch, int8_operand A, int8_operand B>
void gemm(emulated<Arch> exec, std::int32_t alpha, matrix_view<A> a, matrix_view<B> b, std::int32_t beta,
          matrix_view<std::int32_t> c) {
    detail::check_integer_arch<Arch>();
    gemm(cpu{.threads = exec.threads, .instructions = exec.instructions}, alpha, a, b, beta, c);
}

/// The same into numbers: c = epilogue(alpha * a b + beta * c), where a b are the exact sums of 32 bits, rounded once to float (to
/// nearest even). Scales of the operands go into alpha, or into mp::scale_per_row and mp::scale_per_column. The rest is as in
/// mp::gemm(emulated, ...) of other types, and so is what it throws.
///
///     mp::gemm(mp::emulated<mp::arch::sm_80>{}, x_scale, x, w, 0, y, mp::scale_per_column(w_scales));
template <arch Arch, int8_operand A, int8_operand B, gemm_output C,
          gemm_epilogue Epilogue = identity_epilogue>
void gemm(emulated<Arch> exec, float alpha, matrix_view<A> a, matrix_view<B> b, float beta, matrix_view<C> c,
          Epilogue epilogue = {}) {
    detail::check_integer_arch<Arch>();
    constexpr std::string_view function = "mp::gemm";
    const cpu host{.threads = exec.threads, .instructions = exec.instructions};
    detail::check_threads(function, host);
    detail::check_product(function, detail::extent_of(a), detail::extent_of(b), detail::extent_of(c));
    detail::validate_epilogue(epilogue, c, detail::product_input{"a", a}, detail::product_input{"b", b});
    const instruction_set isa = detail::isa_of(function, host);
    if (c.rows == 0 || c.columns == 0) return;
    const detail::tile_output output = detail::make_tile_output(isa, c, alpha, beta, epilogue);
    if (detail::same_value(alpha, 0.0F) || a.columns == 0) {
        return detail::finish_without_product(output, c.rows, c.columns);
    }
    detail::multiply_integers(
        host, isa, matrix_view<const std::int8_t>(a), matrix_view<const std::int8_t>(b),
        [&](detail::integer_tile& tile, std::ptrdiff_t row, std::ptrdiff_t column, std::ptrdiff_t rows,
            std::ptrdiff_t columns) {
            std::transform(tile.sums.begin(), tile.sums.end(), tile.floats.begin(), [](std::uint32_t sum) {
                return static_cast<float>(static_cast<std::int32_t>(sum));
            });
            detail::finish_tile(output, tile.floats.data(), detail::integer_tile_columns, row, column, rows,
                                columns);
        });
}

}}  // namespace mp
