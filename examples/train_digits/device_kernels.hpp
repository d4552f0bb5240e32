// SPDX-License-Identifier: MIT
/// \file
/// What the training on a GPU needs besides the library: how the products of layers end, and a small kernel
/// that notes a step, which the host does not see while it runs.
#pragma once

#include <mp/gpu.hpp>

#include <cstddef>
#include <cstdint>

namespace examples::train_digits {

/// An epilogue of one's own: what a product of a layer does to its sums. One type for the products forward
/// and backward, so that the kernels of the product are compiled once for each number format.
template <class Value>
struct layer_epilogue {
    const Value* bias = nullptr;  ///< one for each column, in device memory; null where none is added
    bool relu = false;

    MP_HOST_DEVICE float operator()(float value, std::ptrdiff_t row, std::ptrdiff_t column) const {
        if (bias != nullptr) value += static_cast<float>(bias[column]);
        return relu ? mp::relu_epilogue{}(value, row, column) : value;
    }
};

/// What the host learns about a step, some time later.
struct alignas(16) step_note {
    float loss = 0.0F;          ///< of the batch before the step, without loss weight and scale
    float scale = 0.0F;         ///< with which the step was made
    std::uint32_t applied = 0;  ///< 0 if it was skipped
};

/// Notes a step between the optimizer's step, which decides whether it applies, and the update of the scale.
template <class Scale>
struct note_step_kernel {
    static constexpr int threads = 32;
    const float* loss;  ///< times the loss weight
    float weight;
    const Scale* scale;
    const mp::device_optimizer<mp::sgd_options>* optimizer;
    step_note* note;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        if (thread.index() != 0) return;
        thread.store(note, step_note{*loss / weight, scale->current_scale(), optimizer->applied});
    }
};

}  // namespace examples::train_digits
