// SPDX-License-Identifier: MIT
// What surrounds the conversion instructions of a device runs here around models of the instructions: the
// oracle's rounding, and where the CUDA headers are installed their emulation for hosts. The judge is the
// integer core.
#include <mp/bfloat16.hpp>
#include <mp/float4.hpp>
#include <mp/float6.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/numbers/format/conversion_repairs.hpp>

#include <doctest/doctest.h>

#if __has_include(<cuda_fp4.h>)
#define MP_TEST_HAS_CUDA_HEADERS 1
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>
#else
#define MP_TEST_HAS_CUDA_HEADERS 0
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

using mp::detail::convert_bits;
using mp::formats::binary16;
using mp::formats::binary32;

constexpr mp::saturation saturations[]{mp::saturation::none, mp::saturation::finite,
                                       mp::saturation::propagate};
constexpr mp::nan_propagation nan_rules[]{mp::nan_propagation::keep, mp::nan_propagation::canonical};

/// Floats of every sign, exponent and seven leading fraction bits, followed by patterns that are on, before
/// and after the midpoints of numbers with fewer bits and of numbers with ten; and random ones.
std::vector<std::uint32_t> sweep(std::uint32_t step) {
    std::vector<std::uint32_t> floats;
    for (std::uint32_t upper = 0; upper < 65536; upper += step) {
        for (const std::uint32_t lower :
             {0x0000u, 0x0001u, 0x0fffu, 0x1000u, 0x1001u, 0x3000u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
            floats.push_back((upper << 16) | lower);
        }
    }
    oracle::random_bits random(29);
    for (std::uint32_t i = 0; i < 400000 / step; ++i) {
        floats.push_back(static_cast<std::uint32_t>(weighted_code(random, oracle::binary32)));
    }
    return floats;
}

/// A NaN as the instructions make it.
template <class Number>
std::uint32_t device_nan() {
    if constexpr (!Number::layout::has_nan) return Number::layout::max_finite_code;
    return Number::layout::magnitude_mask;
}

/// An instruction according to the oracle, which shares no code with the library.
template <class Number>
std::uint32_t model(std::uint32_t x, oracle::mode rounding, oracle::saturate saturation) {
    if (oracle::is_nan(oracle::binary32, x)) return device_nan<Number>();
    const oracle::format& to = oracle::format_of<Number>;
    const oracle::outcome result =
        oracle::finish(to, oracle::convert(oracle::binary32, x, to), rounding, saturation);
    return result.nan ? device_nan<Number>() : static_cast<std::uint32_t>(result.code);
}

/// Repairs what `instruction` makes of the floats in every projection with this rounding, and compares with
/// the integer core.
template <class Number, class Instruction, class Repair>
void check_repairs(mp::rounding rounding, std::uint32_t step, Instruction instruction, Repair repair) {
    using format = typename Number::format;
    oracle::disagreements wrong;
    for (const std::uint32_t x : sweep(step)) {
        const std::uint32_t raw = instruction(x);
        for (const mp::saturation saturation : saturations) {
            for (const mp::nan_propagation nan : nan_rules) {
                mp::projection p{rounding, saturation};
                p.nan = nan;
                const std::uint32_t expected = convert_bits<format, binary32>(x, p);
                const std::uint32_t got = repair(raw, x, p);
                if (got != expected) wrong.add(x, "becomes", got, "not", expected, int(saturation), int(nan));
            }
        }
    }
    CAPTURE(format::name);
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

constexpr auto after_satfinite_of = []<class Format>(Format) {
    return [](std::uint32_t code, std::uint32_t x, const mp::projection& p) {
        return mp::detail::after_satfinite<Format>(code, x, p);
    };
};
constexpr auto after_conversion_of = []<class Format>(Format) {
    return [](std::uint32_t code, std::uint32_t x, const mp::projection& p) {
        return mp::detail::after_conversion<Format>(code, x, p);
    };
};

template <class Number>
void check_satfinite_with_oracle() {
    check_repairs<Number>(
        mp::rounding::nearest_even, 7,
        [](std::uint32_t x) {
            return model<Number>(x, oracle::mode::nearest_even, oracle::saturate::finite);
        },
        after_satfinite_of(typename Number::format{}));
}

TEST_CASE(
    "conversions that saturate and forget the sign of NaN are repaired to every saturation and NaN rule") {
    check_satfinite_with_oracle<mp::float8_e4m3fn>();
    check_satfinite_with_oracle<mp::float8_e5m2>();
    check_satfinite_with_oracle<mp::float6_e2m3fn>();
    check_satfinite_with_oracle<mp::float6_e3m2fn>();
    check_satfinite_with_oracle<mp::float4_e2m1fn>();
}

template <class Number>
void check_conversion_with_oracle() {
    for (const oracle::mode rounding : {oracle::mode::nearest_even, oracle::mode::toward_zero,
                                        oracle::mode::upward, oracle::mode::downward}) {
        check_repairs<Number>(
            oracle::library_rounding(rounding), 13,
            [rounding](std::uint32_t x) { return model<Number>(x, rounding, oracle::saturate::none); },
            after_conversion_of(typename Number::format{}));
    }
}

TEST_CASE(
    "conversions to half and bfloat16 in four directions are repaired to every saturation and NaN rule") {
    check_conversion_with_oracle<mp::half>();
    check_conversion_with_oracle<mp::bfloat16>();
}

#if MP_TEST_HAS_CUDA_HEADERS

float float_of(std::uint32_t bits) {
    return std::bit_cast<float>(bits);
}
template <class T>
std::uint32_t bits_of(T x) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &x, sizeof x);
    return bits;
}

