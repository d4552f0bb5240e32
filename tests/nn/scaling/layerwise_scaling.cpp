// SPDX-License-Identifier: MIT
// Adaptive layer-wise loss scaling: every bound against numbers worked out by hand, and a network that no
// global scale can train.
#include <doctest/doctest.h>
#include <mp/half.hpp>
#include <mp/nn/scaling/layerwise_scaling.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "larger_error.hpp"
#include "nn/scaling/thrown.hpp"
#include "numbers/format/rounding_scope.hpp"

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// Statistics of values that are +size and -size in equal numbers: mean 0, deviation and extremes `size`.
mp::tensor_statistics symmetric(double size) {
    mp::tensor_statistics result;
    result.count = 100;
    result.squares = 100.0 * size * size;
    result.lowest = -size;
    result.highest = size;
    result.least_magnitude = size;
    return result;
}

/// erfinv(0.001) sqrt(2), from tables of the normal distribution: the quantile of 0.5005.
constexpr double threshold = 0.00125331446475;

bool near(double x, double expected, double relative = 1e-9) {
    return std::fabs(x - expected) <= relative * std::fabs(expected);
}

/// erfinv by bisection in long double.
long double inverse_by_bisection(long double y) {
    long double low = 0.0L;
    long double high = 7.0L;
    for (int i = 0; i < 200; ++i) {
        const long double middle = (low + high) / 2;
        const bool below = y > 0.5L ? std::erfc(middle) > 1.0L - y : std::erf(middle) < y;
        (below ? low : high) = middle;
    }
    return (low + high) / 2;
}

}  // namespace

TEST_CASE("erfinv is the inverse of the error function to a few units in the last place") {
    // Published values.
    CHECK(near(mp::erfinv(0.5), 0.476936276204469873381, 1e-15));
    CHECK(near(mp::erfinv(0.001), 0.000886227157466552099, 1e-15));
    CHECK(near(mp::erfinv(0.9), 1.163087153676674086726, 1e-15));
    CHECK(mp::erfinv(0.0) == 0.0);
    CHECK(mp::erfinv(1.0) == std::numeric_limits<double>::infinity());
    CHECK(mp::erfinv(-1.0) == -std::numeric_limits<double>::infinity());
    for (const double beyond :
         {1.0000001, -1.5, static_cast<double>(infinity), static_cast<double>(not_a_number)}) {
        CHECK(std::isnan(mp::erfinv(beyond)));
    }
    std::mt19937_64 random(3);
    double worst = 0.0;
    const auto check = [&worst](double y) {
        const double x = mp::erfinv(y);
        const auto expected = static_cast<double>(inverse_by_bisection(static_cast<long double>(y)));
        const double unit = std::nextafter(expected, 8.0) - expected;
        worst = tests::larger_error(worst, std::fabs(x - expected) / unit);
        CHECK(mp::erfinv(-y) == -x);
    };
    for (int i = 0; i < 3000; ++i) check(std::ldexp(static_cast<double>(random() >> 11), -53));
    for (int i = 1; i < 50; ++i) check(1.0 - std::ldexp(1.0, -i - 3));
    for (int i = 1; i < 60; ++i) check(std::ldexp(1.37, -i));
    check(1.0 - 0x1p-53);
    check(0.1);
    check(0.10000000001);
    check(0.5);
    CAPTURE(worst);
    CHECK(worst <= 4.0);
}

