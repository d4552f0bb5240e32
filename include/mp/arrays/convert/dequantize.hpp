// SPDX-License-Identifier: MIT
/// \file
/// Block-scaled matrices to matrices of numbers, and what quantisation did to the values.
#pragma once

#include <mp/arrays/convert/block_vectors.hpp>
#include <mp/arrays/convert/kernels/block_kernels.hpp>
#include <mp/arrays/convert/kernels/vector_columns.hpp>
#include <mp/arrays/convert/number_range.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/memory.hpp>
#include <mp/numbers/simd/processor.hpp>
#include <mp/numbers/simd/square.hpp>

#include <cstdint>
#include <vector>

#define MP_KERNEL_FILE <mp/arrays/convert/kernels/block_dequantize.inl>
#include <mp/numbers/simd/for_each_target.inl>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The exact values of up to a chunk of elements of one vector, as doubles; NaN where the scale is.
template <class BlockScaled>
void block_values(const BlockScaled& from, std::ptrdiff_t vector, std::ptrdiff_t begin, std::ptrdiff_t count,
                  double (&values)[block_chunk<BlockScaled::block_size>::padded]) noexcept {
    using element = typename BlockScaled::element_type;
    using scale = typename BlockScaled::scale_type;
    using chunk = block_chunk<BlockScaled::block_size>;
    constexpr std::ptrdiff_t block = BlockScaled::block_size;
    std::uint8_t codes[chunk::padded] = {};
    read_codes<BlockScaled::element_width>(from.bytes(vector).data(), begin, codes,
                                           static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < chunk::padded; i += convert_block) {
        element_coding<element>::widen(codes + i, values + i);
    }
    const double tensor_scale = round_to<double>(from.tensor_scale());
    const scale* scales = from.scales().data() + vector * from.blocks_per_vector() + begin / block;
    for (std::ptrdiff_t first = 0; first < count; first += block, ++scales) {
        // Exact: an element has up to 7 bits, a scale up to 8 and a float 24, and their exponents add up to
        // nothing that a double does not hold.
        const double factor = static_cast<double>(*scales) * tensor_scale;
        if (isnan(*scales)) {
            const double nan = bit_cast<double>(std::uint64_t{layout_of<formats::binary64>::nan_code});
            for (std::ptrdiff_t i = first; i < first + block; ++i) values[i] = nan;
        } else {
            for (std::ptrdiff_t i = first; i < first + block; ++i) values[i] *= factor;
        }
    }
}

/// The values of a contiguous part of a vector that begins with a block.
template <class BlockScaled, class Value>
using dequantize_kernel = void (*)(const std::byte*, const typename BlockScaled::scale_type*, std::size_t,
                                   Value*, float);

/// The kernel that does what is asked for, or null.
template <class BlockScaled, class Value>
dequantize_kernel<BlockScaled, Value> dequantize_kernel_for(instruction_set isa, const projection& p,
                                                            float tensor_scale) noexcept {
    dequantize_kernel<BlockScaled, Value> kernel = nullptr;
    if constexpr (has_number_vectors<Value> && has_block_vectors<BlockScaled>) {
        if (p == projection{} && (!BlockScaled::has_tensor_scale || dequantizes_with(tensor_scale))) {
            kernel = MP_SELECT_TARGET(isa, kernel, dequantize_blocks<BlockScaled, Value>);
        }
    }
    static_cast<void>(isa), static_cast<void>(p), static_cast<void>(tensor_scale);
    return kernel;
}

/// The same of vectors that lie side by side.
template <class BlockScaled, class Value>
using dequantize_columns_kernel = void (*)(const std::byte*, std::size_t,
                                           const typename BlockScaled::scale_type*, std::size_t, std::size_t,
                                           std::size_t, Value*, std::ptrdiff_t, float, bool);

template <class BlockScaled, class Value>
dequantize_columns_kernel<BlockScaled, Value> dequantize_columns_kernel_for(instruction_set isa,
                                                                            const projection& p,
                                                                            float tensor_scale) noexcept {
    dequantize_columns_kernel<BlockScaled, Value> kernel = nullptr;
    if constexpr (has_number_vectors<Value> && has_block_vectors<BlockScaled>) {
        if (p == projection{} && (!BlockScaled::has_tensor_scale || dequantizes_with(tensor_scale))) {
            kernel = MP_SELECT_TARGET(isa, kernel, dequantize_columns<BlockScaled, Value>);
        }
    }
    static_cast<void>(isa), static_cast<void>(p), static_cast<void>(tensor_scale);
    return kernel;
}

