// SPDX-License-Identifier: MIT
/// \file
/// Operands of layers with products of 8 bits: rounded on the CPU, and whether those of weights are still theirs.
#pragma once

#include <mp/arrays/io/checksum.hpp>
#include <mp/base/parallel.hpp>
#include <mp/bfloat16.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/float8.hpp>
#include <mp/linalg/gemm/epilogue_outputs.hpp>
#include <mp/linalg/gemm/gemm.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/nn/scaling/amax.hpp>
#include <mp/nn/scaling/amax_history.hpp>
#include <mp/nn/scaling/tensor_scaling.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/quantised_operand.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/train/training/tensor.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

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

/// Throws unless x is a row-major matrix of this shape.
template <class Value>
void check_float8_operand(std::string_view name, matrix_view<Value> x, std::ptrdiff_t rows,
                          std::string_view rows_name, std::ptrdiff_t columns, std::string_view columns_name) {
    constexpr std::string_view function = "mp::layers::linear";
    check_shape(function, named(name, x), rows, rows_name, columns, columns_name);
    if (x.order != storage_order::row_major) {
        throw_argument(function, std::string(name) + ".order", "column_major",
                       "must be row_major under a policy of float8 scaling");
    }
}

/// Calls f(span) for the rows of a matrix, or once for all of it where there are no gaps.
template <class Value, class Function>
void for_each_run(matrix_view<Value> x, const Function& f) {
    const auto columns = static_cast<std::size_t>(x.columns);
    if (x.leading_dimension == x.columns) {
        f(std::span<Value>(x.data, static_cast<std::size_t>(x.rows) * columns), std::size_t{0});
        return;
    }
    for (std::ptrdiff_t r = 0; r < x.rows; ++r) {
        f(std::span<Value>(x.data + r * x.leading_dimension, columns), static_cast<std::size_t>(r) * columns);
    }
}

/// An operand in 8 bits: codes that are values times `scale`.
template <class Format>
struct scaled_codes {
    tensor<Format> codes{};
    float scale = 1.0F;
    float amax = 0.0F;  ///< of the tensor

    [[nodiscard]] matrix_view<const Format> view() const { return codes.view(); }
    [[nodiscard]] bool is_finite() const { return !is_non_finite(amax); }

    /// scale_of(amax) is the scale.
    template <class Value, class Scale>
    void quantise(cpu exec, matrix_view<Value> x, const Scale& scale_of) {
        codes.resize(x.rows, x.columns);
        std::uint32_t largest = 0;
        for_each_run(x, [&](auto run, std::size_t /*at*/) {
            largest = (std::max)(largest, bit_cast<std::uint32_t>(mp::amax(exec, run)));
        });
        amax = bit_cast<float>(largest);
        scale = scale_of(amax);
        for_each_run(x, [&](auto run, std::size_t at) {
            quantize_with_scale(exec, run, codes.values().subspan(at, run.size()), scale);
        });
    }

    /// The same of alpha a b through `epilogue`, in one pass.
    template <class A, class B, class Epilogue>
    void product(cpu exec, float alpha, matrix_view<A> a, matrix_view<B> b, float with_scale,
                 const Epilogue& epilogue) {
        codes.resize(a.rows, b.columns);
        scale = with_scale;
        amax = 0.0F;
        gemm(exec, alpha, a, b, 0.0F, codes.view(),
             compose(epilogue, compose(amax_into(&amax), quantize_to<Format>(scale))));
    }
};

/// The epilogue that rounds to the type of a matrix.
template <class Value>
auto rounding_of() {
    if constexpr (reduced<Value>) {
        return rounding_epilogue<Value>{};
    } else {
        return identity_epilogue{};
    }
}

/// What a product of codes is multiplied by. Not a number where an operand was not finite: its codes are, and
/// the loss scaler is to see that.
template <class A, class B>
float product_factor(const scaled_codes<A>& a, const scaled_codes<B>& b) {
    if (!a.is_finite() || !b.is_finite()) return std::numeric_limits<float>::quiet_NaN();
    const default_floating_point_modes modes;
    return modes.held(inverse_of_scales(a.scale, b.scale));
}

/// Rounds blocks of 32 floats to E4M3 with a power of two each, the smallest for which nothing is too large,
/// and scales them back.
inline void quantise_mx_blocks(instruction_set isa, float* values, std::size_t blocks) {
    constexpr std::size_t block = 32, most = 16;
    for (std::size_t first = 0; first < blocks; first += most) {
        const std::size_t count = (std::min)(most, blocks - first);
        float* const at = values + first * block;
        int exponents[most];
        std::size_t broken = most;
        for (std::size_t b = 0; b < count; ++b) {
            const largest_magnitudes largest = magnitudes_of(isa, at + b * block, block);
            exponents[b] = scale_exponent_for<float8_e4m3fn>(largest.finite);
            if (largest.all >= 0x7f800000U) broken = b;
        }
        if (broken != most) {
            // One value at a time: infinities and NaNs stay what they are.
            for (std::size_t i = 0; i < count * block; ++i) {
                at[i] = quantised<float8_e4m3fn>(at[i], exponents[i / block]);
            }
            continue;
        }
        float8_e4m3fn codes[most * block];
        for (std::size_t b = 0; b < count; ++b) {
            scale_floats(isa, block, at + b * block, at + b * block, power_of_two_float(exponents[b]));
        }
        convert_nearest(conversion_isa(), at, codes, count * block);
        widen_to_float(conversion_isa(), codes, at, count * block);
        for (std::size_t b = 0; b < count; ++b) {
            scale_floats(isa, block, at + b * block, at + b * block, power_of_two_float(-exponents[b]));
        }
    }
}

