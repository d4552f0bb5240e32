// SPDX-License-Identifier: MIT
// Moments in blocks of 8 bits: codes by a search through a table of all values, on every instruction set;
// what becomes of zeros and NaN; and a small network that learns as with float moments.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/numbers/simd/processor.hpp>
#include <mp/optim.hpp>

#include <algorithm>
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

#include "nn/optim/executors.hpp"
#include "nn/optim/update_oracle.hpp"
#include "nn/scaling/thrown.hpp"

namespace {

/// The values of the codes 0, 1, 2 ... up to 1, from the definition of a float with `fraction_bits`.
std::vector<double> values_of_codes(int fraction_bits, int min_exponent) {
    std::vector<double> result;
    const int fractions = 1 << fraction_bits;
    for (int code = 0;; ++code) {
        const int exponent = std::max(code / fractions, 1) + min_exponent - 1;
        const int hidden = code < fractions ? 0 : fractions;
        result.push_back(std::ldexp(hidden + code % fractions, exponent - fraction_bits));
        if (result.back() == 1.0) return result;
    }
}

/// What a block of moments is after it was stored.
void store_block(std::span<float> block, bool is_square) {
    static const std::vector<double> of_means = values_of_codes(3, -14);
    static const std::vector<double> of_squares = values_of_codes(4, -14);
    const std::vector<double>& values = is_square ? of_squares : of_means;
    float scale = 0.0F;
    for (const float x : block) scale = std::max(scale, std::fabs(x));
    if (scale == 0.0F) return;
    for (float& x : block) {
        const double ratio = static_cast<double>(oracle::stored(std::fabs(x) / scale));
        std::size_t best = 0;
        for (std::size_t code = 1; code < values.size(); ++code) {
            const double nearer = std::fabs(values[code] - ratio) - std::fabs(values[best] - ratio);
            if (nearer < 0.0 || (nearer == 0.0 && code % 2 == 0)) best = code;
        }
        if (is_square && x > 0.0F && best == 0) best = 1;
        x = std::copysign(oracle::multiply(static_cast<float>(values[best]), scale), x);
    }
}

void store_all(std::span<float> moments, bool is_square) {
    for (std::size_t at = 0; at < moments.size(); at += 256) {
        store_block(moments.subspan(at, std::min<std::size_t>(256, moments.size() - at)), is_square);
    }
}

/// Optimizer is one with Master = float; compared with its rule and store_all.
template <class Optimizer, class Options>
void check_steps(const Options& options, std::size_t states) {
    using weight = typename Optimizer::weight_type;
    const std::vector<std::size_t> sizes = {1, 255, 256, 257, 40000, 3};
    for (const mp::cpu exec : optimizer_executors({1, 3})) {
        CAPTURE(mp::name_of(exec.instructions));
        CAPTURE(exec.threads);
        std::mt19937 random(5);
        std::normal_distribution<float> normal;
        std::vector<std::vector<weight>> weights;
        std::vector<std::vector<weight>> gradients;
        std::vector<mp::parameter<weight>> parameters;
        std::vector<oracle::parameter_state<weight, float, float>> expected(sizes.size());
        for (const std::size_t size : sizes) {
            weights.emplace_back(size);
            gradients.emplace_back(size);
            for (weight& it : weights.back()) it = weight(normal(random));
        }
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            parameters.push_back({"", weights[i], gradients[i]});
            expected[i].weights = weights[i];
            for (const weight it : weights[i]) expected[i].masters.push_back(static_cast<float>(it));
            expected[i].compensation.resize(sizes[i]);
            for (auto& it : expected[i].states) it.resize(sizes[i]);
        }
        Optimizer optimizer(exec, parameters, options);
        std::size_t wrong = 0;
        for (int step = 0; step < 5; ++step) {
            for (std::size_t i = 0; i < sizes.size(); ++i) {
                for (std::size_t j = 0; j < sizes[i]; ++j) {
                    // Of many magnitudes; a block of zeros at first, and one of subnormal moments.
                    const float size = std::ldexp(1.0F, -static_cast<int>(random() % 20));
                    gradients[i][j] = weight(normal(random) * size * (j / 256 == 7 ? 1e-36F : 1.0F));
                    if (j / 256 == 5 && step < 2) gradients[i][j] = weight(0.0F);
                }
            }
            optimizer.step(0.5F);
            for (std::size_t i = 0; i < sizes.size(); ++i) {
                oracle::step(expected[i], std::span<const weight>(gradients[i]), 0.5F,
                             mp::weight_update::nearest, 0, true, oracle::rule_of(options));
                wrong += oracle::differences(optimizer.master_weights(i), expected[i].masters);
                for (std::size_t s = 0; s < states; ++s) {
                    store_all(expected[i].states[s], s == 1);
                    std::vector<float> seen(sizes[i]);
                    optimizer.copy_state(i, s, 0, seen);
                    wrong += oracle::differences(std::span<const float>(seen), expected[i].states[s]);
                }
            }
        }
        CHECK(wrong == 0);
    }
}

