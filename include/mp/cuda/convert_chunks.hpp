// SPDX-License-Identifier: MIT
/// \file
/// Conversion of an array by the threads of a kernel, two numbers at a time where the device has instructions
/// for that. Host and device: the same arithmetic is tested on machines without a GPU.
#pragma once

#include <mp/config.hpp>
#include <mp/cuda/chunks.hpp>
#include <mp/format/operations.hpp>
#include <mp/format/packed2.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mp::detail {

/// Types that conversions take two at a time: float, and the formats that packed2 holds.
template <class Number>
inline constexpr bool comes_in_pairs = std::is_same_v<Number, float>;
template <class Format>
inline constexpr bool comes_in_pairs<basic_float<Format>> =
    sizeof(basic_float<Format>) <= 2 && fits_in<Format, float>;

/// Two neighbouring numbers as floats, exactly.
MP_HOST_DEVICE constexpr float_pair floats_of(float first, float second) {
    return {first, second};
}
template <class Format>
MP_HOST_DEVICE constexpr float_pair floats_of(basic_float<Format> first, basic_float<Format> second) {
    return packed2<basic_float<Format>>(first, second).floats();
}

/// Converts numbers, single ones and chunks, as round_to does. The default projection, for which Nearest
/// stands, has short cuts that the general one has not.
template <class To, class From, bool Nearest>
struct element_conversion {
    projection p;

    MP_HOST_DEVICE To operator()(From x, std::size_t /*index*/) const {
        if constexpr (!Nearest || std::is_same_v<From, To> || !(reduced<From> || reduced<To>)) {
            return round_to<To>(x, p);
        } else if constexpr (reduced<From> && reduced<To>) {
            return To(static_cast<float>(x));  // exact in float, so rounded once
        } else {
            return static_cast<To>(x);
        }
    }

    template <int Count>
    MP_HOST_DEVICE chunk<To, Count> operator()(const chunk<From, Count>& from, std::size_t index) const {
        chunk<To, Count> to;
        if constexpr (comes_in_pairs<From> && comes_in_pairs<To> && !std::is_same_v<From, To> &&
                      Count % 2 == 0) {
            if (converts_pairs()) {
                for (int i = 0; i < Count; i += 2) {
                    convert_pair(from.values[i], from.values[i + 1], to.values[i], to.values[i + 1]);
                }
                return to;
            }
        }
        for (int i = 0; i < Count; ++i) to.values[i] = (*this)(from.values[i], index);
        return to;
    }

private:
    /// Whether convert_pair does what the projection says.
    [[nodiscard]] MP_HOST_DEVICE constexpr bool converts_pairs() const {
        if constexpr (Nearest) return true;
#if MP_DEVICE_CODE
        if constexpr (reduced<To>) return device_projects_pairs<typename To::format>(p);
#endif
        return false;
    }

    MP_HOST_DEVICE void convert_pair(From first, From second, To& to_first, To& to_second) const {
        if constexpr (std::is_same_v<To, float>) {
            const float_pair floats = floats_of(first, second);
            to_first = floats.first;
            to_second = floats.second;
        } else {
            const packed2<To> pair = converted(first, second);
            to_first = pair.first();
            to_second = pair.second();
        }
    }

    template <class Number = To>
    [[nodiscard]] MP_HOST_DEVICE packed2<Number> converted(From first, From second) const {
#if MP_DEVICE_CODE
        if constexpr (!Nearest && std::is_same_v<From, basic_float<formats::binary16>> &&
                      narrows_halves_by_instruction<typename Number::format>) {
            return packed2<Number>::from_bits(static_cast<typename packed2<Number>::storage>(
                device_narrow_halves<typename Number::format>(packed2<From>(first, second).bits(), p)));
        } else if constexpr (!Nearest) {
            const float_pair floats = floats_of(first, second);
            return packed2<Number>::from_bits(static_cast<typename packed2<Number>::storage>(
                device_narrow_pair<typename Number::format>(floats.first, floats.second, p)));
        }
#endif
        if constexpr (std::is_same_v<From, float>) {
            return packed2<Number>(first, second);
        } else {
            return packed2<Number>(packed2<From>(first, second));
        }
    }
};

/// The share of one of `threads` threads in the conversion of an array: transform_share, with whole chunks as
/// the elements of the part that is aligned.
template <class From, class To, class Conversion>
MP_HOST_DEVICE MP_ALWAYS_INLINE void convert_share(std::size_t thread, std::size_t threads, const From* from,
                                                   To* to, chunk_split split, const Conversion& convert) {
    constexpr int count = chunk_count<From, To>;
    for (std::size_t i = thread; i < split.singles<count>(); i += threads) {
        const std::size_t index = split.single<count>(i);
        to[index] = convert(from[index], index);
    }
    if (split.chunks == 0) return;
    transform_share(thread, threads, reinterpret_cast<const chunk<From, count>*>(from + split.head),
                    reinterpret_cast<chunk<To, count>*>(to + split.head),
                    chunk_split{0, split.chunks, split.chunks}, convert);
}

}  // namespace mp::detail
