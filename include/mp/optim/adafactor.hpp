// SPDX-License-Identifier: MIT
/// \file
/// Adafactor: means of squares of matrices by rows and columns.
#pragma once

#include <mp/detail/mistaken_arguments.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/optim/adafactor_options.hpp>
#include <mp/optim/kernels/adafactor.hpp>
#include <mp/optim/optimizer_base.hpp>
#include <mp/scaling/scaled_gradient.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mp::inline MP_ISA_NAMESPACE {

/// Adafactor (Shazeer and Stern 2018), without a first moment. Of a parameter that is a matrix of m rows and
/// n columns (mp::parameter::rows), it keeps the means R of the rows and C of the columns of the squared
/// gradients: m + n floats instead of the m n of AdamW's. At the t-th update, with gradient g and weight w:
///
///     b = 1 - t^-beta2_decay
///     R_i = b R_i + (1 - b) mean_j(g_ij^2 + epsilon1)        C_j = b C_j + (1 - b) mean_i(g_ij^2 + epsilon1)
///     u_ij = g_ij / sqrt(R_i C_j / mean(R))                  of a vector g_j / sqrt(V_j), V as C for m = 1
///     rate = min(learning_rate, 1 / sqrt(t)) max(epsilon2, rms(w))
///     w = w - learning_rate weight_decay w - rate u / max(1, rms(u) / clip_threshold)
///
/// Means, roots and the rate are computed in double and kept as floats, elements in float; the bits depend on
/// the shapes alone. Threads share out whole parameters. See optimizer_base for the types and the protocol;
/// all parameters are in group 0.
///
///     mp::adafactor<mp::bfloat16> optimizer({{.name = "w", .weights = w, .gradient = dw, .rows = 512}});
template <class Weight, class Gradient = Weight, class Master = float>
class adafactor : public optimizer_base<Weight, Gradient, Master, float> {
    using base = optimizer_base<Weight, Gradient, Master, float>;
    static constexpr std::string_view name = "mp::adafactor";

public:
    using options_type = adafactor_options;
    using parameter_type = typename base::parameter_type;

    /// \throws argument_error  an option is out of range; the weights of a parameter are no multiple of its
    ///                         rows; or as for mp::optimizer
    adafactor(cpu exec, std::vector<parameter_type> parameters, const adafactor_options& options = {})
        : base(name, exec, std::move(parameters), checked(options).learning_rate, 0), options_(options) {
        for (std::size_t i = 0; i < base::parameters().size(); ++i) add_state(i);
        point();
    }
    /// Overload that runs on the calling thread.
    explicit adafactor(std::vector<parameter_type> parameters, const adafactor_options& options = {})
        : adafactor(cpu{}, std::move(parameters), options) {}

    /// Options in torch's words, and arrays of another type: do not compile.
    template <class Words = detail::optimizer_words>
        requires std::same_as<Words, detail::optimizer_words>
    adafactor(cpu /*exec*/, const std::vector<parameter_type>& parameters, const Words& /*options*/)
        : adafactor(parameters, detail::instead_of_optimizer_words<Words, adafactor_options>()) {}
    template <class Words = detail::optimizer_words>
        requires std::same_as<Words, detail::optimizer_words>
    adafactor(const std::vector<parameter_type>& parameters, const Words& /*options*/)
        : adafactor(parameters, detail::instead_of_optimizer_words<Words, adafactor_options>()) {}
    template <class Parameters = std::vector<detail::any_parameter>>
        requires detail::mistaken_parameters<Parameters, parameter_type>
    adafactor(cpu /*exec*/, const Parameters& /*parameters*/, const adafactor_options& options = {})
        : adafactor(detail::instead_of_parameters<Parameters, std::vector<parameter_type>>(), options) {}
    template <class Parameters = std::vector<detail::any_parameter>>
        requires detail::mistaken_parameters<Parameters, parameter_type>
    explicit adafactor(const Parameters& /*parameters*/, const adafactor_options& options = {})
        : adafactor(detail::instead_of_parameters<Parameters, std::vector<parameter_type>>(), options) {}

    [[nodiscard]] const adafactor_options& options() const noexcept { return options_; }

    /// Sets the options from the next step on, the learning rate among them.
    ///
    /// \throws argument_error  an option is out of range
    void set_options(const adafactor_options& options) {
        options_ = checked(options);
        base::set_learning_rate(options.learning_rate);
    }

    /// Sets the learning rate to that of the options times `factor`: what a schedule says.
    ///
    /// \throws argument_error  the rate would not be finite, or be negative
    void set_learning_rate_factor(double factor) {
        detail::require_learning_rate("mp::adafactor::set_learning_rate_factor", "factor", factor,
                                      options_.learning_rate);
        base::set_learning_rate(options_.learning_rate * factor);
    }

