// SPDX-License-Identifier: MIT
/// \file
/// Fragments in tensor cores, by nvcuda::wmma.
#pragma once

#include <mp/cuda/compiler.hpp>

#include <mp/bfloat16.hpp>
#include <mp/config.hpp>
#include <mp/cuda/gemm_block.hpp>
#include <mp/half.hpp>

#include <mma.h>

#include <type_traits>

namespace mp::detail {

/// The type of <mma.h> with the bits of ours.
template <class Input>
using wmma_native = std::conditional_t<std::is_same_v<Input, half>, __half, __nv_bfloat16>;

/// The fragments of gemm_body in tensor cores: blocks of 16 x 16 x 16, sums in float. The functions do
/// something only in device code, and there all lanes of a warp call them together.
template <class Input>
struct wmma_fragments {
    using native = wmma_native<Input>;

    template <bool DepthContiguous>
    using a_fragment = nvcuda::wmma::fragment<
        nvcuda::wmma::matrix_a, fragment_size, fragment_size, fragment_size, native,
        std::conditional_t<DepthContiguous, nvcuda::wmma::row_major, nvcuda::wmma::col_major>>;
    template <bool DepthContiguous>
    using b_fragment = nvcuda::wmma::fragment<
        nvcuda::wmma::matrix_b, fragment_size, fragment_size, fragment_size, native,
        std::conditional_t<DepthContiguous, nvcuda::wmma::col_major, nvcuda::wmma::row_major>>;
    using accumulator =
        nvcuda::wmma::fragment<nvcuda::wmma::accumulator, fragment_size, fragment_size, fragment_size, float>;

    template <class Fragment, class Thread>
    MP_HOST_DEVICE static MP_ALWAYS_INLINE void load([[maybe_unused]] Fragment& to,
                                                     [[maybe_unused]] const Input* from,
                                                     [[maybe_unused]] int pitch, Thread) {
#if MP_DEVICE_CODE
        nvcuda::wmma::load_matrix_sync(to, reinterpret_cast<const native*>(from),
                                       static_cast<unsigned>(pitch));
#endif
    }
    MP_HOST_DEVICE static MP_ALWAYS_INLINE void clear([[maybe_unused]] accumulator& sum) {
#if MP_DEVICE_CODE
        nvcuda::wmma::fill_fragment(sum, 0.0F);
#endif
    }
    template <class A, class B, class Thread>
    MP_HOST_DEVICE static MP_ALWAYS_INLINE void multiply_add([[maybe_unused]] accumulator& sum,
                                                             [[maybe_unused]] const A& a,
                                                             [[maybe_unused]] const B& b, Thread) {
#if MP_DEVICE_CODE
        nvcuda::wmma::mma_sync(sum, a, b, sum);
#endif
    }
    template <class Thread>
    MP_HOST_DEVICE static MP_ALWAYS_INLINE void store([[maybe_unused]] float* to,
                                                      [[maybe_unused]] const accumulator& sum,
                                                      [[maybe_unused]] int pitch, Thread) {
#if MP_DEVICE_CODE
        nvcuda::wmma::store_matrix_sync(to, sum, static_cast<unsigned>(pitch), nvcuda::wmma::mem_row_major);
#endif
    }
};

}  // namespace mp::detail
