// SPDX-License-Identifier: MIT
#include <mp/simd/processor.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <initializer_list>
#include <string>

using mp::instruction_set;

namespace {

TEST_CASE("every level has a name by which it is found again") {
    for (const auto level : {instruction_set::portable, instruction_set::avx2, instruction_set::avx512,
                             instruction_set::avx512_bf16, instruction_set::avx512_fp16, instruction_set::amx,
                             instruction_set::best}) {
        CHECK(mp::detail::parse_instruction_set("text", mp::name_of(level)) == level);
    }
}

TEST_CASE("a name that is none is refused with the names that are") {
    CHECK_THROWS_WITH_AS(
        mp::detail::parse_instruction_set("the environment variable MP_ISA", "avx3"),
        "mp::cpu: the environment variable MP_ISA is 'avx3'; it must be one of portable, avx2, avx512, "
        "avx512_bf16, avx512_fp16, amx, best",
        mp::argument_error);
}

TEST_CASE("the best level is what MP_ISA names, or else what the processor has") {
    const char* const wanted = std::getenv("MP_ISA");
    if (wanted == nullptr || *wanted == '\0' || std::string(wanted) == "best") {
        CHECK(mp::best_instruction_set() == mp::processor_instruction_set());
    } else {
        CHECK(mp::name_of(mp::best_instruction_set()) == wanted);
    }
}

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

TEST_CASE("an executor runs on the level that it names, and one that the processor lacks is refused") {
    CHECK(mp::detail::level_of("f", {.instructions = instruction_set::portable}) ==
          instruction_set::portable);
    CHECK(mp::detail::level_of("f", {}) == mp::best_instruction_set());
    const instruction_set most = mp::processor_instruction_set();
    if (most == instruction_set::amx) return;
    const auto above = static_cast<instruction_set>(static_cast<int>(most) + 1);
    const std::string message = "f: exec.instructions is '" + std::string(mp::name_of(above)) +
                                "'; it must not be higher than what the processor has, which is " +
                                std::string(mp::name_of(most));
    CHECK_THROWS_WITH_AS(mp::detail::level_of("f", {.instructions = above}), message.c_str(),
                         mp::argument_error);
}

}  // namespace
