// SPDX-License-Identifier: MIT
/// \file
/// Block-scaled matrices back to matrices of numbers, on a GPU.
#pragma once

#include <mp/arrays/convert/block_quantizer.hpp>
#include <mp/arrays/convert/dequantize.hpp>
#include <mp/device/gpu/block_scaled_span.hpp>
#include <mp/device/gpu/block_vector_walk.hpp>
#include <mp/device/gpu/row_access.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/format/exact.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/float_functions.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class BlockScaled, class Value>
struct block_dequantize_kernel {
    using element = typename BlockScaled::element_type;
    using scale = typename BlockScaled::scale_type;
    using walk = block_vector_walk<BlockScaled, Value>;
    static constexpr int threads = row_threads;
    static constexpr int width = walk::width;
    static_assert(BlockScaled::block_size % width == 0, "mp: on a GPU blocks have a multiple of 8 elements");
    walk out;
    const float* tensor_scale;  ///< null for 1

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        using group = gpu::warp_group;
        const std::ptrdiff_t across = out.across();
        for (std::ptrdiff_t i = group::number(thread); i < out.count * across; i += group::count(thread)) {
            const std::ptrdiff_t vector = i / across;
            const std::ptrdiff_t position =
                (i - vector * across) * walk::warp_elements + thread.lane() * width;
            const std::uint64_t codes = walk::packed::load(thread, out.bytes_at(vector, position),
                                                           out.used_bytes(position), out.is_whole(position));
            if (position >= out.length) continue;
            const scale by = thread.load(
                out.scales + (vector * out.blocks_per_vector + position / BlockScaled::block_size));
            chunk<Value, width> values;
            if constexpr (BlockScaled::has_tensor_scale) {
                // Exact: an element has up to 7 bits, a scale up to 8 and a float 24.
                const double factor =
                    double_from_float(static_cast<float>(by)) * double_from_float(thread.load(tensor_scale));
                for (int k = 0; k < width; ++k) {
                    const float x = element_at(codes, k);
                    const double product = double_from_float(x) * factor;
                    values.values[k] = is_scale_nan(by)  ? static_cast<Value>(float_quiet_nan())
                                       : is_float_nan(x) ? static_cast<Value>(x)
                                                         : rounded_from(product);
                }
            } else {
                // 2^-127 and subnormal products included, exact in float except for overflow, which is the same
                // in all formats that are as wide or narrower.
                const auto code = static_cast<std::uint32_t>(by.bits());
                const float factor = power_of_two_scale(code);
                for (int k = 0; k < width; ++k) {
                    const float x = element_at(codes, k);
                    values.values[k] = static_cast<Value>(is_scale_nan(by)  ? float_quiet_nan()
                                                          : is_float_nan(x) ? x
                                                                            : float_multiply(x, factor));
                }
            }
            store(thread, vector, position, values);
        }
    }

private:
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE static float element_at(std::uint64_t codes, int k) {
        constexpr int bits = BlockScaled::element_width;
        return static_cast<float>(element::from_bits(
            static_cast<std::uint8_t>((codes >> (k * bits)) & ((std::uint64_t{1} << bits) - 1))));
    }
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE static bool is_scale_nan(scale by) {
        return categorize<typename scale::format>(by.bits()) == category::nan;
    }
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE static Value rounded_from(double x) {
        if constexpr (std::is_same_v<Value, float>) {
            return float_from_double(x);
        } else {
            return static_cast<Value>(x);
        }
    }
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void store(Thread thread, std::ptrdiff_t vector, std::ptrdiff_t position,
                                               const chunk<Value, width>& values) const {
        Value* at =
            out.vectors.data + (vector * out.vectors.row_stride + position * out.vectors.column_stride);
        if (out.vectors.wide && position + width <= out.length) {
            thread.store(reinterpret_cast<chunk<Value, width>*>(at), values);
            return;
        }
        MP_UNROLL
        for (int k = 0; k < width; ++k) {
            if (position + k < out.length) thread.store(at + k * out.vectors.column_stride, values.values[k]);
        }
    }
};

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Writes the values of a block-scaled matrix in device memory on a GPU, with the bits of mp::dequantize on
/// the CPU: the exact product of element, block scale and tensor scale, rounded once to nearest even. `to` is
/// of float or of a format that float holds, in any layout; layouts are as for quantize(). Throws
/// argument_error, with nothing enqueued, if sizes differ or a view or span is none.
template <gpu_executor Executor, class BlockScaled, class Value>
    requires(number<Value> && !std::is_const_v<Value>)
void dequantize(Executor exec, const block_scaled_span<BlockScaled>& from, matrix_view<Value> to) {
    static_assert(std::is_same_v<detail::block_wide<Value>, float>,
                  "mp: on a GPU matrices are dequantised to float, or to formats that float holds");
    constexpr std::string_view function = "mp::dequantize";
    detail::check_block_view(function, "to", to);
    detail::check_block_span(function, "from", from, "to", to.rows, to.columns);
    if (to.rows == 0 || to.columns == 0) return;
    const detail::block_vector_walk<BlockScaled, Value> walk(to, from);
    launch(function, exec, walk.launch(),
           detail::block_dequantize_kernel<BlockScaled, Value>{walk, from.tensor_scale});
}

}}  // namespace mp
