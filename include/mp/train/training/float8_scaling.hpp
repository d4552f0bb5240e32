// SPDX-License-Identifier: MIT
/// \file
/// Linear layers whose three products take operands of 8 bits: which scales these have, and what a layer
/// keeps for them.
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/config.hpp>
#include <mp/executor.hpp>
#include <mp/float8.hpp>
#include <mp/linalg/gemm/epilogue.hpp>
#include <mp/linalg/gemm/gemm.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/autocast/policy.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/nn/ops/linear.hpp>
#include <mp/nn/scaling/amax_history.hpp>
#include <mp/nn/scaling/tensor_scaling.hpp>
#include <mp/numbers/rules/quantised_operand.hpp>
#include <mp/train/training/float8_operands.hpp>
#include <mp/train/training/tensor.hpp>
#include <mp/train/training/tensor_scale_store.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
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
/// least 2^-110: on GPUs, too, whose instructions for such blocks (sm_100 and sm_120) are not used.
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
    /// Whether to look for weights that were written by hand without weights_changed(), which reads all weights.
    bool compare_weights = MP_CHECK_KEPT_CASTS != 0;
};

}  // namespace mp::layers

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The operands of the three products of a layer in 8 bits with a scale each, and what is remembered of them.
///
/// On a GPU scales live there, and nothing waits for them: what is enqueued is the same whatever they are. The
/// functions for that are in <mp/nn/scaling/gpu/tensor_scaling.hpp> and <mp/nn/scaling/gpu/gemm_tensor_scaled.hpp>.
template <layers::float8_scaling Policy, class Activation>
class float8_products {
    static constexpr bool delayed = std::same_as<Policy, layers::float8_delayed_scaling>;

public:
    float8_products(tensor_scale_store& scales, const layers::float8_options& options)
        : scales_(&scales), options_(options), weights_(options.compare_weights) {
        const std::int32_t length = delayed ? options.amax_history_length : 1;
        for_each_operand([&](auto& it) {
            it.index = scales.add(length, delayed ? delayed_rule_of(it) : delayed_scaling{});
        });
    }

    /// What a product writes as x of the next forward_of_codes(), or as dy of the next backward_of_codes(), in place of a
    /// matrix: codes of what the matrix would hold, and their largest magnitude, in the pass that ends the product.
    template <class Format>
    struct operand_result {
        scaled_codes<Format>* to;
        float scale;
    };
    /// Nothing where the scale follows from the operand itself: with current scaling, and in the first iteration.
    [[nodiscard]] std::optional<operand_result<float8_e4m3fn>> result_as_x() { return result_as(x_); }
    [[nodiscard]] std::optional<operand_result<float8_e5m2>> result_as_dy() { return result_as(dy_); }

    /// Rounds the weights where they have changed, which begins an iteration.
    template <class Weight>
    void begin(cpu exec, matrix_view<const Weight> w, const buffer_version& version) {
        if (!weights_.renew(w, count_of(version))) return;
        if constexpr (delayed) scales_->update(exec, scales_->iteration());
        quantise(exec, w, w_);
    }
    /// y = x w^T through `epilogue`; y is a matrix or an operand_result.
    template <class Weight, class Y, class Epilogue>
    void forward(cpu exec, matrix_view<const Activation> x, matrix_view<const Weight> w,
                 const buffer_version& version, const Y& y, const Epilogue& epilogue) {
        check_float8_operand("x", x, x.rows, "x.rows", w.columns, "w.columns");
        begin(exec, w, version);
        quantise(exec, x, x_);
        forward_of_codes(exec, y, epilogue);
    }
    template <class Y, class Epilogue>
    void forward_of_codes(cpu exec, const Y& y, const Epilogue& epilogue) {
        multiply(exec, product_factor(x_, w_), x_.view(), transposed(w_.view()), 0.0F, y, epilogue);
    }

