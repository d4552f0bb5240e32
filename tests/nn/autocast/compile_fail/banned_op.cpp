// expects: this op is banned under autocast, because its results in low precision cannot be trusted
// SPDX-License-Identifier: MIT
#include <mp/autocast.hpp>

struct binary_cross_entropy_op {
    static constexpr std::string_view name = "binary_cross_entropy";
    static constexpr auto category = mp::op_category::banned;
    static constexpr auto banned_reason = mp::autocast::fixed_string("use the form with logits");
    float operator()(float x) const { return x; }
};

float loss() {
    return mp::autocast::call<mp::autocast::fp16>(binary_cross_entropy_op{}, 1.0F);
}
