// SPDX-License-Identifier: MIT
// Arithmetic in vectors of floats, rounded to the format once more.
//
// That rounding twice is innocuous for + - * / and sqrt of formats with at most 11 bits of precision is shown
// at arithmetic_through_float, for float results that are normal. Formats with less than float's range have
// no others. With float's range and gradual underflow, which the default modes give, it remains that
// - a subnormal sum is exact in float;
// - a subnormal product or quotient of bfloat16 is either exact in float or farther from every midpoint
// between
//   numbers of bfloat16 (an odd multiple of 2^-134) than float's rounding error, 2^-150: a product of at most
//   16 bits and at least 2^-134 is a multiple of 2^-149; a quotient of 8-bit significands that lies between
//   2^-134 and 2^-126 is at least 2^-143 from a midpoint that it does not equal, since that is the smallest
//   unit of their difference times the divisor. What is smaller than 2^-134 stays at most this, and rounds to
//   zero;
// - a root is normal.
// Only tfloat32, whose products have 22 bits, sends lanes with subnormal products and quotients to the scalar
// operators, which look closer.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

template <class Value>
inline constexpr bool comes_in_pairs = [] {
    if constexpr (reduced<Value>) return is_bfloat16<typename Value::format>;
    return false;
}();

MP_ALWAYS_INLINE vec<std::uint32_t> magnitude_of(vec<float> x) {
    return as_uint32(x) & 0x7fff'ffffU;
}

