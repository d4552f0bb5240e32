// SPDX-License-Identifier: MIT
// Block-scaled arrays made and read by vectors have the bits of the portable code, which block_scaled.cpp
// proves: on every instruction set that the processor has, for all kinds of values, shapes and scales, whatever the
// caller's floating-point modes.
#include <mp/block_scaled.hpp>
#include <mp/convert.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <doctest/doctest.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "arrays/convert/vector_values.hpp"
#include "oracle/library.hpp"
#include "oracle/random.hpp"

#if MP_SIMD_TARGETS

namespace {

template <class Value>
bool same_bytes(const std::vector<Value>& a, const std::vector<Value>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(Value)) == 0;
}

template <class Quantized>
bool same_matrix(const Quantized& a, const Quantized& b) {
    const float tensor[2] = {a.tensor_scale(), b.tensor_scale()};
    return std::ranges::equal(a.bytes(), b.bytes()) && std::memcmp(&tensor[0], &tensor[1], 4) == 0 &&
           std::ranges::equal(a.scales(), b.scales(), [](auto x, auto y) { return x.bits() == y.bits(); });
}

constexpr mp::scale_rule rules[] = {mp::scale_rule::floor, mp::scale_rule::ceil, mp::scale_rule::even,
                                    mp::scale_rule::nearest};

/// Quantises with every rule and kind of options on every instruction set.
template <class Quantized, class Value>
void compare_quantize(oracle::disagreements& wrong, mp::matrix_view<const Value> view, const char* what) {
    for (const mp::scale_rule rule : rules) {
        for (const auto direction : {mp::block_direction::along_rows, mp::block_direction::along_columns}) {
            for (const auto nonfinite :
                 {mp::nonfinite_handling::propagate, mp::nonfinite_handling::by_element}) {
                for (const float tensor : {0.0f, 1.0f, 0.37f, 0x1p-75f, 0x1.8p90f}) {
                    if (!Quantized::has_tensor_scale && tensor != 0) continue;
                    const mp::quantize_options options{
                        .rule = rule, .direction = direction, .nonfinite = nonfinite, .tensor_scale = tensor};
                    mp::cpu exec{.instructions = mp::instruction_set::portable};
                    const auto expected = mp::quantize<Quantized>(exec, view, options);
                    for (const mp::instruction_set isa : vector_instruction_sets()) {
                        exec.instructions = isa;
                        const auto got = mp::quantize<Quantized>(exec, view, options);
                        if (!same_matrix(got, expected)) {
                            wrong.add(std::string(name_of(isa)), what, view.rows, view.columns,
                                      static_cast<int>(rule), static_cast<int>(direction),
                                      static_cast<int>(nonfinite), tensor);
                        }
                    }
                }
            }
        }
    }
}

template <class Quantized, class Value>
void compare_dequantize(oracle::disagreements& wrong, const Quantized& q) {
    // Guards around the target show what is written beside it.
    const auto count = static_cast<std::size_t>(q.rows() * q.columns());
    for (const std::size_t offset : {std::size_t{0}, std::size_t{3}}) {
        std::vector<Value> expected(count + 2 * offset + 8, Value(0.7f));
        const auto target = [&](std::vector<Value>& to) {
            return mp::row_major(to.data() + offset, q.rows(), q.columns());
        };
        mp::dequantize(mp::cpu{.instructions = mp::instruction_set::portable}, q, target(expected));
        for (const mp::instruction_set isa : vector_instruction_sets()) {
            std::vector<Value> got(expected.size(), Value(0.7f));
            mp::dequantize(mp::cpu{.instructions = isa}, q, target(got));
            if (!same_bytes(got, expected)) {
                std::size_t i = 0;
                while (std::memcmp(&got[i], &expected[i], sizeof(Value)) == 0) ++i;
                wrong.add(std::string(name_of(isa)), q.rows(), q.columns(), "at", i - offset,
                          static_cast<double>(got[i]), static_cast<double>(expected[i]));
            }
        }
    }
}

