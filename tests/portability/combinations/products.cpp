// SPDX-License-Identifier: MIT
// Matrix products of mixed element types: shapes for each internal path, all storage orders, with padding, scaling,
// several threads, packed operands and memory of the caller's.
#include <mp/gemm.hpp>

#include "combinations.hpp"

namespace portability {

namespace {

struct shape {
    std::ptrdiff_t m, n, k;
};
constexpr shape middle[] = {{8, 16, 17}, {16, 8, 33}, {17, 33, 8},  {33, 17, 16}, {5, 64, 33}, {64, 5, 17},
                            {2, 130, 3}, {130, 2, 5}, {16, 64, 64}, {33, 33, 33}, {17, 1, 64}, {64, 64, 2}};
// Few rows with k * n >= 8192, or few columns: dot products where b (or a) has contiguous columns (or rows).
constexpr shape with_few[] = {{1, 130, 64}, {3, 64, 130}, {16, 130, 64}, {17, 64, 130},
                              {8, 130, 33}, {64, 1, 130}, {130, 5, 64},  {130, 16, 130}};
constexpr shape large[] = {{64, 64, 130}, {130, 33, 64}, {33, 130, 130}};
constexpr float alphas[] = {1.0F, 0.5F, 1.0F, 0.5F, 1.0F, 0.0F, 0.5F, 1.0F, 0.5F, 1.0F, 0.5F};
constexpr float betas[] = {1.0F, 0.5F, 0.0F};

/// Products of one mix of types.
template <class A, class B, class C>
class mix {
public:
    explicit mix(combinations& to) : to_(to), name_("products." + type_names<A, B, C>()) {}

    void run() {
        for (const std::ptrdiff_t m : {1, 3, 5}) {
            for (const std::ptrdiff_t n : {1, 2, 5}) {
                for (const std::ptrdiff_t k : {1, 3, 5}) in_all_orders(".tiny", {m, n, k});
            }
        }
        for (const shape& it : middle) in_all_orders(".middle", it);
        for (const shape& it : with_few) in_all_orders(".few", it);
        for (const shape& it : large) in_all_orders(".large", it);
        for (const shape& it : {shape{3, 5, 0}, shape{17, 33, 0}, shape{0, 5, 3}, shape{5, 0, 3}}) {
            in_all_orders(".empty", it);
        }
    }

private:
    void in_all_orders(const char* kind, const shape& size) {
        for (unsigned orders = 0; orders < 8; ++orders) {
            ++number_;
            const bool special = number_ % 7 == 3;
            const stored_matrix<A> a(size.m, size.k, (orders & 1U) != 0, number_ % 3, number_, special);
            const stored_matrix<B> b(size.k, size.n, (orders & 2U) != 0, number_ % 5, number_ + 1, special);
            const stored_matrix<C> c(size.m, size.n, (orders & 4U) != 0, number_ % 7, number_ + 2);
            multiply(kind, a, b, c, mp::accumulation::ordered);
            multiply(kind, a, b, c, mp::accumulation::fastest);
        }
    }

    void multiply(const char* kind, const stored_matrix<A>& a, const stored_matrix<B>& b,
                  const stored_matrix<C>& before, mp::accumulation products) {
        const bool is_ordered = products == mp::accumulation::ordered;
        mp::cpu exec{.threads = number_ % 5 == 4 ? 3 : 1, .products = products};
        // Every other small product by the portable kernels.
        if (number_ / 3 % 2 == 0 && a.rows * a.columns * b.columns < 3000) {
            exec.instructions = mp::instruction_set::portable;
        }
        const float alpha = alphas[number_ % 11];
        const float beta = betas[number_ / 2 % 3];
        const auto keep = [&](const stored_matrix<C>& c) {
            const std::string name = name_ + kind;
            if (is_ordered) {
                to_.add(name, c.values);
            } else {
                to_.add_local(name, c.values);
            }
        };
        stored_matrix<C> c = before;
        mp::gemm(exec, alpha, a.view(), b.view(), beta, c.view());
        keep(c);
        if (number_ % 3 == 0) {
            mp::gemm(exec, 1.0F, a.view(), b.view(), 1.0F, c.view(), mp::identity_epilogue{}, workspace_);
            keep(c);
        }
        if (number_ % 3 == 1) {
            const mp::packed_b<B> packed(exec, b.view());
            mp::gemm(exec, 1.0F, a.view(), packed, beta, c.view());
            keep(c);
        }
    }

    combinations& to_;
    std::string name_;
    unsigned number_ = 0;
    mp::gemm_workspace workspace_;
};

template <class A, class B, class C>
void add_mix(combinations& to) {
    mix<A, B, C>(to).run();
}

}  // namespace

void add_product_combinations(combinations& to) {
    using mp::bfloat16, mp::half, mp::tfloat32;
    using e4m3 = mp::float8_e4m3fn;
    using e5m2 = mp::float8_e5m2;
    using int8 = std::int8_t;
    add_mix<float, float, float>(to);
    add_mix<float, float, half>(to);
    add_mix<float, float, double>(to);
    add_mix<half, half, half>(to);
    add_mix<half, half, float>(to);
    add_mix<half, half, e4m3>(to);
    add_mix<bfloat16, bfloat16, bfloat16>(to);
    add_mix<bfloat16, bfloat16, float>(to);
    add_mix<bfloat16, bfloat16, e5m2>(to);
    add_mix<float, half, float>(to);
    add_mix<half, float, half>(to);
    add_mix<float, bfloat16, bfloat16>(to);
    add_mix<bfloat16, float, float>(to);
    add_mix<half, bfloat16, float>(to);
    add_mix<bfloat16, half, half>(to);
    add_mix<e4m3, e4m3, half>(to);
    add_mix<e4m3, e5m2, bfloat16>(to);
    add_mix<e5m2, e4m3, float>(to);
    add_mix<bfloat16, e4m3, bfloat16>(to);
    add_mix<e5m2, float, float>(to);
    add_mix<tfloat32, tfloat32, float>(to);
    add_mix<int8, int8, float>(to);
    add_mix<float, int8, float>(to);
    add_mix<half, int8, half>(to);
    add_mix<custom_float, custom_float, custom_float>(to);
    add_mix<custom_float, float, half>(to);
}

}  // namespace portability
