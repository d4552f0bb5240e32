// SPDX-License-Identifier: MIT
// Matrix products C = A B of square and skinny shapes, counted as 2 m n k operations. Shapes read m x k x n;
// everything is row-major. Each product is compared with one in double before it is timed. "packed B" is
// brought into the layout that the contender likes best outside of the time, as the weights of a network that
// only infers. The limit of a row is `peak`, the multiply-adds alone, or `reading B`, where a skinny product
// reads a large B once.
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/gemm.hpp>
#include <mp/half.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <benchmark/benchmark.h>

#if MP_BENCH_HAS_OPENBLAS
#include <cblas.h>
#endif

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "cells.hpp"
#include "limits/limits.hpp"
#include "peers.hpp"
#include "shared_memory.hpp"

#if MP_BENCH_HAS_ONEDNN
#include "peers/onednn.hpp"
#endif

namespace {

struct shape {
    int m;
    int n;
    int k;
};

/// A row of a table.
struct row {
    shape size;
    int threads;
};

std::string text(const row& it) {
    const shape& s = it.size;
    return std::to_string(s.m) + "x" + std::to_string(s.k) + "x" + std::to_string(s.n) +
           (it.threads == 2 ? ", two threads" : "");
}

std::size_t area(int rows, int columns) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
}

/// Matrices begin at a cache line, as they do where their owner cares for speed.
template <class Value>
struct line_allocator {
    using value_type = Value;
    static constexpr std::align_val_t line{64};

    line_allocator() = default;
    template <class Other>
    line_allocator(const line_allocator<Other>&) {}  // NOLINT(google-explicit-constructor)
    Value* allocate(std::size_t count) {
        return static_cast<Value*>(::operator new(count * sizeof(Value), line));
    }
    void deallocate(Value* memory, std::size_t) { ::operator delete(memory, line); }
    friend bool operator==(const line_allocator&, const line_allocator&) { return true; }
};
template <class Value>
using matrix = std::vector<Value, line_allocator<Value>>;

/// Numbers of both signs below one, the same in every run; all who ask for the same get the same memory.
/// `Which` tells the left factor from the right one.
template <class Value, int Which>
const matrix<Value>& numbers(int rows, int columns) {
    static std::map<std::size_t, matrix<Value>> all;
    matrix<Value>& result = all[area(rows, columns)];
    if (!result.empty()) return result;
    result.resize(area(rows, columns));
    std::uint32_t bits = 1 + Which;
    for (Value& x : result) {
        bits = bits * 1664525U + 1013904223U;
        x = static_cast<Value>(static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-31F);
    }
    return result;
}

template <class Value>
matrix<Value>& product_memory(int rows, int columns) {
    static std::map<std::size_t, matrix<Value>> all;
    matrix<Value>& result = all[area(rows, columns)];
    result.resize(area(rows, columns));
    return result;
}

double operations(const shape& s) {
    return 2.0 * s.m * s.n * s.k;
}

/// The rounding error that the sums of a contender may have, as a share of the sum of magnitudes.
constexpr double float_sums = 0x1p-20;
constexpr double reduced_sums = 0x1p-4;

/// Whether some elements of c = a b are what they should be, up to the roundings of sums and of the type of
/// c.
template <class A, class B, class C>
bool is_right(const shape& s, const C* c, double sum_error) {
    const A* const a = numbers<A, 0>(s.m, s.k).data();
    const B* const b = numbers<B, 1>(s.k, s.n).data();
    double unit = 0x1p-23;
    if constexpr (sizeof(C) == 2) unit = std::is_same_v<C, mp::half> ? 0x1p-10 : 0x1p-7;
    for (int trial = 0; trial < 32; ++trial) {
        const int i = trial * 7919 % s.m;
        const int j = trial * 104729 % s.n;
        double sum = 0;
        double magnitudes = 0;
        for (int l = 0; l < s.k; ++l) {
            const double term = static_cast<double>(static_cast<float>(a[area(i, s.k) + area(l, 1)])) *
                                static_cast<double>(static_cast<float>(b[area(l, s.n) + area(j, 1)]));
            sum += term;
            magnitudes += std::abs(term);
        }
        const double error =
            std::abs(static_cast<double>(static_cast<float>(c[area(i, s.n) + area(j, 1)])) - sum);
        if (!(error <= unit * std::abs(sum) + sum_error * magnitudes)) return false;
    }
    return true;
}

