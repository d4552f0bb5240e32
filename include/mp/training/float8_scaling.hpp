// SPDX-License-Identifier: MIT
/// \file
/// Linear layers whose three products take operands of 8 bits: which scales these have, and what a layer
/// keeps for them.
#pragma once

#include <mp/autocast/policy.hpp>
#include <mp/autocast/quantise_operand.hpp>
#include <mp/bfloat16.hpp>
#include <mp/config.hpp>
#include <mp/detail/checksum.hpp>
#include <mp/detail/parallel.hpp>
#include <mp/executor.hpp>
#include <mp/float8.hpp>
#include <mp/format/float_arithmetic.hpp>
#include <mp/gemm.hpp>
#include <mp/matrix_view.hpp>
#include <mp/ops/arguments.hpp>
#include <mp/scaling/amax.hpp>
#include <mp/scaling/amax_history.hpp>
#include <mp/scaling/tensor_scaling.hpp>
#include <mp/simd/floating_point_modes.hpp>
#include <mp/training/tensor.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace mp::layers {

/// Policies of mp::layers::linear, and of layers that are made of it: weights and activations in
/// float8_e4m3fn, gradients of activations in float8_e5m2, products with float sums, everything else as
/// autocast::off. Transformer Engine's DelayedScaling: a tensor's scale follows from the largest magnitudes
/// of earlier iterations.
struct float8_delayed_scaling : autocast::off {
    static constexpr std::string_view name = "float8_delayed_scaling";
};
/// Float8CurrentScaling: it follows from the tensor itself.
struct float8_current_scaling : autocast::off {
    static constexpr std::string_view name = "float8_current_scaling";
};
/// MXFP8BlockScaling: each 32 neighbours along k share a power of two, and gradients are in E4M3, too.
/// The operands are multiplied as bfloat16, which holds them exactly where a block's largest magnitude is at
/// least 2^-110.
struct mxfp8_block_scaling : autocast::off {
    static constexpr std::string_view name = "mxfp8_block_scaling";
};

template <class Policy>
concept float8_scaling =
    std::same_as<Policy, float8_delayed_scaling> || std::same_as<Policy, float8_current_scaling> ||
    std::same_as<Policy, mxfp8_block_scaling>;

/// With the defaults of Transformer Engine.
struct float8_options {
    std::int32_t amax_history_length = 1024;         ///< of delayed scaling: iterations, at least 1
    std::int32_t margin = 0;                         ///< of delayed scaling: scales are lowered by 2^margin
    amax_algorithm algorithm = amax_algorithm::max;  ///< of delayed scaling
    bool power_of_two = false;                       ///< of current scaling: scales are rounded down
    /// Whether a forgotten weights_changed() is looked for, which reads all weights.
    bool compare_weights = MP_CHECK_KEPT_CASTS != 0;
};

}  // namespace mp::layers

namespace mp::detail::inline MP_ISA_NAMESPACE {

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
};

/// What a product of codes is multiplied by. Not a number where an operand was not finite: its codes are, and
/// the loss scaler is to see that.
template <class A, class B>
float product_factor(const scaled_codes<A>& a, const scaled_codes<B>& b) {
    if (!a.is_finite() || !b.is_finite()) return std::numeric_limits<float>::quiet_NaN();
    const default_floating_point_modes modes;
    return modes.held(static_cast<float>(
        double_divide(1.0, double_multiply(static_cast<double>(a.scale), static_cast<double>(b.scale)))));
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

/// Whether the codes of weights are still theirs, by the count of parameter_store::weights_changed(), and by
/// a checksum as well where casts that are kept are compared (MP_CHECK_KEPT_CASTS).
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
                    "weights_changed() of the mp::parameter_store after every step"));
            }
            checksum_ = sum.value();
        }
        version_ = version;
        return !same_version;
    }
    /// After loading.
    void forget() { version_ = never; }

private:
    static constexpr std::uint64_t never = (std::numeric_limits<std::uint64_t>::max)();

    bool compares_;
    std::uint64_t version_ = never;
    std::uint64_t checksum_ = 0;
};

/// The operands of the three products of a layer in 8 bits with a scale each, and what is remembered of them.
template <layers::float8_scaling Policy, class Activation>
class float8_products {
    static constexpr bool delayed = std::same_as<Policy, layers::float8_delayed_scaling>;

public:
    explicit float8_products(const layers::float8_options& options)
        : x_{options}, w_{options}, dy_{options}, options_(options), weights_(options.compare_weights) {
        scaling(x_).validate();
    }

    /// y = x w^T through `epilogue`. `version` counts changes of the weights, which are the iterations.
    template <class Weight, class Epilogue>
    void forward(cpu exec, matrix_view<const Activation> x, matrix_view<const Weight> w,
                 std::uint64_t version, matrix_view<Activation> y, const Epilogue& epilogue) {
        check_float8_operand("x", x, x.rows, "x.rows", w.columns, "w.columns");
        if (weights_.renew(w, version)) {
            if constexpr (delayed) {
                for_each_operand([&](auto& it) { it.history.update(scaling(it)); });
            }
            quantise(exec, w, w_);
        }
        quantise(exec, x, x_);
        gemm(exec, product_factor(x_, w_), x_.view(), transposed(w_.view()), 0.0F, y, epilogue);
    }