TEST_CASE("statistics of an array are those of two passes, for every number of threads") {
    std::mt19937 random(5);
    std::normal_distribution<float> normal(3.0F, 0.01F);
    for (const std::size_t size : {1U, 2U, 2047U, 2048U, 2049U, 100000U}) {
        std::vector<float> values(size);
        long double sum = 0.0L;
        for (float& value : values) sum += static_cast<long double>(value = normal(random));
        const long double mean = sum / static_cast<long double>(size);
        long double squares = 0.0L;
        for (const float value : values)
            squares += (static_cast<long double>(value) - mean) * (static_cast<long double>(value) - mean);
        const mp::tensor_statistics found = mp::measure_statistics(mp::cpu{}, values);
        CHECK(found.count == size);
        CHECK(near(found.mean, static_cast<double>(mean), 1e-13));
        CHECK(std::fabs(found.deviation() -
                        std::sqrt(static_cast<double>(squares) / static_cast<double>(size))) <= 1e-13);
        CHECK(found.lowest == static_cast<double>(*std::min_element(values.begin(), values.end())));
        CHECK(found.highest == static_cast<double>(*std::max_element(values.begin(), values.end())));
        for (const int threads : {2, 3}) CHECK(mp::measure_statistics(mp::cpu{threads}, values) == found);
    }
    const std::array values{mp::half(-4.0F),    mp::half(0.0F),         mp::half(infinity),
                            mp::half(0x1p-24F), mp::half(not_a_number), mp::half(-0.0F)};
    const mp::tensor_statistics found = mp::measure_statistics(mp::cpu{}, values);
    CHECK(found.count == 4);
    CHECK(found.zeros == 2);
    CHECK(found.non_finite == 2);
    CHECK(found.lowest == -4.0);
    CHECK(found.highest == 0x1p-24);
    CHECK(found.least_magnitude == 0x1p-24);
    CHECK(found.largest_magnitude() == 4.0);
    CHECK(mp::measure_statistics(mp::cpu{}, std::vector<float>{}) == mp::tensor_statistics{});

    const std::array powers{1.0F, -2.0F, 4.0F, 0.0F, infinity};
    const mp::tensor_statistics logarithms = mp::measure_logarithms(mp::cpu{}, powers);
    CHECK(logarithms.count == 3);
    CHECK(logarithms.zeros == 1);
    CHECK(logarithms.non_finite == 1);
    CHECK(near(logarithms.mean, std::log(2.0)));
    CHECK(near(logarithms.deviation(), std::log(2.0) * std::sqrt(2.0 / 3.0)));
    CHECK(holds(thrown<mp::argument_error>([&] { (void)mp::measure_statistics(mp::cpu{0}, values); }),
                "mp::measure_statistics: exec.threads is 0"));
}

TEST_CASE("the factor is the power of two below the scale that few underflows ask for") {
    // fan_in 8: the deviation is g w sqrt(0.5 * 8) = 2 g w, and the scale 6e-8 / (2 g w 0.00125331).
    mp::layerwise_scaler scaler;
    const double wanted = 6e-8 / (2.0 * 1e-3 * 5e-3 * threshold);  // 4.787
    const mp::layerwise_decision decision = scaler.decide(symmetric(1e-3), symmetric(5e-3), 8.0, 1.0F);
    CHECK(near(decision.wanted, wanted));
    CHECK(decision.factor == 4.0F);
    CHECK(decision.limit == mp::layerwise_limit::underflow);
    // Of values that are all the same the mean takes the part of the deviation.
    mp::tensor_statistics constant = symmetric(1e-3);
    constant.squares = 0.0;
    constant.mean = constant.lowest = constant.highest = 1e-3;
    CHECK(near(scaler.decide(constant, symmetric(5e-3), 8.0, 1.0F).wanted, wanted));
    CHECK(near(scaler.decide(symmetric(5e-3), constant, 8.0, 1.0F).wanted, wanted));
    // Exactly a power of two stays: the share of ReLU makes the deviation g w.
    mp::layerwise_options exact;
    exact.relu_share = 1.0;
    exact.smallest_number = 8.0 * std::sqrt(2.0) * mp::erfinv(0.25);
    exact.underflow_probability = 0.25;
    CHECK(near(mp::layerwise_scaler(exact).decide(symmetric(1.0), symmetric(1.0), 1.0, 1.0F).wanted, 8.0));
}