/// 32 inputs of magnitudes from 0.01 to 1, 48 hidden elements, 10 classes, in plain loops.
struct network {
    static constexpr std::size_t inputs = 32, hidden = 48, classes = 10;
    std::vector<float> first = std::vector<float>(inputs * hidden), d_first = first;
    std::vector<float> second = std::vector<float>(hidden * classes), d_second = second;

    network() {
        std::mt19937 random(1);
        std::normal_distribution<float> normal;
        for (float& it : first) it = 0.2F * normal(random);
        for (float& it : second) it = 0.15F * normal(random);
    }

    /// The mean loss over examples [begin, end), and its gradient.
    double run(const std::vector<float>& xs, const std::vector<std::size_t>& labels, std::size_t begin,
               std::size_t end) {
        std::fill(d_first.begin(), d_first.end(), 0.0F);
        std::fill(d_second.begin(), d_second.end(), 0.0F);
        double loss = 0.0;
        for (std::size_t k = begin; k < end; ++k) {
            std::array<float, hidden> h{};
            std::array<float, classes> p{};
            for (std::size_t j = 0; j < hidden; ++j) {
                for (std::size_t i = 0; i < inputs; ++i) h[j] += xs[k * inputs + i] * first[i * hidden + j];
                h[j] = std::max(h[j], 0.0F);
                for (std::size_t c = 0; c < classes; ++c) p[c] += h[j] * second[j * classes + c];
            }
            float sum = 0.0F;
            for (float& it : p) sum += it = std::exp(it);
            for (float& it : p) it /= sum;
            loss -= std::log(static_cast<double>(p[labels[k]]));
            p[labels[k]] -= 1.0F;
            for (std::size_t j = 0; j < hidden; ++j) {
                float dh = 0.0F;
                for (std::size_t c = 0; c < classes; ++c) {
                    const float d = p[c] / static_cast<float>(end - begin);
                    dh += d * second[j * classes + c];
                    d_second[j * classes + c] += h[j] * d;
                }
                if (h[j] == 0.0F) continue;
                for (std::size_t i = 0; i < inputs; ++i) d_first[i * hidden + j] += xs[k * inputs + i] * dh;
            }
        }
        return loss / static_cast<double>(end - begin);
    }
};

/// The loss over all examples after 400 steps, with the batches of a seed.
template <class Optimizer, class Options>
double trained_loss(const Options& options, unsigned seed) {
    constexpr std::size_t examples = 1024;
    std::mt19937 fixed(7);
    std::normal_distribution<float> normal;
    std::vector<float> centres(10 * network::inputs);
    std::vector<float> xs(examples * network::inputs);
    std::vector<std::size_t> labels(examples);
    for (float& it : centres) it = 0.6F * normal(fixed);
    for (std::size_t k = 0; k < examples; ++k) {
        labels[k] = fixed() % 10;
        for (std::size_t i = 0; i < network::inputs; ++i) {
            const float scale = std::pow(10.0F, -0.5F * static_cast<float>(i % 5));
            xs[k * network::inputs + i] = scale * (centres[labels[k] * network::inputs + i] + normal(fixed));
        }
    }
    network net;
    Optimizer optimizer({{"first", net.first, net.d_first}, {"second", net.second, net.d_second}}, options);
    std::mt19937 batches(seed);
    for (int step = 0; step < 400; ++step) {
        const std::size_t begin = batches() % (examples / 32) * 32;
        net.run(xs, labels, begin, begin + 32);
        optimizer.step();
    }
    return net.run(xs, labels, 0, examples);
}

template <class Float, class Blocks, class Options>
void compare(const std::string& name, const Options& options) {
    std::array<double, 3> of_float{};
    std::array<double, 3> of_blocks{};
    for (unsigned seed = 0; seed < 3; ++seed) {
        of_float[seed] = trained_loss<Float>(options, seed);
        of_blocks[seed] = trained_loss<Blocks>(options, seed);
        MESSAGE(name << ", batches " << seed << ": float " << of_float[seed] << ", 8 bits "
                     << of_blocks[seed]);
        CHECK(of_float[seed] < 1.0);
        CHECK(of_blocks[seed] == doctest::Approx(of_float[seed]).epsilon(0.04));
    }
}

