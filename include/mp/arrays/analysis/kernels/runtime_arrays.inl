// SPDX-License-Identifier: MIT
// Rounding to a format of the run, and arithmetic in it, on vectors of doubles.
//
// A result is known as the nearest double and the sign of the error (of TwoSum, or of a residual by fma). Let m be the
// code of its magnitude. Then M = 2 m, or 2 m + 1 or 2 m - 1 where the exact magnitude is larger or smaller, is a
// significand with one more bit, which is sticky: the exact value lies strictly between the doubles m and m + 1, or m - 1
// and m, like M. Whatever rounds at least two bits off M takes the same decision as for the exact value, since all places
// where decisions change (numbers of the format, midpoints, multiples of 2^-random_bits ulp) are doubles. So the format has
// at most 52 bits, or 53 minus the random bits.
//
// Errors are exact unless something underflows or overflows; such lanes have the integers of runtime_format.hpp.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

MP_ALWAYS_INLINE uint64_lanes bits_of_doubles(doubles x) {
    return reinterpret_cast<uint64_lanes>(x);
}
MP_ALWAYS_INLINE doubles doubles_of_bits(uint64_lanes x) {
    return reinterpret_cast<doubles>(x);
}
/// c - a b, rounded once.
MP_ALWAYS_INLINE doubles residual_of(doubles a, doubles b, doubles c) {
#if MP_TARGET_NUMBER == MP_TARGET_NEON
    __asm__("fmls %0.2d, %1.2d, %2.2d" : "+w"(c) : "w"(a), "w"(b));
#elif MP_TARGET_NUMBER >= MP_TARGET_AVX512
    __asm__("vfnmadd231pd %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
#else
    __asm__("vfnmadd231pd %2, %1, %0" : "+x"(c) : "x"(a), "x"(b));
#endif
    return c;
}
MP_ALWAYS_INLINE doubles sqrt(doubles x) {
#if MP_TARGET_NUMBER == MP_TARGET_NEON
    __asm__("fsqrt %0.2d, %0.2d" : "+w"(x));
#elif MP_TARGET_NUMBER >= MP_TARGET_AVX512
    __asm__("vsqrtpd %0, %0" : "+v"(x));
#else
    __asm__("vsqrtpd %0, %0" : "+x"(x));
#endif
    return x;
}

/// Words of 32 bits in lanes of 64.
MP_ALWAYS_INLINE uint64_lanes load_words(const std::uint32_t* from) {
    typedef std::uint32_t words
        __attribute__((vector_size(vector_bytes / 2)));  // NOLINT(modernize-use-using)
    words x;
    std::memcpy(&x, from, sizeof x);
    return __builtin_convertvector(x, uint64_lanes);
}
/// All ones where a > b as signed numbers: AVX2 compares no others.
MP_ALWAYS_INLINE uint64_lanes larger(uint64_lanes a, uint64_lanes b) {
    typedef std::int64_t signed_lanes
        __attribute__((vector_size(vector_bytes)));  // NOLINT(modernize-use-using)
    return reinterpret_cast<uint64_lanes>(reinterpret_cast<signed_lanes>(a) >
                                          reinterpret_cast<signed_lanes>(b));
}

/// A rounding for vectors: added is ((mask >> shift) & by sign) + increment + (k & last), where mask has all the bits that
/// are rounded off and k is what is kept. Where that is not all, as for rounding to odd and by random bits, it is not plain.
template <bool IsPlain>
class runtime_rounder {
public:
    MP_ALWAYS_INLINE explicit runtime_rounder(const runtime_rounding& r)
        : kept_from_(static_cast<std::uint64_t>(54 - r.precision)),
          quantum_(r.quantum),
          max_code_(r.max_code),
          above_(r.overflow_above),
          below_(r.overflow_below),
          infinity_(r.infinity),
          random_bits_(r.project.random_bits) {
        const rounding mode = r.project.round;
        const bool nearest = mode == rounding::nearest_even || mode == rounding::nearest_away;
        shift_ = nearest ? 1 : 0;
        last_ = mode == rounding::nearest_even ? 1 : 0;
        increment_ = mode == rounding::nearest_away ? 1 : 0;
        if (nearest || mode == rounding::upward) positive_ = ~std::uint64_t{0};
        if (nearest || mode == rounding::downward) negative_ = ~std::uint64_t{0};
        odd_ = mode == rounding::to_odd ? 1 : 0;
        scale_ = bit_cast<double>(quantum_ >= -1022 ? static_cast<std::uint64_t>(quantum_ + 1023) << 52
                                                    : std::uint64_t{1} << (quantum_ + 1074));
        const int usual = r.subnormals ? quantum_ + 1 : r.emin;
        usual_ = static_cast<std::uint64_t>((usual > -1022 ? usual : -1022) + 1023) << 52;
        const std::uint64_t mask = ((std::uint64_t{1} << kept_from_) - 1) >> shift_;
        positive_added_ = (mask & positive_) + increment_;
        negative_added_ = (mask & negative_) + increment_;
        // Between the smallest normal number and the largest one, both without: as signed numbers, which are compared.
        const std::uint64_t first = (static_cast<std::uint64_t>(r.emin + 1023) << 52) + 1;
        constexpr std::uint64_t lowest = std::uint64_t{1} << 63;
        first_ordinary_ = lowest - first;
        last_ordinary_ = r.max_code > first ? lowest + (r.max_code - 1 - first) : lowest;
        places_ = static_cast<std::uint64_t>(r.emin - r.precision + 1 + 1076);
    }
    [[nodiscard]] MP_ALWAYS_INLINE bool is_random() const { return random_bits_ != 0; }

    /// \param nudge   1 where the exact magnitude is larger, -1 where it is smaller
    /// \param random  words whose lowest bits are taken
    MP_ALWAYS_INLINE doubles operator()(doubles nearest, uint64_lanes nudge, uint64_lanes random) const {
        const uint64_lanes bits = bits_of_doubles(nearest);
        const uint64_lanes sign = bits & (std::uint64_t{1} << 63);
        const uint64_lanes magnitude = bits ^ sign;
        const uint64_lanes m = 2 * magnitude + nudge;
        uint64_lanes draw{};
        if constexpr (!IsPlain) draw = random & ((std::uint64_t{1} << random_bits_) - 1);
        // Where all are normal and stay below the largest number, as most are, the places to drop are the same.
        const uint64_lanes beyond = larger(magnitude + first_ordinary_, uint64_lanes{} + last_ordinary_);
        if (!any_sign(beyond)) [[likely]] {
            uint64_lanes added =
                sign != 0 ? uint64_lanes{} + negative_added_ : uint64_lanes{} + positive_added_;
            if constexpr (!IsPlain) added += draw << (kept_from_ - random_bits_);
            uint64_lanes kept = (m + added + ((m >> kept_from_) & last_)) >> kept_from_;
            if constexpr (!IsPlain) {
                kept = kept |
                       (reinterpret_cast<uint64_lanes>((m & ((std::uint64_t{1} << kept_from_) - 1)) != 0) &
                        odd_);
            }
            return doubles_of_bits((kept << (kept_from_ - 1)) | sign);
        }
        return doubles_of_bits(any_size(m, magnitude, sign, draw) | sign);
    }

private:
    MP_ALWAYS_INLINE uint64_lanes any_size(uint64_lanes m, uint64_lanes magnitude, uint64_lanes sign,
                                           uint64_lanes draw) const {
        const uint64_lanes by_sign = sign != 0 ? uint64_lanes{} + negative_ : uint64_lanes{} + positive_;
        // From 2 quanta on the code itself can be rounded, subnormal or not: a carry goes on into the exponent, and what is
        // kept has a bit behind the leading one. Zeros stay zeros.
        uint64_lanes drop = places_ - (m >> 53);
        drop = larger(drop, uint64_lanes{} + kept_from_) != 0 ? drop : uint64_lanes{} + kept_from_;
        drop = larger(drop, uint64_lanes{} + 62) != 0 ? uint64_lanes{} + 62 : drop;
        uint64_lanes result = rounded(m, drop, by_sign, draw) << (drop - 1);
        const uint64_lanes unusual =
            larger(uint64_lanes{} + usual_, m >> 1) & reinterpret_cast<uint64_lanes>(m != 0);
        if (any_sign(unusual)) result = unusual != 0 ? multiples_of_quantum(m, by_sign, draw) : result;
        if (any_sign(larger(magnitude, uint64_lanes{} + (max_code_ - 1)))) [[unlikely]] {
            const uint64_lanes overflow = sign != 0 ? uint64_lanes{} + below_ : uint64_lanes{} + above_;
            result = larger(result, uint64_lanes{} + max_code_) != 0 ? overflow : result;
            constexpr std::uint64_t infinity = std::uint64_t{0x7ff} << 52;
            result = magnitude == infinity ? uint64_lanes{} + infinity_ : result;
            result = larger(magnitude, uint64_lanes{} + infinity) != 0 ? magnitude : result;
        }
        return result;
    }
    /// m / 2^drop, rounded.
    MP_ALWAYS_INLINE uint64_lanes rounded(uint64_lanes m, uint64_lanes drop, uint64_lanes by_sign,
                                          uint64_lanes draw) const {
        const uint64_lanes mask = ((uint64_lanes{} + 1) << drop) - 1;
        uint64_lanes added = ((mask >> shift_) & by_sign) + increment_ + ((m >> drop) & last_);
        if constexpr (!IsPlain) {
            const uint64_lanes has_more = larger(drop, uint64_lanes{} + random_bits_);
            added += (draw << (has_more & (drop - random_bits_))) >> (~has_more & (random_bits_ - drop));
        }
        uint64_lanes result = (m + added) >> drop;
        if constexpr (!IsPlain) result = result | (reinterpret_cast<uint64_lanes>((m & mask) != 0) & odd_);
        return result;
    }
    /// What is small, by its significand.
    MP_ALWAYS_INLINE uint64_lanes multiples_of_quantum(uint64_lanes m, uint64_lanes by_sign,
                                                       uint64_lanes draw) const {
        const uint64_lanes field = m >> 53;
        const uint64_lanes is_zero_field = reinterpret_cast<uint64_lanes>(field == 0) & 1;
        uint64_lanes significand = (m & ((std::uint64_t{1} << 53) - 1)) | ((1 - is_zero_field) << 53);
        // The significand counts 2^(exponent - 1076), whose field is at least 1. Where that is so little that words end, its
        // last bits become one that is sticky.
        uint64_lanes drop = static_cast<std::uint64_t>(quantum_ + 1076) - (field + is_zero_field);
        uint64_lanes excess = larger(drop, uint64_lanes{} + 62) & (drop - 62);
        drop -= excess;
        excess = larger(excess, uint64_lanes{} + 62) != 0 ? uint64_lanes{} + 62 : excess;
        const uint64_lanes lost = significand & (((uint64_lanes{} + 1) << excess) - 1);
        significand = (significand >> excess) | (reinterpret_cast<uint64_lanes>(lost != 0) & 1);
        const uint64_lanes count = rounded(significand, drop, by_sign, draw);
        // Up to 2^51, exactly as a double; and its product with the quantum is one, too.
        const std::uint64_t two_to_52 = std::uint64_t{0x433} << 52;
        const doubles whole =
            opt_barrier(doubles_of_bits(count | two_to_52) - doubles_of_bits(uint64_lanes{} + two_to_52));
        return bits_of_doubles(opt_barrier(whole * (doubles{} + scale_)));
    }

    std::uint64_t kept_from_;
    int quantum_;
    std::uint64_t places_ = 0;  ///< less the exponent field, those to drop from 2 m
    std::uint64_t positive_added_ = 0, negative_added_ = 0;
    std::uint64_t first_ordinary_ = 0, last_ordinary_ = 0;  ///< shifted to the beginning of signed numbers
    std::uint64_t usual_ = 0;  ///< code of the smallest number that is rounded as a code
    std::uint64_t max_code_, above_, below_, infinity_;
    std::uint64_t random_bits_;
    int shift_ = 0;
    std::uint64_t last_ = 0;
    std::uint64_t increment_ = 0;
    std::uint64_t positive_ = 0;
    std::uint64_t negative_ = 0;
    std::uint64_t odd_ = 0;
    double scale_ = 0;
};

/// The nearest double of a result, the sign of the error as a nudge of the magnitude, and lanes whose error is not exact.
struct runtime_result {
    doubles nearest;
    uint64_lanes nudge;
    uint64_lanes uncertain;
};

/// 1 where the error has the sign of the result, -1 where it has the other, 0 where there is none.
MP_ALWAYS_INLINE uint64_lanes nudge_of(doubles error, uint64_lanes sign_of_result) {
    const uint64_lanes bits = bits_of_doubles(error);
    const uint64_lanes step = 1 - (((bits ^ sign_of_result) >> 63) << 1);
    return reinterpret_cast<uint64_lanes>((bits << 1) != 0) & step;
}
/// All ones where the magnitude is not between 2^-900 and 2^1000, which leaves room for errors and residuals.
MP_ALWAYS_INLINE uint64_lanes out_of_room(doubles x) {
    const uint64_lanes field = bits_of_doubles(x) >> 52 & 0x7ff;
    return larger((field - 123) & (~std::uint64_t{0} >> 1), uint64_lanes{} + 1900);
}
MP_ALWAYS_INLINE uint64_lanes zero_lanes(doubles x) {
    return reinterpret_cast<uint64_lanes>((bits_of_doubles(x) << 1) == 0);
}

MP_ALWAYS_INLINE runtime_result vector_result(runtime_round /*operation*/, doubles a, doubles /*b*/) {
    return {a, uint64_lanes{}, uint64_lanes{}};
}
MP_ALWAYS_INLINE runtime_result vector_result(runtime_add /*operation*/, doubles a, doubles b) {
    const doubles sum = opt_barrier(a + b);
    const doubles from_b = opt_barrier(sum - a);
    const doubles from_a = opt_barrier(sum - from_b);
    const doubles error = opt_barrier(opt_barrier(a - from_a) + opt_barrier(b - from_b));
    // Sums underflow without an error.
    const uint64_lanes field = bits_of_doubles(sum) >> 52 & 0x7ff;
    const uint64_lanes large = larger(field, uint64_lanes{} + 2023);
    return {sum, nudge_of(error, bits_of_doubles(sum)), large};
}
MP_ALWAYS_INLINE runtime_result vector_result(runtime_subtract /*operation*/, doubles a, doubles b) {
    return vector_result(runtime_add{}, a, doubles_of_bits(bits_of_doubles(b) ^ (std::uint64_t{1} << 63)));
}
MP_ALWAYS_INLINE runtime_result vector_result(runtime_multiply /*operation*/, doubles a, doubles b) {
    const doubles product = opt_barrier(a * b);
    // The error is the negative of product - a b.
    const uint64_lanes sign = bits_of_doubles(product) ^ (std::uint64_t{1} << 63);
    const uint64_lanes exact_zero = zero_lanes(product) & (zero_lanes(a) | zero_lanes(b));
    return {product, nudge_of(residual_of(a, b, product), sign), out_of_room(product) & ~exact_zero};
}
MP_ALWAYS_INLINE runtime_result vector_result(runtime_divide /*operation*/, doubles a, doubles b) {
    const doubles quotient = div(a, b);
    // The residual a - quotient b has the sign of the error times that of b.
    const uint64_lanes sign = bits_of_doubles(quotient) ^ bits_of_doubles(b);
    const uint64_lanes rest_is_exact = ~(out_of_room(quotient) | out_of_room(a));
    const uint64_lanes exact_zero = zero_lanes(a) & zero_lanes(quotient);
    // The residual of 0 / infinity is NaN.
    return {quotient, nudge_of(residual_of(quotient, b, a), sign) & ~exact_zero,
            ~(rest_is_exact | exact_zero)};
}
MP_ALWAYS_INLINE runtime_result vector_result(runtime_sqrt /*operation*/, doubles a, doubles /*b*/) {
    const doubles root = sqrt(a);
    return {root, nudge_of(residual_of(root, root, a), bits_of_doubles(root)),
            out_of_room(a) & ~zero_lanes(a)};
}

template <class Operation>
inline constexpr bool is_sum =
    std::is_same_v<Operation, runtime_add> || std::is_same_v<Operation, runtime_subtract>;

/// out[i] = a[i] op b[i], rounded with the bits of element first + i of the stream of the seed.
template <class Operation, bool IsPlain>
MP_ALWAYS_INLINE void runtime_loop(const runtime_rounding& rounding, const double* a, const double* b,
                                   double* out, std::size_t count, std::uint64_t seed,
                                   std::uint64_t first) noexcept {
    constexpr std::size_t width = lanes / 2;
    constexpr std::size_t group = 256;
    // Sums that are zero have the sign of the default direction.
    const uint64_lanes zeros_are_signed =
        uint64_lanes{} + (zero_sum_is_negative(rounding.project) ? ~std::uint64_t{0} : 0);
    const default_floating_point_modes modes;
    const runtime_rounding r = rounding;
    const runtime_rounder<IsPlain> round(r);
    // What has no exact error, and the rest of less than a vector.
    const auto by_integers = [&](std::size_t begin, std::size_t end) {
        runtime_arrays_portable<Operation>(r, a + begin, b + begin, out + begin, end - begin, seed,
                                           first + begin);
    };
    std::uint32_t words[random_room(group)];
    std::size_t i = 0;
    while (i + width <= count) {
        const std::size_t begin = i;
        std::size_t end = count;
        const std::uint32_t* random_of_begin = words;
        if (round.is_random()) {
            const std::uint64_t block = (first + i) / 4;
            const auto skipped = as<std::size_t>((first + i) % 4);
            random_blocks(seed, block, words, (skipped + group + 31) / 32 * 8);
            random_of_begin += skipped;
            if (i + group < count) end = i + group;
        }
        for (; i + width <= end; i += width) {
            doubles x, y;
            std::memcpy(&x, a + i, sizeof x);
            std::memcpy(&y, b + i, sizeof y);
            runtime_result result = vector_result(Operation{}, x, y);
            if constexpr (is_sum<Operation>)
                result.uncertain |= zero_lanes(result.nearest) & zeros_are_signed;
            if (any_sign(result.uncertain)) [[unlikely]] {
                by_integers(i, i + width);
                continue;
            }
            uint64_lanes random{};
            if (round.is_random()) random = load_words(random_of_begin + (i - begin));
            const doubles rounded = round(result.nearest, result.nudge, random);
            std::memcpy(out + i, &rounded, sizeof rounded);
        }
    }
    by_integers(i, count);
}

template <class Operation>
void runtime_arrays(const runtime_rounding& rounding, const double* a, const double* b, double* out,
                    std::size_t count, std::uint64_t seed, std::uint64_t first) noexcept {
    const bool is_plain = rounding.project.random_bits == 0 && rounding.project.round != mp::rounding::to_odd;
    is_plain ? runtime_loop<Operation, true>(rounding, a, b, out, count, seed, first)
             : runtime_loop<Operation, false>(rounding, a, b, out, count, seed, first);
}

}}}  // namespace mp::detail::MP_TARGET
