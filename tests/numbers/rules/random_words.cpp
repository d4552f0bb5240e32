// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/numbers/rules/random_words.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

TEST_CASE(
    "random words of neighbouring elements are random_bits(), on every instruction set, past the last "
    "index") {
    constexpr std::uint64_t last = ~std::uint64_t{0};
    constexpr std::uint32_t untouched = 0xabcd'1234;
    for (int isa = 0; isa <= static_cast<int>(mp::processor_instruction_set()); ++isa) {
        CAPTURE(isa);
        for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{0x0123'4567'89ab'cdef}}) {
            for (const std::uint64_t first :
                 {std::uint64_t{0}, std::uint64_t{7}, (std::uint64_t{1} << 34) - 6, last - 70, last}) {
                for (const std::size_t count :
                     {std::size_t{1}, std::size_t{31}, std::size_t{255}, std::size_t{256}}) {
                    constexpr std::size_t most = 256;
                    std::vector<std::uint32_t> room(mp::detail::random_room(most) + 1, untouched);
                    const std::uint32_t* const words = mp::detail::random_words(
                        static_cast<mp::instruction_set>(isa), seed, first, count, room.data());
                    std::size_t wrong = 0;
                    for (std::size_t i = 0; i < count; ++i)
                        wrong += words[i] != mp::random_bits(seed, first + i) ? 1U : 0U;
                    CHECK(wrong == 0);
                    CHECK(room.back() == untouched);
                }
            }
        }
    }
}
