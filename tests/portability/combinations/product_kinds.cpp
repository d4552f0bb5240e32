// SPDX-License-Identifier: MIT
// Batches and groups of matrix products, products with scales along k, and products of integers.
#include <mp/gemm.hpp>

#include "combinations.hpp"

#include <span>

namespace portability {

namespace {

constexpr std::ptrdiff_t count = 3;

/// Products of one mix of types with one shape.
template <class A, class B, class C>
class several {
public:
    several(combinations& to, std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k, unsigned number)
        : to_(to), m_(m), n_(n), k_(k), number_(number) {}

    void run(mp::accumulation products) {
        exec_.products = products;
        exec_.threads = number_ % 3 == 2 ? 3 : 1;
        plain();
        scaled();
    }

private:
    using offset_list = std::span<const std::int32_t>;

    void keep(const char* name, const std::vector<C>& c) {
        const std::string whole = std::string(name) + "." + type_names<A, B, C>();
        if (exec_.products == mp::accumulation::ordered) {
            to_.add(whole, c);
        } else {
            to_.add_local(whole, c);
        }
    }

    /// Calls f with C and its first matrix of `rows`, for a batch of `matrices`.
    template <class Function>
    void into(const char* name, std::ptrdiff_t rows, std::ptrdiff_t matrices, Function f) {
        const std::ptrdiff_t ld = (by_column_ ? rows : n_) + 1;
        const std::ptrdiff_t stride = ld * (by_column_ ? n_ : rows) + 2;
        std::vector<C> c = numbers<C>(static_cast<std::size_t>(matrices * stride), number_ + 3);
        f(mp::matrix_batch<C>{{c.data(), rows, n_, ld,
                               by_column_ ? mp::storage_order::column_major : mp::storage_order::row_major},
                              stride});
        keep(name, c);
    }

    void plain() {
        const auto bias = numbers<float>(static_cast<std::size_t>(n_), number_ + 4);
        const auto ending = mp::compose(mp::bias_per_column(bias), mp::gelu_tanh_epilogue{});
        into("batched", m_, count,
             [&](auto c) { mp::gemm_batched(exec_, count, 0.5F, batch(a_), batch(b_), 0.5F, c); });
        into("batched", m_, count, [&](auto c) {
            mp::gemm_batched(exec_, count, 1.0F, batch(a_), mp::matrix_batch{batch(b_).first}, 0.0F, c,
                             ending);
        });
        into("masked", m_, count, [&](auto c) {
            mp::gemm_masked(exec_, 1.0F, batch(a_), batch(b_), offset_list(counts_), 0.5F, c, ending);
        });
        into("grouped_m", count * m_, 1, [&](auto c) {
            mp::gemm_grouped_m(exec_, 1.0F, tall(), batch(b_), offset_list(rows_), 0.5F, c.first, ending);
        });
        into("grouped_k", m_, count, [&](auto c) {
            mp::gemm_grouped_k(exec_, 0.5F, batch(a_).first, batch(b_).first, offset_list(along_k_), 0.5F, c);
        });
    }

    void scaled() {
        const std::ptrdiff_t blocks = (k_ + mp::k_per_scale - 1) / mp::k_per_scale;
        const auto of_a = numbers<float>(static_cast<std::size_t>(count * m_ * blocks), number_ + 5);
        const auto of_b = numbers<float>(static_cast<std::size_t>(n_ * blocks), number_ + 6);
        const mp::k_block_scales a_scales{mp::row_major(of_a.data(), count * m_, blocks), 1};
        const mp::k_block_scales b_scales{mp::row_major(of_b.data(), blocks, n_), 1};
        const mp::k_block_scales wide{mp::row_major(of_b.data(), blocks, (n_ + 127) / 128), 128};
        into("scaled", count * m_, 1, [&](auto c) {
            mp::gemm_scaled(exec_, 1.0F, tall(), a_scales, batch(b_).first, b_scales, 0.5F, c.first,
                            mp::relu_epilogue{});
        });
        into("scaled", count * m_, 1, [&](auto c) {
            mp::gemm_scaled(exec_, 1.0F, tall(), a_scales, batch(b_).first, wide, 0.0F, c.first,
                            mp::relu_epilogue{});
        });
        into("scaled_grouped_m", count * m_, 1, [&](auto c) {
            mp::gemm_scaled_grouped_m(exec_, 1.0F, tall(), a_scales, batch(b_), {b_scales, 0},
                                      offset_list(rows_), 0.5F, c.first);
        });
    }

