// SPDX-License-Identifier: MIT
/// \file
/// Everything that needs no third party. <mp/check.hpp> needs Boost, <mp/cuda.hpp> the CUDA toolkit.
#pragma once

#include <mp/analysis.hpp>
#include <mp/array.hpp>
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/block_scaled.hpp>
#include <mp/convert.hpp>
#include <mp/float4.hpp>
#include <mp/float6.hpp>
#include <mp/float8.hpp>
#include <mp/frontends/compat/presets.hpp>
#include <mp/gemm.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/math.hpp>
#include <mp/nn/scaling/state_text.hpp>
#include <mp/ops.hpp>
#include <mp/optim.hpp>
#include <mp/p3109.hpp>
#include <mp/packed2.hpp>
#include <mp/packed_array.hpp>
#include <mp/parallel.hpp>
#include <mp/tensor_core.hpp>
#include <mp/tfloat32.hpp>
#include <mp/thread_pool.hpp>
#include <mp/training.hpp>
