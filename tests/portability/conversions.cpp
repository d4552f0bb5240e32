// SPDX-License-Identifier: MIT
// Conversions of numbers, from and to the built-in types and among formats; pairs in a register; random bits.
#include <mp/numbers/format/philox.hpp>
#include <mp/packed2.hpp>

#include "formats.hpp"

namespace portability {

namespace {

/// The float with these bits as a double, by bits where it is a NaN, of which RISC-V would make another one.
double widened(std::uint32_t bits) {
    if ((bits & 0x7fffffffU) < 0x00800000U) {  // by integers, as the processor may take it for zero
        const double magnitude = static_cast<double>(bits & 0x007fffffU) * 0x1p-149;
        return std::bit_cast<double>(std::bit_cast<std::uint64_t>(magnitude) | std::uint64_t{bits >> 31}
                                                                                   << 63);
    }
    if ((bits & 0x7fffffffU) <= 0x7f800000U) return static_cast<double>(std::bit_cast<float>(bits));
    return std::bit_cast<double>(std::uint64_t{bits & 0x80000000U} << 32 | std::uint64_t{0x7ff} << 52 |
                                 std::uint64_t{bits & 0x7fffffU} << 29);
}

template <class T>
void add_conversions(report& to, const std::string& name) {
    const std::vector<T> some = codes<T>(1000);
    const std::vector<float> floats = hard_floats(1000, 3);
    checksum from_float;
    checksum from_double;
    checksum from_integers;
    for (int round = 0; round < 9; ++round) {
        mp::projection p{.round = static_cast<mp::rounding>(round),
                         .saturate = static_cast<mp::saturation>(round % 3)};
        p.random_bits = 23;
        p.random = 0x2c9277U;
        for (const float& x : floats) {
            // By way of bits, and quiet, which is what passing a NaN by value makes of it on some processors.
            std::uint32_t bits = 0;
            std::memcpy(&bits, &x, sizeof bits);
            if ((bits & 0x7fffffffU) > 0x7f800000U) bits |= 0x00400000U;
            const auto quiet = std::bit_cast<float>(bits);
            from_float.add_code(mp::round_to<T>(quiet, p));
            const double wide = widened(bits);
            from_double.add_code(mp::round_to<T>(wide, p));
            if ((bits & 0x7f800000U) != 0x7f800000U) {
                from_double.add_code(
                    mp::round_to<T>(std::bit_cast<double>(std::bit_cast<std::uint64_t>(wide) | 1), p));
            }
            from_integers.add_code(mp::round_to<T>(static_cast<int>(bits), p));
            from_integers.add_code(mp::round_to<T>(std::uint64_t{bits} << (bits % 33), p));
            from_integers.add_code(mp::round_to<T>(static_cast<std::int16_t>(bits), p));
        }
    }
    to.add(name + ".from_float", from_float);
    to.add(name + ".from_double", from_double);
    to.add(name + ".from_integers", from_integers);

    checksum out;
    checksum others;
    for (const T x : some) {
        const bool is_nan = mp::isnan(x);
        out.add(is_nan ? 0.0F : mp::round_to<float>(x));
        out.add(is_nan ? 0.0 : mp::round_to<double>(x));
        out.add(static_cast<int>(x));
        out.add(static_cast<std::uint64_t>(x));
        out.add(static_cast<std::int8_t>(x));
        for (const mp::rounding round : {mp::rounding::nearest_even, mp::rounding::upward}) {
            const mp::projection p{.round = round};
            others.add_code(mp::round_to<mp::half>(x, p));
            others.add_code(mp::round_to<mp::bfloat16>(x, p));
            others.add_code(mp::round_to<mp::tfloat32>(x, p));
            others.add_code(mp::round_to<mp::float8_e4m3fn>(x, p));
            others.add_code(mp::round_to<mp::float8_e8m0fnu>(x, p));
            others.add_code(mp::round_to<mp::float6_e3m2fn>(x, p));
        }
    }
    to.add(name + ".to_built_in", out);
    to.add(name + ".to_formats", others);
}

template <class T>
void add_pairs(report& to, const std::string& name) {
    checksum sum;
    const std::vector<T> some = codes<T>(64);
    for (std::size_t i = 0; i + 1 < some.size(); ++i) {
        for (std::size_t j = 0; j + 1 < some.size(); ++j) {
            const mp::packed2<T> a(some[i], some[i + 1]);
            const mp::packed2<T> b(some[j], some[j + 1]);
            sum.add(a + b);
            sum.add(a - b);
            sum.add(a * b);
            sum.add(fma(a, b, b));
            sum.add(minimum_number(a, b));
            sum.add(maximum_number(a, b));
        }
    }
    to.add(name + ".packed2", sum);
}

}  // namespace

void add_more_number_checksums(report& to) {
    for_each_format([&]<class T>(named<T> it) { add_conversions<T>(to, it.name); });
    add_pairs<mp::half>(to, "half");
    add_pairs<mp::bfloat16>(to, "bfloat16");
    checksum random;
    for (std::uint64_t i = 0; i < 1000; ++i) random.add(mp::random_bits(i * i, i << (i % 50)));
    to.add("random_bits", random);
}

}  // namespace portability
