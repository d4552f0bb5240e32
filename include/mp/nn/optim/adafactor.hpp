// SPDX-License-Identifier: MIT
/// \file
/// Adafactor: means of squares of matrices by rows and columns.
#pragma once

#include <mp/base/visit_members.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/nn/optim/gradient_limits.hpp>
#include <mp/nn/optim/grouped_optimizer.hpp>
#include <mp/nn/optim/kernels/update.hpp>
#include <mp/nn/optim/optimizer_traits.hpp>
#include <mp/nn/optim/parameter.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#if MP_CORE_BODIES
#include <mp/nn/optim/kernels/square_sums.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/elementary.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <algorithm>
#endif

namespace mp {

/// Options of mp::adafactor, with the values of Shazeer and Stern (2018). Under a scaler, a step by a
/// gradient whose square is beyond half of the range of float is skipped.
struct adafactor_options {
    /// Finite and not negative. With relative_step the most that a step is relative to the weights, which after
    /// 1 / learning_rate^2 updates is 1 / sqrt(t); else what it always is.
    double learning_rate = 1e-2;
    bool relative_step = true;
    /// Multiplies the learning rate by the root mean square of a parameter's weights, or epsilon2 if that is
    /// larger.
    bool scale_by_weights = true;
    double beta2_decay = 0.8;     ///< in (0, 4]: the means of squares take a fraction of t^-beta2_decay
    double epsilon1 = 1e-30;      ///< from 2^-120 to 1; added to every squared gradient
    double epsilon2 = 1e-3;       ///< finite and positive
    double clip_threshold = 1.0;  ///< d: positive; the most that the root mean square of an update may be
    double weight_decay =
        0.0;  ///< finite and not negative; this times the learning rate is the fraction that
              ///< every weight loses in a step

    friend constexpr bool operator==(const adafactor_options&, const adafactor_options&) = default;

    /// Calls visitor(name, member) for every option.
    MP_VISITS_MEMBERS(learning_rate, relative_step, scale_by_weights, beta2_decay, epsilon1, epsilon2,
                      clip_threshold, weight_decay)
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <>
struct optimizer_traits<adafactor_options> {
    static constexpr std::string_view name = "mp::adafactor";
    static constexpr std::string_view step = "mp::adafactor::step";
    static std::size_t states(const adafactor_options& /*options*/) { return 0; }
    static void check(std::string_view function, const adafactor_options& options) {
        require_non_negative(function, "learning_rate", options.learning_rate);
        if (!(options.beta2_decay > 0.0 && options.beta2_decay <= 4.0)) {
            throw_argument(function, "beta2_decay", options.beta2_decay, "must be in (0, 4]");
        }
        if (!(options.epsilon1 >= 0x1p-120 && options.epsilon1 <= 1.0)) {
            throw_argument(function, "epsilon1", options.epsilon1, "must be at least 2^-120 and at most 1");
        }
        require_positive(function, "epsilon2", options.epsilon2);
        require_positive(function, "clip_threshold", options.clip_threshold);
        require_non_negative(function, "weight_decay", options.weight_decay);
    }
    static double largest_rate_factor(const adafactor_options& /*options*/) { return 1.0; }
    /// Half of the range is for the roundings of means whose beta approaches 1.
    static gradient_limits limits(const adafactor_options& /*options*/, double largest_state,
                                  double /*largest_step*/) {
        return {.state = double_sqrt(double_multiply(largest_state, 0.5))};
    }
};

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Arrays of column factors and column sums are padded to a multiple of this many elements.
inline constexpr std::size_t adafactor_group = 16;

/// Where the means of squares of one parameter are, and memory for what a step computes. Rows and columns are
/// those of a matrix; `rows` is 0 for a vector, whose means are all in `columns_of`.
struct adafactor_state {
    std::size_t rows = 0;
    std::size_t columns = 0;
    float* row_means = nullptr;
    float* column_means = nullptr;
    // Of a matrix; the last two are padded to whole groups, with zeros past the last column:
    float* row_factors = nullptr;
    float* column_factors = nullptr;
    double* column_sums = nullptr;
};

/// Update number `update`, from 1 on, of a parameter.
MP_CORE_FUNCTION void update_by_adafactor(const whole_parameter& elements, const adafactor_state& state,
                                          const adafactor_options& options, double learning_rate,
                                          std::uint64_t update);

}}  // namespace mp::detail

