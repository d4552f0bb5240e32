// SPDX-License-Identifier: MIT
/// \file
/// The scales of all 8-bit operands of a model, which are updated together.
#pragma once

#include <mp/base/buffer_version.hpp>
#include <mp/base/device_range.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/scaling/amax_history.hpp>
#include <mp/train/training/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The delayed scales of all 8-bit tensors of a model. Layers add theirs when they are made, as they add parameters
/// to the mp::parameter_store that has this, and all move together, at the first forward pass of an iteration: on a
/// GPU in one launch, however many there are.
///
/// Histories of the host are what checkpoints see. On a GPU scales and windows are in its memory: they begin as the
/// host's, which are brought up to date by read(). The functions of GPUs are in <mp/nn/scaling/gpu/tensor_scaling.hpp>. Not
/// synchronised.
class tensor_scale_store {
public:
    /// Adds a scale that moves by `policy`, with a window of `length` iterations. Returns its number.
    ///
    /// \throws argument_error  the length is below 1, or a parameter of the policy is out of range
    /// \throws state_error     the others are in device memory already
    std::size_t add(std::int32_t length, const delayed_scaling& policy) {
        policy.validate();
        if (copies_ != nullptr) {
            detail::throw_error(state_error(
                "mp::tensor_scale_store::add: the scales are in device memory; add all of them before"));
        }
        entries_.push_back({amax_history(length), policy});
        return entries_.size() - 1;
    }
    [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
    /// Those of the host.
    [[nodiscard]] amax_history& history(std::size_t i) { return entries_[i].history; }
    /// In device memory, where the scales have been placed.
    [[nodiscard]] device_tensor_scale* on_device(std::size_t i) { return scales_.values().data() + i; }

    /// Makes the scales' device memory when it is first called.
    ///
    /// \throws argument_error  there is not enough device memory
    /// \throws state_error     the executor's work is captured into a graph
    template <gpu_executor Executor>
    void place(const Executor& exec) {
        if (copies_ != nullptr) return;
        const auto count = static_cast<std::ptrdiff_t>(entries_.size());
        std::ptrdiff_t length = 0;
        for (const entry& it : entries_) length += it.history.length();
        scales_.resize(exec, 1, count);
        windows_.resize(exec, 1, length);
        list_.resize(exec, 1, count);
        std::vector<device_amax_history> list;
        float* window = windows_.values().data();
        for (const entry& it : entries_) {
            list.push_back({on_device(list.size()), window, it.history.length(), it.policy});
            window += it.history.length();
        }
        list_.copy_from(exec, list);
        copies_ = std::make_unique<detail::executor_copies<Executor>>(exec);
        windows_on_device_ = std::move(list);
        write(0, size());
    }

    /// Has the writes of these weights tell iterations apart, see iteration().
    void follow(const buffer_version& weights) { weights_ = weights; }
    /// The number of writes of the weights that are followed: another one in every iteration, as steps advance the
    /// versions, skipped ones as well.
    [[nodiscard]] std::uint64_t iteration() const { return weights_.count(); }

    /// Ends the iteration before: all scales follow from their windows, which are rolled, as by
    /// amax_history::update(). `iteration` counts them; only the first call with a number does something, so that
    /// each layer may call. What is captured into a graph is an iteration by itself, for it runs again.
    ///
    /// A tensor that was not recorded since keeps scale and window. Errors as place(), and cuda_error.
    template <executor Executor>
    void update(const Executor& exec, std::uint64_t iteration) {
        bool captured = false;
        if constexpr (gpu_executor<Executor>) {
            captured = !detail::executor_memory<Executor>::can_keep(exec);
            place(exec);
        }
        const std::pair<std::uint64_t, bool> now{iteration, captured};
        if (begun_ && now == updated_) return;
        if constexpr (gpu_executor<Executor>) {
            update_scales(exec, list_.values().data(), static_cast<std::ptrdiff_t>(size()));
        } else {
            for (entry& it : entries_) it.history.update(it.policy);
        }
        updated_ = now;
        begun_ = true;
    }
    /// Takes what `count` tensors from the first on were measured to have into their windows on a GPU, as
    /// mp::record_amax.
    template <gpu_executor Executor>
    void record(const Executor& exec, std::size_t first, std::size_t count) {
        record_amax(exec, list_.values().data() + first, static_cast<std::ptrdiff_t>(count));
    }
    /// After loading: the next call of update() does something whatever its number.
    void forget() noexcept { begun_ = false; }

    /// Copies scales and windows of a GPU to the host's histories; waits. Does nothing where there are none.
    void read(std::size_t first, std::size_t count) {
        if (copies_ == nullptr) return;
        for (std::size_t i = first; i < first + count; ++i) {
            const amax_history_view it = history(i).view();
            device_tensor_scale scale;
            copies_->to_host(&scale, on_device(i), sizeof scale);
            copies_->to_host(it.history, windows_on_device_[i].window, window_bytes(i));
            *it.scale = scale.scale;
            *it.updates = scale.updates;
        }
    }
    /// The other way round.
    void write(std::size_t first, std::size_t count) {
        if (copies_ == nullptr) return;
        for (std::size_t i = first; i < first + count; ++i) {
            const amax_history_view it = history(i).view();
            const device_tensor_scale scale{.scale = *it.scale, .updates = *it.updates};
            copies_->to_device(on_device(i), &scale, sizeof scale);
            copies_->to_device(windows_on_device_[i].window, it.history, window_bytes(i));
        }
    }
    /// Bytes of device memory.
    [[nodiscard]] std::size_t bytes() const noexcept {
        return scales_.bytes() + windows_.bytes() + list_.bytes();
    }

private:
    struct entry {
        amax_history history;
        delayed_scaling policy;
    };
    [[nodiscard]] std::size_t window_bytes(std::size_t i) const {
        return static_cast<std::size_t>(entries_[i].history.length()) * sizeof(float);
    }

    std::vector<entry> entries_;
    buffer_version weights_;
    std::pair<std::uint64_t, bool> updated_{};
    bool begun_ = false;
    tensor<device_tensor_scale> scales_{};
    tensor<float> windows_{};
    tensor<device_amax_history> list_{};
    std::vector<device_amax_history> windows_on_device_{};  ///< list_
    std::unique_ptr<const detail::memory_copies> copies_;
};

}}  // namespace mp
