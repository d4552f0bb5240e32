// SPDX-License-Identifier: MIT
/// \file
/// Doubles, one or as many as a register holds, of which every operation is rounded by itself: the same bits
/// whatever a compiler was told about fused operations, reciprocals and the order of sums (-ffp-contract,
/// -ffast-math and every part of it), and whatever the width of its registers.
///
/// Formulas of the ops are templates over this class, so that there is one text of each. The modes of the
/// processor are the caller's business: default_floating_point_modes.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

// Lanes of the widest register. The compilers of other targets, and nvcc, get one.
#if defined(__GNUC__) && !defined(__CUDACC__) && defined(__x86_64__)
#define MP_DOUBLE_VECTORS 1
#if defined(__AVX512F__)
inline constexpr int double_lanes = 8;
#elif defined(__AVX__)
inline constexpr int double_lanes = 4;
#else
inline constexpr int double_lanes = 2;
#endif
#elif defined(__GNUC__) && !defined(__CUDACC__) && defined(__aarch64__)
#define MP_DOUBLE_VECTORS 1
inline constexpr int double_lanes = 2;
#else
#define MP_DOUBLE_VECTORS 0
inline constexpr int double_lanes = 1;
#endif

/// The vectors of a number of lanes, and how one is kept as it is.
template <int Lanes>
struct double_vector;

#if MP_DOUBLE_VECTORS
// NOLINTBEGIN(modernize-use-using): attributes of an alias would be those of the element
#define MP_DEFINE_DOUBLE_VECTOR(count)                                                    \
    template <>                                                                           \
    struct double_vector<count> {                                                         \
        typedef double type __attribute__((vector_size(count * sizeof(double))));         \
        typedef std::uint64_t words __attribute__((vector_size(count * sizeof(double)))); \
        typedef float floats __attribute__((vector_size(count * sizeof(float))));         \
    };
MP_DEFINE_DOUBLE_VECTOR(2)
MP_DEFINE_DOUBLE_VECTOR(4)
MP_DEFINE_DOUBLE_VECTOR(8)
#undef MP_DEFINE_DOUBLE_VECTOR
// NOLINTEND(modernize-use-using)

/// x, opaque to the optimiser, so that it is rounded as if it were stored.
template <class Vector>
MP_ALWAYS_INLINE Vector vector_barrier(Vector x) {
#if defined(__AVX512F__)
    __asm__("" : "+v"(x));
#elif defined(__aarch64__)
    __asm__("" : "+w"(x));
#else
    __asm__("" : "+x"(x));
#endif
    return x;
}

/// a / b, where the operator may be a product with an approximate reciprocal.
template <class Vector>
MP_ALWAYS_INLINE Vector rounded_quotient(Vector a, Vector b) {
#if defined(__aarch64__)
    __asm__("fdiv %0.2d, %0.2d, %1.2d" : "+w"(a) : "w"(b));
#elif defined(__AVX512F__)
    __asm__("vdivpd %1, %0, %0" : "+v"(a) : "v"(b));
#elif defined(__AVX__)
    __asm__("vdivpd %1, %0, %0" : "+x"(a) : "x"(b));
#else
    __asm__("divpd %1, %0" : "+x"(a) : "x"(b));
#endif
    return a;
}

/// The smaller and the larger of a and b; b where one is NaN, or on ARM the number. (What compilers make of
/// comparisons is four instructions.)
template <class Vector>
MP_ALWAYS_INLINE Vector smaller_vector(Vector a, Vector b) {
#if defined(__aarch64__)
    __asm__("fminnm %0.2d, %0.2d, %1.2d" : "+w"(a) : "w"(b));
#elif defined(__AVX512F__)
    __asm__("vminpd %1, %0, %0" : "+v"(a) : "v"(b));
#elif defined(__AVX__)
    __asm__("vminpd %1, %0, %0" : "+x"(a) : "x"(b));
#else
    __asm__("minpd %1, %0" : "+x"(a) : "x"(b));
#endif
    return a;
}
template <class Vector>
MP_ALWAYS_INLINE Vector larger_vector(Vector a, Vector b) {
#if defined(__aarch64__)
    __asm__("fmaxnm %0.2d, %0.2d, %1.2d" : "+w"(a) : "w"(b));
#elif defined(__AVX512F__)
    __asm__("vmaxpd %1, %0, %0" : "+v"(a) : "v"(b));
#elif defined(__AVX__)
    __asm__("vmaxpd %1, %0, %0" : "+x"(a) : "x"(b));
#else
    __asm__("maxpd %1, %0" : "+x"(a) : "x"(b));
#endif
    return a;
}
#endif

/// Some doubles. Constants are the same in all lanes.
template <int Lanes>
class rounded_doubles {
#if MP_DOUBLE_VECTORS
    using vector = typename double_vector<Lanes>::type;
    using words = typename double_vector<Lanes>::words;

public:
    static constexpr int lanes = Lanes;

    MP_ALWAYS_INLINE rounded_doubles(double all) : x_(all - vector{}) {}

    MP_ALWAYS_INLINE static rounded_doubles load(const float* from) {
        typename double_vector<Lanes>::floats x;
        std::memcpy(&x, from, sizeof x);
        return wrap(__builtin_convertvector(x, vector));
    }
    MP_ALWAYS_INLINE static rounded_doubles load(const double* from) {
        vector x;
        std::memcpy(&x, from, sizeof x);
        return wrap(x);
    }
    /// Each rounded to float.
    MP_ALWAYS_INLINE void store(float* to) const {
        const auto x = __builtin_convertvector(x_, typename double_vector<Lanes>::floats);
        std::memcpy(to, &x, sizeof x);
    }
    MP_ALWAYS_INLINE void store(double* to) const { std::memcpy(to, &x_, sizeof x_); }

