// SPDX-License-Identifier: MIT
/// \file
/// What a number format does to gradients: a comparison with the gradients of the same weights in float.
#pragma once

#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/convert.hpp>
#include <mp/half.hpp>
#include <mp/ops.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "../common/data.hpp"
#include "network.hpp"

namespace examples::train_digits {

/// What was measured on the gradients of a training, summed over the steps that were looked at.
struct gradient_record {
    /// Of the weights and biases, and of the outputs of layers, what the format of the recipe would do to the
    /// exact gradients times the loss scale. For the recipe in float: what half would do.
    mp::range_report parameters;
    mp::range_report outputs;
    /// Sum over the steps of |g - exact| / |exact|, with the Euclidean norm over all weights and biases.
    double relative_error = 0.0;
    std::uint64_t steps = 0;

    gradient_record& operator+=(const gradient_record& other) {
        parameters += other.parameters;
        outputs += other.outputs;
        relative_error += other.relative_error;
        steps += other.steps;
        return *this;
    }

    /// The mean of the relative errors; 0 if no step was looked at.
    [[nodiscard]] double mean_relative_error() const {
        return steps == 0 ? 0.0 : relative_error / static_cast<double>(steps);
    }
};

/// The precision in which a region computes that is made from this.
constexpr mp::precision precision_of(mp::precision way) {
    return way;
}
constexpr mp::precision precision_of(const mp::autocast::preset& way) {
    return way.value;
}

/// Repeats a backward pass in float, from the same weights, images and loss scale, and compares. Up to the
/// rounding of float, whose range is wide enough, that gives the exact gradients.
class gradient_probe {
public:
    gradient_probe(std::span<const std::size_t> widths, std::size_t batch) : exact_(widths, batch, 0) {}

    /// Looks at the gradients that a batch gives. Leaves the weights alone. `way` is what autocast regions
    /// are made from: a precision or a preset.
    template <class Way, class Value>
    void measure(mp::cpu exec, const Way& way, network<Value>& model, const digits& batch,
                 const mp::ops::loss_factors& factors, gradient_record& record) {
        const auto images = batch.images(0, batch.size());
        {
            const mp::autocast_region region(way);
            model.forward(exec, images);
            model.backward(exec, images, batch.labels, factors);
        }
        compare(exec, precision_of(way), model, batch, factors, record);
    }

    /// Looks at gradients that somebody else has computed: `model` holds them and the weights that they are
    /// of. `low` is the precision in which that was done.
    template <class Value>
    void compare(mp::cpu exec, mp::precision low, const network<Value>& model, const digits& batch,
                 const mp::ops::loss_factors& factors, gradient_record& record) {
        const auto images = batch.images(0, batch.size());
        const mp::autocast_region in_float(mp::precision::off);
        exact_.copy_weights(exec, model);
        exact_.forward(exec, images);
        exact_.backward(exec, images, batch.labels, factors);

        double difference = 0.0;
        double norm = 0.0;
        const auto exact = exact_.gradients();
        const auto actual = model.gradients();
        for (std::size_t i = 0; i < exact.size(); ++i) {
            const mp::range_report report = report_values(exec, low, exact[i].values);
            if (!exact[i].of_parameter) {
                record.outputs += report;
                continue;
            }
            record.parameters += report;
            for (std::size_t j = 0; j < exact[i].values.size(); ++j) {
                const auto wanted = static_cast<double>(exact[i].values[j]);
                const double missed = static_cast<double>(actual[i].values[j]) - wanted;
                difference += missed * missed;
                norm += wanted * wanted;
            }
        }
        // A step whose gradients overflowed is skipped by a loss scaler, so it counts for nothing here.
        if (!mp::isfinite(difference) || !(norm > 0.0)) return;
        record.relative_error += std::sqrt(difference / norm);
        ++record.steps;
    }

private:
    /// What the low precision would do to the values; for training in float, what half would do.
    static mp::range_report report_values(mp::cpu exec, mp::precision low, std::span<const float> values) {
        const bool narrow = low == mp::precision::fp16 || low == mp::precision::off;
        return narrow ? mp::report_range<mp::half>(exec, values)
                      : mp::report_range<mp::bfloat16>(exec, values);
    }

    network<float> exact_;
};

}  // namespace examples::train_digits
