// SPDX-License-Identifier: MIT
/// \file
/// The scale of an 8-bit tensor in device memory, as kernels of <mp/nn/scaling/gpu/tensor_scaling.hpp> read and write it.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/nn/scaling/amax_history.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <cstddef>
#include <cstdint>

namespace mp {

/// The scaling state of one tensor in device memory: the scale and update count of an amax_history, without its
/// window, and the amax and scale of the last quantization. The host makes it and may copy it back; in between nothing but kernels looks
/// at it, so that steps wait for nothing and can be captured.
struct device_tensor_scale {
    /// Parts of a tensor that are measured side by side.
    static constexpr int most_parts = 256;

    float scale = 1.0F;  ///< of delayed scaling: the one of this iteration
    std::int32_t updates =
        0;              ///< of delayed scaling: see amax_history_view; 0 where there is nothing to go by
    float used = 1.0F;  ///< codes are values times this
    std::uint32_t amax_bits = 0;  ///< of the largest magnitude of the tensor that they were made of
    float product_factor = 1.0F;  ///< what a product whose first operand this is has been multiplied by
    std::uint32_t parts[most_parts] = {};  ///< largest magnitudes of parts, while a tensor is measured
};

/// A delayed scale with its window and its policy, all in one: what update_scales and record_amax take a list of.
struct device_amax_history {
    device_tensor_scale* scale = nullptr;  ///< in device memory
    float* window = nullptr;               ///< `length` floats in device memory; [0] collects the newest amax
    std::int32_t length = 0;               ///< at least 1
    delayed_scaling policy = {};
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// What a product of codes is multiplied by: 1 / (a b), rounded to double and then to float.
MP_HOST_DEVICE inline float inverse_of_scales(float a, float b) {
    return float_from_double(double_divide(1.0, double_multiply(double_from_float(a), double_from_float(b))));
}

}}  // namespace mp::detail
