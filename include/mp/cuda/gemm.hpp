// SPDX-License-Identifier: MIT
/// \file
/// The general matrix product on a CUDA device.
#pragma once

#include <mp/cuda/compiler.hpp>

#include <mp/bfloat16.hpp>
#include <mp/cuda/chunks.hpp>
#include <mp/cuda/error.hpp>
#include <mp/cuda/gemm_block.hpp>
#include <mp/cuda/gemm_problem.hpp>
#include <mp/cuda/launch.hpp>
#include <mp/cuda/stream.hpp>
#include <mp/cuda/wmma_fragments.hpp>
#include <mp/gemm/epilogue.hpp>
#include <mp/gemm/validation.hpp>
#include <mp/half.hpp>
#include <mp/matrix_view.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>

namespace mp {
namespace detail {

/// A CUDA block as gemm_body sees it.
struct device_machine {
    struct thread {
        int index;

        template <class Chunk, class Value>
        MP_HOST_DEVICE MP_ALWAYS_INLINE Chunk load(const Value* from) const {
            return load_chunk<Chunk>(from);
        }
        /// One instruction for 16 bytes, said by name: the compiler does not always find it.
        template <class Value, class Chunk>
        MP_HOST_DEVICE MP_ALWAYS_INLINE void store(Value* to, const Chunk& values) const {
#if MP_DEVICE_CODE
            static_assert(sizeof(Chunk) == 16);
            const auto source = bit_cast<chunk_words<16>>(values);
            asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};"
                         :
                         : "r"(static_cast<unsigned>(__cvta_generic_to_shared(to))), "r"(source.words[0]),
                           "r"(source.words[1]), "r"(source.words[2]), "r"(source.words[3])
                         : "memory");
#else
            store_chunk(to, values);
#endif
        }
    };
    template <class State>
    using per_thread = State;

    unsigned char* shared;

    template <class State, class Function>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void each_thread([[maybe_unused]] State& state,
                                                     [[maybe_unused]] Function function) const {
#if MP_DEVICE_CODE
        function(state, thread{static_cast<int>(threadIdx.x)});
#endif
    }
    MP_HOST_DEVICE MP_ALWAYS_INLINE void barrier() const {
#if MP_DEVICE_CODE
        __syncthreads();
#endif
    }
    MP_HOST_DEVICE MP_ALWAYS_INLINE void warp_barrier() const {
#if MP_DEVICE_CODE
        __syncwarp();
#endif
    }
    MP_HOST_DEVICE MP_ALWAYS_INLINE unsigned char* shared_memory() const {
        return shared;
    }
    MP_HOST_DEVICE MP_ALWAYS_INLINE std::ptrdiff_t index() const {
#if MP_DEVICE_CODE
        return blockIdx.x;
#else
        return 0;
#endif
    }
};

/// Blocks that a multiprocessor is to hold at a time: what its shared memory has room for at 128 registers a
/// thread.
#if MP_DEVICE_CODE && __CUDA_ARCH__ < 800
template <class Tile>
inline constexpr int resident_blocks = 256 / Tile::threads;
#else
template <class Tile>
inline constexpr int resident_blocks = 512 / Tile::threads;
#endif

/// The architecture from which on tensor cores take a type, as in __CUDA_ARCH__.
template <class Input>
inline constexpr int tensor_core_architecture = std::is_same_v<Input, half> ? 700 : 800;

template <class Tile, bool ADepthContiguous, bool BDepthContiguous, class Input, class Output, class Epilogue>
__global__ void __launch_bounds__(Tile::threads, resident_blocks<Tile>)
    gemm_kernel(const __grid_constant__ product_problem<Input, Output, Epilogue> problem) {
#if MP_DEVICE_CODE
    constexpr bool in_tensor_cores = __CUDA_ARCH__ >= tensor_core_architecture<Input>;
    using fragments = std::conditional_t<in_tensor_cores, wmma_fragments<Input>, lane_fragments<Input>>;
    using body = gemm_body<Tile, ADepthContiguous, BDepthContiguous, Input, fragments>;
    __shared__ __align__(128) unsigned char shared[body::shared_bytes];
    device_machine machine{shared};
    body::run(machine, problem);
#endif
}

template <class Tile, class Input, class Output, class Epilogue>
void launch_gemm(cuda_stream exec, product_problem<Input, Output, Epilogue> problem) {
    const std::ptrdiff_t tiles =
        tile_count(problem.c.rows, Tile::rows) * tile_count(problem.c.columns, Tile::columns);
    with_layouts(problem, [&]<bool ADepthContiguous, bool BDepthContiguous>() {
        // One launch is enough for every C that fits in today's memories.
        for (; problem.first_tile < tiles; problem.first_tile += most_blocks) {
            const std::ptrdiff_t blocks =
                std::min(tiles - problem.first_tile, static_cast<std::ptrdiff_t>(most_blocks));
            launch("mp::gemm", exec, static_cast<unsigned>(blocks), Tile::threads,
                   &gemm_kernel<Tile, ADepthContiguous, BDepthContiguous, Input, Output, Epilogue>, problem);
        }
    });
}

}  // namespace detail

