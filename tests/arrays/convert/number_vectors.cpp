// SPDX-License-Identifier: MIT
// The vectors of the kernels against the scalar conversions, which the tests of format/ prove.
#include <mp/arrays/convert/kernels/number_vectors.hpp>
#include <mp/block_scaled.hpp>
#include <mp/convert.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "oracle/library.hpp"

#define MP_KERNEL_FILE <arrays/convert/number_vectors.inl>
#include <mp/numbers/simd/for_each_target.inl>

#if MP_SIMD_TARGETS

namespace {

// tests/arrays/convert/every_format.cpp has other rounding modes and formats without vectors.
template <class... Values>
auto with_sign(const std::tuple<Values...>&)
    -> oracle::joined<std::conditional_t<Values::format::is_signed, std::tuple<Values>, std::tuple<>>...>;

TEST_CASE_TEMPLATE_DEFINE("vectors of numbers are read and rounded as the scalar conversions do", Value,
                          number_vectors) {
    using layout = mp::layout_of<typename Value::format>;
    static_assert(mp::detail::has_number_vectors<Value>);
    std::mt19937 random(7);

    std::vector<Value> all(std::size_t{1} << std::min(layout::width, 16));
    for (std::size_t i = 0; i < all.size(); ++i) {
        const auto code = layout::width <= 16 ? i : random() >> (32 - layout::width);
        all[i] = Value::from_bits(static_cast<typename layout::storage>(code));
    }
    // Around every number of the format and every tie between two: all of their float neighbours; and random
    // bits.
    std::vector<float> inputs;
    for (const Value value : all) {
        const auto bits = mp::detail::bit_cast<std::uint32_t>(static_cast<float>(value));
        constexpr std::uint32_t half_ulp = std::uint32_t{1} << (22 - layout::fraction_bits);
        for (const std::uint32_t place : {bits, bits + half_ulp, bits - half_ulp}) {
            for (const std::uint32_t near : {place - 1, place, place + 1}) {
                inputs.push_back(mp::detail::bit_cast<float>(near));
            }
        }
        for (int i = 0; i < 4; ++i) inputs.push_back(mp::detail::bit_cast<float>(std::uint32_t(random())));
    }
    inputs.resize(inputs.size() - 3);  // a last vector that is not full

    const auto check = [&](auto read, auto write) {
        std::vector<float> values(all.size() - 5);
        read(all.data(), values.data(), values.size());
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
            const auto expected = static_cast<float>(all[i]);
            wrong += std::memcmp(&values[i], &expected, sizeof expected) != 0 ? 1U : 0U;
        }
        CHECK(wrong == 0);
        std::vector<Value> rounded(inputs.size());
        write(inputs.data(), rounded.data(), inputs.size());
        wrong = 0;
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            wrong += rounded[i].bits() != mp::round_to<Value>(inputs[i]).bits() ? 1U : 0U;
        }
        CHECK(wrong == 0);
    };
    using reader = void (*)(const Value*, float*, std::size_t);
    using writer = void (*)(const float*, Value*, std::size_t);
    for (int i = 1; i <= static_cast<int>(mp::instruction_set::avx512); ++i) {
        const auto isa = static_cast<mp::instruction_set>(i);
        if (!mp::processor_has(isa)) continue;
        CAPTURE(mp::name_of(isa));
        const reader read = MP_SELECT_TARGET(isa, reader{nullptr}, read_numbers<Value>);
        const writer write = MP_SELECT_TARGET(isa, writer{nullptr}, write_numbers<Value>);
        check(read, write);
    }
}
TEST_CASE_TEMPLATE_APPLY(number_vectors, decltype(with_sign(std::declval<oracle::named_formats>())));

}  // namespace

#endif
