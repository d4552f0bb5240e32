// SPDX-License-Identifier: MIT
// Compiled with -ffast-math, under which compilers may fuse, reorder and approximate, and programs flush
// subnormal numbers. The bits of training must be what they are without it, on every instruction set:
// the checksums below are the same for both programs.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/numbers/simd/processor.hpp>
#include <mp/optim.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace {

/// FNV-1a over the bytes of the values, the lowest first whatever the order in memory is.
struct checksum {
    std::uint64_t value = 0xcbf29ce484222325U;

    template <class Value>
    void add(std::span<Value> values) {
        using word = std::conditional_t<sizeof(Value) == 2, std::uint16_t,
                                        std::conditional_t<sizeof(Value) == 4, std::uint32_t, std::uint64_t>>;
        for (const Value& x : values) {
            std::uint64_t bits = std::bit_cast<word>(x);
            for (std::size_t i = 0; i < sizeof x; ++i, bits >>= 8) {
                value = (value ^ (bits & 0xff)) * 0x100000001b3U;
            }
        }
    }
};

/// Floats with exponents from `lowest` on, by their bits.
struct generator {
    std::uint32_t state = 12345;

    float next(std::uint32_t lowest, std::uint32_t exponents) {
        state = state * 1664525U + 1013904223U;
        const std::uint32_t word = state >> 4;
        return std::bit_cast<float>((state & 0x80000000U) | (lowest + word % exponents) << 23 |
                                    (word & 0x7fffffU));
    }
};

template <class Optimizer, class Options>
std::uint64_t trained(mp::instruction_set isa, const Options& options) {
    using weight = typename Optimizer::weight_type;
    using gradient_value = typename Optimizer::gradient_type;
    generator random;
    std::vector<weight> weights[2];
    std::vector<gradient_value> gradients[2];
    for (int part = 0; part < 2; ++part) {
        weights[part].resize(part == 0 ? 1003 : 77);
        gradients[part].resize(weights[part].size());
        for (weight& w : weights[part]) w = mp::round_to<weight>(random.next(115, 14));
    }
    Optimizer optimizer(mp::cpu{1, isa}, {{"", weights[0], gradients[0]}, {"", weights[1], gradients[1]}},
                        options);
    checksum sum;
    for (int step = 0; step < 6; ++step) {
        for (auto& part : gradients) {
            // Some of them subnormal after unscaling, or their squares.
            for (gradient_value& g : part) {
                g = mp::round_to<gradient_value>(random.next(step < 3 ? 100 : 118, 24));
            }
        }
        const float inverse_scale = step % 2 == 0 ? 0x1.8p-2F : 0x1.8p-60F;
        if (step % 3 == 0) {
            optimizer.step(inverse_scale);
        } else {
            optimizer.unscale_gradients(inverse_scale);
            const double norm = optimizer.clip_gradient_norm(step == 1 ? 0.25 : 0x1p-61);
            sum.add(std::span<const double>(&norm, 1));
            optimizer.step();
        }
        for (int part = 0; part < 2; ++part) {
            const auto index = static_cast<std::size_t>(part);
            sum.add(std::span<const weight>(weights[part]));
            sum.add(optimizer.master_weights(index));
            if constexpr (requires { optimizer.momentum(index); }) {
                sum.add(optimizer.momentum(index));
            } else {
                sum.add(optimizer.gradient_mean(index));
                sum.add(optimizer.gradient_mean_square(index));
            }
        }
    }
    return sum.value;
}

template <class Optimizer, class Options>
void check(std::uint64_t expected, const Options& options) {
    for (int isa = 0; isa <= static_cast<int>(mp::processor_instruction_set()); ++isa) {
        if (!mp::processor_has(static_cast<mp::instruction_set>(isa))) continue;
        CAPTURE(isa);
        CHECK(trained<Optimizer>(static_cast<mp::instruction_set>(isa), options) == expected);
    }
}

}  // namespace

TEST_CASE("flags that allow inexact arithmetic change no bit of AdamW") {
    check<mp::adamw<float>>(0x6ec4558220185d77U, mp::adamw_options{.learning_rate = 0.01});
    check<mp::adamw<mp::bfloat16>>(0xa28fd38769d99921U,
                                   mp::adamw_options{.learning_rate = 0.01, .weight_decay = 0.1});
    check<mp::adamw<mp::bfloat16, mp::bfloat16, mp::bfloat16, float>>(
        0xaea324d864668483U,
        mp::adamw_options{.learning_rate = 0.01, .low_precision_update = mp::weight_update::kahan});
}

TEST_CASE("flags that allow inexact arithmetic change no bit of SGD") {
    const mp::sgd_options options{.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01};
    check<mp::sgd<mp::half>>(0x3460cd9c30df340eU, options);
    check<mp::sgd<float, mp::half>>(
        0xe4324784b5a95019U,
        mp::sgd_options{.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
    check<mp::sgd<mp::bfloat16, mp::bfloat16, mp::bfloat16>>(
        0xdb6cfea24aed0a8dU, mp::sgd_options{.learning_rate = 0.1,
                                             .momentum = 0.9,
                                             .low_precision_update = mp::weight_update::stochastic,
                                             .seed = 5});
    check<mp::sgd<mp::half, mp::half, mp::half>>(
        0x9fdddc2fc813265bU,
        mp::sgd_options{
            .learning_rate = 0.1, .low_precision_update = mp::weight_update::stochastic, .seed = 5});
}

TEST_CASE("flags that allow inexact arithmetic change no bit of LARS and LAMB") {
    check<mp::lars<float>>(0x9ce6ab5a07e22cdaU, mp::lars_options{.weight_decay = 0.01});
    check<mp::lars<mp::bfloat16, mp::bfloat16, mp::bfloat16>>(
        0x2384f4827db193c4U,
        mp::lars_options{
            .trust_coefficient = 0.02, .clip = true, .low_precision_update = mp::weight_update::kahan});
    check<mp::lamb<float>>(0x3aa99bb1b0e29607U, mp::lamb_options{.learning_rate = 0.01});
    check<mp::lamb<mp::half>>(
        0xa8a792edb09b4905U,
        mp::lamb_options{.weight_decay = 0.0, .grad_averaging = false, .use_nvlamb = true});
}
