// SPDX-License-Identifier: MIT
// Options that only a double can hold are refused: what the kernels multiply by is never infinite, and zero
// only where zero was asked for.
#include <doctest/doctest.h>
#include <mp/nn/optim/optimizer.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "nn/scaling/thrown.hpp"

namespace {

/// On bits, as -ffast-math has it.
bool finite(float value) {
    return (std::bit_cast<std::uint32_t>(value) & 0x7f800000U) != 0x7f800000U;
}

/// Where a double and its float differ in kind, their neighbours, and all magnitudes.
std::vector<double> rates() {
    std::vector<double> values{0.0, 1e308, 1e-50, 1e-300, 1.0};
    for (const double edge : {0x1.ffffffp127, 0x1.fffffep127, 0x1p-126, 0x1p-149, 0x1p-150}) {
        for (const double value : {edge, std::nextafter(edge, 0.0), std::nextafter(edge, HUGE_VAL)}) {
            values.push_back(value);
        }
    }
    std::mt19937_64 random(3);
    std::uniform_real_distribution<double> exponent(-200.0, 200.0);
    for (int i = 0; i < 2000; ++i) values.push_back(std::exp2(exponent(random)));
    return values;
}
std::vector<double> fractions() {
    std::vector<double> values{0.0, 0.5, 0.999, 1e-50, 0x1p-150, 0x1.000001p-150, 0x1p-149};
    for (int bits = 20; bits <= 53; ++bits) values.push_back(1.0 - std::exp2(-bits));
    values.push_back(std::nextafter(0x1.ffffffp-1, 0.0));
    return values;
}

template <class Options>
bool accepted(const Options& options) {
    try {
        mp::detail::optimizer_traits<Options>::check("test", options);
        return true;
    } catch (const mp::argument_error&) {
        return false;
    }
}

/// Whether a float is what a positive option must be: it is not infinite, and zero only for zero.
bool good(double option, float value) {
    return finite(value) && (option == 0.0) == (std::bit_cast<std::uint32_t>(value) == 0);
}

template <class Optimizer, class Options>
std::string refusal(const Options& options) {
    std::vector<float> weights(2);
    std::vector<float> gradient(2);
    return thrown<mp::argument_error>([&] { Optimizer optimizer({{"", weights, gradient}}, options); });
}
std::string refusal(const mp::adamw_options& options) {
    return refusal<mp::adamw<float>>(options);
}
std::string refusal(const mp::sgd_options& options) {
    return refusal<mp::sgd<float>>(options);
}

}  // namespace

TEST_CASE("options that float turns into infinity or zero are refused by name and value") {
    CHECK(refusal(mp::adamw_options{.learning_rate = 1e308}) ==
          "mp::adamw: learning_rate is 1e+308; it must be in the range of float");
    CHECK(refusal(mp::adamw_options{.epsilon = 1e-50}) ==
          "mp::adamw: epsilon is 1e-50; it must be 0, or more than 2^-150, at which a float is 0");
    CHECK(refusal(mp::adamw_options{.beta2 = 0.99999999}) ==
          "mp::adamw: beta2 is 0.99999999; it must be less than 1 as a float");
    CHECK(holds(refusal(mp::adamw_options{.beta1 = 1e-50}), "mp::adamw: beta1 is 1e-50; it must be 0"));
    CHECK(holds(refusal(mp::adamw_options{.weight_decay = 1e39}), "mp::adamw: weight_decay is 1e+39;"));
    CHECK(holds(refusal(mp::adamw_options{.learning_rate = 1e38}), "mp::adamw: learning_rate is 1e+38;"));
    CHECK(holds(refusal(mp::adamw_options{.learning_rate = 1e30, .weight_decay = 1e30}), "learning_rate is"));
    CHECK(holds(refusal(mp::sgd_options{.learning_rate = 1e308}), "mp::sgd: learning_rate is 1e+308;"));
    CHECK(holds(refusal(mp::sgd_options{.learning_rate = 1e-50}), "mp::sgd: learning_rate is 1e-50;"));
    CHECK(holds(refusal(mp::sgd_options{.momentum = 0.99999999}), "mp::sgd: momentum is 0.99999999;"));
    CHECK(holds(refusal(mp::sgd_options{.weight_decay = 1e-46}), "mp::sgd: weight_decay is 1e-46;"));
}

