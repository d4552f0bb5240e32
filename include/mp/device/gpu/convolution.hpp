// SPDX-License-Identifier: MIT
/// \file
/// What the convolution of images needs on a GPU beside matrix products: the patches that kernels see
/// (im2col), their transpose (col2im), and sums over images in their order.
#pragma once

#include <mp/config.hpp>
#include <mp/device/gpu/reductions.hpp>
#include <mp/device/gpu/row_access.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/float_float.hpp>

#include <cstddef>
#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The numbers of a convolution along one side of the image.
struct window_side {
    std::ptrdiff_t size;  ///< of the image
    std::ptrdiff_t kernel;
    std::ptrdiff_t stride;
    std::ptrdiff_t padding;
    std::ptrdiff_t dilation;
    std::ptrdiff_t places;  ///< of the output

    /// The place whose kernel cell `cell` reads this row (column) of the image, or -1.
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE std::ptrdiff_t place_of(std::ptrdiff_t at,
                                                                          std::ptrdiff_t cell) const {
        const std::ptrdiff_t shift = at + padding - cell * dilation;
        if (shift < 0) return -1;
        // Below 2^32, as every number of a geometry is below 2^31; division of 64 bits is slow on GPUs.
        const auto distance = static_cast<std::uint32_t>(shift);
        const auto step = static_cast<std::uint32_t>(stride);
        const std::ptrdiff_t place = distance / step;
        return distance % step == 0 && place < places ? place : -1;
    }
};

/// Where the patches of a group of channels lie: for each image a matrix of patch cells x output positions,
/// row after row, `pitch` elements from one row to the next.
struct patch_layout {
    window_side down;
    window_side across;
    std::ptrdiff_t channels;  ///< of the group
    std::ptrdiff_t pitch;

    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE std::ptrdiff_t cells() const {
        return channels * down.kernel * across.kernel;
    }
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE std::ptrdiff_t positions() const {
        return down.places * across.places;
    }
    /// Elements from one image's matrix to the next.
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE std::ptrdiff_t image_stride() const {
        return cells() * pitch;
    }
};

/// Row and column of every 32nd element of a matrix of `width` columns, without divisions in the loop.
struct strided_place {
    std::ptrdiff_t row;
    std::ptrdiff_t column;

    MP_HOST_DEVICE MP_ALWAYS_INLINE strided_place(std::ptrdiff_t first, std::ptrdiff_t width)
        : row(first / width),
          column(first % width),
          rows_(simt::warp_size / width),
          columns_(simt::warp_size % width),
          width_(width) {}
    MP_HOST_DEVICE MP_ALWAYS_INLINE void advance() {
        row += rows_;
        column += columns_;
        if (column < width_) return;
        column -= width_;
        ++row;
    }

private:
    std::ptrdiff_t rows_;
    std::ptrdiff_t columns_;
    std::ptrdiff_t width_;
};

/// Writes the patches of images. Each warp takes rows of the matrices, one cell of the kernel each.
template <class X, class Patch>
struct unfold_kernel {
    static constexpr int threads = row_threads;
    patch_layout layout;
    row_matrix<const X> x;         ///< the images
    std::ptrdiff_t first_element;  ///< of the group's first channel in an image
    std::ptrdiff_t images;
    Patch* patches;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        using group = gpu::warp_group;
        const std::ptrdiff_t cells = layout.cells();
        for (std::ptrdiff_t row = group::number(thread); row < images * cells; row += group::count(thread)) {
            const std::ptrdiff_t image = row / cells;
            const std::ptrdiff_t cell = row % cells;
            const std::ptrdiff_t j = cell % layout.across.kernel;
            const std::ptrdiff_t i = cell / layout.across.kernel % layout.down.kernel;
            const std::ptrdiff_t channel = cell / (layout.across.kernel * layout.down.kernel);
            const std::ptrdiff_t top = i * layout.down.dilation - layout.down.padding;
            const std::ptrdiff_t left = j * layout.across.dilation - layout.across.padding;
            const X* const from = x.data + image * x.row_stride;
            Patch* const to = patches + row * layout.pitch;
            strided_place place(thread.lane(), layout.across.places);
            for (std::ptrdiff_t at = thread.lane(); at < layout.positions(); at += simt::warp_size) {
                const std::ptrdiff_t r = top + place.row * layout.down.stride;
                const std::ptrdiff_t c = left + place.column * layout.across.stride;
                Patch value{};
                if (r >= 0 && r < layout.down.size && c >= 0 && c < layout.across.size) {
                    const std::ptrdiff_t element =
                        first_element + (channel * layout.down.size + r) * layout.across.size + c;
                    value = static_cast<Patch>(thread.load(from + element * x.column_stride));
                }
                thread.store(to + at, value);
                place.advance();
            }
        }
    }
};

