// expects: attention with an operand of doubles has queries of doubles
// SPDX-License-Identifier: MIT
#include <mp/ops.hpp>

void bad(mp::matrix_view<const float> q, mp::matrix_view<const double> k, mp::matrix_view<float> y) {
    mp::ops::scaled_dot_product_attention(mp::cpu{}, q, k, k, mp::ops::absent, y);
}
