// SPDX-License-Identifier: MIT
/// \file
/// The floating-point modes that a caller of the library may have set, in the words of the processor: MXCSR of
/// x86, FPCR of 64-bit ARM.
#pragma once

#include <cstdint>

#if defined(__GNUC__) && defined(__SSE2__)
#define TEST_HAS_MODES 1

using mode_bits = std::uint32_t;
inline constexpr mode_bits default_modes = 0x1f80;
/// To nearest with flushing of results and operands; down, up and to zero; to zero with flushing.
inline constexpr mode_bits caller_modes[] = {0x9fc0, 0x3f80, 0x5f80, 0x7f80, 0xffc0};

/// Without the flags of what has happened.
inline mode_bits current_modes() {
    mode_bits modes = 0;
    __asm__ volatile("stmxcsr %0" : "=m"(modes) : : "memory");
    return modes & 0xffc0;
}
inline void set_modes(mode_bits modes) {
    __asm__ volatile("ldmxcsr %0" : : "m"(modes) : "memory");
}
/// The flags of what has happened.
inline mode_bits current_flags() {
    mode_bits modes = 0;
    __asm__ volatile("stmxcsr %0" : "=m"(modes) : : "memory");
    return modes & 0x3f;
}
inline void set_flags(mode_bits flags) {
    set_modes(current_modes() | flags);
}

#elif defined(__GNUC__) && defined(__aarch64__)
#define TEST_HAS_MODES 1

using mode_bits = std::uint64_t;
inline constexpr mode_bits default_modes = 0;
/// To nearest with flushing (FZ); down, up and to zero; to zero with flushing; default NaNs and binary16 without
/// infinities (DN, AHP).
inline constexpr mode_bits caller_modes[] = {0x0100'0000, 0x0080'0000, 0x0040'0000,
                                             0x00c0'0000, 0x01c0'0000, 0x0600'0000};

inline mode_bits current_modes() {
    mode_bits modes = 0;
    __asm__ volatile("mrs %0, fpcr" : "=r"(modes) : : "memory");
    return modes;
}
inline void set_modes(mode_bits modes) {
    __asm__ volatile("msr fpcr, %0" : : "r"(modes) : "memory");
}
inline mode_bits current_flags() {
    mode_bits flags = 0;
    __asm__ volatile("mrs %0, fpsr" : "=r"(flags) : : "memory");
    return flags & 0x9f;
}
inline void set_flags(mode_bits flags) {
    __asm__ volatile("msr fpsr, %0" : : "r"(flags) : "memory");
}

#else
#define TEST_HAS_MODES 0
#endif

#if TEST_HAS_MODES
/// The calling thread computes in these modes while it lives.
class modes_scope {
public:
    explicit modes_scope(mode_bits modes) : before_(current_modes()) { set_modes(modes); }
    ~modes_scope() { set_modes(before_); }
    modes_scope(const modes_scope&) = delete;
    modes_scope& operator=(const modes_scope&) = delete;

private:
    mode_bits before_;
};
#endif
