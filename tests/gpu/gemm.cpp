// SPDX-License-Identifier: MIT
#include <mp/gpu/gemm.hpp>

#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/gemm.hpp>
#include <mp/half.hpp>
#include <mp/simt.hpp>
#include <mp/tensor_core.hpp>
#include <mp/tfloat32.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using mp::arch;
using mp::gpu_gemm_kernel;

constexpr mp::storage_order orders[2] = {mp::storage_order::row_major, mp::storage_order::column_major};

/// A matrix that begins `shift` elements behind a multiple of 64 bytes, with `padding` elements between its
/// lines, which are NaN and must stay as they are.
template <class Value>
struct matrix {
    std::vector<Value> values;
    mp::matrix_view<Value> view;

    template <class Draw>
    matrix(std::ptrdiff_t rows, std::ptrdiff_t columns, mp::storage_order order, std::ptrdiff_t shift,
           std::ptrdiff_t padding, Draw draw) {
        const bool row_major = order == mp::storage_order::row_major;
        const std::ptrdiff_t leading = (row_major ? columns : rows) + padding;
        values.resize(static_cast<std::size_t>(shift + leading * (row_major ? rows : columns)) + 64);
        std::memset(static_cast<void*>(values.data()), 0xFF, values.size() * sizeof(Value));
        auto address = reinterpret_cast<std::uintptr_t>(values.data());
        address = (address + 63) / 64 * 64;
        view = {reinterpret_cast<Value*>(address) + shift, rows, columns, leading, order};
        for (std::ptrdiff_t i = 0; i < rows; ++i) {
            for (std::ptrdiff_t j = 0; j < columns; ++j) view(i, j) = Value(draw());
        }
    }
    matrix(const matrix&) = delete;
    matrix& operator=(const matrix&) = delete;
};

struct shape {
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    std::ptrdiff_t depth;
};

struct setting {
    gpu_gemm_kernel kernel = gpu_gemm_kernel::mma;
    mp::storage_order a_order = orders[0];
    mp::storage_order b_order = orders[0];
    mp::storage_order c_order = orders[0];
    std::ptrdiff_t shift = 0;
    std::ptrdiff_t padding = 0;
    float alpha = 1;
    float beta = 0;
    std::uint64_t seed = 0;
};

/// Bytes of everything that a matrix has, its padding included; a NaN is a NaN.
template <class Value>
bool same(const matrix<Value>& a, const matrix<Value>& b) {
    for (std::ptrdiff_t i = 0; i < a.view.rows; ++i) {
        for (std::ptrdiff_t j = 0; j < a.view.columns; ++j) {
            const Value x = a.view(i, j);
            const Value y = b.view(i, j);
            const bool both_nan = std::isnan(static_cast<float>(x)) && std::isnan(static_cast<float>(y));
            if (!both_nan && std::memcmp(&x, &y, sizeof x) != 0) return false;
        }
    }
    return true;
}

/// What the tensor cores of the architecture return, by the model, or ordinary instructions.
template <arch Arch, class A, class B, class C, class Epilogue>
void reference_gemm(gpu_gemm_kernel kernel, float alpha, mp::matrix_view<const A> a,
                    mp::matrix_view<const B> b, float beta, mp::matrix_view<C> c, const Epilogue& epilogue) {
    if (kernel == gpu_gemm_kernel::lanes) {
        mp::gemm(mp::cpu{.products = mp::accumulation::ordered}, alpha, a, b, beta, c, epilogue);
    } else if constexpr (Arch != arch::sm_75 || std::is_same_v<A, mp::half>) {
        constexpr auto unit =
            mp::has_float8_through_half(Arch) ? mp::float8_unit::through_half : mp::float8_unit::native;
        mp::gemm(mp::emulated<Arch>{.float8 = unit}, alpha, a, b, beta, c, epilogue);
    }
}

