// SPDX-License-Identifier: MIT
/// \file
/// Adafactor: means of squares of matrices by rows and columns.
#pragma once

#include <mp/error.hpp>
#include <mp/nn/optim/adafactor_options.hpp>
#include <mp/nn/optim/grouped_optimizer.hpp>
#include <mp/nn/optim/kernels/adafactor.hpp>
#include <mp/nn/optim/parameter_layout.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Memory for the means of squares of all parameters, and for what a step computes of them.
class adafactor_memory {
public:
    /// \throws argument_error  the weights of a parameter are no multiple of its rows
    template <class Parameters>
    explicit adafactor_memory(const Parameters& parameters) {
        for (const auto& it : parameters) states_.push_back(state_of(states_.size(), it));
        std::size_t floats = 0, doubles = 0;
        const auto place = [&](float* all, double* sums) {
            floats = doubles = 0;
            const auto take = [&](std::size_t count) {
                floats += count;
                return all == nullptr ? nullptr : all + (floats - count);
            };
            for (adafactor_state& it : states_) {
                it.column_means = take(it.columns);
                if (it.rows == 0) continue;
                it.row_means = take(it.rows);
                it.row_factors = take(it.rows);
                it.column_factors = take(padded(it.columns));
                if (sums != nullptr) it.column_sums = sums + doubles;
                doubles += padded(it.columns);
            }
        };
        place(nullptr, nullptr);
        floats_.resize(floats);
        doubles_.resize(doubles);
        place(floats_.data(), doubles_.data());
    }

    /// One for each parameter. What they point to stays where it is when this moves.
    [[nodiscard]] const std::vector<adafactor_state>& states() const noexcept { return states_; }
    [[nodiscard]] std::size_t bytes() const noexcept {
        return floats_.size() * sizeof(float) + doubles_.size() * sizeof(double);
    }

private:
    static constexpr std::size_t padded(std::size_t size) {
        return (size + adafactor_group - 1) / adafactor_group * adafactor_group;
    }
    static adafactor_state state_of(std::size_t index, const auto& parameter) {
        const std::size_t size = parameter.weights.size();
        adafactor_state state;
        state.columns = size;
        if (parameter.rows <= 1) return state;
        if (size % parameter.rows != 0) {
            throw_argument("mp::adafactor", parameter_text(index, parameter.name, "rows"), parameter.rows,
                           "must divide the number of weights, which is " + error_text(size));
        }
        if (size / parameter.rows > 1) {
            state.rows = parameter.rows;
            state.columns = size / parameter.rows;
        }
        return state;
    }

    std::vector<adafactor_state> states_;
    std::vector<float> floats_;
    std::vector<double> doubles_;
};

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

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
/// the shapes alone. Threads share out whole parameters. See optimizer_base for the types and the protocol, and
/// grouped_optimizer for groups of parameters.
///
///     mp::adafactor<mp::bfloat16> optimizer({{.name = "w", .weights = w, .gradient = dw, .rows = 512}});
template <class Weight, class Gradient = Weight, class Master = float>
class adafactor : public grouped_optimizer<adafactor<Weight, Gradient, Master>, adafactor_options, Weight,
                                           Gradient, Master, float> {
    using base = grouped_optimizer<adafactor, adafactor_options, Weight, Gradient, Master, float>;
    friend base;

public:
    /// Rows and columns are looked at, so that ranks cannot share a parameter.
    static constexpr bool needs_whole_parameters = true;

    /// See grouped_optimizer. The weights of a parameter must be a multiple of its rows.
    using base::base;

    /// The means of the squared gradients of the rows of a parameter; none of a vector.
    [[nodiscard]] std::span<const float> row_means(std::size_t index) const {
        static_cast<void>(base::parameter_name(index));  // throws
        return {memory_.states()[index].row_means, memory_.states()[index].rows};
    }
    /// As row_means(), of the columns, or of the elements of a vector.
    [[nodiscard]] std::span<const float> column_means(std::size_t index) const {
        static_cast<void>(base::parameter_name(index));
        return {memory_.states()[index].column_means, memory_.states()[index].columns};
    }

    /// As optimizer_base::bytes_per_parameter, with the means and what a step needs besides.
    [[nodiscard]] double bytes_per_parameter() const noexcept {
        std::size_t weights = 0;
        for (const auto& it : base::parameters()) weights += it.weights.size();
        return base::bytes_per_parameter() +
               (weights == 0 ? 0.0 : static_cast<double>(memory_.bytes()) / static_cast<double>(weights));
    }

    /// For mp::save_checkpoint and mp::load_checkpoint.
    ///
    /// \throws state_error  the gradients are unscaled: an iteration is under way
    template <class Visitor>
    void visit_state(Visitor& visitor) {
        base::visit_state(visitor);
        for (std::size_t i = 0; i < memory_.states().size(); ++i) {
            const std::string_view own = base::parameter_name(i);
            const std::string prefix = own.empty() ? detail::error_text(i) : std::string(own);
            const detail::adafactor_state& it = memory_.states()[i];
            if (it.rows != 0) visitor(prefix + ".row_means", std::span(it.row_means, it.rows));
            visitor(prefix + ".column_means", std::span(it.column_means, it.columns));
        }
    }

private:
    void update(float inverse_scale) {
        base::apply_to_parameters(
            inverse_scale, [this](std::size_t index, std::uint64_t number, const auto& elements) {
                const std::size_t group = base::parameters()[index].group;
                detail::update_by_adafactor(elements, memory_.states()[index], base::options(group),
                                            base::learning_rate(group), number);
            });
    }

    detail::adafactor_memory memory_{base::parameters()};
};

}}  // namespace mp