TEST_CASE("every bound has its say: 1, overflow, what has accumulated, and a factor of 16") {
    const auto decide = [](double g, double w, double fan_in, float accumulated) {
        return mp::layerwise_scaler{}.decide(symmetric(g), symmetric(w), fan_in, accumulated);
    };
    // Nothing to be rescued: at least 1.
    mp::layerwise_decision decision = decide(1.0, 1.0, 8.0, 1.0F);
    CHECK(decision == mp::layerwise_decision{1.0F, 1.0, mp::layerwise_limit::one});
    // Overflow goes before that: 65504 / 8 / (1e4 * 4) = 0.2047, and 1/8 is the power of two below.
    decision = decide(1e4, 4.0, 8.0, 1.0F);
    CHECK(near(decision.wanted, 0.2047));
    CHECK(decision.factor == 0.125F);
    CHECK(decision.limit == mp::layerwise_limit::overflow);
    // An outlier forbids what the deviation would ask for: 65504 / 8 / (60 * 20) = 6.8.
    mp::tensor_statistics g = symmetric(1e-5);
    mp::tensor_statistics w = symmetric(1e-5);
    g.lowest = -60.0;
    w.highest = 20.0;
    decision = mp::layerwise_scaler{}.decide(g, w, 8.0, 1.0F);
    CHECK(near(decision.wanted, 65504.0 / 8.0 / 1200.0));
    CHECK(decision.factor == 4.0F);
    CHECK(decision.limit == mp::layerwise_limit::overflow);
    // 16 at most at once.
    decision = decide(1e-5, 1e-3, 8.0, 1.0F);
    CHECK(near(decision.wanted, 6e-8 / (2e-8 * threshold)));
    CHECK(decision.factor == 16.0F);
    CHECK(decision.limit == mp::layerwise_limit::factor_bound);
    // 1024 / 32 = 32 is not less than 16; 1024 / 256 = 4 is, and 1024 / 4096 is even below 1.
    CHECK(decide(1e-5, 1e-3, 8.0, 32.0F).limit == mp::layerwise_limit::factor_bound);
    decision = decide(1e-5, 1e-3, 8.0, 256.0F);
    CHECK(decision.factor == 4.0F);
    CHECK(decision.limit == mp::layerwise_limit::accumulated_bound);
    CHECK(decide(1e-5, 1e-3, 8.0, 4096.0F).factor == 0.25F);
    CHECK(decide(1e-5, 1e-3, 8.0, 1024.0F).factor == 1.0F);
    // Without these two bounds.
    mp::layerwise_scaler unbounded({.bounded = false});
    CHECK(unbounded.decide(symmetric(1e-5), symmetric(1e-3), 8.0, 256.0F).factor == 2048.0F);
    // With others.
    mp::layerwise_scaler wider({.accumulated_bound = 65536.0, .factor_bound = 100.0});
    CHECK(wider.decide(symmetric(1e-5), symmetric(1e-3), 8.0, 256.0F).factor == 64.0F);
    CHECK(wider.decide(symmetric(1e-5), symmetric(1e-3), 8.0, 8192.0F).factor == 8.0F);
}

TEST_CASE("gradients without a value to be rescued leave the scale alone, and infinities go on their way") {
    mp::layerwise_scaler scaler;
    CHECK(scaler.decide(symmetric(0.0), symmetric(1.0), 8.0, 8.0F) ==
          mp::layerwise_decision{1.0F, 1.0, mp::layerwise_limit::no_gradient});
    CHECK(scaler.decide(symmetric(1.0), mp::tensor_statistics{}, 8.0, 8.0F).factor == 1.0F);
    CHECK(scaler.decide(symmetric(0.0), symmetric(1.0), 8.0, 2048.0F).factor == 0.5F);
    mp::tensor_statistics bad = symmetric(1e-6);
    bad.non_finite = 1;
    const auto before = scaler.state();
    CHECK(scaler.decide(bad, symmetric(1e-3), 8.0, 1.0F) ==
          mp::layerwise_decision{1.0F, 1.0, mp::layerwise_limit::non_finite});
    CHECK(scaler.state() == before);
}

