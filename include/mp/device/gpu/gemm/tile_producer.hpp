// SPDX-License-Identifier: MIT
/// \file
/// The thread that copies: it fills stage after stage by TMA.
#pragma once

#include <mp/config.hpp>
#include <mp/device/gpu/gemm/group_work.hpp>
#include <mp/device/simt/tensor_map.hpp>

#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Copies the operands of tiles of C, of which steps follow each other through the stages of Pipeline.
template <class Pipeline, class Groups>
struct tile_producer {
    using operands = typename Pipeline::operands;

    const simt::tensor_map& a_map;
    const simt::tensor_map& b_map;
    /// Matrices of the operands from one product of a batch to the next: one, or none.
    int a_matrices;
    int b_matrices;
    int a_rows;  ///< of a tile
    simt::cache_hint a_hint;
    simt::cache_hint b_hint;

    /// Copies all steps of a tile, each as soon as its stage is empty. The warps that multiply wait for the bytes.
    MP_ANY_EXECUTION_SPACE
    template <class Thread, class Work>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void copy_tile(Thread thread, const Work& work,
                                                   typename Pipeline::state& state) const {
        constexpr int blocks = operands::cluster_blocks;
        constexpr auto all = static_cast<std::uint16_t>(blocks == 1 ? 0 : (1 << blocks) - 1);
        const int own_part = blocks == 1 ? 0 : thread.block_in_cluster() * operands::b_part;
        const auto row = static_cast<int>(work.row);
        const auto column = static_cast<int>(work.column) + own_part;
        for (int step = work.begin; step < end_of_steps<Groups>(work); ++step) {
            const int p = first_k<Groups>(work) + step * operands::k;
            Pipeline::wait_empty(thread, state);
            thread.arrive_expect(Pipeline::full(state.stage), operands::bytes_of(a_rows));
            operands::a_stage::copy(thread, Pipeline::a_at(state.stage), 0, a_rows, a_map, row, p,
                                    work.product * a_matrices, Pipeline::full(state.stage), 0, a_hint);
            operands::b_stage::copy(thread, Pipeline::b_at(state.stage), own_part, operands::b_part, b_map,
                                    column, p, work.product * b_matrices, Pipeline::full(state.stage), all,
                                    b_hint);
            state.advance();
        }
    }
};

}}  // namespace mp::detail