template <class BlockScaled, class Value>
void check_dequantize(std::string_view function, cpu exec, const BlockScaled& from, const std::string& name,
                      matrix_view<Value> to) {
    check_threads(function, exec);
    check_block_view(function, name, to);
    check_equal_sizes(function, name + ".rows", to.rows, "the quantised matrix's rows", from.rows());
    check_equal_sizes(function, name + ".columns", to.columns, "the quantised matrix's columns",
                      from.columns());
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Writes the values of a block-scaled matrix: the exact product of element, block scale and tensor scale,
/// rounded once as the projection says. To float, and to anything that holds them, values are exact except
/// for those beyond its range.
///
/// Throws argument_error, with nothing written, if the sizes differ, the view is not that of a matrix,
/// exec.threads is less than one, or the processor lacks exec.instructions.
///
///     mp::dequantize(mp::cpu{}, q, mp::row_major(floats, q.rows(), q.columns()));
template <block_element Element, int Block, reduced Scale, class Value>
    requires(number<Value> && !std::is_const_v<Value>)
void dequantize(cpu exec, const block_scaled<Element, Block, Scale>& from, matrix_view<Value> to,
                projection p = {}) {
    using chunk = detail::block_chunk<Block>;
    detail::check_dequantize("mp::dequantize", exec, from, "to", to);
    using quantized = block_scaled<Element, Block, Scale>;
    const instruction_set isa = detail::isa_of("mp::dequantize", exec);
    const auto kernel = detail::dequantize_kernel_for<quantized, Value>(isa, p, from.tensor_scale());
    detail::block_vectors<Value> vectors(to, from.direction());
    if (kernel != nullptr) vectors.join(Block);
    const auto columns_kernel =
        vectors.vector_stride == 1 && vectors.position_stride != 1
            ? detail::dequantize_columns_kernel_for<quantized, Value>(isa, p, from.tensor_scale())
            : nullptr;
    const bool streams =
        detail::exceeds_caches(static_cast<std::size_t>(to.rows * to.columns) * sizeof(Value));
    const std::ptrdiff_t abreast =
        columns_kernel != nullptr ? static_cast<std::ptrdiff_t>(detail::columns_abreast) : vectors.abreast();
    detail::for_tiles<Block>(
        exec, vectors.count, vectors.length, abreast, [&](const detail::block_tile& tile) {
            const auto* const elements =
                from.bytes(tile.first_vector).data() + tile.begin / 8 * quantized::element_width;
            const auto* const scales =
                from.scales().data() + tile.first_vector * from.blocks_per_vector() + tile.begin / Block;
            const auto length = static_cast<std::size_t>(tile.end - tile.begin);
            if (kernel != nullptr && vectors.position_stride == 1) {
                kernel(elements, scales, length, vectors.at(tile.first_vector, tile.begin),
                       from.tensor_scale());
                return;
            }
            if (columns_kernel != nullptr) {
                columns_kernel(elements, from.bytes_per_vector(), scales,
                               static_cast<std::size_t>(from.blocks_per_vector()),
                               static_cast<std::size_t>(tile.last_vector - tile.first_vector), length,
                               vectors.at(tile.first_vector, tile.begin), vectors.position_stride,
                               from.tensor_scale(), streams);
                return;
            }
            const detail::default_floating_point_modes modes;
            double values[chunk::padded];
            Value rounded[detail::vectors_abreast][chunk::padded];
            for (std::ptrdiff_t begin = tile.begin; begin < tile.end; begin += chunk::elements) {
                const std::ptrdiff_t count = (std::min)(chunk::elements, tile.end - begin);
                for (std::ptrdiff_t vector = tile.first_vector; vector < tile.last_vector; ++vector) {
                    detail::block_values(from, vector, begin, count, values);
                    detail::convert_projected<double, Value>(values,
                                                             vectors.position_stride == 1
                                                                 ? vectors.at(vector, begin)
                                                                 : rounded[vector - tile.first_vector],
                                                             static_cast<std::size_t>(count), p);
                }
                if (vectors.position_stride == 1) continue;
                for (std::ptrdiff_t i = 0; i < count; ++i) {
                    for (std::ptrdiff_t vector = tile.first_vector; vector < tile.last_vector; ++vector) {
                        *vectors.at(vector, begin + i) = rounded[vector - tile.first_vector][i];
                    }
                }
            }
        });
}

/// Overload to an array, for a matrix of one row (or of one column).
template <block_element Element, int Block, reduced Scale, detail::writable_number_range Target>
void dequantize(cpu exec, const block_scaled<Element, Block, Scale>& from, Target&& to, projection p = {}) {
    const std::span target = detail::as_span(to);
    const auto size = static_cast<std::ptrdiff_t>(target.size());
    dequantize(exec, from,
               from.rows() == 1 ? row_major(target.data(), 1, size) : row_major(target.data(), size, 1), p);
}

}}  // namespace mp

