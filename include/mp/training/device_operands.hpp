// SPDX-License-Identifier: MIT
/// \file
/// What a layer with products of 8 bits keeps on a GPU: codes of its operands, and scales with their windows.
#pragma once

#include <mp/config.hpp>
#include <mp/detail/device_range.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/scaling/amax_history.hpp>
#include <mp/scaling/device_tensor_scale.hpp>
#include <mp/training/tensor.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// The codes of a matrix and of its transpose, whose rows begin at multiples of 16 bytes, as wgmma wants them.
template <class Format>
class device_codes {
public:
    template <gpu_executor Executor>
    void resize(const Executor& exec, std::ptrdiff_t rows, std::ptrdiff_t columns) {
        codes_.resize(exec, rows, padded(columns));
        turned_.resize(exec, columns, padded(rows));
        rows_ = rows;
        columns_ = columns;
    }
    [[nodiscard]] matrix_view<Format> view() {
        return row_major(codes_.values().data(), rows_, columns_, padded(columns_));
    }
    [[nodiscard]] matrix_view<Format> turned() {
        return row_major(turned_.values().data(), columns_, rows_, padded(rows_));
    }
    [[nodiscard]] std::ptrdiff_t rows() const noexcept { return rows_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return codes_.bytes() + turned_.bytes(); }

private:
    static std::ptrdiff_t padded(std::ptrdiff_t size) { return (size + 15) / 16 * 16; }

    tensor<Format> codes_{}, turned_{};
    std::ptrdiff_t rows_ = 0;
    std::ptrdiff_t columns_ = 0;
};

/// The scales of some operands in device memory. Histories of the host are what checkpoints see: they are where it
/// begins, are brought up to date before they are saved, and go to the device after they were loaded.
template <std::size_t Count>
class device_scales {
public:
    using histories = std::array<amax_history*, Count>;

    /// Makes the memory when it is first asked for.
    template <gpu_executor Executor>
    void place(const Executor& exec, const histories& begin) {
        if (scales_.on_device()) return;
        scales_.resize(exec, 1, static_cast<std::ptrdiff_t>(Count));
        windows_.resize(exec, static_cast<std::ptrdiff_t>(Count), begin[0]->length());
        copies_ = std::make_unique<executor_copies<Executor>>(exec);
        write(begin);
    }
    [[nodiscard]] bool exist() const noexcept { return copies_ != nullptr; }
    [[nodiscard]] device_tensor_scale* operator[](std::size_t i) { return scales_.values().data() + i; }
    [[nodiscard]] device_amax_history history(std::size_t i, const delayed_scaling& policy) {
        const std::ptrdiff_t length = windows_.columns();
        return {(*this)[i], windows_.values().data() + static_cast<std::ptrdiff_t>(i) * length,
                static_cast<std::int32_t>(length), policy};
    }

    void write(const histories& from) {
        std::array<device_tensor_scale, Count> scales{};
        for (std::size_t i = 0; i < Count; ++i) {
            const amax_history_view it = from[i]->view();
            scales[i].scale = *it.scale;
            scales[i].updates = *it.updates;
            const device_amax_history there = history(i, {});
            copies_->to_device(there.window, it.history, static_cast<std::size_t>(it.length) * sizeof(float));
        }
        copies_->to_device(scales_.values().data(), scales.data(), sizeof scales);
    }
    /// Waits.
    void read(const histories& to) {
        std::array<device_tensor_scale, Count> scales;
        copies_->to_host(scales.data(), scales_.values().data(), sizeof scales);
        for (std::size_t i = 0; i < Count; ++i) {
            const amax_history_view it = to[i]->view();
            *it.scale = scales[i].scale;
            *it.updates = scales[i].updates;
            const device_amax_history there = history(i, {});
            copies_->to_host(it.history, there.window, static_cast<std::size_t>(it.length) * sizeof(float));
        }
    }
    [[nodiscard]] std::size_t bytes() const noexcept { return scales_.bytes() + windows_.bytes(); }

private:
    tensor<device_tensor_scale> scales_{};
    tensor<float> windows_{};
    std::unique_ptr<const memory_copies> copies_;
};

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
