// SPDX-License-Identifier: MIT
// Functions of arrays against the functions of numbers, which the tests of format/ prove; the logistic
// function, and the error bounds that the kernels rest on, against Boost's arithmetic and double.
#include <mp/array.hpp>
#include <mp/bfloat16.hpp>
#include <mp/float4.hpp>
#include <mp/float6.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/math.hpp>
#include <mp/tfloat32.hpp>

#include <boost/multiprecision/cpp_bin_float.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "arrays/array/arrays.hpp"
#include "numbers/format/flushing_scope.hpp"

#define MP_KERNEL_FILE <arrays/array/function_errors.inl>
#include <mp/numbers/simd/for_each_target.inl>

using arrays::count_different;

namespace {

template <class Value>
std::vector<Value> all_values() {
    std::vector<Value> result;
    for (std::uint64_t code = 0; code < code_count(oracle::format_of<Value>); ++code) {
        result.push_back(oracle::value_of<Value>(code));
    }
    return result;
}

/// The results of all functions of numbers.
template <class Value>
struct function_values {
    std::vector<Value> exp, log, tanh, rsqrt, sigmoid;

    explicit function_values(const std::vector<Value>& x) {
        for (const Value value : x) {
            exp.push_back(mp::exp(value));
            log.push_back(mp::log(value));
            tanh.push_back(mp::tanh(value));
            rsqrt.push_back(mp::rsqrt(value));
            sigmoid.push_back(mp::sigmoid(value));
        }
    }
};

template <class Value>
void check_functions(mp::cpu exec, const std::vector<Value>& x, const function_values<Value>& expected) {
    CAPTURE(static_cast<int>(exec.instructions));
    std::vector<Value> out(x.size());
    const auto at = [](const std::vector<Value>& values) {
        return [&values](std::size_t i) { return values[i]; };
    };
    mp::exp(exec, x, out);
    CHECK(count_different(out, at(expected.exp)) == 0);
    mp::log(exec, x, out);
    CHECK(count_different(out, at(expected.log)) == 0);
    mp::tanh(exec, x, out);
    CHECK(count_different(out, at(expected.tanh)) == 0);
    mp::rsqrt(exec, x, out);
    CHECK(count_different(out, at(expected.rsqrt)) == 0);
    mp::sigmoid(exec, x, out);
    CHECK(count_different(out, at(expected.sigmoid)) == 0);
}

}  // namespace

TEST_CASE_TEMPLATE(
    "functions of arrays have the bits of those of numbers for all arguments on every instruction set", Value,
    mp::half, mp::bfloat16, mp::tfloat32, mp::float8_e4m3fn, mp::float8_e5m2, mp::float8_e4m3b11fnuz,
    mp::float6_e3m2fn, mp::float4_e2m1fn) {
    const std::vector<Value> x = all_values<Value>();
    const function_values<Value> expected(x);
    for (const auto isa : arrays::instruction_sets())
        check_functions(mp::cpu{.instructions = isa}, x, expected);
}

#if TEST_CAN_FLUSH
TEST_CASE_TEMPLATE("functions of arrays do not depend on the modes of the caller", Value, mp::half,
                   mp::bfloat16) {
    const std::vector<Value> x = all_values<Value>();
    const function_values<Value> expected(x);
    for (const auto isa : arrays::instruction_sets()) {
        for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
            const arrays::rounding_scope rounding(mode);
            const flushing_scope flushing;
            check_functions(mp::cpu{.instructions = isa}, x, expected);
        }
    }
}
#endif

TEST_CASE_TEMPLATE("functions of every length, in place, with threads", Value, mp::half, mp::bfloat16,
                   mp::float8_e4m3fn) {
    constexpr std::size_t room = 160;
    const auto a = arrays::values<Value>(room, 1);
    const auto guard = oracle::value_of<Value>(0x35);
    for (const auto isa : arrays::instruction_sets()) {
        const mp::cpu exec{.instructions = isa};
        std::size_t wrong = 0;
        for (std::size_t length = 0; length <= 130; ++length) {
            for (std::size_t shift = 0; shift < 4; ++shift) {
                std::vector<Value> out(room, guard);
                std::copy_n(a.begin(), length, out.begin() + static_cast<std::ptrdiff_t>(shift));
                const std::span<Value> target(out.data() + shift, length);
                mp::exp(exec, target, target);
                for (std::size_t i = 0; i < room; ++i) {
                    const bool inside = i >= shift && i < shift + length;
                    const Value right = inside ? mp::exp(a[i - shift]) : guard;
                    wrong += oracle::code_of(out[i]) == oracle::code_of(right) ? 0U : 1U;
                }
            }
        }
        CHECK(wrong == 0);
    }
    const auto many = arrays::values<Value>(100003, 2);
    for (int threads = 1; threads <= 5; ++threads) {
        std::vector<Value> out(many.size());
        mp::log(mp::cpu{.threads = threads}, many, out);
        CHECK(count_different(out, [&](std::size_t i) { return mp::log(many[i]); }) == 0);
    }
}

