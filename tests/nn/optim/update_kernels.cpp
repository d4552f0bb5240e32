// SPDX-License-Identifier: MIT
// Steps on every instruction set against the updates one element at a time.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/numbers/simd/processor.hpp>
#include <mp/optim.hpp>

#include <algorithm>
#include <cfenv>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "nn/optim/executors.hpp"
#include "nn/optim/update_oracle.hpp"
#include "numbers/simd/caller_modes.hpp"

namespace {

template <class Optimizer, class Options>
Optimizer make(mp::cpu exec, std::vector<typename Optimizer::parameter_type> parameters,
               const Options& options) {
    return Optimizer(exec, std::move(parameters), options);
}

template <class Optimizer>
auto states_of(const Optimizer& optimizer, std::size_t index) {
    std::vector<std::span<const typename Optimizer::state_type>> states;
    if constexpr (requires { optimizer.momentum(index); }) {
        if (!optimizer.momentum(index).empty()) states.push_back(optimizer.momentum(index));
    } else {
        states.push_back(optimizer.gradient_mean(index));
        states.push_back(optimizer.gradient_mean_square(index));
    }
    return states;
}

/// Arrays that lie in one stretch of memory with gaps between them, so that all alignments occur, and bytes
/// that do not belong to anybody can be looked at.
template <class Value>
struct scattered {
    std::vector<Value> memory;
    std::vector<std::pair<std::size_t, std::size_t>> places;  // begin and size

    scattered(const std::vector<std::size_t>& sizes, std::mt19937& random) {
        std::size_t at = 0;
        for (const std::size_t size : sizes) {
            at += 1 + random() % 16;
            places.emplace_back(at, size);
            at += size;
        }
        memory.resize(at + 64);
        for (Value& value : memory) value = mp::round_to<Value>(oracle::some_value(random));
    }
    std::span<Value> operator[](std::size_t i) {
        return std::span<Value>(memory).subspan(places[i].first, places[i].second);
    }
    /// Bytes outside of the arrays that differ.
    std::size_t damaged(const std::vector<Value>& before) const {
        std::size_t count = 0;
        std::size_t at = 0;
        const auto compare = [&](std::size_t end) {
            for (; at < end; ++at)
                count += std::memcmp(&memory[at], &before[at], sizeof(Value)) != 0 ? 1U : 0U;
        };
        for (const auto& [begin, size] : places) {
            compare(begin);
            at = begin + size;
        }
        compare(memory.size());
        return count;
    }
};

template <class Optimizer, class Options>
void check_all_instruction_sets(const Options& options) {
    using weight = typename Optimizer::weight_type;
    using gradient_value = typename Optimizer::gradient_type;
    using master = typename Optimizer::master_type;
    using state = typename Optimizer::state_type;
    const float inverse_scale = 1.0F / 3.0F;
    for (const mp::cpu exec : optimizer_executors()) {
        CAPTURE(mp::name_of(exec.instructions));
        std::mt19937 random(99);
        std::vector<std::size_t> sizes;
        for (std::size_t size = 0; size <= 130; ++size) sizes.push_back(size);
        std::shuffle(sizes.begin(), sizes.end(), random);
        sizes.push_back(1500);
        scattered<weight> weights(sizes, random);
        scattered<gradient_value> gradients(sizes, random);
        const std::vector<weight> weights_before = weights.memory;

        std::vector<typename Optimizer::parameter_type> parameters;
        std::vector<oracle::parameter_state<weight, master, state>> expected(sizes.size());
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            const bool trained = i % 17 != 5;
            parameters.push_back({"", weights[i], trained ? gradients[i] : std::span<gradient_value>()});
            auto& e = expected[i];
            e.weights.assign(weights[i].begin(), weights[i].end());
            for (const weight w : e.weights) {
                if constexpr (std::is_same_v<weight, master>) {
                    e.masters.push_back(w);
                } else {
                    e.masters.push_back(static_cast<master>(static_cast<float>(w)));
                }
            }
            e.compensation.resize(sizes[i]);
            e.states[0].resize(sizes[i]);
            e.states[1].resize(sizes[i]);
            e.index = static_cast<std::uint32_t>(i);
        }
        Optimizer optimizer = make<Optimizer>(exec, parameters, options);
        for (int step = 0; step < 4; ++step) {
            for (gradient_value& value : gradients.memory) {
                value = mp::round_to<gradient_value>(oracle::some_value(random));
            }
            const std::vector<gradient_value> gradients_before = gradients.memory;
            // Alternately in one pass and by unscaled gradients.
            if (step % 2 == 0) {
                optimizer.step(inverse_scale);
                REQUIRE(std::memcmp(gradients.memory.data(), gradients_before.data(),
                                    gradients_before.size() * sizeof(gradient_value)) == 0);
            } else {
                optimizer.unscale_gradients(inverse_scale);
                optimizer.step();
                REQUIRE(gradients.damaged(gradients_before) == 0);
                gradients.memory = gradients_before;
            }
            REQUIRE(weights.damaged(weights_before) == 0);
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < sizes.size(); ++i) {
                const std::span<const gradient_value> g = parameters[i].gradient;
                oracle::step(expected[i], g, inverse_scale, options.low_precision_update, options.seed,
                             !states_of(optimizer, i).empty(), oracle::rule_of(options));
                wrong += oracle::differences(weights[i], expected[i].weights);
                wrong += oracle::differences(optimizer.master_weights(i), expected[i].masters);
                const auto states = states_of(optimizer, i);
                for (std::size_t s = 0; s < states.size(); ++s) {
                    wrong += oracle::differences(states[s], expected[i].states[s]);
                }
                if (!optimizer.weight_compensation(i).empty()) {
                    wrong += oracle::differences(optimizer.weight_compensation(i), expected[i].compensation);
                }
            }
            REQUIRE(wrong == 0);
        }
    }
}

