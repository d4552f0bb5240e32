// SPDX-License-Identifier: MIT
/// \file
/// Kernels that record the largest magnitudes of tensors in windows, from which their next scales follow.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/reductions.hpp>
#include <mp/device/gpu/row_access.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/device/simt/launch_shape.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/error.hpp>
#include <mp/nn/scaling/amax_history.hpp>
#include <mp/nn/scaling/device_tensor_scale.hpp>
#include <mp/nn/scaling/scale_checks.hpp>
#include <mp/nn/scaling/unscale.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Some histories as a parameter of a launch; each has a block.
struct amax_histories {
    static constexpr int most = 32;
    device_amax_history list[most];

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE device_amax_history of_block(Thread thread) const {
        return list[thread.block()];
    }
};

/// Those of a list in device memory.
struct amax_history_list {
    const device_amax_history* list;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE device_amax_history of_block(Thread thread) const {
        const device_amax_history* const it = list + thread.block();
        return {thread.load(&it->scale),
                thread.load(&it->window),
                thread.load(&it->length),
                {.format_max = thread.load(&it->policy.format_max),
                 .margin = thread.load(&it->policy.margin),
                 .algorithm = thread.load(&it->policy.algorithm),
                 .rule = thread.load(&it->policy.rule)}};
    }
};

template <class Histories>
struct record_amax_kernel {
    static constexpr int threads = 32;
    Histories histories;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        if (thread.index() != 0) return;
        const device_amax_history it = histories.of_block(thread);
        const std::uint32_t amax = thread.load(&it.scale->amax_bits);
        if (amax >= 0x7f800000U) return;
        float newest = thread.load(it.window);
        amax_history_view{&newest, 1, nullptr, nullptr}.record(bit_cast<float>(amax));
        thread.store(it.window, newest);
    }
};

/// What decides in a window of which one slot is here: the rest of it has been gone through by a block.
struct rest_of_window {
    std::uint32_t rest;
    amax_algorithm algorithm;
    float* newest;

    MP_HOST_DEVICE float operator()(const amax_window& first) const {
        *newest = first[0];
        if (algorithm == amax_algorithm::most_recent) return first[0];
        return bit_cast<float>(larger_amax(rest, first[0]));
    }
};

/// The scale of the next iteration, by the policy itself; the window is searched and rolled by all threads.
template <class Histories>
struct update_scales_kernel {
    static constexpr int threads = row_threads;
    Histories histories;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        const device_amax_history it = histories.of_block(thread);
        const simt::shared_pointer<std::uint32_t> room{};
        std::uint32_t rest = 0;
        for (std::int32_t i = 1 + thread.index(); i < it.length; i += threads) {
            rest = larger_amax(rest, thread.load(it.window + i));
        }
        rest = gpu::block_reduce<threads>(thread, rest, larger_word{}, room);
        float newest = 0.0F;
        if (thread.index() == 0) {
            float slot = thread.load(it.window);
            float scale = thread.load(&it.scale->scale);
            std::int32_t updates = thread.load(&it.scale->updates);
            const amax_update update = it.policy.update({&slot, 1, &scale, &updates},
                                                        rest_of_window{rest, it.policy.algorithm, &newest});
            thread.store(&it.scale->scale, scale);
            thread.store(&it.scale->updates, updates);
            thread.store(room, update.kind == amax_update_kind::unused ? 0U : 1U);
        }
        thread.sync_block();
        if (thread.load(room) == 0) return;
        for (std::int32_t first = 1; first < it.length - 1; first += threads) {
            const std::int32_t i = first + thread.index();
            const bool moves = i < it.length - 1;
            const float next = moves ? thread.load(it.window + i + 1) : 0.0F;
            thread.sync_block();
            if (moves) thread.store(it.window + i, next);
        }
        thread.sync_block();
        if (thread.index() != 0) return;
        if (it.length > 1) thread.store(it.window + (it.length - 1), newest);
        thread.store(it.window, 0.0F);
    }
};

template <template <class> class Kernel, class Executor>
void launch_for_histories(std::string_view function, const Executor& exec,
                          std::span<const device_amax_history> histories, std::size_t shared_bytes) {
    for (std::size_t i = 0; i < histories.size(); ++i) {
        require_memory(function, "histories.scale", histories[i].scale, 1);
        require_memory(function, "histories.window", histories[i].window, 1);
        require_counter(function, "histories.length", histories[i].length, 1);
        histories[i].policy.validate();
    }
    for (std::size_t first = 0; first < histories.size(); first += amax_histories::most) {
        const std::size_t count = (std::min)(histories.size() - first, std::size_t{amax_histories::most});
        Kernel<amax_histories> kernel{};
        std::copy_n(histories.begin() + static_cast<std::ptrdiff_t>(first), count, kernel.histories.list);
        launch(function, exec,
               simt::launch_size{.blocks = static_cast<std::ptrdiff_t>(count), .shared_bytes = shared_bytes},
               kernel);
    }
}
template <template <class> class Kernel, class Executor>
void launch_for_histories(std::string_view function, const Executor& exec, const device_amax_history* list,
                          std::ptrdiff_t count, std::size_t shared_bytes) {
    if (count < 0) throw_argument(function, "count", count, "must not be negative");
    require_memory(function, "list", list, static_cast<std::size_t>(count));
    if (count == 0) return;
    launch(function, exec, simt::launch_size{.blocks = count, .shared_bytes = shared_bytes},
           Kernel<amax_history_list>{{list}});
}

}}  // namespace mp::detail
