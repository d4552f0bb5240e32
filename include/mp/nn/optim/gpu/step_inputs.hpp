// SPDX-License-Identifier: MIT
/// \file
/// What the host gives to every step: fixed places in device memory, filled while the device works.
#pragma once

#include <mp/device/gpu/device_value.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/workspace.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>

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

}}  // namespace mp
