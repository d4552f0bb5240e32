// SPDX-License-Identifier: MIT
#include <mp/cuda.hpp>

#include <mp/gemm.hpp>
#include <mp/half.hpp>
#include <mp/tensor_core.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

namespace {

template <class Value>
mp::matrix_view<Value> view_of(Value* values, std::ptrdiff_t rows, std::ptrdiff_t columns, bool by_rows) {
    return by_rows ? mp::row_major(values, rows, columns) : mp::column_major(values, rows, columns);
}

TEST_CASE("gemm of 8-bit integers: the results of the CPU and of the model, for all layouts") {
    mp::unique_cuda_stream stream;
    if (mp::properties_of(stream.get()).capability < 80) return;
    for (unsigned number = 0; number < 8; ++number) {
        const std::ptrdiff_t m = 70, n = number % 2 == 0 ? 64 : 37, k = number % 3 == 0 ? 128 : 93;
        std::mt19937 random(number);
        std::vector<std::int8_t> left(static_cast<std::size_t>(m * k)),
            right(static_cast<std::size_t>(k * n));
        for (std::int8_t& it : left) it = static_cast<std::int8_t>(random());
        for (std::int8_t& it : right) it = static_cast<std::int8_t>(random());
        std::vector<std::int32_t> c(static_cast<std::size_t>(m * n), 1000);
        std::vector<float> scales(static_cast<std::size_t>(n));
        for (float& it : scales) it = static_cast<float>(random() % 100) * 0x1.1p-13F;
        std::vector<mp::half> narrow(c.size(), mp::half(1.5F));
        const mp::device_buffer<std::int8_t> device_left(stream, left), device_right(stream, right);
        mp::device_buffer<std::int32_t> device_c(stream, c);
        mp::device_buffer<mp::half> device_narrow(stream, narrow);
        const mp::device_buffer<float> device_scales(stream, scales);
        const bool a_by_rows = number % 2 == 0, b_by_rows = number / 2 % 2 == 0, c_by_rows = number / 4 == 0;

        const auto a = view_of<const std::int8_t>(device_left.data(), m, k, a_by_rows);
        const auto b = view_of<const std::int8_t>(device_right.data(), k, n, b_by_rows);
        mp::gemm(stream.get(), -3, a, b, 2, view_of(device_c.data(), m, n, c_by_rows));
        mp::gemm(stream.get(), 0.1F, a, b, 0.5F, view_of(device_narrow.data(), m, n, c_by_rows),
                 mp::scale_per_column(device_scales.span()));

        const auto host_a = view_of<const std::int8_t>(left.data(), m, k, a_by_rows);
        const auto host_b = view_of<const std::int8_t>(right.data(), k, n, b_by_rows);
        mp::gemm(mp::cpu{}, -3, host_a, host_b, 2, view_of(c.data(), m, n, c_by_rows));
        mp::gemm(mp::emulated<mp::arch::sm_90>{}, 0.1F, host_a, host_b, 0.5F,
                 view_of(narrow.data(), m, n, c_by_rows),
                 mp::scale_per_column(std::span<const float>(scales)));
        CAPTURE(number);
        CHECK(device_c.to_host(stream) == c);
        const std::vector<mp::half> actual = device_narrow.to_host(stream);
        CHECK(std::memcmp(actual.data(), narrow.data(), actual.size() * sizeof(mp::half)) == 0);
    }
}

TEST_CASE("gemm of 8-bit integers by wgmma, where the device has it: large tiles, and few rows") {
    constexpr auto wgmma = mp::gpu_gemm_kernel::wgmma;
    const mp::unique_cuda_stream stream;
    if (!mp::properties_of(stream.get()).has_warpgroups) return;
    constexpr std::ptrdiff_t n = 264, k = 208;
    std::mt19937 random(1);
    std::vector<std::int8_t> right(static_cast<std::size_t>(k * n));
    for (std::int8_t& it : right) it = static_cast<std::int8_t>(random());
    const mp::device_buffer<std::int8_t> device_right(stream, right);
    for (const std::ptrdiff_t m : {std::ptrdiff_t{300}, std::ptrdiff_t{13}}) {
        std::vector<std::int8_t> left(static_cast<std::size_t>(m * k));
        for (std::int8_t& it : left) it = static_cast<std::int8_t>(random());
        const mp::device_buffer<std::int8_t> device_left(stream, left);
        const auto a = mp::row_major(device_left.data(), m, k);
        const auto b = mp::column_major(device_right.data(), k, n);
        CAPTURE(m);
        for (const std::int32_t beta : {0, 2}) {
            std::vector<std::int32_t> c(static_cast<std::size_t>(m * n), 1000);
            mp::device_buffer<std::int32_t> device_c(stream, c);
            mp::gemm<wgmma>(stream.get(), -3, a, b, beta, mp::row_major(device_c.data(), m, n));
            mp::gemm(mp::cpu{}, -3, mp::row_major(left.data(), m, k), mp::column_major(right.data(), k, n),
                     beta, mp::row_major(c.data(), m, n));
            CAPTURE(beta);
            CHECK(device_c.to_host(stream) == c);
        }
    }
}

}  // namespace
