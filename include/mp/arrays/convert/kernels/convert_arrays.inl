// SPDX-License-Identifier: MIT
// Arrays from and to float, double and every format whose numbers are floats, rounded once to nearest even.
//
// Everything passes through a vector of floats. That rounds once because formats are exact in float, and
// doubles are first rounded to odd to float's 24 bits, after which rounding to at most 22 bits is rounding
// once (Boldo and Melquiond 2008).

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

MP_ALWAYS_INLINE doubles load(const double* from) {
    doubles x;
    std::memcpy(&x, from, sizeof x);
    return x;
}
MP_ALWAYS_INLINE void store(double* to, doubles x) {
    std::memcpy(to, &x, sizeof x);
}

inline constexpr std::uint64_t double_magnitude = 0x7fff'ffff'ffff'ffff;
/// Of a double's fraction, what a float has no place for.
inline constexpr std::uint64_t below_float = (std::uint64_t{1} << 29) - 1;
/// 2^-126.
inline constexpr std::uint64_t smallest_normal_float = std::uint64_t{1023 - 126} << 52;

/// 24 leading bits of numbers, the last of them set if anything was below: conversion to float is then exact,
/// except for numbers below 2^-126.
MP_ALWAYS_INLINE uint64_lanes leading_bits_to_odd(uint64_lanes x) {
    uint64_lanes carry = (x & below_float) + below_float;
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    // (carry | x) & ~below_float
    __asm__("vpternlogq $0x54, %2, %1, %0" : "+v"(carry) : "v"(x), "v"(uint64_lanes{} + below_float));
    return carry;
#else
    return (x | carry) & ~below_float;
#endif
}

/// The floats of some magnitudes up to 2^-126 are replaced by those of the doubles rounded to odd. Rarely
/// needed, and kept apart so that loops stay short.
MP_NEVER_INLINE inline void correct_tiny(const double* from, float* to) noexcept {
    constexpr std::uint64_t hidden = std::uint64_t{1} << 52;
    for (std::size_t i = 0; i < lanes; ++i) {
        const auto bits = bit_cast<std::uint64_t>(from[i]);
        const std::uint64_t magnitude = bits & double_magnitude;
        if (magnitude > smallest_normal_float) continue;
        const std::uint64_t field = magnitude >> 52;
        const std::uint64_t significand = field == 0 ? magnitude : (magnitude & (hidden - 1)) | hidden;
        // Subnormal doubles are one place off, but then only whether they are zero counts.
        const std::uint64_t distance = 1023 - 126 + 29 - field;
        const std::uint64_t shift = distance < 63 ? distance : 63;
        const std::uint64_t kept = significand >> shift;
        const std::uint64_t odd = kept | ((kept << shift) != significand ? 1U : 0U);
        to[i] = bit_cast<float>(static_cast<std::uint32_t>(odd | (bits & ~double_magnitude) >> 32));
    }
}

/// Doubles as floats, rounded to odd; a NaN becomes quiet, and may have its last bit changed. Unless
/// WithTiny, what is below 2^-126 comes out as something up to 2^-126.
template <bool WithTiny>
MP_ALWAYS_INLINE vec<float> narrow_to_odd(doubles low, doubles high) {
    const auto low_bits = reinterpret_cast<uint64_lanes>(low);
    const auto high_bits = reinterpret_cast<uint64_lanes>(high);
    half_floats narrow_low = narrow_to_half(reinterpret_cast<doubles>(leading_bits_to_odd(low_bits)));
    half_floats narrow_high = narrow_to_half(reinterpret_cast<doubles>(leading_bits_to_odd(high_bits)));
    if constexpr (WithTiny) {
        const uint64_lanes low_magnitude = low_bits & double_magnitude;
        const uint64_lanes high_magnitude = high_bits & double_magnitude;
        // The highest bit: less than 2^-126, and not zero.
        const uint64_lanes low_tiny = (low_magnitude - smallest_normal_float) & ~(low_magnitude - 1);
        const uint64_lanes high_tiny = (high_magnitude - smallest_normal_float) & ~(high_magnitude - 1);
        if (any_sign(low_tiny | high_tiny)) {
            alignas(64) double source[lanes];
            alignas(64) float target[lanes];
            store(source, low);
            store(source + lanes / 2, high);
            store(target, join_halves(narrow_low, narrow_high));
            correct_tiny(source, target);
            return load(target);
        }
    }
    return join_halves(narrow_low, narrow_high);
}

/// `lanes` doubles as what is to be rounded to To.
template <class To>
MP_ALWAYS_INLINE vec<float> narrow_for(doubles low, doubles high) {
    if constexpr (std::same_as<To, float>) {
        return join_halves(narrow_to_half(low), narrow_to_half(high));
    } else {
        // What may come out wrong is less than half of the smallest number, and stays so.
        return narrow_to_odd<(layout_of<typename To::format>::quantum_exponent - 1 <= -126)>(low, high);
    }
}

