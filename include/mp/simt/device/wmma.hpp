// SPDX-License-Identifier: MIT
/// \file
/// Fragments of nvcuda::wmma: the tensor cores of every architecture since Volta, with the places of elements
/// in lanes left open.
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/simt/device/matrices.hpp>
#include <mp/simt/device/memory.hpp>
#include <mp/simt/fragments.hpp>
#include <mp/simt/shared_pointer.hpp>
#include <mp/tfloat32.hpp>

#include <mma.h>

#include <type_traits>

namespace mp::simt::detail::inline MP_ISA_NAMESPACE {

// <mma.h> declares it from sm_80 on only.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
using wmma_tf32 = nvcuda::wmma::precision::tf32;
#else
struct wmma_tf32;
#endif

class device_wmma : public device_matrices {
    template <class Input>
    using element =
        std::conditional_t<std::is_same_v<Input, half>, __half,
                           std::conditional_t<std::is_same_v<Input, bfloat16>, __nv_bfloat16, wmma_tf32>>;
    template <class Input>
    using storage = std::conditional_t<std::is_same_v<Input, tfloat32>, float, element<Input>>;
    template <bool RowMajor>
    using order = std::conditional_t<RowMajor, nvcuda::wmma::row_major, nvcuda::wmma::col_major>;

public:
    /// 16 rows of A (columns of B) and wmma_k<Input> of k, of half (sm_75), bfloat16 or tfloat32
    /// (sm_80). With KMajor, neighbours in memory are neighbours along k.
    template <class Input, bool KMajor>
    using wmma_a =
        nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, wmma_k<Input>, element<Input>, order<KMajor>>;
    template <class Input, bool KMajor>
    using wmma_b =
        nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, 16, 16, wmma_k<Input>, element<Input>, order<!KMajor>>;
    /// 16 x 16 sums in float.
    template <class Input>
    using wmma_sums = nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, wmma_k<Input>, float>;

    /// Loads a fragment whose lines are `pitch` elements apart: the pointer, the same in all lanes, is a
    /// multiple of 32 bytes, and the pitch of 16 bytes.
    template <class Fragment, class Input>
    __device__ __forceinline__ void load_fragment(Fragment& to, shared_pointer<Input> from, int pitch) const {
        nvcuda::wmma::load_matrix_sync(
            to, reinterpret_cast<const storage<Input>*>(shared_memory_begin() + from.offset),
            static_cast<unsigned>(pitch));
    }
    template <class Sums>
    __device__ __forceinline__ void clear_fragment(Sums& sums) const {
        nvcuda::wmma::fill_fragment(sums, 0.0F);
    }
    /// sums += a b; its arithmetic is mp::mma's.
    template <class Sums, class A, class B>
    __device__ __forceinline__ void multiply_fragments(Sums& sums, const A& a, const B& b) const {
        nvcuda::wmma::mma_sync(sums, a, b, sums);
    }
    /// Stores the sums row after row; pointer and pitch as for loading.
    template <class Sums>
    __device__ __forceinline__ void store_fragment(shared_pointer<float> to, const Sums& sums,
                                                   int pitch) const {
        nvcuda::wmma::store_matrix_sync(reinterpret_cast<float*>(shared_memory_begin() + to.offset), sums,
                                        static_cast<unsigned>(pitch), nvcuda::wmma::mem_row_major);
    }
};

}  // namespace mp::simt::detail::inline MP_ISA_NAMESPACE