/// Multiplies on the simulated GPU and by the model, and compares all bits.
template <arch Arch, class A, class B, class C, class Draw, class Epilogue = mp::identity_epilogue>
void check(const shape& size, const setting& with, Draw draw, Epilogue epilogue = {}) {
    const matrix<A> a(size.rows, size.depth, with.a_order, with.shift, with.padding, draw);
    const matrix<B> b(size.depth, size.columns, with.b_order, with.shift, with.padding, draw);
    matrix<C> c(size.rows, size.columns, with.c_order, with.shift, with.padding, [] { return 0.0F; });
    matrix<C> expected(size.rows, size.columns, with.c_order, with.shift, with.padding, [] { return 0.0F; });
    for (std::ptrdiff_t i = 0; i < size.rows; ++i) {
        for (std::ptrdiff_t j = 0; j < size.columns; ++j) expected.view(i, j) = c.view(i, j) = C(draw());
    }
    const mp::simulated_gpu<Arch> gpu{.seed = with.seed};
    const auto plan = mp::plan_gemm<A>(gpu, size.rows, size.columns, size.depth, 1, {.kernel = with.kernel});
    mp::gemm(gpu, plan, with.alpha, mp::matrix_view<const A>(a.view), mp::matrix_view<const B>(b.view),
             with.beta, c.view, epilogue);
    reference_gemm<Arch, A, B>(with.kernel, with.alpha, mp::matrix_view<const A>(a.view),
                               mp::matrix_view<const B>(b.view), with.beta, expected.view, epilogue);
    const std::string name = plan.kernel_name();
    CHECK_MESSAGE(same(c, expected), name, " ", size.rows, " x ", size.columns, " x ", size.depth, ", seed ",
                  with.seed, ", shift ", with.shift, ", padding ", with.padding);
}

class normal_numbers {
public:
    explicit normal_numbers(unsigned seed) : random_(seed) {}
    float operator()() { return distribution_(random_); }

private:
    std::mt19937 random_;
    std::normal_distribution<float> distribution_;
};

/// Every layout of the three matrices, aligned and not.
template <arch Arch, class A, class B, class C>
void check_layouts(gpu_gemm_kernel kernel) {
    unsigned number = 0;
    for (const auto a_order : orders) {
        for (const auto b_order : orders) {
            for (const auto c_order : orders) {
                for (const std::ptrdiff_t shift : {0, 1}) {
                    ++number;
                    check<Arch, A, B, C>({37, 45, 70},
                                         {.kernel = kernel,
                                          .a_order = a_order,
                                          .b_order = b_order,
                                          .c_order = c_order,
                                          .shift = shift,
                                          .padding = shift == 0 ? 0 : 2,
                                          .alpha = 1.5F,
                                          .beta = number % 3 == 0 ? 0.0F : -0.75F,
                                          .seed = number},
                                         normal_numbers(number));
                }
            }
        }
    }
}

TEST_CASE("a product by mma.sync has the bits of the model in every layout, aligned or not") {
    check_layouts<arch::sm_80, mp::half, mp::half, float>(gpu_gemm_kernel::mma);
    check_layouts<arch::sm_90, mp::bfloat16, mp::bfloat16, mp::bfloat16>(gpu_gemm_kernel::mma);
    check_layouts<arch::sm_120, mp::tfloat32, mp::tfloat32, float>(gpu_gemm_kernel::mma);
    check_layouts<arch::sm_89, mp::float8_e4m3fn, mp::float8_e5m2, mp::half>(gpu_gemm_kernel::mma);
    check_layouts<arch::sm_90, mp::float8_e5m2, mp::float8_e4m3fn, float>(gpu_gemm_kernel::mma);
}

TEST_CASE("a product by wmma has the bits of the model, wherever the elements of fragments lie") {
    check_layouts<arch::sm_75, mp::half, mp::half, mp::half>(gpu_gemm_kernel::wmma);
    check_layouts<arch::sm_80, mp::bfloat16, mp::bfloat16, float>(gpu_gemm_kernel::wmma);
    check_layouts<arch::sm_90, mp::tfloat32, mp::tfloat32, float>(gpu_gemm_kernel::wmma);
}

TEST_CASE("a product by ordinary instructions has the bits of the CPU's ordered product") {
    check_layouts<arch::sm_75, mp::bfloat16, mp::bfloat16, float>(gpu_gemm_kernel::lanes);
    check_layouts<arch::sm_75, mp::half, mp::half, float>(gpu_gemm_kernel::lanes);
}

TEST_CASE("products of all sizes around the tiles have the bits of the model") {
    std::mt19937 random(5);
    const auto size = [&](std::ptrdiff_t most) {
        return std::uniform_int_distribution<std::ptrdiff_t>(1, most)(random);
    };
    for (unsigned i = 0; i < 24; ++i) {
        const setting with{.a_order = orders[i % 2],
                           .b_order = orders[i / 2 % 2],
                           .c_order = orders[i / 4 % 2],
                           .shift = size(3) - 1,
                           .padding = size(5) - 1,
                           .seed = i};
        check<arch::sm_80, mp::half, mp::half, float>({size(130), size(130), size(130)}, with,
                                                      normal_numbers(i));
        check<arch::sm_90, mp::bfloat16, mp::bfloat16, mp::half>({size(130), size(130), size(40)}, with,
                                                                 normal_numbers(i));
    }
    for (const shape& edge : {shape{1, 1, 1}, shape{64, 64, 32}, shape{65, 63, 33}, shape{128, 1, 64},
                              shape{1, 200, 31}, shape{130, 130, 5}}) {
        check<arch::sm_80, mp::half, mp::half, float>(edge, {}, normal_numbers(1));
        check<arch::sm_80, mp::half, mp::half, float>(edge, {.kernel = gpu_gemm_kernel::wmma},
                                                      normal_numbers(1));
    }
}

