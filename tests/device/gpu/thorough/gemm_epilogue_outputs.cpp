// SPDX-License-Identifier: MIT
// Second outputs of products on the simulated GPU: the bits of the model's, which the CPU ends.
#include "device/gpu/gemm_cases.hpp"

#include <mp/device/gpu/gemm_grouped.hpp>
#include <mp/device/gpu/gemm_integer.hpp>

#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace {

using gpu_gemm_test::matrix;
using gpu_gemm_test::normal_numbers;
using gpu_gemm_test::orders;
using gpu_gemm_test::reference_gemm;
using gpu_gemm_test::same;
using gpu_gemm_test::setting;
using gpu_gemm_test::shape;
using gpu_gemm_test::take_clusters;
using mp::arch;
using mp::gpu_gemm_kernel;

/// A layer into a C of 8 bits or others, whose value before the activation is kept in `order`.
template <gpu_gemm_kernel Kernel, arch Arch, class A, class C, class Auxiliary>
void check(const shape& size, const setting& with, mp::storage_order order, int splits = 1) {
    normal_numbers draw(static_cast<unsigned>(with.seed));
    const matrix<A> a(size.rows, size.k, with.a_order, with.shift, with.padding, draw);
    const matrix<A> b(size.k, size.columns, with.b_order, with.shift, with.padding, draw);
    matrix<C> c(size.rows, size.columns, with.c_order, with.shift, with.padding, [] { return 0.0F; });
    matrix<C> expected(size.rows, size.columns, with.c_order, with.shift, with.padding, [] { return 0.0F; });
    for (std::ptrdiff_t i = 0; i < size.rows; ++i) {
        for (std::ptrdiff_t j = 0; j < size.columns; ++j) expected.view(i, j) = c.view(i, j) = C(draw());
    }
    matrix<Auxiliary> before(size.rows, size.columns, order, with.shift, with.padding, [] { return 9.0F; });
    matrix<Auxiliary> expected_before(size.rows, size.columns, order, with.shift, with.padding,
                                      [] { return 8.0F; });
    std::vector<float> bias(static_cast<std::size_t>(size.columns));
    for (float& x : bias) x = draw();
    const float scale = 7.5F;
    const auto layer = [&](mp::matrix_view<Auxiliary> to, float* amax) {
        return mp::compose(mp::compose(mp::bias_per_column(bias), mp::store_auxiliary(to)),
                           mp::compose(mp::compose(mp::gelu_epilogue{}, mp::amax_into(amax)),
                                       mp::quantize_to<mp::float8_e4m3fn>(&scale)));
    };
    const mp::simulated_gpu<Arch> gpu = gpu_test::watched(mp::simulated_gpu<Arch>{.seed = with.seed});
    auto plan = mp::plan_gemm<A, Kernel>(gpu, size.rows, size.columns, size.k, 1, {.splits = splits});
    if (with.multiprocessors != 0) plan.gpu.multiprocessors = with.multiprocessors;
    if (with.cluster_blocks != 0) take_clusters<A>(plan, with.cluster_blocks);
    std::vector<float> workspace(plan.workspace_size());
    float amax = 0;
    float expected_amax = 0;
    mp::gemm<Kernel>(gpu, plan, with.alpha, mp::matrix_view<const A>(a.view),
                     mp::matrix_view<const A>(b.view), with.beta, c.view, layer(before.view, &amax),
                     workspace);
    CAPTURE(plan.kernel_name());
    CAPTURE(with.seed);
    if (splits == 1) {
        reference_gemm<Kernel, Arch, A, A>(with.alpha, mp::matrix_view<const A>(a.view),
                                           mp::matrix_view<const A>(b.view), with.beta, expected.view,
                                           layer(expected_before.view, &expected_amax));
        CHECK(same(before, expected_before));
        CHECK(same(c, expected));
        CHECK(amax == expected_amax);
    } else {
        // With other sums: the outputs agree with each other.
        float largest = 0;
        bool agree = true;
        for (std::ptrdiff_t i = 0; i < size.rows; ++i) {
            for (std::ptrdiff_t j = 0; j < size.columns; ++j) {
                const float active = mp::gelu_epilogue{}(static_cast<float>(before.view(i, j)), 0, 0);
                largest = std::max(largest, std::fabs(active));
                const C rounded(mp::quantize_to<mp::float8_e4m3fn>(scale)(active, 0, 0));
                agree = agree && std::memcmp(&rounded, &c.view(i, j), sizeof rounded) == 0;
            }
        }
        CHECK(agree);
        CHECK(amax == largest);
    }
}

