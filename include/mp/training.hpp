// SPDX-License-Identifier: MIT
/// \file
/// What makes a run of the parts: checkpoints, and weights as safetensors.
#pragma once

#include <mp/training/checkpoint.hpp>
#include <mp/training/tensor_file.hpp>
