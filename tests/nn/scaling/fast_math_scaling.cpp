// SPDX-License-Identifier: MIT
// Also compiled with -ffast-math: infinities and NaNs must be found, validation must hold and a growth to
// infinity must be refused although the compiler may assume that none of this exists. Values are made and
// compared as bits.
#include <doctest/doctest.h>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "nn/scaling/thrown.hpp"

namespace {

constexpr mp::gradient_observation found(bool non_finite) {
    return {.infinities = non_finite ? 1U : 0U};
}

constexpr std::uint32_t infinity_bits = 0x7f800000U;
constexpr std::uint32_t nan_bits = 0x7fc00000U;

float of_bits(std::uint32_t bits) {
    return std::bit_cast<float>(bits);
}

}  // namespace

TEST_CASE("infinities and NaNs are counted and located under any floating-point options") {
    for (const float inverse : {1.0F, 0.5F, 2.0F}) {
        std::vector<float> values(5000, 1.0F);
        values[4100] = of_bits(nan_bits);
        values[4200] = of_bits(0x80000000U | infinity_bits);
        values[4300] = of_bits(infinity_bits + 1);  // signalling
        const mp::non_finite_report expected{1, 2, 4100};
        CHECK(mp::check_finite(mp::cpu{}, values, inverse) == expected);
        std::vector<float> unscaled(values.size());
        CHECK(mp::unscale_and_check(mp::cpu{}, values, unscaled, inverse) == expected);
        CHECK(mp::unscale_and_check(mp::cpu{}, values, inverse) == expected);
    }
    std::vector<float> large(100, 0x1p120F);
    CHECK(mp::check_finite(mp::cpu{}, large, 0x1p20F) == mp::non_finite_report{100, 0, 0});
}

TEST_CASE("reduced formats too") {
    std::vector<mp::half> values(300, mp::half(1.0F));
    values[7] = mp::half::from_bits(0xfc00);
    values[9] = mp::half::from_bits(0x7c01);
    CHECK(mp::check_finite(mp::cpu{}, values, 0.25F) == mp::non_finite_report{1, 1, 7});
}

TEST_CASE("validation sees NaN and infinity under any floating-point options") {
    for (const std::uint32_t bits : {nan_bits, infinity_bits, 0x80000000U | infinity_bits, 0xbf800000U, 0U}) {
        const float bad = of_bits(bits);
        CHECK(
            holds(thrown<mp::argument_error>([&] { mp::dynamic_loss_scaler scaler({.initial_scale = bad}); }),
                  "initial_scale is "));
        CHECK(holds(
            thrown<mp::argument_error>([&] { mp::dynamic_loss_scaler scaler({.backoff_factor = bad}); }),
            "backoff_factor is "));
        CHECK(
            holds(thrown<mp::argument_error>([&] { mp::dynamic_loss_scaler scaler({.growth_factor = bad}); }),
                  "growth_factor is "));
        if (bits != infinity_bits && bits != 0U) {  // zero is the inverse of an infinite scale
            std::vector<float> values(3, 1.0F);
            CHECK(holds(thrown<mp::argument_error>([&] { mp::check_finite(mp::cpu{}, values, bad); }),
                        "inverse_scale is "));
        }
    }
}

TEST_CASE("growth is refused at the end of the floats under any floating-point options") {
    const mp::pytorch_policy policy{.initial_scale = 0x1p126F, .growth_interval = 1};
    mp::scale_state state = mp::initial_scale_state(policy);
    CHECK(mp::update_scale(policy, state, found(false)).kind == mp::scale_change_kind::grown);
    CHECK(mp::update_scale(policy, state, found(false)).kind == mp::scale_change_kind::growth_refused);
    CHECK(state == mp::scale_state{0x1p127F, {0}});
    CHECK(std::bit_cast<std::uint32_t>(mp::inverse_of_scale(0.0F)) == infinity_bits);
}
