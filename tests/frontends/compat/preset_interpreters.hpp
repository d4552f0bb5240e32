// SPDX-License-Identifier: MIT
/// \file
/// The updates of the scalers that presets reproduce, each a small program of its own, written from the
/// published rules with the variables that the system has. They share nothing with the library. Here are the
/// systems that keep the scale in a tensor of float; preset_interpreters_python.hpp has those that keep it as
/// a number of Python's, which is a double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace interpreters {

/// What an update did, in words.
enum class outcome {
    counted,   ///< a clean iteration, the scale stays
    grew,      ///< the scale was multiplied, even if that made it infinite
    refused,   ///< the scale would have become infinite
    capped,    ///< the scale would have passed the ceiling
    lowered,   ///< an overflow, the scale was divided
    floored,   ///< the scale would have gone below the floor
    absorbed,  ///< an overflow that hysteresis put up with
    raised,    ///< an exception: the run ends, and the iteration has not happened
    held,      ///< an overflow under a constant scale
    ignored    ///< the same, and the step is applied
};

/// Whether the step of the optimizer was left out.
inline bool skips(outcome what) {
    return what == outcome::lowered || what == outcome::floored || what == outcome::absorbed ||
           what == outcome::raised || what == outcome::held;
}

/// A double as float: infinite from half a unit above the largest float on.
inline float as_float(double value) {
    const double largest = std::numeric_limits<float>::max();
    return value >= largest + 0x1p103 ? std::numeric_limits<float>::infinity() : static_cast<float>(value);
}

/// Counters, and last the scale that was decided on.
template <class... Number>
std::vector<double> numbers(Number... number) {
    return {static_cast<double>(number)...};
}

/// GradScaler. Factors are double, the product of double and float is stored as float.
struct pytorch {
    float scale = 65536.0F;
    double growth_factor = 2.0;
    double backoff_factor = 0.5;
    long growth_interval = 2000;
    long growth_tracker = 0;

    outcome update(bool found_inf) {
        if (found_inf) {
            scale = as_float(scale * backoff_factor);
            growth_tracker = 0;
            return outcome::lowered;
        }
        const long successful = growth_tracker + 1;
        if (successful != growth_interval) {
            growth_tracker = successful;
            return outcome::counted;
        }
        growth_tracker = 0;
        const float larger = as_float(scale * growth_factor);
        if (std::isinf(larger)) return outcome::refused;
        scale = larger;
        return outcome::grew;
    }
    [[nodiscard]] auto values() const { return numbers(growth_tracker, scale); }
};

/// ShardedGradScaler on the CPU: a tensor of float multiplied in place by a number, which becomes a float.
struct sharded_pytorch {
    float scale = 65536.0F;
    double backoff_factor = 0.5;
    double growth_factor = 2.0;
    long growth_interval = 2000;
    long growth_tracker = 0;

    outcome update(bool found_inf) {
        if (found_inf) {
            scale *= as_float(backoff_factor);
            growth_tracker = 0;
            return outcome::lowered;
        }
        if (++growth_tracker != growth_interval) return outcome::counted;
        scale *= as_float(growth_factor);
        growth_tracker = 0;
        return outcome::grew;
    }
    [[nodiscard]] auto values() const { return numbers(growth_tracker, scale); }
};

/// TensorFlow 2.
struct tensorflow {
    float current_loss_scale = 32768.0F;
    long growth_steps = 2000;
    long good_steps = 0;

    outcome update(bool non_finite) {
        if (non_finite) {
            good_steps = 0;
            const float half = current_loss_scale / 2.0F;
            current_loss_scale = std::max(half, 1.0F);
            return half < 1.0F ? outcome::floored : outcome::lowered;
        }
        if (good_steps + 1 < growth_steps) {
            ++good_steps;
            return outcome::counted;
        }
        good_steps = 0;
        if (std::isinf(current_loss_scale * 2.0F)) return outcome::refused;
        current_loss_scale *= 2.0F;
        return outcome::grew;
    }
    [[nodiscard]] auto values() const { return numbers(good_steps, current_loss_scale); }
};

/// Keras 3.
struct keras {
    float dynamic_scale = 32768.0F;
    long dynamic_growth_steps = 2000;
    long step_counter = 0;

    outcome update(bool non_finite) {
        if (non_finite) {
            step_counter = 0;
            dynamic_scale /= 2.0F;
            return outcome::lowered;
        }
        if (step_counter == dynamic_growth_steps - 1) {
            step_counter = 0;
            dynamic_scale *= 2.0F;
            return outcome::grew;
        }
        ++step_counter;
        return outcome::counted;
    }
    [[nodiscard]] auto values() const { return numbers(step_counter, dynamic_scale); }
};

