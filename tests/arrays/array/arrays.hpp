// SPDX-License-Identifier: MIT
#pragma once

#include <mp/numbers/simd/processor.hpp>

#include <cfenv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace arrays {

/// The instruction sets that the processor has.
inline std::vector<mp::instruction_set> instruction_sets() {
    std::vector<mp::instruction_set> result;
    for (int i = 0; i <= static_cast<int>(mp::processor_instruction_set()); ++i) {
        if (!mp::processor_has(static_cast<mp::instruction_set>(i))) continue;
        result.push_back(static_cast<mp::instruction_set>(i));
    }
    return result;
}

/// Values with many special ones; every code of formats of up to 8 bits is among 4096 of them.
template <class Value>
std::vector<Value> values(std::size_t count, std::uint64_t seed) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::random_bits random(seed);
    std::vector<Value> result;
    for (std::size_t i = 0; i < count; ++i) {
        result.push_back(oracle::value_of<Value>(i % 2 == 0 ? weighted_code(random, f)
                                                            : random.next() & (code_count(f) - 1)));
    }
    return result;
}

template <class Value>
bool is_nan(Value x) {
    return oracle::is_nan(oracle::format_of<Value>, oracle::code_of(x));
}

/// The same bits, or NaN both: which NaN an operation gives is not promised.
template <class Value>
bool agree(Value a, Value b) {
    return oracle::code_of(a) == oracle::code_of(b) || (is_nan(a) && is_nan(b));
}

/// How many elements differ.
template <class Value, class Expected>
std::size_t count_wrong(const std::vector<Value>& results, Expected expected) {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < results.size(); ++i) wrong += agree(results[i], expected(i)) ? 0U : 1U;
    return wrong;
}
/// The same where NaNs have to be the same as well.
template <class Value, class Expected>
std::size_t count_different(const std::vector<Value>& results, Expected expected) {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < results.size(); ++i) {
        wrong += oracle::code_of(results[i]) == oracle::code_of(expected(i)) ? 0U : 1U;
    }
    return wrong;
}

/// Sets the rounding mode of the processor for a scope.
class rounding_scope {
public:
    explicit rounding_scope(int mode) { std::fesetround(mode); }
    ~rounding_scope() { std::fesetround(FE_TONEAREST); }
    rounding_scope(const rounding_scope&) = delete;
    rounding_scope& operator=(const rounding_scope&) = delete;
};

}  // namespace arrays
