// SPDX-License-Identifier: MIT
/// \file
/// Descriptors of the formats that have a name.
#pragma once

#include <mp/config.hpp>
#include <mp/numbers/format/descriptor.hpp>

#include <type_traits>

namespace mp {

namespace detail { inline namespace MP_ISA_NAMESPACE {

template <int ExponentBits, int FractionBits, int Bias, bool HasInfinity, nan_encoding Nans>
struct signed_format {
    static constexpr int exponent_bits = ExponentBits;
    static constexpr int fraction_bits = FractionBits;
    static constexpr int bias = Bias;
    static constexpr bool is_signed = true;
    static constexpr bool has_infinity = HasInfinity;
    static constexpr nan_encoding nans = Nans;
};

/// Infinities and NaNs as in IEEE 754.
template <int ExponentBits, int FractionBits>
using ieee_format =
    signed_format<ExponentBits, FractionBits, (1 << (ExponentBits - 1)) - 1, true, nan_encoding::ieee>;

/// "fn": finite numbers and a NaN of all ones.
template <int ExponentBits, int FractionBits, int Bias>
using fn_format = signed_format<ExponentBits, FractionBits, Bias, false, nan_encoding::all_ones>;

/// "fnuz": finite numbers, unsigned zero, and the NaN in place of minus zero.
template <int ExponentBits, int FractionBits, int Bias>
using fnuz_format = signed_format<ExponentBits, FractionBits, Bias, false, nan_encoding::negative_zero>;

/// Nothing but finite numbers.
template <int ExponentBits, int FractionBits, int Bias>
using finite_format = signed_format<ExponentBits, FractionBits, Bias, false, nan_encoding::none>;

}}  // namespace detail

/// A descriptor of your own with the same members works everywhere these do: mp::basic_float<my_format>.
///
/// Sources: IEEE 754-2019 table 3.5 (binary16, binary32, binary64); the BFloat16 numerics definition of Intel
/// (2018); NVIDIA's A100 white paper (TF32); OCP 8-bit floating point specification OFP8 1.0, table 1 (E4M3
/// and E5M2); OCP Microscaling Formats (MX) specification 1.0, section 5.3 (FP6, FP4, E8M0); Noune et al.,
/// "8-bit numerical formats for deep neural networks", 2022 (fnuz); ml_dtypes' README (E4M3, E3M4,
/// E4M3B11FNUZ).
namespace formats {

/// IEEE 754 binary16, "half" or "fp16".
struct binary16 : detail::ieee_format<5, 10> {
    static constexpr const char* name = "half";
};

/// bfloat16: the upper half of binary32, so the range of float at 8 bits of precision.
struct bfloat16 : detail::ieee_format<8, 7> {
    static constexpr const char* name = "bfloat16";
};

/// TF32: the range of float at the precision of half, in the high 19 bits of a 32-bit word.
struct tfloat32 : detail::ieee_format<8, 10> {
    static constexpr const char* name = "tfloat32";
    static constexpr int container_bits = 32;
};

/// OCP OFP8 E4M3: no infinities, one NaN magnitude, and therefore finite values up to 448.
struct float8_e4m3fn : detail::fn_format<4, 3, 7> {
    static constexpr const char* name = "float8_e4m3fn";
};

/// OCP OFP8 E5M2: the upper byte of binary16, with IEEE infinities and NaNs; finite values up to 57344.
struct float8_e5m2 : detail::ieee_format<5, 2> {
    static constexpr const char* name = "float8_e5m2";
};

/// E4M3 with the specials of IEEE 754; finite values up to 240.
struct float8_e4m3 : detail::ieee_format<4, 3> {
    static constexpr const char* name = "float8_e4m3";
};

/// E3M4 with the specials of IEEE 754; finite values up to 15.5.
struct float8_e3m4 : detail::ieee_format<3, 4> {
    static constexpr const char* name = "float8_e3m4";
};

/// E4M3 with bias 11; finite values up to 30.
struct float8_e4m3b11fnuz : detail::fnuz_format<4, 3, 11> {
    static constexpr const char* name = "float8_e4m3b11fnuz";
};

/// E4M3 with bias 8; finite values up to 240.
struct float8_e4m3fnuz : detail::fnuz_format<4, 3, 8> {
    static constexpr const char* name = "float8_e4m3fnuz";
};

/// E5M2 with bias 16; finite values up to 57344.
struct float8_e5m2fnuz : detail::fnuz_format<5, 2, 16> {
    static constexpr const char* name = "float8_e5m2fnuz";
};

/// OCP MX scale: powers of two from 2^-127 to 2^127 and a NaN; no zero, no sign.
struct float8_e8m0fnu {
    static constexpr const char* name = "float8_e8m0fnu";
    static constexpr int exponent_bits = 8;
    static constexpr int fraction_bits = 0;
    static constexpr int bias = 127;
    static constexpr bool is_signed = false;
    static constexpr bool has_zero = false;
    static constexpr bool has_infinity = false;
    static constexpr nan_encoding nans = nan_encoding::all_ones;
};

/// OCP MX FP6 E2M3: finite values up to 7.5 and nothing else.
struct float6_e2m3fn : detail::finite_format<2, 3, 1> {
    static constexpr const char* name = "float6_e2m3fn";
};

/// OCP MX FP6 E3M2: finite values up to 28 and nothing else.
struct float6_e3m2fn : detail::finite_format<3, 2, 3> {
    static constexpr const char* name = "float6_e3m2fn";
};

/// OCP MX FP4 E2M1: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives.
struct float4_e2m1fn : detail::finite_format<2, 1, 1> {
    static constexpr const char* name = "float4_e2m1fn";
};

/// IEEE 754 binary32, the built-in float.
struct binary32 : detail::ieee_format<8, 23> {
    static constexpr const char* name = "float";
};

/// IEEE 754 binary64, the built-in double.
struct binary64 : detail::ieee_format<11, 52> {
    static constexpr const char* name = "double";
};

/// Formats as a type.
template <class... Formats>
struct list {
    static constexpr int size = sizeof...(Formats);
};

/// Every format with a name, once: whatever goes through all of them (names, ranges, element_format, tables,
/// tests) goes through this list. What is added here is known everywhere.
using all = list<binary16, bfloat16, binary32, binary64, tfloat32, float8_e4m3fn, float8_e5m2, float8_e4m3,
                 float8_e3m4, float8_e4m3b11fnuz, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu,
                 float6_e2m3fn, float6_e3m2fn, float4_e2m1fn>;

/// The place of a format in a list.
template <class Format, class First, class... Rest>
consteval int position_in(list<First, Rest...>) {
    if constexpr (std::is_same_v<Format, First>) {
        return 0;
    } else {
        return 1 + position_in<Format>(list<Rest...>{});
    }
}
template <class Format>
consteval int position_of() {
    return position_in<Format>(all{});
}

}  // namespace formats

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Whatever a format is called, whether it is the one that instructions of processors know.
template <class Format>
inline constexpr bool is_binary16 =
    layout_of<Format>::is_ieee && layout_of<Format>::width == 16 && Format::exponent_bits == 5 &&
    Format::fraction_bits == 10 && Format::bias == 15;

template <class Format>
inline constexpr bool is_bfloat16 =
    layout_of<Format>::is_ieee && layout_of<Format>::width == 16 && Format::exponent_bits == 8 &&
    Format::fraction_bits == 7 && Format::bias == 127;

}}  // namespace mp::detail
