// SPDX-License-Identifier: MIT
#include <mp/device/gpu/gemm_grouped.hpp>

#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/gemm.hpp>
#include <mp/half.hpp>
#include <mp/simt.hpp>
#include <mp/tensor_core.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "device/gpu/watched.hpp"
#include "linalg/gemm/arrays.hpp"

namespace {

using gemm_test::numbers;
using gemm_test::same;
using mp::bfloat16;
using mp::gpu_gemm_kernel;
using mp::half;
using offsets = std::vector<std::int32_t>;

constexpr auto wgmma = gpu_gemm_kernel::wgmma;
constexpr mp::emulated<mp::arch::sm_90> model{};

/// A GPU of few multiprocessors, so that blocks have several tiles; with one it takes clusters for what has more than 128 rows.
auto gpu(unsigned number) {
    return gpu_test::watched(
        mp::simulated_gpu<mp::arch::sm_90>{.seed = number, .multiprocessors = number % 2 == 0 ? 1 : 3});
}

/// Lines of multiples of 16 bytes; what is between them is guarded as what is around.
std::ptrdiff_t line(std::ptrdiff_t length) {
    return (length + 31) / 16 * 16;
}

/// Numbers with guards around them: elements that are NaN, or for a result keep their value.
template <class Value>
struct matrix {
    std::vector<Value> all;
    mp::matrix_view<Value> view;

    matrix(std::ptrdiff_t rows, std::ptrdiff_t columns, mp::storage_order order, unsigned seed)
        : all(static_cast<std::size_t>(line(rows) * line(columns) + 128)) {
        const bool by_rows = order == mp::storage_order::row_major;
        std::fill(all.begin(), all.end(), std::numeric_limits<Value>::quiet_NaN());
        view = {all.data() + 64, rows, columns, line(by_rows ? columns : rows), order};
        std::mt19937 random(seed);
        const auto values = numbers<Value>(rows * columns, random);
        for (std::ptrdiff_t r = 0; r < rows; ++r) {
            for (std::ptrdiff_t c = 0; c < columns; ++c) {
                view(r, c) = values[static_cast<std::size_t>(r * columns + c)];
            }
        }
    }
    matrix(const matrix& other) : all(other.all), view(other.view) { view.data = all.data() + 64; }
    matrix& operator=(const matrix&) = delete;

