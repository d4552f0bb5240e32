// SPDX-License-Identifier: MIT
// Functions in vectors of floats, with an error that is known to be below 2^-21 of the result. Where both
// ends of an interval of 2^-20 to either side round to the same number, so does the exact result, since
// rounding is monotonic: exact cases, overflow and subnormal numbers need no thought. The few lanes that are
// left, one in some hundred, go to the scalar function.
//
// So the floats need not be the same on all processors, and compilers may contract. What they must not do
// (reassociate, divide by approximate reciprocals) is kept from them at the places where it would hurt.
//
// The error bounds count operations with 2^-24 each. Tests compare all floats that are numbers of tfloat32,
// half and bfloat16 with the functions in double. Coefficients are those of the polynomials through the
// Chebyshev nodes.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

inline constexpr float function_tolerance = 0x1p-20F;

/// x limited to [low, high]; where x is NaN, low.
MP_ALWAYS_INLINE vec<float> limited(vec<float> x, float low, float high) {
    x = x > low ? x : broadcast(low);
    return x < high ? x : broadcast(high);
}

/// e^x = (1 + above_one) scale, scale being a power of two and above_one between -0.3 and 0.42.
struct split_power {
    vec<float> scale;
    vec<float> above_one;
};

/// For x between -86.5 and 88; above_one has an error of 2^-23.3 of it.
///
/// The integer nearest to x / ln 2 comes from a truncating conversion of a positive number, which knows no
/// mode. Its product with the upper part of ln 2, which has 14 bits, is exact, and so is the difference,
/// since |x| is at least 1/4 where the integer is not zero.
MP_ALWAYS_INLINE split_power split_exponential(vec<float> x) {
    constexpr float log2_e = 0x1.715476p+0F;
    constexpr float ln2_high = 0x1.62e4p-1F;
    constexpr float ln2_low = 0x1.7f7d1cp-20F;
    constexpr int offset = 256;
    const vec<std::int32_t> integer =
        __builtin_convertvector(x * log2_e + (offset + 0.5F), vec<std::int32_t>) - offset;
    const vec<float> n = __builtin_convertvector(integer, vec<float>);
    const vec<float> r = opt_barrier(x - n * ln2_high) - n * ln2_low;
    // (e^r - 1 - r) / r^2 for |r| < 0.3467: the error is 2^-25.2 of e^r - 1.
    const vec<float> square = r * r;
    const vec<float> div = (0x1p-1F + r * 0x1.5554dcp-3F) +
                           square * ((0x1.55551ap-5F + r * 0x1.120b6ep-7F) + square * 0x1.6d110ap-10F);
    return {as_float((as_uint32(integer) + 127U) << 23), r + square * div};
}

/// e^x; error 2^-23 of it.
MP_ALWAYS_INLINE vec<float> power_of_e(vec<float> x) {
    const split_power parts = split_exponential(x);
    return parts.scale + parts.scale * parts.above_one;
}

