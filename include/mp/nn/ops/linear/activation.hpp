// SPDX-License-Identifier: MIT
/// \file
/// Activations of linear layers.
#pragma once

#include <mp/config.hpp>

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// What a layer applies to its result before it is rounded. The gradient of relu can be had from the layer's
/// result; those of the others need what the layer had before the activation, which
/// linear_with_preactivation() keeps.
enum class activation : unsigned char {
    none,
    relu,
    gelu,       ///< x Phi(x), exactly, see gelu_epilogue
    gelu_tanh,  ///< its approximation, see gelu_tanh_epilogue
    silu        ///< x / (1 + e^-x), see silu_epilogue
};

}}  // namespace mp::ops
