// SPDX-License-Identifier: MIT
/// \file
/// The compiled part of the library, for one source of a program that is compiled once, while all others define
/// MP_COMPILED only:
///
///     // compiled with -DMP_COMPILED like the others
///     #define MP_COMPILED_SOURCE
///     #include <mp/compiled.hpp>
///
/// In CMake, linking with mp::compiled does both. MP_COMPILED_SOURCE may be a number from 1 to 4 for one of four sources,
/// which then compile beside each other.
#pragma once

#if !defined(MP_COMPILED) || !defined(MP_COMPILED_SOURCE)
#error "define MP_COMPILED for all sources, and MP_COMPILED_SOURCE in the one that includes <mp/compiled.hpp>"
#endif

#include <mp/arrays/array/element_type.hpp>
#include <mp/arrays/array/row_type.hpp>
#include <mp/arrays/convert/convert.hpp>
#include <mp/config.hpp>
#include <mp/executor.hpp>
#include <mp/linalg/gemm/multiply.hpp>
#include <mp/linalg/gemm/product.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/autocast/cast_timer.hpp>
#include <mp/nn/autocast/decision.hpp>
#include <mp/nn/autocast/library_op.hpp>
#include <mp/nn/autocast/region.hpp>
#include <mp/nn/optim/adafactor.hpp>
#include <mp/nn/optim/optimizer_gradients.hpp>
#include <mp/nn/optim/weight_average.hpp>
#include <mp/numbers/format/basic_float.hpp>
#include <mp/numbers/format/named_formats.hpp>
#include <mp/numbers/format/text.hpp>
#include <mp/numbers/rules/double_functions.hpp>
#include <mp/numbers/rules/elementwise.hpp>
#include <mp/numbers/rules/quantised_operand.hpp>
#include <mp/ops.hpp>

#include <cstddef>
#include <cstdint>

#define MP_IN_PART(number) (MP_COMPILED_SOURCE + 0 == 0 || MP_COMPILED_SOURCE + 0 == number)

// Ordinary functions that the other parts do not use.
#if MP_IN_PART(1)
#include <mp/nn/autocast/cast_ledger.hpp>
#include <mp/nn/scaling/event_log.hpp>
#include <mp/nn/scaling/loss_scaler.hpp>
#include <mp/nn/scaling/scaled_gradient.hpp>
#include <mp/thread_pool.hpp>
#include <mp/train/parallel/block_wire.hpp>
#include <mp/train/parallel/loopback.hpp>
#include <mp/train/parallel/rank_file.hpp>
#include <mp/train/parallel/wire_codec.hpp>
#include <mp/train/training/checkpoint_file.hpp>
#include <mp/train/training/tensor.hpp>
#endif

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

#define MP_DEFINE_OPERAND(...)                                                     \
    template <>                                                                    \
    constinit const operand_kernels                                                \
        owned_product_kernels<__VA_ARGS__, kernels_of_compiled_part>::of_operand = \
            make_operand_kernels<__VA_ARGS__>();
#define MP_DEFINE_RESULT(...)                                                                                \
    template <>                                                                                              \
    constinit const result_kernels owned_product_kernels<__VA_ARGS__, kernels_of_compiled_part>::of_result = \
        make_result_kernels<__VA_ARGS__>();
#define MP_DEFINE_ELEMENT(...)                                                                       \
    template <>                                                                                      \
    constinit const element_type owned_element_type<__VA_ARGS__, kernels_of_compiled_part>::record = \
        make_product_element<__VA_ARGS__, kernels_of_compiled_part>();
#define MP_DEFINE_ROWS(...)                                                                  \
    template <>                                                                              \
    constinit const row_type owned_row_type<__VA_ARGS__, kernels_of_compiled_part>::record = \
        make_row_type<__VA_ARGS__>();
#define MP_DEFINE_FORMAT(format)                    \
    MP_DEFINE_ROWS(basic_float<formats::format>)    \
    MP_DEFINE_OPERAND(basic_float<formats::format>) \
    MP_DEFINE_RESULT(basic_float<formats::format>)  \
    MP_DEFINE_ELEMENT(basic_float<formats::format>)
#if MP_IN_PART(1)
MP_DEFINE_OPERAND(float)
MP_DEFINE_OPERAND(std::int8_t)
MP_DEFINE_RESULT(float)
MP_DEFINE_RESULT(double)
MP_DEFINE_ELEMENT(float)
MP_DEFINE_ELEMENT(double)
MP_DEFINE_ROWS(float)
MP_FOR_EACH_LARGE_FORMAT(MP_DEFINE_FORMAT)
#endif
#if MP_IN_PART(2)
MP_FOR_EACH_SMALL_FORMAT(MP_DEFINE_FORMAT)
#endif
#undef MP_DEFINE_FORMAT
#undef MP_DEFINE_ROWS
#undef MP_DEFINE_ELEMENT
#undef MP_DEFINE_RESULT
#undef MP_DEFINE_OPERAND

