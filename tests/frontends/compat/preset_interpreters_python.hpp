// SPDX-License-Identifier: MIT
/// \file
/// More updates of scalers, as preset_interpreters.hpp: of the systems that keep the scale as a number of
/// Python's.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "frontends/compat/preset_interpreters.hpp"

namespace interpreters {

/// Apex's amp.
struct apex {
    double loss_scale = 65536.0;
    long scale_seq_len = 2000;
    double min_loss_scale = 0.0;  ///< 0 stands for None
    double max_loss_scale = 16777216.0;
    long unskipped = 0;

    outcome update(bool has_overflow) {
        outcome what = outcome::counted;
        if (has_overflow) {
            const double half = loss_scale / 2.0;
            what = min_loss_scale > half ? outcome::floored : outcome::lowered;
            loss_scale = min_loss_scale > 0.0 ? std::max(min_loss_scale, half) : half;
            unskipped = 0;
        } else {
            ++unskipped;
        }
        if (unskipped == scale_seq_len) {
            what = loss_scale * 2.0 > max_loss_scale ? outcome::capped : outcome::grew;
            loss_scale = std::min(max_loss_scale, loss_scale * 2.0);
            unskipped = 0;
        }
        return what;
    }
    [[nodiscard]] auto values() const { return numbers(unskipped, loss_scale); }
};

/// Apex's fp16_utils.
struct apex_fp16_utils {
    double cur_scale = 4294967296.0;
    double scale_factor = 2.0;
    std::int64_t scale_window = 1000;
    std::int64_t cur_iter = 0;
    std::int64_t last_overflow_iter = -1;

    outcome update(bool overflow) {
        outcome what = outcome::counted;
        if (overflow) {
            what = cur_scale / scale_factor < 1.0 ? outcome::floored : outcome::lowered;
            cur_scale = std::max(cur_scale / scale_factor, 1.0);
            last_overflow_iter = cur_iter;
        } else if ((cur_iter - last_overflow_iter) % scale_window == 0) {
            cur_scale *= scale_factor;
            what = outcome::grew;
        }
        ++cur_iter;
        return what;
    }
    [[nodiscard]] auto values() const { return numbers(cur_iter, last_overflow_iter, cur_scale); }
};

/// MXNet: what is decided becomes the scale at the next check. The outcome is that of the decision. What the
/// loss was multiplied by is told as float, as which the library keeps it.
struct mxnet {
    double loss_scale = 65536.0;
    double factor = 2.0;  ///< 2 there
    long scale_seq_len = 2000;
    double max_loss_scale = 16777216.0;
    double next_loss_scale = loss_scale;
    long unskipped = 0;

    outcome update(bool has_overflow) {
        outcome what = outcome::counted;
        loss_scale = next_loss_scale;
        if (has_overflow) {
            next_loss_scale = loss_scale / factor;
            unskipped = 0;
            what = outcome::lowered;
        } else {
            ++unskipped;
        }
        if (unskipped == scale_seq_len) {
            unskipped = 0;
            what = loss_scale * factor > max_loss_scale ? outcome::capped : outcome::grew;
            next_loss_scale = std::min(max_loss_scale, loss_scale * factor);
        }
        return what;
    }
    [[nodiscard]] auto values() const { return numbers(as_float(loss_scale), unskipped, next_loss_scale); }
};

/// DeepSpeed with ZeRO.
struct deepspeed {
    double cur_scale = 65536.0;
    std::int64_t scale_window = 1000;
    double min_scale = 1.0;
    int delayed_shift = 2;
    bool consecutive_hysteresis = false;
    bool raise_error_at_min_scale = true;
    std::int64_t cur_iter = 0;
    std::int64_t last_overflow_iter = -1;
    int cur_hysteresis = delayed_shift;

