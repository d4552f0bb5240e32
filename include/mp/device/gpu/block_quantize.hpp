// SPDX-License-Identifier: MIT
/// \file
/// Matrices of numbers to block-scaled ones and back on a GPU, also with scales that do not follow from the largest magnitude of
/// one block alone: those of square tiles, and the better one of two by its error, with the bits of
/// <mp/arrays/convert/block_scale_search.hpp>.
#pragma once

#include <mp/arrays/convert/block_quantizer.hpp>
#include <mp/arrays/convert/dequantize.hpp>
#include <mp/arrays/convert/number_range.hpp>
#include <mp/device/gpu/block_encoding.hpp>
#include <mp/device/gpu/block_scaled_span.hpp>
#include <mp/device/gpu/block_vector_walk.hpp>
#include <mp/device/gpu/row_access.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/error.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/format/classification.hpp>
#include <mp/numbers/format/exact.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/format/philox.hpp>
#include <mp/numbers/rules/block_scales.hpp>
#include <mp/numbers/rules/float_functions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A thread has a block. Neighbouring threads have the blocks of a tile, and combine what they find by shuffles.
template <class BlockScaled, class Value>
struct block_scale_kernel {
    using element = typename BlockScaled::element_type;
    using scale = typename BlockScaled::scale_type;
    static constexpr int threads = row_threads;
    static constexpr int block = BlockScaled::block_size;
    static constexpr int width = (std::min)(row_chunk<Value>, block);

    row_matrix<const Value> vectors;
    std::ptrdiff_t count;
    std::ptrdiff_t length;
    scale* scales;
    const float* tensor_scale;  ///< null for 1
    block_scale_choice<BlockScaled> choice;
    int height;  ///< blocks of a tile, 1 or block

    [[nodiscard]] MP_HOST_DEVICE std::ptrdiff_t blocks_per_vector() const {
        return (length + block - 1) / block;
    }
    /// Threads that have work, or would have if the last tiles were whole.
    [[nodiscard]] MP_HOST_DEVICE std::ptrdiff_t items() const {
        return (count + height - 1) / height * height * blocks_per_vector();
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        float tensor = 1.0F;
        if constexpr (BlockScaled::has_tensor_scale) tensor = thread.load(tensor_scale);
        const std::ptrdiff_t step = thread.blocks() * threads;
        // All lanes of a warp repeat the loop equally often.
        for (std::ptrdiff_t first = thread.block() * threads + thread.index() - thread.lane();
             first < items(); first += step) {
            const std::ptrdiff_t item = first + thread.lane();
            const std::ptrdiff_t tile = item / height;
            const std::ptrdiff_t vector = tile / blocks_per_vector() * height + item % height;
            const std::ptrdiff_t b = tile % blocks_per_vector();
            const bool exists = item < items() && vector < count;
            double magnitudes[std::size_t{block}] = {};
            std::uint32_t largest = 0;
            if (exists) largest = load(thread, vector, b * block, magnitudes);
            for (int distance = height / 2; distance != 0; distance /= 2) {
                const std::uint32_t other = thread.shuffle_xor(largest, distance);
                largest = largest < other ? other : largest;
            }
            std::uint8_t code = choice.code(largest, tensor);
            if constexpr (has_four_over_six<BlockScaled>) {
                if (is_four_over_six(choice.scaling.rule)) {
                    const std::uint8_t four =
                        largest == 0 || largest >= 0x7F80'0000U
                            ? code
                            : float_scale_code<element, scale>(largest, tensor, choice.scaling, 4.0);
                    const double error_of_six = error(thread, magnitudes, code, tensor);
                    if (error(thread, magnitudes, four, tensor) < error_of_six) code = four;
                }
            }
            if (exists) thread.store(scales + (vector * blocks_per_vector() + b), scale::from_bits(code));
        }
    }

private:
    /// The finite magnitudes of a block, and the largest code that counts for the scale.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE std::uint32_t load(
        Thread thread, std::ptrdiff_t vector, std::ptrdiff_t begin,
        double (&magnitudes)[std::size_t{block}]) const {
        std::uint32_t largest = 0;
        MP_UNROLL
        for (int i = 0; i < block; i += width) {
            const row_floats<width> values =
                load_row_floats<width>(thread, vectors, vector, begin + i, length);
            MP_UNROLL
            for (int k = 0; k < width; ++k) {
                const std::uint32_t code = choice.magnitude(values.values[k]);
                largest = largest < code ? code : largest;
                const std::uint32_t bits = bit_cast<std::uint32_t>(values.values[k]) & 0x7FFF'FFFFU;
                if (bits < 0x7F80'0000U) magnitudes[i + k] = double_from_float(bit_cast<float>(bits));
            }
        }
        return largest;
    }

    /// The error of the tile with this scale, which is NaN if that is, and then less than no other.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE double error(Thread thread,
                                                               const double (&magnitudes)[std::size_t{block}],
                                                               std::uint8_t code, float tensor) const {
        const double divisor = double_multiply(double_from_float(static_cast<float>(scale::from_bits(code))),
                                               double_from_float(tensor));
        double sum = block_error<coding_format<element>>(
            magnitudes, divisor, choice.scaling.rule == scale_rule::four_over_six_mse);
        for (int distance = height / 2; distance != 0; distance /= 2) {
            sum = double_add(sum, thread.shuffle_xor(sum, distance));
        }
        return sum;
    }
};

