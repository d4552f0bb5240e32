// SPDX-License-Identifier: MIT
/// \file
/// Losses that stay on the device until somebody wants to read them.
#pragma once

#include <mp/config.hpp>
#include <mp/device/gpu/device_value.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Adds up losses in their order, as the next entry of a ring that is behind its count.
struct log_loss_kernel {
    static constexpr int threads = 32;
    const float* losses;
    std::uint64_t parts;
    std::uint64_t capacity;
    std::uint64_t* count;
    double* ring;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        if (thread.index() != 0) return;
        double sum = 0.0;
        for (std::uint64_t i = 0; i < parts; ++i) {
            sum = double_add(sum, double_from_float(thread.load(losses + i)));
        }
        const std::uint64_t number = thread.load(count);
        thread.store(ring + number % capacity, sum);
        thread.store(count, number + 1);
    }
};

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The losses of the last steps, in device memory: a step adds its own, also from a captured graph, and the
/// host waits for the device only where it reads them, when a line is printed.
///
///     mp::gpu_loss_log log(stream, 64);
///     step.run([&] { ...; log.add({losses.data(), micro_batches}); });
///     if ((i + 1) % 50 == 0) for (const double loss : log.read()) ...
///
/// Copies share the memory on the device.
template <gpu_executor Executor>
class gpu_loss_log {
public:
    /// `capacity` is in steps. Throws argument_error for 0, and where there is no device memory.
    gpu_loss_log(Executor exec, std::size_t capacity)
        : exec_(exec), capacity_(capacity), memory_("mp::gpu_loss_log", exec, capacity + 1) {
        if (capacity == 0) {
            detail::throw_argument("mp::gpu_loss_log", "capacity", capacity, "must be at least 1");
        }
        detail::executor_memory<Executor>::clear(exec, memory_.data(),
                                                 (capacity + 1) * sizeof(std::uint64_t));
    }

    [[nodiscard]] std::size_t capacity() const { return capacity_; }

    /// Enqueues the sum of losses in device memory, those of micro batches say, as that of a step.
    void add(std::span<const float> losses) {
        launch("mp::gpu_loss_log::add", exec_, simt::launch_size{},
               detail::log_loss_kernel{losses.data(), losses.size(), capacity_, &memory_.data()->bits,
                                       reinterpret_cast<double*>(memory_.data() + 1)});
    }

    /// Those since the last call, oldest first; the last capacity() of them if there were more. Waits.
    [[nodiscard]] std::vector<double> read() {
        std::vector<std::uint64_t> words(capacity_ + 1);
        detail::executor_memory<Executor>::copy_to_host(exec_, words.data(), memory_.data(),
                                                        words.size() * sizeof(std::uint64_t));
        const std::uint64_t end = words[0];
        std::vector<double> result;
        for (std::uint64_t i = end - (std::min<std::uint64_t>)(end - read_, capacity_); i != end; ++i) {
            double value = 0;
            std::memcpy(&value, &words[1 + i % capacity_], sizeof value);
            result.push_back(value);
        }
        read_ = end;
        return result;
    }

private:
    Executor exec_;
    std::size_t capacity_;
    struct word {
        std::uint64_t bits;
    };
    detail::device_values<Executor, word> memory_;  // the count, and the ring
    std::uint64_t read_ = 0;
};

template <gpu_executor Executor>
gpu_loss_log(const Executor&, std::size_t) -> gpu_loss_log<detail::executor_handle_t<Executor>>;

}}  // namespace mp