/// jmp. The integer factor meets a scale of float and becomes one.
struct jmp {
    float loss_scale = 32768.0F;
    int period = 2000;
    int factor = 2;
    float min_loss_scale = 1.0F;
    int counter = 0;

    outcome update(bool non_finite) {
        const auto by = static_cast<float>(factor);
        if (non_finite) {
            counter = 0;
            const float smaller = loss_scale / by;
            loss_scale = std::max(min_loss_scale, smaller);
            return smaller < min_loss_scale ? outcome::floored : outcome::lowered;
        }
        const bool due = counter == period - 1;
        counter = (counter + 1) % period;
        if (!due) return outcome::counted;
        if (std::isinf(loss_scale * by)) return outcome::refused;
        loss_scale *= by;
        return outcome::grew;
    }
    [[nodiscard]] auto values() const { return numbers(counter, loss_scale); }
};

/// The kernel update_scale_hysteresis.
struct apex_hysteresis {
    float current_scale = 65536.0F;
    double growth_factor = 2.0;
    double backoff_factor = 0.5;
    int growth_interval = 2000;
    int hysteresis = 2;
    int growth_tracker = 0;
    int hysteresis_tracker = hysteresis;

    outcome update(bool found_inf) {
        if (found_inf) {
            growth_tracker = 0;
            if (--hysteresis_tracker > 0) return outcome::absorbed;
            current_scale = as_float(current_scale * backoff_factor);
            return outcome::lowered;
        }
        hysteresis_tracker = hysteresis;
        if (++growth_tracker != growth_interval) return outcome::counted;
        growth_tracker = 0;
        const float new_scale = as_float(current_scale * growth_factor);
        if (std::isinf(new_scale)) return outcome::refused;
        current_scale = new_scale;
        return outcome::grew;
    }
    [[nodiscard]] auto values() const { return numbers(growth_tracker, hysteresis_tracker, current_scale); }
};

/// Megatron. Scale, factors and floor are tensors of float.
struct megatron {
    float scale = 4294967296.0F;
    float min_scale = 1.0F;
    float growth_factor = 2.0F;
    float backoff_factor = 0.5F;
    int growth_interval = 1000;
    int hysteresis = 2;
    int growth_tracker = 0;
    int hysteresis_tracker = hysteresis;

    outcome update(bool found_inf) {
        if (found_inf) {
            growth_tracker = 0;
            if (--hysteresis_tracker > 0) return outcome::absorbed;
            const float smaller = scale * backoff_factor;
            scale = std::max(smaller, min_scale);
            return smaller < min_scale ? outcome::floored : outcome::lowered;
        }
        if (++growth_tracker < growth_interval) return outcome::counted;
        growth_tracker = 0;
        hysteresis_tracker = hysteresis;
        scale *= growth_factor;
        return outcome::grew;
    }
    [[nodiscard]] auto values() const { return numbers(growth_tracker, hysteresis_tracker, scale); }
};

/// OpenSeq2Seq's back-off. Variables of float, clipped to both limits.
struct openseq2seq {
    float scale_min = 1.0F;
    float scale_max = 16384.0F;
    float step_factor = 2.0F;
    std::int64_t step_window = 2000;
    float scale = scale_max;
    std::int64_t iteration = 0;
    std::int64_t last_overflow_iteration = -1;

    outcome update(bool has_nan_or_inf) {
        outcome what = outcome::counted;
        if (has_nan_or_inf) {
            const float proposed = scale / step_factor;
            what = proposed < scale_min ? outcome::floored : outcome::lowered;
            scale = std::clamp(proposed, scale_min, scale_max);
            last_overflow_iteration = iteration;
        } else if ((iteration - last_overflow_iteration) % step_window == 0) {
            const float proposed = scale * step_factor;
            what = proposed > scale_max ? outcome::capped : outcome::grew;
            scale = std::clamp(proposed, scale_min, scale_max);
        }
        ++iteration;
        return what;
    }
    [[nodiscard]] auto values() const { return numbers(iteration, last_overflow_iteration, scale); }
};

/// A constant scale.
struct constant {
    float scale = 1.0F;
    bool skip = true;

    outcome update(bool overflow) const {
        return overflow ? skip ? outcome::held : outcome::ignored : outcome::counted;
    }
    [[nodiscard]] auto values() const { return numbers(scale); }
};

}  // namespace interpreters