/// Writes the scales of all blocks of a matrix.
template <class Executor, class Value, class BlockScaled>
void choose_block_scales(Executor exec, matrix_view<const Value> from,
                         const block_scaled_span<BlockScaled>& to, const quantize_options& options) {
    using kernel_type = block_scale_kernel<BlockScaled, Value>;
    const kernel_type kernel{
        rows_of<kernel_type::width>(to.direction == block_direction::along_rows ? from : transposed(from)),
        to.vector_count(),
        to.vector_length(),
        to.scales.data(),
        to.tensor_scale,
        block_scale_choice<BlockScaled>(options),
        options.square_tiles ? kernel_type::block : 1};
    launch("mp::quantize", exec, walk_launch(kernel.items()), kernel);
}

template <class BlockScaled, class Value>
struct block_quantize_kernel {
    using element = typename BlockScaled::element_type;
    using scale = typename BlockScaled::scale_type;
    using walk = block_vector_walk<BlockScaled, const Value>;
    static constexpr int threads = row_threads;
    static constexpr int width = walk::width;
    /// Lanes that have a block together.
    static constexpr int block_lanes = BlockScaled::block_size / width;
    static_assert(BlockScaled::block_size % width == 0 && block_lanes >= 1 &&
                      block_lanes <= simt::warp_size && (block_lanes & (block_lanes - 1)) == 0,
                  "mp: on a GPU blocks have a power of two of elements, from 8 to 128");

    walk in;
    const float* tensor_scale;  ///< null for 1
    projection element_projection;
    std::uint64_t seed;
    std::ptrdiff_t vector_length;  ///< of the matrix, also where its vectors are walked as one
    std::uint64_t vector_index;    ///< distance of the indices of vectors, which random bits follow from
    std::uint64_t position_index;  ///< and of neighbours in a vector
    block_scale_choice<BlockScaled> choice;
    bool nearest;  ///< whether element_projection is nearest_even with saturation::finite

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        using group = gpu::warp_group;
        float tensor = 1.0F;
        if constexpr (BlockScaled::has_tensor_scale) tensor = thread.load(tensor_scale);
        const std::ptrdiff_t across = in.across();
        for (std::ptrdiff_t i = group::number(thread); i < in.count * across; i += group::count(thread)) {
            const std::ptrdiff_t vector = i / across;
            const std::ptrdiff_t position =
                (i - vector * across) * walk::warp_elements + thread.lane() * width;
            const row_floats<width> values =
                load_row_floats<width>(thread, in.vectors, vector, position, in.length);
            std::uint8_t code = 0;
            if (choice.scaling.given) {
                if (position < in.length) code = thread.load(scale_at(vector, position)).bits();
            } else {
                code = choice.code(largest_of_block(thread, values), tensor);
            }
            constexpr auto nan_code = static_cast<std::uint8_t>(layout_of<typename scale::format>::nan_code);
            if (!choice.scaling.given && thread.lane() % block_lanes == 0 && position < in.length) {
                thread.store(scale_at(vector, position), scale::from_bits(code));
            }
            std::uint64_t codes = 0;
            if (code != nan_code) codes = encode(values, code, tensor, vector, position);
            walk::packed::store(thread, in.bytes_at(vector, position), codes, in.used_bytes(position),
                                in.is_whole(position));
        }
    }

