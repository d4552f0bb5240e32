// SPDX-License-Identifier: MIT
/// \file
/// Reduced numbers, float and double under one view: their descriptor and their bits.
#pragma once

#include <mp/numbers/format/basic_float.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class T>
struct format_of;
template <class Format>
struct format_of<basic_float<Format>> {
    using type = Format;
};
template <>
struct format_of<float> : native_format<float> {};
template <>
struct format_of<double> : native_format<double> {};

template <class T>
using format_of_t = typename format_of<std::remove_cv_t<T>>::type;

/// The bits of any number, float and double included.
template <number T>
MP_HOST_DEVICE constexpr storage_of<format_of_t<T>> bits_of(T x) noexcept {
    if constexpr (reduced<T>) {
        return x.bits();
    } else {
        return bit_cast<storage_of<format_of_t<T>>>(x);
    }
}

/// The number with the given bits, float and double included.
template <number T>
MP_HOST_DEVICE constexpr T number_from_bits(storage_of<format_of_t<T>> bits) noexcept {
    if constexpr (reduced<T>) {
        return T::from_bits(bits);
    } else {
        return bit_cast<T>(bits);
    }
}

}}  // namespace mp::detail
