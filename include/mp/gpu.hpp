// SPDX-License-Identifier: MIT
/// \file
/// Algorithms for GPUs. They run on mp::simulated_gpu with any compiler; <mp/cuda.hpp> adds mp::cuda_stream,
/// for devices, and needs nvcc.
#pragma once

#include <mp/gpu/activations.hpp>
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
#include <mp/gpu/normalization.hpp>
#include <mp/gpu/observe.hpp>
#include <mp/gpu/parameter.hpp>
#include <mp/gpu/properties.hpp>
#include <mp/gpu/scale_update.hpp>
#include <mp/gpu/sgd.hpp>
#include <mp/gpu/softmax.hpp>
#include <mp/gpu/softmax_cross_entropy.hpp>
#include <mp/gpu/sums.hpp>
#include <mp/gpu/unscale.hpp>
#include <mp/simt.hpp>
