// expects: pass an array as std::span
// SPDX-License-Identifier: MIT
// A matrix view is an operand only where the header that says so is included.
#include <mp/autocast.hpp>
#include <mp/matrix_view.hpp>

struct trace_op {
    static constexpr std::string_view name = "trace";
    static constexpr auto category = mp::op_category::lower_precision;
    float operator()(const auto& x) const { return x(0, 0); }
};

float trace(mp::matrix_view<const float> x) {
    return mp::autocast::call<mp::autocast::fp16>(trace_op{}, x);
}
