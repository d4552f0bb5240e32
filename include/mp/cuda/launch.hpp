// SPDX-License-Identifier: MIT
/// \file
/// Launching a kernel.
#pragma once

#include <mp/cuda/error.hpp>
#include <mp/cuda/stream.hpp>

#include <cuda_runtime_api.h>

#include <string_view>
#include <type_traits>

namespace mp::detail {

/// Enqueues a kernel; throws cuda_error in the name of `function` if this launch is refused. Unlike the
/// language's <<< >>>, the call says so itself: errors that earlier calls left behind are not mistaken for
/// its own, and an error that is thrown is not left behind. What goes wrong while the kernel runs shows at a
/// later call or when the stream is waited for, as always in CUDA.
template <class... Parameters>
void launch(std::string_view function, cuda_stream exec, unsigned blocks, unsigned threads,
            void (*kernel)(Parameters...), std::type_identity_t<Parameters>... arguments) {
    void* pointers[] = {&arguments...};
    const cudaError_t status = cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(blocks),
                                                dim3(threads), pointers, 0, exec.stream);
    if (status != cudaSuccess) {
        static_cast<void>(cudaGetLastError());
        throw cuda_error(function, status);
    }
}

}  // namespace mp::detail