constexpr mp::adamw_options adamw_options{.learning_rate = 0.01, .weight_decay = 0.1};

}  // namespace

TEST_CASE_TEMPLATE(
    "AdamW gives the bits of its definition on every instruction set, for all lengths and alignments",
    Optimizer, mp::adamw<float>, mp::adamw<mp::bfloat16>, mp::adamw<mp::half, float>,
    mp::adamw<mp::half, mp::bfloat16, mp::half>,
    mp::adamw<mp::float8_e4m3fn, mp::float8_e5m2, float, mp::bfloat16>) {
    check_all_instruction_sets<Optimizer>(adamw_options);
    check_all_instruction_sets<Optimizer>(mp::adamw_options{.epsilon = 0.0, .weight_decay = 0.0});
}

TEST_CASE_TEMPLATE("so does Adam, whose decay goes through the means", Optimizer, mp::adamw<float>,
                   mp::adamw<mp::bfloat16>) {
    check_all_instruction_sets<Optimizer>(
        mp::adamw_options{.learning_rate = 0.01, .weight_decay = 0.1, .coupled_decay = true});
}

TEST_CASE_TEMPLATE("so does Lion, zeros, infinities and NaNs among its gradients", Optimizer, mp::lion<float>,
                   mp::lion<mp::bfloat16>, mp::lion<mp::half, float, float, mp::bfloat16>) {
    check_all_instruction_sets<Optimizer>(mp::lion_options{.learning_rate = 0.01});
    check_all_instruction_sets<Optimizer>(mp::lion_options{.learning_rate = 0.01, .weight_decay = 0.3});
}

TEST_CASE("and Lion without a master copy, in every way of updating") {
    for (const auto how :
         {mp::weight_update::nearest, mp::weight_update::stochastic, mp::weight_update::kahan}) {
        check_all_instruction_sets<mp::lion<mp::bfloat16, mp::bfloat16, mp::bfloat16>>(
            mp::lion_options{.learning_rate = 0.01, .low_precision_update = how, .seed = 1});
    }
}

