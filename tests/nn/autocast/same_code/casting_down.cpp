// SPDX-License-Identifier: MIT
// Compiled twice, once with BY_HAND: a function that casts and computes by hand, and the same by a static
// autocast call. same_code.cmake compares the assembly.
#include <mp/nn/autocast/call.hpp>

#include <cstddef>
#include <string_view>

namespace {

struct multiply_op {
    static constexpr std::string_view name = "multiply";
    static constexpr auto category = mp::op_category::lower_precision;
    constexpr auto operator()(auto a, auto b) const { return a * b; }
};

}  // namespace

void products(const float* a, const float* b, float* c, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) {
#ifdef BY_HAND
        const mp::half x(a[i]);
        const mp::half y(b[i]);
        c[i] = static_cast<float>(x * y);
#else
        c[i] = static_cast<float>(mp::autocast::call<mp::autocast::fp16>(multiply_op{}, a[i], b[i]));
#endif
    }
}

float product(float a, float b) {
#ifdef BY_HAND
    const mp::bfloat16 x(a);
    const mp::bfloat16 y(b);
    return static_cast<float>(x * y);
#else
    return static_cast<float>(mp::autocast::call<mp::autocast::bf16>(multiply_op{}, a, b));
#endif
}
