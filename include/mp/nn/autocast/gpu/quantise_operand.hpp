// SPDX-License-Identifier: MIT
/// \file
/// Operands of a float8 matrix product on a GPU, scaled by a power of two and rounded, for the casts of a
/// float8 region.
#pragma once

#include <mp/arrays/array/staging_buffer.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/reductions.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/executor.hpp>
#include <mp/nn/autocast/quantise_operand.hpp>
#include <mp/numbers/rules/quantised_operand.hpp>
#include <mp/workspace.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

inline constexpr int operand_threads = 256;
/// Blocks, and so parts of the values that have a largest magnitude each.
inline constexpr std::ptrdiff_t most_operand_parts = 256;

/// Each block finds the largest finite magnitude of its part.
struct operand_amax_kernel {
    static constexpr int threads = operand_threads;
    const float* values;
    std::ptrdiff_t size;
    std::uint32_t* parts;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        std::uint32_t amax = 0;
        const std::ptrdiff_t step = thread.blocks() * threads;
        for (std::ptrdiff_t i = thread.block() * threads + thread.index(); i < size; i += step) {
            amax = larger_word{}(amax, finite_magnitude_bits(thread.load(values + i)));
        }
        amax = gpu::block_reduce<threads>(thread, amax, larger_word{}, simt::shared_pointer<std::uint32_t>{});
        if (thread.index() == 0) thread.store(parts + thread.block(), amax);
    }
};

/// Every block finds the largest of the parts again, and quantises its values.
template <class Format, class To>
struct operand_quantise_kernel {
    static constexpr int threads = operand_threads;
    const float* from;
    To* to;
    std::ptrdiff_t size;
    const std::uint32_t* parts;
    std::ptrdiff_t part_count;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        std::uint32_t amax = 0;
        for (std::ptrdiff_t i = thread.index(); i < part_count; i += threads) {
            amax = larger_word{}(amax, thread.load(parts + i));
        }
        amax = gpu::block_reduce<threads>(thread, amax, larger_word{}, simt::shared_pointer<std::uint32_t>{});
        const int exponent = scale_exponent_for<Format>(amax);
        const std::ptrdiff_t step = thread.blocks() * threads;
        for (std::ptrdiff_t i = thread.block() * threads + thread.index(); i < size; i += step) {
            thread.store(to + i, static_cast<To>(quantised<Format>(thread.load(from + i), exponent)));
        }
    }
};

/// Enqueues to[i] = quantised(from[i]) with the exponent of all of them: the bits of the CPU. The host does
/// not learn the scale.
template <reduced Format, gpu_executor Executor, class To>
void quantise_operand(quantised_to<Format>, const Executor& exec, std::span<const float> from,
                      std::span<To> to) {
    if (from.empty()) return;
    const auto size = static_cast<std::ptrdiff_t>(from.size());
    const std::ptrdiff_t blocks = (std::min)((size - 1) / operand_threads + 1, most_operand_parts);
    const workspace::frame frame(workspace_of(exec));
    const staging_buffer<std::uint32_t> parts(exec, static_cast<std::size_t>(blocks));
    const simt::launch_size shape{
        .blocks = blocks, .shared_bytes = gpu::block_group<operand_threads>::shared_bytes(operand_threads)};
    launch("mp::autocast", exec, shape, operand_amax_kernel{from.data(), size, parts.data()});
    launch("mp::autocast", exec, shape,
           operand_quantise_kernel<Format, To>{from.data(), to.data(), size, parts.data(), blocks});
}

}}  // namespace mp::detail