#if MP_CORE_BODIES
namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Coefficients of a step, the same for all parameters with this number of updates.
struct adafactor_coefficients {
    double beta2;            // of the old means of squares
    double one_minus_beta2;  // of the new squares: t^-beta2_decay, so 1 in the first update
    double rate;             // before it is scaled by the weights
    float decay;             // fraction of itself that a weight loses

    adafactor_coefficients(const adafactor_options& options, double learning_rate, std::uint64_t update) {
        const auto t = static_cast<double>(update);
        const double exponent = double_multiply(-options.beta2_decay, double_log2(t));
        one_minus_beta2 = binary_exponential(rounded_doubles<1>(exponent)).value();
        beta2 = double_subtract(1.0, one_minus_beta2);
        rate = learning_rate;
        if (options.relative_step) rate = (std::min)(rate, double_divide(1.0, double_sqrt(t)));
        decay = static_cast<float>(double_multiply(learning_rate, options.weight_decay));
    }
};

/// A mean of squares moved towards a new one.
inline float moved_mean(const adafactor_coefficients& c, float mean, double square) noexcept {
    return static_cast<float>(double_add(double_multiply(c.beta2, static_cast<double>(mean)),
                                         double_multiply(c.one_minus_beta2, square)));
}

/// Sums of squares by 16 lanes, elements by their index.
class lane_sums_of_squares {
public:
    /// `count` floats and zeros up to the next multiple of square_lanes.
    void add(const float* values, std::size_t count) noexcept {
        const std::size_t whole = (count + square_lanes - 1) / square_lanes * square_lanes;
        add_squares_portable(values, lanes_, whole);
    }
    [[nodiscard]] double total() noexcept { return sum_of_square_lanes(lanes_); }

private:
    double lanes_[square_lanes] = {};
};

/// The update of one parameter.
class adafactor_update {
    static_assert(adafactor_group == square_lanes);
    static constexpr std::size_t block = 512;

public:
    adafactor_update(const whole_parameter& elements, const adafactor_state& state,
                     const adafactor_options& options, const adafactor_coefficients& c)
        : elements_(elements), state_(state), options_(options), c_(c) {}

    void run() {
        if (state_.rows != 0) {
            factor_squares();
        } else {
            move_squares();
        }
        apply();
    }

private:
    /// Calls f(row, first column, index of the element, count) on blocks of rows.
    template <class Function>
    void for_each_block(Function f) const {
        const std::size_t rows = state_.rows == 0 ? 1 : state_.rows;
        for (std::size_t row = 0; row < rows; ++row) {
            for (std::size_t column = 0; column < state_.columns; column += block) {
                f(row, column, row * state_.columns + column, (std::min)(block, state_.columns - column));
            }
        }
    }

    /// The gradient of a block, and zeros up to the end of a group of lanes.
    void load_gradient(std::size_t index, std::size_t count, float* to) const {
        elements_.gradient(index, count, to);
        std::fill(to + count, to + (count + square_lanes - 1) / square_lanes * square_lanes, 0.0F);
    }

    /// Row and column means of the squares, and the factors that stand for one over their root.
    void factor_squares() {
        const std::size_t padded = (state_.columns + square_lanes - 1) / square_lanes * square_lanes;
        std::fill(state_.column_sums, state_.column_sums + padded, 0.0);
        alignas(64) float values[block];
        lane_sums_of_squares of_row;
        for_each_block([&](std::size_t row, std::size_t column, std::size_t index, std::size_t count) {
            load_gradient(index, count, values);
            of_row.add(values, count);
            for (std::size_t i = 0; i < count; i += square_lanes) {
                add_squares_portable(values + i, state_.column_sums + column + i, square_lanes);
            }
            if (column + count == state_.columns) {
                state_.row_means[row] =
                    moved_mean(c_, state_.row_means[row], mean_square(of_row.total(), state_.columns));
                of_row = {};
            }
        });
        double sum = 0.0;
        for (std::size_t i = 0; i < state_.rows; ++i) {
            sum = double_add(sum, static_cast<double>(state_.row_means[i]));
        }
        const double mean = double_divide(sum, static_cast<double>(state_.rows));
        for (std::size_t i = 0; i < state_.rows; ++i) {
            const double ratio = double_divide(mean, static_cast<double>(state_.row_means[i]));
            state_.row_factors[i] = static_cast<float>(double_sqrt(ratio));
        }
        for (std::size_t j = 0; j < state_.columns; ++j) {
            state_.column_means[j] =
                moved_mean(c_, state_.column_means[j], mean_square(state_.column_sums[j], state_.rows));
            const double root = double_sqrt(static_cast<double>(state_.column_means[j]));
            state_.column_factors[j] = static_cast<float>(double_divide(1.0, root));
        }
    }

