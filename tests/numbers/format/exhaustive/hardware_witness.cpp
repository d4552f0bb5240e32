// SPDX-License-Identifier: MIT
// The processor and foreign libraries as further witnesses: all 2^32 floats converted by the library, and by
// F16C, AVX512_BF16, the compiler's _Float16, Eigen and CUDA's host headers, as far as they are here. Every
// difference must be one of those that are documented below.
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

#include "numbers/format/exhaustive/progress.hpp"
#include "oracle/library.hpp"

#if __has_include(<eigen3/Eigen/Core>)
#include <eigen3/Eigen/Core>
#define HAS_EIGEN 1
#else
#define HAS_EIGEN 0
#endif
#if __has_include(<cuda_fp8.h>) && __has_include(<cuda_fp4.h>)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>
#define HAS_CUDA 1
#else
#define HAS_CUDA 0
#endif

namespace {

constexpr std::uint32_t block_size = 1U << 16;

/// Compares two functions of a float, block by block: `ours` and `theirs` give codes, and `documented` says
/// whether a difference at this input is a known one.
template <class Ours, class Theirs, class Documented>
bool compare(const char* name, Ours ours, Theirs theirs, Documented documented) {
    const unsigned threads = std::max(1U, std::thread::hardware_concurrency());
    exhaustive::progress bar(block_size);
    std::atomic<std::uint32_t> next{0};
    std::atomic<std::uint32_t> done{0};
    std::atomic<std::uint64_t> known{0};
    std::atomic<std::uint64_t> wrong{0};
    std::vector<std::thread> workers;
    for (unsigned t = 0; t < threads; ++t) {
        workers.emplace_back([&] {
            for (std::uint32_t block = next++; block < block_size; block = next++) {
                for (std::uint32_t low = 0; low < block_size; ++low) {
                    const std::uint32_t bits = block << 16 | low;
                    const float x = std::bit_cast<float>(bits);
                    const std::uint32_t a = ours(x);
                    const std::uint32_t b = theirs(x);
                    if (a == b) continue;
                    if (documented(bits, a, b)) {
                        ++known;
                    } else if (++wrong <= 3) {
                        std::fprintf(stderr, "%s: %08x gives %x here and %x there\n", name, bits, a, b);
                    }
                }
                ++done;
            }
        });
    }
    while (done < block_size) {
        bar.show(done, name);
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    for (std::thread& worker : workers) worker.join();
    bar.show(done, "done");
    bar.finish();
    std::printf("%s: %llu documented differences, %llu others, %.0f s\n", name,
                static_cast<unsigned long long>(known.load()), static_cast<unsigned long long>(wrong.load()),
                bar.seconds());
    return wrong == 0;
}

bool none(std::uint32_t, std::uint32_t, std::uint32_t) {
    return false;
}

bool is_nan(std::uint32_t single) {
    return (single & 0x7fffffff) > 0x7f800000;
}
#if HAS_EIGEN || HAS_CUDA
/// Makers of one canonical NaN: sign and payload are lost.
bool nan_only(std::uint32_t single, std::uint32_t, std::uint32_t) {
    return is_nan(single);
}
#endif

// The instructions are called through functions of their own target, so that the rest of the program, the
// library's conversions among it, is compiled for the baseline processor.
__attribute__((target("f16c"))) std::uint32_t by_f16c(float x) {
    return static_cast<std::uint32_t>(
        _mm_extract_epi16(_mm_cvtps_ph(_mm_set_ss(x), _MM_FROUND_TO_NEAREST_INT), 0));
}
__attribute__((target("f16c"))) std::uint32_t by_f16c_upward(float x) {
    return static_cast<std::uint32_t>(
        _mm_extract_epi16(_mm_cvtps_ph(_mm_set_ss(x), _MM_FROUND_TO_POS_INF), 0));
}
__attribute__((target("avx512bf16,avx512vl"))) std::uint32_t by_avx512_bf16(float x) {
    const __m128bh result = _mm_cvtneps_pbh(_mm_set_ss(x));
    return std::bit_cast<std::array<std::uint16_t, 8>>(result)[0];
}

}  // namespace

int main() {
    bool right = true;
    const auto to_half = [](float x) -> std::uint32_t { return mp::half(x).bits(); };
    const auto to_bfloat16 = [](float x) -> std::uint32_t { return mp::bfloat16(x).bits(); };
    if (__builtin_cpu_supports("f16c")) {
        right = compare("half, F16C", to_half, by_f16c, none) && right;
        right = compare(
                    "half, F16C upward",
                    [](float x) -> std::uint32_t {
                        return mp::round_to<mp::half>(x, {.round = mp::rounding::upward}).bits();
                    },
                    by_f16c_upward, none) &&
                right;
    }
    if (__builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vl")) {
        // The instruction takes subnormal floats for zeros.
        right = compare("bfloat16, AVX512_BF16", to_bfloat16, by_avx512_bf16,
                        [](std::uint32_t single, std::uint32_t, std::uint32_t theirs) {
                            return (single & 0x7f800000) == 0 && theirs == (single >> 16 & 0x8000);
                        }) &&
                right;
    }
#if defined(__FLT16_MAX__)
    right =
        compare(
            "half, _Float16", to_half,
            [](float x) -> std::uint32_t { return std::bit_cast<std::uint16_t>(static_cast<_Float16>(x)); },
            none) &&
        right;
#endif
#if HAS_EIGEN
    right =
        compare(
            "half, Eigen", to_half, [](float x) -> std::uint32_t { return Eigen::half(x).x; }, nan_only) &&
        right;
    right = compare(
                "bfloat16, Eigen", to_bfloat16,
                [](float x) -> std::uint32_t { return Eigen::bfloat16(x).value; }, nan_only) &&
            right;
#endif
#if HAS_CUDA
    right = compare(
                "half, CUDA's host code", to_half,
                [](float x) -> std::uint32_t { return __half_raw(__float2half_rn(x)).x; }, nan_only) &&
            right;
    right =
        compare(
            "bfloat16, CUDA's host code", to_bfloat16,
            [](float x) -> std::uint32_t { return __nv_bfloat16_raw(__float2bfloat16_rn(x)).x; }, nan_only) &&
        right;
    const auto e4m3 = [](float x) -> std::uint32_t { return mp::float8_e4m3fn(x).bits(); };
    const auto e5m2 = [](float x) -> std::uint32_t { return mp::float8_e5m2(x).bits(); };
    const auto saturating = []<class Value>(Value) {
        return [](float x) -> std::uint32_t {
            return mp::round_to<Value>(x, {.saturate = mp::saturation::finite}).bits();
        };
    };
    // Their NaN has no sign.
    right = compare(
                "e4m3fn, CUDA's host code", e4m3,
                [](float x) -> std::uint32_t { return __nv_cvt_float_to_fp8(x, __NV_NOSAT, __NV_E4M3); },
                [](std::uint32_t single, std::uint32_t ours, std::uint32_t theirs) {
                    return ((single & 0x7fffffff) > 0x43e80000) && (ours & 0x7f) == 0x7f && theirs == 0x7f;
                }) &&
            right;
    right = compare(
                "e5m2, CUDA's host code", e5m2,
                [](float x) -> std::uint32_t { return __nv_cvt_float_to_fp8(x, __NV_NOSAT, __NV_E5M2); },
                nan_only) &&
            right;
    right = compare(
                "e4m3fn, saturating, CUDA's host code", saturating(mp::float8_e4m3fn{}),
                [](float x) -> std::uint32_t { return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3); },
                nan_only) &&
            right;
    right = compare(
                "e5m2, saturating, CUDA's host code", saturating(mp::float8_e5m2{}),
                [](float x) -> std::uint32_t { return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E5M2); },
                nan_only) &&
            right;
    right =
        compare(
            "e2m3fn, CUDA's host code", saturating(mp::float6_e2m3fn{}),
            [](float x) -> std::uint32_t { return __nv_cvt_float_to_fp6(x, __NV_E2M3, cudaRoundNearest); },
            none) &&
        right;
    right =
        compare(
            "e3m2fn, CUDA's host code", saturating(mp::float6_e3m2fn{}),
            [](float x) -> std::uint32_t { return __nv_cvt_float_to_fp6(x, __NV_E3M2, cudaRoundNearest); },
            none) &&
        right;
    right =
        compare(
            "e2m1fn, CUDA's host code", saturating(mp::float4_e2m1fn{}),
            [](float x) -> std::uint32_t { return __nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundNearest); },
            none) &&
        right;
#endif
    return right ? 0 : 1;
}