/// Writes images: every cell is the sum in float of the elements of patches that stand for it, in the order
/// of the matrix, rounded once. Each warp takes channels of images.
template <class X>
struct fold_kernel {
    static constexpr int threads = row_threads;
    patch_layout layout;
    const float* patches;  ///< or null where there are none, so that sums are zero
    row_matrix<X> x;
    std::ptrdiff_t first_element;
    std::ptrdiff_t images;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        using group = gpu::warp_group;
        const std::ptrdiff_t size = layout.down.size * layout.across.size;
        for (std::ptrdiff_t number = group::number(thread); number < images * layout.channels;
             number += group::count(thread)) {
            const std::ptrdiff_t image = number / layout.channels;
            const std::ptrdiff_t channel = number % layout.channels;
            const float* const from = patches + image * layout.image_stride() +
                                      channel * layout.down.kernel * layout.across.kernel * layout.pitch;
            X* const to = x.data + image * x.row_stride;
            strided_place place(thread.lane(), layout.across.size);
            for (std::ptrdiff_t at = thread.lane(); at < size; at += simt::warp_size) {
                const float sum = patches == nullptr ? 0.0F : sum_of(thread, from, place.row, place.column);
                thread.store(to + (first_element + channel * size + at) * x.column_stride,
                             static_cast<X>(sum));
                place.advance();
            }
        }
    }

private:
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE float sum_of(Thread thread, const float* from,
                                                               std::ptrdiff_t row,
                                                               std::ptrdiff_t column) const {
        float sum = 0.0F;
        for (std::ptrdiff_t i = 0; i < layout.down.kernel; ++i) {
            const std::ptrdiff_t r = layout.down.place_of(row, i);
            if (r < 0) continue;
            for (std::ptrdiff_t j = 0; j < layout.across.kernel; ++j) {
                const std::ptrdiff_t c = layout.across.place_of(column, j);
                if (c < 0) continue;
                const float* const at =
                    from + ((i * layout.across.kernel + j) * layout.pitch + r * layout.across.places + c);
                sum = float_add(sum, thread.load(at));
            }
        }
        return sum;
    }
};

/// Adds the matrices of some images, one after the other in their order, to totals in float; writes the
/// totals, or with the last images the result, rounded once.
template <class Result>
struct image_totals_kernel {
    static constexpr int threads = row_threads;
    const float* of_images;  ///< rows x columns each
    float* totals;           ///< rows x columns
    row_matrix<Result> result;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    std::ptrdiff_t images;
    bool is_first;
    bool is_last;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        const std::ptrdiff_t size = rows * columns;
        for (std::ptrdiff_t i = thread.block() * threads + thread.index(); i < size;
             i += thread.blocks() * threads) {
            float total = is_first ? 0.0F : thread.load(static_cast<const float*>(totals) + i);
            for (std::ptrdiff_t n = 0; n < images; ++n) {
                total = float_add(total, thread.load(of_images + (n * size + i)));
            }
            if (is_last) {
                thread.store(
                    result.data + (i / columns * result.row_stride + i % columns * result.column_stride),
                    static_cast<Result>(total));
            } else {
                thread.store(totals + i, total);
            }
        }
    }
};

/// Writes the sum of each output channel over all images: a block a channel.
template <class DY, class Result>
struct channel_sums_kernel {
    static constexpr int threads = row_threads;
    row_matrix<const DY> dy;
    std::ptrdiff_t images;
    std::ptrdiff_t positions;
    std::ptrdiff_t channels;
    Result* sums;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        using group = gpu::block_group<threads>;
        for (std::ptrdiff_t channel = group::number(thread); channel < channels;
             channel += group::count(thread)) {
            float_float sum{};
            for (std::ptrdiff_t n = 0; n < images; ++n) {
                const DY* const from = dy.data + (n * dy.row_stride + channel * positions * dy.column_stride);
                for (std::ptrdiff_t i = thread.index(); i < positions; i += threads) {
                    sum = sum + static_cast<float>(thread.load(from + i * dy.column_stride));
                }
            }
            sum = group::reduce(thread, sum, add_pairs{});
            if (thread.index() == 0) thread.store(sums + channel, static_cast<Result>(sum.value()));
        }
    }
};

}}  // namespace mp::detail
