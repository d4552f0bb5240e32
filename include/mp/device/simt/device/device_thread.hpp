// SPDX-License-Identifier: MIT
/// \file
/// A thread of a GPU, as kernels see it. The functions of mp::simt::device_thread are the plain instructions;
/// where a kernel runs on the host it gets an mp::simt::simulated_thread, which has the same ones and checks
/// them. Operations of a warp and a block, memory, barriers and tiles are documented in basics.hpp; here are the matrix
/// instructions of a warp, fragments of nvcuda::wmma, whose assignment of elements to lanes is unspecified, and the matrix
/// instructions of a warpgroup (wgmma), which read their operands from shared memory and are asynchronous: code for
/// sm_90a only.
///
/// Everything that is said of a warp holds for all 32 lanes: operations of a warp are called by all of them,
/// at the same place of the kernel. Lanes that have left it are not waited for by shuffles, votes and
/// sync_warp(), say nothing and have no value that could be taken; matrices want all 32 lanes. (CUDA also lets
/// parts of a warp work together, given their mask. That is not offered here: kernels that need it are rare,
/// and mistakes with it are not.)
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/device/simt/device/basics.hpp>
#include <mp/device/simt/device/compiler.hpp>
#include <mp/device/simt/fragments.hpp>
#include <mp/device/simt/matrix_descriptor.hpp>
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
        return loaded<Count, false>(shared_address(row.offset));
    }
    /// As load_matrix(), with each matrix of 8 x 8 elements of 2 bytes transposed:
    /// loaded_transposed_coordinate(lane).
    template <int Count, class Value>
    [[nodiscard]] __device__ __forceinline__ registers<Count> load_matrix_transposed(
        shared_pointer<Value> row) const {
        static_assert(sizeof(Value) == 2, "mp: matrices of elements of 2 bytes can be transposed");
        return loaded<Count, true>(shared_address(row.offset));
    }

    /// Stores `Count` (1, 2 or 4) matrices of 8 rows of 16 bytes to shared memory, of which lanes have the bytes that
    /// load_matrix() would give them: row r of matrix m goes where lane 8 m + r points, at a multiple of 16 bytes.
    /// From sm_90 on; elsewhere it stops the kernel.
    template <int Count, class Value>
    __device__ __forceinline__ void store_matrix([[maybe_unused]] shared_pointer<Value> row,
                                                 [[maybe_unused]] const registers<Count>& from) const {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
        static_assert(Count == 1 || Count == 2 || Count == 4, "mp: store_matrix stores 1, 2 or 4 matrices");
#define MP_STORE_MATRICES(Shape, Registers, ...)                                          \
    asm volatile("stmatrix.sync.aligned.m8n8." Shape ".shared.b16 [%0], {" Registers "};" \
                 :                                                                        \
                 : "r"(shared_address(row.offset)), __VA_ARGS__                           \
                 : "memory")
        if constexpr (Count == 1) MP_STORE_MATRICES("x1", "%1", "r"(from[0]));
        if constexpr (Count == 2) MP_STORE_MATRICES("x2", "%1, %2", "r"(from[0]), "r"(from[1]));
        if constexpr (Count == 4) {
            MP_STORE_MATRICES("x4", "%1, %2, %3, %4", "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3]));
        }
#undef MP_STORE_MATRICES
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

private:
#define MP_LOAD_MATRICES(Shape, Registers, Address, ...)                                           \
    asm volatile("ldmatrix.sync.aligned.m8n8." Shape ".shared.b16 {" Registers "}, [" Address "];" \
                 : __VA_ARGS__                                                                     \
                 : "r"(address)                                                                    \
                 : "memory")
#define MP_LOAD_1_2_4(Order)                                                                          \
    if constexpr (Count == 1) MP_LOAD_MATRICES("x1" Order, "%0", "%1", "=r"(to[0]));                  \
    if constexpr (Count == 2) MP_LOAD_MATRICES("x2" Order, "%0, %1", "%2", "=r"(to[0]), "=r"(to[1])); \
    if constexpr (Count == 4)                                                                         \
    MP_LOAD_MATRICES("x4" Order, "%0, %1, %2, %3", "%4", "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]))
    template <int Count, bool Transposed>
    __device__ __forceinline__ static registers<Count> loaded(unsigned address) {
        static_assert(Count == 1 || Count == 2 || Count == 4, "mp: load_matrix loads 1, 2 or 4 matrices");
        registers<Count> to;
        if constexpr (Transposed) {
            MP_LOAD_1_2_4(".trans");
        } else {
            MP_LOAD_1_2_4("");
        }
        return to;
    }
#undef MP_LOAD_1_2_4
#undef MP_LOAD_MATRICES
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

// Text and operands of a warpgroup's instruction with 8, 32, 64 or 128 sums a thread.
#define MP_TEN_REGISTERS(tens)                                                                           \
    "%" #tens "0, %" #tens "1, %" #tens "2, %" #tens "3, %" #tens "4, %" #tens "5, %" #tens "6, %" #tens \
    "7, %" #tens "8, %" #tens "9, "
#define MP_REGISTERS_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define MP_30_REGISTERS MP_TEN_REGISTERS() MP_TEN_REGISTERS(1) MP_TEN_REGISTERS(2)
#define MP_REGISTERS_32 MP_30_REGISTERS "%30, %31"
#define MP_60_REGISTERS MP_30_REGISTERS MP_TEN_REGISTERS(3) MP_TEN_REGISTERS(4) MP_TEN_REGISTERS(5)
#define MP_REGISTERS_64 MP_60_REGISTERS "%60, %61, %62, %63"
#define MP_90_REGISTERS MP_60_REGISTERS MP_TEN_REGISTERS(6) MP_TEN_REGISTERS(7) MP_TEN_REGISTERS(8)
#define MP_120_REGISTERS MP_90_REGISTERS MP_TEN_REGISTERS(9) MP_TEN_REGISTERS(10) MP_TEN_REGISTERS(11)
#define MP_REGISTERS_128 MP_120_REGISTERS "%120, %121, %122, %123, %124, %125, %126, %127"
#define MP_SUMS_4(Register, i) \
    Register(sum[i]), Register(sum[i + 1]), Register(sum[i + 2]), Register(sum[i + 3])
#define MP_SUMS_8(Register, i) MP_SUMS_4(Register, i), MP_SUMS_4(Register, i + 4)
#define MP_SUMS_16(Register, i) MP_SUMS_8(Register, i), MP_SUMS_8(Register, i + 8)
#define MP_SUMS_32(Register, i) MP_SUMS_16(Register, i), MP_SUMS_16(Register, i + 16)
#define MP_SUMS_64(Register, i) MP_SUMS_32(Register, i), MP_SUMS_32(Register, i + 32)
#define MP_SUMS_128(Register, i) MP_SUMS_64(Register, i), MP_SUMS_64(Register, i + 64)
// Operands after the sums: two descriptors, whether to add, and `...`. `Scales` are those of A and B, which are 1, and for 16
// bits also the numbers of the operands with their orders; instructions with sums of integers have none.
#define MP_WGMMA(Sums, Register, Shape, Types, A, B, Add, Scales, ...)                    \
    asm volatile("{\n\t.reg .pred add;\n\tsetp.ne.b32 add, %" Add                         \
                 ", 0;\n\t"                                                               \
                 "wgmma.mma_async.sync.aligned." Shape "." Types " {" MP_REGISTERS_##Sums \
                 "}, %" A ", %" B ", add" Scales ";\n\t}"                                 \
                 : MP_SUMS_##Sums(Register, 0)                                            \
                 : "l"(a.bits), "l"(b.bits), "r"(static_cast<int>(add))__VA_OPT__(, ) __VA_ARGS__)
#define MP_SCALES(OrderA, OrderB) ", 1, 1"
#define MP_SCALES_AND_ORDERS(OrderA, OrderB) ", 1, 1, %" OrderA ", %" OrderB
#define MP_NO_SCALES(OrderA, OrderB) ""
// The shapes that are offered: 16, 64, 128 and 256 columns.
#define MP_WGMMA_COLUMNS(Register, Depth, Types, Scales, ...)                                              \
    if constexpr (Columns == 16) {                                                                         \
        MP_WGMMA(8, Register, "m64n16" Depth, Types, "8", "9", "10", Scales("11", "12"), __VA_ARGS__);     \
    } else if constexpr (Columns == 64) {                                                                  \
        MP_WGMMA(32, Register, "m64n64" Depth, Types, "32", "33", "34", Scales("35", "36"), __VA_ARGS__);  \
    } else if constexpr (Columns == 128) {                                                                 \
        MP_WGMMA(64, Register, "m64n128" Depth, Types, "64", "65", "66", Scales("67", "68"), __VA_ARGS__); \
    } else {                                                                                               \
        MP_WGMMA(128, Register, "m64n256" Depth, Types, "128", "129", "130", Scales("131", "132"),         \
                 __VA_ARGS__);                                                                             \
    }
#define MP_WGMMA_FLOATS(Depth, TypeOfA, TypeOfB) \
    MP_WGMMA_COLUMNS("+f", Depth, "f32." TypeOfA "." TypeOfB, MP_SCALES)
#define MP_WGMMA_16(Type)                                                     \
    MP_WGMMA_COLUMNS("+f", "k16", "f32." Type "." Type, MP_SCALES_AND_ORDERS, \
                     "n"(static_cast<int>(ATransposed)), "n"(static_cast<int>(BTransposed)))

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

class device_wgmma : public device_wmma {
public:
    /// The descriptor of a tile in shared memory whose rows of `swizzle_bytes` (128, 64 or 32; 0 for rows
    /// of 16 bytes) are exchanged as by mp::simt::swizzled. Eight rows are a block, and `stride_bytes` is
    /// from one block to the next one along the rows; `leading_bytes` is from one block to the next one
    /// across, where rows are shorter than what is multiplied.
    [[nodiscard]] __device__ __forceinline__ matrix_descriptor describe(std::uint32_t offset,
                                                                        int leading_bytes, int stride_bytes,
                                                                        int swizzle_bytes) const {
        return describe_tile(shared_address(offset), leading_bytes, stride_bytes, swizzle_bytes);
    }

    /// sum = a b, or sum + a b where `add`, for 64 rows of A and `Columns` (16, 64, 128 or 256) columns of B,
    /// with 32 bytes of k, by the 128 threads of a warpgroup together. The sums are in the places of
    /// wgmma_coordinate; those of std::int8_t are exact, modulo 2^32. Operands of half and bfloat16 may be transposed: rows
    /// in shared memory then run along rows of A (columns of B).
    ///
    /// The product is asynchronous: until wait_products() has returned no thread may access the sums or write the
    /// operands; but more products may be added to the same sums.
    /// fence_products() comes before the first product, and before the first one after the sums were touched.
    /// Operands that ordinary stores wrote have to be behind fence_asynchronous() of their threads and a
    /// barrier.
    template <class A, class B, int Columns, bool ATransposed = false, bool BTransposed = false>
    __device__ __forceinline__ void multiply_async([[maybe_unused]] mma_sum<A> (&sum)[Columns / 2],
                                                   [[maybe_unused]] matrix_descriptor a,
                                                   [[maybe_unused]] matrix_descriptor b,
                                                   [[maybe_unused]] bool add = true) const {
        static_assert(Columns == 16 || Columns == 64 || Columns == 128 || Columns == 256,
                      "mp: products of 16, 64, 128 or 256 columns are offered");
        static_assert(sizeof(A) == 2 || !(ATransposed || BTransposed),
                      "mp: only operands of 16 bits can be transposed");
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
        constexpr bool a_is_e4m3 = std::is_same_v<A, float8_e4m3fn>;
        constexpr bool b_is_e4m3 = std::is_same_v<B, float8_e4m3fn>;
        if constexpr (std::is_same_v<A, half> && std::is_same_v<B, half>) {
            MP_WGMMA_16("f16")
        } else if constexpr (std::is_same_v<A, bfloat16> && std::is_same_v<B, bfloat16>) {
            MP_WGMMA_16("bf16")
        } else if constexpr (std::is_same_v<A, tfloat32> && std::is_same_v<B, tfloat32>) {
            MP_WGMMA_FLOATS("k8", "tf32", "tf32")
        } else if constexpr (a_is_e4m3 && b_is_e4m3) {
            MP_WGMMA_FLOATS("k32", "e4m3", "e4m3")
        } else if constexpr (a_is_e4m3 && std::is_same_v<B, float8_e5m2>) {
            MP_WGMMA_FLOATS("k32", "e4m3", "e5m2")
        } else if constexpr (b_is_e4m3 && std::is_same_v<A, float8_e5m2>) {
            MP_WGMMA_FLOATS("k32", "e5m2", "e4m3")
        } else if constexpr (std::is_same_v<A, float8_e5m2> && std::is_same_v<B, float8_e5m2>) {
            MP_WGMMA_FLOATS("k32", "e5m2", "e5m2")
        } else if constexpr (std::is_same_v<A, std::int8_t> && std::is_same_v<B, std::int8_t>) {
            MP_WGMMA_COLUMNS("+r", "k32", "s32.s8.s8", MP_NO_SCALES)
        } else {
            static_assert(never<A, B>, "mp: wgmma does not multiply these types");
        }
#else
        __trap();
#endif
    }
    /// Changes how many registers each thread of this warpgroup has, a multiple of 8 from 24 to 256: those
    /// that one gives up another may take, and waits for. The launch has what its bounds leave to each thread.
    template <int Count>
    __device__ __forceinline__ void setmaxnreg_decrease() const {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(Count));
#endif
    }
    template <int Count>
    __device__ __forceinline__ void setmaxnreg_increase() const {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(Count));
#endif
    }
    /// Orders what the threads of the warpgroup did to the sums before the products that follow.
    __device__ __forceinline__ void fence_products() const {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
        asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
#endif
    }
    /// Ends a group: of the products that were begun since the last group.
    __device__ __forceinline__ void commit_products() const {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
        asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
#endif
    }
    /// Waits until all groups but the last `Pending` ones are done. By all four warps, each for itself.
    template <int Pending>
    __device__ __forceinline__ void wait_products() const {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
        asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(Pending) : "memory");
#endif
    }
};

}}  // namespace mp::simt::detail