#if MP_IN_PART(3)
#define MP_INSTANTIATE_CONVERSION(from, to)                                                                  \
    template void core_convert_nearest(instruction_set, const from*, to*, std::size_t) noexcept;             \
    template void core_convert_projected(instruction_set, const from*, to*, std::size_t,                     \
                                         const projection&) noexcept;                                        \
    template void core_convert_array(const cpu&, instruction_set, const from*, to*, std::size_t);            \
    template void core_convert_matrix(const cpu&, instruction_set, matrix_view<const from>, matrix_view<to>, \
                                      const projection&);
#define MP_INSTANTIATE_CONVERSIONS(format)                         \
    MP_INSTANTIATE_CONVERSION(float, basic_float<formats::format>) \
    MP_INSTANTIATE_CONVERSION(basic_float<formats::format>, float)
MP_FOR_EACH_LARGE_FORMAT(MP_INSTANTIATE_CONVERSIONS)
MP_FOR_EACH_SMALL_FORMAT(MP_INSTANTIATE_CONVERSIONS)
MP_INSTANTIATE_CONVERSION(float, float)
MP_INSTANTIATE_CONVERSION(double, double)
MP_INSTANTIATE_CONVERSION(basic_float<formats::binary16>, basic_float<formats::binary16>)
MP_INSTANTIATE_CONVERSION(basic_float<formats::bfloat16>, basic_float<formats::bfloat16>)
MP_INSTANTIATE_CONVERSION(float, double)
MP_INSTANTIATE_CONVERSION(double, float)
MP_INSTANTIATE_CONVERSION(double, basic_float<formats::binary16>)
MP_INSTANTIATE_CONVERSION(double, basic_float<formats::bfloat16>)
MP_INSTANTIATE_CONVERSION(basic_float<formats::binary16>, double)
MP_INSTANTIATE_CONVERSION(basic_float<formats::bfloat16>, double)
MP_INSTANTIATE_CONVERSION(basic_float<formats::binary16>, basic_float<formats::bfloat16>)
MP_INSTANTIATE_CONVERSION(basic_float<formats::bfloat16>, basic_float<formats::binary16>)
#undef MP_INSTANTIATE_CONVERSIONS
#undef MP_INSTANTIATE_CONVERSION
#endif

#if MP_IN_PART(4)
#define MP_DEFINE_GRADIENT(...)                                                                        \
    template <>                                                                                        \
    constinit const gradient_type owned_gradient_type<__VA_ARGS__, kernels_of_compiled_part>::record = \
        make_gradient_type<__VA_ARGS__>();
#define MP_INSTANTIATE_STOCHASTIC(format)                                  \
    template void core_round_stochastically<basic_float<formats::format>>( \
        instruction_set, const float*, void*, std::size_t, const rounding_stream&, std::uint64_t);
MP_DEFINE_GRADIENT(float)
MP_DEFINE_GRADIENT(basic_float<formats::binary16>)
MP_DEFINE_GRADIENT(basic_float<formats::bfloat16>)
MP_DEFINE_GRADIENT(basic_float<formats::float8_e4m3fn>)
MP_DEFINE_GRADIENT(basic_float<formats::float8_e5m2>)
MP_INSTANTIATE_STOCHASTIC(binary16)
MP_INSTANTIATE_STOCHASTIC(bfloat16)
#undef MP_INSTANTIATE_STOCHASTIC
#undef MP_DEFINE_GRADIENT

#define MP_INSTANTIATE_FUNCTION(function)                                                     \
    template void map_floats<function>(instruction_set, std::size_t, float*, const float*);   \
    template void map_floats<function>(instruction_set, std::size_t, double*, const double*); \
    template void map_runs<function>(instruction_set, float*, std::ptrdiff_t, std::ptrdiff_t, std::size_t);
#define MP_INSTANTIATE_BINARY(...)                                                                           \
    template void map_floats<__VA_ARGS__>(instruction_set, std::size_t, float*, const float*, const float*); \
    template void map_floats<__VA_ARGS__>(instruction_set, std::size_t, double*, const double*,              \
                                          const double*);
#define MP_INSTANTIATE_ACTIVATION(function) \
    MP_INSTANTIATE_FUNCTION(function)       \
    MP_INSTANTIATE_BINARY(slope_of<function>)
MP_INSTANTIATE_FUNCTION(identity_function)
MP_INSTANTIATE_ACTIVATION(relu_function)
MP_INSTANTIATE_ACTIVATION(gelu_function)
MP_INSTANTIATE_ACTIVATION(gelu_tanh_function)
MP_INSTANTIATE_ACTIVATION(silu_function)
MP_INSTANTIATE_ACTIVATION(tanh_function)
MP_INSTANTIATE_ACTIVATION(sigmoid_function)
MP_INSTANTIATE_BINARY(sum_function)
MP_INSTANTIATE_BINARY(product_function)
#undef MP_INSTANTIATE_ACTIVATION
#undef MP_INSTANTIATE_BINARY
#undef MP_INSTANTIATE_FUNCTION
#endif

