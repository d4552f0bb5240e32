// SPDX-License-Identifier: MIT
/// \file
/// How threads of a GPU convert chunks of numbers: two at a time where the device has instructions for that,
/// and otherwise one after the other in a loop that is not unrolled. Host and device, the same bits.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/numbers/format/operations.hpp>
#include <mp/numbers/format/packed2.hpp>
#include <mp/numbers/format/philox.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Types that conversions take two at a time: float, and the formats that packed2 holds.
template <class Number>
inline constexpr bool comes_in_pairs = std::is_same_v<Number, float>;
template <class Format>
inline constexpr bool comes_in_pairs<basic_float<Format>> =
    sizeof(basic_float<Format>) <= 2 && fast_path_in<Format, float>;

/// Two neighbouring numbers as floats, exactly.
MP_HOST_DEVICE constexpr float_pair floats_of(float first, float second) {
    return {first, second};
}
template <class Format>
MP_HOST_DEVICE constexpr float_pair floats_of(basic_float<Format> first, basic_float<Format> second) {
    return packed2<basic_float<Format>>(first, second).floats();
}

/// The bytes of a chunk in words that move along when numbers are taken out at one end or put in at the
/// other. So a loop over the elements needs no addresses: it stays in registers without being unrolled, and
/// the code for an element, which is long for a conversion in any rounding, is there once.
template <std::size_t Bytes>
struct number_queue {
    static constexpr int count = static_cast<int>((Bytes + 3) / 4);
    std::uint32_t words[std::size_t{count}] = {};

    /// The next number.
    template <class Number>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE Number take() {
        if constexpr (sizeof(Number) == 8) {
            const std::uint64_t bits = words[0] | (std::uint64_t{words[1]} << 32);
            advance<32>();
            advance<32>();
            return bit_cast<Number>(bits);
        } else if constexpr (sizeof(Number) == 4) {
            const std::uint32_t bits = words[0];
            advance<32>();
            return bit_cast<Number>(bits);
        } else {
            using word = std::conditional_t<sizeof(Number) == 2, std::uint16_t, std::uint8_t>;
            const auto bits = static_cast<word>(words[0]);
            advance<8 * sizeof(Number)>();
            return bit_cast<Number>(bits);
        }
    }

    /// Puts a number behind the others. Once the queue is full of them, the first one is the next.
    template <class Number>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void put(Number number) {
        if constexpr (sizeof(Number) == 8) {
            const auto bits = bit_cast<std::uint64_t>(number);
            advance<32>();
            words[count - 1] = static_cast<std::uint32_t>(bits);
            advance<32>();
            words[count - 1] = static_cast<std::uint32_t>(bits >> 32);
        } else if constexpr (sizeof(Number) == 4) {
            advance<32>();
            words[count - 1] = bit_cast<std::uint32_t>(number);
        } else {
            using word = std::conditional_t<sizeof(Number) == 2, std::uint16_t, std::uint8_t>;
            constexpr int width = 8 * static_cast<int>(sizeof(Number));
            advance<width>();
            words[count - 1] |= std::uint32_t{bit_cast<word>(number)} << (32 - width);
        }
    }

    template <class Number, int Count>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE static number_queue of(const chunk<Number, Count>& from) {
        number_queue result;
        __builtin_memcpy(result.words, &from, Bytes);
        return result;
    }
    template <class Number, int Count>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE chunk<Number, Count> numbers() const {
        number_queue full = *this;
        if constexpr (Bytes < 4) full.template advance<32 - 8 * static_cast<int>(Bytes)>();
        chunk<Number, Count> result;
        __builtin_memcpy(static_cast<void*>(&result), full.words, Bytes);
        return result;
    }

private:
    /// Drops the first bits.
    template <int Bits>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void advance() {
        MP_UNROLL
        for (int i = 0; i < count; ++i) {
            const std::uint32_t above = i + 1 < count ? words[i + 1 < count ? i + 1 : i] : 0;
            if constexpr (Bits == 32) {
                words[i] = above;
            } else {
                words[i] = (words[i] >> Bits) | (above << (32 - Bits));
            }
        }
    }
};

/// to = convert_next(from) for the numbers of a chunk, in order.
MP_ANY_EXECUTION_SPACE
template <class To, int Count, class From, class ConvertNext>
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE chunk<To, Count> convert_in_order(
    const chunk<From, Count>& from, ConvertNext&& convert_next) {
    if constexpr (Count == 1) {
        return {{convert_next(from.values[0])}};
    } else {
        auto values = number_queue<sizeof from>::of(from);
        number_queue<sizeof(To) * Count> results;
        MP_UNROLL_BY(1)
        for (int i = 0; i < Count; ++i) results.put(convert_next(values.template take<From>()));
        return results.template numbers<To, Count>();
    }
}

// What follows are the ways to convert: function objects from a chunk, and the number of its first element
// where that matters, to a chunk. `in_flight` is the number of chunks that a thread loads before it converts
// the first one: one where converting takes longer than what is on its way.

/// round_to in the default projection, for types of which at least one is reduced and that differ: this has
/// short cuts that the other projections have not.
struct nearest_conversion {
    static constexpr int in_flight = chunks_in_flight;