TEST_CASE("the factor of the extremes rescues the least product") {
    mp::layerwise_scaler scaler({.method = mp::layerwise_method::abs_range});
    mp::tensor_statistics g = symmetric(1e-2);
    mp::tensor_statistics w = symmetric(1e-1);
    g.least_magnitude = 1e-6;
    w.least_magnitude = 1e-5;
    // 6e-8 / 8 / 1e-11 = 750; no bound of 16, no 1024 / A.
    mp::layerwise_decision decision = scaler.decide(g, w, 8.0, 1024.0F);
    CHECK(near(decision.wanted, 750.0));
    CHECK(decision.factor == 512.0F);
    // 65504 / 8 / (10 * 100) = 8.188.
    g.highest = 10.0;
    w.lowest = -100.0;
    decision = scaler.decide(g, w, 8.0, 1.0F);
    CHECK(near(decision.wanted, 8.188));
    CHECK(decision.factor == 8.0F);
    CHECK(decision.limit == mp::layerwise_limit::overflow);
    // Products below 1e-15 count as that.
    g = symmetric(1e-9);
    w = symmetric(1e-9);
    CHECK(near(scaler.decide(g, w, 1.0, 1.0F).wanted, 6e7));
    CHECK(scaler.decide(symmetric(0.0), w, 1.0, 1.0F).limit == mp::layerwise_limit::no_gradient);
}

TEST_CASE("operations without weights look at the gradient alone, normal or lognormal") {
    mp::layerwise_scaler scaler;
    mp::layerwise_decision decision = scaler.decide(symmetric(1e-5), 1.0F);
    CHECK(near(decision.wanted, 6e-8 / (1e-5 * threshold)));  // 4.79
    CHECK(decision.factor == 4.0F);
    CHECK(scaler.decide(symmetric(60000.0), 1.0F).factor == 1.0F);
    CHECK(scaler.decide(symmetric(1e6), 1.0F).factor == 0.0625F);  // 65504 / 1e6
    // ln |g| of mean ln 1e-6 and deviation 2: 0.1% of the magnitudes are below 1e-6 exp(-2 * 3.0902323), and
    // that is to become 6e-8.
    mp::tensor_statistics logarithms = symmetric(2.0);
    logarithms.mean = std::log(1e-6);
    decision = scaler.decide(symmetric(1e-5), 1.0F, &logarithms);
    CHECK(near(decision.wanted, 6e-8 / (1e-6 * std::exp(-2.0 * 3.090232306167813)), 1e-9));
    CHECK(decision.factor == 16.0F);
    mp::layerwise_scaler by_extremes({.method = mp::layerwise_method::abs_range});
    CHECK(near(by_extremes.decide(symmetric(1e-8), 1.0F).wanted, 6.0));
}

TEST_CASE("factors do not follow the direction in which the caller rounds") {
    std::vector<double> found[4];
    for (std::size_t i = 0; i < 4; ++i) {
        const rounding_scope rounding(every_direction[i]);
        for (const auto method : {mp::layerwise_method::approx_range, mp::layerwise_method::abs_range}) {
            mp::layerwise_scaler scaler({.method = method, .underflow_probability = 0.3});
            for (const double size : {0x1.3p-20, 0x1.7p-25, 0x1.9p-3}) {
                found[i].push_back(scaler.decide(symmetric(size), symmetric(0x1.1p-7), 700.0, 8.0F).wanted);
                found[i].push_back(scaler.decide(symmetric(size), 8.0F).wanted);
            }
        }
    }
    for (std::size_t i = 1; i < 4; ++i) CHECK(found[i] == found[0]);
}

TEST_CASE("a fixed factor is rounded down to a power of two and needs no statistics") {
    mp::layerwise_scaler scaler({.method = mp::layerwise_method::fixed, .fixed_factor = 100.0});
    CHECK_FALSE(scaler.is_due());
    CHECK(scaler.decide({}, {}, 1.0, 1e6F) ==
          mp::layerwise_decision{64.0F, 100.0, mp::layerwise_limit::fixed});
}

