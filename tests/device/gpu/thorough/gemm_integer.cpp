// SPDX-License-Identifier: MIT
#include <mp/device/gpu/gemm_integer.hpp>

#include <mp/gemm.hpp>
#include <mp/half.hpp>
#include <mp/simt.hpp>
#include <mp/tensor_core.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace {

using mp::arch;
using mp::storage_order;

/// Bytes that begin `shift` behind a multiple of 64, with `padding` between lines.
struct bytes {
    std::vector<std::int8_t> values;
    mp::matrix_view<std::int8_t> view;

    bytes(std::ptrdiff_t rows, std::ptrdiff_t columns, bool by_rows, bool aligned, std::mt19937& random) {
        const std::ptrdiff_t length = by_rows ? columns : rows;
        const std::ptrdiff_t leading = aligned ? (length + 63) / 64 * 64 : length + 1;
        values.resize(static_cast<std::size_t>(leading * (by_rows ? rows : columns)) + 128);
        for (std::int8_t& it : values) it = static_cast<std::int8_t>(random());
        auto address = reinterpret_cast<std::uintptr_t>(values.data());
        address = (address + 63) / 64 * 64 + (aligned ? 0 : 3);
        view = {reinterpret_cast<std::int8_t*>(address), rows, columns, leading,
                by_rows ? storage_order::row_major : storage_order::column_major};
    }
};

template <class Value>
mp::matrix_view<Value> view_of(std::vector<Value>& values, std::ptrdiff_t rows, std::ptrdiff_t columns,
                               bool by_rows) {
    return by_rows ? mp::row_major(values.data(), rows, columns)
                   : mp::column_major(values.data(), rows, columns);
}

template <arch Arch, mp::gpu_gemm_kernel Kernel = mp::gpu_gemm_kernel::automatic>
void check(std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k, unsigned number) {
    constexpr bool along_k = Kernel == mp::gpu_gemm_kernel::wgmma;
    std::mt19937 random(number);
    const bytes a(m, k, along_k || number % 2 == 0, along_k || number % 3 != 0, random);
    const bytes b(k, n, !along_k && number / 2 % 2 == 0, along_k || number % 5 != 0, random);
    // With one multiprocessor tiles are large.
    const mp::simulated_gpu<Arch> gpu{.seed = number, .multiprocessors = number / 8 % 2 == 0 ? 0 : 1};
    const bool by_rows = number / 4 % 2 == 0;
    CAPTURE(m);
    CAPTURE(n);
    CAPTURE(k);
    CAPTURE(number);

    std::vector<std::int32_t> c(static_cast<std::size_t>(m * n));
    for (std::int32_t& it : c) it = static_cast<std::int32_t>(random());
    std::vector<std::int32_t> expected = c;
    const std::int32_t alpha = number % 3 == 0 ? 1 : -7;
    const std::int32_t beta = number % 4 == 0 ? 0 : 3;
    mp::gemm<Kernel>(gpu, alpha, a.view, b.view, beta, view_of(c, m, n, by_rows));
    mp::gemm(mp::cpu{}, alpha, a.view, b.view, beta, view_of(expected, m, n, by_rows));
    CHECK(c == expected);

    std::vector<float> scales(static_cast<std::size_t>(n));
    for (float& it : scales) it = static_cast<float>(random() % 100) * 0x1.1p-13F;
    std::vector<mp::half> narrow(c.size(), mp::half(1.5F)), narrow_expected = narrow;
    const auto per_column = mp::scale_per_column(std::span<const float>(scales));
    mp::gemm<Kernel>(gpu, 0.1F, a.view, b.view, 0.5F, view_of(narrow, m, n, by_rows), per_column);
    mp::gemm(mp::emulated<Arch>{}, 0.1F, a.view, b.view, 0.5F, view_of(narrow_expected, m, n, by_rows),
             per_column);
    CHECK(std::memcmp(narrow.data(), narrow_expected.data(), narrow.size() * sizeof(mp::half)) == 0);
}

TEST_CASE("8-bit integers on the simulated GPU: exact sums, for all layouts and alignments") {
    for (unsigned number = 0; number < 16; ++number)
        check<arch::sm_80>(37, number % 2 == 0 ? 48 : 45, 70 + number, number);
    check<arch::sm_80>(200, 150, 300, 20);
    check<arch::sm_80>(5, 3, 0, 21);
    check<arch::sm_80>(1, 1, 2000, 23);
}

