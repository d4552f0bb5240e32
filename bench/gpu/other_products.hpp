// SPDX-License-Identifier: MIT
/// \file
/// Matrix products of 8-bit integers, of bfloat16 with such, and of groups of rows, beside those of bfloat16.
#pragma once

#include <mp/bfloat16.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device.hpp"
#include "measure.hpp"
#include "random_data.hpp"

namespace bench::gpu {

/// Rows, columns and k of a product whose operands both run along k.
struct product_size {
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    std::ptrdiff_t k;
};

inline std::string text(const product_size& it) {
    return std::to_string(it.rows) + "x" + std::to_string(it.columns) + "x" + std::to_string(it.k);
}

inline row product_row(const char* table, const std::string& name, const product_size& it,
                       double bytes_of_b) {
    const auto count = [](std::ptrdiff_t a, std::ptrdiff_t b) {
        return static_cast<double>(a) * static_cast<double>(b);
    };
    return {table,
            name,
            "TFLOP/s",
            count(it.rows, it.columns),
            2 * count(it.rows, it.k) + bytes_of_b * count(it.k, it.columns) + 2 * count(it.rows, it.columns),
            2 * count(it.rows, it.columns) * static_cast<double>(it.k)};
}

/// Integers with integers, bfloat16 with integers, and bfloat16 with itself.
inline void measure_integers(device& on, measurements& to) {
    std::vector<product_size> sizes{
        {4096, 4096, 4096}, {8192, 8192, 8192}, {16, 8192, 8192}, {128, 14336, 4096}};
    if (device::is_simulated) sizes = {{33, 64, 144}};
    for (const product_size& size : sizes) {
        if (!to.may_select(text(size))) continue;
        const auto a_count = static_cast<std::size_t>(size.rows * size.k);
        const auto b_count = static_cast<std::size_t>(size.k * size.columns);
        const auto c_count = static_cast<std::size_t>(size.rows * size.columns);
        auto a = random_array<mp::bfloat16>(on, a_count, 1);
        auto b = random_array<mp::bfloat16>(on, b_count, 2);
        auto narrow_a = random_array<std::int8_t>(on, a_count, 3, 40);
        auto narrow_b = random_array<std::int8_t>(on, b_count, 4, 40);
        auto c = on.make<mp::bfloat16>(c_count);
        auto sums = on.make<std::int32_t>(c_count);
        const auto left = [&](auto& memory) { return mp::row_major(memory.data(), size.rows, size.k); };
        const auto right = [&](auto& memory) {
            return mp::column_major(memory.data(), size.k, size.columns);
        };
        const auto into = [&](auto& memory) { return mp::row_major(memory.data(), size.rows, size.columns); };
        const auto exec = on.exec();
        const std::vector<contender> all{
            {"mp int8",
             [=, x = left(narrow_a), y = right(narrow_b), z = into(sums)] { mp::gemm(exec, 1, x, y, 0, z); },
             "mp"},
            {"mp bfloat16 by int8",
             [=, x = left(a), y = right(narrow_b), z = into(c)] { mp::gemm(exec, 1.0F, x, y, 0.0F, z); },
             "mp"},
            {"mp bfloat16",
             [=, x = left(a), y = right(b), z = into(c)] { mp::gemm(exec, 1.0F, x, y, 0.0F, z); },
             "reference"}};
        to.add(product_row("products of 8-bit integers", text(size), size, 1), all);
    }
}

/// Rows in groups of very different sizes, by one launch, by a launch each, and as if they had one matrix.
inline void measure_groups_of_rows(device& on, measurements& to, const product_size& size,
                                   std::ptrdiff_t experts) {
    if (!to.may_select(text(size))) return;
    std::vector<std::int32_t> begins{0};
    // Half of what is left, and at the end the rest.
    for (std::ptrdiff_t g = 1; g < experts; ++g) {
        begins.push_back(begins.back() + static_cast<std::int32_t>((size.rows - begins.back()) / 2));
    }
    begins.push_back(static_cast<std::int32_t>(size.rows));
    auto a = random_array<mp::bfloat16>(on, static_cast<std::size_t>(size.rows * size.k), 1);
    auto b = random_array<mp::bfloat16>(on, static_cast<std::size_t>(experts * size.k * size.columns), 2);
    auto c = on.make<mp::bfloat16>(static_cast<std::size_t>(size.rows * size.columns));
    auto offsets = on.put(begins);
    const auto x = mp::row_major(a.data(), size.rows, size.k);
    const mp::matrix_batch weights{mp::column_major(b.data(), size.k, size.columns), size.k * size.columns};
    const auto y = mp::row_major(c.data(), size.rows, size.columns);
    const auto exec = on.exec();
    const std::span<const std::int32_t> groups = offsets.span();
    const std::vector<contender> all{
        {"mp grouped", [=] { mp::gemm_grouped_m(exec, 1.0F, x, weights, groups, 0.0F, y); }, "mp"},
        {"mp group by group",
         [=] {
             for (std::size_t g = 0; g + 1 < begins.size(); ++g) {
                 const std::ptrdiff_t first = begins[g], rows = begins[g + 1] - first;
                 mp::gemm(exec, 1.0F, x.block(first, 0, rows, size.k),
                          weights[static_cast<std::ptrdiff_t>(g)], 0.0F,
                          y.block(first, 0, rows, size.columns));
             }
         },
         "reference"},
        {"mp one matrix", [=] { mp::gemm(exec, 1.0F, x, weights.first, 0.0F, y); }, "reference"}};
    to.add(
        product_row("products of groups of rows", text(size) + " in " + std::to_string(experts) + " groups",
                    size, 2.0 * static_cast<double>(experts)),
        all);
}

/// As where a model is trained, and where it generates.
inline void measure_groups(device& on, measurements& to) {
    if (device::is_simulated) return measure_groups_of_rows(on, to, {70, 64, 64}, 4);
    measure_groups_of_rows(on, to, {8192, 4096, 4096}, 16);
    measure_groups_of_rows(on, to, {256, 4096, 4096}, 16);
}

}  // namespace bench::gpu