__half2 half2_of(std::uint32_t bits) {
    __half2_raw raw;
    raw.x = static_cast<unsigned short>(bits);
    raw.y = static_cast<unsigned short>(bits >> 16);
    return raw;
}

TEST_CASE("CUDA's emulation of the conversions to 8, 6 and 4 bits, repaired, gives the core's bits") {
    check_repairs<mp::float8_e4m3fn>(
        mp::rounding::nearest_even, 1,
        [](std::uint32_t x) -> std::uint32_t {
            return __nv_cvt_float_to_fp8(float_of(x), __NV_SATFINITE, __NV_E4M3);
        },
        after_satfinite_of(mp::formats::float8_e4m3fn{}));
    check_repairs<mp::float8_e5m2>(
        mp::rounding::nearest_even, 1,
        [](std::uint32_t x) -> std::uint32_t {
            return __nv_cvt_float_to_fp8(float_of(x), __NV_SATFINITE, __NV_E5M2);
        },
        after_satfinite_of(mp::formats::float8_e5m2{}));
    check_repairs<mp::float6_e2m3fn>(
        mp::rounding::nearest_even, 1,
        [](std::uint32_t x) -> std::uint32_t {
            return __nv_cvt_float_to_fp6(float_of(x), __NV_E2M3, cudaRoundNearest);
        },
        after_satfinite_of(mp::formats::float6_e2m3fn{}));
    check_repairs<mp::float6_e3m2fn>(
        mp::rounding::nearest_even, 1,
        [](std::uint32_t x) -> std::uint32_t {
            return __nv_cvt_float_to_fp6(float_of(x), __NV_E3M2, cudaRoundNearest);
        },
        after_satfinite_of(mp::formats::float6_e3m2fn{}));
    check_repairs<mp::float4_e2m1fn>(
        mp::rounding::nearest_even, 1,
        [](std::uint32_t x) -> std::uint32_t {
            return __nv_cvt_float_to_fp4(float_of(x), __NV_E2M1, cudaRoundNearest);
        },
        after_satfinite_of(mp::formats::float4_e2m1fn{}));
}

