// expects: assignment of read-only location|cannot assign to return value
// SPDX-License-Identifier: MIT
// An array without out() or in_out() reaches the kernel with const elements.
#include <mp/autocast.hpp>

struct double_op {
    static constexpr std::string_view name = "double";
    static constexpr auto category = mp::op_category::pass_through;
    void operator()(const auto& x, const auto& y) const { y[0] = x[0] + x[0]; }
};

void run(std::span<float> x, std::span<float> y) {
    mp::autocast::call<mp::autocast::fp16>(double_op{}, x, y);
}
