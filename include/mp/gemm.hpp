// SPDX-License-Identifier: MIT
/// \file
/// Matrix products in mixed precision: mp::gemm, the matrix views that it takes and the epilogues that end
/// it.
#pragma once

#include <mp/linalg/gemm/batched.hpp>
#include <mp/linalg/gemm/epilogue.hpp>
#include <mp/linalg/gemm/epilogue_gradients.hpp>
#include <mp/linalg/gemm/epilogue_outputs.hpp>
#include <mp/linalg/gemm/gemm.hpp>
#include <mp/linalg/gemm/grouped.hpp>
#include <mp/linalg/gemm/grouped_scaled.hpp>
#include <mp/linalg/gemm/integer.hpp>
#include <mp/linalg/gemm/k_scales.hpp>
#include <mp/linalg/gemm/scaled.hpp>
#include <mp/linalg/gemm/workspace.hpp>
#include <mp/matrix_view.hpp>
