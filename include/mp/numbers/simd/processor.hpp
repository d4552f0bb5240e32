// SPDX-License-Identifier: MIT
/// \file
/// Detection of instruction sets, and the choice of an executor.
#pragma once

#include <mp/base/instruction_set.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/numbers/simd/select_target.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

#if MP_X86_TARGETS

struct cpuid_registers {
    std::uint32_t eax, ebx, ecx, edx;
};

inline cpuid_registers cpuid(std::uint32_t leaf, std::uint32_t subleaf) noexcept {
    cpuid_registers r{leaf, 0, subleaf, 0};
    __asm__ volatile("cpuid" : "+a"(r.eax), "=b"(r.ebx), "+c"(r.ecx), "=d"(r.edx));
    return r;
}

/// The parts of the register file that the system saves when it switches threads (XCR0).
inline std::uint32_t saved_register_state() noexcept {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

/// Whether this process may use the tiles. Linux grants them on request, once a process, since the tiles make
/// the state of a thread 8 KiB larger; asking again is harmless.
inline bool tiles_permitted() noexcept {
#if defined(__linux__)
    constexpr long arch_prctl = 158;
    constexpr long request_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM
    constexpr long tile_data = 18;               // XFEATURE_XTILEDATA
    long result = arch_prctl;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(request_permission), "S"(tile_data)
                     : "rcx", "r11", "memory");
    return result == 0;
#else
    return false;
#endif
}

/// Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, CPUID; volume 1, 13.3 and 14.
inline instruction_set detect_instruction_set() noexcept {
    const auto has = [](std::uint32_t word, std::initializer_list<int> bits) {
        for (const int bit : bits) {
            if ((word >> bit & 1U) == 0) return false;
        }
        return true;
    };
    if (cpuid(0, 0).eax < 7) return instruction_set::portable;
    const cpuid_registers basic = cpuid(1, 0);
    const cpuid_registers extended = cpuid(7, 0);
    const cpuid_registers more = extended.eax >= 1 ? cpuid(7, 1) : cpuid_registers{};
    const cpuid_registers amd = cpuid(0x8000'0001, 0);

    // FMA, POPCNT, XSAVE in use, AVX, F16C; BMI1, AVX2, BMI2; LZCNT; and the registers are saved.
    if (!has(basic.ecx, {12, 23, 27, 28, 29}) || !has(extended.ebx, {3, 5, 8}) || !has(amd.ecx, {5})) {
        return instruction_set::portable;
    }
    const std::uint32_t saved = saved_register_state();
    if (!has(saved, {1, 2})) return instruction_set::portable;
    // AVX-512 F, DQ, CD, BW, VL; mask registers and both halves of the vector registers.
    if (!has(extended.ebx, {16, 17, 28, 30, 31}) || !has(saved, {5, 6, 7})) return instruction_set::avx2;
    if (!has(more.eax, {5})) return instruction_set::avx512;
    if (!has(extended.edx, {23})) return instruction_set::avx512_bf16;
    // AMX-BF16, AMX-TILE, AMX-INT8; tile configuration and data.
    if (!has(extended.edx, {22, 24, 25}) || !has(saved, {17, 18}) || !tiles_permitted()) {
        return instruction_set::avx512_fp16;
    }
    return instruction_set::amx;
}

/// Whether AMD made the processor: its name is "AuthenticAMD".
inline bool is_amd_processor() noexcept {
    static const bool amd = [] {
        const cpuid_registers name = cpuid(0, 0);
        return name.ebx == 0x6874'7541 && name.edx == 0x6974'6e65 && name.ecx == 0x444d'4163;
    }();
    return amd;
}

#else

inline bool is_amd_processor() noexcept {
    return false;
}

inline instruction_set detect_instruction_set() noexcept {
    return MP_NEON_TARGET != 0 ? instruction_set::neon : instruction_set::portable;
}

#endif

/// The lowest one for which kernels are compiled.
inline constexpr auto lowest_instruction_set = static_cast<instruction_set>(MP_LOWEST_TARGET);

/// Whether a program has kernels for `isa` that run on a processor that has `most`; neither is best.
[[nodiscard]] constexpr bool has_kernels(instruction_set most, instruction_set isa) noexcept {
    return isa >= lowest_instruction_set && includes(most, isa);
}

/// Names the instruction sets of has_kernels, for messages: "the processor has no more than avx2".
inline std::string limits_of_kernels(std::string_view joint, instruction_set most) {
#if defined(MP_STATIC_TARGET)
    std::string names(name_of(lowest_instruction_set));
    if (most != lowest_instruction_set) names.append(" to ").append(name_of(most));
    return "the program" + std::string(joint) + "has only kernels for " + names + " (MP_STATIC_TARGET)";
#else
    return "the processor" + std::string(joint) + "has no more than " + std::string(name_of(most));
#endif
}

/// All names, for messages: "portable, avx2, ...".
inline std::string instruction_set_names() {
    std::string names;
    for (int i = 0; i <= static_cast<int>(instruction_set::best); ++i) {
        names.append(i == 0 ? "" : ", ").append(name_of(static_cast<instruction_set>(i)));
    }
    return names;
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The highest one of which this processor and its system have everything. Found out once. Under
/// MP_STATIC_TARGET no higher than what the compiler was told to use.
[[nodiscard]] inline instruction_set processor_instruction_set() noexcept {
    constexpr auto highest = static_cast<instruction_set>(MP_BEST_TARGET);
    if constexpr (detail::lowest_instruction_set == highest) {
        return highest;
    } else {
        static const instruction_set found =
            (std::clamp)(detail::detect_instruction_set(), detail::lowest_instruction_set, highest);
        return found;
    }
}

/// Whether an executor may name an instruction set: this processor has it and, under MP_STATIC_TARGET, the program
/// has kernels for it. True for best.
[[nodiscard]] inline bool processor_has(instruction_set isa) noexcept {
    return isa == instruction_set::best || detail::has_kernels(processor_instruction_set(), isa);
}

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The choice by MP_ISA on a processor that has `most`.
struct wished_isa {
    instruction_set isa;
    std::string complaint = {};  ///< empty, or why it is not the one that was asked for
};

inline wished_isa isa_by_wish(std::string_view wish, instruction_set most) {
    if (wish.empty()) return {most};
    for (int i = 0; i <= static_cast<int>(instruction_set::best); ++i) {
        const auto isa = static_cast<instruction_set>(i);
        if (wish != name_of(isa)) continue;
        if (isa == instruction_set::best) return {most};
        if (has_kernels(most, isa)) return {isa};
        return {most, limits_of_kernels(" ", most)};
    }
    return {most, "it must be one of " + instruction_set_names()};
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The instruction set that instruction_set::best stands for: the one that the environment variable MP_ISA
/// names when it is first looked at, or else processor_instruction_set().
///
/// An MP_ISA that names none, or one that executors may not name, is no reason to end a program: it is as if
/// it were not set, and a line on stderr says so, once a process.
[[nodiscard]] inline instruction_set best_instruction_set() {
    static const instruction_set chosen = [] {
        const char* const wish = std::getenv("MP_ISA");
        const instruction_set most = processor_instruction_set();
        const detail::wished_isa found = detail::isa_by_wish(wish == nullptr ? "" : wish, most);
        if (!found.complaint.empty()) {
            std::fprintf(stderr, "mp: the environment variable MP_ISA is '%.40s' and ignored; %s\n", wish,
                         found.complaint.c_str());
        }
        return found.isa;
    }();
    return chosen;
}

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

[[noreturn]] MP_NEVER_INLINE inline void throw_instruction_set(std::string_view function,
                                                               instruction_set asked, instruction_set most) {
    throw_argument(function, "exec.instructions", name_of(asked),
                   "must be an instruction set of " + limits_of_kernels(", which ", most));
}

/// The instruction set with which an algorithm given `exec` runs; never best. Inlined, as a call would take as long as
/// a few elements do.
///
/// \throws argument_error  the processor or, under MP_STATIC_TARGET, the program lacks it
MP_ALWAYS_INLINE instruction_set isa_of(std::string_view function, const cpu& exec) {
    if (exec.instructions == instruction_set::best) return best_instruction_set();
    const instruction_set most = processor_instruction_set();
    if (!has_kernels(most, exec.instructions)) [[unlikely]]
        throw_instruction_set(function, exec.instructions, most);
    return exec.instructions;
}

}}  // namespace mp::detail