TEST_CASE("between updates the last factor is used again, and bounded anew") {
    mp::layerwise_scaler scaler({.update_interval = 3});
    const mp::tensor_statistics g = symmetric(1e-3);
    CHECK(scaler.is_due());
    CHECK(scaler.decide(g, symmetric(5e-3), 8.0, 1.0F).factor == 4.0F);
    CHECK_FALSE(scaler.is_due());
    CHECK(scaler.decide(g, symmetric(5.0), 8.0, 1.0F).factor == 4.0F);
    CHECK(scaler.decide({}, {}, 8.0, 512.0F).factor == 2.0F);
    CHECK(scaler.is_due());
    const mp::layerwise_scaler::state_type saved = scaler.state();
    CHECK(scaler.decide(g, symmetric(5.0), 8.0, 1.0F).factor == 1.0F);
    CHECK_FALSE(scaler.is_due());
    // A restored scaler goes on from there.
    mp::layerwise_scaler other({.update_interval = 3});
    other.set_state(scaler.state());
    CHECK(other.decide({}, {}, 8.0, 1.0F).factor == 1.0F);
    other.set_state(saved);
    CHECK(other.is_due());
    CHECK(saved.iteration == 3);
    std::map<std::string, int> names;
    mp::layerwise_scaler::state_type state;
    mp::layerwise_scaler::state_type::visit(state, [&](auto name, auto&) { ++names[std::string(name)]; });
    CHECK(names == std::map<std::string, int>{{"iteration", 1}, {"factor", 1}, {"limit", 1}});
    mp::layerwise_options options;
    int members = 0;
    mp::layerwise_options::visit(options, [&](auto, auto&) { ++members; });
    CHECK(members == 11);
}

TEST_CASE("scaling in place multiplies the values and the tag") {
    std::vector<mp::half> values;
    for (int i = 0; i < 1000; ++i) values.emplace_back(i % 2 == 0 ? 1e-3F : -1e-3F);
    const std::vector<mp::half> weights{mp::half(5e-3F), mp::half(-5e-3F)};
    mp::scaled_tensor<std::span<mp::half>> gradient{values, 2.0F};
    mp::layerwise_scaler scaler;
    const mp::layerwise_decision decision = scaler.scale(mp::cpu{.threads = 2}, gradient, weights, 8.0);
    CHECK(decision.factor == 4.0F);
    CHECK(gradient.scale == 8.0F);
    CHECK(values[0].bits() == mp::half(4.0F * static_cast<float>(mp::half(1e-3F))).bits());
    CHECK(values[999].bits() == mp::half(-4.0F * static_cast<float>(mp::half(1e-3F))).bits());
    std::vector<float> true_gradient(values.size());
    CHECK_FALSE(mp::unscale_weight_gradient(mp::cpu{}, values, true_gradient, 4.0F).found());
    CHECK(true_gradient[0] == static_cast<float>(mp::half(1e-3F)));
    CHECK(holds(thrown<mp::argument_error>([&] { mp::multiply_scale(mp::cpu{}, gradient, 0.0F); }),
                "mp::multiply_scale: factor is 0"));
    CHECK(holds(thrown<mp::argument_error>([&] { mp::multiply_scale(mp::cpu{}, gradient, 0x1p127F); }),
                "tensor.scale * factor is"));
    CHECK(gradient.scale == 8.0F);
    CHECK(holds(thrown<mp::argument_error>(
                    [&] { mp::unscale_weight_gradient(mp::cpu{}, values, true_gradient, not_a_number); }),
                "accumulated is "));
}

