// SPDX-License-Identifier: MIT
// Unscaling and the search for infinities and NaNs, against an element by element reading of the definition.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "nn/scaling/thrown.hpp"

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

mp::non_finite_report expected_report(const std::vector<float>& values) {
    mp::non_finite_report report;
    for (std::size_t i = values.size(); i-- > 0;) {
        if (std::isinf(values[i])) ++report.infinities;
        if (std::isnan(values[i])) ++report.nans;
        if (!std::isfinite(values[i])) report.first_index = i;
    }
    return report;
}

bool same_bits(const std::vector<float>& left, const std::vector<float>& right) {
    if (left.size() != right.size()) return false;
    for (std::size_t i = 0; i < left.size(); ++i) {
        const bool both_nan = std::isnan(left[i]) && std::isnan(right[i]);
        if (!both_nan && std::bit_cast<std::uint32_t>(left[i]) != std::bit_cast<std::uint32_t>(right[i]))
            return false;
    }
    return true;
}

/// Every code of a 16-bit format (or every code of an 8-bit one many times over), so all classes of values.
template <class Format>
std::vector<Format> all_codes() {
    std::vector<Format> values;
    for (std::uint32_t code = 0; code < 0x10000; ++code) {
        values.push_back(Format::from_bits(static_cast<decltype(Format{}.bits())>(code)));
    }
    return values;
}

template <class Gradient>
void check_all(const std::vector<Gradient>& gradients) {
    for (const float inverse : {1.0F, 0x1p-16F, 1.0F / 3.0F, 0x1p120F, 0x1p-126F, 3.0e38F, infinity}) {
        CAPTURE(inverse);
        std::vector<float> expected;
        for (const Gradient& gradient : gradients) {
            const float value = static_cast<float>(gradient);
            expected.push_back(inverse == 1.0F ? value : value * inverse);
        }
        const mp::non_finite_report report = expected_report(expected);
        for (const int threads : {1, 2, 3}) {
            std::vector<float> unscaled(gradients.size());
            CHECK(mp::unscale_and_check(mp::cpu{threads}, gradients, unscaled, inverse) == report);
            CHECK(same_bits(unscaled, expected));
            CHECK(mp::check_finite(mp::cpu{threads}, gradients, inverse) == report);
        }
    }
}

}  // namespace

TEST_CASE("every code of the reduced formats is unscaled and classified as the definition says") {
    check_all(all_codes<mp::half>());
    check_all(all_codes<mp::bfloat16>());
    check_all(all_codes<mp::float8_e4m3fn>());
    check_all(all_codes<mp::float8_e5m2>());
}

TEST_CASE("floats of all sizes of array, with any number of threads") {
    std::mt19937 random(20240701);
    for (const std::size_t size : {0U, 1U, 2U, 7U, 2047U, 2048U, 2049U, 5000U, 600001U}) {
        CAPTURE(size);
        std::vector<float> gradients(size);
        for (float& value : gradients) {
            value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
        }
        check_all(gradients);
    }
}

TEST_CASE("a single bad value is found wherever it is") {
    std::vector<float> gradients(5000, 1.0F);
    for (const std::size_t at : {0U, 1U, 15U, 16U, 2047U, 2048U, 4095U, 4096U, 4999U}) {
        for (const float bad : {infinity, -infinity, not_a_number, -not_a_number}) {
            gradients[at] = bad;
            const bool is_nan = bad != bad;
            const mp::non_finite_report expected{is_nan ? 0U : 1U, is_nan ? 1U : 0U, at};
            CHECK(mp::check_finite(mp::cpu{}, gradients) == expected);
            std::vector<float> copy = gradients;
            CHECK(mp::unscale_and_check(mp::cpu{}, copy, 0.5F) == expected);
            gradients[at] = 1.0F;
        }
    }
    CHECK_FALSE(mp::check_finite(mp::cpu{}, gradients).found());
}

TEST_CASE("in place gives what a separate output gives") {
    std::mt19937 random(7);
    std::vector<float> values(10000);
    for (float& value : values) value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    for (const float inverse : {1.0F, 0.3F, 0x1p100F}) {
        std::vector<float> apart(values.size());
        const mp::non_finite_report report = mp::unscale_and_check(mp::cpu{}, values, apart, inverse);
        for (const int threads : {1, 4}) {
            std::vector<float> together = values;
            CHECK(mp::unscale_and_check(mp::cpu{threads}, together, inverse) == report);
            CHECK(same_bits(together, apart));
        }
    }
}

TEST_CASE("an inverse of exactly one copies the bits of NaNs too") {
    const std::vector<float> payload = {std::bit_cast<float>(0x7fc12345U), std::bit_cast<float>(0xffc54321U)};
    std::vector<float> copy(2);
    CHECK(mp::unscale_and_check(mp::cpu{}, payload, copy, 1.0F).nans == 2);
    CHECK(std::bit_cast<std::uint32_t>(copy[0]) == 0x7fc12345U);
    CHECK(std::bit_cast<std::uint32_t>(copy[1]) == 0xffc54321U);
}

