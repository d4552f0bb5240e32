// SPDX-License-Identifier: MIT
// What is other code on sm_80 than on sm_90a: arithmetic of bfloat16, conversions, and products without warpgroups. The
// interpreter runs these beside all of tests/device/cuda for sm_90a.
#include "device/cuda/numbers.hpp"
#include "device/cuda/packed2.hpp"

#include <mp/cuda.hpp>

#include <mp/gemm.hpp>
#include <mp/tensor_core.hpp>
#include <mp/tfloat32.hpp>

#include <cstring>

namespace {

TEST_CASE("sm_80: numbers have the host's bits") {
    compare<mp::bfloat16>(make_operands<mp::bfloat16>(1));
    compare<mp::float8_e4m3fn>(make_operands<mp::float8_e4m3fn>(256));
}

TEST_CASE("sm_80: pairs of numbers have the host's bits") {
    packed2_test::compare<mp::bfloat16>();
    packed2_test::compare<mp::float8_e4m3fn>();
}

/// Compares a product of random numbers with the model's, to the bit.
template <class Input, class Output, mp::gpu_gemm_kernel Kernel = mp::gpu_gemm_kernel::automatic>
void check_product(std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t k) {
    std::mt19937 random(1);
    std::normal_distribution<float> draw;
    const auto values = [&](std::ptrdiff_t size) {
        std::vector<Input> made(static_cast<std::size_t>(size));
        for (Input& it : made) it = Input(draw(random));
        return made;
    };
    const std::vector<Input> a = values(rows * k), b = values(k * columns);
    std::vector<Output> expected(static_cast<std::size_t>(rows * columns));
    mp::unique_cuda_stream stream;
    const mp::device_buffer<Input> a_there(stream, a), b_there(stream, b);
    mp::device_buffer<Output> c(stream, expected);
    const mp::emulated<mp::arch::sm_80> model;
    // B lies along k, or across.
    for (const bool along_k : {true, false}) {
        const auto view_of_b = [&](const Input* data) {
            return along_k ? mp::transposed(mp::row_major(data, columns, k))
                           : mp::row_major(data, k, columns);
        };
        mp::gemm<Kernel>(stream.get(), 1.0F, mp::row_major(a_there.data(), rows, k),
                         view_of_b(b_there.data()), 0.0F, mp::row_major(c.data(), rows, columns));
        mp::gemm(model, 1.0F, mp::row_major(a.data(), rows, k), view_of_b(b.data()), 0.0F,
                 mp::row_major(expected.data(), rows, columns));
        const std::vector<Output> found = c.to_host(stream);
        CAPTURE(along_k);
        CHECK(std::memcmp(found.data(), expected.data(), found.size() * sizeof(Output)) == 0);
    }
}

TEST_CASE("sm_80: products have the bits of the model of its tensor cores") {
    check_product<mp::half, float>(150, 272, 104);
    check_product<mp::tfloat32, float, mp::gpu_gemm_kernel::wmma>(33, 72, 100);
}

}  // namespace
