// SPDX-License-Identifier: MIT
// Matrix products in the order that has the same bits everywhere, with epilogues, and those of the model of
// tensor cores.
#include <mp/block_scaled.hpp>
#include <mp/convert.hpp>
#include <mp/gemm.hpp>
#include <mp/tensor_core.hpp>

#include "formats.hpp"

namespace portability {

namespace {

constexpr std::ptrdiff_t rows = 21;
constexpr std::ptrdiff_t columns = 27;
constexpr std::ptrdiff_t k = 300;
const mp::cpu exec{1, mp::instruction_set::portable, mp::accumulation::ordered};

template <class T>
std::vector<T> matrix(std::ptrdiff_t r, std::ptrdiff_t c, std::uint64_t seed) {
    std::vector<T> result(static_cast<std::size_t>(r * c));
    mp::convert(exec, plain_floats(result.size(), seed, 120, 10), result);
    return result;
}

template <class A, class B, class C>
void add_products(report& to, const std::string& name) {
    const auto a = matrix<A>(rows, k, 51);
    const auto b = matrix<B>(k, columns, 52);
    const auto before = matrix<C>(rows, columns, 53);
    const std::vector<float> bias = plain_floats(static_cast<std::size_t>(columns), 54);
    const auto view_a = mp::row_major(a.data(), rows, k);
    const auto view_b = mp::row_major(b.data(), k, columns);
    const auto add = [&](const char* epilogue, auto e) {
        std::vector<C> c = before;
        mp::gemm(exec, 0.75F, view_a, view_b, 0.5F, mp::row_major(c.data(), rows, columns), e);
        checksum sum;
        sum.add(c);
        // The same factors transposed, and a single row.
        mp::gemm(exec, 1.0F, mp::transposed(view_b), mp::transposed(view_a), 0.0F,
                 mp::column_major(c.data(), columns, rows));
        sum.add(c);
        mp::gemm(exec, 1.0F, view_a.block(2, 0, 1, k), view_b, 0.0F, mp::row_major(c.data(), 1, columns));
        sum.add(c);
        to.add(name + ".gemm_" + epilogue, sum);
    };
    add("plain", mp::identity_epilogue{});
    add("relu", mp::relu_epilogue{});
    add("gelu", mp::gelu_epilogue{});
    add("gelu_tanh", mp::gelu_tanh_epilogue{});
    add("silu", mp::silu_epilogue{});
    add("bias_silu", mp::compose(mp::bias_per_column(bias), mp::silu_epilogue{}));

    auto codes = matrix<mp::float8_e4m3fn>(rows, columns, 55);
    auto kept = matrix<mp::bfloat16>(rows, columns, 56);
    std::vector<float> amax(1);
    mp::gemm(exec, 0.75F, view_a, view_b, 0.5F, mp::row_major(codes.data(), rows, columns),
             mp::compose(mp::compose(mp::bias_per_column(bias),
                                     mp::store_auxiliary(mp::column_major(kept.data(), rows, columns))),
                         mp::compose(mp::amax_into(amax.data()), mp::quantize_to<mp::float8_e4m3fn>(1.7F))));
    checksum sum;
    sum.add(codes);
    sum.add(kept);
    sum.add(amax);
    to.add(name + ".gemm_outputs", sum);
}

template <class T>
void add_batched(report& to, const std::string& name) {
    constexpr std::ptrdiff_t count = 3;
    const auto a = matrix<T>(count * rows, k, 55);
    const auto b = matrix<T>(k, columns, 56);
    auto c = matrix<T>(count * rows, columns, 57);
    mp::gemm_batched(exec, count, 0.75F, mp::matrix_batch{mp::row_major(a.data(), rows, k), rows * k},
                     mp::matrix_batch{mp::row_major(b.data(), k, columns)}, 0.5F,
                     mp::matrix_batch{mp::row_major(c.data(), rows, columns), rows * columns});
    checksum sum;
    sum.add(c);
    to.add(name + ".gemm_batched", sum);
}

template <mp::arch Arch, class A, class C>
void add_emulated(report& to, const std::string& name) {
    const auto a = matrix<A>(rows, k, 61);
    const auto b = matrix<A>(k, columns, 62);
    std::vector<C> c(static_cast<std::size_t>(rows * columns));
    mp::gemm(mp::emulated<Arch>{.threads = 1}, 1.0F, mp::row_major(a.data(), rows, k),
             mp::row_major(b.data(), k, columns), 0.0F, mp::row_major(c.data(), rows, columns));
    checksum sum;
    sum.add(c);
    to.add(name + ".tensor_core", sum);
}

template <class Matrix>
void add_block_scaled(report& to, const std::string& name) {
    const std::vector<float> a = plain_floats(static_cast<std::size_t>(rows * k), 63, 120, 10);
    const std::vector<float> b = plain_floats(static_cast<std::size_t>(k * columns), 64, 120, 10);
    const auto left = mp::quantize<Matrix>(exec, mp::row_major(a.data(), rows, k));
    const auto right = mp::quantize<Matrix>(exec, mp::row_major(b.data(), k, columns),
                                            {.direction = mp::block_direction::along_columns});
    std::vector<float> c(static_cast<std::size_t>(rows * columns));
    mp::gemm(mp::emulated<mp::arch::sm_100>{.threads = 1}, 1.0F, left, right, 0.0F,
             mp::row_major(c.data(), rows, columns));
    checksum sum;
    sum.add(c);
    to.add(name + ".tensor_core", sum);
}

/// Integers into 32 bits, and into floats.
[[maybe_unused]] void add_integers(report& to) {
    std::vector<std::int8_t> a(static_cast<std::size_t>(rows * 2000)),
        b(static_cast<std::size_t>(columns * 2000));
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<std::int8_t>(i * i % 251);
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<std::int8_t>(i * i % 241);
    const auto left = mp::row_major(a.data(), rows, 2000);
    const auto right = mp::column_major(b.data(), 2000, columns);
    std::vector<std::int32_t> c(static_cast<std::size_t>(rows * columns));
    std::vector<float> floats(c.size());
    mp::gemm(exec, 1, left, right, 0, mp::row_major(c.data(), rows, columns));
    mp::gemm(mp::emulated<mp::arch::sm_80>{.threads = 1}, 0x1.5p-9F, left, right, 0,
             mp::row_major(floats.data(), rows, columns));
    checksum sum;
    sum.add(floats);
    sum.add(c);
    to.add("int8.gemm", sum);
}

}  // namespace

void add_product_checksums(report& to) {
    add_products<float, float, float>(to, "float");
    add_products<mp::half, mp::half, mp::half>(to, "half");
    add_batched<mp::half>(to, "half");
#if !defined(MP_FEW_CHECKSUMS)
    add_products<mp::bfloat16, mp::bfloat16, float>(to, "bfloat16");
    add_products<mp::float8_e4m3fn, mp::float8_e5m2, mp::bfloat16>(to, "float8");
#endif

    constexpr std::ptrdiff_t blocks = (k + mp::k_per_scale - 1) / mp::k_per_scale;
    const auto a = matrix<mp::float8_e4m3fn>(rows, k, 71);
    const auto b = matrix<mp::float8_e4m3fn>(k, columns, 72);
    const std::vector<float> a_scales = plain_floats(static_cast<std::size_t>(rows * blocks), 73);
    const std::vector<float> b_scales = plain_floats(static_cast<std::size_t>(columns * blocks), 74);
    std::vector<float> c(static_cast<std::size_t>(rows * columns));
    mp::gemm_scaled(exec, 1.0F, mp::row_major(a.data(), rows, k),
                    {mp::row_major(a_scales.data(), rows, blocks), 1}, mp::row_major(b.data(), k, columns),
                    {mp::row_major(b_scales.data(), blocks, columns), 1}, 0.0F,
                    mp::row_major(c.data(), rows, columns));
    checksum scaled;
    scaled.add(c);
    to.add("float8.gemm_scaled", scaled);

    add_emulated<mp::arch::sm_75, mp::half, float>(to, "sm_75.half");
#if !defined(MP_FEW_CHECKSUMS)
    add_emulated<mp::arch::sm_80, mp::bfloat16, float>(to, "sm_80.bfloat16");
    add_emulated<mp::arch::sm_90, mp::half, mp::half>(to, "sm_90.half");
    add_emulated<mp::arch::sm_89, mp::float8_e4m3fn, float>(to, "sm_89.float8");
    add_emulated<mp::arch::sm_80, mp::tfloat32, float>(to, "sm_80.tfloat32");
    add_block_scaled<mp::mxfp8_e4m3>(to, "sm_100.mxfp8");
    add_block_scaled<mp::nvfp4>(to, "sm_100.nvfp4");
    add_integers(to);
#endif
}

}  // namespace portability
