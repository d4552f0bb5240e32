// SPDX-License-Identifier: MIT
/// \file
/// Scales of 8-bit tensors that live on a GPU: tensors are measured and rounded there, and scales follow from
/// their largest magnitudes without the host.
#pragma once

#include <mp/base/view_extent.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/row_access.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/launch_shape.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/float8.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/scaling/amax_history.hpp>
#include <mp/nn/scaling/device_tensor_scale.hpp>
#include <mp/nn/scaling/gpu/tensor_scaling/history_kernels.hpp>
#include <mp/nn/scaling/gpu/tensor_scaling/quantise_kernels.hpp>
#include <mp/nn/scaling/scale_checks.hpp>
#include <mp/nn/scaling/tensor_scaling.hpp>
#include <mp/nn/scaling/unscale.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Rounds a matrix to 8 bits with a scale that lives on the device: the codes of mp::quantize_with_scale on the
/// CPU, to the bit, and those of the transpose, since tensor cores of 8 bits want both operands of a product
/// along k. The largest magnitude goes to scale->amax_bits, and what values were multiplied by to scale->used.
///
/// With delayed_scaling that is scale->scale, and the matrix is read once; before the first update, and with
/// current_scaling always, it follows from the matrix itself, which is read twice. Two launches, which are the
/// same whatever the device finds: they can be captured, and the host waits for nothing.
///
///     mp::quantize_with_scale(stream, mp::delayed_scaling{}, x.view(), codes.view(), turned.view(), scale);
///
/// \param policy  delayed_scaling or current_scaling
/// \param from    row-major, of float or of a reduced format
/// \param codes   row-major, of the same shape; data may be null, and is not written then
/// \param turned  row-major, of the shape of the transpose; the same
/// \param scale   in device memory; what orders launches on it are the executor's, one after the other
/// \throws argument_error  shapes differ, an order is not row_major, a parameter of the policy is out of range,
///                         or null
/// \throws cuda_error  the launch failed
template <gpu_executor Executor, class Policy, class Value, reduced Format>
    requires(sizeof(Format) == 1 &&
             (std::is_same_v<Policy, delayed_scaling> || std::is_same_v<Policy, current_scaling>))
void quantize_with_scale(const Executor& exec, const Policy& policy, matrix_view<Value> from,
                         matrix_view<Format> codes, matrix_view<Format> turned, device_tensor_scale* scale) {
    using value = std::remove_const_t<Value>;
    constexpr std::string_view function = "mp::quantize_with_scale";
    policy.validate();
    detail::require_memory(function, "scale", scale, 1);
    detail::check_view(function, "from", detail::extent_of(from));
    const auto check = [&](std::string_view name, auto view, std::ptrdiff_t rows, std::ptrdiff_t columns) {
        if (view.order != storage_order::row_major) {
            detail::throw_argument(function, std::string(name) + ".order", "column_major",
                                   "must be row_major");
        }
        if (view.data == nullptr) return;
        detail::check_view(function, name, detail::extent_of(view));
        detail::check_equal_sizes(function, std::string(name) + ".rows", view.rows, "those of from", rows);
        detail::check_equal_sizes(function, std::string(name) + ".columns", view.columns, "those of from",
                                  columns);
    };
    check("from", from, from.rows, from.columns);
    check("codes", codes, from.rows, from.columns);
    check("turned", turned, from.columns, from.rows);
    const bool empty = from.rows == 0 || from.columns == 0;
    // Without gaps a matrix is measured as one row.
    const bool dense = from.leading_dimension == from.columns;
    const std::ptrdiff_t lines = empty ? 0 : dense ? 1 : from.rows;
    const std::ptrdiff_t length = dense ? from.rows * from.columns : from.columns;
    using measure = detail::tensor_amax_kernel<value>;
    const std::ptrdiff_t chunks = lines * ((length + measure::width - 1) / measure::width);
    const std::ptrdiff_t parts = std::clamp<std::ptrdiff_t>(
        (chunks + measure::threads - 1) / measure::threads, 1, device_tensor_scale::most_parts);
    const auto lined = row_major(from.data, lines, length, from.leading_dimension);
    launch(function, exec, simt::launch_size{.blocks = parts, .shared_bytes = detail::reduction_bytes},
           measure{detail::rows_of<measure::width>(matrix_view<const value>(lined)), lines, length, scale});
    if (empty) return;
    launch(function, exec,
           simt::launch_size{.blocks = detail::column_tiles::blocks(from.rows, from.columns),
                             .shared_bytes = detail::reduction_bytes},
           detail::tensor_quantise_kernel<value, Format>{
               from.data, from.leading_dimension, from.rows, from.columns, codes.data,
               codes.leading_dimension, turned.data, turned.leading_dimension, detail::rows_are_wide(turned),
               parts, detail::tensor_scale_rule(policy), scale});
}

/// Takes the largest magnitudes of the tensors that were rounded last into the windows, as amax_history::record;
/// those that are not finite are left out. One launch for 32 histories.
///
/// \throws argument_error  null, a length below 1, or a parameter of a policy that is out of range
/// \throws cuda_error  the launch failed
template <gpu_executor Executor>
void record_amax(const Executor& exec, std::span<const device_amax_history> histories) {
    detail::launch_for_histories<detail::record_amax_kernel>("mp::record_amax", exec, histories, 0);
}
/// The same of a list in device memory, in one launch however long it is; nobody looks at what is in it.
///
/// \throws argument_error  a negative count, or null
/// \throws cuda_error      the launch failed
template <gpu_executor Executor>
void record_amax(const Executor& exec, const device_amax_history* list, std::ptrdiff_t count) {
    detail::launch_for_histories<detail::record_amax_kernel>("mp::record_amax", exec, list, count, 0);
}

/// Ends an iteration: every scale follows from its window by its policy, and the window is rolled, as
/// amax_history::update does, to the bit. One launch for 32 histories, a block for each; errors as record_amax.
template <gpu_executor Executor>
void update_scales(const Executor& exec, std::span<const device_amax_history> histories) {
    detail::launch_for_histories<detail::update_scales_kernel>("mp::update_scales", exec, histories,
                                                               detail::reduction_bytes);
}
/// The same of a list in device memory, in one launch however long it is: all scales of a model. Errors as
/// record_amax.
template <gpu_executor Executor>
void update_scales(const Executor& exec, const device_amax_history* list, std::ptrdiff_t count) {
    detail::launch_for_histories<detail::update_scales_kernel>("mp::update_scales", exec, list, count,
                                                               detail::reduction_bytes);
}

}}  // namespace mp