    /// dx = dy w through `epilogue`, dw = dy^T x of the last forward(); dx is a matrix, the sum with one, an
    /// operand_result, or absent.
    template <class DX, class DW, class Epilogue = identity_epilogue>
    void backward(cpu exec, matrix_view<const Activation> dy, const DX& dx, const DW& dw,
                  const Epilogue& epilogue = {}) {
        check_float8_operand("dy", dy, x_.codes.rows(), "x.rows", w_.codes.rows(), "w.rows");
        quantise(exec, dy, dy_);
        backward_of_codes(exec, dx, dw, epilogue);
    }
    template <class DX, class DW, class Epilogue = identity_epilogue>
    void backward_of_codes(cpu exec, const DX& dx, const DW& dw, const Epilogue& epilogue = {}) {
        // Only here, so that a forward pass alone, which validates, leaves no trace. What is not finite is no
        // measure, and its step is skipped.
        if constexpr (delayed) {
            for_each_operand([&](auto& it) {
                if (it.is_finite()) scales_->history(it.index).record(it.amax);
            });
        }
        if constexpr (requires { dx.scale; }) {
            multiply(exec, product_factor(dy_, w_), dy_.view(), w_.view(), 0.0F, dx, epilogue);
        } else if constexpr (!std::same_as<DX, ops::absent_t>) {
            multiply(exec, product_factor(dy_, w_), dy_.view(), w_.view(), as<float>(result_beta(dx)),
                     result_view(dx), epilogue);
        }
        gemm(exec, product_factor(dy_, x_), transposed(dy_.view()), x_.view(), as<float>(result_beta(dw)),
             result_view(dw));
    }

    /// The same on a GPU; `bias` may be empty.
    template <gpu_executor Executor, class Weight>
    void forward(const Executor& exec, matrix_view<const Activation> x, matrix_view<const Weight> w,
                 const buffer_version& version, matrix_view<Activation> y, std::span<const Weight> bias) {
        check_float8_operand("x", x, x.rows, "x.rows", w.columns, "w.columns");
        scales_->place(exec);
        if (weights_.renew(count_of(version), !executor_memory<Executor>::can_keep(exec))) {
            if constexpr (delayed) scales_->update(exec, scales_->iteration());
            quantise(exec, w, w_);
        }
        quantise(exec, x, x_);
        gemm_tensor_scaled(exec, x_.on_device.view(), scale(x_), transposed(w_.on_device.view()), scale(w_),
                           y, bias);
    }
    template <gpu_executor Executor, class DX, class DW>
    void backward(const Executor& exec, matrix_view<const Activation> dy, const DX& dx, const DW& dw) {
        const matrix_view<float8_e4m3fn> x = x_.on_device.turned(), w = w_.on_device.turned();
        check_float8_operand("dy", dy, x.columns, "x.rows", w.columns, "w.rows");
        quantise(exec, dy, dy_);
        if constexpr (delayed) scales_->record(exec, x_.index, operands);
        const auto product = [&](auto of_dy, auto other, const device_tensor_scale* scale_of_other,
                                 const auto& result) {
            const auto c = result_view(result);
            using value = std::remove_reference_t<decltype(*c.data)>;
            gemm_tensor_scaled(exec, of_dy, scale(dy_), transposed(other), scale_of_other, c,
                               std::span<const value>{}, result_beta(result) > 0);
        };
        if constexpr (!std::same_as<DX, ops::absent_t>) product(dy_.on_device.view(), w, scale(w_), dx);
        product(dy_.on_device.turned(), x, scale(x_), dw);
    }

    [[nodiscard]] std::size_t bytes() const noexcept { return x_.bytes() + w_.bytes() + dy_.bytes(); }

    /// Delayed scaling has something that a run goes on with; reading it from a GPU waits.
    template <class Visitor>
    void visit_state(Visitor& visitor) {
        if constexpr (delayed) {
            scales_->read(x_.index, operands);
            visitor("x", scales_->history(x_.index));
            visitor("w", scales_->history(w_.index));
            visitor("dy", scales_->history(dy_.index));
            if constexpr (requires { Visitor::changes_histories; }) scales_->write(x_.index, operands);
        }
        if constexpr (Visitor::loads) {
            visitor.when_loaded([this] {
                if constexpr (delayed) {
                    scales_->write(x_.index, operands);
                    scales_->forget();
                }
                weights_.forget();
            });
        }
    }

private:
    /// The number that the codes of weights belong to: a delayed scale moves in every iteration, also where the
    /// weights stay, so that they are rounded again.
    [[nodiscard]] std::uint64_t count_of(const buffer_version& version) const {
        return delayed ? scales_->iteration() : version.count();
    }

