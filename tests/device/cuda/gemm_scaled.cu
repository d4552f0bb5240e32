// SPDX-License-Identifier: MIT
#include <mp/cuda.hpp>

#include <mp/base/bits.hpp>
#include <mp/bfloat16.hpp>
#include <mp/device/gpu/gemm_scaled.hpp>
#include <mp/float8.hpp>
#include <mp/linalg/tensor_core/gemm.hpp>
#include <mp/tensor_core.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace {

using input = mp::float8_e4m3fn;
using output = mp::bfloat16;
using mp::gpu_gemm_kernel;

std::vector<float> draw_scales(std::ptrdiff_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<float> scales(static_cast<std::size_t>(count));
    for (float& scale : scales) {
        scale = std::ldexp(std::uniform_real_distribution<float>(1, 2)(random),
                           std::uniform_int_distribution<int>(-6, 2)(random));
    }
    return scales;
}
std::vector<input> draw_operand(std::ptrdiff_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<input> operand(static_cast<std::size_t>(count));
    for (input& value : operand) value = input(std::normal_distribution<float>()(random));
    return operand;
}

struct problem {
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    std::ptrdiff_t k;
    std::ptrdiff_t a_vectors_per_scale;
    std::ptrdiff_t b_vectors_per_scale;
};

std::ptrdiff_t groups(std::ptrdiff_t size, std::ptrdiff_t of) {
    return (size + of - 1) / of;
}

/// Multiplies on the device and by the model of the architecture that the kernels were compiled for, and
/// compares all bits.
template <gpu_gemm_kernel Kernel>
void check(const problem& p) {
    mp::unique_cuda_stream stream;
    const std::ptrdiff_t blocks = groups(p.k, 128);
    const std::vector<input> a = draw_operand(p.rows * p.k, 1);
    const std::vector<input> b = draw_operand(p.columns * p.k, 2);
    const std::vector<float> a_scales = draw_scales(groups(p.rows, p.a_vectors_per_scale) * blocks, 3);
    const std::vector<float> b_scales = draw_scales(groups(p.columns, p.b_vectors_per_scale) * blocks, 4);
    std::vector<output> expected(static_cast<std::size_t>(p.rows * p.columns));
    const mp::device_buffer<input> device_a(stream, a);
    const mp::device_buffer<input> device_b(stream, b);
    const mp::device_buffer<float> device_a_scales(stream, a_scales);
    const mp::device_buffer<float> device_b_scales(stream, b_scales);
    const mp::device_buffer<output> device_c(stream, expected);
    const auto multiply = [&](const auto& run, const input* x, const float* x_scales, const input* w,
                              const float* w_scales, output* c) {
        run(mp::row_major(x, p.rows, p.k),
            mp::k_block_scales{mp::row_major(x_scales, groups(p.rows, p.a_vectors_per_scale), blocks),
                               p.a_vectors_per_scale},
            mp::column_major(w, p.k, p.columns),
            mp::k_block_scales{mp::column_major(w_scales, blocks, groups(p.columns, p.b_vectors_per_scale)),
                               p.b_vectors_per_scale},
            mp::row_major(c, p.rows, p.columns));
    };
    std::string name;
    multiply(
        [&](auto x, auto x_scales, auto w, auto w_scales, auto c) {
            const auto plan = mp::plan_gemm<Kernel>(stream.get(), x, w);
            name = plan.kernel_name();
            mp::gemm_scaled<Kernel>(stream.get(), plan, 1.5F, x, x_scales, w, w_scales, 0, c);
        },
        device_a.data(), device_a_scales.data(), device_b.data(), device_b_scales.data(),
        const_cast<output*>(device_c.data()));
    const int capability = mp::properties_of(stream.get()).capability;
    multiply(
        [&](auto x, auto x_scales, auto w, auto w_scales, auto c) {
            const auto by = [&](auto exec) {
                exec.threads = 8;
                mp::gemm_scaled(exec, 1.5F, x, x_scales, w, w_scales, 0, c);
            };
            constexpr auto through_half = mp::float8_unit::through_half;
            if (capability >= 120) return by(mp::emulated<mp::arch::sm_120>{});
            if (capability >= 100) return by(mp::emulated<mp::arch::sm_100>{.float8 = through_half});
            if (capability >= 90 && name.find("wgmma") == 0) return by(mp::emulated<mp::arch::sm_90>{});
            if (capability >= 90) return by(mp::emulated<mp::arch::sm_90>{.float8 = through_half});
            if (capability >= 89) return by(mp::emulated<mp::arch::sm_89>{});
            by(mp::cpu{.products = mp::accumulation::ordered});
        },
        a.data(), a_scales.data(), b.data(), b_scales.data(), expected.data());
    const std::vector<output> actual = device_c.to_host(stream);
    CAPTURE(name);
    CAPTURE(p.rows);
    CAPTURE(p.columns);
    CAPTURE(p.k);
    CHECK(std::memcmp(actual.data(), expected.data(), actual.size() * sizeof(output)) == 0);
}

