// SPDX-License-Identifier: MIT
/// \file
/// A step that is enqueued launch by launch once, and as one graph from then on; what the host gives to every step, in
/// fixed places of device memory that are filled while the device works; and the losses of the steps, which stay on the
/// device until they are read.
#pragma once

#include <mp/base/replayed_work.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/device_value.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/device/simt/launch_recorder.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/workspace.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Batches of tokens, learning rates and counters that a captured step reads: arrays at fixed places in
/// device memory, which one copy fills. The host writes into pinned memory, of which there are two pieces by
/// turns, so that it prepares a step while the device does the one before; it waits only where it is two
/// steps ahead.
///
///     mp::step_inputs inputs(stream);
///     const auto ids = inputs.add<int>(batch * context);
///     const auto rate = inputs.add<double>(1);
///     inputs.build();
///     for (...) {
///         draw(inputs.host(ids));                       // all of them, for each step
///         inputs.host(rate)[0] = schedule.at(step);
///         inputs.send();                                // enqueued
///         step.run([&] { forward(inputs.device(ids)); ... });
///     }
///
/// Moves neither, nor is it copied. Not synchronised.
template <gpu_executor Executor>
class step_inputs {
    static constexpr std::string_view function = "mp::step_inputs";
    using memory = detail::executor_memory<Executor>;

public:
    /// An array among the inputs.
    template <class Value>
    struct place {
        std::size_t offset = 0;
        std::size_t count = 0;
    };

    explicit step_inputs(Executor exec) : exec_(exec) {}
    step_inputs(const step_inputs&) = delete;
    step_inputs& operator=(const step_inputs&) = delete;
    /// Waits until nothing is read any more.
    ~step_inputs() {
        for (const piece& it : pieces_) {
            static_cast<void>(detail::exception_of([&] { memory::wait(it.passed); }));
        }
    }

    /// An array of `count` values. Throws state_error after build(), whose memory has no place for it.
    template <class Value>
    place<Value> add(std::size_t count) {
        static_assert(std::is_trivially_copyable_v<Value>);
        if (device_ != nullptr) {
            detail::throw_error(
                state_error("mp::step_inputs::add: the memory is there already; add before build()"));
        }
        const place<Value> made{bytes_, count};
        bytes_ += workspace::aligned_size(count * sizeof(Value));
        return made;
    }
    /// Makes the memory, of zeros. Throws argument_error where there is none. The functions below throw state_error before it.
    void build() {
        device_ = require(memory::allocate(exec_, bytes_));
        memory::clear(exec_, device_.get(), bytes_);
        for (piece& it : pieces_) it.host = require(memory::allocate_pinned(exec_, bytes_));
    }

    /// Where the host writes what the next step reads. It has what was written two steps before.
    template <class Value>
    [[nodiscard]] std::span<Value> host(const place<Value>& it) {
        check_built("host");
        if (!free_) {
            memory::wait(pieces_[next_].passed);
            free_ = true;
        }
        return at<Value>(pieces_[next_].host.get(), it);
    }
    /// Where kernels read.
    template <class Value>
    [[nodiscard]] std::span<const Value> device(const place<Value>& it) const {
        check_built("device");
        return at<Value>(device_.get(), it);
    }

    /// Enqueues the copy to the device. Throws cuda_error.
    void send() {
        check_built("send");
        if (!free_) memory::wait(pieces_[next_].passed);
        memory::copy_pinned(exec_, device_.get(), pieces_[next_].host.get(), bytes_);
        memory::record(exec_, pieces_[next_].passed);
        next_ = 1 - next_;
        free_ = false;
    }

private:
    struct piece {
        std::shared_ptr<void> host;
        typename memory::mark passed;
    };
    template <class Value>
    static std::span<Value> at(void* begin, const place<Value>& it) {
        return {reinterpret_cast<Value*>(static_cast<std::byte*>(begin) + it.offset), it.count};
    }
    void check_built(std::string_view member) const {
        if (device_ != nullptr) return;
        detail::throw_joined<state_error>({function, "::", member, ": build() has not been called"});
    }
    std::shared_ptr<void> require(std::shared_ptr<void> made) const {
        if (made == nullptr) detail::throw_argument(function, "bytes of memory", bytes_, "must be available");
        return made;
    }

    Executor exec_;
    std::size_t bytes_ = 0;
    std::shared_ptr<void> device_;
    std::array<piece, 2> pieces_;
    std::size_t next_ = 0;
    bool free_ = false;
};

template <gpu_executor Executor>
step_inputs(const Executor&) -> step_inputs<detail::executor_handle_t<Executor>>;

/// Runs one step again and again. The first time body() is called as it is, so that memory grows to what a
/// step needs; the second time what it enqueues is captured into a graph; from then on the graph is launched,
/// which costs the host some microseconds however many kernels there are.
///
///     mp::replayed_step step(stream);
///     for (...) {
///         inputs.send();                                   // mp::step_inputs: tokens, learning rate, counters
///         step.run([&] { forward(); backward(); iteration.finish(); });
///     }
///
/// body() always does the same: it neither waits for the device nor looks at results, and what changes from
/// step to step it has kernels read from device memory. What it uses stays where it is: its workspace must not
/// grow later, so what runs beside it takes another one. An autocast region around it says
/// {.keep_casts = false}: casts that are kept in the first step would not be in the workspace.
///
/// Launches advance the versions of weights as the steps of optimizers in body() do, and follow weights that something
/// else has written meanwhile. Optimizers and stores that body() uses must outlive this object.
///
/// \tparam Executor  cuda_stream; or a simulated_gpu, with a recorder
template <gpu_executor Executor>
class replayed_step {
public:
    explicit replayed_step(Executor exec) : exec_(exec) {}

    /// Throws what body() throws, and errors of the capture: cuda_error, or those of simulated_graph.
    template <class Body>
    void run(Body&& body) {
        if (runs_ == 0) {
            record([&] { body(); });
        } else {
            for (detail::replayed_work* it : work_) it->before_replay();
            if (runs_ == 1) record([&] { graph_.capture(exec_, body); });
            graph_.launch(exec_);
            for (detail::replayed_work* it : work_) it->after_replay();
        }
        runs_ = runs_ == 0 ? 1 : 2;
    }

    /// The step will be another one, of other sizes or options: it begins as at first.
    void forget() noexcept { runs_ = 0; }

    /// Launches in the graph; 0 before it is captured.
    [[nodiscard]] std::size_t nodes() const noexcept { return graph_.nodes(); }

private:
    Executor exec_;
    typename detail::graph_of<Executor>::type graph_;
    template <class Function>
    void record(const Function& enqueue) {
        work_.clear();
        const detail::replayed_work::recorder recorder(work_);
        enqueue();
    }

    std::vector<detail::replayed_work*> work_;  ///< that body() enqueues
    int runs_ = 0;                              ///< 0: none, 1: one, 2: captured
};

template <gpu_executor Executor>
replayed_step(const Executor&) -> replayed_step<detail::executor_handle_t<Executor>>;

}}  // namespace mp

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