TEST_CASE("large tiles have the bits of the model") {
    // A GPU with one multiprocessor prefers the largest tile that it can fill.
    const mp::simulated_gpu<arch::sm_90> gpu{.seed = 3};
    normal_numbers draw(8);
    for (const auto& tile : {std::pair{128, 256}, std::pair{128, 128}}) {
        const matrix<mp::half> a(130, 100, orders[0], 0, 4, draw);
        const matrix<mp::half> b(100, 270, orders[0], 0, 2, draw);
        matrix<float> c(130, 270, orders[0], 0, 2, draw);
        matrix<float> expected(130, 270, orders[0], 0, 2, draw);
        auto plan = mp::plan_gemm<mp::half>(gpu, 130, 270, 100);
        plan.tile_rows = tile.first;
        plan.tile_columns = tile.second;
        mp::gemm(gpu, plan, 1, a.view, b.view, 0, c.view);
        mp::gemm(mp::emulated<arch::sm_90>{}, 1, a.view, b.view, 0, expected.view);
        CHECK(same(c, expected));
    }
}

TEST_CASE("infinities, NaN, subnormal and huge numbers go through the kernels as through the model") {
    std::mt19937 random(2);
    const auto extreme = [&]() -> float {
        constexpr float infinity = std::numeric_limits<float>::infinity();
        const float choices[] = {0.0F, -0.0F, 1.0F, -1.0F, 65504.0F, -65504.0F, 5.9604645e-8F, 6.1e-5F, 3.0F};
        const auto kind = random() % 400;
        if (kind == 0) return infinity;
        if (kind == 1) return -infinity;
        if (kind == 2) return std::numeric_limits<float>::quiet_NaN();
        return choices[random() % 9];
    };
    for (const auto kernel : {gpu_gemm_kernel::mma, gpu_gemm_kernel::wmma}) {
        check<arch::sm_90, mp::half, mp::half, float>({40, 50, 60}, {.kernel = kernel, .beta = 1}, extreme);
        check<arch::sm_80, mp::bfloat16, mp::bfloat16, mp::half>({40, 50, 60}, {.kernel = kernel}, extreme);
    }
    check<arch::sm_89, mp::float8_e5m2, mp::float8_e5m2, float>({40, 50, 300}, {}, extreme);
}

TEST_CASE("sums of 8 bits on sm_89 are promoted every 128 products") {
    normal_numbers draw(3);
    check<arch::sm_89, mp::float8_e4m3fn, mp::float8_e4m3fn, float>({20, 30, 1000}, {}, draw);
    check<arch::sm_89, mp::float8_e4m3fn, mp::float8_e4m3fn, float>({70, 150, 257}, {}, draw);
}

TEST_CASE("an epilogue gets every element with its place, whatever the order of C") {
    std::vector<float> bias(45);
    for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i) - 20;
    for (const auto c_order : orders) {
        check<arch::sm_80, mp::half, mp::half, mp::half>(
            {37, 45, 70}, {.c_order = c_order}, normal_numbers(4),
            mp::then(mp::bias_per_column(bias), mp::relu_epilogue{}));
    }
}

TEST_CASE("with beta zero C is not read, with alpha zero the factors are not") {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const std::vector<mp::half> ones(64, mp::half(1));
    const std::vector<mp::half> nans(64, mp::half(nan));
    const mp::simulated_gpu<arch::sm_80> gpu{};
    std::vector<float> c(64, nan);
    mp::gemm(gpu, 1, mp::row_major(ones.data(), 8, 8), mp::row_major(ones.data(), 8, 8), 0,
             mp::row_major(c.data(), 8, 8));
    CHECK(c == std::vector<float>(64, 8.0F));
    mp::gemm(gpu, 0, mp::row_major(nans.data(), 8, 8), mp::row_major(nans.data(), 8, 8), 2,
             mp::row_major(c.data(), 8, 8));
    CHECK(c == std::vector<float>(64, 16.0F));
    mp::gemm(gpu, 1, mp::row_major(nans.data(), 8, 0), mp::row_major(nans.data(), 0, 8), 0.5F,
             mp::row_major(c.data(), 8, 8));
    CHECK(c == std::vector<float>(64, 8.0F));
}

