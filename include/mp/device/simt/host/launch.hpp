// SPDX-License-Identifier: MIT
/// \file
/// Launching a kernel on the host.
#pragma once

#include <mp/base/parallel.hpp>
#include <mp/device/simt/host/cluster.hpp>
#include <mp/device/simt/host/global_memory.hpp>
#include <mp/device/simt/host/wgmma_operations.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/device/simt/launch_recorder.hpp>
#include <mp/device/simt/simulated_gpu.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

template <arch Arch, class Kernel>
void run_thread(const void* kernel, thread_state& state) {
    state.is_dependent = waiting_kernel<Kernel>;
    (*static_cast<const Kernel*>(kernel))(simulated_thread<Arch>(state));
    if constexpr (waiting_kernel<Kernel>) check_has_waited(*state.owner, state);
}

/// A launch, which is the same for all kernels.
struct grid_launch {
    std::string_view function;
    cpu host;
    host_settings settings;
    memory_checker* checker;
    launch_shape shape;
    void (*thread)(const void*, thread_state&);
    const void* kernel;
};

/// Runs the clusters of a grid.
inline void run_grid(const grid_launch& it) {
    mp::detail::check_threads(it.function, it.host);
    host_settings settings = it.settings;
    if (settings.statistics != nullptr && it.host.threads != 1) {
        mp::detail::throw_argument(it.function, "exec.threads", it.host.threads,
                                   "must be 1 where exec.statistics counts accesses");
    }
    if (it.checker != nullptr && it.host.threads != 1) {
        mp::detail::throw_argument(it.function, "exec.threads", it.host.threads,
                                   "must be 1 where exec.checker watches memory");
    }
    std::optional<global_memory> global;
    settings.function = it.function;
    if (it.checker != nullptr) settings.global = &global.emplace(*it.checker, settings.equal_writes);
    std::vector<std::ptrdiff_t> order;
    for (std::ptrdiff_t block = 0; block < it.shape.blocks; block += it.shape.cluster_blocks) {
        order.push_back(block);
    }
    schedule_random random(settings.seed);
    if (settings.seed != 0) {
        for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    }
    mp::detail::parallel_for(it.host, order.size(), 1, [&](std::size_t begin, std::size_t end) {
        // A device has gradual underflow whatever the program that simulates it has set.
        const mp::detail::default_floating_point_modes modes;
        cluster blocks(it.shape, settings);
        for (std::size_t i = begin; i < end; ++i) {
            const std::uint64_t seed = settings.seed == 0 ? 0 : settings.seed * 1'000'003 + i + 1;
            blocks.run(order[i], seed, it.thread, it.kernel);
        }
    });
}

/// A recorded launch, with a copy of its kernel.
class recorded_grid final : public launch_recorder::action {
public:
    recorded_grid(const grid_launch& it, std::size_t bytes)
        : it_(it),
          function_(it.function),
          kernel_(std::make_unique<line[]>((bytes + sizeof(line) - 1) / sizeof(line))) {
        std::memcpy(kernel_.get(), it.kernel, bytes);
        it_.function = function_;
        it_.kernel = kernel_.get();
    }
    void run() const override { run_grid(it_); }

private:
    struct alignas(128) line {  // as aligned as any kernel is
        std::byte bytes[128];
    };
    grid_launch it_;
    std::string function_;
    std::unique_ptr<line[]> kernel_;
};

/// The properties of a kernel that launches on the host depend on.
struct kernel_facts {
    int threads;
    int cluster_blocks;
    int resident_blocks;
    std::size_t bytes;
    void (*thread)(const void* kernel, thread_state&);
};

/// Runs a launch, or records it.
template <arch Arch>
void launch_grid(std::string_view function, const simulated_gpu<Arch>& gpu, const launch_size& size,
                 const kernel_facts& facts, const void* kernel) {
    const host_settings settings{gpu.seed,         gpu.stack_bytes,
                                 gpu.statistics,   function,
                                 gpu.equal_writes, registers_at_launch(facts.threads, facts.resident_blocks)};
    const grid_launch it{function,
                         cpu{.threads = gpu.threads},
                         settings,
                         gpu.checker,
                         shape_of_launch(function, size, facts.threads, facts.cluster_blocks),
                         facts.thread,
                         kernel};
    if (gpu.recorder != nullptr && gpu.recorder->recording()) {
        gpu.recorder->add(std::make_unique<recorded_grid>(it, facts.bytes));
    } else {
        run_grid(it);
    }
}

}}  // namespace mp::simt::detail

namespace mp::simt { inline namespace MP_ISA_NAMESPACE {

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
void launch(std::string_view function, const simulated_gpu<Arch>& exec, const launch_size& size,
            const Kernel& kernel) {
    check_kernel<Kernel>();
    static_assert(alignof(Kernel) <= 128);
    static constexpr detail::kernel_facts facts{Kernel::threads, cluster_blocks_of<Kernel>(),
                                                resident_blocks_of<Kernel>(), sizeof(Kernel),
                                                &detail::run_thread<Arch, Kernel>};
    detail::launch_grid(function, exec, size, facts, &kernel);
}

}}  // namespace mp::simt
