// SPDX-License-Identifier: MIT
/// \file
/// What a layer with products of 8 bits keeps on a GPU: codes of its operands.
#pragma once

#include <mp/config.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/train/training/tensor.hpp>

#include <cstddef>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

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

}}  // namespace mp::detail
