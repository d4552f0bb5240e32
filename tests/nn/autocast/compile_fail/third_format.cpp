// expects: there is a third floating-point format among them
// SPDX-License-Identifier: MIT
#include <mp/autocast.hpp>

struct add_op {
    static constexpr std::string_view name = "add";
    static constexpr auto category = mp::op_category::promote;
    constexpr auto operator()(auto a, auto b) const { return a + b; }
};

auto refused() {
    return mp::autocast::call<mp::autocast::fp16>(add_op{}, 1.0F, mp::bfloat16(2.0F));
}
