// SPDX-License-Identifier: MIT
// Multiply-adds from registers alone. In assembly, since nothing else keeps a compiler from removing what
// nobody needs; with as many accumulators as hide the latency of the instructions.
#include <mp/config.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

#include "limits.hpp"

namespace bench::limits {
namespace {

#if MP_X86_TARGETS

#define MP_BENCH_VECTOR_REGISTERS                                                                     \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", \
        "xmm12", "xmm13", "xmm14", "xmm15"
#define MP_BENCH_UPPER_VECTOR_REGISTERS                                                                \
    "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", \
        "xmm27", "xmm28", "xmm29", "xmm30", "xmm31"

// 0 * 0 + 0 takes as long as any other numbers do.
__attribute__((target("avx2,fma"))) void float_avx2(std::int64_t rounds) {
    __asm__ volatile(
        ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
        "vxorps %%ymm\\r, %%ymm\\r, %%ymm\\r\n"
        ".endr\n"
        "1:\n"
        ".irp r,0,1,2,3,4,5,6,7,8,9,10,11\n"
        "vfmadd231ps %%ymm14, %%ymm15, %%ymm\\r\n"
        ".endr\n"
        "dec %0\n"
        "jnz 1b\n"
        "vzeroupper\n"
        : "+r"(rounds)
        :
        : "cc", MP_BENCH_VECTOR_REGISTERS);
}

/// Rounds of 24 instructions with three registers of 64 bytes.
#define MP_BENCH_AVX512_ROUNDS(instruction)                                                  \
    __asm__ volatile(                                                                        \
        ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"                                     \
        "vpxord %%zmm\\r, %%zmm\\r, %%zmm\\r\n"                                              \
        ".endr\n"                                                                            \
        ".irp r,16,17,18,19,20,21,22,23,30,31\n"                                             \
        "vpxord %%zmm\\r, %%zmm\\r, %%zmm\\r\n"                                              \
        ".endr\n"                                                                            \
        "1:\n"                                                                               \
        ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n" instruction \
        " %%zmm30, %%zmm31, %%zmm\\r\n"                                                      \
        ".endr\n"                                                                            \
        "dec %0\n"                                                                           \
        "jnz 1b\n"                                                                           \
        "vzeroupper\n"                                                                       \
        : "+r"(rounds)                                                                       \
        :                                                                                    \
        : "cc", MP_BENCH_VECTOR_REGISTERS, MP_BENCH_UPPER_VECTOR_REGISTERS)

__attribute__((target("avx512f"))) void float_avx512(std::int64_t rounds) {
    MP_BENCH_AVX512_ROUNDS("vfmadd231ps");
}

__attribute__((target("avx512f"))) void bfloat16_vnni2s(std::int64_t rounds) {
    MP_BENCH_AVX512_ROUNDS("vdpbf16ps");
}

__attribute__((target("avx512f"))) void half_avx512(std::int64_t rounds) {
    MP_BENCH_AVX512_ROUNDS("vfmadd231ph");
}

/// The shape of all eight tiles: 16 rows of 64 bytes. Layout of LDTILECFG's operand: Intel 64 and IA-32
/// Architectures Software Developer's Manual, volume 2.
struct alignas(64) tile_shapes {
    std::uint8_t palette = 1;
    std::uint8_t start_row = 0;
    std::array<std::uint8_t, 14> reserved{};
    std::array<std::uint16_t, 16> row_bytes{64, 64, 64, 64, 64, 64, 64, 64};
    std::array<std::uint8_t, 16> rows{16, 16, 16, 16, 16, 16, 16, 16};
};

/// Rounds of four tile products with four accumulators, each factor used twice as in a kernel.
#define MP_BENCH_TILE_ROUNDS(instruction)                                                                  \
    const tile_shapes shapes;                                                                              \
    __asm__ volatile(                                                                                      \
        "ldtilecfg %1\n"                                                                                   \
        ".irp r,0,1,2,3,4,5,6,7\n"                                                                         \
        "tilezero %%tmm\\r\n"                                                                              \
        ".endr\n"                                                                                          \
        "1:\n" instruction " %%tmm6, %%tmm4, %%tmm0\n" instruction " %%tmm7, %%tmm4, %%tmm1\n" instruction \
        " %%tmm6, %%tmm5, %%tmm2\n" instruction                                                            \
        " %%tmm7, %%tmm5, %%tmm3\n"                                                                        \
        "dec %0\n"                                                                                         \
        "jnz 1b\n"                                                                                         \
        "tilerelease\n"                                                                                    \
        : "+r"(rounds)                                                                                     \
        : "m"(shapes)                                                                                      \
        : "cc")

void bfloat16_tiles(std::int64_t rounds) {
    MP_BENCH_TILE_ROUNDS("tdpbf16ps");
}

void int8_tiles(std::int64_t rounds) {
    MP_BENCH_TILE_ROUNDS("tdpbssd");
}

constexpr peak float_avx2_peak{"float, AVX2 FMA", 12 * 8 * 2, float_avx2};
constexpr peak float_avx512_peak{"float, AVX-512 FMA", 24 * 16 * 2, float_avx512};
constexpr peak bfloat16_pairs_peak{"bfloat16 pairs, vdpbf16ps", 24 * 16 * 4, bfloat16_vnni2s};
constexpr peak half_avx512_peak{"half, AVX512-FP16 FMA", 24 * 32 * 2, half_avx512};
constexpr peak bfloat16_tiles_peak{"bfloat16 tiles, AMX", 4 * 16 * 16 * 32 * 2, bfloat16_tiles};
constexpr peak int8_tiles_peak{"int8 tiles, AMX", 4 * 16 * 16 * 64 * 2, int8_tiles};

#endif

/// Whether the processor has it, and MP_ISA does not keep mp from it.
bool has([[maybe_unused]] mp::instruction_set isa) {
#if MP_X86_TARGETS
    return mp::best_instruction_set() >= isa;
#else
    return false;
#endif
}

}  // namespace

std::span<const peak> peaks() {
    static const std::vector<peak> all = [] {
        std::vector<peak> result;
#if MP_X86_TARGETS
        using isa = mp::instruction_set;
        if (has(isa::avx2)) result.push_back(float_avx2_peak);
        if (has(isa::avx512)) result.push_back(float_avx512_peak);
        if (has(isa::avx512_bf16)) result.push_back(bfloat16_pairs_peak);
        if (has(isa::avx512_fp16)) result.push_back(half_avx512_peak);
        if (has(isa::amx)) {
            result.push_back(bfloat16_tiles_peak);
            result.push_back(int8_tiles_peak);
        }
#endif
        return result;
    }();
    return all;
}

const peak* float_peak() {
#if MP_X86_TARGETS
    if (has(mp::instruction_set::avx512)) return &float_avx512_peak;
    if (has(mp::instruction_set::avx2)) return &float_avx2_peak;
#endif
    return nullptr;
}

const peak* bfloat16_peak() {
#if MP_X86_TARGETS
    if (has(mp::instruction_set::amx)) return &bfloat16_tiles_peak;
    if (has(mp::instruction_set::avx512_bf16)) return &bfloat16_pairs_peak;
#endif
    return float_peak();
}

const peak* int8_peak() {
#if MP_X86_TARGETS
    if (has(mp::instruction_set::amx)) return &int8_tiles_peak;
#endif
    return nullptr;
}

double run(const peak& it, double operations, int threads) {
    const double share = operations / it.operations / threads;
    const auto rounds = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(share)));
    std::vector<std::jthread> others;
    for (int i = 1; i < threads; ++i) others.emplace_back(it.run, rounds);
    it.run(rounds);
    others.clear();
    return static_cast<double>(rounds) * it.operations * threads;
}

namespace {

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Whether the peak is as high as it was.
bool is_reached(const peak* it, double& best) {
    if (it == nullptr) return true;
    constexpr std::int64_t rounds = 20000;
    const double begin = seconds_now();
    it->run(rounds);
    const double rate = static_cast<double>(rounds) * it->operations / (seconds_now() - begin);
    best = std::max(best, rate);
    return rate >= 0.9 * best;
}

}  // namespace

void await_peaks() {
    static double best_float = 0;
    static double best_bfloat16 = 0;
    static double waited = 0;
    const double begin = seconds_now();
    while (waited < 60 && seconds_now() < begin + 1) {
        if (is_reached(bfloat16_peak(), best_bfloat16) && is_reached(float_peak(), best_float)) break;
    }
    waited += seconds_now() - begin;
}

}  // namespace bench::limits
