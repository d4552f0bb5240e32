// SPDX-License-Identifier: MIT
/// \file
/// The epilogue of sums of integers.
#pragma once

#include <mp/config.hpp>
#include <mp/detail/bits.hpp>
#include <mp/gemm/integer.hpp>
#include <mp/gpu/chunks.hpp>
#include <mp/gpu/gemm/output.hpp>
#include <mp/gpu/gemm/problem.hpp>
#include <mp/gpu/gemm/tile_epilogue.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// Whether the sums of a policy are integers of 32 bits.
template <class Policy>
inline constexpr bool has_integer_sums = [] {
    if constexpr (requires { Policy::integer_sums; }) return Policy::integer_sums;
    return false;
}();

/// The epilogue of a C of integers: c = alpha * sum + beta * c. The alpha and beta of the output say which of them are zero.
struct integer_scale {
    std::int32_t alpha = 1;
    std::int32_t beta = 0;
};

/// Ends a chunk of sums, which are given as the bits of integers.
MP_ANY_EXECUTION_SPACE
template <class Thread, class Output, class Epilogue>
MP_HOST_DEVICE MP_ALWAYS_INLINE void finish_integers(Thread thread,
                                                     const product_output<Output, Epilogue>& output,
                                                     const float (&bits)[output_chunk<Output>],
                                                     std::ptrdiff_t row, std::ptrdiff_t column,
                                                     tile_state<Epilogue>& state) {
    constexpr int count = output_chunk<Output>;
    if constexpr (!std::is_same_v<Output, std::int32_t>) {
        float product[std::size_t{count}];
        MP_UNROLL
        for (int i = 0; i < count; ++i) product[i] = static_cast<float>(bit_cast<std::int32_t>(bits[i]));
        finish_chunk(thread, output, product, row, column, state);
    } else {
        using values_of_chunk = chunk<std::int32_t, count>;
        if (row >= output.rows || column >= output.columns) return;
        std::int32_t* const c = output.data + (row * output.stride + column);
        const bool whole = output.aligned && column + count <= output.columns;
        values_of_chunk values{};
        if (output.epilogue.beta != 0 && whole)
            values = thread.load(reinterpret_cast<const values_of_chunk*>(c));
        MP_UNROLL
        for (int i = 0; i < count; ++i) {
            if (output.epilogue.beta != 0 && !whole && column + i < output.columns) {
                values.values[i] = thread.load(static_cast<const std::int32_t*>(c) + i);
            }
            const std::uint32_t sum = output.has_product ? bit_cast<std::uint32_t>(bits[i]) : 0;
            values.values[i] =
                scale_integer(output.epilogue.alpha, sum, output.epilogue.beta, values.values[i]);
            if (!whole && column + i < output.columns) thread.store(c + i, values.values[i]);
        }
        if (whole) thread.store(reinterpret_cast<values_of_chunk*>(c), values);
    }
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
