// SPDX-License-Identifier: MIT
// The operations of vec<T> that are the same for every kind of vector, included by <mp/numbers/simd/vec.hpp> for
// each instruction set and for the portable vectors.
//
// Arithmetic is by functions, add(a, b) and so on, each rounded by itself to nearest even whatever the
// including project is compiled with; only fma is fused. Integers and comparisons have operators. `select`
// takes what a comparison gives.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// As many doubles as vec<float> has lanes, in two registers.
struct wide_doubles {
    doubles low, high;
};
template <>
struct vec_of<double> {
    using type = wide_doubles;
};

MP_ALWAYS_INLINE vec<float> broadcast(vec<float> x) {
    return x;
}
MP_ALWAYS_INLINE vec<std::int32_t> as_int32(vec<float> x) {
    return reinterpret_cast<vec<std::int32_t>>(x);
}
MP_ALWAYS_INLINE vec<std::int32_t> as_int32(vec<std::uint32_t> x) {
    return reinterpret_cast<vec<std::int32_t>>(x);
}
/// Numbers that fit, cut to integers, and back.
MP_ALWAYS_INLINE vec<std::int32_t> truncate(vec<float> x) {
    return __builtin_convertvector(x, vec<std::int32_t>);
}
MP_ALWAYS_INLINE vec<float> to_floats(vec<std::int32_t> x) {
    return __builtin_convertvector(x, vec<float>);
}

template <class A, class B>
MP_ALWAYS_INLINE vec<float> add(A a, B b) {
    return opt_barrier(broadcast(a) + broadcast(b));
}
template <class A, class B>
MP_ALWAYS_INLINE vec<float> sub(A a, B b) {
    return opt_barrier(broadcast(a) - broadcast(b));
}
template <class A, class B>
MP_ALWAYS_INLINE vec<float> mul(A a, B b) {
    return opt_barrier(broadcast(a) * broadcast(b));
}
template <class A, class B>
MP_ALWAYS_INLINE vec<float> div(A a, B b) {
    return div(broadcast(a), broadcast(b));
}
/// a b + c, rounded once.
template <class A, class B, class C>
MP_ALWAYS_INLINE vec<float> fma(A a, B b, C c) {
    return multiply_add(broadcast(a), broadcast(b), broadcast(c));
}

/// The larger one of x and a limit with a negative sign; NaN stays.
MP_ALWAYS_INLINE vec<float> max_or_nan(float limit, vec<float> x) {
    return larger_or_second(broadcast(limit), x);
}

/// By lanes, a where the comparison holds, else b.
MP_ALWAYS_INLINE vec<float> select(vec<std::int32_t> mask, vec<float> a, vec<float> b) {
    return mask ? a : b;
}
/// By lanes, a where x has a negative sign, that of a zero or a NaN, too, else b.
MP_ALWAYS_INLINE vec<float> select_by_sign(vec<float> x, vec<float> a, vec<float> b) {
    return as_int32(x) < 0 ? a : b;
}

/// Doubles: each operation is rounded by itself, as above.
MP_ALWAYS_INLINE vec<double> broadcast(double x) {
    return {x - doubles{}, x - doubles{}};
}
MP_ALWAYS_INLINE vec<double> widen(vec<float> x) {
    return {widen_half(low_half(x)), widen_half(high_half(x))};
}
/// From memory, without a register for the floats.
MP_ALWAYS_INLINE vec<double> load_wide(const float* from) {
    half_floats low, high;
    std::memcpy(&low, from, sizeof low);
    std::memcpy(&high, from + lanes / 2, sizeof high);
    return {widen_half(low), widen_half(high)};
}
/// Each rounded to float.
MP_ALWAYS_INLINE vec<float> narrow(vec<double> x) {
    return join_halves(narrow_to_half(x.low), narrow_to_half(x.high));
}
MP_ALWAYS_INLINE vec<double> add(vec<double> a, vec<double> b) {
    return {opt_barrier(a.low + b.low), opt_barrier(a.high + b.high)};
}
MP_ALWAYS_INLINE vec<double> sub(vec<double> a, vec<double> b) {
    return {opt_barrier(a.low - b.low), opt_barrier(a.high - b.high)};
}
MP_ALWAYS_INLINE vec<double> mul(vec<double> a, vec<double> b) {
    return {opt_barrier(a.low * b.low), opt_barrier(a.high * b.high)};
}
MP_ALWAYS_INLINE double reduce_add(vec<double> x) {
    return reduce_add(opt_barrier(x.low + x.high));
}
MP_ALWAYS_INLINE vec<double> load_doubles(const double* from) {
    vec<double> x;
    std::memcpy(&x.low, from, sizeof x.low);
    std::memcpy(&x.high, from + lanes / 2, sizeof x.high);
    return x;
}
MP_ALWAYS_INLINE void store(double* to, vec<double> x) {
    std::memcpy(to, &x.low, sizeof x.low);
    std::memcpy(to + lanes / 2, &x.high, sizeof x.high);
}

/// The first n doubles, n less than the number of lanes; zeros in the other lanes.
MP_ALWAYS_INLINE vec<double> load_partial_doubles(const double* from, std::size_t n) {
    constexpr std::size_t half = lanes / 2;
    return {load_partial(from, n < half ? n : half), load_partial(from + half, n < half ? 0 : n - half)};
}
MP_ALWAYS_INLINE void store_partial(double* to, vec<double> x, std::size_t n) {
    constexpr std::size_t half = lanes / 2;
    store_partial(to, x.low, n < half ? n : half);
    store_partial(to + half, x.high, n < half ? 0 : n - half);
}
/// The first n lanes, and `fill`.
MP_ALWAYS_INLINE vec<double> or_fill(vec<double> x, std::size_t n, double fill) {
    constexpr std::size_t half = lanes / 2;
    return {or_fill(x.low, n, fill), or_fill(x.high, n < half ? 0 : n - half, fill)};
}

}}}  // namespace mp::detail::MP_TARGET
