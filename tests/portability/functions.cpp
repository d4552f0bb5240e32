// SPDX-License-Identifier: MIT
// Mathematical functions of numbers.
#include <mp/math.hpp>

#include <iterator>

#include "formats.hpp"

namespace portability {

namespace {

template <class T>
void add_functions(report& to, const std::string& format, std::size_t count) {
    const std::vector<T> some = codes<T>(count);
    const auto add = [&](const char* name, auto f) {
        checksum sum;
        for (const T x : some) {
            sum.add(f(x, mp::projection{}));
            sum.add(f(x, mp::projection{.round = mp::rounding::upward}));
        }
        to.add(format + "." + name, sum);
    };
#define MP_ADD_FUNCTION(name) add(#name, [](T x, mp::projection p) { return mp::name(x, p); })
    MP_ADD_FUNCTION(cbrt);
    MP_ADD_FUNCTION(rsqrt);
    MP_ADD_FUNCTION(exp);
    MP_ADD_FUNCTION(exp2);
    MP_ADD_FUNCTION(exp10);
    MP_ADD_FUNCTION(expm1);
    MP_ADD_FUNCTION(log);
    MP_ADD_FUNCTION(log2);
    MP_ADD_FUNCTION(log10);
    MP_ADD_FUNCTION(log1p);
    MP_ADD_FUNCTION(sin);
    MP_ADD_FUNCTION(cos);
    MP_ADD_FUNCTION(tan);
    MP_ADD_FUNCTION(sinpi);
    MP_ADD_FUNCTION(cospi);
    MP_ADD_FUNCTION(tanpi);
    MP_ADD_FUNCTION(asin);
    MP_ADD_FUNCTION(acos);
    MP_ADD_FUNCTION(atan);
    MP_ADD_FUNCTION(sinh);
    MP_ADD_FUNCTION(cosh);
    MP_ADD_FUNCTION(tanh);
    MP_ADD_FUNCTION(asinh);
    MP_ADD_FUNCTION(acosh);
    MP_ADD_FUNCTION(atanh);
    MP_ADD_FUNCTION(erf);
    MP_ADD_FUNCTION(erfc);
    MP_ADD_FUNCTION(lgamma);
    MP_ADD_FUNCTION(tgamma);
    MP_ADD_FUNCTION(asinpi);
    MP_ADD_FUNCTION(acospi);
    MP_ADD_FUNCTION(atanpi);
    MP_ADD_FUNCTION(exp2m1);
    MP_ADD_FUNCTION(exp10m1);
    MP_ADD_FUNCTION(log2p1);
    MP_ADD_FUNCTION(log10p1);
#undef MP_ADD_FUNCTION
    const std::vector<T> few = codes<T>(50);
    const std::vector<float> floats = hard_floats(few.size(), 61);
    generator random(62);
    checksum sums[10];
    for (const T x : few) {
        for (const T y : few) {
            sums[0].add(mp::pow(x, y));
            sums[1].add(mp::atan2(x, y));
            sums[2].add(mp::hypot(x, y));
            sums[3].add(mp::atan2pi(x, y));
            sums[4].add(mp::powr(x, y));
            sums[5].add(mp::hypot(x, y, few[7]));
            sums[5].add(mp::lerp(x, y, few[7]));
            sums[5].add(mp::midpoint(x, y));
            int bits = 0;
            sums[6].add(mp::remquo(x, y, &bits));
            sums[6].add(bits);
            sums[6].add(mp::fdim(x, y));
            sums[6].add(mp::fmaximum_mag_num(x, y));
        }
        for (const int n : {-2000, -7, -1, 0, 2, 3, 12, 100000}) {
            sums[7].add(mp::pown(x, n));
            sums[7].add(mp::rootn(x, n));
            sums[7].add(mp::compoundn(x, n));
            sums[8].add(mp::fromfp(x, mp::rounding::nearest_away, 9));
            sums[8].add(mp::llround(x));
        }
        for (const float y : floats) {
            // A double of 53 bits of 2^-30 to 2^33, by its bits.
            const auto exponent = std::uint64_t{1023 - 30} + random.next() % 64;
            const auto wide = std::bit_cast<double>(exponent << 52 | random.next() >> 12);
            sums[9].add(mp::pow(x, y));
            sums[9].add(mp::atan2(y, x));
            sums[9].add(mp::hypot(x, wide));
            sums[9].add(mp::fmod(wide, x));
            sums[9].add(mp::fmax(x, y));
            sums[9].add(mp::nextafter(y, x));
            sums[9].add(mp::fma(x, y, x));
        }
    }
    to.add(format + ".pow", sums[0]);
    to.add(format + ".atan2", sums[1]);
    to.add(format + ".hypot", sums[2]);
    const char* const more[] = {"atan2pi",        "powr",        "three_operands", "differences",
                                "integer_powers", "to_integers", "beside_floats"};
    for (std::size_t i = 0; i < std::size(more); ++i) to.add(format + "." + more[i], sums[i + 3]);
}

}  // namespace

void add_function_checksums(report& to) {
    add_functions<mp::half>(to, "half", 2000);
#if !defined(MP_FEW_CHECKSUMS)
    add_functions<mp::bfloat16>(to, "bfloat16", 2000);
    add_functions<mp::tfloat32>(to, "tfloat32", 1000);
    add_functions<mp::float8_e4m3fn>(to, "float8_e4m3fn", 256);
    add_functions<mp::p3109<8, 4>>(to, "p3109_8_4", 256);
#endif
}

}  // namespace portability
