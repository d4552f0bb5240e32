// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/half.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/processor.hpp>
#include <mp/numbers/simd/vec.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace simd_test {
/// What move_lanes makes of a vector.
struct lane_moves {
    std::size_t lane_count;
    std::uint32_t mask;
    bool has_sign;
    bool has_common_bits;
    std::uint32_t lower[16], upper[16], low[16];
    std::uint64_t products[8], lower_longwords[8], upper_longwords[8], quieted_doubles[8], quotients[8];
    std::uint8_t shuffled[64];
};
}  // namespace simd_test

#define MP_KERNEL_FILE <numbers/simd/target_operations.inl>
#include <mp/numbers/simd/for_each_target.inl>

#if MP_SIMD_TARGETS

namespace {

std::vector<mp::instruction_set> targets() {
    std::vector<mp::instruction_set> found;
    for (const mp::instruction_set isa :
         {mp::instruction_set::neon, mp::instruction_set::avx2, mp::instruction_set::avx512}) {
        if (mp::processor_has(isa)) found.push_back(isa);
    }
    return found;
}

bool is_nan(std::uint32_t x) {
    return (x & 0x7fff'ffffU) > 0x7f80'0000U;
}
bool is_nan(std::uint64_t x) {
    return (x & 0x7fff'ffff'ffff'ffffU) > 0x7ff0'0000'0000'0000U;
}
template <class Word>
bool same_number(Word a, Word b) {
    return a == b || (is_nan(a) && is_nan(b));
}

constexpr std::array word_operations = {"larger_or_second",
                                        "smaller_or_second",
                                        "quieted",
                                        "fused_multiply_add",
                                        "narrow_binary16",
                                        "widen_binary16",
                                        "halfwords",
                                        "bytes",
                                        "min"};

std::array<std::uint32_t, word_operations.size()> expected_of(std::uint32_t x, std::uint32_t y) {
    const auto a = std::bit_cast<float>(x);
    const auto b = std::bit_cast<float>(y);
    return {
        !is_nan(x) && !is_nan(y) && a > b ? x : y,
        !is_nan(x) && !is_nan(y) && a < b ? x : y,
        is_nan(x) ? x | 0x0040'0000U : x,
        std::bit_cast<std::uint32_t>(std::fma(a, b, a)),
        mp::half(a).bits(),
        std::bit_cast<std::uint32_t>(static_cast<float>(mp::half::from_bits(static_cast<std::uint16_t>(x)))),
        x & 0xffffU,
        x & 0xffU,
        std::min(x, y)};
}

TEST_CASE("vectors of an instruction set convert, compare and quieten as single numbers do") {
    constexpr std::size_t count = 1U << 18;
    std::mt19937 random(5);
    std::vector<std::uint32_t> a(count), b(count);
    for (std::size_t i = 0; i < count; ++i) {
        // Every code of binary16, and as floats: any bits, those around binary16's numbers, and NaNs.
        a[i] = static_cast<std::uint32_t>(random()) << 16 | static_cast<std::uint32_t>(i & 0xffffU);
        if (i % 4 == 1) a[i] = (a[i] & 0x8fff'ffffU) | 0x3000'0000U;
        if (i % 16 == 2) a[i] |= 0x7f80'0000U;
        b[i] = i % 5 == 0 ? a[i] ^ (i % 2 == 0 ? 0x8000'0000U : 0U) : static_cast<std::uint32_t>(random());
    }
    const std::uint32_t special[] = {
        0, 0x8000'0000U, 0x7f80'0000U, 0xff80'0000U, 0x7f80'0001U, 0xffc0'0000U, 0x3f80'0000U};
    for (std::size_t i = 0; i < 49; ++i) {
        a[i] = special[i % 7];
        b[i] = special[i / 7];
    }
    for (const mp::instruction_set isa : targets()) {
        CAPTURE(mp::name_of(isa));
        std::vector<std::vector<std::uint32_t>> results(word_operations.size(),
                                                        std::vector<std::uint32_t>(count));
        std::vector<std::uint32_t*> to;
        for (auto& result : results) to.push_back(result.data());
        void (*const none)(const std::uint32_t*, const std::uint32_t*, std::size_t, std::uint32_t* const*) =
            nullptr;
        MP_SELECT_TARGET(isa, none, apply_to_words)(a.data(), b.data(), count, to.data());
        std::array<std::size_t, word_operations.size()> different{};
        for (std::size_t i = 0; i < count; ++i) {
            const auto expected = expected_of(a[i], b[i]);
            for (std::size_t o = 0; o < expected.size(); ++o) {
                // Which NaN arithmetic gives is left open; conversions tell.
                const bool same =
                    o == 3 ? same_number(results[o][i], expected[o]) : results[o][i] == expected[o];
                different[o] += same ? 0U : 1U;
            }
        }
        for (std::size_t o = 0; o < word_operations.size(); ++o) {
            CAPTURE(word_operations[o]);
            CHECK(different[o] == 0);
        }
    }
}

TEST_CASE("lanes move to where they should") {
    std::mt19937_64 random(6);
    for (const mp::instruction_set isa : targets()) {
        CAPTURE(mp::name_of(isa));
        void (*const none)(const std::uint32_t*, const std::uint32_t*, const std::uint8_t*,
                           simd_test::lane_moves*) = nullptr;
        const auto move_lanes = MP_SELECT_TARGET(isa, none, move_lanes);
        bool right[11];
        std::fill(std::begin(right), std::end(right), true);
        for (int round = 0; round < 2000; ++round) {
            std::uint32_t x[16], y[16];
            std::uint8_t places[64];
            for (std::size_t i = 0; i < 16; ++i) {
                x[i] = static_cast<std::uint32_t>(random()) >> (round % 2 == 0 ? 0 : random() % 3);
                y[i] = static_cast<std::uint32_t>(random());
            }
            if (round % 3 == 0) {
                for (std::uint32_t& word : x) word &= round % 2 == 0 ? 0x7fff'ffffU : 0x6fff'ffffU;
            }
            for (std::uint8_t& place : places) {
                const std::uint64_t wish = random() % 17;
                place = static_cast<std::uint8_t>(wish == 16 ? 128 : wish);
            }
            simd_test::lane_moves moves;
            move_lanes(x, y, places, &moves);
            const std::size_t half = moves.lane_count / 2;
            std::uint64_t x2[8], y2[8];
            std::memcpy(x2, x, sizeof x);
            std::memcpy(y2, y, sizeof y);
            std::uint32_t mask = 0;
            bool has_sign = false;
            bool has_common_bits = false;
            for (std::size_t i = 0; i < 2 * half; ++i) {
                mask |= x[i] >> 31 << i;
                has_common_bits = has_common_bits || (x[i] & y[i] & 0x1000'0000U) != 0;
                // Pointers first: g++ 12 with -fsanitize=undefined miscompiles (i < half ? x : y)[2 * (i % half)].
                const std::uint32_t* const interleaved = i % 2 == 0 ? x : y;
                const std::uint32_t* const joined = i < half ? x : y;
                right[0] = right[0] && moves.lower[i] == interleaved[i / 2];
                right[1] = right[1] && moves.upper[i] == interleaved[half + i / 2];
                right[2] = right[2] && moves.low[i] == joined[2 * (i % half)];
            }
            for (std::size_t i = 0; i < half; ++i) {
                has_sign = has_sign || x2[i] >> 63 != 0;
                const std::uint64_t product = std::uint64_t{x[2 * i]} * y[2 * i];
                right[3] = right[3] && moves.products[i] == product;
                const std::uint64_t* const interleaved = i % 2 == 0 ? x2 : y2;
                right[4] = right[4] && moves.lower_longwords[i] == interleaved[i / 2] &&
                           moves.upper_longwords[i] == interleaved[half / 2 + i / 2];
                const std::uint64_t quiet = is_nan(x2[i]) ? x2[i] | 0x0008'0000'0000'0000U : x2[i];
                right[5] = right[5] && moves.quieted_doubles[i] == quiet;
                const double quotient = std::bit_cast<double>(x2[i]) / std::bit_cast<double>(y2[i]);
                right[6] =
                    right[6] && same_number(moves.quotients[i], std::bit_cast<std::uint64_t>(quotient));
            }
            right[7] = right[7] && moves.mask == mask;
            right[8] = right[8] && moves.has_sign == has_sign;
            right[10] = right[10] && moves.has_common_bits == has_common_bits;
            const auto* const bytes = reinterpret_cast<const std::uint8_t*>(x);
            for (std::size_t i = 0; i < 8 * half; ++i) {
                const std::uint8_t byte = places[i] == 128 ? std::uint8_t{0} : bytes[i / 16 * 16 + places[i]];
                right[9] = right[9] && moves.shuffled[i] == byte;
            }
        }
        for (std::size_t o = 0; o < 11; ++o) {
            CAPTURE(o);
            CHECK(right[o]);
        }
    }
}

TEST_CASE_TEMPLATE("parts of vectors of integers leave the memory behind them alone", Element, std::uint8_t,
                   std::uint16_t, std::uint32_t) {
    for (const mp::instruction_set isa : targets()) {
        CAPTURE(mp::name_of(isa));
        std::size_t (*const none)() = nullptr;
        void (*const no_copy)(std::size_t, const Element*, Element*, Element*) = nullptr;
        const std::size_t lanes = MP_SELECT_TARGET(isa, none, lanes_of_target)();
        Element from[17];
        for (std::size_t i = 0; i < 17; ++i) from[i] = static_cast<Element>(3 * i + 1);
        for (std::size_t n = 0; n < lanes; ++n) {
            Element to[17];
            Element all[17];
            std::fill(std::begin(to), std::end(to), Element{42});
            MP_SELECT_TARGET(isa, no_copy, copy_first_elements<Element>)(n, from, to, all);
            bool right = true;
            for (std::size_t i = 0; i < 17; ++i) {
                right = right && to[i] == (i < n ? from[i] : Element{42});
                if (i < lanes) right = right && all[i] == (i < n ? from[i] : Element{0});
            }
            CAPTURE(n);
            CHECK(right);
        }
    }
}

}  // namespace

#endif