TEST_CASE("arrays and spans of any constness serve as gradients") {
    const std::array<mp::half, 2> array = {mp::half(2.0F), mp::half(4.0F)};
    std::array<float, 2> unscaled{};
    mp::unscale_and_check(mp::cpu{}, std::span<const mp::half>(array), std::span<float>(unscaled), 0.5F);
    CHECK(unscaled == std::array<float, 2>{1.0F, 2.0F});
    mp::unscale_and_check(mp::cpu{}, array, unscaled, 0.25F);
    CHECK(unscaled == std::array<float, 2>{0.5F, 1.0F});
}

TEST_CASE("bad arguments are refused by name and value, and nothing is written") {
    std::vector<float> gradients(8, 2.0F);
    std::vector<float> unscaled(8, 7.0F);
    const auto refusal = [](auto function) { return thrown<mp::argument_error>(function); };
    for (const float bad : {-0.0F, -1.0F, not_a_number, -infinity}) {
        CHECK(holds(refusal([&] { mp::unscale_and_check(mp::cpu{}, gradients, unscaled, bad); }),
                    "mp::unscale_and_check: inverse_scale is "));
        CHECK(holds(refusal([&] { mp::check_finite(mp::cpu{}, gradients, bad); }),
                    "mp::check_finite: inverse_scale is "));
    }
    CHECK(refusal([&] { mp::unscale_and_check(mp::cpu{}, gradients, std::span(unscaled).first(7), 1.0F); }) ==
          "mp::unscale_and_check: unscaled.size() is 7; it must equal gradients.size(), which is 8");
    CHECK(refusal([&] {
              mp::unscale_and_check(mp::cpu{}, std::span(gradients).first(5), std::span(gradients).last(5),
                                    2.0F);
          }) ==
          "mp::unscale_and_check: unscaled overlaps gradients; it must be other memory, or the same from "
          "the first element on");
    const std::span<const mp::half> on_top(reinterpret_cast<const mp::half*>(gradients.data()), 8);
    CHECK(refusal([&] { mp::unscale_and_check(mp::cpu{}, on_top, gradients, 2.0F); }) ==
          "mp::unscale_and_check: unscaled overlaps gradients; it must be other memory");
    const std::span<float> null(static_cast<float*>(nullptr), 8);
    CHECK(refusal([&] { mp::unscale_and_check(mp::cpu{}, null, unscaled, 1.0F); }) ==
          "mp::unscale_and_check: gradients.data() is null; it must point to memory, for the size is 8");
    CHECK(
        holds(refusal([&] { mp::unscale_and_check(mp::cpu{}, gradients, null, 1.0F); }), "unscaled.data()"));
    CHECK(holds(refusal([&] { mp::check_finite(mp::cpu{}, null); }), "gradients.data()"));
    CHECK(holds(refusal([&] { mp::check_finite(mp::cpu{0}, gradients); }), "exec.threads is 0"));
    CHECK(gradients == std::vector<float>(8, 2.0F));
    CHECK(unscaled == std::vector<float>(8, 7.0F));
}

TEST_CASE("an inverse scale of zero makes NaN of what an infinite scale has left") {
    std::vector<float> gradients{1.0F, infinity, not_a_number};
    CHECK(mp::check_finite(mp::cpu{}, gradients, 0.0F).nans == 2);
    const auto report = mp::unscale_and_check(mp::cpu{}, gradients, 0.0F);
    CHECK(report.nans == 2);
    CHECK(report.infinities == 0);
    CHECK(report.first_index == 1);
    CHECK(gradients[0] == 0.0F);
}

TEST_CASE("a scale that its policy has let grow to infinity goes on skipping, as in the original") {
    struct {
        mp::gradient_report unscale_gradients(float inverse_scale) {
            std::vector<float> gradient{infinity};  // what a loss times infinity leaves
            mp::gradient_report report;
            report.add(0, 1, mp::unscale_and_check(mp::cpu{}, gradient, inverse_scale));
            return report;
        }
        void step() { ++steps; }
        void skip_step() {}
        int steps = 0;
    } optimizer;
    mp::loss_scaler scaler(mp::keras_policy{.initial_scale = 0x1p127F, .dynamic_growth_steps = 1});
    static_cast<void>(scaler.current_scale());  // as a backward pass does
    CHECK(scaler.record({}, 1));
    CHECK(scaler.update().after == infinity);
    for (int i = 0; i < 3; ++i) {
        CHECK(scaler.step(optimizer).status == mp::step_status::skipped_nan);
        CHECK(scaler.update().after == infinity);
    }
    CHECK(optimizer.steps == 0);
}
