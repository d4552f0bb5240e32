// SPDX-License-Identifier: MIT
// The vectors of 64-bit ARM, whose baseline has NEON, included by <mp/numbers/simd/vec.hpp>: the functions of
// x86_vectors.inl with the same bits, by four lanes.
//
// Written out without <arm_neon.h>, which takes as long to compile as <immintrin.h>. Kernels run in the
// default modes, which clear all of FPCR: to nearest even, no flushing (FZ, FZ16, FIZ), no default NaN (DN),
// binary16 with infinities (AHP), the NaNs and minima of ARMv8.0 (AH, NEP). With DN clear, FCVTN, FCVTL and
// arithmetic keep sign and leading payload of a NaN and make it quiet (Arm Architecture Reference Manual for
// A-profile, FPConvertNaN and FPProcessNaN), as F16C does.

#include <mp/numbers/simd/vector_types.inl>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

typedef std::uint32_t half_uint32
    __attribute__((vector_size(vector_bytes / 2)));  // NOLINT(modernize-use-using)

/// The value in every lane, opaque to the optimiser, so that it is rounded as if it were stored.
MP_ALWAYS_INLINE vec<float> opt_barrier(vec<float> x) {
    __asm__("" : "+w"(x));
    return x;
}
MP_ALWAYS_INLINE doubles opt_barrier(doubles x) {
    __asm__("" : "+w"(x));
    return x;
}

/// Half of a vector of floats as doubles, and back, each rounded to float; a NaN becomes quiet and keeps sign
/// and payload.
MP_ALWAYS_INLINE doubles widen_half(half_floats x) {
    doubles wide;
    __asm__("fcvtl %0.2d, %1.2s" : "=w"(wide) : "w"(x));
    return wide;
}
MP_ALWAYS_INLINE half_floats narrow_to_half(doubles x) {
    half_floats result;
    __asm__("fcvtn %0.2s, %1.2d" : "=w"(result) : "w"(x));
    return result;
}

/// a b + c, rounded once.
MP_ALWAYS_INLINE vec<float> fused_multiply_add(vec<float> a, vec<float> b, vec<float> c) {
    __asm__("fmla %0.4s, %1.4s, %2.4s" : "+w"(c) : "w"(a), "w"(b));
    return c;
}
/// One number as the first operand of products with vectors, which take it from a lane.
MP_ALWAYS_INLINE float broadcast_element(float a) {
    return a;
}
MP_ALWAYS_INLINE vec<float> fused_multiply_add(float a, vec<float> b, vec<float> c) {
    __asm__("fmla %0.4s, %1.4s, %2.s[0]" : "+w"(c) : "w"(b), "w"(a));
    return c;
}
MP_ALWAYS_INLINE vec<float> multiply_add(vec<float> a, vec<float> b, vec<float> c) {
    return fused_multiply_add(a, b, c);
}

/// The smaller ones, as numbers without sign.
MP_ALWAYS_INLINE vec<std::uint32_t>(min)(vec<std::uint32_t> a, vec<std::uint32_t> b) {
    __asm__("umin %0.4s, %1.4s, %2.4s" : "=w"(a) : "w"(a), "w"(b));
    return a;
}

/// The smaller and the larger ones, as numbers with a sign.
MP_ALWAYS_INLINE vec<std::int32_t>(min)(vec<std::int32_t> a, vec<std::int32_t> b) {
    __asm__("smin %0.4s, %1.4s, %2.4s" : "=w"(a) : "w"(a), "w"(b));
    return a;
}
MP_ALWAYS_INLINE vec<std::int32_t>(max)(vec<std::int32_t> a, vec<std::int32_t> b) {
    __asm__("smax %0.4s, %1.4s, %2.4s" : "=w"(a) : "w"(a), "w"(b));
    return a;
}
/// The largest lane.
MP_ALWAYS_INLINE std::int32_t reduce_max(vec<std::int32_t> x) {
    __asm__("smaxv %s0, %1.4s" : "=w"(x) : "w"(x));
    return x[0];
}

