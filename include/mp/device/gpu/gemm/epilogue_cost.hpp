// SPDX-License-Identifier: MIT
/// \file
/// How long the end of a product takes beside its products: what plans for wgmma choose a schedule by.
#pragma once

#include <mp/config.hpp>
#include <mp/device/gpu/gemm/tiles.hpp>
#include <mp/linalg/gemm/epilogue.hpp>

#include <algorithm>
#include <cstddef>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Where threads end 8 elements of C: read from shared memory, alpha, relu, one rounding, written.
inline constexpr int least_epilogue_instructions = 55;

}}  // namespace mp::detail

namespace mp {

/// Instructions of a thread that end 8 elements of C behind an epilogue of this type: what plans for wgmma weigh
/// against products. Counted in code for sm_90a; the identity is written by TMA. A specialisation tells those of an epilogue
/// of one's own.
template <class Epilogue>
inline constexpr int epilogue_instructions = detail::least_epilogue_instructions;
template <>
inline constexpr int epilogue_instructions<identity_epilogue> = 18;
template <>
inline constexpr int epilogue_instructions<silu_epilogue> = 360;
template <>
inline constexpr int epilogue_instructions<gelu_epilogue> = 430;
template <>
inline constexpr int epilogue_instructions<gelu_tanh_epilogue> = 510;
template <class First, class Second>
inline constexpr int epilogue_instructions<epilogue_chain<First, Second>> =
    epilogue_instructions<First> + epilogue_instructions<Second> - detail::least_epilogue_instructions;

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// What the end of an element of C takes for each of k, in multiply-adds of wgmma. A multiprocessor issues an instruction for
/// 128 threads a cycle, and multiplies 4096 bytes of one operand with those of the other.
template <class Input>
[[nodiscard]] constexpr double epilogue_time(int instructions, std::ptrdiff_t k) {
    constexpr double products_of_a_cycle = 4096.0 / sizeof(Input);
    return instructions / (8.0 * 128) * products_of_a_cycle / static_cast<double>(k);
}

/// What `tiles` tiles of a multiprocessor take, one after the other, for each of their elements; `epilogue` is
/// epilogue_time() where that is to count.
[[nodiscard]] inline double time_of_tiles(const tile_choice& tile, double rate, double tiles,
                                          double epilogue) {
    const double products = 1 / rate;
    if (!tile.ping_pong) return tiles * (products + epilogue);
    // A warp that has a scheduler for itself issues every other cycle. Behind the last tile nothing runs.
    const double alone = 2 * epilogue;
    return (tiles - 1) * (std::max)(products, (products + alone) / 2) + products + alone;
}

}}  // namespace mp::detail
