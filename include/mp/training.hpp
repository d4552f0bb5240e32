// SPDX-License-Identifier: MIT
/// \file
/// What makes a run of the parts: tensors and parameters, layers, checkpoints, and weights as safetensors.
#pragma once

#include <mp/arrays/io/tensor_file.hpp>
#include <mp/train/training/checkpoint.hpp>
#include <mp/train/training/float8_scaling.hpp>
#include <mp/train/training/initializers.hpp>
#include <mp/train/training/layers/attention.hpp>
#include <mp/train/training/layers/convolution.hpp>
#include <mp/train/training/layers/embedding.hpp>
#include <mp/train/training/layers/linear.hpp>
#include <mp/train/training/layers/normalization.hpp>
#include <mp/train/training/parameter_store.hpp>
#include <mp/train/training/tape.hpp>
#include <mp/train/training/tensor.hpp>
#include <mp/train/training/tensor_scale_store.hpp>