namespace mp {

/// Quantisation errors of a matrix. Errors are those of the finite values, computed in
/// double.
struct quantization_report {
    std::uint64_t count = 0;      ///< elements
    std::uint64_t nonfinite = 0;  ///< values, or their quantised counterparts, that are infinite or NaN
    std::uint64_t flushed = 0;    ///< values that are not zero but became zero
    std::uint64_t clamped = 0;    ///< values beyond the largest element times its scale
    double max_error = 0;         ///< the largest |quantised - value|
    double squared_error = 0;     ///< the sum of (quantised - value)^2
    double squared_value = 0;     ///< the sum of value^2

    /// Root of the mean squared error over that of the mean square, 0 if all is zero: 0.01 says that the
    /// noise is 1% of the signal.
    [[nodiscard]] MP_ALWAYS_INLINE double relative_error() const noexcept {
        if (!(squared_value > 0)) return 0;
        const detail::default_floating_point_modes modes;
        return modes.held(
            detail::double_sqrt(detail::double_divide(modes.held(squared_error), modes.held(squared_value))));
    }
    MP_ALWAYS_INLINE quantization_report& operator+=(const quantization_report& other) noexcept {
        count += other.count;
        nonfinite += other.nonfinite;
        flushed += other.flushed;
        clamped += other.clamped;
        if (other.max_error > max_error) max_error = other.max_error;
        squared_error = detail::double_add(squared_error, other.squared_error);
        squared_value = detail::double_add(squared_value, other.squared_value);
        return *this;
    }
};

}  // namespace mp

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Compares a quantised matrix with what it was made from. The same result for every number of threads.
/// Errors as for dequantize.
///
///     auto report = mp::report_quantization(mp::cpu{}, mp::row_major(x, rows, columns), q);
///     std::printf("noise %.2f%%, %llu clamped\n", 100 * report.relative_error(), report.clamped);
template <class Value, block_element Element, int Block, reduced Scale>
    requires number<std::remove_const_t<Value>>
[[nodiscard]] quantization_report report_quantization(cpu exec, matrix_view<Value> values,
                                                      const block_scaled<Element, Block, Scale>& quantized) {
    using number_type = std::remove_const_t<Value>;
    using chunk = detail::block_chunk<Block>;
    using format = detail::coding_format<Element>;
    detail::check_dequantize("mp::report_quantization", exec, quantized, "values", values);
    const detail::block_vectors<const number_type> vectors(
        {values.data, values.rows, values.columns, values.leading_dimension, values.order},
        quantized.direction());
    const double largest = detail::to_double<format>(layout_of<format>::max_finite_code);
    const double tensor_scale = round_to<double>(quantized.tensor_scale());
    // The order of the sums follows from it.
    constexpr std::ptrdiff_t most_abreast = 16;
    const std::ptrdiff_t abreast = (std::min)(vectors.abreast(), most_abreast);
    std::vector<quantization_report> of_tiles(
        static_cast<std::size_t>(detail::tile_count<Block>(vectors.count, vectors.length, abreast)));
    detail::for_tiles<Block>(
        exec, vectors.count, vectors.length, abreast, [&](const detail::block_tile& tile) {
            const detail::default_floating_point_modes modes;
            double exact[most_abreast][chunk::padded];
            double after[chunk::padded];
            quantization_report report;
            for (std::ptrdiff_t begin = tile.begin; begin < tile.end; begin += chunk::elements) {
                const std::ptrdiff_t count = (std::min)(chunk::elements, tile.end - begin);
                detail::read_vectors(vectors, tile, begin, count, exact);
                for (std::ptrdiff_t vector = tile.first_vector; vector < tile.last_vector; ++vector) {
                    detail::block_values(quantized, vector, begin, count, after);
                    const Scale* scales =
                        quantized.scales().data() + vector * quantized.blocks_per_vector() + begin / Block;
                    for (std::ptrdiff_t i = 0; i < count; ++i) {
                        const double x = exact[vector - tile.first_vector][i];
                        const double y = after[i];
                        ++report.count;
                        if (!isfinite(x) || !isfinite(y)) {
                            ++report.nonfinite;
                            continue;
                        }
                        const double error =
                            x > y ? detail::double_subtract(x, y) : detail::double_subtract(y, x);
                        const double limit = largest * static_cast<double>(scales[i / Block]) * tensor_scale;
                        if (is_zero(y) && !is_zero(x)) ++report.flushed;
                        if (x > limit || -x > limit) ++report.clamped;
                        if (error > report.max_error) report.max_error = error;
                        report.squared_error =
                            detail::double_add(report.squared_error, detail::double_multiply(error, error));
                        report.squared_value =
                            detail::double_add(report.squared_value, detail::double_multiply(x, x));
                    }
                }
            }
            of_tiles[static_cast<std::size_t>(tile.index)] = report;
        });
    const detail::default_floating_point_modes modes;
    quantization_report result;
    for (const quantization_report& report : of_tiles) result += report;
    return result;
}

}}  // namespace mp