TEST_CASE("second outputs by mma.sync have the bits of the model, in every order, aligned or not") {
    std::uint64_t seed = 0;
    for (const auto c_order : orders) {
        for (const auto order : orders) {
            for (const std::ptrdiff_t padding : {std::ptrdiff_t{2}, gpu_gemm_test::aligned_lines}) {
                ++seed;
                const setting with{.a_order = orders[seed % 2],
                                   .b_order = orders[seed / 2 % 2],
                                   .c_order = c_order,
                                   .shift = padding == 2 ? 1 : 0,
                                   .padding = padding,
                                   .alpha = 1.5F,
                                   .beta = seed % 3 == 0 ? 0.0F : -0.75F,
                                   .seed = seed};
                const shape size{seed % 2 == 0 ? 64 : 37, seed % 2 == 0 ? 48 : 45, 70};
                check<gpu_gemm_kernel::mma, arch::sm_80, mp::half, mp::float8_e4m3fn, mp::half>(size, with,
                                                                                                order);
                check<gpu_gemm_kernel::mma, arch::sm_80, mp::half, mp::half, float>(size, with, order);
            }
        }
    }
    check<gpu_gemm_kernel::mma, arch::sm_80, mp::half, mp::half, float>({37, 45, 0}, {.beta = 1, .seed = 1},
                                                                        orders[0]);
    for (const int splits : {2, 3}) {
        check<gpu_gemm_kernel::mma, arch::sm_80, mp::half, mp::half, float>({37, 45, 300}, {.seed = 2},
                                                                            orders[0], splits);
    }
}

TEST_CASE("second outputs by wgmma have the bits of the model") {
    std::uint64_t seed = 0;
    for (const auto c_order : orders) {
        for (const auto order : orders) {
            ++seed;
            // A few multiprocessors, so that blocks end several tiles.
            check<gpu_gemm_kernel::wgmma, arch::sm_90, mp::bfloat16, mp::float8_e4m3fn, mp::bfloat16>(
                {132, 276, 140},
                {.c_order = c_order,
                 .padding = 4,
                 .beta = seed % 2 == 0 ? 0.0F : 0.5F,
                 .seed = seed,
                 .multiprocessors = 2,
                 .cluster_blocks = seed % 3 == 0 ? 1 : 2},
                order);
        }
    }
    check<gpu_gemm_kernel::wgmma, arch::sm_90, mp::bfloat16, mp::float8_e4m3fn, float>(
        {256, 256, 128}, {.seed = 9, .cluster_blocks = 1}, orders[0]);
    // Few rows, whose tiles are transposed.
    for (const std::ptrdiff_t rows : {7, 36}) {
        check<gpu_gemm_kernel::wgmma, arch::sm_90, mp::bfloat16, mp::float8_e4m3fn, mp::bfloat16>(
            {rows, 140, 140}, {.padding = 4, .beta = 0.5F, .seed = ++seed}, orders[rows % 2]);
    }
}

TEST_CASE("second outputs of groups of rows and of integers have the bits of the model") {
    const mp::simulated_gpu<arch::sm_80> gpu = gpu_test::watched(mp::simulated_gpu<arch::sm_80>{.seed = 1});
    const mp::emulated<arch::sm_80> model{};
    std::mt19937 random(4);
    const auto compare = [](const auto& multiply, auto on, auto by) {
        std::vector<float> c(81 * 21, 3.0F), kept(81 * 21, 4.0F), expected = c, expected_kept = kept;
        float amax = 0;
        float expected_amax = 0;
        const auto outputs = [](std::vector<float>& to, float* largest) {
            return mp::compose(mp::store_auxiliary(mp::row_major(to.data(), 81, 21)),
                               mp::compose(mp::amax_into(largest), mp::relu_epilogue{}));
        };
        multiply(on, mp::row_major(c.data(), 81, 21), outputs(kept, &amax));
        multiply(by, mp::row_major(expected.data(), 81, 21), outputs(expected_kept, &expected_amax));
        CHECK(c == expected);
        CHECK(kept == expected_kept);
        CHECK(amax == expected_amax);
        CHECK(amax > 0);
    };
    normal_numbers draw(3);
    std::vector<mp::half> x(81 * 33), w(4 * 33 * 21);
    for (mp::half& it : x) it = mp::half(draw());
    for (mp::half& it : w) it = mp::half(draw());
    const std::vector<std::int32_t> offsets = {3, 3, 40, 77, 77};
    compare(
        [&](auto exec, auto c, const auto& epilogue) {
            mp::gemm_grouped_m(exec, 1.5F, mp::row_major(x.data(), 81, 33),
                               mp::matrix_batch{mp::row_major(w.data(), 33, 21), 33 * 21}, offsets, 0.5F, c,
                               epilogue);
        },
        gpu, model);
    std::vector<std::int8_t> left(81 * 50), right(50 * 21);
    for (std::int8_t& it : left) it = static_cast<std::int8_t>(random());
    for (std::int8_t& it : right) it = static_cast<std::int8_t>(random());
    compare(
        [&](auto exec, auto c, const auto& epilogue) {
            mp::gemm(exec, 0.5F, mp::row_major(left.data(), 81, 50), mp::row_major(right.data(), 50, 21),
                     0.0F, c, epilogue);
        },
        gpu, model);
}

