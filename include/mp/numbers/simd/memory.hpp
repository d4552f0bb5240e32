// SPDX-License-Identifier: MIT
/// \file
/// Caches, and copies that go around them.
#pragma once

#include <mp/config.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Bytes that processors move between caches.
inline constexpr std::size_t cache_line = 64;

/// Sizes in bytes; zero where the processor does not tell.
struct cache_sizes {
    std::size_t level_2 = 0;  ///< of one core
    std::size_t last = 0;     ///< the largest, which cores share
};

/// Asks the processor: Intel's leaf 4 and AMD's leaf 0x8000001D have the same layout (Intel 64 and IA-32
/// Architectures Software Developer's Manual, volume 2, CPUID; AMD64 Architecture Programmer's Manual, volume
/// 3, E.4.15).
inline cache_sizes detect_caches() noexcept {
    cache_sizes sizes;
#if MP_X86_TARGETS
    for (const std::uint32_t leaf : {4U, 0x8000'001dU}) {
        if (cpuid(leaf & 0x8000'0000U, 0).eax < leaf) continue;
        for (std::uint32_t index = 0; index < 16; ++index) {
            const cpuid_registers cache = cpuid(leaf, index);
            const std::uint32_t type = cache.eax & 31;
            if (type == 0) break;
            if (type == 2) continue;  // of instructions
            const auto field = [&](int first, int bits) {
                return std::size_t{(cache.ebx >> first) & ((1U << bits) - 1)} + 1;
            };
            const std::size_t size =
                field(22, 10) * field(12, 10) * field(0, 12) * (std::size_t{cache.ecx} + 1);
            if (((cache.eax >> 5) & 7) == 2) sizes.level_2 = (std::max)(sizes.level_2, size);
            sizes.last = (std::max)(sizes.last, size);
        }
        if (sizes.last != 0) break;
    }
#endif
    return sizes;
}

/// The caches of this processor. Found out once.
inline const cache_sizes& processor_caches() noexcept {
    static const cache_sizes found = detect_caches();
    return found;
}

/// Whether a processor has stores that go around the caches.
inline constexpr bool has_streaming_stores = MP_X86_TARGETS != 0;

/// Whether of so many bytes that are written one after the other little is left in the caches in the end.
inline bool exceeds_caches(std::size_t size) noexcept {
    constexpr std::size_t unknown = std::size_t{16} << 20;
    const cache_sizes& caches = processor_caches();
    return has_streaming_stores && size > (caches.last == 0 ? unknown : caches.last / 2);
}

/// Copies to memory that begins and ends at a cache line, with stores that go around the caches and do not
/// read what they overwrite. Others see them after finish_streaming. Meanwhile fetches fetch_size bytes into
/// the caches, from an address that need not be valid.
inline void copy_nontemporal(void* to, const void* from, std::size_t size, std::uintptr_t fetch,
                             std::size_t fetch_size) noexcept {
#if MP_X86_TARGETS
    typedef std::uint64_t chunk __attribute__((vector_size(16), may_alias));  // NOLINT(modernize-use-using)
    auto* target = static_cast<unsigned char*>(to);
    const auto* source = static_cast<const unsigned char*>(from);
    const std::size_t fetched_for_line = fetch_size / (size / cache_line);
    for (std::size_t i = 0; i < size; i += cache_line) {
        for (std::size_t line = 0; line < fetched_for_line; line += cache_line)
            __builtin_prefetch(reinterpret_cast<const void*>(fetch + line));
        fetch += fetched_for_line;
        chunk x[4];
        std::memcpy(x, source + i, sizeof x);
        for (std::size_t part = 0; part < 4; ++part) {
            __asm__ volatile("movntdq %1, %0"
                             : "=m"(*reinterpret_cast<chunk*>(target + i + 16 * part))
                             : "x"(x[part]));
        }
    }
#else
    static_cast<void>(fetch);
    static_cast<void>(fetch_size);
    std::memcpy(to, from, size);
#endif
}

/// Makes what this thread has streamed visible before what it stores next.
inline void finish_streaming() noexcept {
#if MP_X86_TARGETS
    __asm__ volatile("sfence" : : : "memory");
#endif
}

}}  // namespace mp::detail