private:
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE scale* scale_at(std::ptrdiff_t vector,
                                                                  std::ptrdiff_t position) const {
        return in.scales + (vector * in.blocks_per_vector + position / BlockScaled::block_size);
    }

    /// The largest magnitude code of the lanes of a block; of the finite ones if the others do not count.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE std::uint32_t largest_of_block(
        Thread thread, const row_floats<width>& values) const {
        std::uint32_t largest = 0;
        MP_UNROLL
        for (int i = 0; i < width; ++i) {
            const std::uint32_t magnitude = choice.magnitude(values.values[i]);
            largest = largest < magnitude ? magnitude : largest;
        }
        MP_UNROLL
        for (int distance = block_lanes / 2; distance != 0; distance /= 2) {
            const std::uint32_t other = thread.shuffle_xor(largest, distance);
            largest = largest < other ? other : largest;
        }
        return largest;
    }

    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE std::uint64_t encode(const row_floats<width>& values,
                                                                       std::uint8_t scale_code, float tensor,
                                                                       std::ptrdiff_t vector,
                                                                       std::ptrdiff_t position) const {
        const block_divisor<element, scale> divisor(scale_code, tensor);
        const bool short_cut = nearest && divisor.has_nearest();
        std::uint64_t codes = 0;
        MP_UNROLL
        for (int i = 0; i < width; ++i) {
            // Behind the vector the codes are zero, whatever the rounding.
            if (position + i >= in.length) break;
            std::uint8_t code = 0;
            if (short_cut && is_float_finite(values.values[i])) {
                code = divisor.nearest(values.values[i]);
            } else {
                projection p = element_projection;
                if (is_stochastic(p.round)) {
                    const std::ptrdiff_t index = vector * in.length + position + i;
                    p.random = random_bits(
                        seed, static_cast<std::uint64_t>(index / vector_length) * vector_index +
                                  static_cast<std::uint64_t>(index % vector_length) * position_index);
                }
                code = divisor.exactly(values.values[i], p);
            }
            codes |= static_cast<std::uint64_t>(code) << (i * BlockScaled::element_width);
        }
        return codes;
    }
};

/// The largest finite magnitude code of a matrix into the place of the tensor scale.
template <class Value>
struct block_amax_kernel {
    static constexpr int threads = row_threads;
    static constexpr int width = row_chunk<Value>;
    row_matrix<const Value> from;
    std::uint32_t* largest;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        constexpr std::uint32_t infinity = 0x7F80'0000U;
        const std::ptrdiff_t across = (columns + width - 1) / width;
        const std::ptrdiff_t step = thread.blocks() * threads;
        std::uint32_t mine = 0;
        for (std::ptrdiff_t i = thread.block() * threads + thread.index(); i < rows * across; i += step) {
            const std::ptrdiff_t row = i / across;
            const row_floats<width> values =
                load_row_floats<width>(thread, from, row, (i - row * across) * width, columns);
            MP_UNROLL
            for (int k = 0; k < width; ++k) {
                const std::uint32_t magnitude = bit_cast<std::uint32_t>(values.values[k]) & 0x7FFF'FFFFU;
                if (magnitude < infinity && mine < magnitude) mine = magnitude;
            }
        }
        mine = gpu::block_reduce<threads>(thread, mine, larger_magnitude{},
                                          simt::shared_pointer<std::uint32_t>{});
        // The largest one is the same in whatever order.
        if (thread.index() == 0 && mine != 0) static_cast<void>(thread.atomic_max(largest, mine));
    }

private:
    struct larger_magnitude {
        MP_HOST_DEVICE std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const {
            return a < b ? b : a;
        }
    };
};

