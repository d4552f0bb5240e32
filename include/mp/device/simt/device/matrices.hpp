// SPDX-License-Identifier: MIT
/// \file
/// Matrix instructions of a warp, and fragments of nvcuda::wmma: the tensor cores of every architecture since Volta,
/// with the places of elements in lanes left open.
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/device/simt/device/barriers.hpp>
#include <mp/device/simt/device/basics.hpp>
#include <mp/device/simt/fragments.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/tfloat32.hpp>

#include <mma.h>

#include <cstdint>
#include <type_traits>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

/// False, but only once the type is known: for what a static_assert says of types that come too late.
template <class...>
inline constexpr bool never = false;

class device_matrices : public device_barriers {
public:
    /// Loads `Count` (1, 2 or 4) matrices of 8 rows of 16 bytes from shared memory: row r of matrix m lies
    /// where lane 8 m + r points, at a multiple of 16 bytes. Which bytes a lane gets is
    /// loaded_coordinate(lane).
    template <int Count, class Value>
    [[nodiscard]] __device__ __forceinline__ registers<Count> load_matrix(shared_pointer<Value> row) const {
        registers<Count> to;
        const unsigned address = shared_address(row.offset);
        if constexpr (Count == 1) {
            asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
                         : "=r"(to[0])
                         : "r"(address)
                         : "memory");
        } else if constexpr (Count == 2) {
            asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                         : "=r"(to[0]), "=r"(to[1])
                         : "r"(address)
                         : "memory");
        } else {
            static_assert(Count == 4, "mp: load_matrix loads 1, 2 or 4 matrices");
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                         : "r"(address)
                         : "memory");
        }
        return to;
    }
    /// As load_matrix(), with each matrix of 8 x 8 elements of 2 bytes transposed:
    /// loaded_transposed_coordinate(lane).
    template <int Count, class Value>
    [[nodiscard]] __device__ __forceinline__ registers<Count> load_matrix_transposed(
        shared_pointer<Value> row) const {
        static_assert(sizeof(Value) == 2, "mp: matrices of elements of 2 bytes can be transposed");
        registers<Count> to;
        const unsigned address = shared_address(row.offset);
        if constexpr (Count == 1) {
            asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
                         : "=r"(to[0])
                         : "r"(address)
                         : "memory");
        } else if constexpr (Count == 2) {
            asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                         : "=r"(to[0]), "=r"(to[1])
                         : "r"(address)
                         : "memory");
        } else {
            static_assert(Count == 4, "mp: load_matrix loads 1, 2 or 4 matrices");
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                         : "r"(address)
                         : "memory");
        }
        return to;
    }

    /// Stores `Count` (1, 2 or 4) matrices of 8 rows of 16 bytes to shared memory, of which lanes have the bytes that
    /// load_matrix() would give them: row r of matrix m goes where lane 8 m + r points, at a multiple of 16 bytes.
    /// From sm_90 on; elsewhere it stops the kernel.
    template <int Count, class Value>
    __device__ __forceinline__ void store_matrix([[maybe_unused]] shared_pointer<Value> row,
                                                 [[maybe_unused]] const registers<Count>& from) const {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
        const unsigned address = shared_address(row.offset);
        if constexpr (Count == 1) {
            asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};"
                         :
                         : "r"(address), "r"(from[0])
                         : "memory");
        } else if constexpr (Count == 2) {
            asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};"
                         :
                         : "r"(address), "r"(from[0]), "r"(from[1])
                         : "memory");
        } else {
            static_assert(Count == 4, "mp: store_matrix stores 1, 2 or 4 matrices");
            asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                         :
                         : "r"(address), "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3])
                         : "memory");
        }
#else
        __trap();
