// SPDX-License-Identifier: MIT
#pragma once

#include <mp/check.hpp>
#include <mp/mp.hpp>

#include <sstream>
#include <string>
#include <vector>

// The functions are static: each translation unit has its own.

/// Uses a little of each room, so that both translation units hold the same inline functions.
template <class Value>
static void use_rooms(std::ostream& text) {
    text << mp::fma(Value(1.5F), Value(1.5F), Value(0.25F)) << ' ' << mp::sqrt(Value(2.0F)) << ' '
         << mp::round_to<Value>(1e30, {mp::rounding::toward_zero, mp::saturation::finite}) << ' ';

    std::vector<float> from = {1.0F, 0.1F, 1e-30F, -3.0F};
    std::vector<Value> to(from.size());
    mp::convert(mp::cpu{}, from, to);
    text << to[1] << ' ' << mp::ulp_distance(to[1], 0.1) << ' ';

    mp::dynamic_loss_scaler scaler({.initial_scale = 2.0F});
    const float scale = scaler.current_scale();
    std::vector<Value> gradient = {Value(0.25F * scale), Value(-0.125F * scale), Value(0.0F),
                                   Value(0.5F * scale)};
    mp::sgd<Value> optimizer({{"weight", to, gradient}}, {.learning_rate = 0.5});
    scaler.step(optimizer);
    scaler.update();
    text << to[0] << ' ' << to[3] << ';';
}

static std::string use_everything() {
    std::ostringstream text;
    use_rooms<mp::half>(text);
    use_rooms<mp::bfloat16>(text);
    use_rooms<mp::float8_e4m3fn>(text);
    use_rooms<mp::float8_e5m2>(text);
    return text.str();
}