TEST_CASE("whatever is accepted gives coefficients that are finite, and zero only for zero") {
    const mp::detail::default_floating_point_modes modes;  // as steps have them
    int taken = 0;
    int refused = 0;
    const auto check_adam = [&](const mp::adamw_options& options) {
        if (!accepted(options)) {
            ++refused;
            return;
        }
        ++taken;
        for (const std::uint64_t number : {1ULL, 2ULL, 1000000ULL}) {
            const auto made = mp::detail::optimizer_traits<mp::adamw_options>::coefficients_of(
                options, options.learning_rate, number);
            bool right = finite(made.decay) && good(options.beta1, made.beta1) && made.beta1 < 1.0F &&
                         good(1.0, made.one_minus_beta1) && good(options.beta2, made.beta2) &&
                         made.beta2 < 1.0F && good(1.0, made.one_minus_beta2) &&
                         good(options.learning_rate, made.rate) && good(1.0, made.inverse_bias) &&
                         good(1.0, made.epsilon);
            CAPTURE(options.learning_rate);
            CAPTURE(options.beta1);
            CAPTURE(options.beta2);
            CAPTURE(options.epsilon);
            CAPTURE(options.weight_decay);
            REQUIRE(right);
        }
    };
    const auto check_sgd = [&](const mp::sgd_options& options) {
        if (!accepted(options)) {
            ++refused;
            return;
        }
        ++taken;
        const auto made =
            mp::detail::optimizer_traits<mp::sgd_options>::coefficients_of(options, options.learning_rate, 2);
        const bool right = good(options.learning_rate, made.rate) && good(options.momentum, made.momentum) &&
                           made.momentum < 1.0F && good(options.weight_decay, made.decay) &&
                           good(1.0 - options.dampening, made.gradient_scale);
        CAPTURE(options.learning_rate);
        CAPTURE(options.momentum);
        CAPTURE(options.weight_decay);
        REQUIRE(right);
    };
    for (const double rate : rates()) {
        check_adam({.learning_rate = rate});
        check_adam({.learning_rate = rate, .beta1 = 0.999999, .weight_decay = 1e10});
        check_adam({.epsilon = rate});
        check_adam({.weight_decay = rate});
        check_sgd({.learning_rate = rate});
        check_sgd({.weight_decay = rate});
    }
    for (const double fraction : fractions()) {
        check_adam({.beta1 = fraction});
        check_adam({.beta2 = fraction});
        check_sgd({.momentum = fraction});
        check_sgd({.momentum = 0.5, .dampening = fraction});
    }
    CHECK(taken > 4000);
    CHECK(refused > 3000);
    CHECK(
        accepted(mp::adamw_options{.learning_rate = 0.0, .beta1 = 0.0, .epsilon = 0.0, .weight_decay = 0.0}));
    CHECK(accepted(mp::adamw_options{.epsilon = 0x1p-149}));
    CHECK(accepted(mp::sgd_options{.learning_rate = 0x1.fffffep127}));
}

TEST_CASE("a learning rate that is set later may fade to zero, but not leave float's range") {
    std::vector<float> weights{1.0F, 2.0F};
    std::vector<float> gradient{1.0F, 1.0F};
    mp::adamw<float> adam({{"", weights, gradient}}, {.beta1 = 0.75, .weight_decay = 8.0});
    CHECK(thrown<mp::argument_error>([&] { adam.set_learning_rate(0x1p126); }) ==
          "mp::optimizer_base::set_learning_rate: rate is 8.507059173023462e+37; it must be at most "
          "4.2535293329816107e+37: what an update multiplies by is a float");
    CHECK(adam.learning_rate() == 1e-3);
    adam.set_learning_rate(0x1.fffffep124);
    CHECK(thrown<mp::argument_error>([&] { adam.set_learning_rate(1e308); }) != "(nothing was thrown)");
    mp::sgd<float> plain({{"", weights, gradient}});
    CHECK(thrown<mp::argument_error>([&] { plain.set_learning_rate(0x1p128); }) != "(nothing was thrown)");
    plain.set_learning_rate(0x1.fffffep127);
    plain.set_learning_rate(1e-60);
    plain.step();
    CHECK(weights == std::vector<float>{1.0F, 2.0F});
}