TEST_CASE("gemm_scaled: the bits are those of the model of the device's tensor cores") {
    for (const problem& p : {problem{64, 64, 128, 1, 128}, problem{300, 270, 1000, 1, 128},
                             problem{1100, 1300, 129, 1, 1}, problem{1, 77, 4099, 128, 1}}) {
        check<gpu_gemm_kernel::automatic>(p);
    }
}

TEST_CASE("gemm_scaled: so are those of wgmma, where the device has it") {
    // Lines at multiples of 16 bytes.
    for (const problem& p : {problem{64, 64, 128, 1, 128}, problem{300, 272, 1008, 1, 128},
                             problem{1100, 1296, 144, 1, 1}, problem{8192, 4096, 512, 128, 1}}) {
        check<gpu_gemm_kernel::prefer_wgmma>(p);
    }
}

TEST_CASE("gemm: batches and slices of k by wgmma have the bits of mma.sync") {
    mp::unique_cuda_stream stream;
    if (!mp::properties_of(stream.get()).has_warpgroups) return;
    constexpr std::ptrdiff_t size = 264;
    constexpr std::ptrdiff_t k = 320;
    constexpr std::ptrdiff_t count = 3;
    std::mt19937 random(5);
    const auto draw = [&](std::ptrdiff_t elements) {
        std::vector<mp::bfloat16> values(static_cast<std::size_t>(elements));
        for (auto& value : values) value = mp::bfloat16(std::normal_distribution<float>()(random));
        return mp::device_buffer<mp::bfloat16>(stream, values);
    };
    const auto a = draw(count * size * k);
    const auto b = draw(k * size);
    const auto product = [&]<gpu_gemm_kernel Kernel>(std::ptrdiff_t rows, int splits) {
        const std::vector<float> zeros(static_cast<std::size_t>(count * rows * size));
        const mp::matrix_batch left{mp::row_major(a.data(), rows, k), rows * k};
        const mp::matrix_batch right{mp::row_major(b.data(), k, size), 0};
        const auto plan = mp::plan_gemm<Kernel>(stream.get(), count, left, right, {.splits = splits});
        mp::device_buffer<float> c(stream, zeros);
        mp::device_buffer<float> workspace(plan.workspace_size() + 1);
        mp::gemm_batched<Kernel>(stream.get(), plan, 1, left, right, 0,
                                 mp::matrix_batch{mp::row_major(c.data(), rows, size), rows * size},
                                 mp::identity_epilogue{}, workspace.span());
        return c.to_host(stream);
    };
    // Five steps of wgmma are ten of mma.sync: in five slices, or in one, both divide them alike.
    for (const std::ptrdiff_t rows : {size, std::ptrdiff_t{17}}) {
        for (const int splits : {1, 5}) {
            CHECK(product.template operator()<gpu_gemm_kernel::wgmma>(rows, splits) ==
                  product.template operator()<gpu_gemm_kernel::mma>(rows, splits));
        }
    }
}

/// Makes some elements a NaN that is not the one of operations.
struct marking_epilogue {
    MP_HOST_DEVICE float operator()(float value, std::ptrdiff_t row, std::ptrdiff_t column) const {
        return row % 5 == column % 7 ? mp::detail::bit_cast<float>(0xFFC12345U) : value;
    }
};

TEST_CASE("gemm: other ends of products by wgmma have the bits of the model") {
    mp::unique_cuda_stream stream;
    if (!mp::properties_of(stream.get()).has_warpgroups) return;
    constexpr std::ptrdiff_t most_rows = 200;
    constexpr std::ptrdiff_t columns = 264;
    constexpr std::ptrdiff_t k = 72;
    std::mt19937 random(6);
    const auto draw = [&](std::ptrdiff_t elements) {
        std::vector<mp::bfloat16> values(static_cast<std::size_t>(elements));
        for (auto& value : values) value = mp::bfloat16(std::normal_distribution<float>()(random));
        return values;
    };
    const auto a = draw(most_rows * k);
    const auto b = draw(k * columns);
    const mp::device_buffer<mp::bfloat16> a_there(stream, a);
    const mp::device_buffer<mp::bfloat16> b_there(stream, b);
    for (const std::ptrdiff_t rows : {most_rows, std::ptrdiff_t{40}}) {
        const auto c = draw(rows * columns);
        for (const float beta : {0.0F, 1.0F, 0.5F}) {
            mp::device_buffer<mp::bfloat16> actual(stream, c);
            mp::gemm<gpu_gemm_kernel::wgmma>(stream.get(), 1, mp::row_major(a_there.data(), rows, k),
                                             mp::row_major(b_there.data(), k, columns), beta,
                                             mp::row_major(actual.data(), rows, columns), marking_epilogue{});
            std::vector<mp::bfloat16> expected = c;
            mp::gemm(mp::emulated<mp::arch::sm_90>{}, 1, mp::row_major(a.data(), rows, k),
                     mp::row_major(b.data(), k, columns), beta, mp::row_major(expected.data(), rows, columns),
                     marking_epilogue{});
            const std::vector<mp::bfloat16> got = actual.to_host(stream);
            CHECK(std::memcmp(got.data(), expected.data(), got.size() * sizeof(got[0])) == 0);
        }
    }
}

}  // namespace