TEST_CASE_TEMPLATE("the logistic function is correctly rounded for all arguments", Value, mp::half,
                   mp::bfloat16, mp::float8_e4m3fn, mp::float8_e5m2, mp::float6_e2m3fn) {
    using real = boost::multiprecision::cpp_bin_float_50;
    const auto value_in_real = [](Value x) { return real(static_cast<double>(x)); };
    std::size_t wrong = 0;
    for (const Value x : all_values<Value>()) {
        const Value result = mp::sigmoid(x);
        wrong += result.bits() == Value::from_bits(mp::detail::sigmoid_bits<typename Value::format>(
                                                       x.bits(), mp::projection{}))
                                      .bits()
                     ? 0U
                     : 1U;
        if (arrays::is_nan(x)) {
            wrong += arrays::is_nan(result) ? 0U : 1U;
            continue;
        }
        const double argument = static_cast<double>(x);
        if (std::abs(argument) > 200) {
            wrong += static_cast<double>(result) == (argument < 0 ? 0.0 : 1.0) ? 0U : 1U;
            continue;
        }
        const real exact = 1 / (1 + exp(real(-argument)));
        // Between the midpoints on either side; a midpoint itself is no value of the function except for 1/2.
        const bool above =
            mp::is_zero(result) || exact >= (value_in_real(result) + value_in_real(mp::nextdown(result))) / 2;
        const bool below = exact <= (value_in_real(result) + value_in_real(mp::nextup(result))) / 2;
        wrong += above && below ? 0U : 1U;
    }
    CHECK(wrong == 0);
    CHECK(mp::sigmoid(Value{}) == Value(0.5F));
}

#if MP_SIMD_TARGETS

namespace {

/// The largest relative error, in units of 2^-24, of a kernel over the numbers of a format, where it claims
/// to know. Results outside of float's normal numbers are the interval's business.
template <class Function, class Value, class Kernel, class Exact>
double largest_error(Kernel kernel, Exact exact) {
    std::vector<float> x;
    for (const Value value : all_values<Value>()) {
        if (!arrays::is_nan(value)) x.push_back(static_cast<float>(value));
    }
    x.resize(x.size() / 16 * 16);
    std::vector<float> y(x.size());
    std::vector<std::uint32_t> unknown(x.size());
    kernel(x.data(), y.data(), unknown.data(), x.size());
    double largest = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double right = exact(static_cast<double>(x[i]));
        const double magnitude = std::abs(right);
        if (unknown[i] != 0 || !(magnitude >= 0x1p-124) || !(magnitude < 0x1p126)) continue;
        largest = std::max(largest, std::abs(static_cast<double>(y[i]) - right) / magnitude);
    }
    return largest * 0x1p24;
}

template <class Value>
void check_errors() {
    using format = typename Value::format;
    const auto check = [](auto function, auto exact) {
        using tag = decltype(function);
        using kernel = void (*)(const float*, float*, std::uint32_t*, std::size_t);
        for (int i = 1; i <= static_cast<int>(mp::instruction_set::avx512); ++i) {
            const auto isa = static_cast<mp::instruction_set>(i);
            if (!mp::processor_has(isa)) continue;
            CAPTURE(mp::name_of(isa));
            // Half of the 2^-21 that the kernels allow.
            const kernel evaluate = MP_SELECT_TARGET(isa, kernel{nullptr}, evaluate_array<tag, format>);
            CHECK(largest_error<tag, Value>(evaluate, exact) < 4);
        }
    };
    namespace d = mp::detail;
    // What is limited to 2^-124.8 is only known to be small.
    check(d::natural_exponential{}, [](double x) { return x > -86 && x < 88 ? std::exp(x) : 0; });
    check(d::natural_logarithm{}, [](double x) { return x > 0 && x < 0x1p200 ? std::log(x) : 0; });
    check(d::hyperbolic_tangent{}, [](double x) { return std::tanh(x); });
    check(d::logistic_function{}, [](double x) { return x > -86 ? 1 / (1 + std::exp(-x)) : 0; });
    check(d::reciprocal_root{}, [](double x) { return x > 0 ? 1 / std::sqrt(x) : 0; });
}

}  // namespace

TEST_CASE_TEMPLATE("the floats of the kernels are twice as good as they have to be", Value, mp::half,
                   mp::bfloat16, mp::tfloat32) {
    check_errors<Value>();
}

#endif
