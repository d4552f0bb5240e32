// SPDX-License-Identifier: MIT
// Policies, shapes and operands for digests of ops.
#pragma once

#include <mp/autocast.hpp>

#include "combinations.hpp"

namespace portability {

/// Calls f<Policy>() in a region of each precision.
template <class Function>
void in_regions(const Function& f) {
    for (const mp::precision precision :
         {mp::precision::off, mp::precision::fp16, mp::precision::bf16, mp::precision::fp8}) {
        const mp::autocast_region region(precision);
        f.template operator()<mp::autocast::by_region>();
    }
}

/// Calls f<Policy>() for each policy of the library.
template <class Function>
void under_policies(const Function& f) {
    f.template operator()<mp::autocast::off>();
    f.template operator()<mp::autocast::fp16>();
    f.template operator()<mp::autocast::bf16>();
    f.template operator()<mp::autocast::fp8_hybrid>();
}

inline constexpr std::ptrdiff_t op_shapes[][2] = {{1, 1}, {3, 5}, {17, 33}, {64, 40}};

/// Calls f(rows, columns, whether by column, number of the call) for each shape in both storage orders.
template <class Function>
void for_each_op_shape(const Function& f) {
    unsigned number = 0;
    for (const auto& [rows, columns] : op_shapes) {
        for (const bool by_column : {false, true}) f(rows, columns, by_column, number++);
    }
}

/// Executor whose products have the same bits on every processor.
inline mp::cpu ordered_exec(unsigned number) {
    return {.threads = number % 5 == 4 ? 3 : 1, .products = mp::accumulation::ordered};
}

}  // namespace portability
