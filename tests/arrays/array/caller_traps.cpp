// SPDX-License-Identifier: MIT
// Arrays raise no signal and no flag in a caller who would have signals for all of them.
#include <doctest/doctest.h>
#include <mp/array.hpp>
#include <mp/bfloat16.hpp>
#include <mp/convert.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "arrays/convert/instruction_sets.hpp"
#include "numbers/simd/caller_modes.hpp"

#if TEST_HAS_MODES && defined(__SSE2__)

namespace {

/// No exception is masked, and none has happened.
inline constexpr mode_bits all_signals = 0;

/// Calls f in those modes; says whether it left them as they were, and no flag.
template <class Function>
bool leaves_no_trace(Function f) {
    const modes_scope scope(all_signals);
    f();
    const bool clean = current_flags() == 0 && current_modes() == all_signals;
    set_modes(all_signals);
    return clean;
}

/// Signalling NaNs, infinities, zeros, subnormal and largest numbers, and thirds.
template <class Value>
std::vector<Value> troublesome(std::size_t count) {
    std::vector<Value> values;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t code = i * 0x9E37'79B9'7F4A'7C15U;
        if constexpr (std::is_same_v<Value, float>) {
            constexpr std::uint32_t first[] = {0x7f80'0001U, 0xff80'0000U, 0x8000'0000U, 1U, 0x7f7f'ffffU};
            const auto bits = i % 7 < 5 ? first[i % 7] : static_cast<std::uint32_t>(code >> 32);
            values.push_back(std::bit_cast<float>(bits));
        } else {
            values.push_back(Value::from_bits(static_cast<typename Value::storage>(code >> 48)));
        }
    }
    return values;
}

template <class Value>
void check(mp::cpu exec) {
    for (const std::size_t count : {5U, 64U, 700U}) {
        CAPTURE(count);
        const std::vector<Value> a = troublesome<Value>(count);
        const std::vector<Value> b(a.rbegin(), a.rend());
        const std::vector<float> floats = troublesome<float>(count);
        std::vector<Value> out(count);
        std::vector<float> wide(count);
        CHECK(leaves_no_trace([&] { mp::convert(exec, a, wide); }));
        CHECK(leaves_no_trace([&] { mp::convert(exec, floats, out); }));
        CHECK(leaves_no_trace([&] { mp::add(exec, a, b, out); }));
        CHECK(leaves_no_trace([&] { mp::subtract(exec, a, b, out); }));
        CHECK(leaves_no_trace([&] { mp::multiply(exec, a, b, out); }));
        CHECK(leaves_no_trace([&] { mp::divide(exec, a, b, out); }));
        CHECK(leaves_no_trace([&] { mp::fma(exec, a, b, a, out); }));
        CHECK(leaves_no_trace([&] { mp::sqrt(exec, a, out); }));
        CHECK(leaves_no_trace([&] { mp::exp(exec, a, out); }));
        CHECK(leaves_no_trace([&] { mp::minimum(exec, a, b, out); }));
    }
}

TEST_CASE("conversions and arithmetic of arrays raise no signal, whatever the caller has unmasked") {
    for (const mp::instruction_set isa : instruction_sets_at_hand()) {
        CAPTURE(static_cast<int>(isa));
        const mp::cpu exec{.instructions = isa};
        check<mp::half>(exec);
        check<mp::bfloat16>(exec);
        check<mp::float8_e4m3fn>(exec);
        check<mp::float8_e5m2>(exec);
    }
}

}  // namespace

#endif