TEST_CASE("a product whose depth is split has the bits of its pieces, added in order") {
    constexpr std::ptrdiff_t rows = 40;
    constexpr std::ptrdiff_t columns = 35;
    constexpr std::ptrdiff_t depth = 333;
    normal_numbers draw(6);
    const matrix<mp::half> a(rows, depth, orders[0], 0, 3, draw);
    const matrix<mp::half> b(depth, columns, orders[1], 0, 3, draw);
    for (const int splits : {2, 3, 5}) {
        const mp::simulated_gpu<arch::sm_90> gpu{.seed = static_cast<std::uint64_t>(splits)};
        const auto plan = mp::plan_gemm<mp::half>(gpu, rows, columns, depth, 1, {.splits = splits});
        REQUIRE(plan.splits == splits);
        std::vector<float> workspace(plan.workspace_size());
        matrix<mp::half> c(rows, columns, orders[1], 0, 1, draw);
        mp::gemm(gpu, plan, 2, a.view, b.view, 0, c.view, mp::relu_epilogue{}, std::span(workspace));
        // 11 steps of 32, divided so that the last piece gets what is left.
        const std::ptrdiff_t share = (11 + splits - 1) / splits * 32;
        std::vector<float> total(rows * columns);
        std::vector<float> piece(rows * columns);
        for (std::ptrdiff_t begin = 0; begin < depth; begin += share) {
            const std::ptrdiff_t length = std::min(share, depth - begin);
            mp::gemm(mp::emulated<arch::sm_90>{}, 1, a.view.block(0, begin, rows, length),
                     b.view.block(begin, 0, length, columns), 0, mp::row_major(piece.data(), rows, columns));
            for (std::size_t i = 0; i < total.size(); ++i) {
                total[i] = begin == 0 ? piece[i] : total[i] + piece[i];
            }
        }
        bool equal = true;
        for (std::ptrdiff_t i = 0; i < rows; ++i) {
            for (std::ptrdiff_t j = 0; j < columns; ++j) {
                const float value = 2 * total[static_cast<std::size_t>(i * columns + j)];
                equal = equal && c.view(i, j) == mp::half(value > 0 ? value : 0);
            }
        }
        CHECK_MESSAGE(equal, splits, " pieces");
    }
}

TEST_CASE("a batch has the bits of its products, one by one") {
    constexpr std::ptrdiff_t rows = 20;
    constexpr std::ptrdiff_t columns = 36;
    constexpr std::ptrdiff_t depth = 50;
    constexpr std::ptrdiff_t count = 3;
    normal_numbers draw(9);
    std::vector<mp::half> a(rows * depth * count);
    std::vector<mp::half> b(depth * columns);  // the same one each time
    for (mp::half& x : a) x = mp::half(draw());
    for (mp::half& x : b) x = mp::half(draw());
    const mp::simulated_gpu<arch::sm_80> gpu{.seed = 1};
    for (const int splits : {1, 2}) {
        std::vector<float> c(rows * columns * count, 1.0F);
        std::vector<float> expected = c;
        const auto plan = mp::plan_gemm<mp::half>(gpu, rows, columns, depth, count, {.splits = splits});
        std::vector<float> workspace(plan.workspace_size());
        mp::gemm_batched(gpu, plan, 1, mp::matrix_batch{mp::row_major(a.data(), rows, depth), rows * depth},
                         mp::matrix_batch{mp::row_major(b.data(), depth, columns), 0}, 1,
                         mp::matrix_batch{mp::row_major(c.data(), rows, columns), rows * columns},
                         mp::identity_epilogue{}, std::span(workspace));
        const auto one = mp::plan_gemm<mp::half>(gpu, rows, columns, depth, 1, {.splits = splits});
        for (std::ptrdiff_t i = 0; i < count; ++i) {
            mp::gemm(gpu, one, 1, mp::row_major(a.data() + i * rows * depth, rows, depth),
                     mp::row_major(b.data(), depth, columns), 1,
                     mp::row_major(expected.data() + i * rows * columns, rows, columns),
                     mp::identity_epilogue{}, std::span(workspace));
        }
        CHECK(c == expected);
    }
}

}  // namespace