/// All scales with random elements, and all elements with random scales.
template <class Quantized>
Quantized random_matrix(std::ptrdiff_t rows, std::ptrdiff_t columns, mp::block_direction direction,
                        std::uint64_t seed) {
    using scale = typename Quantized::scale_type;
    Quantized q(rows, columns, direction);
    oracle::random_bits random(seed);
    for (std::byte& byte : q.bytes()) byte = static_cast<std::byte>(random.next() & 0xff);
    unsigned i = 0;
    for (scale& s : q.scales()) {
        s = scale::from_bits(static_cast<std::uint8_t>(random.below(4) == 0 ? random.next() : i++));
    }
    return q;
}

using blocks_of_64 = mp::block_scaled<mp::float8_e5m2fnuz, 64>;
using other_scales = mp::block_scaled<mp::float4_e2m1fn, 32, mp::float8_e4m3b11fnuz>;

#define BLOCK_FORMATS                                                                                 \
    mp::mxfp8_e4m3, mp::mxfp8_e5m2, mp::mxfp6_e2m3, mp::mxfp6_e3m2, mp::mxfp4, mp::mxint8, mp::nvfp4, \
        blocks_of_64, other_scales

}  // namespace

static_assert(mp::detail::has_block_vectors<mp::nvfp4> && mp::detail::has_block_vectors<other_scales>);
static_assert(mp::detail::has_block_vectors<mp::mxint8> && mp::detail::has_block_vectors<blocks_of_64>);