TEST_CASE("CUDA's emulation of the conversions to half and bfloat16, repaired, gives the core's bits") {
    const auto to_half = after_conversion_of(mp::formats::binary16{});
    const auto to_bfloat16 = after_conversion_of(mp::formats::bfloat16{});
    using mp::rounding;
    check_repairs<mp::half>(
        rounding::nearest_even, 1, [](std::uint32_t x) { return bits_of(__float2half_rn(float_of(x))); },
        to_half);
    check_repairs<mp::half>(
        rounding::toward_zero, 1, [](std::uint32_t x) { return bits_of(__float2half_rz(float_of(x))); },
        to_half);
    check_repairs<mp::half>(
        rounding::upward, 1, [](std::uint32_t x) { return bits_of(__float2half_ru(float_of(x))); }, to_half);
    check_repairs<mp::half>(
        rounding::downward, 1, [](std::uint32_t x) { return bits_of(__float2half_rd(float_of(x))); },
        to_half);
    check_repairs<mp::bfloat16>(
        rounding::nearest_even, 1, [](std::uint32_t x) { return bits_of(__float2bfloat16_rn(float_of(x))); },
        to_bfloat16);
    check_repairs<mp::bfloat16>(
        rounding::toward_zero, 1, [](std::uint32_t x) { return bits_of(__float2bfloat16_rz(float_of(x))); },
        to_bfloat16);
    check_repairs<mp::bfloat16>(
        rounding::upward, 1, [](std::uint32_t x) { return bits_of(__float2bfloat16_ru(float_of(x))); },
        to_bfloat16);
    check_repairs<mp::bfloat16>(
        rounding::downward, 1, [](std::uint32_t x) { return bits_of(__float2bfloat16_rd(float_of(x))); },
        to_bfloat16);
}

/// Integers of all magnitudes, powers of two and midpoints among them.
std::uint64_t weighted_integer(oracle::random_bits& random) {
    const std::uint64_t bits = random.next() >> random.below(64);
    switch (random.below(4)) {
        case 0:
            return std::uint64_t{1} << random.below(64);
        case 1:
            return bits & ~((std::uint64_t{1} << random.below(60)) - 1);
        case 2:
            return (bits & ~((std::uint64_t{1} << random.below(60)) - 1)) + random.below(3) - 1;
        default:
            return bits;
    }
}

