// SPDX-License-Identifier: MIT
#include <mp/simd/processor.hpp>

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
          "it must be one of portable, avx2, avx512, avx512_bf16, avx512_fp16, amx, best");
    CHECK(isa_by_wish("amx", instruction_set::avx2).isa == instruction_set::avx2);
    CHECK(isa_by_wish("amx", instruction_set::avx2).complaint == "the processor has no more than avx2");
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
                "portable, avx2, avx512, avx512_bf16, avx512_fp16, amx, best\n") == 1);
    CHECK(count(output, "MP_ISA") == 1);
    CHECK(count(output_with("portable"), "MP_ISA") == 0);
}
#endif

TEST_CASE("the processor has what the compiler agrees that it has") {
#if defined(__x86_64__) && MP_SIMD_TARGETS
    const instruction_set most = mp::processor_instruction_set();
    __builtin_cpu_init();
    const bool avx2 =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    CHECK((most >= instruction_set::avx2) == avx2);
    CHECK((most >= instruction_set::avx512) == avx512);
#else
    CHECK(mp::processor_instruction_set() == instruction_set::portable);
#endif
}

TEST_CASE("an executor runs on the isa that it names, and one that the processor lacks is refused") {
    CHECK(mp::detail::isa_of("f", {.instructions = instruction_set::portable}) == instruction_set::portable);
    CHECK(mp::detail::isa_of("f", {}) == mp::best_instruction_set());
    const instruction_set most = mp::processor_instruction_set();
    if (most == instruction_set::amx) return;
    const auto above = static_cast<instruction_set>(static_cast<int>(most) + 1);
    const std::string message = "f: exec.instructions is '" + std::string(mp::name_of(above)) +
                                "'; it must not be higher than what the processor has, which is " +
                                std::string(mp::name_of(most));
    CHECK_THROWS_WITH_AS(mp::detail::isa_of("f", {.instructions = above}), message.c_str(),
                         mp::argument_error);
}

}  // namespace
