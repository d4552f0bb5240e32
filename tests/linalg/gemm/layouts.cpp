// SPDX-License-Identifier: MIT
#include <mp/linalg/gemm/multiply.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "linalg/gemm/reference.hpp"

namespace {

using reference::generator;
using reference::matrix;

constexpr mp::storage_order orders[2] = {mp::storage_order::row_major, mp::storage_order::column_major};

struct problem {
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    std::ptrdiff_t k;
    float alpha = 1;
    float beta = 0;
    int threads = 1;
};

/// Multiplies float matrices in the given orders and compares every bit with the documented product.
void check_product(mp::cpu exec, generator& random, const problem& p, mp::storage_order a_order,
                   mp::storage_order b_order, mp::storage_order c_order) {
    const auto padding = [&] { return reference::random_size(random, 0, 3); };
    matrix<float> a(p.rows, p.k, a_order, padding());
    matrix<float> b(p.k, p.columns, b_order, padding());
    matrix<float> c(p.rows, p.columns, c_order, padding());
    a.fill_random(random);
    b.fill_random(random);
    c.fill_random(random);
    const std::vector<double> before = c.values();
    const auto a_bytes = a.bytes();
    const auto b_bytes = b.bytes();
    exec.threads = p.threads;
    mp::gemm(exec, p.alpha, a.view(), b.view(), p.beta, c.view());
    const std::vector<float> expected = reference::documented_product(
        a.values(), b.values(), before, p.rows, p.columns, p.alpha, p.beta, reference::fuses(exec),
        reference::documented_sums(exec, p.rows, p.columns, p.k, a_order, b_order));
    const std::vector<double> actual = c.values();
    std::size_t different = 0;
    for (std::size_t i = 0; i < actual.size(); ++i) {
        different += static_cast<double>(expected[i]) != actual[i] ? 1U : 0U;
    }
    const std::string kernel((mp::gemm_kernel_name<float, float>(exec)));
    CAPTURE(kernel);
    CAPTURE(p.rows);
    CAPTURE(p.columns);
    CAPTURE(p.k);
    CHECK(different == 0);
    CHECK(c.surroundings_untouched());
    CHECK(a.bytes() == a_bytes);
    CHECK(b.bytes() == b_bytes);
}

void check_all_orders(mp::cpu exec, generator& random, const problem& p) {
    for (const auto a_order : orders) {
        for (const auto b_order : orders) {
            for (const auto c_order : orders) check_product(exec, random, p, a_order, b_order, c_order);
        }
    }
}

/// The kernels' tiles have at most as many rows and columns.
constexpr std::ptrdiff_t most_rows = 32;
constexpr std::ptrdiff_t most_columns = 32;

TEST_CASE("every kernel gives the documented bits in all orders at every small size") {
    for (const mp::cpu exec : reference::executors_of_kernels<float, float>()) {
        generator random(1);
        for (int round = 0; round < 20; ++round) {
            problem p{reference::random_size(random, 0, 70), reference::random_size(random, 0, 70),
                      reference::random_size(random, 0, 70)};
            if (round % 3 == 1) p.alpha = -0.375F;
            if (round % 3 == 2) p.beta = 1.7F;
            check_all_orders(exec, random, p);
        }
        // Each number of rows that a tile can be left with, and columns around those of vectors and panels.
        for (std::ptrdiff_t rows = 1; rows <= most_rows + 1; ++rows) {
            for (const std::ptrdiff_t columns : {1, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33}) {
                check_product(exec, random, {rows, columns, 5}, orders[0], orders[0], orders[0]);
            }
        }
    }
}

TEST_CASE("every kernel gives the documented bits across the borders of blocks") {
    for (const mp::cpu exec : reference::executors_of_kernels<float, float>()) {
        generator random(2);
        const mp::detail::product_kernel& kernel =
            mp::detail::choose_kernel(exec.instructions, exec.products, mp::detail::operand_facts_of<float>(),
                                      mp::detail::operand_facts_of<float>(), 100);
        REQUIRE(kernel.rows <= most_rows);
        REQUIRE(kernel.width <= most_columns);
        const std::ptrdiff_t deep = kernel.k_block + 11;  // two blocks: the sums have to wait
        check_product(exec, random, {129, 97, 300}, orders[0], orders[0], orders[0]);
        check_product(exec, random, {30, 45, 2 * deep, 2.0F, -1.0F}, orders[1], orders[0], orders[1]);
        check_product(exec, random, {2 * kernel.block_rows + 17, 37, deep}, orders[0], orders[1], orders[0]);
        check_product(exec, random, {5, 1150, deep}, orders[1], orders[1], orders[0]);
        check_product(exec, random, {3, 1150, deep, 1.0F, 0.5F}, orders[0], orders[0], orders[0]);
        check_product(exec, random, {mp::detail::product_blocks::most_rows_waiting + 50, 2, deep, 1.0F, 1.0F},
                      orders[0], orders[0], orders[0]);
    }
}

TEST_CASE("products with few rows have the documented bits across the blocks of their columns") {
    generator random(11);
    for (const mp::cpu exec : reference::executors_of_kernels<float, float>()) {
        // As many columns as make sums that do not fit into the nearest cache, and some more.
        for (const auto& [rows, columns] : {std::pair{1, 8219}, {2, 2061}, {7, 1043}, {9, 700}, {16, 1045}}) {
            check_product(exec, random, {rows, columns, 19, 1.0F, 0.5F}, orders[0], orders[0], orders[0]);
        }
    }
}

TEST_CASE("products with few rows or few columns that suit dot products have the documented bits") {
    for (const mp::cpu exec : reference::executors_of_kernels<float, float>()) {
        generator random(5);
        for (const std::ptrdiff_t few : {1, 2, 3, 4, 5, 8, 15, 16, 17}) {
            // Around the borders of blocks of k, of groups and runs of columns, and of what is large enough.
            for (const auto& [many, k] :
                 {std::pair{260, 32}, {256, 31}, {16, 511}, {17, 513}, {33, 1100}, {2, 6200}}) {
                check_all_orders(exec, random, {few, many, k});
                check_all_orders(exec, random, {many, few, k, 1.5F, 0.5F});
            }
        }
        check_all_orders(exec, random, {1, 3, 13000});
        check_all_orders(exec, random, {1, 300, 4100});  // larger than the second-level cache
        check_all_orders(exec, random, {3, 130, 4100});
    }
}

/// Whether these are dot products by vdpbf16ps, which dot_products.cpp tests.
template <class A, class B>
bool are_by_pairs(mp::cpu exec, std::ptrdiff_t rows) {
    const bool are_bfloat16 = std::is_same_v<A, mp::bfloat16> && std::is_same_v<B, mp::bfloat16>;
    return are_bfloat16 && rows > 4 && mp::detail::bfloat16_dot_is_fast(mp::detail::isa_of("test", exec));
}

struct shape_of_dots {
    std::ptrdiff_t rows, columns, k;
};

/// The product of few rows of A with contiguous columns of B, and the other way round.
template <class A, class B>
void check_dots_of(generator& random,
                   const std::vector<shape_of_dots>& shapes = {{1, 37, 700}, {2, 37, 533}, {16, 37, 1030}}) {
    for (const mp::cpu exec : reference::executors_of_kernels<A, B>()) {
        for (const auto& [rows, columns, k] : shapes) {
            if (are_by_pairs<A, B>(exec, rows)) continue;
            matrix<A> a(rows, k, orders[0], 1);
            matrix<B> b(k, columns, mp::storage_order::column_major, 2);
            a.fill_random(random);
            b.fill_random(random);
            const auto sums = reference::documented_sums(exec, rows, columns, k, mp::storage_order::row_major,
                                                         mp::storage_order::column_major);
            const std::vector<float> expected = reference::documented_product(
                a.values(), b.values(), {}, rows, columns, 1.0F, 0.0F, true, sums);
            std::vector<float> c(static_cast<std::size_t>(rows * columns)), c_transposed(c.size());
            mp::gemm(exec, 1.0F, a.view(), b.view(), 0.0F, mp::row_major(c.data(), rows, columns));
            mp::gemm(exec, 1.0F, mp::transposed(b.view()), mp::transposed(a.view()), 0.0F,
                     mp::column_major(c_transposed.data(), columns, rows));
            if (sums == 1) continue;
            CAPTURE(rows);
            CHECK(c == expected);
            CHECK(c_transposed == expected);
        }
    }
}

TEST_CASE("dot products of all formats have the documented bits") {
    generator random(6);
    check_dots_of<mp::half, mp::half>(random);
    check_dots_of<mp::bfloat16, mp::bfloat16>(random);
    check_dots_of<float, mp::bfloat16>(random);
    check_dots_of<mp::half, mp::float8_e4m3fn>(random);
    check_dots_of<mp::float8_e5m2, float>(random);
}

TEST_CASE("a row of bfloat16 too long for the cache as floats has the documented bits") {
    generator random(7);
    check_dots_of<mp::bfloat16, mp::bfloat16>(random, {{1, 541, 7789}, {4, 37, 1030}});
    check_dots_of<mp::float8_e5m2, mp::bfloat16>(random, {{1, 541, 7789}});
}

TEST_CASE("no size is special: all sizes up to 12 in each dimension") {
    generator random(3);
    for (std::ptrdiff_t rows = 0; rows <= 12; ++rows) {
        for (std::ptrdiff_t columns = 0; columns <= 12; ++columns) {
            for (std::ptrdiff_t k = 0; k <= 12; ++k) {
                check_product({}, random, {rows, columns, k}, orders[static_cast<std::size_t>(rows) % 2],
                              orders[static_cast<std::size_t>(columns) % 2],
                              orders[static_cast<std::size_t>(k) % 2]);
            }
        }
    }
}

TEST_CASE("the number of threads changes no bit, whichever way C is divided") {
    generator random(4);
    for (const problem& p : {problem{150, 170, 710}, problem{3, 900, 2000}, problem{1500, 5, 1100},
                             problem{260, 250, 301, 0.5F, 0.25F}}) {
        for (const auto order : orders) {
            check_product({}, random, p, order, orders[0], order);
            matrix<float> a(p.rows, p.k, order, 1);
            matrix<float> b(p.k, p.columns, orders[0], 2);
            a.fill_random(random);
            b.fill_random(random);
            std::vector<double> first;
            for (const int threads : {1, 2, 3, 5, 16}) {
                matrix<float> c(p.rows, p.columns, order, 3);
                generator same(5);
                c.fill_random(same);
                mp::gemm(mp::cpu{threads}, p.alpha, a.view(), b.view(), p.beta, c.view());
                if (threads == 1) first = c.values();
                CHECK(std::equal(first.begin(), first.end(), c.values().begin(), reference::same_value));
                CHECK(c.surroundings_untouched());
            }
        }
    }
}

TEST_CASE("a product of one large call is the product of its blocks, bit for bit") {
    generator random(5);
    matrix<float> a(90, 80, orders[0], 1);
    matrix<float> b(80, 100, orders[1], 2);
    matrix<float> whole(90, 100, orders[0], 3);
    matrix<float> parts(90, 100, orders[0], 3);
    a.fill_random(random);
    b.fill_random(random);
    mp::gemm(mp::cpu{}, 1.0F, a.view(), b.view(), 0.0F, whole.view());
    for (std::ptrdiff_t row = 0; row < 90; row += 7) {
        const std::ptrdiff_t rows = std::min<std::ptrdiff_t>(7, 90 - row);
        for (std::ptrdiff_t column = 0; column < 100; column += 11) {
            const std::ptrdiff_t columns = std::min<std::ptrdiff_t>(11, 100 - column);
            mp::gemm(mp::cpu{}, 1.0F, a.view().block(row, 0, rows, 80),
                     b.view().block(0, column, 80, columns), 0.0F,
                     parts.view().block(row, column, rows, columns));
        }
    }
    CHECK(whole.bytes() == parts.bytes());
}

TEST_CASE("the kernel that runs has a name, which tells the instruction set") {
    for (const mp::cpu exec : reference::executors()) {
        const std::string name(mp::gemm_kernel_name<float, float>(exec));
        CHECK(name.starts_with("cpu.f32."));
        const auto isa = std::min(exec.instructions, mp::instruction_set::avx512);
        CHECK(name.find(mp::name_of(isa)) != std::string::npos);
    }
    const mp::cpu portable{.instructions = mp::instruction_set::portable};
    CHECK(mp::gemm_kernel_name<mp::half, mp::half>(portable) == "cpu.f32.portable");
}

}  // namespace