    template <class To, int Count, class From>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE chunk<To, Count> convert(const chunk<From, Count>& from,
                                                                           std::uint64_t /*number*/) const {
        chunk<To, Count> to;
        if constexpr (comes_in_pairs<From> && comes_in_pairs<To> && Count % 2 == 0) {
            MP_UNROLL
            for (int i = 0; i < Count; i += 2) {
                convert_pair(from.values[i], from.values[i + 1], to.values[i], to.values[i + 1]);
            }
        } else {
            MP_UNROLL
            for (int i = 0; i < Count; ++i) to.values[i] = converted<To>(from.values[i]);
        }
        return to;
    }

private:
    template <class To, class From>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE static To converted(From x) {
        if constexpr (!reduced<From> || !reduced<To>) {
            return static_cast<To>(x);
        } else if constexpr (fast_path_in<typename From::format, float>) {
            return To(static_cast<float>(x));  // exact in float, so rounded once
        } else {
            return round_to<To>(x);
        }
    }

    template <class From, class To>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void convert_pair(From first, From second, To& to_first,
                                                             To& to_second) {
        if constexpr (std::is_same_v<To, float>) {
            const float_pair floats = floats_of(first, second);
            to_first = floats.first;
            to_second = floats.second;
        } else {
            packed2<To> pair;
            if constexpr (std::is_same_v<From, float>) {
                pair = packed2<To>(first, second);
            } else {
                pair = packed2<To>(packed2<From>(first, second));
            }
            to_first = pair.first();
            to_second = pair.second();
        }
    }
};

/// round_to in a projection whose rounding is nearest_even, between types that come in pairs, the target
/// being a reduced one: devices have instructions for most of these.
struct nearest_even_conversion {
    static constexpr int in_flight = chunks_in_flight;
    projection p;

    template <class To, int Count, class From>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE chunk<To, Count> convert(const chunk<From, Count>& from,
                                                                           std::uint64_t /*number*/) const {
        projection how = p;
        how.round = rounding::nearest_even;  // as it is; this way the compiler knows
#if MP_DEVICE_CODE
        if constexpr (Count % 2 == 0) {
            if (device_projects_pairs<typename To::format>(how)) {
                chunk<To, Count> to;
#pragma unroll
                for (int i = 0; i < Count; i += 2) {
                    const auto pair = packed2<To>::from_bits(static_cast<typename packed2<To>::storage>(
                        pair_codes<typename To::format>(from.values[i], from.values[i + 1], how)));
                    to.values[i] = pair.first();
                    to.values[i + 1] = pair.second();
                }
                return to;
            }
        }
#endif
        return convert_in_order<To, Count>(from, [&](From x) { return round_to<To>(x, how); });
    }

private:
#if MP_DEVICE_CODE
    template <class Format, class From>
    [[nodiscard]] static __device__ __forceinline__ std::uint32_t pair_codes(From first, From second,
                                                                             const projection& how) {
        if constexpr (std::is_same_v<From, basic_float<formats::binary16>> &&
                      narrows_halves_by_instruction<Format>) {
            return device_narrow_halves<Format>(packed2<From>(first, second).bits(), how);
        } else {
            const float_pair floats = floats_of(first, second);
            return device_narrow_pair<Format>(floats.first, floats.second, how);
        }
    }
#endif
};

/// round_to between any types in any projection, all elements with the same random bits.
struct any_conversion {
    static constexpr int in_flight = 1;
    projection p;

    template <class To, int Count, class From>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE chunk<To, Count> convert(const chunk<From, Count>& from,
                                                                           std::uint64_t /*number*/) const {
        return convert_in_order<To, Count>(from, [&](From x) { return round_to<To>(x, p); });
    }
};

/// round_to in a stochastic projection, element i of all with random_bits(seed, i).
struct stochastic_conversion {
    static constexpr int in_flight = 1;
    projection p;
    std::uint64_t seed;

    template <class To, int Count, class From>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE chunk<To, Count> convert(const chunk<From, Count>& from,
                                                                           std::uint64_t number) const {
        using block = number_queue<sizeof(philox4x32)>;  // the random bits of four elements
        block random = random_from(number);
        projection how = p;
        return convert_in_order<To, Count>(from, [&](From x) {
            how.random = random.template take<std::uint32_t>();
            if (Count != 1 && ++number % 4 == 0) random = random_from(number);
            return round_to<To>(x, how);
        });
    }

private:
    /// The random bits of element `number` and those behind it in its block.
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE number_queue<16> random_from(std::uint64_t number) const {
        const philox4x32 words = random_block(seed, number / 4);
        number_queue<16> result;
        const int skipped = static_cast<int>(number % 4);
        result.words[0] = skipped == 0   ? words.word[0]
                          : skipped == 1 ? words.word[1]
                          : skipped == 2 ? words.word[2]
                                         : words.word[3];
        result.words[1] = skipped == 0 ? words.word[1] : skipped == 1 ? words.word[2] : words.word[3];
        result.words[2] = skipped == 0 ? words.word[2] : words.word[3];
        result.words[3] = words.word[3];
        return result;
    }
};

}}  // namespace mp::detail
