// SPDX-License-Identifier: MIT
// Delayed and current scaling of 8-bit tensors on the simulated GPU, and layers with such operands.
#include "device/gpu/tensor_scaling_checks.hpp"
#include "device/gpu/watched.hpp"

#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/gpu.hpp>
#include <mp/numbers/rules/scaled_code.hpp>
#include <mp/tensor_core.hpp>
#include <mp/train/parallel/gradient_reduction.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

namespace {

using mp::bfloat16;
using mp::float8_e4m3fn;
using mp::float8_e5m2;
namespace checks = gpu_test::tensor_scaling;
namespace layers = mp::layers;

TEST_CASE_TEMPLATE("a scaled number is rounded once, by floats as by doubles", Format, float8_e4m3fn,
                   float8_e5m2) {
    std::mt19937 random(1);
    const auto check = [](const std::vector<float>& values, float scale) {
        std::vector<Format> expected(values.size());
        mp::quantize_with_scale(mp::cpu{}, values, expected, scale);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
            wrong += mp::detail::scaled_code<Format>(values[i], scale).bits() != expected[i].bits();
        }
        CAPTURE(scale);
        CHECK(wrong == 0);
    };
    // All numbers of 16 bits.
    std::vector<float> all;
    for (std::uint32_t code = 0; code < 0x10000; ++code) {
        all.push_back(mp::detail::bit_cast<float>(code << 16));
    }
    std::vector<float> scales{1.0F, 0x1p-149F, 0x1p-126F, 0x1.fffffep127F, 448.0F / 3.0F};
    for (int i = 0; i < 20; ++i) {
        scales.push_back(std::ldexp(std::uniform_real_distribution<float>(1, 2)(random),
                                    std::uniform_int_distribution<int>(-40, 40)(random)));
    }
    for (const float scale : scales) check(all, scale);
    // Floats whose products lie at the middle of two codes, or next to it.
    std::vector<float> hard;
    const float scale = 1.7320508F;
    for (int code = 0; code + 1 < 0x7c; ++code) {
        const auto low = static_cast<double>(Format::from_bits(static_cast<std::uint8_t>(code)));
        const auto high = static_cast<double>(Format::from_bits(static_cast<std::uint8_t>(code + 1)));
        const auto middle = static_cast<float>((low + high) / 2 / static_cast<double>(scale));
        for (const float x : {std::nextafter(middle, 0.0F), middle, std::nextafter(middle, 1e30F)}) {
            hard.push_back(x);
            hard.push_back(-x);
        }
    }
    check(hard, scale);
}

TEST_CASE("codes, those of the transpose and amax are the CPU's") {
    checks::check_codes(gpu_test::watched(mp::simulated_gpu<mp::arch::sm_75>{.seed = 1}));
}

TEST_CASE("windows of amax and the scales that follow are the CPU's") {
    checks::check_windows(gpu_test::watched(mp::simulated_gpu<mp::arch::sm_75>{.seed = 5}),
                          {1, 2, 3, 257, 258}, 6);
    checks::check_windows(mp::simulated_gpu<mp::arch::sm_75>{}, {4, 600}, 10);
}

/// Bits of a product against the model of the tensor cores, with a bias, and added to what is there.
template <mp::arch Arch, class A, class B>
void check_product(const mp::simulated_gpu<Arch>& exec) {
    constexpr std::ptrdiff_t m = 40, n = 24, k = 200, stride = 208;
    std::mt19937 random(3);
    const auto fill = [&](auto& values, double size) {
        for (auto& it : values) {
            using value = std::remove_reference_t<decltype(it)>;
            it = value(static_cast<float>(std::normal_distribution<double>(0, size)(random)));
        }
    };
    mp::tensor<A> a(m, stride);
    mp::tensor<B> b(n, stride);
    mp::tensor<bfloat16> c(m, n), expected(m, n);
    std::vector<bfloat16> bias(n);
    const auto a_values = a.values();
    const auto b_values = b.values();
    fill(a_values, 40);
    fill(b_values, 40);
    fill(bias, 1);
    mp::device_tensor_scale a_scale{.used = 37.5F}, b_scale{.used = 3.3333F};
    const auto left = a.view().block(0, 0, m, k);
    const auto right = mp::transposed(b.view().block(0, 0, n, k));
    const auto host = mp::emulated<Arch>{};
    const float factor = mp::detail::inverse_of_scales(37.5F, 3.3333F);
    const auto same = [&] {
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < c.size(); ++i)
            wrong += c.values()[i].bits() != expected.values()[i].bits();
        return wrong == 0;
    };
    mp::gemm_tensor_scaled(exec, left, &a_scale, right, &b_scale, c.view(), std::span<const bfloat16>(bias));
    mp::gemm(host, factor, left, right, 0.0F, expected.view(), mp::bias_per_column(bias));
    CHECK(same());
    mp::gemm_tensor_scaled(exec, left, &a_scale, right, &b_scale, c.view(), std::span<const bfloat16>(),
                           true);
    mp::gemm(host, factor, left, right, 1.0F, expected.view());
    CHECK(same());
    b_scale.amax_bits = 0x7f800000U;
    mp::gemm_tensor_scaled(exec, left, &a_scale, right, &b_scale, c.view());
    for (const bfloat16 value : c.values()) CHECK(mp::isnan(value));
    CHECK_THROWS_AS(mp::gemm_tensor_scaled(exec, left, nullptr, right, &b_scale, c.view()),
                    mp::argument_error);
    CHECK_THROWS_AS(mp::gemm_tensor_scaled(exec, left, &a_scale, mp::row_major(b.values().data(), k, n),
                                           &b_scale, c.view()),
                    mp::argument_error);
    CHECK_THROWS_AS(mp::gemm_tensor_scaled(exec, left, &a_scale, right, &b_scale, c.view(),
                                           std::span<const bfloat16>(bias).first(3)),
                    mp::argument_error);
}

