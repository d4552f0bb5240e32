// SPDX-License-Identifier: MIT
// The kernels of every instruction set give the bits of the conversion of single numbers, whatever the length
// and the alignment of arrays, and whatever the processor's modes.
#include <mp/convert.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <doctest/doctest.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <span>
#include <vector>

#include "arrays/convert/instruction_sets.hpp"
#include "numbers/simd/caller_modes.hpp"
#include "oracle/library.hpp"

namespace {

template <class To, class From>
std::vector<To> expected_of(const std::vector<From>& from) {
    std::vector<To> to(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) to[i] = mp::round_to<To>(from[i]);
    return to;
}

template <class From, class To>
void compare_instruction_sets(oracle::disagreements& wrong) {
    const std::vector<From> from = edge_values<From, To>(5000);
    const std::vector<To> expected = expected_of<To>(from);
    for (const mp::instruction_set isa : instruction_sets_at_hand()) {
        std::vector<To> to(from.size());
        mp::convert(mp::cpu{.instructions = isa}, from, to);
        for (std::size_t i = 0; i < to.size(); ++i) {
            if (bits_of(to[i]) != bits_of(expected[i])) {
                wrong.add(static_cast<int>(isa), bits_of(from[i]), "becomes", bits_of(to[i]), "and not",
                          bits_of(expected[i]));
            }
        }
    }
}

/// Calls `check` with a number of each of the types.
template <class... Types, class Check>
void for_types(Check check) {
    (check(Types{}), ...);
}

}  // namespace

