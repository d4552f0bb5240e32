// SPDX-License-Identifier: MIT
// Arithmetic in float and double.
#include "lane_functions.hpp"
#include "numbers.hpp"

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

namespace ptx {

namespace {

/// As results of the machine: NaNs of 32 bits are one.
inline std::uint32_t result_bits(float x) {
    return x != x ? 0x7FFF'FFFFU : std::bit_cast<std::uint32_t>(x);
}
inline std::uint64_t result_bits(double x) {
    return std::bit_cast<std::uint64_t>(x);
}

template <class T>
using word_of = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

inline float flush(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    return (bits & 0x7F80'0000U) == 0 ? std::bit_cast<float>(bits & 0x8000'0000U) : x;
}

/// Each operation in the usual way, and for floats as a double that is rounded to odd, from which any rounding to
/// fewer digits is right.
struct add {
    template <class T>
    static T apply(T a, T b, T) {
        return a + b;
    }
    static double odd(double a, double b, double) { return add_to_odd(a, b); }
    static bool is_sum(double a, double b, double) {
        return a == -b && (a != 0 || std::signbit(a) != std::signbit(b));
    }
};
struct subtract {
    template <class T>
    static T apply(T a, T b, T) {
        return a - b;
    }
    static double odd(double a, double b, double) { return add_to_odd(a, -b); }
    static bool is_sum(double a, double b, double) { return add::is_sum(a, -b, 0); }
};
struct multiply {
    template <class T>
    static T apply(T a, T b, T) {
        return a * b;
    }
    static double odd(double a, double b, double) { return a * b; }
    static bool is_sum(double, double, double) { return false; }
};
struct multiply_add {
    template <class T>
    static T apply(T a, T b, T c) {
        return std::fma(a, b, c);
    }
    static double odd(double a, double b, double c) { return add_to_odd(a * b, c); }
    static bool is_sum(double a, double b, double c) { return add::is_sum(a * b, c, 0); }
};
struct divide {
    template <class T>
    static T apply(T a, T b, T) {
        return a / b;
    }
    static double odd(double a, double b, double) { return divide_to_odd(a, b); }
    static bool is_sum(double, double, double) { return false; }
};
struct root {
    template <class T>
    static T apply(T a, T, T) {
        return std::sqrt(a);
    }
    static double odd(double a, double, double) { return root_to_odd(a); }
    static bool is_sum(double, double, double) { return false; }
};
struct reciprocal {
    template <class T>
    static T apply(T a, T, T) {
        return T{1} / a;
    }
    static double odd(double a, double, double) { return divide_to_odd(1, a); }
    static bool is_sum(double, double, double) { return false; }
};

/// With nothing said but nearest: Count operands.
template <class Op, class T, int Count>
void simple(warp& w, const instruction& i, lane_mask m) {
    auto* const to = words<word_of<T>>(w, i.o[0]);
    const auto* const a = words<word_of<T>>(w, i.o[1]);
    const auto* const b = Count > 1 ? words<word_of<T>>(w, i.o[2]) : a;
    const auto* const c = Count > 2 ? words<word_of<T>>(w, i.o[3]) : a;
    for_lanes(m, [=](int lane) {
        to[lane] = result_bits(
            Op::apply(std::bit_cast<T>(a[lane]), std::bit_cast<T>(b[lane]), std::bit_cast<T>(c[lane])));
    });
}

/// detail: the mode, whether subnormals are flushed, whether the result is clamped to [0, 1], operands.
template <class Op>
void general_float(warp& w, const instruction& i, lane_mask m) {
    const auto mode = static_cast<round_mode>(i.detail[0]);
    const bool flushes = i.detail[1] != 0;
    for_lanes(m, [&](int lane) {
        float x[3] = {};
        for (int k = 0; k < i.detail[3]; ++k) {
            x[k] = std::bit_cast<float>(
                static_cast<std::uint32_t>(read_lane(w, i.o[static_cast<std::size_t>(k) + 1], lane)));
            if (flushes) x[k] = flush(x[k]);
        }
        double exact = Op::odd(double{x[0]}, double{x[1]}, double{x[2]});
        if (exact == 0 && Op::is_sum(double{x[0]}, double{x[1]}, double{x[2]})) {
            exact = mode == round_mode::downward ? -0.0 : 0.0;
        }
        float result = std::bit_cast<float>(static_cast<std::uint32_t>(round_double(exact, binary32, mode)));
        if (flushes) result = flush(result);
        if (i.detail[2] != 0) result = result > 0 ? (result < 1 ? result : 1.0F) : 0.0F;
        write_lane(w, i.o[0], lane, result_bits(result));
    });
}
template <class Op>
__attribute__((noinline)) double by_mode(int direction, double a, double b, double c) {
    std::fesetround(direction);
    volatile double x = a, y = b, z = c;
    volatile double result = Op::template apply<double>(x, y, z);
    std::fesetround(FE_TONEAREST);
    return result;
}
template <class Op>
void general_double(warp& w, const instruction& i, lane_mask m) {
    static constexpr int directions[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    for_lanes(m, [&](int lane) {
        double x[3] = {};
        for (int k = 0; k < i.detail[3]; ++k) {
            x[k] = std::bit_cast<double>(read_lane(w, i.o[static_cast<std::size_t>(k) + 1], lane));
        }
        const double result = by_mode<Op>(directions[i.detail[0]], x[0], x[1], x[2]);
        write_lane(w, i.o[0], lane, result_bits(result));
    });
}

round_mode take_mode(decoder& d) {
    const std::string_view word = d.one_of({"rn", "rz", "rm", "rp"});
    if (word == "rz") return round_mode::toward_zero;
    if (word == "rm") return round_mode::downward;
    if (word == "rp") return round_mode::upward;
    return round_mode::nearest_even;
}

template <class Op, int Count>
void decode_arithmetic(decoder& d, instruction& to) {
    const bool is_float = d.type() == "f32";
    const round_mode mode = take_mode(d);
    const bool flushes = d.option("ftz"), saturates = d.option("sat");
    // Approximations are as good as can be: what a program makes of them must not depend on their last bits.
    d.option("approx");
    d.option("full");
    const std::size_t bytes = is_float ? 4 : 8;
    for (std::size_t k = 0; k <= Count; ++k) to.o[k] = d.value(k, bytes);
    to.detail = {static_cast<std::int32_t>(mode), flushes ? 1 : 0, saturates ? 1 : 0, Count};
    const bool is_simple = mode == round_mode::nearest_even && !flushes && !saturates;
    if (is_float)
        to.run = is_simple ? &simple<Op, float, Count> : &general_float<Op>;
    else
        to.run = is_simple ? &simple<Op, double, Count> : &general_double<Op>;
}

// --- approximations of functions

struct exponential {
    static double value(double x) { return std::exp2(x); }
};
struct logarithm {
    static double value(double x) { return std::log2(x); }
};
struct sine {
    static double value(double x) { return std::sin(x); }
};
struct cosine {
    static double value(double x) { return std::cos(x); }
};
struct tangent {
    static double value(double x) { return std::tanh(x); }
};
struct reciprocal_root {
    static double value(double x) { return 1 / std::sqrt(x); }
};
template <class Function>
void decode_function_of_one(decoder& d, instruction& to) {
    const std::size_t bytes = bytes_of_type(d.type());
    if (!d.option("approx")) d.fail("expected .approx");
    to.detail[0] = d.option("ftz") ? 1 : 0;
    to.o = {d.value(0, bytes), d.value(1, bytes)};
    to.run = [](warp& w, const instruction& i, lane_mask m) {
        for_lanes(m, [&](int lane) {
            if (i.o[1].bytes == 8) {
                const auto x = std::bit_cast<double>(read_lane(w, i.o[1], lane));
                write_lane(w, i.o[0], lane, result_bits(Function::value(x)));
                return;
            }
            auto x = std::bit_cast<float>(static_cast<std::uint32_t>(read_lane(w, i.o[1], lane)));
            if (i.detail[0] != 0) x = flush(x);
            const auto result = static_cast<float>(Function::value(double{x}));
            write_lane(w, i.o[0], lane, result_bits(i.detail[0] != 0 ? flush(result) : result));
        });
    };
}

// --- signs, least and largest

template <class T>
void negate(warp& w, const instruction& i, lane_mask m) {
    for_lanes(m, [&](int lane) {
        T x = std::bit_cast<T>(static_cast<word_of<T>>(read_lane(w, i.o[1], lane)));
        if constexpr (sizeof(T) == 4) {
            if (i.detail[0] != 0) x = flush(x);
        }
        write_lane(w, i.o[0], lane, result_bits(-x));
    });
}
template <class T>
void absolute(warp& w, const instruction& i, lane_mask m) {
    for_lanes(m, [&](int lane) {
        T x = std::bit_cast<T>(static_cast<word_of<T>>(read_lane(w, i.o[1], lane)));
        if constexpr (sizeof(T) == 4) {
            if (i.detail[0] != 0) x = flush(x);
        }
        write_lane(w, i.o[0], lane, result_bits(std::fabs(x)));
    });
}
void decode_sign(decoder& d, instruction& to, action of_float, action of_double) {
    const std::size_t bytes = bytes_of_type(d.type());
    to.detail[0] = d.option("ftz") ? 1 : 0;
    to.o = {d.value(0, bytes), d.value(1, bytes)};
    to.run = bytes == 4 ? of_float : of_double;
}

/// -0 is less than +0. A NaN is passed on with .NaN only, else the other operand is the result.
template <class T>
T extreme(T a, T b, bool largest, bool passes_nan) {
    if (a != a || b != b) {
        if (passes_nan || (a != a && b != b)) return a != a ? a : b;
        return a != a ? b : a;
    }
    if (a == b) return std::signbit(a) == largest ? b : a;
    return (a < b) == largest ? b : a;
}
template <class T>
void choose_extreme(warp& w, const instruction& i, lane_mask m) {
    for_lanes(m, [&](int lane) {
        T a = std::bit_cast<T>(static_cast<word_of<T>>(read_lane(w, i.o[1], lane)));
        T b = std::bit_cast<T>(static_cast<word_of<T>>(read_lane(w, i.o[2], lane)));
        if constexpr (sizeof(T) == 4) {
            if (i.detail[1] != 0) a = flush(a), b = flush(b);
        }
        write_lane(w, i.o[0], lane, result_bits(extreme(a, b, i.detail[0] != 0, i.detail[2] != 0)));
    });
}
template <bool Largest>
void decode_extreme(decoder& d, instruction& to) {
    const std::size_t bytes = bytes_of_type(d.type());
    to.detail = {Largest ? 1 : 0, d.option("ftz") ? 1 : 0, d.option("NaN") ? 1 : 0, 0};
    to.o = {d.value(0, bytes), d.value(1, bytes), d.value(2, bytes)};
    to.run = bytes == 4 ? &choose_extreme<float> : &choose_extreme<double>;
}
/// b with the sign of a.
void decode_copy_sign(decoder& d, instruction& to) {
    const std::size_t bytes = bytes_of_type(d.type());
    to.o = {d.value(0, bytes), d.value(1, bytes), d.value(2, bytes)};
    to.run = [](warp& w, const instruction& i, lane_mask m) {
        const std::uint64_t sign = i.o[1].bytes == 4 ? 0x8000'0000U : std::uint64_t{1} << 63;
        for_lanes(m, [&](int lane) {
            const std::uint64_t a = read_lane(w, i.o[1], lane), b = read_lane(w, i.o[2], lane);
            write_lane(w, i.o[0], lane, (b & ~sign) | (a & sign));
        });
    };
}

}  // namespace

void add_float_instructions(instruction_table& table) {
    table["add/float"] = &decode_arithmetic<add, 2>;
    table["sub/float"] = &decode_arithmetic<subtract, 2>;
    table["mul/float"] = &decode_arithmetic<multiply, 2>;
    table["fma/float"] = &decode_arithmetic<multiply_add, 3>;
    table["mad/float"] = &decode_arithmetic<multiply_add, 3>;
    table["div/float"] = &decode_arithmetic<divide, 2>;
    table["sqrt/float"] = &decode_arithmetic<root, 1>;
    table["rcp/float"] = &decode_arithmetic<reciprocal, 1>;
    table["rsqrt/float"] = &decode_function_of_one<reciprocal_root>;
    table["ex2/float"] = &decode_function_of_one<exponential>;
    table["lg2/float"] = &decode_function_of_one<logarithm>;
    table["sin/float"] = &decode_function_of_one<sine>;
    table["cos/float"] = &decode_function_of_one<cosine>;
    table["tanh/float"] = [](decoder& d, instruction& to) { decode_function_of_one<tangent>(d, to); };
    table["neg/float"] = [](decoder& d, instruction& to) {
        decode_sign(d, to, &negate<float>, &negate<double>);
    };
    table["abs/float"] = [](decoder& d, instruction& to) {
        decode_sign(d, to, &absolute<float>, &absolute<double>);
    };
    table["min/float"] = &decode_extreme<false>;
    table["max/float"] = &decode_extreme<true>;
    table["copysign/float"] = &decode_copy_sign;
}

}  // namespace ptx
