// SPDX-License-Identifier: MIT
// Matrix products C = A B of square and skinny shapes, counted as 2 m n k operations. Shapes read m x k x n;
// everything is row-major except where a row says "B transposed". On one core unless said otherwise.
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/gemm.hpp>
#include <mp/half.hpp>

#include <benchmark/benchmark.h>

#if MP_BENCH_HAS_OPENBLAS
#include <cblas.h>
#endif

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <type_traits>
#include <vector>

#include "peers.hpp"
#include "table_reporter.hpp"

namespace {

struct shape {
    int m;
    int n;
    int k;
};

std::string text(const shape& s) {
    return std::to_string(s.m) + "x" + std::to_string(s.k) + "x" + std::to_string(s.n);
}

/// Numbers of both signs below one, the same in every run.
template <class Value>
std::vector<Value> numbers(int rows, int columns) {
    std::vector<Value> result(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
    std::uint32_t bits = 1;
    for (Value& x : result) {
        bits = bits * 1664525U + 1013904223U;
        x = static_cast<Value>(static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-31F);
    }
    return result;
}

double operations(const shape& s) {
    return 2.0 * s.m * s.n * s.k;
}

template <class A, class B, class C>
void run_mp(benchmark::State& state, const shape& s, bool transposed, int threads) {
    const std::vector<A> a = numbers<A>(s.m, s.k);
    const std::vector<B> b = numbers<B>(s.k, s.n);
    std::vector<C> c(static_cast<std::size_t>(s.m) * static_cast<std::size_t>(s.n));
    const auto b_view = transposed ? mp::column_major(b.data(), s.k, s.n) : mp::row_major(b.data(), s.k, s.n);
    for (auto _ : state) {
        mp::gemm(mp::cpu{threads}, 1.0F, mp::row_major(a.data(), s.m, s.k), b_view, 0.0F,
                 mp::row_major(c.data(), s.m, s.n));
        benchmark::DoNotOptimize(c.data());
        benchmark::ClobberMemory();
    }
    bench::count_operations(state, operations(s));
}

#if MP_BENCH_HAS_OPENBLAS
void run_openblas(benchmark::State& state, const shape& s, bool transposed, int threads) {
    openblas_set_num_threads(threads);
    const std::vector<float> a = numbers<float>(s.m, s.k);
    const std::vector<float> b = numbers<float>(s.k, s.n);
    std::vector<float> c(static_cast<std::size_t>(s.m) * static_cast<std::size_t>(s.n));
    for (auto _ : state) {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, transposed ? CblasTrans : CblasNoTrans, s.m, s.n, s.k, 1.0F,
                    a.data(), s.k, b.data(), transposed ? s.k : s.n, 0.0F, c.data(), s.n);
        benchmark::DoNotOptimize(c.data());
        benchmark::ClobberMemory();
    }
    bench::count_operations(state, operations(s));
}
#endif

#if MP_BENCH_HAS_EIGEN
template <class Value>
void run_eigen(benchmark::State& state, const shape& s, bool transposed) {
    using matrix = Eigen::Matrix<Value, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    using column_matrix = Eigen::Matrix<Value, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor>;
    const std::vector<float> a_numbers = numbers<float>(s.m, s.k);
    const std::vector<float> b_numbers = numbers<float>(s.k, s.n);
    const auto map = [](const std::vector<float>& data, int rows, int columns) {
        return Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
            data.data(), rows, columns);
    };
    const matrix a = map(a_numbers, s.m, s.k).template cast<Value>();
    const matrix b = map(b_numbers, s.k, s.n).template cast<Value>();
    const column_matrix b_transposed = b;
    matrix c(s.m, s.n);
    for (auto _ : state) {
        if (transposed) {
            c.noalias() = a * b_transposed;
        } else {
            c.noalias() = a * b;
        }
        benchmark::DoNotOptimize(c.data());
        benchmark::ClobberMemory();
    }
    bench::count_operations(state, operations(s));
}
#endif

constexpr shape square_shapes[] = {{64, 64, 64}, {256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024}};
constexpr shape skinny_shapes[] = {{128, 10, 128}, {16, 1024, 1024}};

void register_float() {
    const std::string table = "float matrix product";
    std::vector<shape> shapes(std::begin(square_shapes), std::end(square_shapes));
    shapes.insert(shapes.end(), std::begin(skinny_shapes), std::end(skinny_shapes));
    for (const shape& s : shapes) {
        for (const bool transposed : {false, true}) {
            const std::string row = text(s) + (transposed ? ", B transposed" : "");
            bench::add(table, row, "mp", [=](benchmark::State& state) {
                run_mp<float, float, float>(state, s, transposed, 1);
            });
#if MP_BENCH_HAS_OPENBLAS
            bench::add(table, row, "OpenBLAS",
                       [=](benchmark::State& state) { run_openblas(state, s, transposed, 1); });
#endif
#if MP_BENCH_HAS_EIGEN
            bench::add(table, row, "Eigen",
                       [=](benchmark::State& state) { run_eigen<float>(state, s, transposed); });
#endif
        }
    }
    const shape large{1024, 1024, 1024};
    const std::string row = text(large) + ", two threads";
    bench::add(table, row, "mp", [=](benchmark::State& state) {
        run_mp<float, float, float>(state, large, false, 2);
    })->UseRealTime();
#if MP_BENCH_HAS_OPENBLAS
    bench::add(table, row, "OpenBLAS", [=](benchmark::State& state) {
        run_openblas(state, large, false, 2);
    })->UseRealTime();
#endif
}

/// The formats of A, B and C; `Peer` is Eigen's type for all three, or void.
template <class A, class B, class C, class Peer = void>
void register_reduced(const std::string& table) {
    for (const shape& s : square_shapes) {
        bench::add(table, text(s), "mp",
                   [=](benchmark::State& state) { run_mp<A, B, C>(state, s, false, 1); });
#if MP_BENCH_HAS_EIGEN
        // Eigen converts at every multiplication: larger sizes would take seconds.
        if constexpr (!std::is_void_v<Peer>) {
            if (s.m > 256) continue;
            bench::add(table, text(s), "Eigen",
                       [=](benchmark::State& state) { run_eigen<Peer>(state, s, false); });
        }
#endif
    }
}

}  // namespace

void bench::register_benchmarks() {
    using mp::bfloat16;
    using mp::half;
    register_float();
#if MP_BENCH_HAS_EIGEN
    register_reduced<half, half, half, Eigen::half>("half matrix product");
    register_reduced<bfloat16, bfloat16, bfloat16, Eigen::bfloat16>("bfloat16 matrix product");
#else
    register_reduced<half, half, half>("half matrix product");
    register_reduced<bfloat16, bfloat16, bfloat16>("bfloat16 matrix product");
#endif
    register_reduced<half, half, float>("half by half to float");
    register_reduced<mp::float8_e4m3fn, mp::float8_e5m2, half>("float8_e4m3fn by float8_e5m2 to half");
    const std::string kernel = "mp ran its kernel " + std::string(mp::gemm_kernel_name()) + ".";
    bench::add_note("float matrix product", kernel);
}
