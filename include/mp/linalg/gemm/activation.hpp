// SPDX-License-Identifier: MIT
/// \file
/// Activations that are chosen at run time.
#pragma once

namespace mp {

/// Activation that ends a matrix product or a linear layer before the result is rounded. The gradient of relu can be
/// computed from the result; those of the others need the value before the activation, which
/// mp::ops::linear_with_preactivation() keeps.
enum class activation : unsigned char {
    none,       ///< the value itself
    relu,       ///< max(x, 0), see relu_epilogue
    gelu,       ///< x Phi(x), exactly, see gelu_epilogue
    gelu_tanh,  ///< its approximation, see gelu_tanh_epilogue
    silu        ///< x / (1 + e^-x), see silu_epilogue
};

}  // namespace mp
