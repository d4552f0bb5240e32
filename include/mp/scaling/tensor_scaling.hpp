// SPDX-License-Identifier: MIT
/// \file
/// Deprecated path of <mp/nn/scaling/tensor_scaling.hpp>; to be removed in 0.3.
#pragma once
#include <mp/nn/scaling/tensor_scaling.hpp>
