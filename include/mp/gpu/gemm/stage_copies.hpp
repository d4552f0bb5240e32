// SPDX-License-Identifier: MIT
/// \file
/// Copies of a tile of an operand from global to shared memory, whatever its alignment.
#pragma once

#include <mp/config.hpp>
#include <mp/gpu/gemm/problem.hpp>
#include <mp/simt/shared_pointer.hpp>

#include <cstddef>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// Bytes of k of one stage.
inline constexpr int stage_k_bytes = 64;

/// Copies 16 bytes in smaller chunks. A loop, since such matrices are slow anyway and compiling it is not free.
MP_ANY_EXECUTION_SPACE
template <int Bytes, class Input, class Thread>
MP_HOST_DEVICE MP_ALWAYS_INLINE void copy_in_chunks(Thread thread, simt::shared_pointer<Input> to,
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
MP_HOST_DEVICE MP_ALWAYS_INLINE void copy_chunk(Thread thread, simt::shared_pointer<Input> to,
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

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
