// expects: pass an array as std::span
// SPDX-License-Identifier: MIT
#include <mp/autocast.hpp>

#include <vector>

struct sum_op {
    static constexpr std::string_view name = "sum";
    static constexpr auto category = mp::op_category::lower_precision;
    float operator()(const auto& x) const { return x[0]; }
};

float sum(const std::vector<float>& x) {
    return mp::autocast::call<mp::autocast::fp16>(sum_op{}, x);
}