/// The larger ones; b where one of them is NaN, or both are zero. By a comparison, since FMAX takes +0 before
/// -0 and a NaN wherever it is.
MP_ALWAYS_INLINE vec<float> larger_or_second(vec<float> a, vec<float> b) {
    vec<std::int32_t> is_larger;
    __asm__("fcmgt %0.4s, %1.4s, %2.4s" : "=w"(is_larger) : "w"(a), "w"(b));
    return is_larger ? a : b;
}

/// The smaller ones; b where one of them is NaN, or both are zero.
MP_ALWAYS_INLINE vec<float> smaller_or_second(vec<float> a, vec<float> b) {
    vec<std::int32_t> is_smaller;
    __asm__("fcmgt %0.4s, %2.4s, %1.4s" : "=w"(is_smaller) : "w"(a), "w"(b));
    return is_smaller ? a : b;
}

/// The square root, correctly rounded.
MP_ALWAYS_INLINE vec<float> sqrt(vec<float> x) {
    __asm__("fsqrt %0.4s, %1.4s" : "=w"(x) : "w"(x));
    return x;
}

/// NaNs made quiet, all else as it is: what adding minus zero does, without a comparison.
MP_ALWAYS_INLINE vec<float> quieted(vec<float> x) {
    // As integers: under -fno-signed-zeros a float of -0 may become +0.
    const vec<std::uint32_t> minus_zero = vec<std::uint32_t>{} + 0x8000'0000U;
    __asm__("fadd %0.4s, %1.4s, %2.4s" : "=w"(x) : "w"(x), "w"(minus_zero));
    return x;
}
MP_ALWAYS_INLINE vec<float> quieted_in_any_modes(vec<float> x) {
    return quieted(x);
}
MP_ALWAYS_INLINE doubles quieted(doubles x) {
    const uint64_lanes minus_zero = uint64_lanes{} + 0x8000'0000'0000'0000U;
    __asm__("fadd %0.2d, %1.2d, %2.2d" : "=w"(x) : "w"(x), "w"(minus_zero));
    return x;
}

/// binary16 codes to floats and back, to nearest even in the default modes.
MP_ALWAYS_INLINE vec<float> widen_binary16(vec<std::uint16_t> codes) {
    vec<float> x;
    __asm__("fcvtl %0.4s, %1.4h" : "=w"(x) : "w"(codes));
    return x;
}
MP_ALWAYS_INLINE vec<float> load_binary16_as_float(const std::uint16_t* from) {
    return widen_binary16(load(from));
}
MP_ALWAYS_INLINE vec<std::uint16_t> narrow_binary16(vec<float> x) {
    vec<std::uint16_t> codes;
    __asm__("fcvtn %0.4h, %1.4s" : "=w"(codes) : "w"(x));
    return codes;
}

/// a / b, correctly rounded; under -ffast-math the operator may be a product with a reciprocal.
MP_ALWAYS_INLINE vec<float> div(vec<float> a, vec<float> b) {
    __asm__("fdiv %0.4s, %1.4s, %2.4s" : "=w"(a) : "w"(a), "w"(b));
    return a;
}
MP_ALWAYS_INLINE doubles div(doubles a, doubles b) {
    __asm__("fdiv %0.2d, %1.2d, %2.2d" : "=w"(a) : "w"(a), "w"(b));
    return a;
}

/// The same of floats: lanes 0 and 2, 1 and 3, and those sums.
MP_ALWAYS_INLINE float reduce_add(vec<float> x) {
    x = opt_barrier(x + __builtin_shufflevector(x, x, 2, 3, 0, 1));
    x = opt_barrier(x + __builtin_shufflevector(x, x, 1, 0, 3, 2));
    return x[0];
}

/// movemask: one bit for every lane whose highest bit is set.
MP_ALWAYS_INLINE std::uint32_t movemask(vec<std::uint32_t> x) {
    const vec<std::uint32_t> bits = (x >> 31) << vec<std::uint32_t>{0, 1, 2, 3};
    vec<std::uint32_t> sum;
    __asm__("addv %s0, %1.4s" : "=w"(sum) : "w"(bits));
    return sum[0];
}
/// Whether a & b has any bit.
MP_ALWAYS_INLINE bool have_common_bits(vec<std::uint32_t> a, vec<std::uint32_t> b) {
    vec<std::uint32_t> largest = a & b;
    __asm__("umaxv %s0, %1.4s" : "=w"(largest) : "w"(largest));
    return largest[0] != 0;
}
/// Whether a comparison holds in some lane.
MP_ALWAYS_INLINE bool any(vec<std::int32_t> mask) {
    return movemask(reinterpret_cast<vec<std::uint32_t>>(mask)) != 0;
}
/// Whether the highest bit of any lane is set.
MP_ALWAYS_INLINE bool any_sign(uint64_lanes x) {
    return (x[0] | x[1]) >> 63 != 0;
}

