// SPDX-License-Identifier: MIT
#include <mp/cuda.hpp>

#include <mp/bfloat16.hpp>
#include <mp/gemm.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace {

template <class Value>
mp::matrix_view<Value> view_of(Value* values, std::ptrdiff_t rows, std::ptrdiff_t columns, bool by_rows) {
    return by_rows ? mp::row_major(values, rows, columns) : mp::column_major(values, rows, columns);
}

TEST_CASE("gemm of bfloat16 and 8-bit integers: exact sums of small numbers, for all layouts") {
    const mp::unique_cuda_stream stream;
    if (mp::properties_of(stream.get()).capability < 80) return;
    for (unsigned layout = 0; layout < 5; ++layout) {
        const bool large = layout == 4;  // so are its tiles
        const std::ptrdiff_t m = large ? 500 : 70, n = large ? 450 : layout % 2 == 0 ? 64 : 37;
        const std::ptrdiff_t k = large ? 40 : layout % 3 == 0 ? 128 : 93;
        std::mt19937 random(layout);
        std::vector<mp::bfloat16> x(static_cast<std::size_t>(m * k));
        std::vector<std::int8_t> w(static_cast<std::size_t>(k * n));
        for (mp::bfloat16& it : x) it = mp::bfloat16(static_cast<float>(random() % 7) - 3.0F);
        for (std::int8_t& it : w) it = static_cast<std::int8_t>(random());
        std::vector<float> y(static_cast<std::size_t>(m * n), 4.0F);
        const mp::device_buffer<mp::bfloat16> device_x(stream, x);
        const mp::device_buffer<std::int8_t> device_w(stream, w);
        mp::device_buffer<float> device_y(stream, y);
        const bool x_by_rows = layout % 2 == 0, w_by_rows = layout / 2 % 2 == 0;
        mp::gemm(stream.get(), 0.5F, view_of<const mp::bfloat16>(device_x.data(), m, k, x_by_rows),
                 view_of<const std::int8_t>(device_w.data(), k, n, w_by_rows), 1,
                 mp::row_major(device_y.data(), m, n));
        mp::gemm(mp::cpu{}, 0.5F, view_of<const mp::bfloat16>(x.data(), m, k, x_by_rows),
                 view_of<const std::int8_t>(w.data(), k, n, w_by_rows), 1, mp::row_major(y.data(), m, n));
        CAPTURE(layout);
        const std::vector<float> actual = device_y.to_host(stream);
        CHECK(std::memcmp(actual.data(), y.data(), y.size() * sizeof(float)) == 0);
    }
}

}  // namespace