TEST_CASE("what lies outside of C is no magnitude") {
    const std::vector<mp::half> ones(25, mp::half(1));
    std::vector<mp::half> c(25);
    float amax = 0;
    constexpr float infinity = std::numeric_limits<float>::infinity();
    mp::gemm<gpu_gemm_kernel::mma>(mp::simulated_gpu<arch::sm_80>{}, infinity,
                                   mp::row_major(ones.data(), 5, 5), mp::row_major(ones.data(), 5, 5), 0,
                                   mp::row_major(c.data(), 5, 5), mp::amax_into(&amax));
    CHECK(amax == infinity);  // infinity times the zeros around C is NaN
}

/// A gradient through an activation, of which z is in `order`.
template <gpu_gemm_kernel Kernel, arch Arch, class A, class Z>
void check_gradient(const shape& size, const setting& with, mp::storage_order order, const auto& epilogue) {
    normal_numbers draw(static_cast<unsigned>(with.seed));
    const matrix<A> a(size.rows, size.k, with.a_order, with.shift, with.padding, draw);
    const matrix<A> b(size.k, size.columns, with.b_order, with.shift, with.padding, draw);
    const matrix<Z> z(size.rows, size.columns, order, with.shift, with.padding, draw);
    matrix<A> c(size.rows, size.columns, with.c_order, with.shift, with.padding, [] { return 0.0F; });
    matrix<A> expected(size.rows, size.columns, with.c_order, with.shift, with.padding, [] { return 0.0F; });
    mp::gemm<Kernel>(gpu_test::watched(mp::simulated_gpu<Arch>{.seed = with.seed}), 1.0F,
                     mp::matrix_view<const A>(a.view), mp::matrix_view<const A>(b.view), 0.0F, c.view,
                     epilogue(z.view));
    reference_gemm<Kernel, Arch, A, A>(1.0F, mp::matrix_view<const A>(a.view),
                                       mp::matrix_view<const A>(b.view), 0.0F, expected.view,
                                       epilogue(z.view));
    CAPTURE(with.seed);
    CHECK(same(c, expected));
}

TEST_CASE("gradients through activations have the bits of the model, in every order, aligned or not") {
    std::uint64_t seed = 0;
    for (const auto c_order : orders) {
        for (const auto order : orders) {
            const bool aligned = ++seed % 2 == 0;
            check_gradient<gpu_gemm_kernel::mma, arch::sm_80, mp::half, mp::half>(
                {aligned ? 64 : 37, aligned ? 48 : 45, 70},
                {.a_order = orders[seed % 2],
                 .c_order = c_order,
                 .shift = aligned ? 0 : 1,
                 .padding = aligned ? gpu_gemm_test::aligned_lines : 2,
                 .seed = seed},
                order, [](auto z) { return mp::dgelu(z); });
            check_gradient<gpu_gemm_kernel::wgmma, arch::sm_90, mp::bfloat16, mp::bfloat16>(
                {132, 140, 76}, {.c_order = c_order, .padding = 4, .seed = seed}, order,
                [](auto z) { return mp::dsilu(z); });
        }
    }
    check_gradient<gpu_gemm_kernel::simt, arch::sm_80, float, float>(
        {37, 45, 70}, {.seed = 1}, orders[0],
        [](auto z) { return mp::compose(mp::dgelu_tanh(z), mp::drelu(z)); });
}

TEST_CASE("by ordinary instructions, too") {
    check<gpu_gemm_kernel::simt, arch::sm_80, float, float, mp::bfloat16>(
        {37, 45, 70}, {.padding = 2, .seed = 1}, orders[1]);
}

}  // namespace
