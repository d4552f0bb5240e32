// SPDX-License-Identifier: MIT
/// \file
/// Included first by every header that holds kernels, so that a plain C++ compiler says what is wrong.
#pragma once

#if !defined(__CUDACC__)
#error "mp: this header holds CUDA kernels; compile the file that includes it as CUDA, for example with nvcc"
#endif