template <class Value>
void floats_of(const Value* from, float* to, std::size_t count) {
    if constexpr (std::same_as<Value, float>) {
        std::copy(from, from + count, to);
    } else {
        widen_to_float(conversion_isa(), from, to, count);
    }
}

/// to = from rounded to MXFP8 in blocks along the rows, or along the columns. Both row-major.
template <class Value>
void quantise_mx(cpu exec, matrix_view<Value> from, matrix_view<bfloat16> to, bool along_columns) {
    constexpr std::ptrdiff_t block = 32, width = 64;
    const instruction_set isa = best_instruction_set();
    const std::ptrdiff_t step = along_columns ? block : 1;
    const std::ptrdiff_t across = along_columns ? width : width * block;
    const std::ptrdiff_t tiles = (from.rows + step - 1) / step;
    parallel_for(exec, static_cast<std::size_t>(tiles), 1, [&](std::size_t begin, std::size_t end) {
        const default_floating_point_modes modes;
        constexpr auto most = static_cast<std::size_t>(width * block);
        float values[most];
        float line[most];
        for (auto t = static_cast<std::ptrdiff_t>(begin); t < static_cast<std::ptrdiff_t>(end); ++t) {
            const std::ptrdiff_t row = t * step;
            const std::ptrdiff_t rows = (std::min)(step, from.rows - row);
            for (std::ptrdiff_t column = 0; column < from.columns; column += across) {
                const std::ptrdiff_t columns = (std::min)(across, from.columns - column);
                const auto count = static_cast<std::size_t>(columns);
                const auto source = [&](std::ptrdiff_t r) {
                    return from.data + (row + r) * from.leading_dimension + column;
                };
                const auto target = [&](std::ptrdiff_t r) {
                    return to.data + (row + r) * to.leading_dimension + column;
                };
                if (!along_columns) {
                    const std::ptrdiff_t blocks = (columns + block - 1) / block;
                    floats_of(source(0), values, count);
                    std::fill(values + columns, values + blocks * block, 0.0F);
                    quantise_mx_blocks(isa, values, static_cast<std::size_t>(blocks));
                    convert_nearest(conversion_isa(), values, target(0), count);
                    continue;
                }
                for (std::ptrdiff_t r = 0; r < block; ++r) {
                    if (r < rows) floats_of(source(r), line, count);
                    for (std::ptrdiff_t c = 0; c < columns; ++c)
                        values[c * block + r] = r < rows ? line[c] : 0.0F;
                }
                quantise_mx_blocks(isa, values, count);
                for (std::ptrdiff_t r = 0; r < rows; ++r) {
                    for (std::ptrdiff_t c = 0; c < columns; ++c) line[c] = values[c * block + r];
                    convert_nearest(conversion_isa(), line, target(r), count);
                }
            }
        }
    });
}

/// Whether the codes of weights are still theirs, by the version of the weights, and by a checksum as well where
/// casts that are kept are compared (MP_CHECK_KEPT_CASTS).
class coded_weights {
public:
    explicit coded_weights(bool compares) : compares_(compares) {}

    /// Whether the codes are to be made anew. Throws state_error where the weights were written in silence.
    template <class Weight>
    bool renew(matrix_view<const Weight> w, std::uint64_t version) {
        const bool same_version = version == version_;
        if (compares_) {
            crc64_stream sum;
            sum.add({reinterpret_cast<const char*>(w.data),
                     static_cast<std::size_t>(w.rows * w.columns) * sizeof(Weight)});
            if (same_version && sum.value() != checksum_) {
                throw_error(state_error(
                    "mp::layers::linear: the weights have changed since they were rounded to 8 bits; call "
                    "weights_changed() of the mp::parameter_store after writing them by hand"));
            }
            checksum_ = sum.value();
        }
        version_ = version;
        return !same_version;
    }
    /// The same on a GPU, where nothing is compared. What is captured makes codes by itself, for it runs again when
    /// weights have changed.
    bool renew(std::uint64_t version, bool captured) {
        const bool stale = version != version_ || captured != captured_;
        version_ = version;
        captured_ = captured;
        return stale;
    }
    /// After loading.
    void forget() { version_ = never; }

private:
    static constexpr std::uint64_t never = (std::numeric_limits<std::uint64_t>::max)();

    bool compares_;
    bool captured_ = false;
    std::uint64_t version_ = never;
    std::uint64_t checksum_ = 0;
};

}}  // namespace mp::detail
