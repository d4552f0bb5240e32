// SPDX-License-Identifier: MIT
/// \file
/// Algorithms for GPUs. They run on mp::simulated_gpu with any compiler; <mp/cuda.hpp> adds mp::cuda_stream,
/// for devices, and needs nvcc.
#pragma once

#include <mp/device/gpu/block_quantize.hpp>
#include <mp/device/gpu/convert.hpp>
#include <mp/device/gpu/gemm.hpp>
#include <mp/device/gpu/gemm_grouped.hpp>
#include <mp/device/gpu/gemm_integer.hpp>
#include <mp/device/gpu/gemm_scaled.hpp>
#include <mp/device/gpu/map_elements.hpp>
#include <mp/device/gpu/prepare.hpp>
#include <mp/device/gpu/properties.hpp>
#include <mp/nn/autocast/gpu/quantise_operand.hpp>
#include <mp/nn/ops/activations.hpp>
#include <mp/nn/ops/argmax/gpu.hpp>
#include <mp/nn/ops/arithmetic.hpp>
#include <mp/nn/ops/attention/gpu.hpp>
#include <mp/nn/ops/convolution/gpu.hpp>
#include <mp/nn/ops/dropout/gpu.hpp>
#include <mp/nn/ops/embedding/gpu.hpp>
#include <mp/nn/ops/gpu_casts.hpp>
#include <mp/nn/ops/linear/gpu.hpp>
#include <mp/nn/ops/losses/gpu.hpp>
#include <mp/nn/ops/normalization/gpu.hpp>
#include <mp/nn/ops/pooling/gpu.hpp>
#include <mp/nn/ops/rearrange/gpu.hpp>
#include <mp/nn/ops/reductions/gpu.hpp>
#include <mp/nn/ops/rotary_embedding/gpu.hpp>
#include <mp/nn/ops/softmax/gpu.hpp>
#include <mp/nn/ops/softmax_cross_entropy/gpu.hpp>
#include <mp/nn/optim/gpu/captured_step.hpp>
#include <mp/nn/optim/gpu/device_optimizer.hpp>
#include <mp/nn/optim/gpu/gradient_norm.hpp>
#include <mp/nn/optim/gpu/grouped_optimizer.hpp>
#include <mp/nn/optim/gpu/loss_scaler.hpp>
#include <mp/nn/optim/gpu/optimizer.hpp>
#include <mp/nn/optim/gpu/parameter.hpp>
#include <mp/nn/optim/gpu/training_iteration.hpp>
#include <mp/nn/scaling/gpu/device_gradient_report.hpp>
#include <mp/nn/scaling/gpu/device_loss_scale.hpp>
#include <mp/nn/scaling/gpu/gemm_tensor_scaled.hpp>
#include <mp/nn/scaling/gpu/observe.hpp>
#include <mp/nn/scaling/gpu/tensor_scaling.hpp>
#include <mp/nn/scaling/gpu/unscale.hpp>
#include <mp/simt.hpp>
