// SPDX-License-Identifier: MIT
// Compiled twice, once with BY_HAND: a function that casts and computes by hand, and the same by a static
// autocast call. same_code.cmake compares the assembly.
#include <mp/nn/autocast/call.hpp>

#include <cstddef>
#include <string_view>

namespace {

struct squared_distance_op {
    static constexpr std::string_view name = "squared_distance";
    static constexpr auto category = mp::op_category::full_precision;
    constexpr auto operator()(auto a, auto b) const { return (a - b) * (a - b); }
};

}  // namespace

float squared_distance(const mp::bfloat16* a, const mp::bfloat16* b, std::size_t size) {
    float sum = 0.0F;
    for (std::size_t i = 0; i < size; ++i) {
#ifdef BY_HAND
        const auto x = static_cast<float>(a[i]);
        const auto y = static_cast<float>(b[i]);
        sum += (x - y) * (x - y);
#else
        sum += mp::autocast::call<mp::autocast::fp16>(squared_distance_op{}, a[i], b[i]);
#endif
    }
    return sum;
}
