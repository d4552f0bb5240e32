// SPDX-License-Identifier: MIT
// After a kernel the upper halves of vector registers are clear, with whatever options it was compiled: processors of Intel
// run the instructions of SSE, and so the rest of a program, up to fifty times as slowly until they are.
#include <doctest/doctest.h>

#include <mp/array.hpp>
#include <mp/bfloat16.hpp>
#include <mp/convert.hpp>
#include <mp/gemm.hpp>
#include <mp/half.hpp>
#include <mp/numbers/simd/processor.hpp>
#include <mp/optim.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#if MP_X86_TARGETS

namespace {

/// Whether the processor sees something in them: XGETBV of register 1, bit 2 (Intel 64 and IA-32 Architectures Software
/// Developer's Manual, volume 1, 13.2 and 13.6).
bool upper_halves_in_use() {
    std::uint32_t low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
    return (low & 4U) != 0;
}

void clear_them() {
    __asm__ volatile("vzeroupper" : : : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
}

void use_them() {
    __asm__ volatile("vpcmpeqd %%ymm0, %%ymm0, %%ymm0" : : : "xmm0");
}

/// Not all processors tell.
bool processor_tells() {
    if (mp::processor_instruction_set() < mp::instruction_set::avx2) return false;
    if (mp::detail::cpuid(0, 0).eax < 13 || (mp::detail::cpuid(13, 1).eax & 4U) == 0) return false;
    clear_them();
    const bool before = upper_halves_in_use();
    use_them();
    const bool after = upper_halves_in_use();
    clear_them();
    return !before && after;
}

TEST_CASE("kernels leave the upper halves of registers clear") {
    if (!processor_tells()) {
        MESSAGE("skipped: the processor does not tell whether they are in use");
        return;
    }
    constexpr std::size_t count = 1000;
    std::vector<float> floats(count, 1.5F), sums(count), gradient(count, 0.5F);
    std::vector<mp::half> halves(count);
    std::vector<mp::bfloat16> low(count);
    for (int i = 0; i <= static_cast<int>(mp::processor_instruction_set()); ++i) {
        const auto isa = static_cast<mp::instruction_set>(i);
        if (!mp::processor_has(isa)) continue;
        const mp::cpu exec{.threads = 1, .instructions = isa};
        const auto check = [](const std::string& what, const auto& run) {
            CAPTURE(what);
            clear_them();
            run();
            CHECK(!upper_halves_in_use());
        };
        CAPTURE(i);
        check("float to half", [&] { mp::convert(exec, floats, halves); });
        check("half to float", [&] { mp::convert(exec, halves, floats); });
        check("float to bfloat16", [&] { mp::convert(exec, floats, low); });
        check("upward", [&] { mp::convert(exec, floats, low, {.round = mp::rounding::upward}); });
        check("a report", [&] { (void)mp::report_range<mp::half>(exec, floats); });
        check("a sum", [&] { mp::add(exec, halves, halves, halves); });
        check("a function", [&] { mp::exp(exec, halves, halves); });
        check("a product of floats", [&] {
            mp::gemm(exec, 1.0F, mp::row_major(floats.data(), 20, 50), mp::row_major(floats.data(), 50, 20),
                     0.0F, mp::row_major(sums.data(), 20, 20));
        });
        check("one row", [&] {
            mp::gemm(exec, 1.0F, mp::row_major(low.data(), 1, 50), mp::row_major(low.data(), 50, 20), 0.0F,
                     mp::row_major(sums.data(), 1, 20));
        });
        check("dot products", [&] {
            mp::gemm(exec, 1.0F, mp::row_major(low.data(), 4, 50),
                     mp::transposed(mp::row_major(low.data(), 20, 50)), 0.0F,
                     mp::row_major(sums.data(), 4, 20));
        });
        check("a product of bfloat16", [&] {
            mp::gemm(exec, 1.0F, mp::row_major(low.data(), 20, 50), mp::row_major(low.data(), 50, 20), 0.0F,
                     mp::row_major(sums.data(), 20, 20));
        });
        check("an optimizer", [&] {
            mp::adamw<float> optimizer(exec, {{"", std::span(sums), std::span(gradient)}},
                                       {.learning_rate = 1e-3});
            optimizer.step();
        });
    }
}

}  // namespace

#endif
