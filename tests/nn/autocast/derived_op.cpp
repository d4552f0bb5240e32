// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/ops.hpp>

#include <string_view>
#include <vector>

namespace {

namespace ac = mp::autocast;

/// The linear op under another name, in a category of its own.
struct wide_linear_op : mp::ops::linear_op {
    static constexpr std::string_view name = "wide_linear";
    static constexpr auto category = mp::op_category::full_precision;
};

TEST_CASE("an op that is derived from one of the library runs its kernel, by its own name and category") {
    const std::vector<float> x{1.0F + 0x1p-10F, 2}, w{3, 0.5F}, bias{0.25F};
    const float exact = (1.0F + 0x1p-10F) * 3 + 2 * 0.5F + 0.25F;  // no rounding
    const mp::cpu exec{};
    const auto run = [&](auto op) {
        std::vector<float> y(1);
        const mp::autocast_region region(mp::precision::bf16);
        ac::dispatch(op, exec, mp::row_major(x.data(), 1, 2), mp::row_major(w.data(), 1, 2),
                     std::span<const float>(bias), ac::out(mp::row_major(y.data(), 1, 1)),
                     mp::ops::activation::none);
        return y[0];
    };
    CHECK(run(mp::ops::linear_op{}) == 4.25F);  // x[0] is 1 in bfloat16
    CHECK(run(wide_linear_op{}) == exact);
    CHECK(exact != 4.25F);
}

}  // namespace