TEST_CASE_TEMPLATE(
    "SGD gives the bits of its definition on every instruction set, for all lengths and alignments",
    Optimizer, mp::sgd<float>, mp::sgd<mp::bfloat16>, mp::sgd<mp::half, float>,
    mp::sgd<mp::bfloat16, mp::half, mp::half, float>, mp::sgd<mp::float8_e4m3fn, mp::float8_e5m2>) {
    check_all_instruction_sets<Optimizer>(mp::sgd_options{.learning_rate = 0.1});
    check_all_instruction_sets<Optimizer>(mp::sgd_options{.learning_rate = 0.1, .weight_decay = 0.01});
    check_all_instruction_sets<Optimizer>(
        mp::sgd_options{.learning_rate = 0.1, .momentum = 0.9, .dampening = 0.25});
    check_all_instruction_sets<Optimizer>(
        mp::sgd_options{.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
}

TEST_CASE_TEMPLATE("so does LARS, with norms summed in another order and precision", Optimizer,
                   mp::lars<float>, mp::lars<mp::bfloat16>, mp::lars<mp::half, float>,
                   mp::lars<mp::float8_e4m3fn, mp::float8_e5m2, float, mp::bfloat16>) {
    check_all_instruction_sets<Optimizer>(mp::lars_options{.trust_coefficient = 0.02});
    check_all_instruction_sets<Optimizer>(
        mp::lars_options{.learning_rate = 0.02, .momentum = 0.0, .trust_coefficient = 0.02, .clip = true});
    check_all_instruction_sets<Optimizer>(
        mp::lars_options{.dampening = 0.25, .weight_decay = 0.0, .layer_adaptation = false});
    check_all_instruction_sets<Optimizer>(
        mp::lars_options{.epsilon = 0.0, .weight_decay = 0.01, .nesterov = true});
}

TEST_CASE_TEMPLATE("and LAMB", Optimizer, mp::lamb<float>, mp::lamb<mp::bfloat16>, mp::lamb<mp::half, float>,
                   mp::lamb<mp::float8_e4m3fn, mp::float8_e5m2, float, mp::bfloat16>) {
    check_all_instruction_sets<Optimizer>(mp::lamb_options{.learning_rate = 0.01});
    check_all_instruction_sets<Optimizer>(
        mp::lamb_options{.learning_rate = 0.01, .bias_correction = false, .adam_w_mode = false});
    check_all_instruction_sets<Optimizer>(
        mp::lamb_options{.epsilon = 0.0, .weight_decay = 0.0, .grad_averaging = false, .use_nvlamb = true});
    check_all_instruction_sets<Optimizer>(mp::lamb_options{.weight_decay = 0.0});
}

TEST_CASE("and both without a master copy, in every way of updating") {
    for (const auto how : {mp::weight_update::nearest, mp::weight_update::stochastic,
                           mp::weight_update::kahan, mp::weight_update::split}) {
        CAPTURE(mp::name_of(how));
        check_all_instruction_sets<mp::lars<mp::bfloat16, mp::bfloat16, mp::bfloat16>>(
            mp::lars_options{.trust_coefficient = 0.02, .low_precision_update = how, .seed = 1});
        check_all_instruction_sets<mp::lamb<mp::bfloat16, mp::bfloat16, mp::bfloat16, float>>(
            mp::lamb_options{.learning_rate = 0.01, .low_precision_update = how, .seed = 2});
    }
}

TEST_CASE_TEMPLATE("weights without a master copy follow the definition in every way of updating", Optimizer,
                   mp::sgd<mp::bfloat16, mp::bfloat16, mp::bfloat16>, mp::sgd<mp::half, float, mp::half>,
                   mp::sgd<mp::half, mp::half, mp::half, float>,
                   mp::sgd<mp::float8_e4m3fn, mp::half, mp::float8_e4m3fn>) {
    for (const auto how :
         {mp::weight_update::nearest, mp::weight_update::stochastic, mp::weight_update::kahan}) {
        CAPTURE(mp::name_of(how));
        check_all_instruction_sets<Optimizer>(mp::sgd_options{
            .learning_rate = 0.01, .low_precision_update = how, .seed = 0x0123'4567'89ab'cdef});
        check_all_instruction_sets<Optimizer>(
            mp::sgd_options{.learning_rate = 0.01, .momentum = 0.9, .low_precision_update = how, .seed = 3});
    }
}

TEST_CASE("masters of two halves follow the definition, by every optimizer") {
    const auto how = mp::weight_update::split;
    check_all_instruction_sets<mp::adamw<mp::bfloat16, mp::bfloat16, mp::bfloat16, float>>(
        mp::adamw_options{.learning_rate = 0.01, .weight_decay = 0.1, .low_precision_update = how});
    check_all_instruction_sets<mp::sgd<mp::bfloat16, float, mp::bfloat16>>(
        mp::sgd_options{.learning_rate = 0.1, .momentum = 0.9, .low_precision_update = how});
    check_all_instruction_sets<mp::lion<mp::bfloat16, mp::half, mp::bfloat16, mp::float8_e4m3fn>>(
        mp::lion_options{.learning_rate = 0.01, .low_precision_update = how});
}

TEST_CASE_TEMPLATE("AdamW without a master copy follows the definition in every way of updating", Optimizer,
                   mp::adamw<mp::bfloat16, mp::bfloat16, mp::bfloat16, float>,
                   mp::adamw<mp::bfloat16, mp::half, mp::bfloat16>) {
    for (const auto how :
         {mp::weight_update::nearest, mp::weight_update::stochastic, mp::weight_update::kahan}) {
        CAPTURE(mp::name_of(how));
        check_all_instruction_sets<Optimizer>(
            mp::adamw_options{.learning_rate = 0.01, .low_precision_update = how, .seed = 1});
    }
}

#if TEST_HAS_MODES

namespace {

/// Two rounds of training, clipping included, as bytes.
std::string trained(mp::cpu exec, mode_bits control) {
    std::mt19937 random(4);
    std::vector<mp::half> weights(997);
    std::vector<mp::half> gradient(997);
    for (mp::half& value : weights) value = mp::half(oracle::some_value(random) * 0.1F);
    for (mp::half& value : gradient) value = mp::half(std::normal_distribution<float>()(random) * 0x1p-14F);
    std::string bytes;
    const mode_bits before = current_modes();
    set_modes(control);
    mp::adamw<mp::half> optimizer(exec, {{"", weights, gradient}}, adamw_options);
    for (int round = 0; round < 2; ++round) {
        optimizer.unscale_gradients(0x1.8p-110F);  // subnormal results
        const double norm = optimizer.clip_gradient_norm(0x1p-125);
        bytes.append(reinterpret_cast<const char*>(&norm), sizeof norm);
        optimizer.step();
        optimizer.step(0.3F);
    }
    const mode_bits after = current_modes();
    set_modes(before);
    CHECK(after == control);
    const auto add = [&bytes](auto values) {
        bytes.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
    };
    add(std::span<const mp::half>(weights));
    add(optimizer.master_weights(0));
    add(optimizer.gradient_mean(0));
    add(optimizer.gradient_mean_square(0));
    return bytes;
}

}  // namespace

TEST_CASE("modes of rounding and flushing of the caller change nothing and stay as they are") {
    const std::string expected = trained(mp::cpu{1, mp::instruction_set::portable}, default_modes);
    for (const mp::cpu exec : optimizer_executors()) {
        CHECK(trained(exec, default_modes) == expected);
        for (const mode_bits control : caller_modes) {
            CAPTURE(mp::name_of(exec.instructions));
            CAPTURE(control);
            CHECK(trained(exec, control) == expected);
        }
    }
}

#endif

TEST_CASE("threads change no bit, whichever way weights are updated") {
    using optimizer_type = mp::adamw<mp::bfloat16, mp::bfloat16, mp::bfloat16>;
    std::mt19937 random(12);
    const std::vector<std::size_t> sizes = {70001, 0, 13, 4096, 4097, 160000, 1};
    scattered<mp::bfloat16> start(sizes, random);
    scattered<mp::bfloat16> gradients(sizes, random);
    for (const auto how :
         {mp::weight_update::nearest, mp::weight_update::stochastic, mp::weight_update::kahan}) {
        std::vector<mp::bfloat16> results[5];
        for (const int threads : {1, 2, 3, 4}) {
            scattered<mp::bfloat16> weights = start;
            std::vector<mp::parameter<mp::bfloat16>> parameters;
            for (std::size_t i = 0; i < sizes.size(); ++i)
                parameters.push_back({"", weights[i], gradients[i]});
            optimizer_type optimizer(mp::cpu{threads}, parameters,
                                     {.learning_rate = 0.05, .low_precision_update = how, .seed = 6});
            optimizer.step(0.5F);
            optimizer.step(0.25F);
            results[threads] = weights.memory;
        }
        std::size_t moved = 0;
        for (std::size_t i = 0; i < start.memory.size(); ++i) {
            moved += oracle::same(results[1][i], start.memory[i]) ? 0U : 1U;
        }
        CHECK(moved > start.memory.size() / 2);
        for (const int threads : {2, 3, 4}) CHECK(oracle::differences(results[threads], results[1]) == 0);
    }
}