#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
/// a b + c rounded down and up, whatever the modes say about rounding.
MP_ALWAYS_INLINE vec<float> multiply_add_down(vec<float> a, vec<float> b, vec<float> c) {
    __asm__("vfmadd231ps %{rd-sae%}, %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
}
MP_ALWAYS_INLINE vec<float> multiply_add_up(vec<float> a, vec<float> b, vec<float> c) {
    __asm__("vfmadd231ps %{ru-sae%}, %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
}
#endif

/// a b + c rounded to odd in float's 24 bits; rounding that to at most 22 bits is rounding once (Boldo and
/// Melquiond 2008), and so it is at a quantum that is at least four of float's.
///
/// AVX-512: of the results rounded down and up, which are the same or neighbours, the one that is odd. Where
/// the product lies beyond float's range does not matter, since only the sum is rounded. Exact zeros of
/// different signs are -0 rounded down and +0 rounded up, and the even one is passed over only for an odd
/// one: +0 is taken, as to nearest. Beyond the largest float, which is odd, it is taken and rounds to
/// infinity.
///
/// AVX2: see below; only for products that are exact in float.
MP_ALWAYS_INLINE vec<float> multiply_add_to_odd(vec<float> a, vec<float> b, vec<float> c) {
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    const vec<std::uint32_t> down = as_uint32(multiply_add_down(a, b, c));
    const vec<std::uint32_t> up = as_uint32(multiply_add_up(a, b, c));
    return as_float((down & 1U) != 0 ? down : up);
#else
    // Two-sum: sum + error = product + c exactly. If the error is a number but zero and the sum even, its
    // neighbour on the side of the error is the odd one. An infinite sum has an error of NaN, and is right.
    const vec<float> product = opt_barrier(a * b);
    const vec<float> sum = opt_barrier(product + c);
    const vec<float> restored = opt_barrier(sum - product);
    const vec<float> error = opt_barrier(product - opt_barrier(sum - restored)) + opt_barrier(c - restored);
    const vec<std::uint32_t> bits = as_uint32(sum);
    const vec<std::uint32_t> is_inexact = as_uint32((magnitude_of(error) - 1U) < 0x7f7f'ffffU);
    const vec<std::uint32_t> is_even = (bits & 1U) - 1U;
    const vec<std::uint32_t> step = 1U - (((as_uint32(error) ^ bits) >> 31) << 1);
    return as_float(bits + (step & is_inexact & is_even));
#endif
}

#if MP_TARGET_NUMBER < MP_TARGET_AVX512
// Rounding a b + c to float first and then to the format goes wrong only where the float is a midpoint M between
// two numbers of the format and the exact sum is not.

/// For halves, whose products are exact in float: rounded to odd where a float may be a midpoint. The last 13 bits of
/// midpoints are 0x1000, and zeros below 2^-14, where they are the odd multiples of 2^-25.
MP_ALWAYS_INLINE vec<float> multiply_add_binary16(vec<float> a, vec<float> b, vec<float> c) {
    const vec<float> sum = fused_multiply_add(a, b, c);
    const vec<std::uint32_t> magnitude = magnitude_of(sum);
    const vec<std::uint32_t> is_tiny = as_uint32(as_float(magnitude) < 0x1p-14F);
    const vec<std::uint32_t> is_midpoint = as_uint32((magnitude & 0x1fffU) == (~is_tiny & 0x1000U));
    if (have_common_bits(is_midpoint, magnitude)) [[unlikely]]
        return multiply_add_to_odd(a, b, c);  // unless zero
    return sum;
}

/// For bfloat16: where the sum is the product and c is not zero, one place more in the direction of c.
///
/// Let M be in [2^e, 2^(e+1)), or e = -126 if it is smaller: a multiple of 2^(e-8), and the exact sum v is up to
/// 2^(e-24) away. A product has 16 bits, and is at most 255^2 of its units.
/// - If c is a multiple of 2^(e-8), so is M - c, which is not 0, since M is no number of bfloat16. Then the product is
///   less than 2^(e-8), by a 128th at least, or a multiple of 2^(e-23): v = M, or it is farther away.
/// - Else |c| < 2^(e-1), and the product is larger than that. If it is less than 2^e, then |c| is at least 2^(e-9),
///   and both are multiples of 2^(e-16): v = M. If it is not, it is a multiple of 2^(e-15): where it is not M, it differs
///   from M by 2^(e-15) or more, so |c| >= (1 - 2^-8) 2^(e-15), and is a multiple of 2^(e-23): v = M.
/// There remains that the product is M, and c so small that the sum stays there. Wherever else the sum is the product,
/// its last 8 bits are zeros or it is infinite or NaN, and one place more or less rounds to the same. (What is too
/// small to be exact as a product is changed by every c that is not zero.)
MP_ALWAYS_INLINE vec<float> multiply_add_bfloat16(vec<float> a, vec<float> b, vec<float> c) {
    const vec<float> sum = fused_multiply_add(a, b, c);
    const vec<std::uint32_t> bits = as_uint32(sum);
    const vec<std::uint32_t> is_product = as_uint32(bits == as_uint32(opt_barrier(a * b)));
    if (!have_common_bits(is_product & as_uint32(c), broadcast(0x7fff'ffffU))) [[likely]]
        return sum;
    const vec<std::uint32_t> has_addend = as_uint32(magnitude_of(c) != 0U);
    const vec<std::uint32_t> step = 1U - (((as_uint32(c) ^ bits) >> 31) << 1);
    return as_float(bits + (step & is_product & has_addend));
}
#endif

MP_ALWAYS_INLINE vec<float> apply(addition, vec<float> a, vec<float> b) {
    return a + b;
}
MP_ALWAYS_INLINE vec<float> apply(subtraction, vec<float> a, vec<float> b) {
    return a - b;
}
MP_ALWAYS_INLINE vec<float> apply(multiplication, vec<float> a, vec<float> b) {
    return a * b;
}
MP_ALWAYS_INLINE vec<float> apply(division, vec<float> a, vec<float> b) {
    return div(a, b);
}
MP_ALWAYS_INLINE vec<float> apply(sqrt_operation, vec<float> a) {
    return sqrt(a);
}

#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
// With the rounding in the instruction, which then raises nothing either. Of halves, whose sums, products,
// quotients and roots are normal floats or zero, that is all that the modes are about.
MP_ALWAYS_INLINE vec<float> apply_in_any_modes(addition, vec<float> a, vec<float> b) {
    __asm__("vaddps %{rn-sae%}, %1, %0, %0" : "+v"(a) : "v"(b));
    return a;
}
MP_ALWAYS_INLINE vec<float> apply_in_any_modes(subtraction, vec<float> a, vec<float> b) {
    __asm__("vsubps %{rn-sae%}, %1, %0, %0" : "+v"(a) : "v"(b));
    return a;
}
MP_ALWAYS_INLINE vec<float> apply_in_any_modes(multiplication, vec<float> a, vec<float> b) {
    __asm__("vmulps %{rn-sae%}, %1, %0, %0" : "+v"(a) : "v"(b));
    return a;
}
MP_ALWAYS_INLINE vec<float> apply_in_any_modes(division, vec<float> a, vec<float> b) {
    __asm__("vdivps %{rn-sae%}, %1, %0, %0" : "+v"(a) : "v"(b));
    return a;
}
MP_ALWAYS_INLINE vec<float> apply_in_any_modes(sqrt_operation, vec<float> a) {
    __asm__("vsqrtps %{rn-sae%}, %0, %0" : "+v"(a));
    return a;
}
#endif

/// Types for which map_array depends on no mode. multiply_add_to_odd() of AVX-512 does not either.
template <class Value>
inline constexpr bool computes_in_any_modes = MP_TARGET_NUMBER >= MP_TARGET_AVX512 && is_half<Value>;

/// Operations with lanes that float may get wrong.
template <class Operation, class Value>
inline constexpr bool has_doubtful_lanes = [] {
    if constexpr (reduced<Value>) {
        using format = typename Value::format;
        if (format::exponent_bits != 8 || is_bfloat16<format>) return false;
        if (std::is_same_v<Operation, multiply_addition>) return MP_TARGET_NUMBER < MP_TARGET_AVX512;
        return std::is_same_v<Operation, multiplication> || std::is_same_v<Operation, division>;
    }
    return false;
}();

/// The lanes with a product or quotient of numbers but zero that is not a normal float.
MP_ALWAYS_INLINE vec<std::uint32_t> doubtful_lanes(multiplication, vec<float> result, vec<float> a,
                                                   vec<float> b) {
    const vec<std::uint32_t> no_zeros = as_uint32((magnitude_of(a) != 0U) & (magnitude_of(b) != 0U));
    return as_uint32(magnitude_of(result) < 0x0100'0000U) & no_zeros;
}
MP_ALWAYS_INLINE vec<std::uint32_t> doubtful_lanes(division, vec<float> result, vec<float> a, vec<float>) {
    return as_uint32((magnitude_of(result) < 0x0100'0000U) & (magnitude_of(a) != 0U));
}
/// The lanes in which two-sum is not exact, because the product is not, or because it or the sum are too
/// large: all but those with a product that is zero, or between 2^-100 and 2^126, and an addend below 2^126.
MP_ALWAYS_INLINE vec<std::uint32_t> doubtful_lanes(multiply_addition, vec<float>, vec<float> a, vec<float> b,
                                                   vec<float> c) {
    constexpr std::uint32_t smallest = (127U - 100U) << 23;
    constexpr std::uint32_t largest = (127U + 126U) << 23;
    const vec<std::uint32_t> product = magnitude_of(opt_barrier(a * b));
    const vec<std::uint32_t> is_zero = as_uint32((magnitude_of(a) == 0U) | (magnitude_of(b) == 0U));
    const vec<std::uint32_t> is_fine = as_uint32(product - smallest < largest - smallest) | is_zero;
    return ~(is_fine & as_uint32(magnitude_of(c) < largest));
}

/// Formats whose quotient by zero is NaN.
template <class Value>
inline constexpr bool divides_by_p3109 = false;
template <class Format>
inline constexpr bool divides_by_p3109<basic_float<Format>> = layout_of<Format>::follows_p3109;

MP_ALWAYS_INLINE vec<float> with_nan_for_zeros(vec<float> quotient, vec<float>, vec<float> divisor) {
    return as_float(magnitude_of(divisor) == 0U ? vec<std::uint32_t>{} + 0x7fc0'0000U : as_uint32(quotient));
}

/// The floats of one vector of results, to be rounded to the type.
template <class Operation, class Value>
MP_ALWAYS_INLINE vec<float> operate(vec<float> a, vec<float> b, vec<float> c) {
    static_assert(std::is_same_v<Operation, multiply_addition>);
    if constexpr (std::is_same_v<Value, float>) return fused_multiply_add(a, b, c);
#if MP_TARGET_NUMBER < MP_TARGET_AVX512
    if constexpr (is_half<Value>) return multiply_add_binary16(a, b, c);
    if constexpr (comes_in_pairs<Value>) return multiply_add_bfloat16(a, b, c);
#endif
    return multiply_add_to_odd(a, b, c);
}
template <class Operation, class Value, class... Floats>
MP_ALWAYS_INLINE vec<float> operate(Floats... operands) {
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    if constexpr (computes_in_any_modes<Value>) return apply_in_any_modes(Operation{}, operands...);
#endif
    if constexpr (std::is_same_v<Operation, division> && divides_by_p3109<Value>) {
        return with_nan_for_zeros(apply(Operation{}, operands...), operands...);
    } else {
        return apply(Operation{}, operands...);
    }
}

// How a type lies in vectors of floats. A `batch` is the elements that one step works on: those of one
// vector, but of bfloat16 those of two, the ones with even and the ones with odd index. These are the lower
// and the upper halves of 32-bit words, so that neither reading nor writing has to shuffle.

template <class Value>
inline constexpr std::size_t batch = comes_in_pairs<Value> ? 2 * lanes : lanes;

/// One vector of numbers as floats. Signalling NaNs of bfloat16 stay so; operations make them quiet.
template <class Value>
MP_ALWAYS_INLINE vec<float> load_arguments(const Value* from) {
    if constexpr (comes_in_pairs<Value>) {
        return as_float(widen_to_upper(load(codes_of(from))));
    } else if constexpr (sizeof(Value) == 1) {
        return widen_codes<typename Value::format>(widen(load(codes_of(from))));
    } else {
        return load_numbers(from);
    }
}

/// One part of the operands of a batch.
template <int Part, class Value>
MP_ALWAYS_INLINE vec<float> load_operand(const Value* from) {
    if constexpr (comes_in_pairs<Value>) {
        vec<std::uint32_t> pairs;
        std::memcpy(&pairs, from, sizeof pairs);
        return as_float(Part == 0 ? pairs << 16 : pairs & 0xffff'0000U);
    } else {
        return load_arguments(from);
    }
}
template <int Part, class Value>
MP_ALWAYS_INLINE vec<float> load_operand(broadcast_value<Value> operand) {
    // As an integer, since 0 + -0 is +0.
    return as_float(broadcast(bit_cast<std::uint32_t>(static_cast<float>(operand.value))));
}

/// The results of a batch into memory. Those of bfloat16 need no look at NaNs: they come from operands with
/// 16 zeros at their end, or are the processor's own, and have these zeros too, so that rounding leaves them
/// alone.
template <class Value>
MP_ALWAYS_INLINE void store_results(Value* out, vec<float> result) {
    store_numbers(out, result);
}
MP_ALWAYS_INLINE vec<std::uint32_t> rounded_to_upper_half(vec<float> x) {
    const vec<std::uint32_t> bits = as_uint32(x);
    return bits + 0x7fffU + ((bits >> 16) & 1U);
}
template <class Value>
MP_ALWAYS_INLINE void store_results(Value* out, vec<float> even, vec<float> odd) {
    const vec<std::uint32_t> pairs =
        (rounded_to_upper_half(even) >> 16) | (rounded_to_upper_half(odd) & 0xffff'0000U);
    std::memcpy(static_cast<void*>(out), &pairs, sizeof pairs);
}

/// The scalar operation for the elements First, First + Step, ... whose bits are set.
template <class Operation, std::size_t First, std::size_t Step, class Value, class... Operand>
MP_ALWAYS_INLINE void repair(Value* right, std::uint32_t doubtful, Operand... operands) {
    for (; doubtful != 0; doubtful &= doubtful - 1) {
        const std::size_t i = First + Step * static_cast<std::size_t>(__builtin_ctz(doubtful));
        right[i] = Operation::apply(scalar_operand(operands, i)...);
    }
}

/// One batch; `out` may be the memory of an operand.
template <class Operation, class Value, class... Operand>
MP_ALWAYS_INLINE void map_batch(Value* out, Operand... operands) {
    const vec<float> result = operate<Operation, Value>(load_operand<0>(operands)...);
    std::uint32_t doubtful = 0;
    if constexpr (has_doubtful_lanes<Operation, Value>) {
        doubtful = movemask(doubtful_lanes(Operation{}, result, load_operand<0>(operands)...));
    }
    if constexpr (comes_in_pairs<Value>) {
        const vec<float> odd = operate<Operation, Value>(load_operand<1>(operands)...);
        if constexpr (has_doubtful_lanes<Operation, Value>) {
            const std::uint32_t doubtful_odd =
                movemask(doubtful_lanes(Operation{}, odd, load_operand<1>(operands)...));
            if ((doubtful | doubtful_odd) != 0) [[unlikely]] {
                Value right[batch<Value>];
                store_results(right, result, odd);
                repair<Operation, 0, 2>(right, doubtful, operands...);
                repair<Operation, 1, 2>(right, doubtful_odd, operands...);
                std::memcpy(out, right, sizeof right);
                return;
            }
        }
        store_results(out, result, odd);
    } else {
        if constexpr (has_doubtful_lanes<Operation, Value>) {
            if (doubtful != 0) [[unlikely]] {
                Value right[batch<Value>];
                store_results(right, result);
                repair<Operation, 0, 1>(right, doubtful, operands...);
                std::memcpy(out, right, sizeof right);
                return;
            }
        }
        store_results(out, result);
    }
}

/// map(out, operands...) for all batches, two at a time.
template <class Value, class Map, class... Operand>
MP_ALWAYS_INLINE void map_batches(Map map, Value* out, std::size_t count, Operand... operands) {
    constexpr std::size_t step = batch<Value>;
    std::size_t i = 0;
    for (; i + 2 * step <= count; i += 2 * step) {
        map(out + i, operand_from(operands, i)...);
        map(out + i + step, operand_from(operands, i + step)...);
    }
    for (; i < count; i += step) {
        const std::size_t rest = count - i;
        if (rest >= step) {
            map(out + i, operand_from(operands, i)...);
        } else {
            alignas(64) Value last[step];
            map(last, operand_copy<Operand, step>{}.fill(operand_from(operands, i), rest)...);
            store_first(out + i, last, rest);
        }
    }
}

template <class Operation, class Value, class... Operand>
void map_array(Value* out, std::size_t count, Operand... operands) noexcept {
    const std::conditional_t<computes_in_any_modes<Value>, any_floating_point_modes,
                             default_floating_point_modes>
        modes;
    map_batches([](Value* to, auto... from) MP_INLINED_LAMBDA { map_batch<Operation>(to, from...); }, out,
                count, operands...);
}

}}}  // namespace mp::detail::MP_TARGET