/// One thread is timed by its processor time, which other programs disturb less than the clock.
void use_clock(const row& it, benchmark::internal::Benchmark* cell) {
    if (it.threads > 1) cell->UseRealTime();
}

/// Adds a cell. `prepare()` gives what computes the product into C's memory, or nothing where the contender
/// cannot; it is called once. `after_run` is called after each run.
template <class A, class B, class C>
void add_product(const std::string& table, const row& it, const std::string& contender,
                 std::function<std::function<void()>()> prepare, std::function<void()> after_run = {},
                 double sum_error = float_sums) {
    struct preparation {
        std::function<void()> multiply;
        const char* failure = nullptr;
    };
    const auto prepared = std::make_shared<preparation>();
    use_clock(it, bench::add(table, text(it), contender, [=](benchmark::State& state) {
                  const shape& s = it.size;
                  C* const c = product_memory<C>(s.m, s.n).data();
                  if (!prepared->multiply && prepared->failure == nullptr) {
                      prepared->multiply = prepare();
                      if (prepared->multiply) {
                          prepared->multiply();
                          if (!is_right<A, B, C>(s, c, sum_error))
                              prepared->failure = "gives a wrong product";
                      } else {
                          prepared->failure = "cannot multiply these";
                      }
                  }
                  if (prepared->failure != nullptr) return state.SkipWithError(prepared->failure);
                  const std::function<void()>& multiply = prepared->multiply;
                  for (auto _ : state) {
                      multiply();
                      benchmark::DoNotOptimize(c);
                      benchmark::ClobberMemory();
                  }
                  if (after_run) after_run();
                  const double bytes = static_cast<double>(
                      sizeof(A) * area(s.m, s.k) + sizeof(B) * area(s.k, s.n) + sizeof(C) * area(s.m, s.n));
                  bench::count_operations(state, operations(s), bytes);
              }));
}

template <class A, class B, class C>
void add_mp(const std::string& table, const row& it) {
    const shape s = it.size;
    add_product<A, B, C>(table, it, "mp", [=] {
        const A* const a = numbers<A, 0>(s.m, s.k).data();
        const B* const b = numbers<B, 1>(s.k, s.n).data();
        C* const c = product_memory<C>(s.m, s.n).data();
        const auto workspace = std::make_shared<mp::gemm_workspace>();
        return [=] {
            mp::gemm(mp::cpu{it.threads}, 1.0F, mp::row_major(a, s.m, s.k), mp::row_major(b, s.k, s.n), 0.0F,
                     mp::row_major(c, s.m, s.n), mp::identity_epilogue{}, *workspace);
        };
    });
    add_product<A, B, C>(table, it, "mp packed B", [=] {
        const A* const a = numbers<A, 0>(s.m, s.k).data();
        C* const c = product_memory<C>(s.m, s.n).data();
        const auto b = std::make_shared<mp::packed_b<B>>(
            mp::cpu{it.threads}, mp::row_major(numbers<B, 1>(s.k, s.n).data(), s.k, s.n));
        const auto workspace = std::make_shared<mp::gemm_workspace>();
        return [=] {
            mp::gemm(mp::cpu{it.threads}, 1.0F, mp::row_major(a, s.m, s.k), *b, 0.0F,
                     mp::row_major(c, s.m, s.n), mp::identity_epilogue{}, *workspace);
        };
    });
}

/// Threads of a peer spin for a while after their work; they must not disturb what runs next.
[[maybe_unused]] void let_threads_fall_asleep(int threads) {
    if (threads > 1) std::this_thread::sleep_for(std::chrono::milliseconds(60));
}