    template <class T>
    static mp::matrix_batch<const T> batch(const stored_matrix<T>& all) {
        // Each matrix as high or wide as all of them are on the other side.
        const std::ptrdiff_t rows = all.order == mp::storage_order::row_major ? all.rows / count : all.rows;
        const std::ptrdiff_t columns =
            all.order == mp::storage_order::row_major ? all.columns : all.columns / count;
        const std::ptrdiff_t vectors = all.order == mp::storage_order::row_major ? rows : columns;
        return {{all.values.data(), rows, columns, all.leading_dimension, all.order},
                vectors * all.leading_dimension};
    }
    /// The matrices of A above each other.
    [[nodiscard]] mp::matrix_view<const A> tall() const {
        return mp::row_major(a_.values.data(), count * m_, k_, k_ + 1);
    }

    combinations& to_;
    std::ptrdiff_t m_, n_, k_;
    unsigned number_;
    bool by_column_ = number_ % 2 == 1;
    mp::cpu exec_{};
    stored_matrix<A> a_{count * m_, k_, false, 1, number_};
    stored_matrix<B> b_{number_ % 4 < 2 ? count * k_ : k_, number_ % 4 < 2 ? n_ : count* n_, number_ % 4 >= 2,
                        2, number_ + 1};
    std::int32_t counts_[count] = {static_cast<std::int32_t>(m_), 0, static_cast<std::int32_t>(m_ / 2)};
    std::int32_t rows_[count + 1] = {0, static_cast<std::int32_t>(m_ / 2), static_cast<std::int32_t>(m_ / 2),
                                     static_cast<std::int32_t>(count* m_)};
    std::int32_t along_k_[count + 1] = {0, static_cast<std::int32_t>(k_ / 3),
                                        static_cast<std::int32_t>(k_ / 3), static_cast<std::int32_t>(k_)};
};

template <class A, class B, class C>
void add_mix(combinations& to) {
    constexpr std::ptrdiff_t shapes[][3] = {{1, 1, 1},   {3, 5, 8},    {5, 3, 17},   {8, 33, 16},
                                            {33, 8, 64}, {2, 64, 130}, {64, 2, 130}, {17, 130, 260}};
    unsigned number = 0;
    for (const auto& [m, n, k] : shapes) {
        for (int i = 0; i < 6; ++i, ++number) {
            several<A, B, C> products(to, m, n, k, number);
            products.run(mp::accumulation::ordered);
            products.run(mp::accumulation::fastest);
        }
    }
}

void add_integers(combinations& to) {
    constexpr std::ptrdiff_t shapes[][3] = {{1, 1, 1}, {3, 5, 8}, {17, 33, 64}, {64, 33, 130}, {5, 2, 2100}};
    unsigned number = 0;
    for (const auto& [m, n, k] : shapes) {
        for (unsigned orders = 0; orders < 8; ++orders, ++number) {
            const stored_matrix<std::int8_t> a(m, k, (orders & 1U) != 0, 1, number);
            const stored_matrix<std::int8_t> b(k, n, (orders & 2U) != 0, 0, number + 1);
            const bool by_column = (orders & 4U) != 0;
            std::vector<std::int32_t> c(static_cast<std::size_t>(m * n));
            for (std::size_t i = 0; i < c.size(); ++i) c[i] = static_cast<std::int32_t>(i * i) - 1000;
            for (const std::int32_t beta : {0, 3}) {
                mp::gemm(mp::cpu{.threads = number % 3 == 0 ? 3 : 1}, 2, a.view(), b.view(), beta,
                         by_column ? mp::column_major(c.data(), m, n) : mp::row_major(c.data(), m, n));
                to.add("integers", c);
            }
        }
    }
}

}  // namespace

void add_product_kind_combinations(combinations& to) {
    using mp::bfloat16, mp::half;
    add_mix<float, float, float>(to);
    add_mix<half, half, half>(to);
    add_mix<bfloat16, bfloat16, float>(to);
    add_mix<half, float, half>(to);
    add_mix<mp::float8_e4m3fn, mp::float8_e4m3fn, bfloat16>(to);
    add_integers(to);
}

}  // namespace portability