TEST_CASE("CUDA's emulation of the conversions from integers and from double gives the core's bits") {
    oracle::random_bits random(31);
    oracle::disagreements wrong;
    const auto check = [&](const char* from, std::uint64_t operand, std::uint32_t theirs,
                           std::uint32_t ours) {
        if (theirs != ours) wrong.add(from, operand, "becomes", theirs, "and not", ours);
    };
    using mp::detail::from_integer;
    using half_format = mp::formats::binary16;
    using bfloat16_format = mp::formats::bfloat16;
    constexpr mp::projection p;
    for (int i = 0; i < 400000; ++i) {
        const std::uint64_t bits = weighted_integer(random);
        const auto u32 = static_cast<std::uint32_t>(bits);
        const auto s32 = static_cast<std::int32_t>(u32);
        const auto s64 = static_cast<std::int64_t>(bits);
        const unsigned long long u64 = bits;
        check("uint32", bits, bits_of(__uint2half_rn(u32)), from_integer<half_format>(u32, p));
        check("int32", bits, bits_of(__int2half_rn(s32)), from_integer<half_format>(s32, p));
        check("uint64", bits, bits_of(__ull2half_rn(u64)), from_integer<half_format>(bits, p));
        check("int64", bits, bits_of(__ll2half_rn(s64)), from_integer<half_format>(s64, p));
        check("uint32", bits, bits_of(__uint2bfloat16_rn(u32)), from_integer<bfloat16_format>(u32, p));
        check("int32", bits, bits_of(__int2bfloat16_rn(s32)), from_integer<bfloat16_format>(s32, p));
        check("uint64", bits, bits_of(__ull2bfloat16_rn(u64)), from_integer<bfloat16_format>(bits, p));
        check("int64", bits, bits_of(__ll2bfloat16_rn(s64)), from_integer<bfloat16_format>(s64, p));

        std::uint64_t code = weighted_code(random, oracle::binary64);
        if (i % 2 == 0) {
            // Near the midpoints of the formats, where float would round first.
            const float near = float_of(static_cast<std::uint32_t>(weighted_code(random, oracle::binary32)));
            code = std::bit_cast<std::uint64_t>(static_cast<double>(near)) + random.below(3) - 1;
        }
        const auto x = std::bit_cast<double>(code);
        if (oracle::is_nan(oracle::binary64, code)) continue;
        check("double", code, bits_of(__double2half(x)),
              convert_bits<half_format, mp::formats::binary64>(code, p));
        check("double", code, bits_of(__double2bfloat16(x)),
              convert_bits<bfloat16_format, mp::formats::binary64>(code, p));
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

/// CUDA's pairs put the first number into the low byte as well.
TEST_CASE(
    "CUDA's emulation of widening a pair of e4m3 to halves gives the multiplication's bits, NaN aside") {
    std::size_t wrong = 0;
    const auto multiply = [](std::uint32_t a, std::uint32_t b) {
        return bits_of(__hmul2(half2_of(a), half2_of(b)));
    };
    for (std::uint32_t codes = 0; codes < 65536; ++codes) {
        if (mp::detail::pair_has_nan<mp::formats::float8_e4m3fn>(codes)) continue;
        const __half2_raw theirs =
            __nv_cvt_fp8x2_to_halfraw2(static_cast<__nv_fp8x2_storage_t>(codes), __NV_E4M3);
        const std::uint32_t expected = theirs.x | (std::uint32_t{theirs.y} << 16);
        wrong += mp::detail::widen_pair<mp::formats::float8_e4m3fn>(codes, multiply) != expected ? 1u : 0u;
    }
    CHECK(wrong == 0);
}

#else

TEST_CASE("comparisons with CUDA's emulation of its instructions are left out") {
    MESSAGE("the CUDA headers are not installed");
}

#endif

TEST_CASE("the smallest floats that overflow are the midpoint above the largest number, or behind it") {
    CHECK(mp::detail::first_overflow<mp::formats::float8_e4m3fn> == std::bit_cast<std::uint32_t>(464.0F) + 1);
    CHECK(mp::detail::first_overflow<mp::formats::float8_e5m2> == std::bit_cast<std::uint32_t>(61440.0F));
}

/// Halves convert to 8 bits directly where neither needs repair. The saturating projection with its canonical
/// NaN stands for the instruction.
template <class Number>
void check_halves() {
    using format = typename Number::format;
    mp::projection satfinite{mp::rounding::nearest_even, mp::saturation::finite};
    satfinite.nan = mp::nan_propagation::canonical;
    std::size_t wrong = 0;
    for (const mp::saturation saturation : saturations) {
        const mp::projection p{mp::rounding::nearest_even, saturation};
        const std::uint32_t first = mp::detail::first_repaired<format, binary16>(p);
        for (std::uint32_t code = 0; code < 65536; ++code) {
            const auto bits = static_cast<std::uint16_t>(code);
            const bool reaches = (code & 0x7fff) >= first;
            for (const std::uint32_t other : {0u, 0x8000u, 0x0001u, 0x3c00u, 0xbbffu}) {
                wrong += mp::detail::pair_reaches(code | (other << 16), first) != reaches ? 1u : 0u;
                wrong += mp::detail::pair_reaches(other | (code << 16), first) != reaches ? 1u : 0u;
            }
            const std::uint32_t expected = convert_bits<format, binary16>(bits, p);
            const std::uint32_t saturated = convert_bits<format, binary16>(bits, satfinite);
            wrong += !reaches && saturated != expected ? 1u : 0u;
#if MP_TEST_HAS_CUDA_HEADERS
            __half_raw raw;
            raw.x = bits;
            const auto theirs = __nv_cvt_halfraw_to_fp8(raw, __NV_SATFINITE,
                                                        mp::detail::is_e5m2<format> ? __NV_E5M2 : __NV_E4M3);
            wrong += !reaches && theirs != expected ? 1u : 0u;
#endif
        }
    }
    CAPTURE(format::name);
    CHECK(wrong == 0);
}

TEST_CASE("halves that need no repair are told apart from those that do, and convert to 8 bits at once") {
    check_halves<mp::float8_e4m3fn>();
    check_halves<mp::float8_e5m2>();
    CHECK(mp::detail::first_overflow<mp::formats::float8_e4m3fn, binary16> == mp::half(464.0F).bits() + 1);
    CHECK(mp::detail::first_overflow<mp::formats::float8_e5m2, binary16> == mp::half(61440.0F).bits());
}

}  // namespace