/// Writes a tensor scale: one that is given, or tensor_scale_for() of the magnitude code that lies there.
template <class BlockScaled>
struct tensor_scale_kernel {
    static constexpr int threads = simt::warp_size;
    float* tensor_scale;
    float given;
    bool computes;
    scale_rule rule;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        if (thread.index() != 0) return;
        float result = given;
        if (computes) {
            const exact_value amax =
                exact_magnitude<float>(bit_cast<std::uint32_t>(thread.load(tensor_scale)));
            result = tensor_scale_for<typename BlockScaled::element_type, typename BlockScaled::scale_type>(
                amax, rule);
        }
        thread.store(tensor_scale, result);
    }
};

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Quantises a matrix on a GPU, with the bits of mp::quantize on the CPU for all options: scales, elements
/// and tensor scale, into a block_scaled_span in device memory, whose direction options.direction must be.
///
/// `from` is of float or of a format that float holds, in any layout. Lanes find the largest magnitude of
/// their block by shuffles; a row-major matrix that begins at a multiple of 16 bytes, quantised along_rows,
/// is read by 16 bytes a thread; other layouts give the same bits and take longer. The tensor scale of
/// formats that have one is written to *to.tensor_scale; where it is to be computed (options.tensor_scale is
/// 0), that costs a pass over the matrix before. Roundings other than nearest-even with saturation::finite,
/// and blocks with infinities or NaN, go through the exact arithmetic of integers. Blocks have 8 to 128
/// elements, a power of two. Square tiles and four_over_six rules cost another pass over the matrix. Enqueues up
/// to five kernels, allocates nothing.
///
/// Throws argument_error for views and spans that do not fit each other, and as mp::quantize on the CPU.
template <gpu_executor Executor, class Value, class BlockScaled>
    requires number<std::remove_const_t<Value>>
void quantize(Executor exec, matrix_view<Value> from, const block_scaled_span<BlockScaled>& to,
              const quantize_options& options = {}) {
    using value = std::remove_const_t<Value>;
    static_assert(std::is_same_v<detail::block_wide<value>, float>,
                  "mp: on a GPU matrices of float, or of formats that float holds, are quantised");
    constexpr std::string_view function = "mp::quantize";
    detail::check_block_view(function, "from", from);
    detail::check_block_span(function, "to", to, "from", from.rows, from.columns);
    if (options.direction != to.direction) {
        detail::throw_argument(
            function, "options.direction",
            options.direction == block_direction::along_rows ? "along_rows" : "along_columns",
            "must be to.direction");
    }
    detail::check_quantize_options<BlockScaled>(function, options);
    const matrix_view<const value> source{from.data, from.rows, from.columns, from.leading_dimension,
                                          from.order};
    const bool empty = from.rows == 0 || from.columns == 0;
    if constexpr (BlockScaled::has_tensor_scale) {
        const bool computes = is_zero(options.tensor_scale);
        const detail::tensor_scale_kernel<BlockScaled> set{to.tensor_scale, options.tensor_scale, false,
                                                           options.rule};
        launch(function, exec, simt::launch_size{}, set);
        if (computes) {
            constexpr int width = detail::row_chunk<value>;
            const auto rows = source.order == storage_order::row_major ? source : transposed(source);
            const detail::block_amax_kernel<value> find{detail::rows_of<width>(rows),
                                                        reinterpret_cast<std::uint32_t*>(to.tensor_scale),
                                                        rows.rows, rows.columns};
            // Enough blocks for any device, and few enough atomic operations.
            constexpr std::ptrdiff_t most = 1024;
            const std::ptrdiff_t chunks = rows.rows * ((rows.columns + width - 1) / width);
            if (!empty) {
                launch(function, exec,
                       simt::launch_size{.blocks = (std::min)(most, (chunks - 1) / detail::row_threads + 1),
                                         .shared_bytes = gpu::block_group<detail::row_threads>::shared_bytes(
                                             detail::row_threads)},
                       find);
            }
            const detail::tensor_scale_kernel<BlockScaled> compute{to.tensor_scale, 0.0F, true, options.rule};
            launch(function, exec, simt::launch_size{}, compute);
        }
    }
    if (empty) return;
    if (detail::has_separate_scales(options)) detail::choose_block_scales(exec, source, to, options);
    const bool along_rows = to.direction == block_direction::along_rows;
    const auto columns = static_cast<std::uint64_t>(from.columns);
    const detail::block_vector_walk<BlockScaled, const value> walk(source, to);
    const detail::block_quantize_kernel<BlockScaled, value> kernel{
        walk,
        to.tensor_scale,
        options.element,
        options.seed,
        to.vector_length(),
        along_rows ? columns : 1,
        along_rows ? 1 : columns,
        detail::block_scale_choice<BlockScaled>(options),
        options.element == projection{rounding::nearest_even, saturation::finite}};
    launch(function, exec, walk.launch(), kernel);
}

}}  // namespace mp

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