TEST_CASE("products have the bits of the model of tensor cores of 8 bits") {
    check_product<mp::arch::sm_89, float8_e4m3fn, float8_e4m3fn>(mp::simulated_gpu<mp::arch::sm_89>{});
    check_product<mp::arch::sm_89, float8_e5m2, float8_e4m3fn>(mp::simulated_gpu<mp::arch::sm_89>{});
    // wgmma, whose sums are those of native units, as mma.sync's are not here.
    check_product<mp::arch::sm_90, float8_e4m3fn, float8_e4m3fn>(mp::simulated_gpu<mp::arch::sm_90>{});
    check_product<mp::arch::sm_90, float8_e5m2, float8_e4m3fn>(mp::simulated_gpu<mp::arch::sm_90>{});
}

TEST_CASE("MXFP8: blocks along both directions in one pass have the CPU's bits") {
    const mp::simulated_gpu<mp::arch::sm_75> exec{.seed = 1};
    checks::check_mx(gpu_test::watched(exec));
}

TEST_CASE_TEMPLATE("a layer on tensor cores of 8 bits, and without them", Executor,
                   mp::simulated_gpu<mp::arch::sm_75>, mp::simulated_gpu<mp::arch::sm_89>,
                   mp::simulated_gpu<mp::arch::sm_90>) {
    mp::host_workspace workspace;
    checks::check_layer<layers::float8_delayed_scaling>(
        gpu_test::watched(Executor{.seed = 1, .workspace = &workspace}));
}

/// Two ranks of which this is one; the other has seen 3 and 0.25 by turns.
struct one_of_two : mp::single_rank {
    [[nodiscard]] static int size() { return 2; }
    void max(std::span<std::uint64_t> codes) const {
        for (std::size_t i = 0; i < codes.size(); ++i) {
            codes[i] = std::max<std::uint64_t>(
                codes[i], mp::detail::bit_cast<std::uint32_t>(i % 2 == 0 ? 3.0F : 0.25F));
        }
    }
};

TEST_CASE("the largest magnitudes of other ranks reach the windows of a GPU") {
    const test_folder folder;
    mp::host_workspace workspace;
    using executor = mp::simulated_gpu<mp::arch::sm_75>;
    checks::place<layers::float8_delayed_scaling, executor> device(executor{.workspace = &workspace});
    checks::place<layers::float8_delayed_scaling, mp::cpu> host(mp::cpu{});
    const auto step = [](auto& it) {
        it.fill(0.5, 1e-5);
        for (int i = 0; i < 2; ++i) {
            it.forward();
            it.backward(false);
            one_of_two ranks;
            mp::reduce_amax(ranks, it.layer);
            it.store.weights_changed();
        }
        it.forward();
    };
    step(device);
    step(host);
    CHECK(checks::file_of(folder.file("device"), device.everything()) ==
          checks::file_of(folder.file("host"), host.everything()));
}

TEST_CASE("the scales of all layers move in one launch of a step, however many they are") {
    mp::simt::launch_recorder recorder;
    mp::host_workspace workspace;
    const mp::simulated_gpu<mp::arch::sm_75> exec{.workspace = &workspace, .recorder = &recorder};
    const std::size_t one = checks::launches_of_step(exec, 1);
    CHECK(checks::launches_of_step(exec, 12) == 12 * (one - 1) + 1);
}

TEST_CASE("a layer with current scaling, and one with blocks of MXFP8") {
    mp::host_workspace workspace;
    const mp::simulated_gpu<mp::arch::sm_75> exec{.seed = 2, .workspace = &workspace};
    checks::check_layer<layers::float8_current_scaling>(exec);
    checks::check_layer<layers::mxfp8_block_scaling>(exec);
}

TEST_CASE_TEMPLATE("a captured step of a layer rounds its weights anew, and moves its scales", Policy,
                   layers::float8_delayed_scaling, layers::mxfp8_block_scaling) {
    mp::simt::launch_recorder recorder;
    mp::host_workspace workspace;
    checks::check_captured<Policy>(
        mp::simulated_gpu<mp::arch::sm_75>{.workspace = &workspace, .recorder = &recorder});
}

}  // namespace
