// SPDX-License-Identifier: MIT
/// \file
/// Matrix products in mixed precision: mp::gemm, the matrix views that it takes and the epilogues that end
/// it.
#pragma once

#include <mp/gemm/batched.hpp>
#include <mp/gemm/epilogue.hpp>
#include <mp/gemm/epilogue_gradients.hpp>
#include <mp/gemm/epilogue_outputs.hpp>
#include <mp/gemm/gemm.hpp>
#include <mp/gemm/grouped.hpp>
#include <mp/gemm/grouped_scaled.hpp>
#include <mp/gemm/integer.hpp>
#include <mp/gemm/k_scales.hpp>
#include <mp/gemm/packed_b.hpp>
#include <mp/gemm/scaled.hpp>
#include <mp/gemm/workspace.hpp>
#include <mp/matrix_view.hpp>