/// An element type of the factors of a matrix product in tensor cores.
template <class Value>
concept tensor_core_input =
    std::same_as<std::remove_const_t<Value>, half> || std::same_as<std::remove_const_t<Value>, bfloat16>;

/// An element type of the result of a matrix product on a device.
template <class Value>
concept device_gemm_output = !std::is_const_v<Value> && (reduced<Value> || std::same_as<Value, float>);

/// The general matrix product c = epilogue(alpha * a b + beta * c) on a CUDA device, in its tensor cores: the
/// interface and meaning of mp::gemm on the CPU, with views of device memory.
///
/// Shapes: a is m x k, b is k x n, c is m x n, each in its own storage order with its own leading dimension;
/// any sizes, zero included, and any alignment. Matrices whose lines all begin at multiples of 16 bytes are
/// read and written in 16-byte accesses, others element by element. a and b are both of half or both of
/// bfloat16. On devices before sm_80, whose tensor cores do not take bfloat16, its products are computed
/// by ordinary instructions, far slower.
///
/// Numerics: products are exact and summed in float in ascending k, in blocks of 8 (before sm_90) or 16: a
/// tensor core aligns the products of a block and the sum so far to the largest of them, cuts off what is
/// more than 24 (25) bits below it, adds exactly and rounds toward zero to float. So the error of a b is at
/// most 1.4 (k + 8) 2^-24 sum |a||b|, nearly always in the direction of zero, as long as the factors are
/// normal numbers and nothing overflows or becomes subnormal: a block of 8 loses up to 9 times 2^-24 of its
/// largest term by what is cut off, and 2^-23 of the sum by rounding. alpha, beta, the epilogue and the one
/// rounding to the type of c are those of the CPU, bit for bit. The bits of an element of c depend on its row
/// of a, its column of b, its own c, alpha, beta and the architecture, and on nothing else. NaN and
/// infinities propagate as the sum demands.
///
/// beta == 0 means that c is not read, and alpha == 0 or k == 0 that a and b are not read. Padding between
/// lines is left alone.
///
/// The epilogue is copied to the device: it must be trivially copyable, callable in device code, and refer to
/// device memory only, as mp::bias_per_column(buffer.span()) does for a device_buffer.
///
/// Enqueues one kernel; nothing is allocated. Throws argument_error, with nothing enqueued, for everything
/// that the CPU's mp::gemm refuses, and cuda_error when the launch fails.
template <tensor_core_input A, tensor_core_input B, device_gemm_output C,
          gemm_epilogue Epilogue = identity_epilogue>
void gemm(cuda_stream exec, float alpha, matrix_view<A> a, matrix_view<B> b, float beta, matrix_view<C> c,
          Epilogue epilogue = {}) {
    using input = std::remove_const_t<A>;
    static_assert(std::same_as<input, std::remove_const_t<B>>,
                  "mp::gemm on a device: a and b must have the same element type");
    static_assert(std::is_trivially_copyable_v<Epilogue>,
                  "mp::gemm on a device: the epilogue is copied to the device byte by byte");
    constexpr std::string_view function = "mp::gemm";
    detail::check_product(function, detail::extent_of(a), detail::extent_of(b), detail::extent_of(c));
    if constexpr (requires { epilogue.validate(c.rows, c.columns); }) epilogue.validate(c.rows, c.columns);
    if (c.rows == 0 || c.columns == 0) return;

    const auto problem = detail::make_product_problem<input>(alpha, a, b, beta, c, epilogue);
    if (detail::prefers_large_tile(c.rows, c.columns)) {
        detail::launch_gemm<detail::large_gemm_tile>(exec, problem);
    } else {
        detail::launch_gemm<detail::small_gemm_tile>(exec, problem);
    }
}

/// Name of the kernel that mp::gemm runs for factors of type Input and a C of this shape on the current
/// device: where the sums are formed (wmma: tensor cores, lanes: ordinary instructions), their type, and rows
/// x columns x depth of the tile of a block. Throws cuda_error.
template <tensor_core_input Input>
[[nodiscard]] std::string_view gemm_kernel_name(cuda_stream, std::ptrdiff_t rows, std::ptrdiff_t columns) {
    using kernel_input = std::remove_const_t<Input>;
    // What counts is the architecture that the code in this program was compiled for: a device may run code
    // of an earlier one.
    cudaFuncAttributes attributes{};
    check_cuda(
        cudaFuncGetAttributes(
            &attributes,
            detail::gemm_kernel<detail::small_gemm_tile, true, true, kernel_input, float, identity_epilogue>),
        "cudaFuncGetAttributes");
    const bool in_tensor_cores = attributes.ptxVersion * 10 >= detail::tensor_core_architecture<kernel_input>;
    if (detail::prefers_large_tile(rows, columns)) {
        return in_tensor_cores ? "cuda.wmma.f32.128x128x32" : "cuda.lanes.f32.128x128x32";
    }
    return in_tensor_cores ? "cuda.wmma.f32.64x64x32" : "cuda.lanes.f32.64x64x32";
}

}  // namespace mp