    [[nodiscard]] double mean_square(double sum, std::size_t count) const {
        return double_add(double_divide(sum, static_cast<double>(count)), options_.epsilon1);
    }

    /// The means of the squares of a vector.
    void move_squares() {
        namespace target = portable_vectors;
        const auto beta2 = target::broadcast(static_cast<float>(c_.beta2));
        const auto one_minus_beta2 = target::broadcast(static_cast<float>(c_.one_minus_beta2));
        const auto epsilon = target::broadcast(static_cast<float>(options_.epsilon1));
        alignas(64) float values[block];
        alignas(64) float means[block];
        for_each_block([&](std::size_t, std::size_t, std::size_t index, std::size_t count) {
            load_gradient(index, count, values);
            std::fill(means, means + block, 0.0F);
            std::copy_n(state_.column_means + index, count, means);
            for (std::size_t i = 0; i < count; i += target::lanes) {
                const auto g = target::load(values + i);
                const auto square = target::add(target::mul(g, g), epsilon);
                target::store(means + i, target::add(target::mul(beta2, target::load(means + i)),
                                                     target::mul(one_minus_beta2, square)));
            }
            std::copy_n(means, count, state_.column_means + index);
        });
    }

    /// The update of a block before it is scaled, in place of its gradient.
    void scale_gradient(std::size_t row, std::size_t column, std::size_t count, float* values) const {
        namespace target = portable_vectors;
        if (state_.rows != 0) {
            const auto of_row = target::broadcast(state_.row_factors[row]);
            for (std::size_t i = 0; i < count; i += target::lanes) {
                const auto factor = target::load(state_.column_factors + column + i);
                target::store(values + i, target::mul(target::mul(target::load(values + i), of_row), factor));
            }
            return;
        }
        alignas(64) float means[block];
        std::fill(means, means + block, 1.0F);
        std::copy_n(state_.column_means + column, count, means);
        for (std::size_t i = 0; i < count; i += target::lanes) {
            target::store(values + i,
                          target::div(target::load(values + i), target::sqrt(target::load(means + i))));
        }
    }

    /// Clips the update by its root mean square, and takes it from the weights.
    void apply() const {
        namespace target = portable_vectors;
        alignas(64) float values[block];
        alignas(64) float weights[block] = {};
        lane_sums_of_squares of_update;
        lane_sums_of_squares of_weights;
        for_each_block([&](std::size_t row, std::size_t column, std::size_t index, std::size_t count) {
            load_gradient(index, count, values);
            scale_gradient(row, column, count, values);
            of_update.add(values, count);
            if (!options_.scale_by_weights) return;
            elements_.weights(index, count, weights);
            std::fill(weights + count, weights + (count + square_lanes - 1) / square_lanes * square_lanes,
                      0.0F);
            of_weights.add(weights, count);
        });
        const std::size_t size = (state_.rows == 0 ? 1 : state_.rows) * state_.columns;
        double rate = c_.rate;
        if (options_.scale_by_weights) {
            const double root = double_sqrt(double_divide(of_weights.total(), static_cast<double>(size)));
            rate = double_multiply(rate, (std::max)(options_.epsilon2, root));
        }
        const double root = double_sqrt(double_divide(of_update.total(), static_cast<double>(size)));
        rate = double_divide(rate, (std::max)(1.0, double_divide(root, options_.clip_threshold)));
        const auto decay = target::broadcast(c_.decay);
        const auto step = target::broadcast(static_cast<float>(rate));
        for_each_block([&](std::size_t row, std::size_t column, std::size_t index, std::size_t count) {
            load_gradient(index, count, values);
            scale_gradient(row, column, count, values);
            elements_.weights(index, count, weights);
            for (std::size_t i = 0; i < count; i += target::lanes) {
                const auto weight = target::load(weights + i);
                const auto change =
                    target::add(target::mul(decay, weight), target::mul(step, target::load(values + i)));
                target::store(weights + i, target::sub(weight, change));
            }
            elements_.set_weights(index, count, weights);
        });
    }

    const whole_parameter& elements_;
    const adafactor_state& state_;
    const adafactor_options& options_;
    adafactor_coefficients c_;
};

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION void update_by_adafactor(const whole_parameter& elements, const adafactor_state& state,
                                          const adafactor_options& options, double learning_rate,
                                          std::uint64_t update) {
    const adafactor_coefficients coefficients(options, learning_rate, update);
    adafactor_update(elements, state, options, coefficients).run();
}

}}  // namespace mp::detail
#endif

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
