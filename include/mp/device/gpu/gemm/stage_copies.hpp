// SPDX-License-Identifier: MIT
/// \file
/// Copies of a tile of an operand from global to shared memory, whatever its alignment.
#pragma once

#include <mp/config.hpp>
#include <mp/device/gpu/gemm/problem.hpp>
#include <mp/device/simt/shared_pointer.hpp>

#include <cstddef>
#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Bytes of k of one stage.
inline constexpr int stage_k_bytes = 64;

/// Copies 16 bytes in smaller chunks. A loop, since such matrices are slow anyway and compiling it is not free.
MP_ANY_EXECUTION_SPACE
template <int Bytes, class Input, class Thread>
MP_HOST_DEVICE MP_KERNEL_INLINE void copy_in_chunks(Thread thread, simt::shared_pointer<Input> to,
                                                    const Input* from, int valid_bytes) {
    constexpr int elements = Bytes / static_cast<int>(sizeof(Input));
    MP_UNROLL_BY(1)
    for (int i = 0; i < 16 / Bytes; ++i) {
        const int valid = left_of(valid_bytes - i * Bytes, Bytes);
        thread.template copy_async<Bytes>(to + i * elements, valid > 0 ? from + i * elements : from, valid);
    }
}

/// Begins to copy 16 bytes, of which those at vector `vector` and position `position` (in elements) of the operand
/// and behind it come from there; what lies outside of the operand becomes zero.
MP_ANY_EXECUTION_SPACE
template <class Input, class Thread>
MP_HOST_DEVICE MP_KERNEL_INLINE void copy_chunk(Thread thread, simt::shared_pointer<Input> to,
                                                const operand_vectors<Input>& operand, std::ptrdiff_t vector,
                                                std::ptrdiff_t position) {
    constexpr int size = static_cast<int>(sizeof(Input));
    constexpr int elements = 16 / size;
    const int inside = vector < operand.vectors ? left_of(operand.length - position, elements) : 0;
    // Where nothing is read the address has to be one all the same.
    const Input* const from = inside > 0 ? operand.data + (vector * operand.stride + position) : operand.data;
    if (operand.alignment == 16) {
        thread.template copy_async<16>(to, from, inside * size);
    } else if (operand.alignment >= 4) {
        copy_in_chunks<4>(thread, to, from, inside * size);
    } else {
        // No asynchronous copy takes such addresses.
        MP_UNROLL_BY(1)
        for (int i = 0; i < elements; ++i) thread.store(to + i, i < inside ? thread.load(from + i) : Input{});
    }
}

/// A number that stays in its register: compilers for devices otherwise compute it anew wherever it is used.
MP_HOST_DEVICE MP_KERNEL_INLINE std::uint32_t kept(std::uint32_t number) {
#if MP_DEVICE_CODE
    asm volatile("mov.b32 %0, %0;" : "+r"(number));
#endif
    return number;
}

/// A chunk of a stage: its vector, and where in the vector it begins.
struct stage_chunk {
    int vector;
    int position;
};

/// Begins to copy the tile of an operand that starts at `outer` (row of A, column of B) and `p` of k; what lies
/// outside of the operand becomes zero. All threads of the block call it. `Stage` says how the tile lies in shared
/// memory. A loop: whole_copies has the copies that count.
MP_ANY_EXECUTION_SPACE
template <class Stage, class Input, class Thread>
MP_HOST_DEVICE MP_KERNEL_INLINE void copy_tile_of(Thread thread, simt::shared_pointer<Input> stage,
                                                  const operand_vectors<Input>& operand, std::ptrdiff_t outer,
                                                  std::ptrdiff_t p) {
    const std::ptrdiff_t first_vector = Stage::k_major ? outer : p;
    const std::ptrdiff_t first_position = Stage::k_major ? p : outer;
    MP_UNROLL_BY(1)
    for (int i = 0; i < Stage::chunks_of_thread; ++i) {
        const stage_chunk chunk = Stage::chunk_at(thread.index() + i * Stage::threads);
        copy_chunk(thread, Stage::place_of(stage, chunk), operand, first_vector + chunk.vector,
                   first_position + chunk.position);
    }
}

/// The copies of a thread where no chunk is cut, by k or otherwise, and all are aligned: pointers that advance by the
/// same distance each step, without bounds. Chunks beyond the last row of A (column of B) are copied from the last
/// one: their sums are not looked at.
template <class Stage>
class whole_copies {
public:
    using input = typename Stage::input;

    /// Whether the copies of a tile that starts at `outer` are such ones, where all of its k is inside.
    [[nodiscard]] MP_HOST_DEVICE static bool take(const operand_vectors<input>& operand,
                                                  std::ptrdiff_t outer) {
        const bool no_chunk_is_cut = Stage::k_major || operand.length % Stage::chunk_elements == 0 ||
                                     operand.length - outer >= Stage::extent;
        return operand.alignment == 16 && no_chunk_is_cut;
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_KERNEL_INLINE whole_copies(Thread thread, const operand_vectors<input>& operand,
                                                 std::ptrdiff_t outer, std::ptrdiff_t p)
        : advance_(Stage::k_major ? Stage::k : Stage::k * operand.stride) {
        const std::ptrdiff_t last =
            Stage::k_major ? operand.vectors - 1 : operand.length - Stage::chunk_elements;
        const stage_chunk first = Stage::chunk_at(thread.index());
        to_ = kept(Stage::place_of({}, first).offset);
        MP_UNROLL
        for (int i = 0; i < Stage::chunks_of_thread; ++i) {
            const stage_chunk chunk = Stage::chunk_at(thread.index() + i * Stage::threads);
            std::ptrdiff_t vector = (Stage::k_major ? outer : p) + chunk.vector;
            std::ptrdiff_t position = (Stage::k_major ? p : outer) + chunk.position;
            std::ptrdiff_t& at = Stage::k_major ? vector : position;
            if (at > last) at = last;
            from_[i] = operand.data + (vector * operand.stride + position);
        }
    }

    /// Begins to copy the next step to a stage.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_KERNEL_INLINE void copy_next(Thread thread, simt::shared_pointer<input> stage) {
        MP_UNROLL
        for (int i = 0; i < Stage::chunks_of_thread; ++i) {
            const simt::shared_pointer<input> to{stage.offset + to_ +
                                                 static_cast<std::uint32_t>(i * Stage::chunk_distance)};
            thread.template copy_async<16>(to, from_[i]);
            from_[i] += advance_;
        }
    }

private:
    const input* from_[std::size_t{Stage::chunks_of_thread}];
    std::ptrdiff_t advance_;
    std::uint32_t to_;
};

}}  // namespace mp::detail
