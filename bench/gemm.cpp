// SPDX-License-Identifier: MIT
// Matrix products C = A B of square and skinny shapes in one process with the peers that are installed. The
// counter GFLOP/s is 2 m n k over the time of one product. Shapes read m x k by k x n; everything is
// row-major except where a name says "transposed", which means B. Compare only numbers of one run, best with
//
//     bench_gemm --benchmark_enable_random_interleaving --benchmark_repetitions=9
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/gemm.hpp>
#include <mp/half.hpp>

#include <benchmark/benchmark.h>

#if MP_BENCH_HAS_EIGEN
#if defined(__GNUC__) && !defined(__clang__)
// The AVX-512 intrinsics of g++ 12 warn about their own deliberately undefined vectors when Eigen uses them.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <Eigen/Core>
#endif
#if MP_BENCH_HAS_OPENBLAS
#include <cblas.h>
#endif

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

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

void count_operations(benchmark::State& state, const shape& s) {
    const double operations = 2.0 * s.m * s.n * s.k * 1e-9;
    state.counters["GFLOP/s"] = benchmark::Counter(operations, benchmark::Counter::kIsIterationInvariantRate);
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
    count_operations(state, s);
    state.SetLabel(std::string(mp::gemm_kernel_name()));
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
    count_operations(state, s);
    state.SetLabel(openblas_get_corename());
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
    count_operations(state, s);
}
#endif

template <class Run>
void add(const std::string& name, Run run) {
    benchmark::RegisterBenchmark(name.c_str(), [run](benchmark::State& state) { run(state); })->UseRealTime();
}

bool register_all() {
    const shape shapes[] = {{64, 64, 64},       {128, 128, 128}, {256, 256, 256}, {512, 512, 512},
                            {1024, 1024, 1024}, {128, 10, 128},  {16, 1024, 1024}};
    for (const shape& s : shapes) {
        for (const bool transposed : {false, true}) {
            const std::string tail = std::string("/").append(text(s)) + (transposed ? "/transposed" : "");
            add("gemm/f32/mp" + tail,
                [=](benchmark::State& state) { run_mp<float, float, float>(state, s, transposed, 1); });
#if MP_BENCH_HAS_OPENBLAS
            add("gemm/f32/openblas" + tail,
                [=](benchmark::State& state) { run_openblas(state, s, transposed, 1); });
#endif
#if MP_BENCH_HAS_EIGEN
            add("gemm/f32/eigen" + tail,
                [=](benchmark::State& state) { run_eigen<float>(state, s, transposed); });
#endif
        }
    }
    for (const shape& s : {shape{256, 256, 256}, shape{512, 512, 512}, shape{1024, 1024, 1024}}) {
        const std::string tail = std::string("/").append(text(s));
        using mp::bfloat16;
        using mp::half;
        add("gemm/f16/mp" + tail,
            [=](benchmark::State& state) { run_mp<half, half, half>(state, s, false, 1); });
        add("gemm/bf16/mp" + tail,
            [=](benchmark::State& state) { run_mp<bfloat16, bfloat16, bfloat16>(state, s, false, 1); });
        add("gemm/f16_f32/mp" + tail,
            [=](benchmark::State& state) { run_mp<half, half, float>(state, s, false, 1); });
        add("gemm/e4m3_e5m2_f16/mp" + tail, [=](benchmark::State& state) {
            run_mp<mp::float8_e4m3fn, mp::float8_e5m2, half>(state, s, false, 1);
        });
    }
#if MP_BENCH_HAS_EIGEN
    // Eigen converts at every multiplication; the largest size would take seconds.
    const shape medium{256, 256, 256};
    add(std::string("gemm/f16/eigen/").append(text(medium)),
        [=](benchmark::State& state) { run_eigen<Eigen::half>(state, medium, false); });
    add(std::string("gemm/bf16/eigen/").append(text(medium)),
        [=](benchmark::State& state) { run_eigen<Eigen::bfloat16>(state, medium, false); });
#endif
    const shape large{1024, 1024, 1024};
    add(std::string("gemm/f32/mp/two_threads/").append(text(large)),
        [=](benchmark::State& state) { run_mp<float, float, float>(state, large, false, 2); });
#if MP_BENCH_HAS_OPENBLAS
    add(std::string("gemm/f32/openblas/two_threads/").append(text(large)),
        [=](benchmark::State& state) { run_openblas(state, large, false, 2); });
#endif
    return true;
}

[[maybe_unused]] const bool registered = register_all();

}  // namespace