using moments_adamw = mp::adamw<mp::bfloat16, mp::bfloat16, float, mp::block_moment>;

}  // namespace

TEST_CASE("moments are the nearest codes of their block on every instruction set, with any threads") {
    check_steps<moments_adamw>(mp::adamw_options{.learning_rate = 0.01, .weight_decay = 0.1}, 2);
    check_steps<mp::sgd<mp::bfloat16, mp::bfloat16, float, mp::block_moment>>(
        mp::sgd_options{.learning_rate = 0.1, .momentum = 0.9}, 1);
    check_steps<mp::lion<mp::bfloat16, mp::bfloat16, float, mp::block_moment>>(
        mp::lion_options{.learning_rate = 0.01, .weight_decay = 0.1}, 1);
    check_steps<mp::lars<mp::bfloat16, mp::bfloat16, float, mp::block_moment>>(mp::lars_options{}, 1);
    check_steps<mp::lamb<mp::bfloat16, mp::bfloat16, float, mp::block_moment>>(
        mp::lamb_options{.learning_rate = 0.01}, 2);
}

TEST_CASE("a small network learns as with float moments, to within 4 % of the loss") {
    using mp::block_moment;
    for (const double beta2 : {0.999, 0.95}) {
        compare<mp::adamw<float>, mp::adamw<float, float, float, block_moment>>(
            "adamw", mp::adamw_options{.learning_rate = 2e-3, .beta2 = beta2});
    }
    compare<mp::lion<float>, mp::lion<float, float, float, block_moment>>(
        "lion", mp::lion_options{.learning_rate = 1e-3});
    compare<mp::sgd<float>, mp::sgd<float, float, float, block_moment>>(
        "sgd", mp::sgd_options{.learning_rate = 0.05, .momentum = 0.9});
}

TEST_CASE("a moment takes a byte, and a block four") {
    std::vector<mp::bfloat16> weights(1024);
    std::vector<mp::bfloat16> gradient(1024);
    CHECK(moments_adamw({{"", weights, gradient}}).bytes_per_parameter() == 2 + 2 + 4 + 2 * (1 + 4.0 / 256));
    const mp::adamw<mp::bfloat16, mp::bfloat16, mp::bfloat16, mp::block_moment> smallest(
        {{"", weights, gradient}}, {.low_precision_update = mp::weight_update::split});
    CHECK(smallest.bytes_per_parameter() == 2 + 2 + 2 + 2 * (1 + 4.0 / 256));
    const mp::sgd<mp::bfloat16, mp::bfloat16, float, mp::block_moment> none({{"", weights, gradient}});
    CHECK(none.bytes_per_parameter() == 2 + 2 + 4);
}

TEST_CASE("an infinity or NaN makes a block NaN and no other; a small square is not lost") {
    std::vector<float> weights(600, 1.0F);
    std::vector<float> gradient(600, 1.0F);
    gradient[300] = std::numeric_limits<float>::infinity();
    gradient[2] = 1e-6F;
    mp::adamw<float, float, float, mp::block_moment> optimizer({{"", weights, gradient}});
    optimizer.step();
    std::vector<float> means(600);
    std::vector<float> squares(600);
    optimizer.copy_state(0, 0, 0, means);
    optimizer.copy_state(0, 1, 0, squares);
    const auto is_nan = [](float x) { return (std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFFU) > 0x7F800000U; };
    for (std::size_t i = 0; i < 600; ++i) {
        CAPTURE(i);
        REQUIRE(is_nan(means[i]) == (i / 256 == 1));
        REQUIRE(is_nan(squares[i]) == (i / 256 == 1));
    }
    CHECK(means[2] == 0.0F);
    CHECK(squares[2] == 0x1p-18F * squares[0]);
    std::vector<float> some(3);
    optimizer.copy_state(0, 1, 254, std::span(some).first(2));
    CHECK(some[1] == squares[255]);
    optimizer.copy_state(0, 1, 511, some);
    CHECK(is_nan(some[0]));
    CHECK(some[2] == squares[513]);
    CHECK(
        thrown<mp::argument_error>([&] { optimizer.copy_state(0, 2, 0, some); }) ==
        "mp::optimizer_base::copy_state: state is 2; it must be less than the number of states, which is 2");
    CHECK(holds(thrown<mp::argument_error>([&] { optimizer.copy_state(0, 1, 598, some); }),
                "mp::optimizer_base::copy_state: to.size() is 3; it must be at most the number of weights"));
}
