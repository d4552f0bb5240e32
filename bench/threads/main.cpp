// SPDX-License-Identifier: MIT
// Small work on one thread, on two that are started for each call, and on the two of an mp::thread_pool: medians of
// turns taken one after the other.
//
//     g++ -std=c++20 -O2 -Iinclude bench/threads/main.cpp -o threads -pthread && ./threads
#include <mp/gemm.hpp>
#include <mp/nn/ops/softmax.hpp>
#include <mp/thread_pool.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <vector>

namespace {

/// Microseconds of a call.
template <class Work>
double time_of(int calls, const Work& work) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) work();
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
    return time.count() / calls;
}

template <class Work>
void print_row(const char* name, const Work& work) {
    mp::thread_pool pool(2);
    const std::array<mp::cpu, 3> executors = {mp::cpu{}, mp::cpu{.threads = 2},
                                              mp::cpu{.threads = pool.threads(), .pool = &pool}};
    constexpr int turns = 201;
    constexpr int calls = 10;
    std::array<std::vector<double>, 3> times;
    for (int turn = 0; turn < turns; ++turn) {
        for (std::size_t i = 0; i < executors.size(); ++i) {
            work(executors[i]);  // caches and threads are warm
            times[i].push_back(time_of(calls, [&] { work(executors[i]); }));
        }
    }
    std::array<double, 3> median{};
    for (std::size_t i = 0; i < executors.size(); ++i) {
        std::nth_element(times[i].begin(), times[i].begin() + turns / 2, times[i].end());
        median[i] = times[i][turns / 2];
    }
    std::printf("| %s | %.1f | %.1f | %.1f | %.2f |\n", name, median[0], median[1], median[2],
                median[0] / median[2]);
}

void print_product(const char* name, std::ptrdiff_t size) {
    const std::vector<float> a(static_cast<std::size_t>(size * size), 0.5F);
    std::vector<float> c(a.size());
    print_row(name, [&](const mp::cpu& exec) {
        mp::gemm(exec, 1, mp::row_major(a.data(), size, size), mp::row_major(a.data(), size, size), 0,
                 mp::row_major(c.data(), size, size));
    });
}

}  // namespace

int main() {
    std::printf("| float | one thread, us | two per call, us | pool of two, us | one / pool |\n");
    std::printf("|---|---:|---:|---:|---:|\n");
    print_row("an empty call", [](const mp::cpu& exec) {
        mp::detail::parallel_for(exec, 2, 1, [](std::size_t, std::size_t) {});
    });
    print_product("gemm 64 x 64 x 64", 64);
    print_product("gemm 96 x 96 x 96", 96);
    print_product("gemm 128 x 128 x 128", 128);
    print_product("gemm 256 x 256 x 256", 256);
    const std::vector<float> x(256 * 512, 0.5F);
    std::vector<float> y(x.size());
    print_row("softmax 256 x 512", [&](const mp::cpu& exec) {
        mp::ops::softmax(exec, mp::row_major(x.data(), 256, 512), mp::row_major(y.data(), 256, 512));
    });
}
