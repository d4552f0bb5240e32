// SPDX-License-Identifier: MIT
/// \file
/// Bit operations that work in constant expressions, on the host and on the device. The functions of <bit>
/// are host-only in the eyes of nvcc.
#pragma once

#include <mp/base/uint128.hpp>
#include <mp/config.hpp>

#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The object of type To with the same bytes as `from`, as std::bit_cast.
template <class To, class From>
MP_HOST_DEVICE constexpr To bit_cast(const From& from) noexcept {
    static_assert(sizeof(To) == sizeof(From));
    return __builtin_bit_cast(To, from);
}

/// static_cast, where From may be To itself on some targets or for some arguments of a template: no compiler
/// calls the cast useless.
template <class To, class From>
MP_HOST_DEVICE constexpr To as(From x) noexcept {
    return static_cast<To>(x);
}

/// a == b of floating-point numbers where exactly that is meant; warnings of == hold for all other places.
template <class Float>
MP_HOST_DEVICE constexpr bool same_value(Float a, Float b) noexcept {
    return a <= b && a >= b;
}

/// Zero bits above the highest one bit; x must not be zero.
MP_HOST_DEVICE constexpr int leading_zeros(std::uint64_t x) noexcept {
    return __builtin_clzll(x);
}

MP_HOST_DEVICE constexpr int leading_zeros(uint128 x) noexcept {
    const auto high = static_cast<std::uint64_t>(x >> 64);
    return high != 0 ? leading_zeros(high) : 64 + leading_zeros(static_cast<std::uint64_t>(x));
}

}}  // namespace mp::detail
