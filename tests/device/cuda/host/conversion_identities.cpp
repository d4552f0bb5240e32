// SPDX-License-Identifier: MIT
// Device code converts by ways around that are exact: by a multiplication, two codes at a time, through
// float. Here the same ways by the integer core.
#include <mp/bfloat16.hpp>
#include <mp/float4.hpp>
#include <mp/float6.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/numbers/format/conversion_repairs.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "oracle/library.hpp"

namespace {

using mp::detail::convert_bits;
using mp::formats::binary16;
using mp::formats::binary32;

/// A format of one's own that the multiplication widens.
struct small_format : mp::detail::fn_format<3, 4, 5> {
    static constexpr const char* name = "small";
};

std::uint32_t multiply_floats(std::uint32_t a, std::uint32_t b) {
    return mp::detail::multiply_bits<binary32>(a, b, {});
}
std::uint32_t multiply_pairs(std::uint32_t a, std::uint32_t b) {
    const auto product = [&](int shift) {
        return std::uint32_t{mp::detail::multiply_bits<binary16>(static_cast<std::uint16_t>(a >> shift),
                                                                 static_cast<std::uint16_t>(b >> shift), {})}
               << shift;
    };
    return product(0) | product(16);
}

template <class Format>
void check_widening() {
    using storage = mp::detail::storage_of<Format>;
    constexpr std::uint32_t codes = mp::layout_of<Format>::code_mask + 1u;
    CAPTURE(Format::name);
    std::size_t wrong = 0;
    if constexpr (mp::detail::widens_by_multiplication<Format>) {
        for (std::uint32_t code = 0; code < codes; ++code) {
            const std::uint32_t expected = convert_bits<binary32, Format>(static_cast<storage>(code), {});
            wrong += mp::detail::widen_by_multiplication<Format>(code, multiply_floats) != expected ? 1u : 0u;
        }
        CHECK(wrong == 0);
    }
    const auto is_nan = [](std::uint32_t code) {
        return mp::detail::categorize<Format>(static_cast<storage>(code)) == mp::detail::category::nan;
    };
    for (std::uint32_t first = 0; first < codes; ++first) {
        for (std::uint32_t second = 0; second < codes; ++second) {
            const std::uint32_t pair = first | (second << 8);
            const bool has_nan = is_nan(first) || is_nan(second);
            wrong += mp::detail::pair_has_nan<Format>(pair) != has_nan ? 1u : 0u;
            if (has_nan) continue;
            const std::uint32_t expected =
                convert_bits<binary16, Format>(static_cast<storage>(first), {}) |
                (std::uint32_t{convert_bits<binary16, Format>(static_cast<storage>(second), {})} << 16);
            wrong += mp::detail::widen_pair<Format>(pair, multiply_pairs) != expected ? 1u : 0u;
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("one multiplication widens every code of small formats, and every pair of codes, exactly") {
    check_widening<mp::formats::float8_e4m3fn>();
    check_widening<mp::formats::float8_e5m2>();
    check_widening<mp::formats::float6_e2m3fn>();
    check_widening<mp::formats::float6_e3m2fn>();
    check_widening<mp::formats::float4_e2m1fn>();
    check_widening<small_format>();
    CHECK(!mp::detail::widens_in_pairs<mp::formats::float8_e4m3>);
    CHECK(!mp::detail::widens_in_pairs<mp::formats::float8_e4m3fnuz>);
    CHECK(!mp::detail::widens_in_pairs<mp::formats::float8_e8m0fnu>);
}

template <class Number>
void check_nan_search() {
    std::size_t wrong = 0;
    for (std::uint32_t code = 0; code < 65536; ++code) {
        const bool nan = mp::isnan(Number::from_bits(static_cast<std::uint16_t>(code)));
        for (const std::uint32_t other : {0u, 0x8000u, 0x3c00u, 0xffffu, 0x7c00u, 0xff80u}) {
            const bool expected = nan || mp::isnan(Number::from_bits(static_cast<std::uint16_t>(other)));
            using format = typename Number::format;
            wrong += mp::detail::pair_has_nan<format>(code | (other << 16)) != expected ? 1u : 0u;
            wrong += mp::detail::pair_has_nan<format>(other | (code << 16)) != expected ? 1u : 0u;
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("a NaN is seen in either half of a pair of 16-bit numbers") {
    check_nan_search<mp::half>();
    check_nan_search<mp::bfloat16>();
}

/// On a device numbers convert by way of float.
template <class To, class From>
void check_way_through_float() {
    using to = typename To::format;
    using from = typename From::format;
    oracle::disagreements wrong;
    for (std::uint32_t code = 0; code <= From::layout::code_mask; ++code) {
        const auto bits = static_cast<typename From::storage>(code);
        const std::uint32_t value = convert_bits<binary32, from>(bits, {});
        for (const mp::rounding rounding :
             {mp::rounding::nearest_even, mp::rounding::toward_zero, mp::rounding::upward,
              mp::rounding::downward, mp::rounding::nearest_away, mp::rounding::to_odd}) {
            for (const mp::saturation saturation :
                 {mp::saturation::none, mp::saturation::finite, mp::saturation::propagate}) {
                for (const mp::nan_propagation nan :
                     {mp::nan_propagation::keep, mp::nan_propagation::canonical}) {
                    mp::projection p{rounding, saturation};
                    p.nan = nan;
                    const std::uint32_t direct = convert_bits<to, from>(bits, p);
                    const std::uint32_t through = convert_bits<to, binary32>(value, p);
                    if (direct != through) wrong.add(code, "becomes", direct, "and by float", through);
                }
            }
        }
    }
    CAPTURE(from::name);
    CAPTURE(to::name);
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE("a number converts to another format through float with the same bits, NaN included") {
    check_way_through_float<mp::bfloat16, mp::half>();
    check_way_through_float<mp::float8_e4m3fn, mp::half>();
    check_way_through_float<mp::float8_e5m2, mp::half>();
    check_way_through_float<mp::float4_e2m1fn, mp::half>();
    check_way_through_float<mp::half, mp::bfloat16>();
    check_way_through_float<mp::float8_e5m2, mp::bfloat16>();
    check_way_through_float<mp::float8_e4m3fnuz, mp::bfloat16>();
    check_way_through_float<mp::half, mp::float8_e5m2>();
    check_way_through_float<mp::half, mp::float8_e4m3fnuz>();
    check_way_through_float<mp::bfloat16, mp::float8_e4m3fn>();
    check_way_through_float<mp::float8_e5m2, mp::float8_e4m3fn>();
    check_way_through_float<mp::float8_e4m3, mp::float8_e3m4>();
}

/// On a device numbers become integers by way of float, and integers of 8 and 16 bits by way of 32.
template <class Integer, class Wide, class From>
void check_integer_through_float() {
    using from = typename From::format;
    std::size_t wrong = 0;
    for (std::uint32_t code = 0; code <= From::layout::code_mask; ++code) {
        const auto bits = static_cast<typename From::storage>(code);
        const auto wide = mp::detail::to_integer<Wide, binary32>(convert_bits<binary32, from>(bits, {}));
        constexpr Wide lowest = std::numeric_limits<Integer>::min();
        constexpr Wide highest = std::numeric_limits<Integer>::max();
        const auto through = static_cast<Integer>(std::clamp(wide, lowest, highest));
        wrong += through != mp::detail::to_integer<Integer, from>(bits) ? 1u : 0u;
    }
    CHECK(wrong == 0);
}

template <class From>
void check_integers_through_float() {
    check_integer_through_float<std::int8_t, std::int32_t, From>();
    check_integer_through_float<std::uint8_t, std::uint32_t, From>();
    check_integer_through_float<std::int16_t, std::int32_t, From>();
    check_integer_through_float<std::uint16_t, std::uint32_t, From>();
    check_integer_through_float<std::int32_t, std::int32_t, From>();
    check_integer_through_float<std::uint64_t, std::uint64_t, From>();
    check_integer_through_float<std::int64_t, std::int64_t, From>();
}

TEST_CASE("a number becomes an integer through float and 32 bits as it does at once") {
    check_integers_through_float<mp::half>();
    check_integers_through_float<mp::bfloat16>();
    check_integers_through_float<mp::float8_e5m2>();
    check_integers_through_float<mp::float8_e4m3fnuz>();
}

}  // namespace