TEST_CASE("branches that meet get the largest scale that overflows in none of them") {
    const auto join = [](std::vector<mp::scaled_tensor<std::vector<float>>>& branches,
                         const mp::layerwise_options& options = {}) {
        return mp::join_branches(mp::cpu{}, std::span(branches), options);
    };
    using branches_type = std::vector<mp::scaled_tensor<std::vector<float>>>;
    // The true gradients are 2, -3 and 1: 16 * 3 < 65504.
    branches_type branches{{{8.0F}, 4.0F}, {{-3.0F}, 1.0F}, {{16.0F}, 16.0F}};
    CHECK(join(branches) == 16.0F);
    CHECK(branches[0].values[0] == 32.0F);
    CHECK(branches[1].values[0] == -48.0F);
    CHECK(branches[2].values[0] == 16.0F);
    for (const auto& branch : branches) CHECK(branch.scale == 16.0F);
    // 16 * 5000 overflows, 4 * 5000 does not.
    branches = {{{4.0F}, 4.0F}, {{5000.0F}, 1.0F}, {{16.0F}, 16.0F}};
    CHECK(join(branches) == 4.0F);
    CHECK(branches[1].values[0] == 20000.0F);
    CHECK(branches[2].values[0] == 4.0F);
    // The largest number itself is too large: 4 * 16376 = 65504.
    branches = {{{4.0F}, 4.0F}, {{-16376.0F}, 1.0F}};
    CHECK(join(branches) == 1.0F);
    branches = {{{4.0F}, 4.0F}, {{-16375.0F}, 1.0F}};
    CHECK(join(branches) == 4.0F);
    // No scale of a branch: halved, down to 1/8.
    branches = {{{4.0F}, 4.0F}, {{200000.0F}, 2.0F}};
    CHECK(join(branches) == 0.5F);
    CHECK(branches[0].values[0] == 0.5F);
    CHECK(branches[1].values[0] == 50000.0F);
    branches = {{{1.0F}, 1.0F}, {{524031.0F}, 1.0F}};
    CHECK(join(branches) == 0.125F);
    branches = {{{1.0F}, 1.0F}, {{524032.0F}, 1.0F}};
    CHECK(holds(thrown<mp::scale_error>([&] { join(branches); }), "no common scale of at least 0.125"));
    CHECK(branches[1].values[0] == 524032.0F);
    mp::layerwise_options lower;
    lower.least_common_scale = 0.0625;
    CHECK(join(branches, lower) == 0.0625F);
    for (const float bad : {infinity, not_a_number}) {
        branches = {{{1.0F}, 1.0F}, {{bad}, 1.0F}};
        CHECK(holds(thrown<mp::scale_error>([&] { join(branches); }), "no common scale"));
    }
    branches.clear();
    CHECK(holds(thrown<mp::argument_error>([&] { join(branches); }), "branches.size() is 0"));
    branches = {{{1.0F}, 0.0F}};
    CHECK(holds(thrown<mp::argument_error>([&] { join(branches); }), "scale is 0"));
}

TEST_CASE("options and arguments that make no sense are named") {
    const auto message = [](const mp::layerwise_options& options) {
        return thrown<mp::argument_error>([&] { mp::layerwise_scaler{options}; });
    };
    CHECK(message({}) == "(nothing was thrown)");
    CHECK(message({.underflow_probability = 1.0}) ==
          "mp::layerwise_options: underflow_probability is 1; it must be greater than 0 and less than 1");
    CHECK(holds(message({.underflow_probability = 0.0}), "underflow_probability is 0"));
    CHECK(holds(message({.smallest_number = 0.0}), "smallest_number is 0"));
    CHECK(holds(message({.largest_number = 1e-9}), "largest_number is 1e-09"));
    CHECK(holds(message({.relu_share = 1.5}), "relu_share is 1.5"));
    CHECK(holds(message({.accumulated_bound = -1.0}), "accumulated_bound is -1"));
    CHECK(holds(message({.factor_bound = 0.0}), "factor_bound is 0"));
    CHECK(holds(message({.fixed_factor = 0.0}), "fixed_factor is 0"));
    CHECK(holds(message({.update_interval = 0}), "update_interval is 0"));
    CHECK(holds(message({.least_common_scale = 0.0}), "least_common_scale is 0"));
    mp::layerwise_scaler scaler;
    CHECK(holds(thrown<mp::argument_error>([&] { scaler.decide(symmetric(1.0), symmetric(1.0), 0.0, 1.0F); }),
                "fan_in is 0"));
    CHECK(holds(thrown<mp::argument_error>([&] { scaler.decide(symmetric(1.0), symmetric(1.0), 1.0, 0.0F); }),
                "accumulated is 0"));
    CHECK(
        holds(thrown<mp::argument_error>([&] { scaler.set_state({-1, 1.0, {}}); }), "state.iteration is -1"));
    CHECK(holds(thrown<mp::argument_error>([&] { scaler.set_state({0, 0.0, {}}); }), "state.factor is 0"));
}