TEST_CASE_TEMPLATE("vectors quantise as the portable code does", Quantized, BLOCK_FORMATS) {
    oracle::disagreements wrong;
    const auto all_kinds = [&]<class Value>(Value) {
        for (int kind = 0; kind < block_value_kinds; ++kind) {
            const std::vector<Value> x = block_values<Value>(2100, kind, 100 + static_cast<unsigned>(kind));
            const char* const name = block_value_names[kind];
            compare_quantize<Quantized, Value>(wrong, mp::row_major(x.data(), 1, 1133), name);
            compare_quantize<Quantized, Value>(wrong, mp::row_major(x.data() + 1, 5, 128), name);
            compare_quantize<Quantized, Value>(wrong, mp::row_major(x.data() + 3, 3, 77, 90), name);
            compare_quantize<Quantized, Value>(wrong, mp::column_major(x.data() + 2, 96, 7), name);
        }
    };
    all_kinds(float{});
    all_kinds(mp::half{});
    all_kinds(mp::bfloat16{});
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE(
    "columns longer and more than what is gathered at a time are quantised as the portable code does",
    Quantized, mp::mxfp8_e4m3, mp::mxfp6_e3m2, mp::nvfp4, blocks_of_64) {
    oracle::disagreements wrong;
    constexpr std::ptrdiff_t rows = 512 + 83;
    constexpr std::ptrdiff_t columns = mp::detail::columns_abreast + 21;
    const auto compare = [&]<class Value>(Value) {
        std::vector<Value> x = block_values<Value>(rows * columns, 1, 5);
        // Blocks of a few columns that kernels leave out, at the beginning, in the middle and at the end.
        for (const std::ptrdiff_t row : {0, 200, 511, 512, 594}) {
            x[static_cast<std::size_t>(row * columns + row % 50)] = std::numeric_limits<Value>::infinity();
            x[static_cast<std::size_t>(row * columns + 30)] = std::numeric_limits<Value>::quiet_NaN();
        }
        const auto view = mp::row_major(static_cast<const Value*>(x.data()), rows, columns);
        for (const auto nonfinite : {mp::nonfinite_handling::propagate, mp::nonfinite_handling::by_element}) {
            const mp::quantize_options options{.direction = mp::block_direction::along_columns,
                                               .nonfinite = nonfinite};
            mp::cpu exec{.instructions = mp::instruction_set::portable};
            const auto expected = mp::quantize<Quantized>(exec, view, options);
            for (const mp::instruction_set isa : vector_instruction_sets()) {
                exec.instructions = isa;
                if (!same_matrix(mp::quantize<Quantized>(exec, view, options), expected)) {
                    wrong.add("quantise", std::string(name_of(isa)), static_cast<int>(nonfinite));
                }
                exec.threads = 3;
                if (!same_matrix(mp::quantize<Quantized>(exec, view, options), expected)) {
                    wrong.add("quantise on threads", std::string(name_of(isa)));
                }
            }
        }
    };
    compare(float{});
    compare(mp::half{});
    const auto q = random_matrix<Quantized>(rows, columns, mp::block_direction::along_columns, 4);
    compare_dequantize<Quantized, float>(wrong, q);
    compare_dequantize<Quantized, mp::half>(wrong, q);
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("columns that are written around the caches are the same", Value, float, mp::half) {
    using quantized = mp::mxfp6_e3m2;
    constexpr std::ptrdiff_t rows = 200;
    constexpr std::ptrdiff_t columns = mp::detail::columns_abreast;
    const auto q = random_matrix<quantized>(rows, columns, mp::block_direction::along_columns, 4);
    struct alignas(64) aligned {
        Value values[rows * columns];
    };
    const auto expected = std::make_unique<aligned>();
    mp::dequantize(mp::cpu{.instructions = mp::instruction_set::portable}, q,
                   mp::row_major(expected->values, rows, columns));
    using kernel = mp::detail::dequantize_columns_kernel<quantized, Value>;
    for (const mp::instruction_set isa : vector_instruction_sets()) {
        CAPTURE(name_of(isa));
        const kernel write = MP_SELECT_TARGET(isa, kernel{nullptr}, dequantize_columns<quantized, Value>);
        for (const std::ptrdiff_t some : {columns, columns - 1}) {
            const auto got = std::make_unique<aligned>(*expected);
            for (std::ptrdiff_t r = 0; r < rows; ++r)
                std::fill_n(got->values + r * columns, some, Value(0.7f));
            write(q.bytes().data(), q.bytes_per_vector(), q.scales().data(),
                  static_cast<std::size_t>(q.blocks_per_vector()), static_cast<std::size_t>(some), rows,
                  got->values, columns, 1, true);
            CHECK(std::memcmp(got->values, expected->values, sizeof got->values) == 0);
        }
    }
}

TEST_CASE_TEMPLATE("vectors of every length are quantised as the portable code does", Quantized,
                   mp::mxfp8_e4m3, mp::mxfp6_e3m2, mp::nvfp4) {
    oracle::disagreements wrong;
    const std::vector<float> x = block_values<float>(700, 1, 9);
    for (std::size_t length = 0; length < 600; length += length < 140 ? 1 : 13) {
        const auto values = std::span(x).subspan(length % 17, length);
        const auto expected =
            mp::quantize<Quantized>(mp::cpu{.instructions = mp::instruction_set::portable}, values);
        std::vector<mp::half> back(length + 1, mp::half(3.0f));
        mp::dequantize(mp::cpu{.instructions = mp::instruction_set::portable}, expected,
                       std::span(back).first(length));
        for (const mp::instruction_set isa : vector_instruction_sets()) {
            const auto got = mp::quantize<Quantized>(mp::cpu{.instructions = isa}, values);
            if (!same_matrix(got, expected)) wrong.add("quantise", std::string(name_of(isa)), length);
            std::vector<mp::half> again(length + 1, mp::half(3.0f));
            mp::dequantize(mp::cpu{.instructions = isa}, got, std::span(again).first(length));
            if (!same_bytes(again, back)) wrong.add("dequantise", std::string(name_of(isa)), length);
        }
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("vectors dequantise as the portable code does", Quantized, BLOCK_FORMATS) {
    oracle::disagreements wrong;
    for (const auto direction : {mp::block_direction::along_rows, mp::block_direction::along_columns}) {
        for (const auto& [rows, columns] : {std::pair{1, 64 * 300}, std::pair{9, 256}, std::pair{37, 53}}) {
            auto q = random_matrix<Quantized>(rows, columns, direction, 4);
            for (const float tensor :
                 {1.0f, 0.37f, 1.7e-3f, 0x1.fffffep10f, 0x1p-45f, 0x1p85f, 0.0f, -2.1f}) {
                if constexpr (Quantized::has_tensor_scale) {
                    q.set_tensor_scale(tensor);
                } else if (tensor != 1) {
                    continue;
                }
                compare_dequantize<Quantized, float>(wrong, q);
                compare_dequantize<Quantized, mp::half>(wrong, q);
                compare_dequantize<Quantized, mp::bfloat16>(wrong, q);
                compare_dequantize<Quantized, mp::float8_e4m3fn>(wrong, q);
            }
        }
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE("products next to ties of half and bfloat16 are rounded once") {
    // Tensor scales with which scale * element * tensor scale is a tie of the target, or a little beside it.
    oracle::disagreements wrong;
    oracle::random_bits random(31);
    for (int i = 0; i < 200; ++i) {
        auto q =
            random_matrix<mp::nvfp4>(1, 256, mp::block_direction::along_rows, 1000 + random.below(1u << 30));
        const int bits = i % 2 == 0 ? 11 : 8;
        const auto odd = static_cast<float>((1u << bits) + 2 * random.below(1u << (bits - 1)) + 1);
        auto code = mp::detail::bit_cast<std::uint32_t>(odd / 3 * 0x1p-9f);
        code += random.below(5) - 2u;
        q.set_tensor_scale(mp::detail::bit_cast<float>(code));
        compare_dequantize<mp::nvfp4, mp::half>(wrong, q);
        compare_dequantize<mp::nvfp4, mp::bfloat16>(wrong, q);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE("thresholds of NVFP4 are exact at ties and their neighbours") {
    oracle::disagreements wrong;
    oracle::random_bits random(33);
    const float middles[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
    for (int round = 0; round < 60; ++round) {
        // Of 24 bits, and of few, so that ties are floats.
        const std::uint32_t few = round % 2 == 0 ? 0x0000'0000u : 0x007f'ffffu;
        const float tensor =
            mp::detail::bit_cast<float>((static_cast<std::uint32_t>(100 + random.below(40)) << 23) |
                                        (static_cast<std::uint32_t>(random.next()) & few));
        std::vector<float> x(16 * 7, 0.0f);
        for (std::size_t b = 0; b < 7; ++b) {
            // 6 * scale * tensor scale as the largest, rounded to a float.
            const auto scale = mp::float8_e4m3fn::from_bits(static_cast<std::uint8_t>(8 + random.below(110)));
            const double product = static_cast<double>(scale) * static_cast<double>(tensor);
            x[16 * b] = static_cast<float>(6 * product);
            for (std::size_t i = 1; i < 16; ++i) {
                const auto tie = static_cast<float>(static_cast<double>(middles[random.below(7)]) * product);
                const auto near = mp::detail::bit_cast<std::uint32_t>(tie) + random.below(3) - 1u;
                x[16 * b + i] = mp::detail::bit_cast<float>(near | (i % 2 == 0 ? 0x8000'0000u : 0u));
            }
        }
        compare_quantize<mp::nvfp4, float>(wrong, mp::row_major(std::as_const(x).data(), 1, 112), "ties");
        const mp::quantize_options options{.tensor_scale = tensor};
        const auto expected =
            mp::quantize<mp::nvfp4>(mp::cpu{.instructions = mp::instruction_set::portable}, x, options);
        for (const mp::instruction_set isa : vector_instruction_sets()) {
            const auto got = mp::quantize<mp::nvfp4>(mp::cpu{.instructions = isa}, x, options);
            if (!same_matrix(got, expected)) wrong.add(std::string(name_of(isa)), tensor);
        }
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("the caller's modes change neither results nor are they changed", Quantized,
                   mp::mxfp8_e4m3, mp::mxfp6_e2m3, mp::mxint8, mp::nvfp4) {
    for (int kind = 0; kind < block_value_kinds; ++kind) {
        const std::vector<float> x = block_values<float>(3011, kind, 60);
        const auto expected = mp::quantize<Quantized>(mp::cpu{}, x);
        std::vector<mp::bfloat16> back(x.size());
        mp::dequantize(mp::cpu{}, expected, back);
        for (const mode_bits modes : caller_modes) {
            CAPTURE(modes);
            for (const mp::instruction_set isa : all_instruction_sets()) {
                const mp::cpu exec{.threads = 2, .instructions = isa};
                Quantized got;
                std::vector<mp::bfloat16> again(x.size());
                mode_bits after = 0;
                {
                    const modes_scope scope(modes);
                    got = mp::quantize<Quantized>(exec, x);
                    mp::dequantize(exec, expected, again);
                    after = current_modes();
                }
                CHECK(after == modes);
                CHECK(same_matrix(got, expected));
                CHECK(same_bytes(again, back));
            }
        }
    }
}

#endif