    outcome update(bool overflow) {
        outcome what = outcome::counted;
        if (overflow) {
            const bool spent = delayed_shift == 1 || cur_hysteresis == 1;
            if (spent && cur_scale <= min_scale && raise_error_at_min_scale) return outcome::raised;
            if (spent) {
                what = cur_scale / 2.0 < min_scale ? outcome::floored : outcome::lowered;
                cur_scale = std::max(cur_scale / 2.0, min_scale);
            } else {
                --cur_hysteresis;
                what = outcome::absorbed;
            }
            last_overflow_iter = cur_iter;
        } else {
            if (consecutive_hysteresis) cur_hysteresis = delayed_shift;
            const std::int64_t stable_interval = cur_iter - last_overflow_iter - 1;
            if (stable_interval > 0 && stable_interval % scale_window == 0) {
                cur_hysteresis = delayed_shift;
                cur_scale *= 2.0;
                what = outcome::grew;
            }
        }
        ++cur_iter;
        return what;
    }
    [[nodiscard]] auto values() const {
        return numbers(cur_iter, last_overflow_iter, cur_hysteresis, cur_scale);
    }
};

/// DeepSpeed without ZeRO: its own update, which knows no hysteresis and raises nothing.
struct deepspeed_fused {
    double cur_scale = 65536.0;
    std::int64_t scale_window = 1000;
    double min_loss_scale = 1.0;
    std::int64_t cur_iter = 0;
    std::int64_t last_overflow_iter = -1;

    outcome update(bool skip) {
        outcome what = outcome::counted;
        const std::int64_t stable_interval = cur_iter - last_overflow_iter - 1;
        if (skip) {
            what = cur_scale / 2.0 < min_loss_scale ? outcome::floored : outcome::lowered;
            cur_scale = std::max(cur_scale / 2.0, min_loss_scale);
            last_overflow_iter = cur_iter;
        } else if (stable_interval > 0 && stable_interval % scale_window == 0) {
            cur_scale *= 2.0;
            what = outcome::grew;
        }
        ++cur_iter;
        return what;
    }
    [[nodiscard]] auto values() const { return numbers(cur_iter, last_overflow_iter, cur_scale); }
};

/// fairseq. After its exception at the minimum the run is over; the scaler is then as it was before.
struct fairseq {
    double loss_scale = 32768.0;
    double scale_factor = 2.0;
    std::int64_t scale_window = 2000;
    double tolerance = 0.0;
    double threshold = 0.0;  ///< 0 stands for None
    double min_loss_scale = 1e-4;
    std::int64_t iter = 0;
    std::int64_t last_overflow_iter = -1;
    std::int64_t last_rescale_iter = -1;
    std::int64_t overflows_since_rescale = 0;

    outcome update(bool overflow) {
        outcome what = outcome::counted;
        if (overflow) {
            const fairseq before = *this;
            last_overflow_iter = iter;
            ++overflows_since_rescale;
            const double iterations = static_cast<double>(iter - last_rescale_iter);
            what = outcome::absorbed;
            if (static_cast<double>(overflows_since_rescale) / iterations >= tolerance) {
                loss_scale /= scale_factor;
                what = loss_scale < threshold ? outcome::floored : outcome::lowered;
                loss_scale = std::max(loss_scale, threshold);
                last_rescale_iter = iter;
                overflows_since_rescale = 0;
            }
            if (loss_scale <= min_loss_scale) {
                *this = before;
                return outcome::raised;
            }
        } else if ((iter - last_overflow_iter) % scale_window == 0) {
            loss_scale *= scale_factor;
            last_rescale_iter = iter;
            what = outcome::grew;
        }
        ++iter;
        return what;
    }
    [[nodiscard]] auto values() const {
        return numbers(iter, last_overflow_iter, iter, last_rescale_iter, overflows_since_rescale,
                       loss_scale);
    }
};

/// Chainer.
struct chainer {
    double interval = 1000.0;
    double loss_scale = 1.0;
    bool isnan_ever = false;

    outcome update(bool isnan) {
        isnan_ever = isnan_ever || isnan;
        const double multiplier = isnan ? 0.5 : isnan_ever ? std::pow(2.0, 1.0 / interval) : 2.0;
        const double proposed = loss_scale * multiplier;
        loss_scale = std::max(1.0, std::min(65504.0, proposed));
        if (isnan) return proposed < 1.0 ? outcome::floored : outcome::lowered;
        return proposed > 65504.0 ? outcome::capped : outcome::grew;
    }
    [[nodiscard]] auto values() const { return numbers(isnan_ever, loss_scale); }
};

}  // namespace interpreters
