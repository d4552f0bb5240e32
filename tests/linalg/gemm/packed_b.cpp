// SPDX-License-Identifier: MIT
#include <mp/linalg/gemm/multiply.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <mp/tfloat32.hpp>

#include "linalg/gemm/reference.hpp"
#include "numbers/format/flushing_scope.hpp"

namespace {

using reference::generator;
using reference::matrix;

constexpr mp::storage_order orders[2] = {mp::storage_order::row_major, mp::storage_order::column_major};

/// c = alpha a b + beta c with b as it is and with b packed, at every level: the same bits.
template <class A, class B, class C>
void check_packed(generator& random) {
    for (const mp::cpu exec : reference::executors()) {
        for (int round = 0; round < 8; ++round) {
            const std::ptrdiff_t rows = reference::random_size(random, 1, round == 0 ? 200 : 60);
            const std::ptrdiff_t columns = reference::random_size(random, 1, 100);
            const std::ptrdiff_t k = reference::random_size(random, 1, round == 1 ? 2300 : 100);
            matrix<A> a(rows, k, orders[round % 2], 1);
            matrix<B> b(k, columns, orders[round / 2 % 2], 2);
            matrix<C> c(rows, columns, orders[round / 4], 3);
            matrix<C> expected(rows, columns, orders[round / 4], 3);
            a.fill_random(random);
            b.fill_random(random);
            c.fill_random(random);
            for (std::ptrdiff_t r = 0; r < rows; ++r) {
                for (std::ptrdiff_t j = 0; j < columns; ++j) expected.view()(r, j) = c.view()(r, j);
            }
            const float beta = round % 3 == 0 ? 0.5F : 0.0F;
            // The other way round gives the transposed product another B.
            mp::cpu by_rows = exec;
            by_rows.threads = 1 + round % 3;
            // Dot products are for a B that is read where it lies.
            if (reference::documented_sums(exec, rows, columns, k, orders[round % 2], orders[round / 2 % 2]) >
                1) {
                by_rows.products = mp::accumulation::ordered;
            }
            const mp::packed_b packed(by_rows, b.view());
            CHECK(packed.rows() == k);
            CHECK(packed.columns() == columns);
            mp::cpu of_views = exec;
            of_views.products = by_rows.products;
            mp::gemm(of_views, 1.0F, a.view(), b.view(), beta, expected.view(), mp::relu_epilogue{});
            mp::gemm(by_rows, 1.0F, a.view(), packed, beta, c.view(), mp::relu_epilogue{});
            CHECK(c.bytes() == expected.bytes());
        }
    }
}

TEST_CASE("a product with a packed B has the bits of the product with B, at every level and in every order") {
    generator random(1);
    check_packed<float, float, float>(random);
    check_packed<mp::half, mp::half, float>(random);
    check_packed<mp::bfloat16, mp::bfloat16, mp::bfloat16>(random);
    check_packed<float, mp::bfloat16, mp::half>(random);
    check_packed<mp::half, mp::float8_e4m3fn, float>(random);
}

/// Few rows with a packed B that comes from memory: as where it is in the caches, whose limit depends on the processor.
template <class A, class B>
void check_far(generator& random) {
    namespace detail = mp::detail;
    for (const mp::cpu exec : reference::executors()) {
        for (std::ptrdiff_t rows = 1; rows <= detail::most_direct_rows; ++rows) {
            const std::ptrdiff_t columns = reference::random_size(random, 1, 600);
            const std::ptrdiff_t k = reference::random_size(random, 1, rows == 9 ? 1100 : 100);
            matrix<A> a(rows, k, orders[0], 1);
            matrix<B> b(k, columns, orders[rows % 2], 2);
            matrix<float> c(rows, columns, orders[0], 3);
            matrix<float> expected(rows, columns, orders[0], 3);
            a.fill_random(random);
            b.fill_random(random);
            c.fill_random(random);
            for (std::ptrdiff_t r = 0; r < rows; ++r) {
                for (std::ptrdiff_t j = 0; j < columns; ++j) expected.view()(r, j) = c.view()(r, j);
            }
            const mp::packed_b packed(exec, b.view());
            mp::gemm(exec, 1.0F, a.view(), packed, 0.5F, expected.view());
            const mp::instruction_set isa = detail::isa_of("test", exec);
            const detail::product_kernel& kernel = detail::choose_kernel(
                isa, exec.products, detail::operand_facts_of<A>(), detail::operand_facts_of<B>(), rows);
            if (kernel.layout != detail::a_layout::rows ||
                kernel.b_element != detail::panel_element_of<B>()) {
                continue;
            }
            const detail::tile_output output = detail::make_tile_output(
                isa, c.view().data, c.view().leading_dimension, false, 1.0F, 0.5F, mp::identity_epilogue{});
            detail::product_task task = detail::make_product_task(
                kernel, isa, {a.view().data, a.view().row_stride(), a.view().column_stride()},
                detail::product_kernels<A>::of_operand, {}, detail::product_kernels<B>::of_operand, output,
                rows, columns, k);
            task.packed_b = packed.panels();
            mp::cpu threads = exec;
            threads.threads = 1 + static_cast<unsigned>(rows % 3);
            detail::multiply_skinny(threads, task, {&kernel, nullptr, sizeof(B), true}, nullptr);
            CHECK(c.bytes() == expected.bytes());
        }
    }
}

TEST_CASE("few rows with a packed B that comes from memory have the same bits") {
    generator random(7);
    check_far<float, float>(random);
    check_far<mp::half, mp::half>(random);
    check_far<mp::bfloat16, mp::bfloat16>(random);
    check_far<float, mp::float8_e4m3fn>(random);
}

TEST_CASE("a packed B keeps its numbers when the matrix is gone, and serves other instruction sets") {
    generator random(2);
    std::vector<mp::bfloat16> weights(60 * 70);
    for (mp::bfloat16& w : weights) w = mp::bfloat16(static_cast<int>(random() % 17) - 8);
    std::vector<mp::bfloat16> x(5 * 60);
    for (mp::bfloat16& v : x) v = mp::bfloat16(static_cast<int>(random() % 17) - 8);
    std::vector<float> expected(5 * 70);
    mp::gemm(mp::cpu{}, 1.0F, mp::row_major(x.data(), 5, 60), mp::row_major(weights.data(), 60, 70), 0.0F,
             mp::row_major(expected.data(), 5, 70));
    for (const mp::cpu maker : reference::executors()) {
        const mp::packed_b packed(maker, mp::row_major(weights.data(), 60, 70));
        const std::vector<mp::bfloat16> kept = weights;
        std::fill(weights.begin(), weights.end(), mp::bfloat16{});
        for (const mp::cpu user : reference::executors()) {
            std::vector<float> y(5 * 70);
            mp::gemm(user, 1.0F, mp::row_major(x.data(), 5, 60), packed, 0.0F,
                     mp::row_major(y.data(), 5, 70));
            CHECK(y == expected);
        }
        weights = kept;
    }
}

#if TEST_CAN_FLUSH
TEST_CASE("a packed B has subnormal numbers where the caller flushes them") {
    // 2^-127, which 2^127 brings back to 1.
    const std::vector<mp::tfloat32> b(40 * 3, mp::tfloat32(0x1p-127F));
    const std::vector<float> a(2 * 40, 0x1p127F);
    std::vector<float> c(2 * 3);
    const flushing_scope flushing;
    const mp::packed_b packed(mp::cpu{}, mp::row_major(b.data(), 40, 3));
    mp::gemm(mp::cpu{}, 1.0F, mp::row_major(a.data(), 2, 40), packed, 0.0F, mp::row_major(c.data(), 2, 3));
    CHECK(c == std::vector<float>(c.size(), 40.0F));
}
#endif

TEST_CASE("eight-bit integers multiply exactly, with their scale in alpha") {
    generator random(3);
    for (const mp::cpu exec : reference::executors()) {
        std::vector<std::int8_t> a(33 * 100);
        std::vector<std::int8_t> b(100 * 47);
        for (std::int8_t& x : a) x = static_cast<std::int8_t>(static_cast<int>(random() % 256) - 128);
        for (std::int8_t& x : b) x = static_cast<std::int8_t>(static_cast<int>(random() % 256) - 128);
        std::vector<float> c(33 * 47);
        mp::gemm(exec, 0.125F, mp::row_major(a.data(), 33, 100), mp::column_major(b.data(), 100, 47), 0.0F,
                 mp::row_major(c.data(), 33, 47));
        std::size_t wrong = 0;
        for (std::size_t r = 0; r < 33; ++r) {
            for (std::size_t j = 0; j < 47; ++j) {
                int sum = 0;
                for (std::size_t p = 0; p < 100; ++p) sum += a[r * 100 + p] * b[j * 100 + p];
                wrong += c[r * 47 + j] == static_cast<float>(sum) / 8 ? 0U : 1U;
            }
        }
        CHECK(wrong == 0);
    }
}

TEST_CASE("sizes that do not fit a packed B are refused with names and values") {
    const std::vector<float> numbers(200, 1.0F);
    std::vector<float> c(200, 2.0F);
    const mp::packed_b<float> packed(mp::cpu{}, mp::row_major(numbers.data(), 4, 5));
    CHECK_THROWS_WITH_AS(mp::gemm(mp::cpu{}, 1.0F, mp::row_major(numbers.data(), 3, 6), packed, 0.0F,
                                  mp::row_major(c.data(), 3, 5)),
                         "mp::gemm: b.rows() is 4; it must equal a.columns, which is 6", mp::argument_error);
    CHECK_THROWS_WITH_AS(mp::gemm(mp::cpu{}, 1.0F, mp::row_major(numbers.data(), 3, 4), packed, 0.0F,
                                  mp::row_major(c.data(), 3, 6)),
                         "mp::gemm: c.columns is 6; it must equal b.columns(), which is 5",
                         mp::argument_error);
    CHECK_THROWS_AS(mp::packed_b<float>(mp::cpu{}, mp::row_major(numbers.data(), -1, 5)), mp::argument_error);
    CHECK(c == std::vector<float>(200, 2.0F));
}

TEST_CASE("a B whose writes are counted is not multiplied when it has been written") {
    std::vector<float> b(20, 1.0F), c(15, 2.0F);
    const std::vector<float> a(12, 1.0F);
    const mp::buffer_version version;
    const mp::packed_b<float> packed(mp::cpu{}, mp::row_major(b.data(), 4, 5), version);
    const auto multiply = [&] {
        mp::gemm(mp::cpu{}, 1.0F, mp::row_major(a.data(), 3, 4), packed, 0.0F, mp::row_major(c.data(), 3, 5));
    };
    multiply();
    CHECK(c == std::vector<float>(15, 4.0F));
    b[7] = 3.0F;
    version.changed();
    CHECK_FALSE(packed.is_current());
    CHECK_THROWS_WITH_AS(multiply(),
                         "mp::gemm: the matrix that b was packed of has been written since; pack it again",
                         mp::state_error);
    CHECK(c == std::vector<float>(15, 4.0F));
}

TEST_CASE("a workspace grows to what a product needs and then stays") {
    generator random(4);
    matrix<mp::half> a(100, 300, orders[0], 0);
    matrix<mp::half> b(300, 200, orders[0], 0);
    matrix<mp::half> c(100, 200, orders[0], 0);
    a.fill_random(random);
    b.fill_random(random);
    mp::gemm_workspace workspace;
    mp::gemm(mp::cpu{}, 1.0F, a.view(), b.view(), 0.0F, c.view(), mp::identity_epilogue{}, workspace);
    const std::size_t size = workspace.size();
    CHECK(size > 0);
    const auto bytes = c.bytes();
    mp::gemm(mp::cpu{}, 1.0F, a.view(), b.view(), 0.0F, c.view(), mp::identity_epilogue{}, workspace);
    CHECK(workspace.size() == size);
    CHECK(c.bytes() == bytes);
}

}  // namespace
