// SPDX-License-Identifier: MIT
// The number types of the CUDA headers share the bits of the library's, and CUDA's conversions on the host
// agree with the library's but where the test says so.
#include <doctest/doctest.h>

#if __has_include(<cuda_fp4.h>)
#include <mp/convert.hpp>
#include <mp/frontends/interop/cuda_types.hpp>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <ostream>
#include <vector>

#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

template <class T>
unsigned bytes_of(T x) {
    unsigned bytes = 0;
    std::memcpy(&bytes, &x, sizeof x);
    return bytes;
}

/// All codes, through both directions and CUDA's conversion to float.
template <class Ours, class Theirs>
void compare_codes() {
    static_assert(std::same_as<decltype(mp::to_cuda(Ours{})), Theirs>);
    static_assert(std::same_as<decltype(mp::from_cuda(Theirs{})), Ours>);
    for (std::uint32_t code = 0; code <= mp::layout_of<typename Ours::format>::code_mask; ++code) {
        const Ours ours = Ours::from_bits(static_cast<typename Ours::storage>(code));
        const Theirs theirs = mp::to_cuda(ours);
        REQUIRE(bytes_of(theirs) == code);
        REQUIRE(mp::from_cuda(theirs).bits() == code);
        const auto value = static_cast<float>(theirs);
        if (mp::isnan(ours)) {
            REQUIRE(mp::isnan(value));
        } else {
            REQUIRE(bytes_of(value) == bytes_of(static_cast<float>(ours)));
        }
    }
    std::vector<Ours> numbers{Ours::from_bits(1), Ours::from_bits(2)};
    CHECK(bytes_of(mp::as_cuda(numbers.data())[1]) == 2);
    const std::span<Theirs> view = mp::as_cuda(std::span(numbers));
    CHECK(bytes_of(view[0]) == 1);
    CHECK(mp::view_of_cuda(std::span<const Theirs>(view)).data() == numbers.data());
    CHECK(mp::view_of_cuda(view.data()) == numbers.data());
}

/// Numbers of a format and their midpoints with neighbours, and a random sample of all floats.
template <class T>
std::vector<float> interesting_floats() {
    std::vector<float> values;
    float last = 0;
    const auto add = [&](float x) {
        for (const float y : {x, std::nextafter(x, 1e38f), std::nextafter(x, -1e38f)}) {
            values.push_back(y);
            values.push_back(-y);
        }
    };
    for (std::uint32_t code = 0; code <= mp::layout_of<typename T::format>::code_mask; ++code) {
        const auto x = static_cast<float>(T::from_bits(static_cast<typename T::storage>(code)));
        if (!mp::isfinite(x)) continue;
        add(x);
        add(last / 2 + x / 2);
        last = x;
    }
    oracle::random_bits random(1);
    for (int i = 0; i < 300000; ++i) {
        values.push_back(oracle::value_of<float>(weighted_code(random, oracle::binary32)));
    }
    return values;
}

/// `theirs` gives CUDA's code for a float; NaN gives `nan` there.
template <class Ours, class Theirs>
void compare_conversion(mp::projection p, unsigned nan, Theirs theirs) {
    oracle::disagreements wrong;
    for (const float x : interesting_floats<Ours>()) {
        const unsigned got = theirs(x);
        const unsigned expected = mp::isnan(x) ? nan : mp::round_to<Ours>(x, p).bits();
        if (got != expected) wrong.add(bytes_of(x), "becomes", got, "in CUDA, not", expected);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

constexpr mp::projection saturating{mp::rounding::nearest_even, mp::saturation::finite};

}  // namespace

TEST_CASE("CUDA's types have the same codes") {
    compare_codes<mp::half, __half>();
    compare_codes<mp::bfloat16, __nv_bfloat16>();
    compare_codes<mp::float8_e4m3fn, __nv_fp8_e4m3>();
    compare_codes<mp::float8_e5m2, __nv_fp8_e5m2>();
    compare_codes<mp::float8_e8m0fnu, __nv_fp8_e8m0>();
    compare_codes<mp::float6_e2m3fn, __nv_fp6_e2m3>();
    compare_codes<mp::float6_e3m2fn, __nv_fp6_e3m2>();
    compare_codes<mp::float4_e2m1fn, __nv_fp4_e2m1>();
}

TEST_CASE("CUDA's conversions agree, except for NaN, which loses its sign and payload") {
    compare_conversion<mp::half>({}, 0x7fff, [](float x) { return bytes_of(__float2half_rn(x)); });
    compare_conversion<mp::half>({mp::rounding::toward_zero}, 0x7fff,
                                 [](float x) { return bytes_of(__float2half_rz(x)); });
    compare_conversion<mp::half>({mp::rounding::upward}, 0x7fff,
                                 [](float x) { return bytes_of(__float2half_ru(x)); });
    compare_conversion<mp::bfloat16>({}, 0x7fff, [](float x) { return bytes_of(__float2bfloat16_rn(x)); });
    compare_conversion<mp::bfloat16>({mp::rounding::downward}, 0x7fff,
                                     [](float x) { return bytes_of(__float2bfloat16_rd(x)); });
    compare_conversion<mp::float8_e4m3fn>(
        {}, 0x7f, [](float x) -> unsigned { return __nv_cvt_float_to_fp8(x, __NV_NOSAT, __NV_E4M3); });
    compare_conversion<mp::float8_e4m3fn>(saturating, 0x7f,
                                          [](float x) { return bytes_of(__nv_fp8_e4m3(x)); });
    compare_conversion<mp::float8_e5m2>(
        {}, 0x7f, [](float x) -> unsigned { return __nv_cvt_float_to_fp8(x, __NV_NOSAT, __NV_E5M2); });
    compare_conversion<mp::float8_e5m2>(saturating, 0x7f, [](float x) { return bytes_of(__nv_fp8_e5m2(x)); });
    compare_conversion<mp::float6_e2m3fn>(saturating, 0x1f,
                                          [](float x) { return bytes_of(__nv_fp6_e2m3(x)); });
    compare_conversion<mp::float6_e3m2fn>(saturating, 0x1f,
                                          [](float x) { return bytes_of(__nv_fp6_e3m2(x)); });
    compare_conversion<mp::float4_e2m1fn>(saturating, 0x7,
                                          [](float x) { return bytes_of(__nv_fp4_e2m1(x)); });
}

TEST_CASE("scales of MX blocks") {
    // CUDA drops the sign of what becomes a scale; here a negative number has none.
    compare_conversion<mp::float8_e8m0fnu>({mp::rounding::upward, mp::saturation::finite}, 0xff, [](float x) {
        return mp::isnan(x) ? 0xffu
               : mp::signbit(x)
                   ? mp::round_to<mp::float8_e8m0fnu>(x, {mp::rounding::upward, mp::saturation::finite})
                         .bits()
                   : __nv_cvt_float_to_e8m0(x, __NV_SATFINITE, cudaRoundPosInf);
    });
    compare_conversion<mp::float8_e8m0fnu>(
        {mp::rounding::toward_zero, mp::saturation::finite}, 0xff, [](float x) {
            return mp::isnan(x)     ? 0xffu
                   : mp::signbit(x) ? mp::round_to<mp::float8_e8m0fnu>(
                                          x, {mp::rounding::toward_zero, mp::saturation::finite})
                                          .bits()
                                    : __nv_cvt_float_to_e8m0(x, __NV_SATFINITE, cudaRoundZero);
        });
}
#else
TEST_CASE("tests of mp/frontends/interop/cuda_types.hpp are left out") {
    MESSAGE("the CUDA headers are not installed");
}
#endif
