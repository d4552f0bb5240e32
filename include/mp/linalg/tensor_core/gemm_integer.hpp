// SPDX-License-Identifier: MIT
/// \file
/// Products of 8-bit integers as tensor cores compute them: exact sums of 32 bits.
#pragma once

#include <mp/linalg/gemm/epilogue.hpp>
#include <mp/linalg/gemm/gemm.hpp>
#include <mp/linalg/gemm/integer.hpp>
#include <mp/linalg/gemm/tile_output.hpp>
#include <mp/linalg/gemm/validation.hpp>
#include <mp/linalg/tensor_core/arch.hpp>
#include <mp/linalg/tensor_core/emulated.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <arch Arch>
constexpr void check_integer_arch() {
    static_assert(Arch >= arch::sm_75,
                  "mp: the tensor cores of Volta do not multiply integers: Turing's do, from sm_75 on");
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

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
    const detail::tile_output output = detail::make_tile_output(
        isa, c.data, c.leading_dimension, c.order == storage_order::column_major, alpha, beta, epilogue);
    if (detail::same_value(alpha, 0.0F) || a.columns == 0) {
        const detail::default_floating_point_modes modes;
        detail::finish_without_product(output, c.rows, c.columns);
        return;
    }
    detail::multiply_integers(
        host, isa, matrix_view<const std::int8_t>(a), matrix_view<const std::int8_t>(b),
        [&](detail::integer_tile& tile, std::ptrdiff_t row, std::ptrdiff_t column, std::ptrdiff_t rows,
            std::ptrdiff_t columns) {
            const detail::default_floating_point_modes modes;
            std::transform(tile.sums.begin(), tile.sums.end(), tile.floats.begin(), [](std::uint32_t sum) {
                return static_cast<float>(static_cast<std::int32_t>(sum));
            });
            detail::finish_tile(output, tile.floats.data(), detail::integer_tile_columns, row, column, rows,
                                columns);
        });
}

}}  // namespace mp