    [[nodiscard]] std::ptrdiff_t elements() const {
        return view.leading_dimension *
               (view.order == mp::storage_order::row_major ? view.rows : view.columns);
    }
};

constexpr auto row_order = mp::storage_order::row_major;
constexpr auto column_order = mp::storage_order::column_major;

/// `count` matrices below each other, or beside each other.
template <class Value>
matrix<Value> matrices(std::ptrdiff_t count, std::ptrdiff_t rows, std::ptrdiff_t columns,
                       mp::storage_order order, unsigned seed) {
    const bool by_rows = order == row_order;
    return matrix<Value>(by_rows ? count * rows : rows, by_rows ? columns : count * columns, order, seed);
}
template <class Value>
mp::matrix_batch<Value> batch(matrix<Value>& of, std::ptrdiff_t count) {
    const bool by_rows = of.view.order == row_order;
    mp::matrix_view<Value> first = of.view;
    (by_rows ? first.rows : first.columns) /= count;
    return {first, of.elements() / count};
}

template <class Value, class Output, class Epilogue = mp::identity_epilogue>
void check_rows(const offsets& begins, std::ptrdiff_t rows, std::ptrdiff_t in, std::ptrdiff_t out,
                unsigned number, float beta = 0, Epilogue epilogue = {}) {
    const auto count = static_cast<std::ptrdiff_t>(begins.size()) - 1;
    const bool by_rows = number / 2 % 2 == 0 && sizeof(Value) == 2;
    matrix<Value> x(rows, in, row_order, number);
    auto w = matrices<Value>(count, in, out, by_rows ? row_order : column_order, number + 1);
    matrix<Output> y(rows, out, row_order, number + 2), expected = y;
    mp::gemm_grouped_m<wgmma>(gpu(number), 1.5F, x.view, batch(w, count), begins, beta, y.view, epilogue);
    mp::gemm_grouped_m(model, 1.5F, x.view, batch(w, count), begins, beta, expected.view, epilogue);
    CAPTURE(number);
    CHECK(same(y.all, expected.all));
}

TEST_CASE("groups of rows by wgmma: the bits of the model, and nothing else is written") {
    // Nothing, a row, a whole tile, more than one, and what is left; blocks of several tiles, and clusters.
    check_rows<half, float>({0, 0, 1, 129, 270, 300}, 300, 72, 136, 1);
    check_rows<half, float>({3, 3, 203, 380, 380, 560}, 561, 136, 264, 2);
    check_rows<half, half>({5, 300}, 310, 40, 264, 4);
    check_rows<half, half>({0, 256}, 256, 64, 40, 7);
    check_rows<half, float>({9, 9, 9}, 20, 64, 8, 3);
    check_rows<half, float>({0, 70, 300}, 300, 72, 72, 5, 0.5F);
}

TEST_CASE("groups of rows by wgmma: an epilogue, bfloat16, and 8 bits with the sums of wgmma") {
    const std::vector<float> bias(300, 0.25F);
    check_rows<bfloat16, bfloat16>({0, 7, 160, 300}, 300, 88, 72, 5, 0,
                                   mp::bias_per_row(std::span<const float>(bias)));
    check_rows<mp::float8_e4m3fn, float>({2, 40, 200}, 260, 144, 72, 3);
}

TEST_CASE("groups of few rows by wgmma, computed as the transpose of C: the bits of the model") {
    // 16 or 64 rows of a group at a time: nothing, one, a whole tile, more than one.
    for (unsigned number = 0; number < 4; ++number) {
        check_rows<half, float>({0, 0, 1, 18, 34, 40, 41}, 50, 72, 136, number,
                                number % 2 == 0 ? 0.0F : 0.5F);
        check_rows<half, half>({3, 3, 70, 150}, 161, 200, 77, number);
    }
    const std::vector<float> bias(60, 0.25F);
    check_rows<bfloat16, bfloat16>({0, 7, 21, 60}, 60, 88, 72, 5, 0,
                                   mp::bias_per_row(std::span<const float>(bias)));
    check_rows<mp::float8_e4m3fn, float>({2, 9, 40}, 50, 300, 72, 3);
}

TEST_CASE("groups of rows by wgmma where nothing is multiplied") {
    matrix<half> x(20, 8, row_order, 1), w(16, 8, row_order, 2);
    std::vector<float> y(20 * 8, 3.0F);
    const mp::matrix_batch b{w.view.block(0, 0, 8, 8), 8 * w.view.leading_dimension};
    mp::gemm_grouped_m<wgmma>(gpu(1), 0, x.view, b, offsets{1, 3, 15}, 0.5F, mp::row_major(y.data(), 20, 8));
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == (i < 8 || i >= 15 * 8 ? 3.0F : 1.5F));
}

TEST_CASE("masked groups by wgmma: counts that nobody checked") {
    constexpr std::ptrdiff_t rows = 272, in = 40, out = 72, count = 4;
    for (unsigned number = 1; number < 5; ++number) {
        auto x = matrices<half>(count, rows, in, row_order, number);
        auto w = matrices<half>(count, in, out, number % 2 == 0 ? row_order : column_order, number + 9);
        auto y = matrices<half>(count, rows, out, row_order, number + 99), expected = y;
        // The tile is one for all rows, or for the 16 or 64 that are expected.
        const std::ptrdiff_t expected_rows = number == 3 ? 7 : number == 4 ? 40 : 0;
        mp::gemm_masked<wgmma>(gpu(number), 1, batch(x, count), batch(w, count), offsets{130, -3, 1000, 1}, 0,
                               batch(y, count), mp::identity_epilogue{}, expected_rows);
        mp::gemm_masked(model, 1, batch(x, count), batch(w, count), offsets{130, 0, rows, 1}, 0,
                        batch(expected, count));
        CAPTURE(number);
        CHECK(same(y.all, expected.all));
    }
}

