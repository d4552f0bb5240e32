// SPDX-License-Identifier: MIT
/// \file
/// Functions of one or two floats, named by a type, for one number or for arrays: one text for the ops of
/// every executor and for the epilogues of products, with the same bits.
#pragma once

#include <mp/config.hpp>
#include <mp/numbers/rules/activations.hpp>
#include <mp/numbers/rules/function_names.hpp>
#include <mp/numbers/simd/select_target.hpp>
#include <mp/numbers/simd/vec.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#define MP_KERNEL_FILE <mp/numbers/rules/elementwise.inl>
#include <mp/numbers/simd/for_each_vec.inl>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Function of one number or two.
template <class Function, class... Float>
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr float apply_elementwise(Float... x) {
    return single_lane::elementwise<Function>::apply(single_lane::broadcast(x)...).value;
}

/// x scale, saturated at `largest`: see elementwise.inl.
MP_HOST_DEVICE MP_ALWAYS_INLINE float multiply_and_saturate(float x, float scale, float largest) {
    return single_lane::multiply_and_saturate(single_lane::broadcast(x), single_lane::broadcast(scale),
                                              largest)
        .value;
}

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// to[i] = Function(from[i]...) for arrays, of which `to` may be one of `from`.
template <class Function, class... From>
void map_floats(instruction_set isa, std::size_t count, float* to, const From*... from);

/// Writes Function(value) to each of `runs` runs of `count` floats that lie `stride` apart.
template <class Function>
void map_runs(instruction_set isa, float* values, std::ptrdiff_t stride, std::ptrdiff_t runs,
              std::size_t count);

/// to[i] = factor from[i] for arrays, of which `to` may be `from`.
MP_CORE_FUNCTION void scale_floats(instruction_set isa, std::size_t count, float* to, const float* from,
                                   float factor);

/// The same of runs that lie `stride` apart, with factors `step` apart.
MP_CORE_FUNCTION void scale_each_run(instruction_set isa, float* values, std::ptrdiff_t stride,
                                     std::ptrdiff_t runs, std::size_t count, const float* factors,
                                     std::ptrdiff_t step);

/// Adds terms[i] to the i-th value of every run.
MP_CORE_FUNCTION void add_to_each_run(instruction_set isa, float* values, std::ptrdiff_t stride,
                                      std::ptrdiff_t runs, std::size_t count, const float* terms);

/// The bits of the largest magnitude in runs.
[[nodiscard]] MP_CORE_FUNCTION std::uint32_t largest_magnitude_of_runs(
    instruction_set isa, const float* values, std::ptrdiff_t stride, std::ptrdiff_t runs, std::size_t count);

/// Multiplies runs by a scale for a format whose largest number is `largest`, and in which they then are.
MP_CORE_FUNCTION void multiply_and_saturate_runs(instruction_set isa, float* values, std::ptrdiff_t stride,
                                                 std::ptrdiff_t runs, std::size_t count, float scale,
                                                 float largest);

/// Adds arrays to sums of two floats each, see float_float.hpp.
MP_CORE_FUNCTION void add_floats_to_pairs(instruction_set isa, std::size_t count, float* high, float* low,
                                          const float* x);

MP_CORE_FUNCTION void normalize_pairs(instruction_set isa, std::size_t count, float* high, float* low);

/// sums[i] += x[i] for arrays.
MP_CORE_FUNCTION void add_floats_to_doubles(instruction_set isa, std::size_t count, double* sums,
                                            const float* x);

/// to[i] = a x[i] + b y[i] for arrays, of which `to` may be one of the others.
MP_CORE_FUNCTION void scale_and_add_floats(instruction_set isa, std::size_t count, float* to, const float* x,
                                           float a, const float* y, float b);

#if MP_CORE_BODIES
template <class Function, class... From>
void map_floats(instruction_set isa, std::size_t count, float* to, const From*... from) {
    const auto kernel = MP_SELECT_TARGET(isa, (&portable_vectors::map_arrays<Function, From...>),
                                         map_arrays<Function, From...>);
    kernel(count, to, from...);
}

template <class Function>
void map_runs(instruction_set isa, float* values, std::ptrdiff_t stride, std::ptrdiff_t runs,
              std::size_t count) {
    const auto kernel = MP_SELECT_TARGET(isa, (&portable_vectors::map_runs<Function>), map_runs<Function>);
    kernel(values, stride, runs, count);
}

MP_CORE_FUNCTION void scale_floats(instruction_set isa, std::size_t count, float* to, const float* from,
                                   float factor) {
    const auto kernel = MP_SELECT_TARGET(isa, &portable_vectors::scale_array, scale_array);
    kernel(count, to, from, factor);
}

MP_CORE_FUNCTION void scale_each_run(instruction_set isa, float* values, std::ptrdiff_t stride,
                                     std::ptrdiff_t runs, std::size_t count, const float* factors,
                                     std::ptrdiff_t step) {
    const auto kernel = MP_SELECT_TARGET(isa, &portable_vectors::scale_each_run, scale_each_run);
    kernel(values, stride, runs, count, factors, step);
}
MP_CORE_FUNCTION void add_to_each_run(instruction_set isa, float* values, std::ptrdiff_t stride,
                                      std::ptrdiff_t runs, std::size_t count, const float* terms) {
    const auto kernel = MP_SELECT_TARGET(isa, &portable_vectors::add_to_each_run, add_to_each_run);
    kernel(values, stride, runs, count, terms);
}

MP_CORE_FUNCTION std::uint32_t largest_magnitude_of_runs(instruction_set isa, const float* values,
                                                         std::ptrdiff_t stride, std::ptrdiff_t runs,
                                                         std::size_t count) {
    const auto kernel =
        MP_SELECT_TARGET(isa, &portable_vectors::largest_magnitude_of_runs, largest_magnitude_of_runs);
    return kernel(values, stride, runs, count);
}
MP_CORE_FUNCTION void multiply_and_saturate_runs(instruction_set isa, float* values, std::ptrdiff_t stride,
                                                 std::ptrdiff_t runs, std::size_t count, float scale,
                                                 float largest) {
    const auto kernel =
        MP_SELECT_TARGET(isa, &portable_vectors::multiply_and_saturate_runs, multiply_and_saturate_runs);
    kernel(values, stride, runs, count, scale, largest);
}

MP_CORE_FUNCTION void add_floats_to_pairs(instruction_set isa, std::size_t count, float* high, float* low,
                                          const float* x) {
    const auto kernel = MP_SELECT_TARGET(isa, &portable_vectors::add_floats_to_pairs, add_floats_to_pairs);
    kernel(count, high, low, x);
}
MP_CORE_FUNCTION void normalize_pairs(instruction_set isa, std::size_t count, float* high, float* low) {
    const auto kernel = MP_SELECT_TARGET(isa, &portable_vectors::normalize_pairs, normalize_pairs);
    kernel(count, high, low);
}

MP_CORE_FUNCTION void add_floats_to_doubles(instruction_set isa, std::size_t count, double* sums,
                                            const float* x) {
    const auto kernel =
        MP_SELECT_TARGET(isa, &portable_vectors::add_floats_to_doubles, add_floats_to_doubles);
    kernel(count, sums, x);
}

MP_CORE_FUNCTION void scale_and_add_floats(instruction_set isa, std::size_t count, float* to, const float* x,
                                           float a, const float* y, float b) {
    const auto kernel = MP_SELECT_TARGET(isa, &portable_vectors::scale_and_add_arrays, scale_and_add_arrays);
    kernel(count, to, x, a, y, b);
}
#endif

}}  // namespace mp::detail
