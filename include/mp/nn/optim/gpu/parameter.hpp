// SPDX-License-Identifier: MIT
/// \file
/// What an optimizer on a GPU trains: arrays in device memory that the caller owns.
#pragma once

#include <mp/base/contiguous.hpp>
#include <mp/device/gpu/tensor_list.hpp>
#include <mp/error.hpp>
#include <mp/nn/optim/weight_update.hpp>
#include <mp/nn/scaling/unscale.hpp>

#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

namespace mp {

/// The arrays of one tensor of weights, all in device memory: nothing but addresses and sizes, so it is made
/// from whatever holds the memory. A list of them goes to adamw_step, sgd_step, check_gradients and
/// gradient_norm.
///
///     const mp::gpu_parameter<mp::half> layer{.weights = w.span(), .gradient = dw.span(),
///                                             .masters = master.span(), .momentum = m.span(),
///                                             .mean_square = v.span()};
///
/// As with mp::optimizer_base, weights that have a master copy in another type (Master) are written as its
/// values, rounded once to nearest; without one (Master is Weight) they are updated themselves, in the way
/// that mp::weight_update names. State starts at zero, the master copy with the values of the weights.
///
/// Arrays may not overlap. Where all of them begin at multiples of 16 bytes, as memory from cudaMalloc does,
/// four elements move in one access.
template <class Weight, class Gradient = Weight, class Master = float, class State = Master>
    requires detail::exact_in_float<Weight> && detail::exact_in_float<Gradient> &&
             detail::exact_in_float<Master> && detail::exact_in_float<State>
struct gpu_parameter {
    using weight_type = Weight;
    using gradient_type = Gradient;
    using master_type = Master;
    using state_type = State;
    static constexpr bool has_master_copy = !std::is_same_v<Weight, Master>;

    std::span<Weight> weights = {};           ///< what the forward pass uses; written by every step
    std::span<const Gradient> gradient = {};  ///< as many values, scaled; or none: the tensor is not trained
    std::span<Master> masters = {};           ///< as many values; none where Master is Weight
    std::span<State> momentum = {};           ///< of SGD, if it has any; Adam's mean of the gradients
    std::span<State> mean_square = {};        ///< Adam's mean of the squares of the gradients; else none
    std::span<Master> compensation =
        {};  ///< for weight_update::kahan and split, zero at the start; else none
};

namespace detail { inline namespace MP_ISA_NAMESPACE {

template <class Item>
inline constexpr bool is_gpu_parameter = false;
template <class Weight, class Gradient, class Master, class State>
inline constexpr bool is_gpu_parameter<gpu_parameter<Weight, Gradient, Master, State>> = true;

/// A contiguous range of gpu_parameter.
template <class List>
concept parameter_list = contiguous<List> && is_gpu_parameter<std::remove_cv_t<contiguous_element<List>>>;

/// Throws unless an array has a value for every weight.
template <class Value>
void check_parameter_array(std::string_view function, std::size_t index, std::string_view member,
                           std::span<Value> array, std::size_t weights) {
    require_memory(function, tensor_text("parameters", index, member) + ".data()", array.data(),
                   array.size());
    if (array.size() == weights) return;
    throw_argument(function, tensor_text("parameters", index, member) + ".size()", array.size(),
                   "must equal the number of weights, which is " + error_text(weights));
}

/// Throws unless a parameter has all arrays that an update with `states` states needs.
template <class Parameter>
void check_parameter(std::string_view function, std::size_t index, const Parameter& it, std::size_t states,
                     weight_update how) {
    const std::size_t size = it.weights.size();
    check_tensor_size(function, tensor_text("parameters", index, "weights.size()"), size);
    check_parameter_array(function, index, "weights", it.weights, size);
    check_parameter_array(function, index, "gradient", it.gradient, size);
    if constexpr (Parameter::has_master_copy) {
        check_parameter_array(function, index, "masters", it.masters, size);
    }
    if (states > 0) check_parameter_array(function, index, "momentum", it.momentum, size);
    if (states > 1) check_parameter_array(function, index, "mean_square", it.mean_square, size);
    if (keeps_compensation(how)) {
        check_parameter_array(function, index, "compensation", it.compensation, size);
    }
}

}}  // namespace detail
}  // namespace mp