    /// dx = dy w, dw = dy^T x of the last forward().
    template <class DX, class DW>
    void backward(cpu exec, matrix_view<const Activation> dy, const DX& dx, const DW& dw) {
        check_float8_operand("dy", dy, x_.codes.rows(), "x.rows", w_.codes.rows(), "w.rows");
        quantise(exec, dy, dy_);
        // Only here, so that a forward pass alone, which validates, leaves no trace. What is not finite is no
        // measure, and its step is skipped.
        if constexpr (delayed) {
            for_each_operand([](auto& it) {
                if (it.is_finite()) it.history.record(it.amax);
            });
        }
        if constexpr (!std::same_as<DX, ops::absent_t>) {
            gemm(exec, product_factor(dy_, w_), dy_.view(), w_.view(), as<float>(result_beta(dx)),
                 result_view(dx));
        }
        gemm(exec, product_factor(dy_, x_), transposed(dy_.view()), x_.view(), as<float>(result_beta(dw)),
             result_view(dw));
    }

    [[nodiscard]] std::size_t bytes() const noexcept {
        return x_.codes.bytes() + w_.codes.bytes() + dy_.codes.bytes();
    }

    /// Delayed scaling has something that a run goes on with.
    template <class Visitor>
    void visit_state(Visitor& visitor) {
        if constexpr (delayed) {
            visitor("x", x_.history);
            visitor("w", w_.history);
            visitor("dy", dy_.history);
        }
        if constexpr (Visitor::loads) weights_.forget();
    }

private:
    template <class Format>
    struct operand : scaled_codes<Format> {
        using format = Format;
        explicit operand(const layers::float8_options& options)
            : history(delayed ? options.amax_history_length : 1) {}
        amax_history history;
    };
    template <class Function>
    void for_each_operand(const Function& f) {
        f(x_);
        f(w_);
        f(dy_);
    }
    template <class Format>
    auto scaling(const operand<Format>& /*of*/) const {
        if constexpr (delayed) {
            return delayed_scaling{.format_max = largest_finite<Format>,
                                   .margin = options_.margin,
                                   .algorithm = options_.algorithm};
        } else {
            return current_scaling{.format_max = largest_finite<Format>,
                                   .power_of_two = options_.power_of_two};
        }
    }
    template <class Value, class Format>
    void quantise(cpu exec, matrix_view<Value> from, operand<Format>& to) {
        to.quantise(exec, from, [&](float amax) {
            if constexpr (delayed) {
                // The first iteration has no earlier ones to go by.
                const bool first = *to.history.view().updates == 0;
                return first ? scaling(to).scale_for(amax, 1.0F) : to.history.scale();
            } else {
                return scaling(to).scale(amax);
            }
        });
    }

    operand<float8_e4m3fn> x_;
    operand<float8_e4m3fn> w_;
    operand<float8_e5m2> dy_;
    layers::float8_options options_;
    coded_weights weights_;
};

/// The same in blocks of 32 along the k of each product, so that each operand is rounded twice.
template <class Activation>
class float8_products<layers::mxfp8_block_scaling, Activation> {
public:
    explicit float8_products(const layers::float8_options& options) : weights_(options.compare_weights) {}

    template <class Weight, class Epilogue>
    void forward(cpu exec, matrix_view<const Activation> x, matrix_view<const Weight> w,
                 std::uint64_t version, matrix_view<Activation> y, const Epilogue& epilogue) {
        check_float8_operand("x", x, x.rows, "x.rows", w.columns, "w.columns");
        if (weights_.renew(w, version)) {
            quantise(exec, w, w_, along_rows);
            quantise(exec, w, w_for_dx_, along_columns);
        }
        quantise(exec, x, operand_, along_rows);
        gemm(exec, 1.0F, view(operand_), transposed(view(w_)), 0.0F, y, epilogue);
        quantise(exec, x, x_for_dw_, along_columns);
    }
    template <class DX, class DW>
    void backward(cpu exec, matrix_view<const Activation> dy, const DX& dx, const DW& dw) {
        check_float8_operand("dy", dy, x_for_dw_.rows(), "x.rows", w_.rows(), "w.rows");
        if constexpr (!std::same_as<DX, ops::absent_t>) {
            quantise(exec, dy, operand_, along_rows);
            gemm(exec, 1.0F, view(operand_), view(w_for_dx_), as<float>(result_beta(dx)), result_view(dx));
        }
        quantise(exec, dy, operand_, along_columns);
        gemm(exec, 1.0F, transposed(view(operand_)), view(x_for_dw_), as<float>(result_beta(dw)),
             result_view(dw));
    }
    [[nodiscard]] std::size_t bytes() const noexcept {
        return w_.bytes() + w_for_dx_.bytes() + x_for_dw_.bytes() + operand_.bytes();
    }
    template <class Visitor>
    void visit_state(Visitor& /*visitor*/) {
        if constexpr (Visitor::loads) weights_.forget();
    }

private:
    static constexpr bool along_rows = false, along_columns = true;

    static matrix_view<const bfloat16> view(const tensor<bfloat16>& operand) { return operand.view(); }
    template <class Value>
    static void quantise(cpu exec, matrix_view<Value> from, tensor<bfloat16>& to, bool along) {
        to.resize(from.rows, from.columns);
        quantise_mx(exec, from, to.view(), along);
    }

    tensor<bfloat16> w_{}, w_for_dx_{}, x_for_dw_{};
    tensor<bfloat16> operand_{};  ///< of the product at hand
    coded_weights weights_;
};

/// What a layer of another policy has in place of them.
struct no_float8_products {
    explicit no_float8_products(const layers::float8_options& /*options*/) {}
    [[nodiscard]] static std::size_t bytes() noexcept { return 0; }
    template <class Visitor>
    void visit_state(Visitor& /*visitor*/) {}
};

template <class Policy, class Activation>
struct products_of_policy {
    using type = no_float8_products;
};
template <layers::float8_scaling Policy, class Activation>
struct products_of_policy<Policy, Activation> {
    using type = float8_products<Policy, Activation>;
};

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