#endif
    }

    /// sum += a b in the tensor cores: 16 x 8 sums, 32 bytes of k, in the places of mma_a_coordinate,
    /// mma_b_coordinate and mma_c_coordinate. A and B are half (from sm_75 on), bfloat16, tfloat32 (sm_80),
    /// float8_e4m3fn and float8_e5m2 (sm_89; these mix). Its arithmetic is mp::mma's.
    template <class A, class B>
    __device__ __forceinline__ void multiply_add(float (&sum)[4], const registers<4>& a,
                                                 const registers<2>& b) const {
#define MP_MMA(Shape, TypeOfA, TypeOfB)                                                 \
    asm volatile("mma.sync.aligned." Shape ".row.col.f32." TypeOfA "." TypeOfB          \
                 ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])               \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
        [[maybe_unused]] constexpr bool a_is_e4m3 = std::is_same_v<A, float8_e4m3fn>;
        [[maybe_unused]] constexpr bool b_is_e4m3 = std::is_same_v<B, float8_e4m3fn>;
        [[maybe_unused]] constexpr bool is_float8 =
            (a_is_e4m3 || std::is_same_v<A, float8_e5m2>) && (b_is_e4m3 || std::is_same_v<B, float8_e5m2>);
        if constexpr (std::is_same_v<A, half> && std::is_same_v<B, half>) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
            MP_MMA("m16n8k16", "f16", "f16");
#else
            // Turing's instruction has half of that k, and adds its products as this one adds a block of
            // them.
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                asm volatile(
                    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
                    "{%0, %1, %2, %3};"
                    : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                    : "r"(a[2 * i]), "r"(a[2 * i + 1]), "r"(b[i]));
            }
#endif
        }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
        else if constexpr (std::is_same_v<A, bfloat16> && std::is_same_v<B, bfloat16>) {
            MP_MMA("m16n8k16", "bf16", "bf16");
        } else if constexpr (std::is_same_v<A, tfloat32> && std::is_same_v<B, tfloat32>) {
            MP_MMA("m16n8k8", "tf32", "tf32");
        }
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
        else if constexpr (is_float8 && a_is_e4m3 && b_is_e4m3) {
            MP_MMA("m16n8k32", "e4m3", "e4m3");
        } else if constexpr (is_float8 && a_is_e4m3) {
            MP_MMA("m16n8k32", "e4m3", "e5m2");
        } else if constexpr (is_float8 && b_is_e4m3) {
            MP_MMA("m16n8k32", "e5m2", "e4m3");
        } else if constexpr (is_float8) {
            MP_MMA("m16n8k32", "e5m2", "e5m2");
        }
#endif
        else {
            static_assert(never<A, B>,
                          "mp: the tensor cores of this architecture do not multiply these types");
        }
#undef MP_MMA
    }

    /// Overload for 8-bit integers, from sm_80 on: exact sums, modulo 2^32.
    template <class A, class B>
    __device__ __forceinline__ void multiply_add(std::int32_t (&sum)[4], const registers<4>& a,
                                                 const registers<2>& b) const {
        static_assert(std::is_same_v<A, std::int8_t> && std::is_same_v<B, std::int8_t>,
                      "mp: sums of integers are for operands of std::int8_t");
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
        asm volatile(
            "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, "
            "%3};"
            : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
        static_assert(never<A, B>, "mp: the tensor cores of this architecture do not multiply these types");
#endif
    }

    /// Overload with sums of half, from sm_75 on: two in a register, those of mma_c_coordinate(lane, 0) and
    /// 1, then 2 and 3, the first one in the low bits. A and B are half.
    template <class A, class B>
    __device__ __forceinline__ void multiply_add(registers<2>& sum, const registers<4>& a,
                                                 const registers<2>& b) const {
        static_assert(std::is_same_v<A, half> && std::is_same_v<B, half>,
                      "mp: sums of half are for operands of half");
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, "
            "%1};"
            : "+r"(sum[0]), "+r"(sum[1])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            asm volatile(
                "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, {%0, %1};"
                : "+r"(sum[0]), "+r"(sum[1])
                : "r"(a[2 * i]), "r"(a[2 * i + 1]), "r"(b[i]));
        }
#endif
    }
};

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