#undef MP_TEN_REGISTERS
#undef MP_REGISTERS_8
#undef MP_30_REGISTERS
#undef MP_REGISTERS_32
#undef MP_60_REGISTERS
#undef MP_REGISTERS_64
#undef MP_90_REGISTERS
#undef MP_120_REGISTERS
#undef MP_REGISTERS_128
#undef MP_SUMS_4
#undef MP_SUMS_8
#undef MP_SUMS_16
#undef MP_SUMS_32
#undef MP_SUMS_64
#undef MP_SUMS_128
#undef MP_WGMMA
#undef MP_SCALES
#undef MP_SCALES_AND_ORDERS
#undef MP_NO_SCALES
#undef MP_WGMMA_COLUMNS
#undef MP_WGMMA_FLOATS
#undef MP_WGMMA_16

namespace mp::simt {

/// What kernels get as their thread on a device: no data, functions that are the instructions.
class device_thread : public detail::device_wgmma {
public:
    /// The architecture that is compiled for: 75, 80 ...
#if defined(__CUDA_ARCH__)
    static constexpr int capability = __CUDA_ARCH__ / 10;
#else
    static constexpr int capability = 0;
#endif
    static constexpr bool on_device = true;
    /// Whether the code is for sm_90a, which has wgmma and copies of tiles to several blocks.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    static constexpr bool has_warpgroups = true;
#else
    static constexpr bool has_warpgroups = false;
#endif
};

}  // namespace mp::simt