/// Numbers of bfloat16 as floats; see converts_in_any_modes for the targets on which that depends on no mode.
MP_ALWAYS_INLINE vec<float> widen_bfloat16(vec<std::uint16_t> codes) {
    return quieted_in_any_modes(as_float(widen_to_upper(codes)));
}
template <class From, class To>
inline constexpr bool is_bfloat16_to_float =
    std::same_as<From, basic_float<formats::bfloat16>> && std::same_as<To, float>;

/// Converts `lanes` numbers.
template <class From, class To>
MP_ALWAYS_INLINE void convert_vector(const From* from, To* to) {
    constexpr std::size_t half = lanes / 2;
    if constexpr (std::same_as<From, double> && std::same_as<To, double>) {
        store(to, quieted(load(from)));
        store(to + half, quieted(load(from + half)));
    } else if constexpr (std::same_as<From, double>) {
        store_numbers(to, narrow_for<To>(load(from), load(from + half)));
    } else if constexpr (std::same_as<To, double>) {
        store(to, widen(load_numbers(from)));
    } else if constexpr (std::same_as<From, float> && std::same_as<To, float>) {
        store(to, quieted(load(from)));
    } else if constexpr (is_bfloat16_to_float<From, To>) {
        store(to, widen_bfloat16(load(codes_of(from))));
    } else {
        store_numbers(to, load_numbers(from));
    }
}

