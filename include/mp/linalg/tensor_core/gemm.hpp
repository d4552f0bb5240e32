// SPDX-License-Identifier: MIT
/// \file
/// The general matrix product on the model of tensor cores.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/base/parallel.hpp>
#include <mp/linalg/gemm/epilogue.hpp>
#include <mp/linalg/gemm/gemm.hpp>
#include <mp/linalg/gemm/tile_output.hpp>
#include <mp/linalg/gemm/validation.hpp>
#include <mp/linalg/tensor_core/emulated.hpp>
#include <mp/linalg/tensor_core/emulated_product.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
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

    const bool column_major = c.order == storage_order::column_major;
    const tile_output output =
        make_tile_output(isa, c.data, c.leading_dimension, column_major, alpha, beta, epilogue);
    if (same_value(alpha, 0.0F) || k == 0) {
        const default_floating_point_modes modes;
        finish_without_product(output, c.rows, c.columns);
        return;
    }
    const auto it = make(isa);
    const std::ptrdiff_t tiles_down = (c.rows + emulated_tile_rows - 1) / emulated_tile_rows;
    const std::ptrdiff_t tiles_across = (c.columns + emulated_tile_columns - 1) / emulated_tile_columns;
    const auto count = static_cast<std::size_t>(tiles_down * tiles_across);
    parallel_for(host, count, 1, [&](std::size_t begin, std::size_t end) {
        const default_floating_point_modes modes;
        typename decltype(make(isa))::scratch memory;
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

}}  // namespace mp