namespace {

// A network of six layers y = relu(W x + b), the last one without relu, of constant width.
constexpr std::size_t layers = 6;
constexpr std::size_t width = 32;
constexpr std::size_t batch = 16;

template <class Value>
using matrix = std::vector<Value>;  // rows of `width`

struct network {
    std::array<matrix<mp::half>, layers> weights;          // width x width
    std::array<matrix<float>, layers> biases;              // width
    std::array<matrix<mp::half>, layers + 1> activations;  // batch x width; [0] is the input
    matrix<mp::half> loss_gradient;                        // batch x width, of the network's output
};

/// Weights so small that on its way down the gradient shrinks from 2^13 to 2^-25, a factor of 2^-12 or so in
/// each of the upper layers and of 2^-4 to 2^-5 in each of the lower ones. Biases keep the activations near
/// 1.
network make_network() {
    // The deviations of the weights; a gradient shrinks by deviation * sqrt(width / 2).
    const std::array deviations{0.25F, 0.01F, 0x1p-6F, 0x1p-7F, 0x1p-15F, 0x1p-14F};
    std::mt19937 random(1234);
    std::normal_distribution<float> normal;
    network result;
    for (std::size_t l = 0; l < layers; ++l) {
        for (std::size_t i = 0; i < width * width; ++i) {
            result.weights[l].push_back(mp::half(deviations[l] * normal(random)));
        }
        for (std::size_t i = 0; i < width; ++i) result.biases[l].push_back(normal(random));
    }
    for (std::size_t i = 0; i < batch * width; ++i) {
        result.activations[0].push_back(mp::half(normal(random)));
        result.loss_gradient.push_back(mp::half(std::clamp(10000.0F * normal(random), -60000.0F, 60000.0F)));
    }
    for (std::size_t l = 0; l < layers; ++l) {
        for (std::size_t n = 0; n < batch; ++n) {
            for (std::size_t o = 0; o < width; ++o) {
                float sum = result.biases[l][o];
                for (std::size_t i = 0; i < width; ++i) {
                    sum += static_cast<float>(result.weights[l][o * width + i]) *
                           static_cast<float>(result.activations[l][n * width + i]);
                }
                if (l + 1 < layers) sum = std::max(sum, 0.0F);
                result.activations[l + 1].push_back(mp::half(sum));
            }
        }
    }
    return result;
}

/// The sums of products of a matrix product that training needs, in `Sum`.
template <class Sum, class Gradient>
matrix<Sum> weight_gradient(const network& net, std::size_t l, const matrix<Gradient>& g) {
    matrix<Sum> result(width * width);
    for (std::size_t n = 0; n < batch; ++n) {
        for (std::size_t o = 0; o < width; ++o) {
            for (std::size_t i = 0; i < width; ++i) {
                result[o * width + i] +=
                    static_cast<Sum>(g[n * width + o]) * static_cast<Sum>(net.activations[l][n * width + i]);
            }
        }
    }
    return result;
}

/// Of the input of layer l, with the derivative of the relu before it, times a factor.
template <class Sum, class Gradient>
matrix<Gradient> input_gradient(const network& net, std::size_t l, const matrix<Gradient>& g, Sum factor) {
    matrix<Gradient> result(batch * width);
    for (std::size_t n = 0; n < batch; ++n) {
        for (std::size_t i = 0; i < width; ++i) {
            Sum sum = 0;
            for (std::size_t o = 0; o < width; ++o) {
                sum += static_cast<Sum>(g[n * width + o]) * static_cast<Sum>(net.weights[l][o * width + i]);
            }
            const bool passes = static_cast<float>(net.activations[l][n * width + i]) > 0.0F;
            result[n * width + i] = Gradient(passes ? sum * factor : Sum{0});
        }
    }
    return result;
}

std::array<matrix<double>, layers> reference_gradients(const network& net) {
    std::array<matrix<double>, layers> result;
    matrix<double> g(net.loss_gradient.size());
    std::transform(net.loss_gradient.begin(), net.loss_gradient.end(), g.begin(),
                   [](mp::half x) { return static_cast<double>(x); });
    for (std::size_t l = layers; l-- > 0;) {
        result[l] = weight_gradient<double>(net, l, g);
        if (l > 0) g = input_gradient<double, double>(net, l, g, 1.0);
    }
    return result;
}

/// The root of the squared error over that of the squared reference; infinite if a value is not finite.
double relative_error(const matrix<float>& found, const matrix<double>& expected) {
    double error = 0.0;
    double size = 0.0;
    for (std::size_t i = 0; i < found.size(); ++i) {
        if (!std::isfinite(found[i])) return std::numeric_limits<double>::infinity();
        const double difference = static_cast<double>(found[i]) - expected[i];
        error += difference * difference;
        size += expected[i] * expected[i];
    }
    return std::sqrt(error / size);
}

/// The errors of the layers' weight gradients with one scale for the whole loss.
std::array<double, layers> errors_with_global_scale(const network& net, float scale,
                                                    const std::array<matrix<double>, layers>& expected) {
    std::array<double, layers> errors{};
    matrix<mp::half> g;
    for (const mp::half x : net.loss_gradient) g.push_back(mp::half(static_cast<float>(x) * scale));
    for (std::size_t l = layers; l-- > 0;) {
        matrix<float> w = weight_gradient<float>(net, l, g);
        for (float& x : w) x /= scale;
        errors[l] = relative_error(w, expected[l]);
        if (l > 0) g = input_gradient<float, mp::half>(net, l, g, 1.0F);
    }
    return errors;
}

}  // namespace

