// SPDX-License-Identifier: MIT
// Moves of memory. The vectors go through empty assembly, so that no compiler makes a call of memcpy of the
// loops.
#include <mp/config.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <limits>
#include <map>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#if MP_X86_TARGETS
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#endif

#include "limits.hpp"

namespace bench::limits {
namespace {

void copy_by_memcpy(void* to, const void* from, std::size_t bytes) {
    std::memcpy(to, from, bytes);
}

#if MP_X86_TARGETS

// A step reads one to four vectors and writes one, two or four, some of them repeatedly where it reads
// fewer. Processors fetch ahead within a page; a loop that goes through several pages side by side keeps more
// of the memory busy.

template <int Reads, int Writes, bool Streaming>
__attribute__((target("avx2"), always_inline)) inline void step_avx2(__m256i* target, const __m256i* source) {
    __m256i a = _mm256_load_si256(source);
    __m256i b = a;
    __m256i c = a;
    __m256i d = a;
    if constexpr (Reads > 1) b = _mm256_load_si256(source + 1);
    if constexpr (Reads > 2) c = _mm256_load_si256(source + 2);
    if constexpr (Reads > 3) d = _mm256_load_si256(source + 3);
    __asm__ volatile("" : "+x"(a), "+x"(b), "+x"(c), "+x"(d));
    if constexpr (Streaming) {
        _mm256_stream_si256(target, a);
        if constexpr (Writes > 1) _mm256_stream_si256(target + 1, b);
        if constexpr (Writes > 2) _mm256_stream_si256(target + 2, c);
        if constexpr (Writes > 2) _mm256_stream_si256(target + 3, d);
    } else {
        _mm256_store_si256(target, a);
        if constexpr (Writes > 1) _mm256_store_si256(target + 1, b);
        if constexpr (Writes > 2) _mm256_store_si256(target + 2, c);
        if constexpr (Writes > 2) _mm256_store_si256(target + 3, d);
    }
}

template <int Reads, int Writes, bool Streaming, std::size_t Pages>
__attribute__((target("avx2"))) void move_avx2(void* to, const void* from, std::size_t steps) {
    const auto* source = static_cast<const __m256i*>(from);
    auto* target = static_cast<__m256i*>(to);
    if constexpr (Pages > 1) {
        constexpr std::size_t page_steps = 4096 / ((Reads > Writes ? Reads : Writes) * sizeof(__m256i));
        for (; steps >= Pages * page_steps; steps -= Pages * page_steps) {
            for (std::size_t step = 0; step < page_steps; ++step) {
                for (std::size_t page = 0; page < Pages; ++page) {
                    const std::size_t at = page * page_steps + step;
                    step_avx2<Reads, Writes, Streaming>(target + at * Writes, source + at * Reads);
                }
            }
            source += Pages * page_steps * Reads;
            target += Pages * page_steps * Writes;
        }
    }
    for (std::size_t step = 0; step < steps; ++step, source += Reads, target += Writes) {
        step_avx2<Reads, Writes, Streaming>(target, source);
    }
    if constexpr (Streaming) _mm_sfence();
}

template <int Reads, int Writes, bool Streaming>
__attribute__((target("avx512f"), always_inline)) inline void step_avx512(__m512i* target,
                                                                          const __m512i* source) {
    __m512i a = _mm512_load_si512(source);
    __m512i b = a;
    __m512i c = a;
    __m512i d = a;
    if constexpr (Reads > 1) b = _mm512_load_si512(source + 1);
    if constexpr (Reads > 2) c = _mm512_load_si512(source + 2);
    if constexpr (Reads > 3) d = _mm512_load_si512(source + 3);
    __asm__ volatile("" : "+v"(a), "+v"(b), "+v"(c), "+v"(d));
    if constexpr (Streaming) {
        _mm512_stream_si512(target, a);
        if constexpr (Writes > 1) _mm512_stream_si512(target + 1, b);
        if constexpr (Writes > 2) _mm512_stream_si512(target + 2, c);
        if constexpr (Writes > 2) _mm512_stream_si512(target + 3, d);
    } else {
        _mm512_store_si512(target, a);
        if constexpr (Writes > 1) _mm512_store_si512(target + 1, b);
        if constexpr (Writes > 2) _mm512_store_si512(target + 2, c);
        if constexpr (Writes > 2) _mm512_store_si512(target + 3, d);
    }
}

template <int Reads, int Writes, bool Streaming, std::size_t Pages>
__attribute__((target("avx512f"))) void move_avx512(void* to, const void* from, std::size_t steps) {
    const auto* source = static_cast<const __m512i*>(from);
    auto* target = static_cast<__m512i*>(to);
    if constexpr (Pages > 1) {
        constexpr std::size_t page_steps = 4096 / ((Reads > Writes ? Reads : Writes) * sizeof(__m512i));
        for (; steps >= Pages * page_steps; steps -= Pages * page_steps) {
            for (std::size_t step = 0; step < page_steps; ++step) {
                for (std::size_t page = 0; page < Pages; ++page) {
                    const std::size_t at = page * page_steps + step;
                    step_avx512<Reads, Writes, Streaming>(target + at * Writes, source + at * Reads);
                }
            }
            source += Pages * page_steps * Reads;
            target += Pages * page_steps * Writes;
        }
    }
    for (std::size_t step = 0; step < steps; ++step, source += Reads, target += Writes) {
        step_avx512<Reads, Writes, Streaming>(target, source);
    }
    if constexpr (Streaming) _mm_sfence();
}

template <std::size_t Pages>
__attribute__((target("avx512f"))) void read_avx512(const void* from, std::size_t bytes) {
    constexpr std::size_t page = 4096;
    const char* source = static_cast<const char*>(from);
    for (; bytes >= Pages * page; bytes -= Pages * page, source += Pages * page) {
        for (std::size_t i = 0; i < page; i += 256) {
            for (std::size_t j = i; j < Pages * page; j += page) {
                const __m512i a = _mm512_load_si512(source + j);
                const __m512i b = _mm512_load_si512(source + j + 64);
                const __m512i c = _mm512_load_si512(source + j + 128);
                const __m512i d = _mm512_load_si512(source + j + 192);
                __asm__ volatile("" : : "v"(a), "v"(b), "v"(c), "v"(d));
            }
        }
    }
    for (std::size_t i = 0; i < bytes; i += 64) {
        const __m512i a = _mm512_load_si512(source + i);
        __asm__ volatile("" : : "v"(a));
    }
}

template <std::size_t Pages>
__attribute__((target("avx2"))) void read_avx2(const void* from, std::size_t bytes) {
    constexpr std::size_t page = 4096;
    const char* source = static_cast<const char*>(from);
    const auto load = [](const char* at) __attribute__((target("avx2"))) {
        const __m256i a = _mm256_load_si256(reinterpret_cast<const __m256i*>(at));
        const __m256i b = _mm256_load_si256(reinterpret_cast<const __m256i*>(at + 32));
        __asm__ volatile("" : : "x"(a), "x"(b));
    };
    for (; bytes >= Pages * page; bytes -= Pages * page, source += Pages * page) {
        for (std::size_t i = 0; i < page; i += 128) {
            for (std::size_t j = i; j < Pages * page; j += page) {
                load(source + j);
                load(source + j + 64);
            }
        }
    }
    for (std::size_t i = 0; i < bytes; i += 64) load(source + i);
}

/// Whether the processor has it, and MP_ISA does not keep mp from it.
bool has(mp::instruction_set isa) {
    return mp::best_instruction_set() >= isa;
}

#endif

void read_words(const void* from, std::size_t bytes) {
    const auto* const source = static_cast<const std::uint64_t*>(from);
    for (std::size_t i = 0; i < bytes / 8; i += 4) {
        const std::uint64_t a = source[i];
        const std::uint64_t b = source[i + 1];
        const std::uint64_t c = source[i + 2];
        const std::uint64_t d = source[i + 3];
        __asm__ volatile("" : : "r"(a), "r"(b), "r"(c), "r"(d));
    }
}

#if MP_X86_TARGETS
/// The loops for one proportion of reads and writes.
template <int Reads, int Writes>
void add_loops(std::vector<move>& to) {
    if (has(mp::instruction_set::avx512)) {
        to.push_back({"AVX-512 loop", Reads, Writes, 64, move_avx512<Reads, Writes, false, 1>});
        to.push_back({"AVX-512 streaming stores", Reads, Writes, 64, move_avx512<Reads, Writes, true, 1>});
        to.push_back({"eight pages side by side", Reads, Writes, 64, move_avx512<Reads, Writes, false, 8>});
        to.push_back(
            {"eight pages, streaming stores", Reads, Writes, 64, move_avx512<Reads, Writes, true, 8>});
    } else if (has(mp::instruction_set::avx2)) {
        to.push_back({"AVX2 loop", Reads, Writes, 32, move_avx2<Reads, Writes, false, 1>});
        to.push_back({"AVX2 streaming stores", Reads, Writes, 32, move_avx2<Reads, Writes, true, 1>});
        to.push_back({"eight pages side by side", Reads, Writes, 32, move_avx2<Reads, Writes, false, 8>});
        to.push_back({"eight pages, streaming stores", Reads, Writes, 32, move_avx2<Reads, Writes, true, 8>});
    }
}
#endif

/// Those that read `read` for each `written` bytes.
std::vector<move> moves(std::size_t read, std::size_t written) {
    std::vector<move> result;
#if MP_X86_TARGETS
    if (read == written) add_loops<4, 4>(result);
    if (read == 2 * written) add_loops<4, 2>(result);
    if (read == 3 * written) add_loops<3, 1>(result);
    if (read == 4 * written) add_loops<4, 1>(result);
    if (2 * read == written) add_loops<2, 4>(result);
    if (4 * read == written) add_loops<1, 4>(result);
#endif
    if (read == written || result.empty()) {
        result.insert(result.begin(), move{"memcpy", 1, 1, 1, copy_by_memcpy});
    }
    return result;
}

}  // namespace

std::span<const move> copies() {
    static const std::vector<move> all = moves(1, 1);
    return all;
}

void move::operator()(void* to, const void* from, std::size_t read, std::size_t written) const {
    const auto step = static_cast<std::size_t>(reads + writes) * vector_bytes;
    run(to, from, (read + written) / step);
}

const move& fastest_move(void* to, const void* from, std::size_t read, std::size_t written) {
    static std::map<std::pair<std::size_t, std::size_t>, move> chosen;
    const auto found = chosen.find({read, written});
    if (found != chosen.end()) return found->second;
    // Each try moves some MiB, so that the clock can tell.
    const std::size_t rounds = 1 + (std::size_t{16} << 20) / (read + written + 1);
    double least = std::numeric_limits<double>::max();
    move result{};
    for (int attempt = 0; attempt < 5; ++attempt) {
        for (const move& it : moves(read, written)) {
            // Processor time: other programs must not decide.
            const std::clock_t start = std::clock();
            for (std::size_t i = 0; i < rounds; ++i) it(to, from, read, written);
            const auto time = static_cast<double>(std::clock() - start);
            if (attempt == 0 || time >= least) continue;  // the first try only warms up
            least = time;
            result = it;
        }
    }
    return chosen.emplace(std::pair(read, written), result).first->second;
}

void read(const void* from, std::size_t bytes) {
#if MP_X86_TARGETS
    constexpr std::size_t large = 4 << 20;
    if (has(mp::instruction_set::avx512)) {
        return bytes < large ? read_avx512<1>(from, bytes) : read_avx512<8>(from, bytes);
    }
    if (has(mp::instruction_set::avx2)) {
        return bytes < large ? read_avx2<1>(from, bytes) : read_avx2<8>(from, bytes);
    }
#endif
    read_words(from, bytes);
}

void read(const void* from, std::size_t bytes, int threads) {
    const std::size_t share = bytes / static_cast<std::size_t>(threads) / 256 * 256;
    std::vector<std::jthread> others;
    for (int i = 1; i < threads; ++i) {
        const char* const begin = static_cast<const char*>(from) + share * static_cast<std::size_t>(i);
        others.emplace_back([=] { read(begin, share); });
    }
    read(from, share);
}

}  // namespace bench::limits
