// SPDX-License-Identifier: MIT
/// \file
/// A thread of a GPU, as kernels see it. The functions of mp::simt::device_thread are the plain instructions;
/// where a kernel runs on the host it gets an mp::simt::simulated_thread, which has the same ones and checks
/// them. What they mean is said in basics.hpp (who; warp, block and memory), barriers.hpp and matrices.hpp, and here of
/// matrix instructions of a warpgroup (wgmma), which read their operands from shared memory and run beside the
/// threads: code for sm_90a only.
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
#include <mp/device/simt/device/matrices.hpp>
#include <mp/device/simt/fragments.hpp>
#include <mp/device/simt/matrix_descriptor.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/tfloat32.hpp>

#include <cstdint>
#include <type_traits>

// Text and operands of an instruction with 8, 32, 64 or 128 sums a thread.
#define MP_REGISTERS_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define MP_REGISTERS_32                                                                     \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, " \
    "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define MP_REGISTERS_64                                                                     \
    MP_REGISTERS_32                                                                         \
    ", "                                                                                    \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, " \
    "%49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define MP_REGISTERS_128                                                                       \
    MP_REGISTERS_64                                                                            \
    ", "                                                                                       \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, "    \
    "%81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, "    \
    "%98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, " \
    "%113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, "     \
    "%127"
#define MP_SUMS_4(Register, i) \
    Register(sum[i]), Register(sum[i + 1]), Register(sum[i + 2]), Register(sum[i + 3])
#define MP_SUMS_8(Register, i) MP_SUMS_4(Register, i), MP_SUMS_4(Register, i + 4)
#define MP_SUMS_16(Register, i) MP_SUMS_8(Register, i), MP_SUMS_8(Register, i + 8)
#define MP_SUMS_32(Register, i) MP_SUMS_16(Register, i), MP_SUMS_16(Register, i + 16)
#define MP_SUMS_64(Register, i) MP_SUMS_32(Register, i), MP_SUMS_32(Register, i + 32)
#define MP_SUMS_128(Register, i) MP_SUMS_64(Register, i), MP_SUMS_64(Register, i + 64)
// Operands behind the sums: two descriptors, whether to add, and for 16 bits the orders of A and B. `Scales` are those of A
// and B, which are 1; instructions with sums of integers have none.
#define MP_WGMMA(Sums, Register, Shape, Types, A, B, Add, Scales)                         \
    asm volatile("{\n\t.reg .pred add;\n\tsetp.ne.b32 add, %" Add                         \
                 ", 0;\n\t"                                                               \
                 "wgmma.mma_async.sync.aligned." Shape "." Types " {" MP_REGISTERS_##Sums \
                 "}, %" A ", %" B ", add" Scales ";\n\t}"                                 \
                 : MP_SUMS_##Sums(Register, 0)                                            \
                 : "l"(a.bits), "l"(b.bits), "r"(static_cast<int>(add)))
#define MP_WGMMA_16(Sums, Shape, Type, A, B, Add, OrderA, OrderB)                                            \
    asm volatile("{\n\t.reg .pred add;\n\tsetp.ne.b32 add, %" Add                                            \
                 ", 0;\n\t"                                                                                  \
                 "wgmma.mma_async.sync.aligned." Shape ".f32." Type "." Type " {" MP_REGISTERS_##Sums        \
                 "}, %" A ", %" B ", add, 1, 1, %" OrderA ", %" OrderB ";\n\t}"                              \
                 : MP_SUMS_##Sums("+f", 0)                                                                   \
                 : "l"(a.bits), "l"(b.bits), "r"(static_cast<int>(add)), "n"(static_cast<int>(ATransposed)), \
                   "n"(static_cast<int>(BTransposed)))
// The shapes that are offered: 16, 64, 128 and 256 columns.
#define MP_WGMMA_COLUMNS(Register, Depth, Types, Scales)                              \
    if constexpr (Columns == 16) {                                                    \
        MP_WGMMA(8, Register, "m64n16" Depth, Types, "8", "9", "10", Scales);         \
    } else if constexpr (Columns == 64) {                                             \
        MP_WGMMA(32, Register, "m64n64" Depth, Types, "32", "33", "34", Scales);      \
    } else if constexpr (Columns == 128) {                                            \
        MP_WGMMA(64, Register, "m64n128" Depth, Types, "64", "65", "66", Scales);     \
    } else {                                                                          \
        MP_WGMMA(128, Register, "m64n256" Depth, Types, "128", "129", "130", Scales); \
    }
#define MP_WGMMA_FLOATS(Depth, TypeOfA, TypeOfB) \
    MP_WGMMA_COLUMNS("+f", Depth, "f32." TypeOfA "." TypeOfB, ", 1, 1")
#define MP_WGMMA_16_COLUMNS(Type)                                                \
    if constexpr (Columns == 16) {                                               \
        MP_WGMMA_16(8, "m64n16k16", Type, "8", "9", "10", "11", "12");           \
    } else if constexpr (Columns == 64) {                                        \
        MP_WGMMA_16(32, "m64n64k16", Type, "32", "33", "34", "35", "36");        \
    } else if constexpr (Columns == 128) {                                       \
        MP_WGMMA_16(64, "m64n128k16", Type, "64", "65", "66", "67", "68");       \
    } else {                                                                     \
        MP_WGMMA_16(128, "m64n256k16", Type, "128", "129", "130", "131", "132"); \
    }

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
    /// wgmma_coordinate; those of std::int8_t are exact, modulo 2^32. Operands of half and bfloat16 may be transposed: rows in shared memory then run along
    /// rows of A (columns of B).
    ///
    /// The product runs beside the threads: from here until wait_products() says that it is done nobody may
    /// touch the sums, or write the operands; but more products may be added to the same sums.
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
            MP_WGMMA_16_COLUMNS("f16")
        } else if constexpr (std::is_same_v<A, bfloat16> && std::is_same_v<B, bfloat16>) {
            MP_WGMMA_16_COLUMNS("bf16")
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
            MP_WGMMA_COLUMNS("+r", "k32", "s32.s8.s8", "")
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

#undef MP_REGISTERS_8
#undef MP_REGISTERS_32
#undef MP_REGISTERS_64
#undef MP_REGISTERS_128
#undef MP_SUMS_4
#undef MP_SUMS_8
#undef MP_SUMS_16
#undef MP_SUMS_32
#undef MP_SUMS_64
#undef MP_SUMS_128
#undef MP_WGMMA
#undef MP_WGMMA_16
#undef MP_WGMMA_COLUMNS
#undef MP_WGMMA_FLOATS
#undef MP_WGMMA_16_COLUMNS

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