/// Tokens of no group are NaN, and those of every second group are infinite.
template <class Output>
void check_k(const offsets& begins, std::ptrdiff_t tokens, std::ptrdiff_t in, std::ptrdiff_t out,
             unsigned number, float beta = 0) {
    const auto count = static_cast<std::ptrdiff_t>(begins.size()) - 1;
    matrix<half> x(tokens, in, row_order, number), dy(tokens, out, row_order, number + 1);
    for (std::ptrdiff_t t = 0; t < tokens; ++t) {
        const auto group = std::upper_bound(begins.begin(), begins.end(), t) - begins.begin() - 1;
        const bool outside = group < 0 || group == count;
        if (!outside && group % 2 == 0) continue;
        const half value =
            outside ? std::numeric_limits<half>::quiet_NaN() : std::numeric_limits<half>::infinity();
        for (std::ptrdiff_t i = 0; i < in; ++i) x.view(t, i) = value;
        for (std::ptrdiff_t i = 0; i < out; ++i) dy.view(t, i) = value;
    }
    auto dw = matrices<Output>(count, in, out, number % 3 == 0 ? column_order : row_order, number + 2);
    auto expected = dw;
    mp::gemm_grouped_k<wgmma>(gpu(number), -1.5F, mp::transposed(x.view), dy.view, begins, beta,
                              batch(dw, count));
    mp::gemm_grouped_k(model, -1.5F, mp::transposed(x.view), dy.view, begins, beta, batch(expected, count));
    CAPTURE(number);
    CHECK(same(dw.all, expected.all));
}

TEST_CASE(
    "groups of k by wgmma: they end anywhere, and what follows is not added, not even if it is infinite") {
    // Ends within a product, within a step, at steps, and nothing between them.
    check_k<float>({3, 8, 72, 200, 200, 216, 217, 281}, 300, 136, 40, 1);
    check_k<float>({0, 1, 64, 80, 300}, 300, 200, 264, 2);
    check_k<half>({1, 2, 70, 390}, 395, 72, 136, 3);
    check_k<half>({0, 50, 90}, 90, 72, 136, 5, 0.5F);
    check_k<half>({7, 7, 7}, 9, 8, 8, 7);
}

/// The kernel for 8 groups with so many rows on average, of a x b.
template <gpu_gemm_kernel Kernel, class Groups, class Value>
std::string kernel_for(mp::matrix_view<const Value> a, mp::matrix_view<const Value> b,
                       std::ptrdiff_t rows = 512) {
    using gpu_type = mp::simulated_gpu<mp::arch::sm_90>;
    static float c[1];
    const auto problem = mp::detail::make_product_problem(1, a, b, 0, mp::row_major(&c[0], a.rows, b.columns),
                                                          mp::identity_epilogue{}, {}, false);
    return mp::detail::plan_groups<Kernel, gpu_type, Groups>(mp::properties_of(gpu_type{}), problem, 8, rows)
        .kernel_name();
}

