// SPDX-License-Identifier: MIT
/// \file
/// Activations of linear layers.
#pragma once

#include <mp/linalg/gemm/activation.hpp>

namespace mp::ops {

using mp::activation;

}  // namespace mp::ops
