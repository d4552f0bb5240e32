// SPDX-License-Identifier: MIT
// Numbers packed and unpacked by vectors have the bits of the portable code, which packed_array.cpp proves.
#include <mp/block_scaled.hpp>
#include <mp/convert.hpp>

#include <doctest/doctest.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "arrays/convert/vector_values.hpp"
#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

/// The bytes around the target, too.
template <class T, class Source>
std::vector<std::byte> packed_bytes(mp::cpu exec, std::span<const Source> values, std::size_t first,
                                    mp::projection p) {
    std::vector<std::byte> memory(mp::packed_size<T>(first + values.size()) + 64, std::byte{0xa5});
    const mp::packed_span<T> whole(memory.data() + 16, first + values.size());
    mp::pack(exec, values, whole.subspan(first, values.size()), p);
    return memory;
}

template <class Target, class T>
std::vector<Target> unpacked(mp::cpu exec, mp::packed_span<const T> packed, std::size_t offset) {
    std::vector<Target> to(packed.size() + offset + 3, Target(5.0f));
    mp::unpack(exec, packed, std::span(to).subspan(offset, packed.size()));
    return to;
}

template <class Value>
bool same_bytes(const std::vector<Value>& a, const std::vector<Value>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(Value)) == 0;
}

template <class T, class Number>
void compare(oracle::disagreements& wrong, const mp::projection& p) {
    const mp::cpu portable{.instructions = mp::instruction_set::portable};
    for (int kind = 0; kind < block_value_kinds; ++kind) {
        const std::vector<Number> x = block_values<Number>(3000, kind, 80);
        oracle::random_bits random(81);
        for (std::size_t length = 0; length < 2900; length += length < 140 ? 1 : 151) {
            const std::size_t first = length % 11;
            const auto values = std::span<const Number>(x).subspan(length % 13, length);
            const auto expected = packed_bytes<T, Number>(portable, values, first, p);
            // Any bytes are numbers.
            mp::packed_array<T> any(first + length);
            for (std::byte& byte : any.bytes()) byte = static_cast<std::byte>(random.next() & 0xff);
            const mp::packed_span<const T> part = std::as_const(any).view().subspan(first, length);
            const auto numbers = unpacked<Number, T>(portable, part, length % 5);
            for (const mp::instruction_set isa : vector_instruction_sets()) {
                const mp::cpu exec{.instructions = isa};
                if (!same_bytes(packed_bytes<T, Number>(exec, values, first, p), expected)) {
                    wrong.add("pack", std::string(name_of(isa)), block_value_names[kind], length);
                }
                if (!same_bytes(unpacked<Number, T>(exec, part, length % 5), numbers)) {
                    wrong.add("unpack", std::string(name_of(isa)), length);
                }
            }
        }
    }
}

}  // namespace

TEST_CASE_TEMPLATE("vectors pack and unpack as the portable code does", T, mp::float4_e2m1fn,
                   mp::float6_e2m3fn, mp::float6_e3m2fn) {
    oracle::disagreements wrong;
    compare<T, float>(wrong, {});
    compare<T, mp::half>(wrong, {});
    compare<T, mp::bfloat16>(wrong, {});
    // Without infinity and NaN, kinds of saturation and of NaNs are all one; what stands for NaN is not.
    compare<T, float>(wrong, {mp::rounding::nearest_even, mp::saturation::finite});
    compare<T, float>(wrong, {.saturate = mp::saturation::propagate, .nan = mp::nan_propagation::canonical});
    compare<T, float>(wrong, {.without_nan = mp::nan_substitute::zero});
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

#if TEST_HAS_MODES
TEST_CASE_TEMPLATE("the caller's modes do not change packing and are not changed", T, mp::float4_e2m1fn,
                   mp::float6_e3m2fn) {
    for (int kind = 0; kind < block_value_kinds; ++kind) {
        const std::vector<float> x = block_values<float>(1013, kind, 90);
        mp::packed_array<T> expected(x.size());
        mp::pack(mp::cpu{}, x, expected);
        std::vector<float> numbers(x.size());
        mp::unpack(mp::cpu{}, expected, numbers);
        for (const mode_bits modes : caller_modes) {
            for (const mp::instruction_set isa : all_instruction_sets()) {
                CAPTURE(modes);
                const mp::cpu exec{.instructions = isa};
                mp::packed_array<T> got(x.size());
                std::vector<float> back(x.size());
                mode_bits after = 0;
                {
                    const modes_scope scope(modes);
                    mp::pack(exec, x, got);
                    mp::unpack(exec, got, back);
                    after = current_modes();
                }
                CHECK(after == modes);
                CHECK(same_codes(got, expected));
                CHECK(same_bytes(back, numbers));
            }
        }
    }
}
#endif