    MP_ALWAYS_INLINE friend rounded_doubles operator+(rounded_doubles a, rounded_doubles b) {
        return wrap(vector_barrier(a.x_ + b.x_));
    }
    MP_ALWAYS_INLINE friend rounded_doubles operator-(rounded_doubles a, rounded_doubles b) {
        return wrap(vector_barrier(a.x_ - b.x_));
    }
    MP_ALWAYS_INLINE friend rounded_doubles operator*(rounded_doubles a, rounded_doubles b) {
        return wrap(vector_barrier(a.x_ * b.x_));
    }
    MP_ALWAYS_INLINE friend rounded_doubles operator/(rounded_doubles a, rounded_doubles b) {
        return wrap(rounded_quotient(a.x_, b.x_));
    }
    [[nodiscard]] MP_ALWAYS_INLINE rounded_doubles not_above(double limit) const {
        return wrap(smaller_vector(x_, rounded_doubles(limit).x_));
    }
    [[nodiscard]] MP_ALWAYS_INLINE rounded_doubles not_below(double limit) const {
        return wrap(larger_vector(x_, rounded_doubles(limit).x_));
    }
    [[nodiscard]] MP_ALWAYS_INLINE rounded_doubles magnitude() const {
        return from_words(bits() & ~(words{} + sign_bit));
    }
    /// 2^n, where n, from -1022 to 1023, is in the low bits of the value.
    [[nodiscard]] MP_ALWAYS_INLINE rounded_doubles power_of_low_bits() const {
        return from_words((bits() << 52) + one_bits);
    }

private:
    struct raw {
        vector x;
    };
    MP_ALWAYS_INLINE explicit rounded_doubles(raw x) : x_(x.x) {}
    MP_ALWAYS_INLINE static rounded_doubles wrap(vector x) { return rounded_doubles(raw{x}); }
    [[nodiscard]] MP_ALWAYS_INLINE words bits() const { return reinterpret_cast<words>(x_); }
    MP_ALWAYS_INLINE static rounded_doubles from_words(words x) { return wrap(reinterpret_cast<vector>(x)); }
    static constexpr std::uint64_t sign_bit = std::uint64_t{1} << 63;
    static constexpr std::uint64_t one_bits = std::uint64_t{1023} << 52;

    vector x_;
#endif
};

/// One double, on host and device.
template <>
class rounded_doubles<1> {
public:
    static constexpr int lanes = 1;

    MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr rounded_doubles(double x) : x_(x) {}
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr double value() const { return x_; }

    MP_ALWAYS_INLINE static rounded_doubles load(const float* from) { return static_cast<double>(*from); }
    MP_ALWAYS_INLINE static rounded_doubles load(const double* from) { return *from; }
    MP_ALWAYS_INLINE void store(float* to) const { *to = static_cast<float>(x_); }
    MP_ALWAYS_INLINE void store(double* to) const { *to = x_; }

    MP_HOST_DEVICE MP_ALWAYS_INLINE friend constexpr rounded_doubles operator+(rounded_doubles a,
                                                                               rounded_doubles b) {
        return double_add(a.x_, b.x_);
    }
    MP_HOST_DEVICE MP_ALWAYS_INLINE friend constexpr rounded_doubles operator-(rounded_doubles a,
                                                                               rounded_doubles b) {
        return double_subtract(a.x_, b.x_);
    }
    MP_HOST_DEVICE MP_ALWAYS_INLINE friend constexpr rounded_doubles operator*(rounded_doubles a,
                                                                               rounded_doubles b) {
        return double_multiply(a.x_, b.x_);
    }
    MP_HOST_DEVICE MP_ALWAYS_INLINE friend constexpr rounded_doubles operator/(rounded_doubles a,
                                                                               rounded_doubles b) {
        return double_divide(a.x_, b.x_);
    }
    MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr rounded_doubles& operator+=(rounded_doubles b) {
        return *this = *this + b;
    }
    /// x, or the limit where that is smaller, or larger; one of them for NaN.
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE rounded_doubles not_above(double limit) const {
        return x_ < limit ? x_ : limit;
    }
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE rounded_doubles not_below(double limit) const {
        return x_ > limit ? x_ : limit;
    }
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE rounded_doubles magnitude() const {
        return bit_cast<double>(bit_cast<std::uint64_t>(x_) & ~sign_bit);
    }
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE rounded_doubles power_of_low_bits() const {
        return bit_cast<double>((bit_cast<std::uint64_t>(x_) << 52) + one_bits);
    }

private:
    static constexpr std::uint64_t sign_bit = std::uint64_t{1} << 63;
    static constexpr std::uint64_t one_bits = std::uint64_t{1023} << 52;

    double x_;
};

/// Calls f(lanes, i) for i from 0 to count, a register at a time and one by one at the end: lanes is a
/// constant whose value is the number of elements from i on, and f has the same meaning for any of them.
template <class Function>
MP_ALWAYS_INLINE void for_each_double(std::size_t count, Function f) {
    std::size_t i = 0;
    if constexpr (double_lanes > 1) {
        for (; i + double_lanes <= count; i += double_lanes) f(rounded_doubles<double_lanes>(0.0), i);
    }
    for (; i < count; ++i) f(rounded_doubles<1>(0.0), i);
}

}}  // namespace mp::detail