/// Byte i is the byte of x that byte i of `indices` names, or zero where that is 128.
MP_ALWAYS_INLINE bytes_of_uint32 shuffle_bytes(bytes_of_uint32 x, bytes_of_uint32 indices) {
    __asm__("tbl %0.16b, {%1.16b}, %2.16b" : "=w"(x) : "w"(x), "w"(indices));
    return x;
}

// Wider and narrower integers. Narrowing takes words that fit.
MP_ALWAYS_INLINE vec<std::uint32_t> widen(vec<std::uint16_t> x) {
    vec<std::uint32_t> wide;
    __asm__("uxtl %0.4s, %1.4h" : "=w"(wide) : "w"(x));
    return wide;
}
/// Halfwords as the upper halves of words.
MP_ALWAYS_INLINE vec<std::uint32_t> widen_to_upper(vec<std::uint16_t> x) {
    vec<std::uint32_t> wide;
    __asm__("shll %0.4s, %1.4h, #16" : "=w"(wide) : "w"(x));
    return wide;
}
/// Four bytes go through a register as a float, the type of this size that compilers keep in vector
/// registers.
MP_ALWAYS_INLINE vec<std::uint32_t> widen(vec<std::uint8_t> x) {
    vec<std::uint32_t> wide;
    __asm__("uxtl %0.8h, %1.8b\n\tuxtl %0.4s, %0.4h" : "=w"(wide) : "w"(bit_cast<float>(x)));
    return wide;
}
MP_ALWAYS_INLINE vec<std::uint16_t> narrow_to_uint16(vec<std::uint32_t> x) {
    vec<std::uint16_t> narrowed;
    __asm__("xtn %0.4h, %1.4s" : "=w"(narrowed) : "w"(x));
    return narrowed;
}
MP_ALWAYS_INLINE vec<std::uint16_t> widen_to_uint16(vec<std::uint8_t> x) {
    return narrow_to_uint16(widen(x));
}
/// 2 * lanes bytes from memory.
MP_ALWAYS_INLINE uint16_lanes load_bytes_as_uint16(const std::uint8_t* from) {
    double bytes;
    std::memcpy(&bytes, from, sizeof bytes);
    uint16_lanes wide;
    __asm__("uxtl %0.8h, %1.8b" : "=w"(wide) : "w"(bytes));
    return wide;
}
MP_ALWAYS_INLINE vec<std::uint8_t> narrow_to_bytes(vec<std::uint32_t> x) {
    float narrowed;
    __asm__("xtn %0.4h, %1.4s\n\txtn %0.8b, %0.8h" : "=w"(narrowed) : "w"(x));
    return bit_cast<vec<std::uint8_t>>(narrowed);
}
/// Words below 256 from four vectors as bytes, into memory.
MP_ALWAYS_INLINE void store_low_bytes(std::uint8_t* to, const vec<std::uint32_t> (&x)[4]) {
    for (std::size_t k = 0; k < 4; ++k) store(to + k * lanes, narrow_to_bytes(x[k]));
}

