// SPDX-License-Identifier: MIT
/// \file
/// The update of Adafactor, a parameter at a time. Elements are floats, every operation rounded by itself;
/// sums are doubles in an order that depends on the parameter's shape alone: that of square_sums.hpp in a row
/// and over all elements, ascending rows in a column.
#pragma once

#include <mp/config.hpp>
#include <mp/nn/optim/adafactor_options.hpp>
#include <mp/nn/optim/kernels/update.hpp>

#if MP_CORE_BODIES
#include <mp/nn/optim/kernels/square_sums.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/elementary.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <algorithm>
#endif

#include <cstddef>
#include <cstdint>

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
