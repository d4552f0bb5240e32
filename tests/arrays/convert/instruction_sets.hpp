// SPDX-License-Identifier: MIT
#pragma once

#include <mp/convert.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "oracle/library.hpp"
#include "oracle/random.hpp"

/// The instruction_sets that this processor has for which there are kernels, and the highest that it has.
inline std::vector<mp::instruction_set> instruction_sets_at_hand() {
    const mp::instruction_set most = mp::processor_instruction_set();
    std::vector<mp::instruction_set> instruction_sets = {mp::instruction_set::portable};
    for (const mp::instruction_set isa :
         {mp::instruction_set::neon, mp::instruction_set::avx2, mp::instruction_set::avx512}) {
        if (isa != most && mp::includes(most, isa)) instruction_sets.push_back(isa);
    }
    if (most > mp::instruction_set::portable) instruction_sets.push_back(most);
    return instruction_sets;
}

/// The bits of a number, NaNs included.
template <class Value>
std::uint64_t bits_of(Value x) {
    if constexpr (mp::reduced<Value>) {
        return x.bits();
    } else {
        return std::bit_cast<std::conditional_t<sizeof(Value) == 4, std::uint32_t, std::uint64_t>>(x);
    }
}

/// Numbers at which something happens: for every number of To (or some of them) and every tie between two,
/// their neighbours in From; and numbers of From with frequent edges.
template <class From, class To>
std::vector<From> edge_values(std::size_t random_count) {
    std::vector<From> values;
    oracle::random_bits random(17);
    for (std::size_t i = 0; i < random_count; ++i)
        values.push_back(oracle::value_of<From>(weighted_code(random, oracle::format_of<From>)));
    if constexpr (mp::reduced<To> && !mp::reduced<From>) {
        using layout = mp::layout_of<typename To::format>;
        using word = std::conditional_t<sizeof(From) == 4, std::uint32_t, std::uint64_t>;
        const std::uint64_t codes = std::uint64_t{layout::code_mask} + 1;
        constexpr int from_fraction = sizeof(From) == 4 ? 23 : 52;
        constexpr word half_ulp = word{1} << (from_fraction - 1 - layout::fraction_bits);
        for (std::uint64_t code = 0; code < codes; code += 1 + codes / 2048) {
            const To number = To::from_bits(static_cast<typename To::storage>(code));
            const word bits = std::bit_cast<word>(static_cast<From>(number));
            for (const word place : {bits, bits + half_ulp, bits - half_ulp, bits + half_ulp / 2}) {
                for (const word near : {place - 1, place, place + 1}) {
                    values.push_back(std::bit_cast<From>(near));
                }
            }
        }
    }
    return values;
}