#if MP_TARGET_NUMBER == MP_TARGET_NEON
/// Floats rounded to bfloat16, which is the upper half of each lane.
MP_ALWAYS_INLINE vec<std::uint32_t> round_to_upper_half(vec<float> x) {
    const vec<std::uint32_t> bits = as_uint32(x);
    vec<std::int32_t> is_number;  // as an instruction, of which -ffast-math knows nothing
    __asm__("fcmeq %0.4s, %1.4s, %1.4s" : "=w"(is_number) : "w"(x));
    const vec<std::uint32_t> rounded_bits = bits + 0x7fffU + ((bits << 15) >> 31);
    return is_number ? rounded_bits : bits | 0x0040'0000U;
}
#elif MP_TARGET_NUMBER >= MP_TARGET_AVX512
/// Floats rounded to bfloat16, which is the upper half of each lane. By integers, in any modes.
MP_ALWAYS_INLINE vec<std::uint32_t> round_to_upper_half(vec<float> x) {
    vec<std::uint32_t> rounded = as_uint32(x) + 0x7fffU;
    std::uint16_t is_odd = 0;
    std::uint16_t is_nan = 0;
    // One more than half a place less one where the last bit kept is set. NaNs are made quiet and cut off.
    __asm__(
        "vptestmd %4, %3, %1\n\t"
        "vfpclassps $0x81, %3, %2\n\t"
        "vpaddd %5, %0, %0%{%1%}\n\t"
        "vpord %6, %3, %0%{%2%}"
        : "+&v"(rounded), "=&Yk"(is_odd), "=&Yk"(is_nan)
        : "v"(x), "v"(vec<std::uint32_t>{} + 0x0001'0000U), "v"(vec<std::uint32_t>{} + 1U),
          "v"(vec<std::uint32_t>{} + 0x0040'0000U));
    return rounded;
}
#endif

/// Converts 2 * lanes numbers.
template <class From, class To>
MP_ALWAYS_INLINE void convert_two_vectors(const From* from, To* to) {
#if MP_TARGET_NUMBER == MP_TARGET_NEON || MP_TARGET_NUMBER >= MP_TARGET_AVX512
    if constexpr (std::same_as<To, basic_float<formats::bfloat16>> && !std::same_as<From, double>) {
        const vec<std::uint32_t> low = round_to_upper_half(load_numbers(from));
        const vec<std::uint32_t> high = round_to_upper_half(load_numbers(from + lanes));
        const uint16_lanes codes = upper_halves(low, high);
        std::memcpy(codes_of(to), &codes, sizeof codes);
        return;
    }
#endif
    if constexpr (has_scaled_binary16<From> && !std::same_as<To, double>) {
        vec<float> low, high;
        load_scaled_binary16<typename From::format>(codes_of(from), low, high);
        store_numbers(to, low);
        store_numbers(to + lanes, high);
        return;
    }
    convert_vector(from, to);
    convert_vector(from + lanes, to + lanes);
}

template <class From, class To>
inline constexpr bool narrows_to_bytes = false;
template <class Format>
inline constexpr bool narrows_to_bytes<float, basic_float<Format>> =
    has_finite_codes<Format> && sizeof(storage_of<Format>) == 1;

/// Converts 4 * lanes numbers.
template <class From, class To>
MP_ALWAYS_INLINE void convert_four_vectors(const From* from, To* to) {
    if constexpr (narrows_to_bytes<From, To>) {
        // What there is to do about infinities, NaNs and overflow is done where there is one.
        using format = typename To::format;
        vec<std::uint32_t> code[4];
        vec<std::uint32_t> largest = {};
        for (int k = 0; k < 4; ++k) {
            const vec<std::uint32_t> bits = as_uint32(load(from + static_cast<std::size_t>(k) * lanes));
            const vec<std::uint32_t> magnitude = bits & 0x7fff'ffffU;
            largest = largest > magnitude ? largest : magnitude;
            code[k] = narrow_finite_codes<format>(bits, magnitude);
        }
        if (!any(largest > largest_finite_magnitude<format>)) {
            store_low_bytes(codes_of(to), code);
            return;
        }
    }
    convert_two_vectors(from, to);
    convert_two_vectors(from + 2 * lanes, to + 2 * lanes);
}

/// Converts `count` < lanes numbers.
template <class From, class To>
MP_ALWAYS_INLINE void convert_first(const From* from, To* to, std::size_t count) {
    if constexpr (std::same_as<From, double> || std::same_as<To, double>) {
        alignas(64) From source[lanes] = {};
        alignas(64) To target[lanes];
        copy_few<sizeof source / 2>(source, from, count * sizeof(From));
        convert_vector(source, target);
        copy_few<sizeof target / 2>(to, target, count * sizeof(To));
    } else if constexpr (std::same_as<From, float> && std::same_as<To, float>) {
        store_partial(to, quieted(load_partial(from, count)), count);
    } else if constexpr (is_bfloat16_to_float<From, To>) {
        store_partial(to, widen_bfloat16(load_partial(codes_of(from), count)), count);
    } else {
        store_first_numbers(to, load_first_numbers(from, count), count);
    }
}

/// Pairs that are converted by instructions which depend on no mode and raise nothing: those of AVX-512 for 16
/// bits, and integers.
template <class From, class To>
inline constexpr bool converts_in_any_modes = [] {
    constexpr bool widens = has_16_bits<From> && std::same_as<To, float>;
    constexpr bool narrows = std::same_as<From, float> && has_16_bits<To>;
    if (MP_TARGET_NUMBER >= MP_TARGET_AVX512) return widens || narrows;
    return MP_TARGET_NUMBER == MP_TARGET_AVX2 && narrows && !is_half<To>;
}();
template <class From, class To>
using conversion_modes = std::conditional_t<converts_in_any_modes<From, To>, any_floating_point_modes,
                                            default_floating_point_modes>;

/// The arrays must not overlap, unless they begin at the same place and To is not larger than From.
template <class From, class To>
void convert_array(const From* from, To* to, std::size_t count) noexcept {
    const conversion_modes<From, To> modes;
    std::size_t i = 0;
    for (; i + 4 * lanes <= count; i += 4 * lanes) {
        convert_four_vectors(from + i, to + i);
    }
    for (; i + lanes <= count; i += lanes) convert_vector(from + i, to + i);
    if (i < count) convert_first(from + i, to + i, count - i);
}

#if MP_X86_TARGETS
/// As convert_array(), around the caches: `to` is at a cache line, `count` a multiple of streamed_elements, and
/// others see the results after finish_streaming(). Line by line, so that reading, which is what takes time,
/// never stops.
template <class From, class To>
void convert_array_streaming(const From* from, To* to, std::size_t count) noexcept {
    // Few, where a vector is whole lines by itself or half of one: stores that follow each other at once fill up
    // what takes them. In smaller pieces than vectors they take longer then, and less long otherwise (measured).
    constexpr bool by_vectors = std::same_as<To, float>;
    constexpr std::size_t numbers = by_vectors ? 2 * lanes : streamed_elements;
    static_assert(streamed_elements % (4 * lanes) == 0);
    const conversion_modes<From, To> modes;
    for (std::size_t i = 0; i < count; i += numbers) {
        alignas(64) To line[numbers];
        // The processor's own fetching is too short-sighted beside stores that wait for memory.
        constexpr std::size_t ahead = 4096;
        const std::uintptr_t next =
            reinterpret_cast<std::uintptr_t>(from + i) + ahead;  // may be past the end
        for (std::size_t byte = 0; byte < sizeof(From) * numbers; byte += 64) {
            __builtin_prefetch(reinterpret_cast<const void*>(next + byte));
        }
        if constexpr (by_vectors) {
            convert_two_vectors(from + i, line);
            for (std::size_t j = 0; j < numbers; j += lanes) store_nontemporal(to + i + j, load(line + j));
        } else {
            for (std::size_t j = 0; j < numbers; j += 4 * lanes) convert_four_vectors(from + i + j, line + j);
            stream_lines(to + i, line, sizeof line);
        }
    }
}
#endif

}}}  // namespace mp::detail::MP_TARGET
