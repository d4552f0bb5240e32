// SPDX-License-Identifier: MIT
/// \file
/// Kernels compute with IEEE's default modes, whatever the caller has set.
#pragma once

#include <mp/config.hpp>

#include <cstdint>
#if !defined(__SSE2__) && !defined(__aarch64__)
#include <cfenv>
#endif

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Clears the upper halves of vector registers after a kernel. As long as something is in them, processors of Intel take up
/// to fifty times as long for the instructions of SSE, of which the rest of a program is made. Compilers clear them where
/// a function ends, but not so g++ with -O0, -O1, -Og and -Os.
inline void clear_upper_halves() noexcept {
#if MP_X86_TARGETS && !defined(__clang__)
    if (!__builtin_cpu_supports("avx2")) return;
    __asm__ volatile("vzeroupper"
                     :
                     :
                     : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                       "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
#endif
}

/// While it lives, float and double arithmetic of the calling thread rounds to nearest even, honours
/// subnormal numbers and raises no signals; then everything is as before, flags included, and the upper halves of
/// registers are clear. For threads that were started by a thread with other modes, too, since they inherit them.
///
/// The x87 unit is set to 53 bits, the precision of double. Then every result in the range of double is the
/// double next to the exact one. A float made of it by storing it is the float next to the exact result, too:
/// with p bits, 24 of them or fewer for a subnormal number, sums, products, quotients and roots that are
/// rounded to 2 p + 2 bits first come out as if they had not been (S. Figueroa, "When is double rounding
/// innocuous?", 1995). Kernels store each float that they calculate (`opt_barrier`). Left over are doubles
/// below 2^-1022, of which the kernels calculate none: all squares of floats are larger.
///
/// Costs a read of the control register and a write, some cycles; looking for flags first would take longer. Where
/// the register is not known, only the direction of rounding is set, and nothing by nvcc.
class [[nodiscard]] default_floating_point_modes {
public:
#if MP_X87_ARITHMETIC && !defined(__CUDACC__)
    [[nodiscard]] default_floating_point_modes() noexcept {
        __asm__ volatile("fnstcw %0" : "=m"(before_) : : "memory");
        if (before_ != default_modes) __asm__ volatile("fldcw %0" : : "m"(default_modes) : "memory");
#if defined(__SSE2__)
        __asm__ volatile("stmxcsr %0" : "=m"(vectors_before_) : : "memory");
        set_vectors(vectors_before_, (vectors_before_ & flags) | all_masked);
#endif
    }
    ~default_floating_point_modes() {
        if (before_ != default_modes) __asm__ volatile("fldcw %0" : : "m"(before_) : "memory");
#if defined(__SSE2__)
        std::uint32_t now = 0;
        __asm__ volatile("stmxcsr %0" : "=m"(now) : : "memory");
        set_vectors(now, vectors_before_);
#endif
    }

private:
    // Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, 8.1.5: 53 bits, to nearest, all
    // signals masked.
    static constexpr std::uint16_t default_modes = 0x027f;
    std::uint16_t before_ = 0;
#if defined(__SSE2__)
    static constexpr std::uint32_t flags = 0x003f;
    static constexpr std::uint32_t all_masked = 0x1f80;

    static void set_vectors(std::uint32_t now, std::uint32_t wanted) noexcept {
        if (now != wanted) __asm__ volatile("ldmxcsr %0" : : "m"(wanted) : "memory");
    }
    std::uint32_t vectors_before_ = 0;
#endif
#elif defined(__SSE2__) && defined(__GNUC__) && !defined(__CUDACC__)
    [[nodiscard]] default_floating_point_modes() noexcept {
        __asm__ volatile("stmxcsr %0" : "=m"(before_) : : "memory");
        const std::uint32_t wanted = (before_ & flags) | all_masked;
        if (before_ != wanted) __asm__ volatile("ldmxcsr %0" : : "m"(wanted) : "memory");
    }
    ~default_floating_point_modes() {
        clear_upper_halves();
        __asm__ volatile("ldmxcsr %0" : : "m"(before_) : "memory");
    }

private:
    // MXCSR: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, 10.2.3.
    static constexpr std::uint32_t flags = 0x003f;
    static constexpr std::uint32_t all_masked = 0x1f80;
    std::uint32_t before_ = 0;
#elif defined(__aarch64__) && defined(__GNUC__) && !defined(__CUDACC__)
    [[nodiscard]] default_floating_point_modes() noexcept {
        __asm__ volatile("mrs %0, fpcr" : "=r"(before_));
        __asm__ volatile("mrs %0, fpsr" : "=r"(flags_before_) : : "memory");
        if (before_ != 0) __asm__ volatile("msr fpcr, %0" : : "r"(std::uint64_t{0}) : "memory");
    }
    ~default_floating_point_modes() {
        if (before_ != 0) __asm__ volatile("msr fpcr, %0" : : "r"(before_) : "memory");
        std::uint64_t flags = 0;
        __asm__ volatile("mrs %0, fpsr" : "=r"(flags) : : "memory");
        if (flags != flags_before_) __asm__ volatile("msr fpsr, %0" : : "r"(flags_before_) : "memory");
    }

private:
    std::uint64_t before_ = 0;        // FPCR: rounding, flush-to-zero, default NaN, traps
    std::uint64_t flags_before_ = 0;  // FPSR
#elif defined(FE_TONEAREST) && !defined(__CUDACC__)
    // The direction of rounding, which is all that the C library knows.
    [[nodiscard]] default_floating_point_modes() noexcept : before_(std::fegetround()) {
        if (before_ != FE_TONEAREST) std::fesetround(FE_TONEAREST);
    }
    ~default_floating_point_modes() {
        if (before_ != FE_TONEAREST) std::fesetround(before_);
    }

private:
    int before_ = FE_TONEAREST;
#else
    [[nodiscard]] default_floating_point_modes() noexcept {}
    ~default_floating_point_modes() {}
#endif
public:
    /// The value at this place in the program. Compilers move arithmetic on variables across the change of
    /// modes, which they do not know: what comes from a caller's variable, and what is returned in one, goes
    /// through here. Memory needs nothing.
    template <class T>
    [[nodiscard]] T held(T x) const noexcept {
#if defined(__GNUC__) && !defined(__CUDACC__)
        __asm__ volatile("" : "+m"(x) : : "memory");
#endif
        return x;
    }

    default_floating_point_modes(const default_floating_point_modes&) = delete;
    default_floating_point_modes& operator=(const default_floating_point_modes&) = delete;
};

/// In place of default_floating_point_modes for instructions that look at no mode and raise nothing: reading the
/// modes takes longer than a few elements do.
struct [[nodiscard]] any_floating_point_modes {
    [[nodiscard]] any_floating_point_modes() noexcept {}
    ~any_floating_point_modes() { clear_upper_halves(); }
    any_floating_point_modes(const any_floating_point_modes&) = delete;
    any_floating_point_modes& operator=(const any_floating_point_modes&) = delete;
};

/// f() in the default modes, for arithmetic on a few numbers in the midst of a caller's.
template <class Function>
MP_NEVER_INLINE auto in_default_modes(const Function& f) {
    const default_floating_point_modes modes;
#if defined(__GNUC__) && !defined(__CUDACC__)
    // What f refers to is read after the modes have changed.
    __asm__ volatile("" : : "r"(&f) : "memory");
#endif
    return modes.held(f());
}

}}  // namespace mp::detail