#if MP_BENCH_HAS_OPENBLAS
void add_openblas(const std::string& table, const row& it) {
    const shape s = it.size;
    const auto prepare = [=] {
        const float* const a = numbers<float, 0>(s.m, s.k).data();
        const float* const b = numbers<float, 1>(s.k, s.n).data();
        float* const c = product_memory<float>(s.m, s.n).data();
        return [=] {
            openblas_set_num_threads(it.threads);
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, s.m, s.n, s.k, 1.0F, a, s.k, b, s.n, 0.0F,
                        c, s.n);
        };
    };
    add_product<float, float, float>(table, it, "OpenBLAS", prepare,
                                     [=] { let_threads_fall_asleep(it.threads); });
}
#endif

#if MP_BENCH_HAS_ONEDNN
template <class Value>
constexpr bench::onednn::data_type onednn_type =
    std::is_same_v<Value, float>      ? bench::onednn::data_type::f32
    : std::is_same_v<Value, mp::half> ? bench::onednn::data_type::f16
                                      : bench::onednn::data_type::bf16;

template <class A, class B, class C>
void add_onednn(const std::string& table, const row& it) {
    using bench::onednn::product;
    using layout = product::layout;
    const shape s = it.size;
    for (const layout of_b : {layout::plain, layout::packed}) {
        const auto prepare = [=]() -> std::function<void()> {
            const auto made =
                product::make(s.m, s.n, s.k, onednn_type<A>, onednn_type<B>, onednn_type<C>, of_b, it.threads,
                              numbers<A, 0>(s.m, s.k).data(), numbers<B, 1>(s.k, s.n).data(),
                              product_memory<C>(s.m, s.n).data());
            if (!made) return {};
            return [multiply = std::make_shared<product>(*made)] {
                multiply->use_threads();
                (*multiply)();
            };
        };
        add_product<A, B, C>(table, it, of_b == layout::plain ? "oneDNN" : "oneDNN packed B", prepare,
                             [=] { let_threads_fall_asleep(it.threads); });
    }
}
#endif

#if MP_BENCH_HAS_EIGEN
/// `Peer` is Eigen's type with the layout of Value. On one thread, since Eigen would need OpenMP in all of
/// the program for more.
template <class Value, class Peer>
void add_eigen(const std::string& table, const row& it) {
    using matrix = Eigen::Matrix<Peer, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    const shape s = it.size;
    const auto prepare = [=] {
        const auto* const a = reinterpret_cast<const Peer*>(numbers<Value, 0>(s.m, s.k).data());
        const auto* const b = reinterpret_cast<const Peer*>(numbers<Value, 1>(s.k, s.n).data());
        auto* const c = reinterpret_cast<Peer*>(product_memory<Value>(s.m, s.n).data());
        return [=] {
            Eigen::Map<matrix>(c, s.m, s.n).noalias() =
                Eigen::Map<const matrix>(a, s.m, s.k) * Eigen::Map<const matrix>(b, s.k, s.n);
        };
    };
    constexpr bool in_float = std::is_same_v<Value, float>;
    add_product<Value, Value, Value>(table, it, "Eigen", prepare, {}, in_float ? float_sums : reduced_sums);
    if (!in_float) bench::add_note(table, "Eigen rounds sums to the reduced format after each addition.");
}
#endif

/// What the machine could do at most: its multiply-adds for these factors, and for skinny products reading B.
template <class B>
void add_limits(const std::string& table, const row& it, const bench::limits::peak* peak) {
    const shape s = it.size;
    if (peak != nullptr && s.m > 1) {
        use_clock(it, bench::add(
                          table, text(it), "peak",
                          [=](benchmark::State& state) {
                              // Long enough to start threads for.
                              const double enough = it.threads == 1 ? 1e8 : 2e9;
                              double done = 0;
                              for (auto _ : state) done = bench::limits::run(*peak, enough, it.threads);
                              bench::count_operations(state, done);
                          },
                          bench::role::limit));
    }
    if (s.m < 64) {
        use_clock(it, bench::add(
                          table, text(it), "reading B",
                          [=](benchmark::State& state) {
                              const std::size_t bytes = sizeof(B) * area(s.k, s.n);
                              const char* const from = bench::shared_memory<char, 0>(bytes);
                              for (auto _ : state) bench::limits::read(from, bytes, it.threads);
                              bench::count_operations(state, operations(s), static_cast<double>(bytes));
                          },
                          bench::role::limit));
    }
}