/// x, or zero if it is so small that e^x is one, which spares the processor subnormal numbers.
MP_ALWAYS_INLINE vec<float> without_tiny(vec<float> x) {
    return as_float(magnitude_of(x) < 0x3000'0000U ? vec<std::uint32_t>{} : as_uint32(x));
}

/// What is known of the lanes of a result: `value` to within 2^-21 of it, unless the lane of `unknown` has
/// its highest bit set.
struct evaluated {
    vec<float> value;
    vec<std::uint32_t> unknown;
};

/// Formats whose results may be subnormal floats, or overflow only where floats do.
template <class Format>
inline constexpr bool has_range_of_float = Format::exponent_bits == 8;

inline constexpr float largest_exponent = 88;      // e^88 is a float,
inline constexpr float surely_infinite = 89;       // e^89 is not;
inline constexpr float smallest_exponent = -86.5;  // e^-86.5 is a normal one,
inline constexpr float surely_zero = -96;          // e^-96 is less than half of tfloat32's least number

/// value = f(e^x), where x was limited: nothing is known between the limits and where the result surely is
/// zero.
template <class Format>
MP_ALWAYS_INLINE evaluated with_small_exponents(vec<float> value, vec<float> x) {
    if constexpr (has_range_of_float<Format>) {
        const vec<std::uint32_t> is_small = as_uint32(x < smallest_exponent);
        const vec<std::uint32_t> is_zero = as_uint32(x < surely_zero);
        return {as_float(as_uint32(value) & ~is_zero), is_small & ~is_zero};
    } else {
        return {value, vec<std::uint32_t>{}};
    }
}

template <class Format>
MP_ALWAYS_INLINE evaluated evaluate(natural_exponential, vec<float> x) {
    const vec<float> power = power_of_e(limited(without_tiny(x), smallest_exponent, largest_exponent));
    evaluated result = with_small_exponents<Format>(power, x);
    if constexpr (has_range_of_float<Format>) {
        const vec<std::uint32_t> is_infinite = as_uint32(x > surely_infinite);
        result.unknown |= as_uint32(x > largest_exponent) & ~is_infinite;
        result.value =
            as_float(is_infinite != 0U ? vec<std::uint32_t>{} + 0x7f80'0000U : as_uint32(result.value));
    }
    return result;
}

/// With t = e^-|x|: 1 / (1 + t), or t / (1 + t) for negative x. Error 2^-22.
template <class Format>
MP_ALWAYS_INLINE evaluated evaluate(logistic_function, vec<float> x) {
    const vec<float> minus_magnitude = as_float(as_uint32(x) | 0x8000'0000U);
    const vec<float> power =
        power_of_e(limited(without_tiny(minus_magnitude), smallest_exponent, largest_exponent));
    const vec<float> dividend = as_uint32(x) >> 31 != 0U ? power : broadcast(1.0F);
    return with_small_exponents<Format>(div(dividend, opt_barrier(power + 1)), x);
}

/// With E = e^2|x| - 1: E / (E + 2), and x itself for |x| < 2^-11, which is 2^-23.5 too much at most.
///
/// E = scale above_one + (scale - 1), and is no less than a third of the larger term: the error is 2^-22.2 of
/// it, and smaller in the quotient.
template <class Format>
MP_ALWAYS_INLINE evaluated evaluate(hyperbolic_tangent, vec<float> x) {
    constexpr std::uint32_t least = (127U - 11U) << 23;
    const vec<std::uint32_t> magnitude = magnitude_of(x);
    const vec<float> argument = as_float(magnitude < least ? vec<std::uint32_t>{} + least : magnitude);
    const split_power parts = split_exponential(limited(argument + argument, 0, 40));
    const vec<float> above_one = parts.scale * parts.above_one + opt_barrier(parts.scale - 1);
    const vec<std::uint32_t> share = as_uint32(div(above_one, opt_barrier(above_one + 2)));
    const vec<std::uint32_t> sign = as_uint32(x) ^ magnitude;
    return {as_float(magnitude < least ? as_uint32(x) : share | sign), vec<std::uint32_t>{}};
}

/// With x = m 2^n and m between sqrt(1/2) and sqrt(2): n ln 2 + log m. The terms have the same sign, or the
/// first is at least twice the second; error 2^-22. Subnormal floats are left to others.
template <class Format>
MP_ALWAYS_INLINE evaluated evaluate(natural_logarithm, vec<float> x) {
    constexpr std::uint32_t root_of_half = 0x3f35'04f3;
    constexpr float ln2_high = 0x1.62e4p-1F;
    constexpr float ln2_low = 0x1.7f7d1cp-20F;
    const vec<std::uint32_t> bits = as_uint32(x);
    const vec<std::uint32_t> from_root = bits - root_of_half;
    const vec<std::int32_t> exponent = reinterpret_cast<vec<std::int32_t>>(from_root) >> 23;
    const vec<float> n = __builtin_convertvector(exponent, vec<float>);
    const vec<float> f = as_float((from_root & 0x007f'ffffU) + root_of_half) - 1;
    // (log(1 + f) - f) / f^2: the error is 2^-24 of log(1 + f).
    const vec<float> square = f * f;
    const vec<float> div =
        ((-0x1.fffffep-2F + f * 0x1.555638p-2F) + square * (-0x1.000302p-2F + f * 0x1.99071p-3F)) +
        square * square *
            ((-0x1.53bb74p-3F + f * 0x1.2fd102p-3F) + square * (-0x1.21fd54p-3F + f * 0x1.67ed28p-4F));
    const vec<float> rest = f + square * div;
    const vec<float> sum = n * ln2_high + opt_barrier(n * ln2_low + rest);
    const vec<std::uint32_t> magnitude = magnitude_of(x);
    // log(0) is -infinity, log(infinity) infinity, and a negative number has none.
    vec<std::uint32_t> value = as_uint32(sum);
    value = magnitude == 0x7f80'0000U ? vec<std::uint32_t>{} + 0x7f80'0000U : value;
    value = bits >> 31 != 0U ? vec<std::uint32_t>{} + 0x7fc0'0000U : value;
    value = magnitude == 0U ? vec<std::uint32_t>{} + 0xff80'0000U : value;
    if constexpr (has_range_of_float<Format>) {
        return {as_float(value), as_uint32((magnitude - 1U) < 0x007f'ffffU)};
    } else {
        return {as_float(value), vec<std::uint32_t>{}};
    }
}

/// Error 2^-23.4. Negative numbers have none, but -0 has minus infinity, and the zero of P3109 has none either.
template <class Format>
MP_ALWAYS_INLINE evaluated evaluate(reciprocal_root, vec<float> x) {
    const vec<float> value = div(broadcast(1.0F), sqrt(x));
    vec<std::uint32_t> has_none = as_uint32(as_uint32(x) > 0x8000'0000U);
    if constexpr (layout_of<Format>::follows_p3109) has_none |= as_uint32(as_uint32(x) == 0U);
    return {as_float(has_none != 0U ? vec<std::uint32_t>{} + 0x7fc0'0000U : as_uint32(value)),
            vec<std::uint32_t>{}};
}

/// Writes the codes of a, and returns one bit for every lane in which those of b are others.
template <class Value>
MP_ALWAYS_INLINE std::uint32_t store_and_compare(Value* out, vec<float> a, vec<float> b) {
    using format = typename Value::format;
    if constexpr (comes_in_pairs<Value>) {
        // See store_results: these NaNs end in zeros too.
        const vec<std::uint32_t> code = rounded_to_upper_half(a);
        store(codes_of(out), narrow_to_uint16(code >> 16));
        return movemask(as_uint32((code ^ rounded_to_upper_half(b)) > 0xffffU));
    } else if constexpr (is_binary16<format>) {
        const vec<std::uint16_t> code = narrow_binary16(a);
        const vec<std::uint16_t> other = narrow_binary16(b);
        store(codes_of(out), code);
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
        std::uint16_t mask;
        __asm__("vpcmpuw $4, %2, %1, %0" : "=Yk"(mask) : "v"(code), "v"(other));
        return mask;
#else
        return movemask(as_uint32(widen(code) != widen(other)));
#endif
    } else {
        store_numbers(out, a);
        return movemask(as_uint32(narrow_codes<format>(a) != narrow_codes<format>(b)));
    }
}

/// One vector; `out` may be the memory of `from`.
template <class Function, class Value>
MP_ALWAYS_INLINE void map_function_vector(Value* out, const Value* from) {
    using format = typename Value::format;
    const vec<float> x = load_arguments(from);
    const evaluated result = evaluate<format>(Function{}, x);
    // A NaN stays what it is, and is made quiet by the products.
    const vec<float> value =
        as_float(magnitude_of(x) > 0x7f80'0000U ? as_uint32(x) : as_uint32(result.value));
    const vec<float> low = opt_barrier(value * (1 - function_tolerance));
    const vec<float> high = opt_barrier(value * (1 + function_tolerance));
    Value right[lanes];
    std::uint32_t unknown = store_and_compare(right, low, high);
    if constexpr (has_range_of_float<format>) unknown |= movemask(result.unknown);
    if (unknown != 0) [[unlikely]]
        repair<Function, 0, 1>(right, unknown, from);
    std::memcpy(out, right, sizeof right);
}

// Floats that round to e^x for every half, and every number of bfloat16. Their steps and the order of these are fixed,
// so that every bit is, and tests go through all 2^16 arguments.
//
// x = n ln 2 + r, with n in the low bits of a sum that has no place for a fraction. Coefficients are those of the
// polynomials through the Chebyshev nodes, varied until the few arguments came out right whose e^x is closer to a
// midpoint than the errors.

/// Errors of 2^-23.3. The argument whose e^x is 2^-26 below a midpoint, to which the last step has to round it, loses
/// the last place.
MP_ALWAYS_INLINE vec<float> rounded_exponential(formats::binary16, vec<float> x) {
    constexpr float least = -18;
    constexpr float largest = 12;
    constexpr auto below_midpoint = bit_cast<std::uint32_t>(0x1.de4p-8F);
    x = smaller_or_second(broadcast(largest), max_or_nan(least, x));
    const vec<float> shifted = fma(x, one_over_ln_2, to_integer);
    const vec<float> r = fma(sub(shifted, to_integer), -0x1.62e43p-1F, x);
    const vec<float> power =
        polynomial(r, 1.0F, 0x1.ffffd2p-1F, 0x1.ffffc6p-2F, 0x1.5560dep-3F, 0x1.56df0ep-5F, 0x1.10f824p-7F);
    const vec<std::uint32_t> minus_one = as_uint32(as_uint32(x) == below_midpoint);
    // A NaN stays what it is: 13 zeros end it, which leave nothing to add.
    return as_float(as_uint32(power) + (as_uint32(shifted) << 23) + minus_one);
}

/// The square of e^(x/2), which is a normal float whatever bfloat16 e^x is. Errors of 2^-17.5.
MP_ALWAYS_INLINE vec<float> rounded_exponential(formats::bfloat16, vec<float> x) {
    constexpr float least = -100;
    constexpr float largest = 100;
    const vec<float> upper = smaller_or_second(broadcast(largest), x);
    const vec<float> shifted = fma(upper, one_over_ln_2 / 2, to_integer);
    const vec<float> r = fma(sub(shifted, to_integer), -0x1.62e43p+0F, upper);
    const vec<float> power =
        polynomial(r, 1.0F, 0x1.fffc02p-2F, 0x1.000512p-3F, 0x1.578cb4p-6F, 0x1.552f76p-9F);
    const vec<float> root = as_float(as_uint32(power) + (as_uint32(shifted) << 23));
    const vec<float> of_numbers = zero_unless_above(least, x, root);
    return mul(of_numbers, of_numbers);
}

/// Functions whose floats are known to round right for all numbers of a format.
template <class Function, class Value>
inline constexpr bool has_rounded_floats =
    std::is_same_v<Function, natural_exponential> && (is_half<Value> || comes_in_pairs<Value>);

template <class Function, class Value>
void map_function(Value* out, std::size_t count, const Value* from) noexcept {
    const default_floating_point_modes modes;
    if constexpr (has_rounded_floats<Function, Value>) {
        using format = typename Value::format;
        const auto map = [](Value* to, const Value* x) MP_INLINED_LAMBDA {
            if constexpr (comes_in_pairs<Value>) {
                store_results(to, rounded_exponential(format{}, load_operand<0>(x)),
                              rounded_exponential(format{}, load_operand<1>(x)));
            } else {
                store_results(to, rounded_exponential(format{}, load_operand<0>(x)));
            }
        };
        return map_batches(map, out, count, from);
    }
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) map_function_vector<Function>(out + i, from + i);
    if (i == count) return;
    const std::size_t rest = count - i;
    alignas(64) Value last[lanes];
    map_function_vector<Function>(last, operand_copy<const Value*, lanes>{}.fill(from + i, rest));
    store_first(out + i, last, rest);
}

}}}  // namespace mp::detail::MP_TARGET
