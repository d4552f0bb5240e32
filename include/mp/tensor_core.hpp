// SPDX-License-Identifier: MIT
/// \file
/// The exact model of NVIDIA's tensor cores on the host: the bits that a GPU returns, without a GPU.
#pragma once

#include <mp/linalg/tensor_core/arch.hpp>
#include <mp/linalg/tensor_core/block_fma.hpp>
#include <mp/linalg/tensor_core/emulated.hpp>
#include <mp/linalg/tensor_core/gemm.hpp>
#include <mp/linalg/tensor_core/gemm_block_scaled.hpp>
