// expects: a norm with an operand of doubles has an x of doubles
// SPDX-License-Identifier: MIT
#include <mp/ops.hpp>

#include <span>

void bad(mp::matrix_view<const float> x, std::span<const double> gamma, mp::matrix_view<float> y) {
    mp::ops::rms_norm(mp::cpu{}, x, gamma, y);
}
