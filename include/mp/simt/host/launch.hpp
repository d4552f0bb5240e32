// SPDX-License-Identifier: MIT
/// \file
/// Launching a kernel on the host.
#pragma once

#include <mp/detail/parallel.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/simd/floating_point_modes.hpp>
#include <mp/simt/host/cluster.hpp>
#include <mp/simt/host/simulated_thread.hpp>
#include <mp/simt/kernel_traits.hpp>
#include <mp/simt/launch_shape.hpp>
#include <mp/simt/simulated_gpu.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace mp::simt::detail::inline MP_ISA_NAMESPACE {

template <arch Arch, class Kernel>
void run_thread(const void* kernel, thread_state& state) {
    (*static_cast<const Kernel*>(kernel))(simulated_thread<Arch>(state));
}

}  // namespace mp::simt::detail::inline MP_ISA_NAMESPACE

namespace mp::simt::inline MP_ISA_NAMESPACE {

/// Runs a kernel on the host, and returns when it is done: see mp::simulated_gpu. Parameters and errors are
/// those of the launch on a device. Throws mp::kernel_error when the kernel does what a device does not
/// define; blocks that ran before have written what they wrote.
///
///     struct fill {
///         static constexpr int threads = 256;
///         float* to;
///         std::size_t size;
///
///         template <class Thread>
///         MP_HOST_DEVICE void operator()(Thread thread) const {
///             const auto i = static_cast<std::size_t>(thread.block() * threads + thread.index());
///             if (i < size) thread.store(to + i, 1.0F);
///         }
///     };
///     mp::simt::launch("fill", mp::simulated_gpu<mp::arch::sm_80>{}, {.blocks = 4}, fill{data, 1000});
template <arch Arch, class Kernel>
void launch(std::string_view function, simulated_gpu<Arch> exec, const launch_size& size,
            const Kernel& kernel) {
    const cpu host{.threads = exec.threads};
    mp::detail::check_threads(function, host);
    if (exec.statistics != nullptr && exec.threads != 1) {
        mp::detail::throw_argument(function, "exec.threads", exec.threads,
                                   "must be 1 where exec.statistics counts accesses");
    }
    const launch_shape shape = shape_of_launch<Kernel>(function, size);
    const detail::host_settings settings{exec.seed, exec.stack_bytes, exec.statistics};
    std::vector<std::ptrdiff_t> order;
    for (std::ptrdiff_t block = 0; block < shape.blocks; block += shape.cluster_blocks) {
        order.push_back(block);
    }
    detail::schedule_random random(exec.seed);
    if (exec.seed != 0) {
        for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    }
    mp::detail::parallel_for(host, order.size(), 1, [&](std::size_t begin, std::size_t end) {
        // A device has gradual underflow whatever the program that simulates it has set.
        const mp::detail::default_floating_point_modes modes;
        detail::cluster cluster(shape, settings);
        for (std::size_t i = begin; i < end; ++i) {
            const std::uint64_t seed = exec.seed == 0 ? 0 : exec.seed * 1'000'003 + i + 1;
            cluster.run(order[i], seed, &detail::run_thread<Arch, Kernel>, &kernel);
        }
    });
}

}  // namespace mp::simt::inline MP_ISA_NAMESPACE