    /// The means of the squared gradients of the rows of a parameter; none of a vector.
    [[nodiscard]] std::span<const float> row_means(std::size_t index) const {
        static_cast<void>(base::parameter_name(index));  // throws
        return {states_[index].row_means, states_[index].rows};
    }
    /// As row_means(), of the columns, or of the elements of a vector.
    [[nodiscard]] std::span<const float> column_means(std::size_t index) const {
        static_cast<void>(base::parameter_name(index));
        return {states_[index].column_means, states_[index].columns};
    }

    /// As optimizer_base::bytes_per_parameter, with the means and what a step needs besides.
    [[nodiscard]] double bytes_per_parameter() const noexcept {
        std::size_t weights = 0;
        for (const parameter_type& it : base::parameters()) weights += it.weights.size();
        const std::size_t bytes = memory_.size() * sizeof(float) + sums_.size() * sizeof(double);
        return base::bytes_per_parameter() +
               (weights == 0 ? 0.0 : static_cast<double>(bytes) / static_cast<double>(weights));
    }

    /// One update of all parameters that have a gradient, see mp::optimizer::step.
    void step() { update(1.0F); }

    /// Overload that steps while multiplying the gradients by `inverse_scale` on the way.
    ///
    /// \throws state_error     the gradients are already unscaled
    /// \throws argument_error  the inverse scale is NaN or negative
    void step(float inverse_scale) {
        base::require_fused_step("mp::adafactor::step", inverse_scale);
        update(inverse_scale);
    }

    /// A step by gradients that are still scaled: does not compile.
    template <class Value>
    void step(scaled_gradient<Value>) {
        static_assert(detail::never<Value>,
                      "mp::adafactor::step: this gradient still carries its loss scale; call unscale of the "
                      "loss scaler (or unscale_gradients_from) and then step()");
    }

    /// For mp::save_checkpoint and mp::load_checkpoint.
    ///
    /// \throws state_error  the gradients are unscaled: an iteration is under way
    template <class Visitor>
    void visit_state(Visitor& visitor) {
        base::visit_state(visitor);
        visitor("options", options_);
        for (std::size_t i = 0; i < states_.size(); ++i) {
            const std::string_view own = base::parameter_name(i);
            const std::string prefix = own.empty() ? detail::error_text(i) : std::string(own);
            const detail::adafactor_state& it = states_[i];
            if (it.rows != 0) visitor(prefix + ".row_means", std::span(it.row_means, it.rows));
            visitor(prefix + ".column_means", std::span(it.column_means, it.columns));
        }
    }

private:
    static const adafactor_options& checked(const adafactor_options& options) {
        detail::check_options(name, options);
        return options;
    }

    static constexpr std::size_t padded(std::size_t size) {
        return (size + detail::square_lanes - 1) / detail::square_lanes * detail::square_lanes;
    }

    void add_state(std::size_t index) {
        const parameter_type& it = base::parameters()[index];
        const std::size_t size = it.weights.size();
        detail::adafactor_state state;
        state.columns = size;
        if (it.rows > 1) {
            if (size % it.rows != 0) {
                detail::throw_argument(
                    name, detail::parameter_text(index, it.name, "rows"), it.rows,
                    "must divide the number of weights, which is " + detail::error_text(size));
            }
            if (size / it.rows > 1) {
                state.rows = it.rows;
                state.columns = size / it.rows;
            }
        }
        states_.push_back(state);
    }

    /// Allocates and sets the pointers of all states; blocks of memory stay where they are when this moves.
    void point() {
        std::size_t floats = 0;
        std::size_t doubles = 0;
        const auto each = [&](float* all, double* sums) {
            floats = 0;
            doubles = 0;
            const auto take = [&](std::size_t count) {
                floats += count;
                return all == nullptr ? nullptr : all + (floats - count);
            };
            for (detail::adafactor_state& it : states_) {
                it.column_means = take(it.columns);
                if (it.rows == 0) continue;
                it.row_means = take(it.rows);
                it.row_factors = take(it.rows);
                it.column_factors = take(padded(it.columns));
                if (sums != nullptr) it.column_sums = sums + doubles;
                doubles += padded(it.columns);
            }
        };
        each(nullptr, nullptr);
        memory_.resize(floats);
        sums_.resize(doubles);
        each(memory_.data(), sums_.data());
    }

    void update(float inverse_scale) {
        base::apply_to_parameters(
            inverse_scale, [&](std::size_t index, std::uint64_t number, const auto& elements) {
                const detail::adafactor_coefficients c(options_, base::learning_rate(), number);
                detail::adafactor_update(elements, states_[index], options_, c).run();
            });
    }

    adafactor_options options_;
    std::vector<detail::adafactor_state> states_;
    std::vector<float> memory_;
    std::vector<double> sums_;
};

}  // namespace mp::inline MP_ISA_NAMESPACE
