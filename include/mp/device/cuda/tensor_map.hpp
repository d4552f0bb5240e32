// SPDX-License-Identifier: MIT
/// \file
/// Maps of matrices for the unit that copies tiles (TMA).
#pragma once

#include <mp/device/simt/device/compiler.hpp>

#include <mp/device/cuda/error.hpp>
#include <mp/device/cuda/stream.hpp>
#include <mp/device/simt/tensor_map.hpp>
#include <mp/workspace.hpp>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

using encode_tiles_function = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*,
                                           const cuuint64_t*, const cuuint64_t*, const cuuint32_t*,
                                           const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                                           CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

/// The driver's function that makes maps; it is looked up in the runtime, so that programs link without the driver's
/// library. Throws cuda_error where there is no driver, or none that knows the unit.
[[nodiscard]] inline encode_tiles_function find_encode_tiles() {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
    check_cuda(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault,
                                                &found),
               "cudaGetDriverEntryPointByVersion");
    if (found != cudaDriverEntryPointSuccess) {
        mp::detail::throw_error(cuda_error("cuTensorMapEncodeTiled", cudaErrorCallRequiresNewerDriver));
    }
    return reinterpret_cast<encode_tiles_function>(function);
}

/// Has the driver encode a map.
[[nodiscard]] inline tensor_map encode_tensor_map(const tensor_tiles& tiles) {
    static const encode_tiles_function encode = find_encode_tiles();  // once is enough
    // Only the size of elements matters, since zeros fill up.
    const CUtensorMapDataType type = tiles.element_bytes == 1   ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                                     : tiles.element_bytes == 2 ? CU_TENSOR_MAP_DATA_TYPE_UINT16
                                     : tiles.element_bytes == 4 ? CU_TENSOR_MAP_DATA_TYPE_UINT32
                                                                : CU_TENSOR_MAP_DATA_TYPE_UINT64;
    const CUtensorMapSwizzle swizzle = tiles.swizzle_bytes == 0    ? CU_TENSOR_MAP_SWIZZLE_NONE
                                       : tiles.swizzle_bytes == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                                       : tiles.swizzle_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                                                   : CU_TENSOR_MAP_SWIZZLE_128B;
    const cuuint32_t dimensions = tiles.matrices == 0 ? 2 : 3;
    const cuuint64_t sizes[3] = {static_cast<cuuint64_t>(tiles.length), static_cast<cuuint64_t>(tiles.rows),
                                 static_cast<cuuint64_t>(tiles.matrices)};
    const cuuint64_t strides[2] = {static_cast<cuuint64_t>(tiles.row_bytes),
                                   static_cast<cuuint64_t>(tiles.matrix_bytes)};
    const cuuint32_t box[3] = {static_cast<cuuint32_t>(tiles.tile_length),
                               static_cast<cuuint32_t>(tiles.tile_rows), 1};
    const cuuint32_t steps[3] = {1, 1, 1};
    CUtensorMap encoded{};
    const CUresult result = encode(&encoded, type, dimensions, const_cast<void*>(tiles.data), sizes, strides,
                                   box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                   CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS)
        mp::detail::throw_error(cuda_error("cuTensorMapEncodeTiled", cudaErrorInvalidValue));
    tensor_map map{};
    static_assert(sizeof encoded == sizeof map.opaque);
    std::memcpy(map.opaque, &encoded, sizeof encoded);
    return map;
}

}}  // namespace mp::simt::detail

namespace mp::simt { inline namespace MP_ISA_NAMESPACE {

/// The map of a matrix for devices of sm_90 and later; with a workspace, which keeps maps, it is encoded once. Throws
/// argument_error for what the unit does not take, and cuda_error where there is no driver, or none that knows the
/// unit.
[[nodiscard]] inline tensor_map make_tensor_map(const cuda_stream& exec, const tensor_tiles& tiles) {
    check_tensor_tiles("mp::simt::make_tensor_map", tiles);
    const auto encode = [&] { return detail::encode_tensor_map(tiles); };
    return exec.workspace == nullptr ? encode() : exec.workspace->tensor_maps().find(tiles, encode);
}

}}  // namespace mp::simt
