// SPDX-License-Identifier: MIT
/// \file
/// The simulated GPU as an executor. Algorithms for GPUs launch kernels by the unqualified call
/// launch("mp::function", exec, simt::launch_size{...}, kernel), which finds mp::simt::launch by its
/// arguments.
#pragma once

#include <mp/device/simt/launch_recorder.hpp>
#include <mp/device/simt/simulated_gpu.hpp>
#include <mp/executor.hpp>
#include <mp/linalg/tensor_core/arch.hpp>

#include <cstddef>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <arch Arch>
struct is_gpu_executor<simulated_gpu<Arch>> : std::true_type {};

/// Zeros that are written again.
class recorded_clear final : public simt::launch_recorder::action {
public:
    recorded_clear(void* to, std::size_t bytes) : to_(to), bytes_(bytes) {}
    void run() const override { std::memset(to_, 0, bytes_); }

private:
    void* to_;
    std::size_t bytes_;
};

/// Global memory is that of the program.
template <arch Arch>
struct executor_memory<simulated_gpu<Arch>> {
    using executor = simulated_gpu<Arch>;
    static void copy_to_host(const executor& exec, void* to, const void* from, std::size_t bytes) {
        simt::launch_recorder::refuse_wait(exec.recorder, "a copy to the host");
        if (bytes != 0) std::memcpy(to, from, bytes);
    }
    static void copy_to_device(const executor& exec, void* to, const void* from, std::size_t bytes) {
        simt::launch_recorder::refuse_wait(exec.recorder, "a copy from the host's memory");
        if (bytes == 0) return;
        std::memcpy(to, from, bytes);
        note_written(exec, to, bytes);
    }
    static void clear(const executor& exec, void* to, std::size_t bytes) {
        if (bytes == 0) return;
        if (exec.recorder != nullptr && exec.recorder->recording()) {
            exec.recorder->add(std::make_unique<recorded_clear>(to, bytes));
        } else {
            std::memset(to, 0, bytes);
        }
        note_written(exec, to, bytes);
    }
    static std::shared_ptr<void> allocate(const executor& exec, std::size_t bytes) {
        std::shared_ptr<void> memory = allocate_pinned(exec, bytes);
        if (exec.checker == nullptr) return memory;
        void* const begin = memory.get();
        return exec.checker->watched(std::move(memory), begin, bytes);
    }
    static bool can_keep(const executor& exec) {
        return exec.recorder == nullptr || !exec.recorder->recording();
    }
    static const void* queue(const executor&) { return nullptr; }

    // Everything is done when it is enqueued.
    struct mark {};
    static std::shared_ptr<void> allocate_pinned(const executor&, std::size_t bytes) {
        constexpr std::size_t line = 256;  // as a device's allocations are aligned
        struct alignas(line) unit {
            std::byte bytes[line];
        };
        const std::shared_ptr<unit[]> units =
            std::make_shared_for_overwrite<unit[]>((bytes + line - 1) / line);
        return {units, units.get()};
    }
    static void copy_pinned(const executor& exec, void* to, const void* from, std::size_t bytes) {
        copy_to_device(exec, to, from, bytes);
    }
    static void record(const executor&, mark&) {}
    static void wait(const mark&) {}

private:
    static void note_written(const executor& exec, const void* to, std::size_t bytes) {
        if (exec.checker != nullptr) exec.checker->note_written(to, bytes);
    }
};

}}  // namespace mp::detail