#define MP_DEFINE_OP_IN(real, number, op)                                \
    template <>                                                          \
    const op_functions& core_functions<label_of<op>(), real, number>() { \
        return own_functions<op, real, number>();                        \
    }
#define MP_DEFINE_OP(op)                        \
    MP_DEFINE_OP_IN(float, false, ops::op##_op) \
    MP_DEFINE_OP_IN(double, false, ops::op##_op)
#define MP_DEFINE_NUMBER_OP(op)                \
    MP_DEFINE_OP(op)                           \
    MP_DEFINE_OP_IN(float, true, ops::op##_op) \
    MP_DEFINE_OP_IN(double, true, ops::op##_op)
#define MP_DEFINE_WITH_BACKWARD(op) MP_DEFINE_OP(op) MP_DEFINE_OP(op##_backward)
#if MP_IN_PART(3)
MP_DEFINE_OP(matmul)
MP_DEFINE_WITH_BACKWARD(linear)
MP_DEFINE_OP(linear_with_preactivation)
MP_DEFINE_OP(linear_backward_with_preactivation)
MP_DEFINE_WITH_BACKWARD(scaled_dot_product_attention)
MP_DEFINE_WITH_BACKWARD(conv2d)
#endif
#if MP_IN_PART(4)
MP_DEFINE_WITH_BACKWARD(relu)
MP_DEFINE_WITH_BACKWARD(gelu)
MP_DEFINE_WITH_BACKWARD(silu)
MP_DEFINE_WITH_BACKWARD(tanh)
MP_DEFINE_WITH_BACKWARD(sigmoid)
MP_DEFINE_WITH_BACKWARD(add)
MP_DEFINE_WITH_BACKWARD(multiply)
MP_DEFINE_WITH_BACKWARD(dropout)
MP_DEFINE_NUMBER_OP(sum)
MP_DEFINE_NUMBER_OP(mean)
MP_DEFINE_NUMBER_OP(sum_backward)
MP_DEFINE_NUMBER_OP(mean_backward)
MP_DEFINE_WITH_BACKWARD(embedding)
MP_DEFINE_WITH_BACKWARD(rotary_embedding)
MP_DEFINE_WITH_BACKWARD(permute_heads)
MP_DEFINE_OP(concatenate)
MP_DEFINE_OP(split)
MP_DEFINE_WITH_BACKWARD(max_pool2d)
MP_DEFINE_WITH_BACKWARD(average_pool2d)
MP_DEFINE_WITH_BACKWARD(softmax)
MP_DEFINE_WITH_BACKWARD(log_softmax)
MP_DEFINE_WITH_BACKWARD(layer_norm)
MP_DEFINE_WITH_BACKWARD(rms_norm)
MP_DEFINE_WITH_BACKWARD(mean_squared_error)
MP_DEFINE_OP(mean_squared_error_to_memory)
MP_DEFINE_WITH_BACKWARD(mean_absolute_error)
MP_DEFINE_OP(mean_absolute_error_to_memory)
MP_DEFINE_WITH_BACKWARD(softmax_cross_entropy)
MP_DEFINE_OP(softmax_cross_entropy_to_memory)
MP_DEFINE_OP(softmax_cross_entropy_with_gradient)
#endif
#undef MP_DEFINE_WITH_BACKWARD
#undef MP_DEFINE_NUMBER_OP
#undef MP_DEFINE_OP
#undef MP_DEFINE_OP_IN

}}  // namespace mp::detail

#if MP_IN_PART(4)
namespace mp { inline namespace MP_CORE_NAMESPACE {

#define MP_INSTANTIATE_UPDATE(rule) \
    template void optimizer_gradients::apply_kernel(float, std::span<const detail::rule##_coefficients>);
#define MP_INSTANTIATE_LAYERWISE_UPDATE(rule)                                                              \
    MP_INSTANTIATE_UPDATE(rule)                                                                            \
    template void optimizer_gradients::measure_kernel(float, std::span<const detail::rule##_coefficients>, \
                                                      std::span<double>, std::span<detail::layer_norms>);
MP_INSTANTIATE_UPDATE(sgd)
MP_INSTANTIATE_UPDATE(adamw)
MP_INSTANTIATE_UPDATE(lion)
MP_INSTANTIATE_LAYERWISE_UPDATE(lars)
MP_INSTANTIATE_LAYERWISE_UPDATE(lamb)
#undef MP_INSTANTIATE_LAYERWISE_UPDATE
#undef MP_INSTANTIATE_UPDATE

}}  // namespace mp
#endif

#undef MP_IN_PART
