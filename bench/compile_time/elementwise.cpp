// SPDX-License-Identifier: MIT
// Three ops on elements, of six combinations of types.
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/ops.hpp>

#include <vector>

namespace {

template <class A, class B, class Y>
bool ops_are_right() {
    const std::vector<A> a(32, A(1.0F));
    const std::vector<B> b(32, B(2.0F));
    std::vector<Y> y(32);
    const auto a_view = mp::row_major(a, 4, 8);
    const auto y_view = mp::row_major(y, 4, 8);
    mp::ops::silu(mp::cpu{}, a_view, y_view);
    mp::ops::relu(mp::cpu{}, a_view, y_view);
    const bool copied = static_cast<float>(y[3]) == 1.0F;
    mp::ops::add(mp::cpu{}, a_view, mp::row_major(b, 4, 8), y_view);
    return copied && static_cast<float>(y[3]) == 3.0F;
}

}  // namespace

int main() {
    using mp::bfloat16;
    using mp::half;
    const bool all = ops_are_right<float, float, float>() && ops_are_right<half, half, half>() &&
                     ops_are_right<bfloat16, bfloat16, bfloat16>() && ops_are_right<float, half, half>() &&
                     ops_are_right<half, float, bfloat16>() && ops_are_right<bfloat16, half, float>();
    return all ? 0 : 1;
}