    /// Those of a layer are neighbours in the store.
    static constexpr std::size_t operands = 3;
    template <class Format>
    struct operand : scaled_codes<Format> {
        using format = Format;
        [[nodiscard]] std::size_t bytes() const noexcept { return this->codes.bytes() + on_device.bytes(); }

        std::size_t index = 0;  ///< of its scale
        device_codes<Format> on_device{};
    };
    template <class Format>
    [[nodiscard]] device_tensor_scale* scale(const operand<Format>& of) const {
        return scales_->on_device(of.index);
    }
    template <class Function>
    void for_each_operand(const Function& f) {
        f(x_);
        f(w_);
        f(dy_);
    }
    template <class Format>
    delayed_scaling delayed_rule_of(const operand<Format>& /*it*/) const {
        return {
            .format_max = largest_finite<Format>, .margin = options_.margin, .algorithm = options_.algorithm};
    }
    template <class Format>
    auto scaling(const operand<Format>& of) const {
        if constexpr (delayed) {
            return delayed_rule_of(of);
        } else {
            return current_scaling{.format_max = largest_finite<Format>,
                                   .power_of_two = options_.power_of_two};
        }
    }
    /// The scale that delayed scaling has for this iteration; the first one has no earlier ones to go by.
    template <class Format>
    std::optional<float> known_scale(const operand<Format>& of) const {
        if constexpr (!delayed) return std::nullopt;
        amax_history& history = scales_->history(of.index);
        return *history.view().updates == 0 ? std::nullopt : std::optional(history.scale());
    }
    template <class Format>
    std::optional<operand_result<Format>> result_as(operand<Format>& to) const {
        const std::optional<float> scale = known_scale(to);
        if (!scale.has_value()) return std::nullopt;
        return operand_result<Format>{&to, *scale};
    }
    template <class Value, class Format>
    void quantise(cpu exec, matrix_view<Value> from, operand<Format>& to) {
        to.quantise(exec, from, [&](float amax) {
            if constexpr (delayed) {
                const std::optional<float> scale = known_scale(to);
                return scale.has_value() ? *scale : scaling(to).scale_for(amax, 1.0F);
            } else {
                return scaling(to).scale(amax);
            }
        });
    }
    template <class A, class B, class C, class Epilogue>
    static void multiply(cpu exec, float alpha, matrix_view<A> a, matrix_view<B> b, float beta, const C& c,
                         const Epilogue& epilogue) {
        if constexpr (requires { c.scale; }) {
            c.to->product(exec, alpha, a, b, c.scale, compose(epilogue, rounding_of<Activation>()));
        } else {
            gemm(exec, alpha, a, b, beta, c, epilogue);
        }
    }

    template <gpu_executor Executor, class Value, class Format>
    void quantise(const Executor& exec, matrix_view<Value> from, operand<Format>& to) {
        to.on_device.resize(exec, from.rows, from.columns);
        quantize_with_scale(exec, scaling(to), from, to.on_device.view(), to.on_device.turned(), scale(to));
    }

    operand<float8_e4m3fn> x_{};
    operand<float8_e4m3fn> w_{};
    operand<float8_e5m2> dy_{};
    tensor_scale_store* scales_;
    layers::float8_options options_;
    coded_weights weights_;
};

/// The same in blocks of 32 along the k of each product, so that each operand is rounded twice.
template <class Activation>
class float8_products<layers::mxfp8_block_scaling, Activation> {
public:
    float8_products(tensor_scale_store& /*scales*/, const layers::float8_options& options)
        : weights_(options.compare_weights) {}

