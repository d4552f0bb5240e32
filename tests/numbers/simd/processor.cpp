// SPDX-License-Identifier: MIT
#include <mp/numbers/simd/processor.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>

using mp::instruction_set;

namespace {

TEST_CASE("a wish for a isa is granted as far as the processor goes") {
    using mp::detail::isa_by_wish;
    for (const auto isa :
         {instruction_set::portable, instruction_set::avx2, instruction_set::avx512,
          instruction_set::avx512_bf16, instruction_set::avx512_fp16, instruction_set::amx}) {
        CHECK(isa_by_wish(mp::name_of(isa), instruction_set::amx).isa == isa);
        CHECK(isa_by_wish(mp::name_of(isa), isa).complaint == "");
        CHECK(isa_by_wish("best", isa).isa == isa);
        CHECK(isa_by_wish("", isa).isa == isa);
        CHECK(isa_by_wish("avx3", isa).isa == isa);
    }
    CHECK(isa_by_wish("avx3", instruction_set::avx2).complaint ==
          "it must be one of portable, neon, avx2, avx512, avx512_bf16, avx512_fp16, amx, best");
    CHECK(isa_by_wish("amx", instruction_set::avx2).isa == instruction_set::avx2);
    CHECK(isa_by_wish("amx", instruction_set::avx2).complaint == "the processor has no more than avx2");
    CHECK(isa_by_wish("neon", instruction_set::neon).isa == instruction_set::neon);
    CHECK(isa_by_wish("portable", instruction_set::neon).isa == instruction_set::portable);
    CHECK(isa_by_wish("best", instruction_set::neon).isa == instruction_set::neon);
    CHECK(isa_by_wish("avx2", instruction_set::neon).complaint == "the processor has no more than neon");
    CHECK(isa_by_wish("neon", instruction_set::avx2).isa == instruction_set::avx2);
    CHECK(isa_by_wish("neon", instruction_set::avx2).complaint == "the processor has no more than avx2");
}

TEST_CASE("the best isa is what MP_ISA names, or else what the processor has") {
    const char* const wish = std::getenv("MP_ISA");
    const mp::detail::wished_isa granted =
        mp::detail::isa_by_wish(wish == nullptr ? "" : wish, mp::processor_instruction_set());
    CHECK(mp::best_instruction_set() == granted.isa);
    CHECK(mp::best_instruction_set() == granted.isa);
}

#if defined(__linux__) && defined(__x86_64__)  // an emulated program could not start itself
TEST_CASE("a MP_ISA that names no isa is said once on stderr, and the program goes on") {
    // This program again, with the test before this one only.
    const auto output_with = [](const char* wish) {
        const std::string command =
            "MP_ISA=" + std::string(wish) + " /proc/$PPID/exe -tc='the best isa is what*' 2>&1";
        std::string output;
        FILE* const pipe = popen(command.c_str(), "r");
        REQUIRE(pipe != nullptr);
        for (int character = 0; (character = std::fgetc(pipe)) != EOF;) {
            output.push_back(static_cast<char>(character));
        }
        CHECK(pclose(pipe) == 0);
        return output;
    };
    const auto count = [](const std::string& text, const std::string& part) {
        int times = 0;
        for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++times;
        return times;
    };
    const std::string output = output_with("typo");
    CHECK(count(output,
                "mp: the environment variable MP_ISA is 'typo' and ignored; it must be one of "
                "portable, neon, avx2, avx512, avx512_bf16, avx512_fp16, amx, best\n") == 1);
    CHECK(count(output, "MP_ISA") == 1);
    CHECK(count(output_with("portable"), "MP_ISA") == 0);
}
#endif

TEST_CASE("the processor has what the compiler agrees that it has") {
#if defined(__x86_64__) && MP_X86_TARGETS
    const instruction_set most = mp::processor_instruction_set();
    __builtin_cpu_init();
    const bool avx2 =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    CHECK((most >= instruction_set::avx2) == avx2);
    CHECK((most >= instruction_set::avx512) == avx512);
#elif MP_NEON_TARGET
    CHECK(mp::processor_instruction_set() == instruction_set::neon);
#else
    CHECK(mp::processor_instruction_set() == instruction_set::portable);
#endif
}

TEST_CASE("an executor runs on the isa that it names, and one that the processor lacks is refused") {
    CHECK(mp::detail::isa_of("f", {.instructions = instruction_set::portable}) == instruction_set::portable);
    CHECK(mp::detail::isa_of("f", {}) == mp::best_instruction_set());
    const instruction_set most = mp::processor_instruction_set();
    for (int i = 0; i < static_cast<int>(instruction_set::best); ++i) {
        const auto isa = static_cast<instruction_set>(i);
        if (mp::processor_has(isa)) {
            CHECK(mp::detail::isa_of("f", {.instructions = isa}) == isa);
            continue;
        }
        const std::string message =
            "f: exec.instructions is '" + std::string(mp::name_of(isa)) +
            "'; it must be an instruction set of the processor, which has no more than " +
            std::string(mp::name_of(most));
        CHECK_THROWS_WITH_AS(mp::detail::isa_of("f", {.instructions = isa}), message.c_str(),
                             mp::argument_error);
    }
}

TEST_CASE("x86-64 and ARM have the portable instruction set in common, and no other") {
    using enum instruction_set;
    for (const instruction_set isa : {portable, neon, avx2, avx512, avx512_bf16, avx512_fp16, amx}) {
        CHECK(mp::includes(isa, portable));
        CHECK(mp::includes(isa, isa));
        CHECK(mp::includes(isa, neon) == (isa == neon));
        CHECK(mp::includes(neon, isa) == (isa == neon || isa == portable));
    }
    CHECK(mp::includes(amx, avx2));
    CHECK(mp::includes(avx512_bf16, avx512));
    CHECK(!mp::includes(avx2, avx512));
    CHECK(mp::processor_has(best));
    CHECK(mp::processor_has(mp::processor_instruction_set()));
    CHECK(!(mp::processor_has(neon) && mp::processor_has(avx2)));
}

}  // namespace
