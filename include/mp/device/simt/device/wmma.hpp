// SPDX-License-Identifier: MIT
/// \file
/// Fragments of nvcuda::wmma: the tensor cores of every architecture since Volta, with the places of elements
/// in lanes left open.
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/device/simt/device/matrices.hpp>
#include <mp/device/simt/device/memory.hpp>
#include <mp/device/simt/fragments.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/half.hpp>
#include <mp/tfloat32.hpp>

#include <mma.h>

#include <type_traits>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

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
        load_shared(to, shared_address(from.offset), pitch);
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
#define MP_STORE_8(Shape)                                                                                 \
    asm volatile("wmma.store.d.sync.aligned.row." Shape                                                   \
                 ".shared.f32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8}, %9;"                                \
                 :                                                                                        \
                 : "r"(shared_address(to.offset)), "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]), "f"(x[4]), \
                   "f"(x[5]), "f"(x[6]), "f"(x[7]), "r"(pitch)                                            \
                 : "memory")
    /// Stores the sums row after row; pointer and pitch as for loading.
    template <class Sums>
    __device__ __forceinline__ void store_fragment(shared_pointer<float> to, const Sums& sums,
                                                   int pitch) const {
        const float(&x)[8] = sums.x;
        // Which lane holds which sum may depend on the shape.
        if constexpr (std::is_same_v<Sums, wmma_sums<tfloat32>>) {
            MP_STORE_8("m16n16k8");
        } else {
            MP_STORE_8("m16n16k16");
        }
    }
#undef MP_STORE_8

private:
    // <mma.h> loads from addresses of any kind: element by element where ptxas does not see that the memory is shared.
    // A fragment is the registers that the instruction names, in their order.
#define MP_LOAD_8(Text)                                                                          \
    asm volatile("wmma.load." Text " {%0, %1, %2, %3, %4, %5, %6, %7}, [%8], %9;"                \
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]), "=r"(to[4]), "=r"(to[5]), \
                   "=r"(to[6]), "=r"(to[7])                                                      \
                 : "r"(from), "r"(pitch)                                                         \
                 : "memory")
#define MP_LOAD_4(Text)                                               \
    asm volatile("wmma.load." Text " {%0, %1, %2, %3}, [%4], %5;"     \
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) \
                 : "r"(from), "r"(pitch)                              \
                 : "memory")
    template <class Use, int K, class Element, class Order>
    __device__ __forceinline__ static void load_shared(
        nvcuda::wmma::fragment<Use, 16, 16, K, Element, Order>& fragment, unsigned from, int pitch) {
        constexpr bool is_a = std::is_same_v<Use, nvcuda::wmma::matrix_a>;
        constexpr bool by_rows = std::is_same_v<Order, nvcuda::wmma::row_major>;
        auto* const to = reinterpret_cast<unsigned*>(&fragment);
        static_assert(sizeof fragment == (std::is_same_v<Element, __half> ? 32 : 16));
        if constexpr (std::is_same_v<Element, __half>) {
            if constexpr (is_a && by_rows) MP_LOAD_8("a.sync.aligned.row.m16n16k16.shared.f16");
            if constexpr (is_a && !by_rows) MP_LOAD_8("a.sync.aligned.col.m16n16k16.shared.f16");
            if constexpr (!is_a && by_rows) MP_LOAD_8("b.sync.aligned.row.m16n16k16.shared.f16");
            if constexpr (!is_a && !by_rows) MP_LOAD_8("b.sync.aligned.col.m16n16k16.shared.f16");
        } else if constexpr (std::is_same_v<Element, __nv_bfloat16>) {
            if constexpr (is_a && by_rows) MP_LOAD_4("a.sync.aligned.row.m16n16k16.shared.bf16");
            if constexpr (is_a && !by_rows) MP_LOAD_4("a.sync.aligned.col.m16n16k16.shared.bf16");
            if constexpr (!is_a && by_rows) MP_LOAD_4("b.sync.aligned.row.m16n16k16.shared.bf16");
            if constexpr (!is_a && !by_rows) MP_LOAD_4("b.sync.aligned.col.m16n16k16.shared.bf16");
        } else {
            if constexpr (is_a && by_rows) MP_LOAD_4("a.sync.aligned.row.m16n16k8.shared.tf32");
            if constexpr (is_a && !by_rows) MP_LOAD_4("a.sync.aligned.col.m16n16k8.shared.tf32");
            if constexpr (!is_a && by_rows) MP_LOAD_4("b.sync.aligned.row.m16n16k8.shared.tf32");
            if constexpr (!is_a && !by_rows) MP_LOAD_4("b.sync.aligned.col.m16n16k8.shared.tf32");
        }
    }
#undef MP_LOAD_8
#undef MP_LOAD_4
};

}}  // namespace mp::simt::detail
