// SPDX-License-Identifier: MIT
/// \file
/// Algorithms for GPUs. They run on mp::simulated_gpu with any compiler; <mp/cuda.hpp> adds mp::cuda_stream,
/// for devices, and needs nvcc.
#pragma once

#include <mp/gpu/adamw.hpp>
#include <mp/gpu/block_dequantize.hpp>
#include <mp/gpu/block_quantize.hpp>
#include <mp/gpu/clip_gradients.hpp>
#include <mp/gpu/convert.hpp>
#include <mp/gpu/device_gradient_report.hpp>
#include <mp/gpu/device_loss_scale.hpp>
#include <mp/gpu/device_optimizer.hpp>
#include <mp/gpu/gemm.hpp>
#include <mp/gpu/gemm_scaled.hpp>
#include <mp/gpu/gradient_norm.hpp>
#include <mp/gpu/loss_scaler.hpp>
#include <mp/gpu/map_elements.hpp>
#include <mp/gpu/observe.hpp>
#include <mp/gpu/optimizer.hpp>
#include <mp/gpu/parameter.hpp>
#include <mp/gpu/properties.hpp>
#include <mp/gpu/quantise_operand.hpp>
#include <mp/gpu/scale_update.hpp>
#include <mp/gpu/sgd.hpp>
#include <mp/gpu/training_iteration.hpp>
#include <mp/gpu/unscale.hpp>
#include <mp/ops/activations.hpp>
#include <mp/ops/argmax/gpu.hpp>
#include <mp/ops/arithmetic.hpp>
#include <mp/ops/attention/gpu.hpp>
#include <mp/ops/convolution/gpu.hpp>
#include <mp/ops/dropout/gpu.hpp>
#include <mp/ops/embedding/gpu.hpp>
#include <mp/ops/gpu_casts.hpp>
#include <mp/ops/linear.hpp>
#include <mp/ops/losses/gpu.hpp>
#include <mp/ops/normalization/gpu.hpp>
#include <mp/ops/pooling/gpu.hpp>
#include <mp/ops/rearrange/gpu.hpp>
#include <mp/ops/reductions/gpu.hpp>
#include <mp/ops/relu.hpp>
#include <mp/ops/rotary_embedding/gpu.hpp>
#include <mp/ops/softmax/gpu.hpp>
#include <mp/ops/softmax_cross_entropy/gpu.hpp>
#include <mp/simt.hpp>