    template <class Weight, class Epilogue>
    void forward(cpu exec, matrix_view<const Activation> x, matrix_view<const Weight> w,
                 const buffer_version& version, matrix_view<Activation> y, const Epilogue& epilogue) {
        check_float8_operand("x", x, x.rows, "x.rows", w.columns, "w.columns");
        if (weights_.renew(w, version.count())) {
            quantise(exec, w, w_, along_rows);
            quantise(exec, w, w_for_dx_, along_columns);
        }
        quantise(exec, x, operand_, along_rows);
        gemm(exec, 1.0F, view(operand_), transposed(view(w_)), 0.0F, y, epilogue);
        quantise(exec, x, x_for_dw_, along_columns);
    }
    template <class DX, class DW, class Epilogue = identity_epilogue>
    void backward(cpu exec, matrix_view<const Activation> dy, const DX& dx, const DW& dw,
                  const Epilogue& epilogue = {}) {
        check_float8_operand("dy", dy, x_for_dw_.rows(), "x.rows", w_.rows(), "w.rows");
        if constexpr (!std::same_as<DX, ops::absent_t>) {
            quantise(exec, dy, operand_, along_rows);
            gemm(exec, 1.0F, view(operand_), view(w_for_dx_), as<float>(result_beta(dx)), result_view(dx),
                 epilogue);
        }
        quantise(exec, dy, operand_, along_columns);
        gemm(exec, 1.0F, transposed(view(operand_)), view(x_for_dw_), as<float>(result_beta(dw)),
             result_view(dw));
    }
    /// The same on a GPU; `bias` may be empty.
    template <gpu_executor Executor, class Weight>
    void forward(const Executor& exec, matrix_view<const Activation> x, matrix_view<const Weight> w,
                 const buffer_version& version, matrix_view<Activation> y, std::span<const Weight> bias) {
        check_float8_operand("x", x, x.rows, "x.rows", w.columns, "w.columns");
        if (weights_.renew(version.count(), !executor_memory<Executor>::can_keep(exec))) {
            quantise(exec, w, w_, w_for_dx_);
        }
        quantise(exec, x, operand_, x_for_dw_);
        if (bias.empty()) {
            ops::linear<autocast::off>(exec, view(operand_), view(w_), ops::absent, y);
        } else {
            ops::linear<autocast::off>(exec, view(operand_), view(w_), bias, y);
        }
    }
    template <gpu_executor Executor, class DX, class DW>
    void backward(const Executor& exec, matrix_view<const Activation> dy, const DX& dx, const DW& dw) {
        check_float8_operand("dy", dy, x_for_dw_.rows(), "x.rows", w_.rows(), "w.rows");
        quantise(exec, dy, operand_, dy_for_dw_);
        if constexpr (!std::same_as<DX, ops::absent_t>) {
            ops::matmul<autocast::off>(exec, view(operand_), view(w_for_dx_), dx);
        }
        ops::matmul<autocast::off>(exec, transposed(view(dy_for_dw_)), view(x_for_dw_), dw);
    }
    [[nodiscard]] std::size_t bytes() const noexcept {
        return w_.bytes() + w_for_dx_.bytes() + x_for_dw_.bytes() + dy_for_dw_.bytes() + operand_.bytes();
    }
    template <class Visitor>
    void visit_state([[maybe_unused]] Visitor& visitor) {
        if constexpr (Visitor::loads) visitor.when_loaded([this] { weights_.forget(); });
    }

private:
    static constexpr bool along_rows = false, along_columns = true;

    static matrix_view<const bfloat16> view(const tensor<bfloat16>& operand) { return operand.view(); }
    template <class Value>
    static void quantise(cpu exec, matrix_view<Value> from, tensor<bfloat16>& to, bool along) {
        to.resize(from.rows, from.columns);
        quantise_mx(exec, from, to.view(), along);
    }

    template <gpu_executor Executor, class Value>
    static void quantise(const Executor& exec, matrix_view<Value> from, tensor<bfloat16>& rows,
                         tensor<bfloat16>& columns) {
        rows.resize(exec, from.rows, from.columns);
        columns.resize(exec, from.rows, from.columns);
        quantise_mx(mx_blocks{}, exec, from, rows.view(), columns.view());
    }

    tensor<bfloat16> w_{}, w_for_dx_{}, x_for_dw_{};
    tensor<bfloat16> dy_for_dw_{};  ///< of a GPU, which rounds an operand both ways at once
    tensor<bfloat16> operand_{};    ///< of the product at hand
    coded_weights weights_;
};

/// What a layer of another policy has in place of them.
struct no_float8_products {
    no_float8_products(tensor_scale_store& /*scales*/, const layers::float8_options& /*options*/) {}
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

}}  // namespace mp::detail