/// The products of the lower halves of the lanes.
MP_ALWAYS_INLINE uint64_lanes multiply_low_halves(uint64_lanes a, uint64_lanes b) {
    const half_uint32 low_a = __builtin_convertvector(a, half_uint32);
    const half_uint32 low_b = __builtin_convertvector(b, half_uint32);
    uint64_lanes product;
    __asm__("umull %0.2d, %1.2s, %2.2s" : "=w"(product) : "w"(low_a), "w"(low_b));
    return product;
}
/// The low halves of the lanes of two vectors.
MP_ALWAYS_INLINE vec<std::uint32_t> low_halves(uint64_lanes a, uint64_lanes b) {
    const auto x = reinterpret_cast<vec<std::uint32_t>>(a);
    const auto y = reinterpret_cast<vec<std::uint32_t>>(b);
    return __builtin_shufflevector(x, y, 0, 2, 4, 6);
}
/// The upper halves of the lanes of two vectors.
MP_ALWAYS_INLINE uint16_lanes upper_halves(vec<std::uint32_t> low, vec<std::uint32_t> high) {
    const auto a = reinterpret_cast<uint16_lanes>(low);
    const auto b = reinterpret_cast<uint16_lanes>(high);
    return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
}
/// Reads a vector; of longer ones each 16 bytes have memory of their own.
MP_ALWAYS_INLINE vec<float> load_quarters(const std::byte* from, std::ptrdiff_t /*stride*/) {
    return load(reinterpret_cast<const float*>(from));
}
/// The lanes of two vectors in turn: of their lower and of their upper halves.
template <class Vector>
MP_ALWAYS_INLINE Vector interleave_lower(Vector a, Vector b) {
    if constexpr (sizeof a[0] == 8) {
        return __builtin_shufflevector(a, b, 0, 2);
    } else {
        return __builtin_shufflevector(a, b, 0, 4, 1, 5);
    }
}
template <class Vector>
MP_ALWAYS_INLINE Vector interleave_upper(Vector a, Vector b) {
    if constexpr (sizeof a[0] == 8) {
        return __builtin_shufflevector(a, b, 1, 3);
    } else {
        return __builtin_shufflevector(a, b, 2, 6, 3, 7);
    }
}

/// The same of bytes.
MP_ALWAYS_INLINE bytes_of_uint32 interleave_lower_bytes(bytes_of_uint32 a, bytes_of_uint32 b) {
    __asm__("zip1 %0.16b, %1.16b, %2.16b" : "=w"(a) : "w"(a), "w"(b));
    return a;
}
MP_ALWAYS_INLINE bytes_of_uint32 interleave_upper_bytes(bytes_of_uint32 a, bytes_of_uint32 b) {
    __asm__("zip2 %0.16b, %1.16b, %2.16b" : "=w"(a) : "w"(a), "w"(b));
    return a;
}

/// An ordinary store: there is none of a single register that goes past the caches.
MP_ALWAYS_INLINE void store_nontemporal(float* to, vec<float> x) {
    store(to, x);
}

/// The first `count` < lanes elements, the rest zero; memory behind them is not touched.
template <class Element>
MP_ALWAYS_INLINE auto load_partial(const Element* from, std::size_t count) {
    alignas(16) Element copy[lanes] = {};
    copy_few<sizeof copy / 2>(copy, from, count * sizeof(Element));
    return load(copy);
}
/// The first `size` bytes of a whole vector's, the rest zero.
MP_ALWAYS_INLINE bytes_of_uint32 load_first_bytes(const void* from, std::size_t size) {
    alignas(16) std::uint8_t copy[vector_bytes] = {};
    copy_few<sizeof copy / 2>(copy, from, size);
    bytes_of_uint32 x;
    std::memcpy(&x, copy, sizeof x);
    return x;
}
/// The first `count` < lanes elements into memory, which is not touched behind them.
template <class Element, class Vector>
MP_ALWAYS_INLINE void store_partial(Element* to, Vector x, std::size_t count) {
    alignas(16) Element copy[lanes];
    store(copy, x);
    copy_few<sizeof copy / 2>(to, copy, count * sizeof(Element));
}
/// As many doubles as a register holds, at most.
MP_ALWAYS_INLINE doubles load_partial(const double* from, std::size_t n) {
    doubles x{};
    if (n > 0) x[0] = from[0];
    if (n > 1) x[1] = from[1];
    return x;
}
MP_ALWAYS_INLINE void store_partial(double* to, doubles x, std::size_t n) {
    if (n > 0) to[0] = x[0];
    if (n > 1) to[1] = x[1];
}
/// The first n lanes, and `fill`.
MP_ALWAYS_INLINE doubles or_fill(doubles x, std::size_t n, double fill) {
    return uint64_lanes{0, 1} < n ? x : doubles{fill, fill};
}

}}}  // namespace mp::detail::MP_TARGET
