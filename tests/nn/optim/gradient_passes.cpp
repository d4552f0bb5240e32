// SPDX-License-Identifier: MIT
// Passes over the gradients of many parameters: reports, norms in their documented order, clipping, and rules
// that users write.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
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
#include <vector>

namespace {

/// The sum of squares in the order that <mp/nn/optim/kernels/square_sums.hpp> documents.
double documented_norm(std::span<const std::span<float>> gradients) {
    volatile double sums[256] = {};
    std::size_t blocks = 0;
    for (const std::span<float> gradient : gradients) {
        for (std::size_t begin = 0; begin < gradient.size(); begin += 4096) {
            const std::size_t end = std::min(begin + 4096, gradient.size());
            volatile double lanes[16] = {};
            for (std::size_t i = begin; i < end; ++i) {
                const double value = static_cast<double>(gradient[i]);
                lanes[(i - begin) % 16] = lanes[(i - begin) % 16] + value * value;
            }
            for (int half = 8; half > 0; half /= 2) {
                for (int lane = 0; lane < half; ++lane) lanes[lane] = lanes[lane] + lanes[lane + half];
            }
            sums[blocks % 256] = sums[blocks % 256] + lanes[0];
            ++blocks;
        }
    }
    for (int half = 128; half > 0; half /= 2) {
        for (int lane = 0; lane < half; ++lane) sums[lane] = sums[lane] + sums[lane + half];
    }
    return std::sqrt(sums[0]);
}

/// Parameters of many sizes, one of them without a gradient.
struct many {
    std::vector<std::size_t> sizes;
    std::vector<std::vector<mp::bfloat16>> weights;
    std::vector<std::vector<mp::bfloat16>> gradients;
    std::vector<mp::parameter<mp::bfloat16>> parameters;

    many() {
        for (std::size_t size = 0; size <= 130; ++size) sizes.push_back(size);
        for (const std::size_t size : {4095U, 4096U, 4097U, 300000U, 9001U}) sizes.push_back(size);
        std::mt19937 random(3);
        std::normal_distribution<float> normal;
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            weights.emplace_back(sizes[i], mp::bfloat16(1.0F));
            gradients.emplace_back(i == 100 ? 0 : sizes[i]);
            for (mp::bfloat16& value : gradients.back()) value = mp::bfloat16(normal(random));
        }
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            parameters.push_back({"", weights[i], gradients[i]});
        }
    }
};

template <class Function>
void on_every_instruction_set_with_threads(Function function) {
    for (int isa = 0; isa <= static_cast<int>(mp::processor_instruction_set()); ++isa) {
        if (!mp::processor_has(static_cast<mp::instruction_set>(isa))) continue;
        if (isa > static_cast<int>(mp::instruction_set::avx512)) break;  // there are no kernels beyond
        for (const int threads : {1, 2, 3}) {
            CAPTURE(isa);
            CAPTURE(threads);
            function(mp::cpu{threads, static_cast<mp::instruction_set>(isa)});
        }
    }
}

/// A rule of a user's own: w = w - rate * sign(g), and a count of updates in the state.
class sign_descent : public mp::optimizer_base<mp::half> {
public:
    sign_descent(mp::cpu exec, std::vector<parameter_type> parameters)
        : optimizer_base("sign_descent", exec, std::move(parameters), 0.125, 1) {}

    void step(float inverse_scale = 1.0F) {
        const float rate = static_cast<float>(learning_rate());
        apply<1>(inverse_scale, [rate](std::uint64_t update) {
            return [rate, update](float* weights, const float* gradient, std::array<float*, 1> states,
                                  std::size_t count) {
                for (std::size_t i = 0; i < count; ++i) {
                    weights[i] -= gradient[i] > 0.25F ? rate : gradient[i] < -0.25F ? -rate : 0.0F;
                    states[0][i] += static_cast<float>(update);
                }
            };
        });
    }
    [[nodiscard]] std::span<const float> counts(std::size_t index) const {
        return state_of("sign_descent::counts", index, 0);
    }
};

/// A rule with eight states, of which an object may have fewer: each that is there grows by its number.
template <class State>
class counting_rule : public mp::optimizer_base<mp::bfloat16, mp::bfloat16, float, State> {
    using base = mp::optimizer_base<mp::bfloat16, mp::bfloat16, float, State>;

public:
    counting_rule(mp::cpu exec, std::vector<typename base::parameter_type> parameters, std::size_t states)
        : base("counting_rule", exec, std::move(parameters), 1.0, states) {}

    void step() {
        base::template apply<8>(1.0F, [](std::uint64_t) {
            return
                [](float* weights, const float* gradient, std::array<float*, 8> states, std::size_t count) {
                    for (std::size_t i = 0; i < count; ++i) {
                        weights[i] -= gradient[i];
                        for (std::size_t s = 0; s < 8; ++s) {
                            if (states[s] != nullptr) states[s][i] += static_cast<float>(s + 1);
                        }
                    }
                };
        });
    }
};

