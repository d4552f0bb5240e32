// SPDX-License-Identifier: MIT
// A product that has a workspace allocates nothing once that has grown, and a small one never does.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/gemm.hpp>
#include <mp/half.hpp>

#include <cstddef>
#include <vector>

#include "count_allocations.hpp"

namespace {

template <class Value>
struct square_product {
    explicit square_product(std::ptrdiff_t size)
        : n(size),
          a(static_cast<std::size_t>(n * n), Value(1.0F)),
          b(a),
          c(static_cast<std::size_t>(n * n)) {}

    void operator()(mp::gemm_workspace& workspace) {
        mp::gemm(mp::cpu{}, 1.0F, mp::row_major(a.data(), n, n), mp::row_major(b.data(), n, n), 0.0F,
                 mp::row_major(c.data(), n, n), {}, workspace);
    }
    void operator()() {
        mp::gemm(mp::cpu{}, 1.0F, mp::row_major(a.data(), n, n), mp::row_major(b.data(), n, n), 0.0F,
                 mp::row_major(c.data(), n, n));
    }

    std::ptrdiff_t n;
    std::vector<Value> a;
    std::vector<Value> b;
    std::vector<float> c;
};

template <class Value>
void check_workspace() {
    for (const std::ptrdiff_t n : {3, 40, 130, 600}) {
        CAPTURE(n);
        square_product<Value> product(n);
        mp::gemm_workspace workspace;
        product(workspace);
        const long before = allocations;
        for (int i = 0; i < 3; ++i) product(workspace);
        CHECK(allocations == before);
        CHECK(product.c.back() == static_cast<float>(n));
    }
}

TEST_CASE("products with a workspace allocate nothing after the first") {
    check_workspace<float>();
    check_workspace<mp::half>();
    check_workspace<mp::bfloat16>();
}

TEST_CASE("small products of float and bfloat16 allocate nothing at all on processors with vectors") {
    if (mp::processor_instruction_set() < mp::instruction_set::avx512) return;  // smaller tiles pack more
    square_product<float> of_float(64);
    square_product<mp::bfloat16> of_bfloat16(64);
    mp::gemm_workspace workspace;
    const long before = allocations;
    of_float();
    if (mp::processor_instruction_set() >= mp::instruction_set::amx) of_bfloat16();
    of_float(workspace);
    CHECK(allocations == before);
    CHECK(workspace.size() == 0);
    // The counter counts.
    int* volatile counted_too = new int(5);
    delete counted_too;
    CHECK(allocations > before);
}

}  // namespace
