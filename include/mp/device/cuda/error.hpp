// SPDX-License-Identifier: MIT
/// \file
/// Errors of the CUDA runtime as exceptions.
#pragma once

#include <mp/error.hpp>

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>

namespace mp {

/// A call of the CUDA runtime failed. The message names the call, the error and its code:
/// "cudaMalloc: out of memory (cudaErrorMemoryAllocation, 2)".
class cuda_error : public error {
public:
    cuda_error(std::string_view call, cudaError_t code)
        : error(std::string(call) + ": " + cudaGetErrorString(code) + " (" + cudaGetErrorName(code) + ", " +
                detail::error_text(static_cast<int>(code)) + ")"),
          call_(call),
          code_(code) {}

    /// The call that failed, such as "cudaMalloc", or the function of this library that launched a kernel.
    [[nodiscard]] const std::string& call() const noexcept { return call_; }

    /// The error of the runtime.
    [[nodiscard]] cudaError_t code() const noexcept { return code_; }

private:
    std::string call_;
    cudaError_t code_;
};

}  // namespace mp

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Throws cuda_error unless `status` is cudaSuccess:
///
///     mp::check_cuda(cudaSetDevice(1), "cudaSetDevice");
inline void check_cuda(cudaError_t status, std::string_view call) {
    if (status != cudaSuccess) detail::throw_error(cuda_error(call, status));
}

}}  // namespace mp