template <class State>
void check_counting_rule() {
    for (const std::size_t states : {std::size_t{0}, std::size_t{3}, std::size_t{8}}) {
        std::vector<mp::bfloat16> weights(5001, mp::bfloat16(4.0F)), gradient(5001, mp::bfloat16(0.5F));
        counting_rule<State> optimizer({.threads = 2}, {{"w", weights, gradient}}, states);
        optimizer.step();
        optimizer.step();
        std::size_t wrong = 0;
        for (const mp::bfloat16& weight : weights) wrong += weight != mp::bfloat16(3.0F) ? 1U : 0U;
        for (std::size_t s = 0; s < states; ++s) {
            std::vector<float> values(weights.size());
            optimizer.copy_state(0, s, 0, values);
            for (const float value : values) wrong += value != 2.0F * static_cast<float>(s + 1) ? 1U : 0U;
        }
        CHECK(wrong == 0);
    }
}

}  // namespace

TEST_CASE("a user-defined rule has up to eight states; those that an optimizer was made without are null") {
    check_counting_rule<float>();
    check_counting_rule<mp::bfloat16>();
}

TEST_CASE(
    "the norm has the bits of its documented order on every instruction set, with any number of threads") {
    many network;
    on_every_instruction_set_with_threads([&](mp::cpu exec) {
        mp::sgd<mp::bfloat16> optimizer(exec, network.parameters);
        optimizer.unscale_gradients(1.0F / 3.0F);
        const double expected = documented_norm(optimizer.unscaled_gradients());
        CHECK(expected > 100.0);
        CHECK(optimizer.clip_gradient_norm(std::numeric_limits<double>::infinity()) == expected);
        CHECK(optimizer.clip_gradient_norm(1.0) == expected);
        const float factor = static_cast<float>(1.0 / (expected + 1e-6));
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < network.sizes.size(); ++i) {
            const auto clipped = optimizer.unscaled_gradients()[i];
            wrong += clipped.size() != network.gradients[i].size() ? 1U : 0U;
            for (std::size_t j = 0; j < clipped.size(); ++j) {
                volatile float value = static_cast<float>(network.gradients[i][j]) * (1.0F / 3.0F);
                value = value * factor;
                wrong += clipped[j] != value ? 1U : 0U;
            }
        }
        CHECK(wrong == 0);
        CHECK(optimizer.clip_gradient_norm(1.0) == doctest::Approx(1.0).epsilon(1e-5));
    });
}

TEST_CASE("reports on many parameters name the first one and count all, with any number of threads") {
    many network;
    std::size_t checked = 0;
    for (const auto& gradient : network.gradients) checked += gradient.size();
    const auto infinity = mp::bfloat16::from_bits(0x7f80);
    const auto nan = mp::bfloat16::from_bits(0xffc0);
    on_every_instruction_set_with_threads([&](mp::cpu exec) {
        mp::sgd<mp::bfloat16> optimizer(exec, network.parameters);
        CHECK(optimizer.check_gradients(0.5F) == mp::gradient_report{.checked = checked});
        const struct {
            std::size_t parameter, element;
        } places[] = {{134, 299999}, {134, 4096}, {133, 4096}, {101, 100}, {1, 0}};
        std::uint64_t found = 0;
        for (const auto& place : places) {
            network.gradients[place.parameter][place.element] = found % 2 == 0 ? infinity : nan;
            ++found;
            const mp::gradient_report expected{checked, (found + 1) / 2, found / 2, place.parameter,
                                               place.element};
            CHECK(optimizer.check_gradients(0.5F) == expected);
            CHECK(optimizer.unscale_gradients(0.5F) == expected);
            optimizer.skip_step();
        }
        for (const auto& place : places) {
            network.gradients[place.parameter][place.element] = mp::bfloat16(1.0F);
        }
    });
}

TEST_CASE("rules of users' own run over all parameters, on raw and on unscaled gradients") {
    for (const int threads : {1, 3}) {
        std::vector<mp::half> first(70000, mp::half(1.0F));
        std::vector<mp::half> second(601, mp::half(2.0F));
        std::vector<mp::half> first_gradient(first.size());
        std::vector<mp::half> second_gradient(second.size());
        for (std::size_t i = 0; i < first.size(); ++i) {
            first_gradient[i] = mp::half(static_cast<float>(i % 3) - 1.0F);
        }
        for (mp::half& value : second_gradient) value = mp::half(0.375F);
        sign_descent optimizer(mp::cpu{threads},
                               {{"", first, first_gradient}, {"", second, second_gradient}});
        optimizer.step();
        optimizer.unscale_gradients(0.5F);
        optimizer.step();
        optimizer.step(0.5F);
        for (std::size_t i = 0; i < first.size(); ++i) {
            REQUIRE(static_cast<float>(first[i]) == 1.0F - 0.375F * (static_cast<float>(i % 3) - 1.0F));
            REQUIRE(optimizer.counts(0)[i] == 6.0F);
        }
        for (const mp::half value : second) REQUIRE(static_cast<float>(value) == 1.875F);
        CHECK(optimizer.step_count() == 3);
    }
}
