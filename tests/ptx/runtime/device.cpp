// SPDX-License-Identifier: MIT
// What the device is, the names of errors, and the driver's function that makes tensor maps, with its checks.
#include "../interpreter/tensor_map.hpp"
#include "state.hpp"

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

namespace ptx::runtime { namespace {

struct error_text {
    cudaError_t code;
    const char* name;
    const char* text;
};
constexpr error_text error_texts[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorInvalidClusterSize, "cudaErrorInvalidClusterSize", "cluster misconfiguration"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {cudaErrorStreamCaptureMerge, "cudaErrorStreamCaptureMerge",
     "operation would result in a merge of separate capture sequences"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorIllegalState, "cudaErrorIllegalState",
     "the operation cannot be performed in the present state"},
    {cudaErrorCallRequiresNewerDriver, "cudaErrorCallRequiresNewerDriver",
     "API call is not supported in the installed CUDA driver"},
};

std::uint32_t bytes_of(CUtensorMapDataType type) {
    switch (type) {
        case CU_TENSOR_MAP_DATA_TYPE_UINT8:
            return 1;
        case CU_TENSOR_MAP_DATA_TYPE_UINT16:
        case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
        case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
            return 2;
        case CU_TENSOR_MAP_DATA_TYPE_UINT32:
        case CU_TENSOR_MAP_DATA_TYPE_INT32:
        case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
            return 4;
        case CU_TENSOR_MAP_DATA_TYPE_UINT64:
        case CU_TENSOR_MAP_DATA_TYPE_INT64:
        case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
            return 8;
        default:
            return 0;
    }
}

long encoded_maps = 0;

/// The conditions are those of the driver's documentation.
CUresult encode_tiled(CUtensorMap* to, CUtensorMapDataType type, cuuint32_t rank, void* address,
                      const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                      const cuuint32_t* steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                      CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill) {
    const std::uint32_t element = bytes_of(type);
    const auto at = reinterpret_cast<std::uint64_t>(address);
    if (to == nullptr || reinterpret_cast<std::uint64_t>(to) % 64 != 0 || element == 0 || rank < 1 ||
        rank > 5 || at % 16 != 0 || interleave != CU_TENSOR_MAP_INTERLEAVE_NONE ||
        fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    tensor_map map{};
    map.mark = tensor_map::expected_mark;
    map.address = at;
    map.rank = static_cast<std::uint8_t>(rank);
    map.element_bytes = static_cast<std::uint8_t>(element);
    for (std::uint32_t k = 0; k < rank; ++k) {
        if (sizes[k] == 0 || sizes[k] > (std::uint64_t{1} << 32)) return CUDA_ERROR_INVALID_VALUE;
        if (box[k] == 0 || box[k] > 256) return CUDA_ERROR_INVALID_VALUE;
        if (steps[k] != 1)
            return steps[k] == 0 || steps[k] > 8 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
        map.last[k] = static_cast<std::uint32_t>(sizes[k] - 1);
        map.box[k] = static_cast<std::uint16_t>(box[k]);
        if (k == 0) continue;
        // The documentation computes each stride from the one before; the driver takes others, too, and 0 among them.
        const std::uint64_t stride = strides[k - 1];
        if (stride % 16 != 0 || stride >= (std::uint64_t{1} << 40)) return CUDA_ERROR_INVALID_VALUE;
        map.strides[k - 1] = stride;
    }
    const std::uint32_t inner = box[0] * element;
    if (inner % 16 != 0) return CUDA_ERROR_INVALID_VALUE;
    switch (swizzle) {
        case CU_TENSOR_MAP_SWIZZLE_NONE:
            map.swizzle_bytes = 0;
            break;
        case CU_TENSOR_MAP_SWIZZLE_32B:
            map.swizzle_bytes = 32;
            break;
        case CU_TENSOR_MAP_SWIZZLE_64B:
            map.swizzle_bytes = 64;
            break;
        case CU_TENSOR_MAP_SWIZZLE_128B:
            map.swizzle_bytes = 128;
            break;
        default:
            return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (map.swizzle_bytes != 0 && inner > map.swizzle_bytes) return CUDA_ERROR_INVALID_VALUE;
    ++encoded_maps;
    std::memset(to, 0, sizeof *to);
    std::memcpy(to, &map, sizeof map);
    return CUDA_SUCCESS;
}

}  // namespace

}  // namespace ptx::runtime

using namespace ptx::runtime;

extern "C" {

/// For tests, which find it where they are interpreted: how many tensor maps have been encoded.
long mp_interpreted_tensor_maps() {
    return encoded_maps;
}

cudaError_t cudaGetLastError() {
    const cudaError_t result = state().last;
    state().last = state().sticky;
    return result;
}
cudaError_t cudaPeekAtLastError() {
    return state().last;
}
const char* cudaGetErrorName(cudaError_t code) {
    for (const error_text& it : error_texts) {
        if (it.code == code) return it.name;
    }
    return "cudaErrorUnknown";
}
const char* cudaGetErrorString(cudaError_t code) {
    for (const error_text& it : error_texts) {
        if (it.code == code) return it.text;
    }
    return "unknown error";
}

cudaError_t cudaGetDeviceCount(int* to) {
    *to = 1;
    return cudaSuccess;
}
cudaError_t cudaGetDevice(int* to) {
    *to = 0;
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
    return device == 0 ? cudaSuccess : report(cudaErrorInvalidDevice);
}
cudaError_t cudaDeviceReset() {
    device_state& it = state();
    for (const auto& binary : it.binaries) binary->loaded.reset();
    for (auto& [host, kernel] : it.kernels) kernel.most_dynamic_shared = shared_without_asking;
    it.order = std::make_unique<device_order>();
    it.memory.free_all();
    it.last = it.sticky = cudaSuccess;
    it.failure.clear();
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* to, cudaDeviceAttr what, int) {
    switch (what) {
        case cudaDevAttrMultiProcessorCount:
            *to = multiprocessors;
            return cudaSuccess;
        case cudaDevAttrComputeCapabilityMajor:
            *to = architecture() / 10;
            return cudaSuccess;
        case cudaDevAttrComputeCapabilityMinor:
            *to = architecture() % 10;
            return cudaSuccess;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin:
            *to = shared_per_block();
            return cudaSuccess;
        case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
            *to = shared_per_block() + 1024;
            return cudaSuccess;
        default:
            return report(cudaErrorNotSupported);
    }
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* to, int) {
    *to = {};
    std::strncpy(to->name, "interpreter of PTX", sizeof to->name - 1);
    to->major = architecture() / 10;
    to->minor = architecture() % 10;
    to->multiProcessorCount = multiprocessors;
    to->totalGlobalMem = memory_bytes;
    to->sharedMemPerBlock = shared_without_asking;
    to->sharedMemPerBlockOptin = shared_per_block();
    to->warpSize = 32;
    to->maxThreadsPerBlock = 1024;
    return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** to, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* found) {
    const bool known = std::string_view(name) == "cuTensorMapEncodeTiled";
    *to = known ? reinterpret_cast<void*>(&encode_tiled) : nullptr;
    if (found != nullptr) *found = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}

}  // extern "C"
