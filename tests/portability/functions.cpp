// SPDX-License-Identifier: MIT
// Mathematical functions of numbers.
#include <mp/math.hpp>

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
#undef MP_ADD_FUNCTION
    const std::vector<T> few = codes<T>(50);
    checksum sums[3];
    for (const T x : few) {
        for (const T y : few) {
            sums[0].add(mp::pow(x, y));
            sums[1].add(mp::atan2(x, y));
            sums[2].add(mp::hypot(x, y));
        }
    }
    to.add(format + ".pow", sums[0]);
    to.add(format + ".atan2", sums[1]);
    to.add(format + ".hypot", sums[2]);
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