TEST_CASE("groups are multiplied by wgmma where it takes them and is faster, 8 bits where it is preferred") {
    constexpr auto automatic = gpu_gemm_kernel::automatic;
    using rows = mp::detail::row_groups;
    using along_k = mp::detail::k_groups;
    alignas(16) static half x[8];
    alignas(16) static mp::float8_e4m3fn y[16];
    const half* const at = &x[0];
    const mp::float8_e4m3fn* const bytes = &y[0];
    const auto b = mp::row_major(at, 4096, 4096);
    CHECK(kernel_for<automatic, rows>(mp::row_major(at, 4096, 4096), b) == "wgmma.128x256x64.cluster2");
    CHECK(kernel_for<automatic, rows>(mp::row_major(at, 4096, 4096), mp::row_major(at, 4096, 64)) ==
          "mma.64x64x32");
    CHECK(kernel_for<automatic, rows>(mp::row_major(at, 4096, 4096), b, 9) == "wgmma.16x64x64.swapped");
    CHECK(kernel_for<automatic, rows>(mp::row_major(at, 4096, 4096), b, 50) == "wgmma.64x64x64.swapped");
    CHECK(kernel_for<automatic, rows>(mp::column_major(at, 4096, 4096), b) == "mma.128x256x32");
    CHECK(kernel_for<automatic, rows>(mp::row_major(at + 1, 4096, 4096), b) == "mma.128x256x32");
    CHECK(kernel_for<automatic, along_k>(mp::column_major(at, 4096, 4096), b) == "wgmma.128x256x64.cluster2");
    CHECK(kernel_for<automatic, along_k>(mp::row_major(at, 4096, 4096), b) == "mma.128x256x32");
    CHECK(kernel_for<mp::gpu_gemm_kernel::mma, rows>(mp::row_major(at, 4096, 4096), b) == "mma.128x256x32");
    const auto narrow_a = mp::row_major(bytes, 4096, 4096), narrow_b = mp::column_major(bytes, 4096, 4096);
    CHECK(kernel_for<automatic, rows>(narrow_a, narrow_b) == "mma.128x128x64");
    CHECK(kernel_for<gpu_gemm_kernel::prefer_wgmma, rows>(narrow_a, narrow_b) ==
          "wgmma.128x128x128.cluster2");
    CHECK(kernel_for<gpu_gemm_kernel::prefer_wgmma, along_k>(narrow_a, narrow_b) == "mma.128x128x64");
}

TEST_CASE("groups that wgmma is asked for and does not take") {
    const auto message = [](auto call) -> std::string {
        try {
            call();
        } catch (const mp::argument_error& error) {
            return error.what();
        }
        return "";
    };
    std::vector<half> x(256);
    std::vector<float> y(256);
    const auto rows = [&](auto exec, mp::matrix_view<half> a, mp::matrix_view<half> b) {
        return message([&] {
            mp::gemm_grouped_m<wgmma>(exec, 1, a, mp::matrix_batch{b, 64}, offsets{0, 8}, 0,
                                      mp::row_major(y.data(), 8, 8));
        });
    };
    const mp::matrix_view<half> b = mp::row_major(x.data(), 8, 8);
    CHECK(rows(gpu(1), mp::column_major(x.data(), 8, 8), b) ==
          "mp::gemm_grouped_m: a is 'vectors across k'; it must be row_major, for wgmma of groups of rows");
    CHECK(rows(gpu(1), mp::row_major(x.data() + 1, 8, 8), b)
              .starts_with("mp::gemm_grouped_m: a's alignment is 2; it must be 16 bytes"));
    CHECK(rows(mp::simulated_gpu<mp::arch::sm_80>{}, b, b) ==
          "mp::gemm_grouped_m: Kernel is 'wgmma'; it must be one that a device of capability 80 has for "
          "operands of "
          "this type");
    CHECK(message([&] {
              mp::gemm_masked<wgmma>(gpu(1), 1, mp::matrix_batch{b, 64}, mp::matrix_batch{b, 64}, offsets{8},
                                     0, mp::matrix_batch{mp::row_major(y.data(), 8, 8), 64},
                                     mp::identity_epilogue{}, -1);
          }) == "mp::gemm_masked: expected_rows is -1; it must not be negative");
    CHECK(message([&] {
              mp::gemm_grouped_k<wgmma>(gpu(1), 1, b, b, offsets{0, 8}, 0,
                                        mp::matrix_batch{mp::row_major(y.data(), 8, 8), 64});
          }) ==
          "mp::gemm_grouped_k: a is 'vectors along k'; it must have vectors that run across k, for wgmma of "
          "groups "
          "of k");
}

}  // namespace
