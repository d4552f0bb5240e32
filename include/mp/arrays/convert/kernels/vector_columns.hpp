// SPDX-License-Identifier: MIT
/// \file
/// Vectors that lie side by side in memory, as columns of a row-major matrix do, gathered into rows of floats,
/// and back. See vector_columns.inl.
#pragma once

#include <mp/arrays/convert/kernels/number_vectors.hpp>
#include <mp/numbers/simd/square.hpp>

#include <cstddef>
#include <type_traits>

#define MP_KERNEL_FILE <mp/arrays/convert/kernels/vector_columns.inl>
#include <mp/numbers/simd/for_each_target.inl>
