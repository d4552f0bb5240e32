// SPDX-License-Identifier: MIT
// Stochastic rounding of floats by single lanes and portable vectors. Those of the instruction sets are compared
// in optim/weight_update.cpp.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/numbers/rules/stochastic_rounding.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>

namespace {

namespace lane = mp::detail::single_lane;
namespace vectors = mp::detail::portable_vectors;

template <class Value>
std::size_t stochastic_differences() {
    using format = typename Value::format;
    std::mt19937 random(3);
    std::size_t different = 0;
    for (int i = 0; i < 400000; ++i) {
        float x[vectors::lanes];
        std::uint32_t bits[vectors::lanes];
        for (std::size_t k = 0; k < vectors::lanes; ++k) {
            auto code = static_cast<std::uint32_t>(random());
            // Exponents at which half begins, and ends; of a vector often some.
            if (random() % 4 == 1) code = (code & 0x87ff'ffffU) | 0x3000'0000U;
            if (random() % 4 == 2) code = (code & 0x81ff'ffffU) | 0x4600'0000U;
            x[k] = std::bit_cast<float>(code);
            // Often all but all ones: what is cut off shows.
            bits[k] = static_cast<std::uint32_t>(random());
            if (random() % 3 == 0) bits[k] = 0xffff'ffffU - bits[k] % 4;
        }
        vectors::vec<std::uint32_t> words = vectors::broadcast(bits[0]);
#if MP_PORTABLE_VECTORS
        for (std::size_t k = 0; k < vectors::lanes; ++k) words[k] = bits[k];
#endif
        const auto codes = std::bit_cast<std::array<std::uint32_t, vectors::lanes>>(
            vectors::stochastic_codes<format>(vectors::load(x), words));
        for (std::size_t k = 0; k < vectors::lanes; ++k) {
            const std::uint32_t expected = mp::round_to<Value>(x[k], mp::stochastic(bits[k])).bits();
            if (lane::stochastic_codes<format>(lane::broadcast(x[k]), bits[k]) != expected) ++different;
            if (codes[k] != expected) ++different;
        }
    }
    return different;
}

TEST_CASE(
    "stochastic rounding of floats is round_to's, for values of every kind, beside each other or alone") {
    CHECK(stochastic_differences<mp::bfloat16>() == 0);
    CHECK(stochastic_differences<mp::half>() == 0);
}

}  // namespace