TEST_CASE_TEMPLATE_DEFINE("every instruction set rounds floats and doubles to a format as single numbers are",
                          T, instruction_sets) {
    oracle::disagreements wrong;
    compare_instruction_sets<float, T>(wrong);
    compare_instruction_sets<double, T>(wrong);
    compare_instruction_sets<T, float>(wrong);
    compare_instruction_sets<T, double>(wrong);
    compare_instruction_sets<T, mp::half>(wrong);
    compare_instruction_sets<T, mp::bfloat16>(wrong);
    compare_instruction_sets<mp::half, T>(wrong);
    compare_instruction_sets<mp::bfloat16, T>(wrong);
    compare_instruction_sets<T, mp::float8_e4m3fn>(wrong);
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
TEST_CASE_TEMPLATE_APPLY(instruction_sets, oracle::named_formats);

TEST_CASE("every instruction set converts between float and double as single numbers are") {
    oracle::disagreements wrong;
    compare_instruction_sets<float, double>(wrong);
    compare_instruction_sets<double, float>(wrong);
    compare_instruction_sets<float, float>(wrong);
    compare_instruction_sets<double, double>(wrong);
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE("doubles next to the ties of bfloat16's and float's subnormal numbers are rounded once") {
    std::vector<double> from;
    for (int exponent = -1074; exponent < -120; ++exponent) {
        for (const double significand : {1.0, 1.25, 1.5, 1.75, 1.0 + 0x1p-8, 1.0 + 0x1p-7 + 0x1p-8}) {
            const double x = std::ldexp(significand, exponent);
            for (const double y : {x, std::nextafter(x, 1.0), std::nextafter(x, 0.0)}) {
                from.push_back(y);
                from.push_back(-y);
            }
        }
    }
    const auto check = [&](auto to_type) {
        using To = decltype(to_type);
        const std::vector<To> expected = expected_of<To>(from);
        for (const mp::instruction_set isa : instruction_sets_at_hand()) {
            std::vector<To> to(from.size());
            mp::convert(mp::cpu{.instructions = isa}, from, to);
            CHECK(std::memcmp(to.data(), expected.data(), to.size() * sizeof(To)) == 0);
        }
    };
    for_types<mp::half, mp::bfloat16, mp::tfloat32, float>(check);
}

TEST_CASE("arrays of every length and alignment are converted, and nothing beside them is touched") {
    const auto check = [](auto from_type, auto to_type) {
        using From = decltype(from_type);
        using To = decltype(to_type);
        const std::vector<From> source = edge_values<From, float>(200);
        const std::vector<To> expected = expected_of<To>(source);
        oracle::disagreements wrong;
        for (const mp::instruction_set isa : instruction_sets_at_hand()) {
            for (std::size_t length = 0; length <= 130; ++length) {
                for (std::size_t offset = 0; offset < (length < 40 ? 33U : 5U); ++offset) {
                    constexpr unsigned char guard = 0xa5;
                    std::vector<unsigned char> memory((length + 200) * sizeof(To), guard);
                    // 64 bytes of guard before, at every alignment that the type may have.
                    auto* const base = reinterpret_cast<To*>(memory.data() + 64) + offset;
                    const std::size_t start = 33 - offset;
                    mp::convert(mp::cpu{.instructions = isa},
                                std::span<const From>(source).subspan(start, length),
                                std::span<To>(base, length));
                    const auto begin =
                        static_cast<std::size_t>(reinterpret_cast<unsigned char*>(base) - memory.data());
                    if (std::memcmp(base, expected.data() + start, length * sizeof(To)) != 0)
                        wrong.add(static_cast<int>(isa), length, offset);
                    for (std::size_t i = 0; i < memory.size(); ++i) {
                        const bool inside = i >= begin && i < begin + length * sizeof(To);
                        if (!inside && memory[i] != guard) wrong.add("wrote", i, length, offset);
                    }
                }
            }
        }
        INFO(wrong.first());
        CHECK(wrong.count == 0);
    };
    for_types<mp::half, mp::bfloat16, mp::float8_e5m2, mp::tfloat32, double, float>(
        [&](auto to) { check(float{}, to); });
    for_types<mp::half, mp::bfloat16, float, double>([&](auto to) { check(double{}, to); });
    for_types<mp::half, mp::float8_e4m3fn, float, double>([&](auto to) { check(mp::half{}, to); });
}

#if TEST_HAS_MODES
TEST_CASE("the processor's modes change no bit and are as before") {
    const auto check = [](auto from_type, auto to_type) {
        using From = decltype(from_type);
        using To = decltype(to_type);
        const std::vector<From> from = edge_values<From, To>(3000);
        const std::vector<To> expected = expected_of<To>(from);
        for (const mp::instruction_set isa : instruction_sets_at_hand()) {
            for (const mode_bits modes : caller_modes) {
                std::vector<To> to(from.size());
                mode_bits after = 0;
                {
                    const modes_scope scope(modes);
                    mp::convert(mp::cpu{.instructions = isa}, from, to);
                    after = current_modes();
                }
                CHECK(after == modes);
                CAPTURE(modes);
                CHECK(std::memcmp(to.data(), expected.data(), to.size() * sizeof(To)) == 0);
            }
        }
    };
    for_types<mp::half, mp::bfloat16, mp::float8_e4m3fn, double, float>([&](auto to) {
        check(float{}, to);
        check(double{}, to);
        check(mp::half{}, to);
        check(mp::bfloat16{}, to);
    });
}
#endif

TEST_CASE_TEMPLATE("numbers in range narrow alike, without anything that is special among them", T,
                   mp::float8_e4m3fn, mp::float8_e5m2, mp::float8_e4m3, mp::float8_e3m4, mp::float8_e4m3fnuz,
                   mp::float8_e5m2fnuz, mp::float8_e4m3b11fnuz, mp::float6_e2m3fn, mp::float6_e3m2fn,
                   mp::float4_e2m1fn) {
    std::vector<float> from = edge_values<float, T>(4000);
    const auto largest = static_cast<float>(std::numeric_limits<T>::max());
    std::erase_if(from, [&](float x) { return !(std::fabs(x) <= largest); });
    REQUIRE(from.size() > 500);
    std::vector<T> to(from.size());
    for (const mp::instruction_set isa : instruction_sets_at_hand()) {
        CAPTURE(static_cast<int>(isa));
        mp::convert(mp::cpu{.instructions = isa}, from, to);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < from.size(); ++i)
            wrong += to[i].bits() != mp::round_to<T>(from[i]).bits();
        CHECK(wrong == 0);
    }
}

TEST_CASE("arrays that are written around the caches have the same bits, at any alignment and thread count") {
    std::size_t count = mp::detail::streaming_threshold() / (sizeof(float) + sizeof(mp::half)) + 100003;
    // Where caches are large this would take long for nothing.
    if (count > (std::size_t{1} << 23)) count = std::size_t{1} << 23;
    oracle::random_bits random(3);
    std::vector<float> from(count + 64);
    for (float& x : from) x = oracle::value_of<float>(random.next() & 0xffff'ffffU);
    const std::span<const float> source(from.data(), count);
    std::vector<mp::half> expected(count);
    for (std::size_t i = 0; i < count; ++i) expected[i] = mp::round_to<mp::half>(from[i]);
    std::vector<mp::half> memory(count + 64);
    for (const std::size_t offset : {0U, 1U, 17U}) {
        for (const int threads : {1, 2, 3}) {
            std::fill(memory.begin(), memory.end(), mp::half(1.0f));
            mp::convert(mp::cpu{.threads = threads}, source,
                        std::span<mp::half>(memory.data() + offset, count));
            CHECK(std::memcmp(memory.data() + offset, expected.data(), count * sizeof(mp::half)) == 0);
            CHECK((offset == 0 || memory[offset - 1] == mp::half(1.0f)));
            CHECK(memory[offset + count] == mp::half(1.0f));
        }
    }
    // The blocks by themselves, on a short array.
    for (std::size_t offset = 0; offset < 40; offset += 3) {
        std::fill(memory.begin(), memory.end(), mp::half(1.0f));
        const std::size_t length = 5000 + offset;
        mp::detail::convert_streaming(
            from.data(), memory.data() + offset, length, 7,
            [](const float* values, mp::half* results, std::size_t n, std::size_t first) {
                CHECK(first >= 7);
                mp::detail::convert_nearest(values, results, n);
            });
        CHECK(std::memcmp(memory.data() + offset, expected.data(), length * sizeof(mp::half)) == 0);
        CHECK(memory[offset + length] == mp::half(1.0f));
    }
}

#if MP_X86_TARGETS
TEST_CASE("kernels that go around the caches have the bits of the others, in any format and flushing mode") {
    constexpr std::size_t most = 3 * mp::detail::streamed_elements + 70;
    oracle::random_bits random(5);
    const auto check = [&]<class From, class To>(From, To) {
        CAPTURE(sizeof(From));
        CAPTURE(sizeof(To));
        std::vector<From> from(most);
        std::vector<To> expected(most), to(most + 1);
        for (From& x : from) x = oracle::value_of<From>(random.next() & 0xffff'ffffU);
        mp::detail::convert_nearest(from.data(), expected.data(), most);
        for (const mp::instruction_set isa : instruction_sets_at_hand()) {
            if (isa == mp::instruction_set::portable) continue;  // has none, and looks at the caller's modes
            CAPTURE(static_cast<int>(isa));
            for (std::size_t first = 0; first < 70; first += 3) {
                const std::size_t count = most - first;
                std::fill(to.begin(), to.end(), To(1.0F));
                {
                    const modes_scope modes(caller_modes[first % std::size(caller_modes)]);
                    mp::detail::nearest_array_conversion{isa}.stream(from.data() + first, to.data() + first,
                                                                     count);
                }
                CHECK(std::memcmp(to.data() + first, expected.data() + first, count * sizeof(To)) == 0);
                CHECK((first == 0 || to[first - 1] == To(1.0F)));
                CHECK(to[most] == To(1.0F));
            }
        }
    };
    for_types<mp::half, mp::bfloat16, mp::float8_e4m3fn, mp::float8_e5m2, mp::float8_e4m3b11fnuz>(
        [&](auto it) {
            check(float{}, it);
            check(it, float{});
        });
}
#endif