TEST_CASE("layer-wise scaling recovers gradients for which every global scale is too small or too large") {
    const network net = make_network();
    const std::array<matrix<double>, layers> expected = reference_gradients(net);

    const std::array<double, layers> unscaled = errors_with_global_scale(net, 1.0F, expected);
    CHECK(unscaled[layers - 1] < 1e-3);
    CHECK(unscaled[0] > 0.5);  // underflow
    for (int exponent = -24; exponent <= 24; ++exponent) {
        CAPTURE(exponent);
        const auto errors = errors_with_global_scale(net, std::ldexp(1.0F, exponent), expected);
        CHECK(*std::max_element(errors.begin(), errors.end()) > 0.1);
        // From 2 on the first gradient of all overflows.
        CHECK(std::isinf(errors[layers - 1]) == (exponent >= 1));
    }

    mp::scaled_tensor<matrix<mp::half>> g{net.loss_gradient};
    std::array<mp::layerwise_scaler, layers> scalers;
    for (std::size_t l = layers; l-- > 0;) {
        CAPTURE(l);
        CAPTURE(g.scale);
        matrix<float> w = weight_gradient<float>(net, l, g.values);
        CHECK_FALSE(mp::unscale_weight_gradient(mp::cpu{}, w, w, g.scale).found());
        CHECK(relative_error(w, expected[l]) < 0.003);
        if (l == 0) break;
        const mp::layerwise_decision decision =
            scalers[l].decide(mp::measure_statistics(mp::cpu{}, g.values),
                              mp::measure_statistics(mp::cpu{}, net.weights[l]), width, g.scale);
        g = {input_gradient<float, mp::half>(net, l, g.values, decision.factor), g.scale * decision.factor};
    }
    CHECK(g.scale == 1024.0F);
}