std::vector<row> rows(bool skinny, bool two_threads) {
    std::vector<row> result;
    for (const int threads : {1, 2}) {
        if (threads == 2 && !two_threads) continue;
        for (const int size : {256, 512, 1024, 2048}) {
            if (size == 2048 && (bench::quick() || !skinny)) continue;
            if (size < 1024 && threads == 2) continue;
            result.push_back({{size, size, size}, threads});
        }
        if (!skinny) continue;
        for (const int m : {1, 16}) result.push_back({{m, 4096, 4096}, threads});
    }
    return result;
}

/// A table for products of factors of the types A and B to C. `Peer` is Eigen's type for all three, or void.
template <class A, class B, class C, class Peer = void>
void register_products(const std::string& table, const bench::limits::peak* peak, bool all_rows = true) {
    for (const row& it : rows(all_rows, all_rows)) {
        add_mp<A, B, C>(table, it);
#if MP_BENCH_HAS_ONEDNN
        if constexpr (sizeof(A) > 1 && sizeof(B) > 1) {
            // It has no kernel for binary16, and refuses it.
            if constexpr (!std::is_same_v<A, mp::half>) add_onednn<A, B, C>(table, it);
        }
#endif
#if MP_BENCH_HAS_OPENBLAS
        if constexpr (std::is_same_v<A, float>) add_openblas(table, it);
#endif
#if MP_BENCH_HAS_EIGEN
        if constexpr (!std::is_void_v<Peer>) {
            // Where Eigen converts at every multiplication, larger sizes would take seconds.
            const bool slow = !std::is_same_v<Peer, float>;
            if (it.threads == 1 && !(slow && it.size.m != 256)) add_eigen<A, Peer>(table, it);
        }
#endif
        add_limits<B>(table, it, peak);
    }
}

}  // namespace

void bench::register_benchmarks() {
    using mp::bfloat16;
    using mp::half;
    const limits::peak* const float_peak = limits::float_peak();
    const limits::peak* const bfloat16_peak = limits::bfloat16_peak();
#if MP_BENCH_HAS_EIGEN
    register_products<float, float, float, float>("float matrix product", float_peak);
    register_products<bfloat16, bfloat16, bfloat16, Eigen::bfloat16>("bfloat16 matrix product",
                                                                     bfloat16_peak);
    register_products<half, half, half, Eigen::half>("half matrix product", float_peak);
#else
    register_products<float, float, float>("float matrix product", float_peak);
    register_products<bfloat16, bfloat16, bfloat16>("bfloat16 matrix product", bfloat16_peak);
    register_products<half, half, half>("half matrix product", float_peak);
#endif
    register_products<half, half, float>("half by half to float", float_peak, false);
    register_products<mp::float8_e4m3fn, mp::float8_e5m2, half>("float8_e4m3fn by float8_e5m2 to half",
                                                                float_peak, false);
    add_note("float matrix product",
             "mp may use the instruction set " + std::string(mp::name_of(mp::best_instruction_set())) + ".");
    if (bfloat16_peak != nullptr) {
        add_note("bfloat16 matrix product", "The peak is " + std::string(bfloat16_peak->name) + ".");
    }
    if (float_peak != nullptr) {
        add_note("half matrix product",
                 "Sums are in float: the peak is " + std::string(float_peak->name) + ".");
    }
#if MP_BENCH_HAS_ONEDNN
    add_note("bfloat16 matrix product",
             "oneDNN is " + onednn::description() + "; its instructions take subnormal numbers for zero.");
    add_note("half matrix product", "oneDNN 2.6 has no product of half matrices on CPUs.");
#endif
}
