// SPDX-License-Identifier: MIT
/// \file
/// + - * / fma and sqrt of arrays. See arithmetic.inl and binary16.inl.
#pragma once

#include <mp/arrays/array/kernels/operations.hpp>
#include <mp/arrays/convert/kernels/number_vectors.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/select_target.hpp>
#include <mp/numbers/simd/vec.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Types whose arithmetic the kernels do in float.
template <class Value>
inline constexpr bool has_array_vectors = [] {
    if constexpr (reduced<Value>) {
        return has_number_vectors<Value> && arithmetic_through_float<typename Value::format>;
    } else {
        return std::is_same_v<Value, float>;
    }
}();

/// Operations of which the ones of AVX512_FP16 are the faster ones.
template <class Operation>
inline constexpr bool has_binary16_instruction =
    !std::is_same_v<Operation, division> && !std::is_same_v<Operation, sqrt_operation>;

/// The scalar operation in a loop.
template <class Operation, class Value, class... Operand>
void map_portable(Value* out, std::size_t count, Operand... operands) noexcept {
    const default_floating_point_modes modes;
    for (std::size_t i = 0; i < count; ++i) out[i] = Operation::apply(scalar_operand(operands, i)...);
}

}}  // namespace mp::detail

#define MP_KERNEL_FILE <mp/arrays/array/kernels/operand_copy.inl>
#include <mp/numbers/simd/for_each_target.inl>
#define MP_KERNEL_FILE <mp/arrays/array/kernels/arithmetic.inl>
#include <mp/numbers/simd/for_each_target.inl>
#define MP_HIGHEST_TARGET MP_TARGET_AVX512_FP16
#define MP_KERNEL_FILE <mp/arrays/array/kernels/binary16.inl>
#include <mp/numbers/simd/for_each_target.inl>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The kernel for an instruction set, which computes out[i] = Operation::apply(operands[i]...). An operand is
/// a pointer or `repeated`. `out` may be one of the pointers.
template <class Operation, class Value, class... Operand>
auto arithmetic_kernel([[maybe_unused]] instruction_set isa) noexcept {
#if MP_BEST_TARGET >= MP_TARGET_AVX512_FP16
    if constexpr (is_half<Value> && has_binary16_instruction<Operation>) {
        if (isa >= instruction_set::avx512_fp16) {
            return &avx512_fp16::map_binary16<Operation, Value, Operand...>;
        }
    }
#endif
    if constexpr (MP_SIMD_TARGETS && has_array_vectors<Value>) {
        return MP_SELECT_TARGET(isa, (&map_portable<Operation, Value, Operand...>),
                                map_array<Operation, Value, Operand...>);
    } else {
        return &map_portable<Operation, Value, Operand...>;
    }
}

}}  // namespace mp::detail