TEST_CASE("8-bit integers by wgmma on the simulated GPU: exact sums, written by TMA or by threads") {
    constexpr auto wgmma = mp::gpu_gemm_kernel::wgmma;
    // Tiles of either schedule, then both of those for few rows; k that ends in a step, or is one. beta is 0 for multiples
    // of 4.
    check<arch::sm_90, wgmma>(150, 140, 300, 8);
    check<arch::sm_90, wgmma>(130, 77, 96, 12);
    check<arch::sm_90, wgmma>(130, 270, 500, 1);
    check<arch::sm_90, wgmma>(140, 40, 64, 6);
    check<arch::sm_90, wgmma>(13, 75, 900, 3);
    check<arch::sm_90, wgmma>(40, 70, 160, 16);
    check<arch::sm_90, wgmma>(20, 30, 0, 2);
}

TEST_CASE("integers are multiplied by wgmma where it takes them and is faster") {
    // Sums say nothing about the kernel: it is asked for where the matrices lie otherwise than it takes them.
    std::mt19937 random(1);
    const bytes a(40, 64, true, true, random), by_columns(40, 64, false, true, random),
        b(64, 40, false, true, random), unaligned(64, 40, false, false, random);
    std::vector<std::int32_t> c(40 * 40, 7);
    const auto message = [&](const bytes& left, const bytes& right) -> std::string {
        try {
            mp::gemm<mp::gpu_gemm_kernel::wgmma>(mp::simulated_gpu<arch::sm_90>{}, 1, left.view, right.view,
                                                 0, mp::row_major(c.data(), 40, 40));
        } catch (const mp::argument_error& error) {
            return error.what();
        }
        return "";
    };
    CHECK(message(by_columns, b).find("a is 'vectors across k'") != std::string::npos);
    CHECK(message(a, unaligned).find("b's alignment is 1") != std::string::npos);
    CHECK(c == std::vector<std::int32_t>(40 * 40, 7));
    const auto kernel = [](std::ptrdiff_t rows, bool takes) {
        constexpr auto automatic = mp::gpu_gemm_kernel::automatic;
        return mp::detail::resolve_kernel<std::int8_t, automatic>(
            mp::properties_of(mp::simulated_gpu<arch::sm_90>{}), {takes, takes}, rows, 4096, 1);
    };
    CHECK(kernel(4096, true) == mp::gpu_gemm_kernel::wgmma);
    CHECK(kernel(16, true) == mp::gpu_gemm_kernel::wgmma);
    CHECK(kernel(4096, false) == mp::gpu_gemm_kernel::mma);
    // What ends numbers is longer than the products of 256 of k.
    const auto plan = [](const mp::gpu_gemm_options& options) {
        return mp::detail::plan_with_kernel<std::int8_t>(mp::properties_of(mp::simulated_gpu<arch::sm_90>{}),
                                                         mp::gpu_gemm_kernel::wgmma, 4096, 4096, 256, 1,
                                                         options)
            .ping_pong;
    };
    CHECK(plan(mp::detail::options_for<mp::scale_epilogue<float, mp::bias_axis::column>>(0)));
    CHECK(!plan(mp::detail::options_for<mp::detail::integer_scale>(0)));
}

TEST_CASE("sums of integers that 32 bits do not hold, and those that float does not") {
    const std::ptrdiff_t k = 131073;
    const std::vector<std::int8_t> lowest(static_cast<std::size_t>(k), -128);
    const auto a = mp::row_major(lowest.data(), 1, k);
    const auto b = mp::column_major(lowest.data(), k, 1);
    const mp::simulated_gpu<arch::sm_80> gpu;
    std::int32_t sum = 0;
    mp::gemm(gpu, 1, a, b, 0, mp::row_major(&sum, 1, 1));
    CHECK(static_cast<std::uint32_t>(sum) == 0x80004000);
    mp::half rounded{};
    mp::gemm(gpu, 0x1p-16F, a.block(0, 0, 1, 1025), b.block(0, 0, 1025, 1), 0, mp::row_major(&rounded, 1, 1));
    CHECK(rounded == mp::half(256.25F));
}

TEST_CASE("errors of integer products on GPUs") {
    std::vector<std::int8_t> numbers(64);
    std::vector<std::int32_t> c(16);
    const auto message = [](auto call) -> std::string {
        try {
            call();
        } catch (const mp::argument_error& error) {
            return error.what();
        }
        return "";
    };
    const auto a = mp::row_major(numbers.data(), 2, 8);
    const auto b = mp::row_major(numbers.data(), 8, 4);
    CHECK(message([&] {
              mp::gemm(mp::simulated_gpu<arch::sm_80>{}, 1, a, b, 0, mp::row_major(c.data(), 3, 4));
          }) == "mp::gemm: c.rows is 3; it must equal a.rows, which is 2");
    CHECK(message([&] {
              mp::gemm(mp::simulated_gpu<arch::sm_75>{}, 1, a, b, 0, mp::row_major(c.data(), 2, 4));
          }) ==
          "mp::gemm: exec's capability is 75; it must be 80 or more, whose mma.sync multiplies 32 integers "
          "at a time");
}

}  // namespace
