// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#if defined(__SSE2__) && defined(__GNUC__)
#define TEST_CAN_FLUSH 1

/// While it lives, the processor flushes subnormal results to zero and takes subnormal operands for zero, as
/// in a program into which anything was linked with -ffast-math.
class flushing_scope {
public:
    flushing_scope() : before_(__builtin_ia32_stmxcsr()) { __builtin_ia32_ldmxcsr(before_ | 0x8040U); }
    ~flushing_scope() { __builtin_ia32_ldmxcsr(before_); }
    flushing_scope(const flushing_scope&) = delete;
    flushing_scope& operator=(const flushing_scope&) = delete;

private:
    unsigned before_;
};

#elif defined(__aarch64__) && defined(__GNUC__)
#define TEST_CAN_FLUSH 1

class flushing_scope {
public:
    flushing_scope() {
        __asm__ volatile("mrs %0, fpcr" : "=r"(before_) : : "memory");
        __asm__ volatile("msr fpcr, %0" : : "r"(before_ | flush) : "memory");
    }
    ~flushing_scope() { __asm__ volatile("msr fpcr, %0" : : "r"(before_) : "memory"); }
    flushing_scope(const flushing_scope&) = delete;
    flushing_scope& operator=(const flushing_scope&) = delete;

private:
    static constexpr std::uint64_t flush = std::uint64_t{1} << 24;  // FZ
    std::uint64_t before_ = 0;
};

#else
#define TEST_CAN_FLUSH 0
#endif
