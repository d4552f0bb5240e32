// SPDX-License-Identifier: MIT
/// \file
/// The epilogue of sums of integers.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/gemm/output.hpp>
#include <mp/device/gpu/gemm/problem.hpp>
#include <mp/device/gpu/gemm/tile_epilogue.hpp>
#include <mp/linalg/gemm/integer.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The type of a policy's sums: float, unless it says otherwise.
template <class Policy>
struct sum_type_of {
    using type = float;
};
template <class Policy>
    requires requires { typename Policy::sum_type; }
struct sum_type_of<Policy> {
    using type = typename Policy::sum_type;
};

/// The epilogue of a C of integers: c = alpha * sum + beta * c. The alpha and beta of the output say which of them are zero.
struct integer_scale {
    std::int32_t alpha = 1;
    std::int32_t beta = 0;
};

/// Sums that passed through memory as bits of `Sum`, on their way to C: integers become floats, unless C is of integers.
template <class Sum, class Output, std::size_t Count>
MP_HOST_DEVICE MP_ALWAYS_INLINE void convert_sums([[maybe_unused]] float (&sums)[Count]) {
    if constexpr (!std::is_same_v<Sum, float> && !std::is_same_v<Output, std::int32_t>) {
        MP_UNROLL
        for (float& sum : sums) sum = static_cast<float>(bit_cast<std::int32_t>(sum));
    }
}

/// What sums are multiplied by where TMA writes them to C.
template <class Output, class Epilogue>
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE auto tile_scale(
    const product_output<Output, Epilogue>& output) {
    if constexpr (std::is_same_v<Epilogue, integer_scale>) {
        return output.epilogue.alpha;
    } else {
        return output.alpha;
    }
}

/// The elements of C that `sums`, the bits of integers, become.
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE chunk<std::int32_t, 4> scale_integers(
    const product_output<std::int32_t, integer_scale>& output, const float (&sums)[4],
    const chunk<std::int32_t, 4>& c) {
    chunk<std::int32_t, 4> values{};
    MP_UNROLL
    for (int i = 0; i < 4; ++i) {
        const std::uint32_t sum = output.has_product ? bit_cast<std::uint32_t>(sums[i]) : 0;
        values.values[i] = scale_integer(output.epilogue.alpha, sum, output.epilogue.beta, c.values[i]);
    }
    return values;
}

/// Overloads for a C of integers; the sums are their bits.
MP_ANY_EXECUTION_SPACE
template <class Thread>
MP_HOST_DEVICE MP_ALWAYS_INLINE void finish_chunk(Thread thread,
                                                  const product_output<std::int32_t, integer_scale>& output,
                                                  const float (&bits)[4], std::ptrdiff_t row,
                                                  std::ptrdiff_t column,
                                                  tile_state<integer_scale>& /*state*/) {
    using values_of_chunk = chunk<std::int32_t, 4>;
    if (row >= output.rows || column >= output.columns) return;
    std::int32_t* const c = output.data + (row * output.stride + column);
    const int inside = left_of(output.columns - column, 4);
    const bool whole = output.aligned && inside == 4;
    values_of_chunk values{};
    if (output.epilogue.beta != 0 && whole) {
        values = thread.load(reinterpret_cast<const values_of_chunk*>(c));
    } else if (output.epilogue.beta != 0) {
        for (int i = 0; i < inside; ++i)
            values.values[i] = thread.load(static_cast<const std::int32_t*>(c) + i);
    }
    values = scale_integers(output, bits, values);
    if (whole) {
        thread.store(reinterpret_cast<values_of_chunk*>(c), values);
    } else {
        for (int i = 0; i < inside; ++i) thread.store(c + i, values.values[i]);
    }
}
MP_ANY_EXECUTION_SPACE
template <class Thread>
MP_HOST_DEVICE MP_ALWAYS_INLINE void finish_inner_chunk(
    Thread thread, const product_output<std::int32_t, integer_scale>& output, const float (&bits)[4],
    const chunk<std::int32_t, 4>& c, std::ptrdiff_t row, std::ptrdiff_t column,
    tile_state<integer_scale>& /*state*/) {
    thread.store(chunk_at<4>(output.data + (row * output.stride + column)), scale_integers(output, bits, c));
}

}}  // namespace mp::detail
