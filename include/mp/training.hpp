// SPDX-License-Identifier: MIT
/// \file
/// What makes a run of the parts: tensors and parameters, layers, checkpoints, and weights as safetensors.
#pragma once

#include <mp/training/checkpoint.hpp>
#include <mp/training/float8_scaling.hpp>
#include <mp/training/initializers.hpp>
#include <mp/training/layers/attention.hpp>
#include <mp/training/layers/convolution.hpp>
#include <mp/training/layers/embedding.hpp>
#include <mp/training/layers/linear.hpp>
#include <mp/training/layers/mlp.hpp>
#include <mp/training/layers/normalization.hpp>
#include <mp/training/parameter_store.hpp>
#include <mp/training/tape.hpp>
#include <mp/training/tensor.hpp>
#include <mp/training/tensor_file.hpp>
#include <mp/training/tensor_scale_store.hpp>
