// SPDX-License-Identifier: MIT
/// \file
/// The 16-bit numbers of the language, without a copy: _Float16 and __bf16 where the compiler has them, which
/// in C++23 are std::float16_t and std::bfloat16_t. The macros MP_HAS_COMPILER_BINARY16 and
/// MP_HAS_COMPILER_BFLOAT16 tell which there are.
///
/// Converting constructors and operators of basic_float take these types as well: mp::half{x},
/// static_cast<std::bfloat16_t>(y), each rounded once. What is here changes the type and no bit, NaNs
/// included.
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/frontends/interop/same_layout.hpp>
#include <mp/half.hpp>

namespace mp {

namespace detail {

template <class T>
struct standard_counterpart;
template <class T>
struct counterpart_of_standard;

#if MP_HAS_COMPILER_BINARY16
template <>
struct standard_counterpart<half> : std::type_identity<compiler_binary16> {};
template <>
struct counterpart_of_standard<compiler_binary16> : std::type_identity<half> {};
#endif
#if MP_HAS_COMPILER_BFLOAT16
template <>
struct standard_counterpart<bfloat16> : std::type_identity<compiler_bfloat16> {};
template <>
struct counterpart_of_standard<compiler_bfloat16> : std::type_identity<bfloat16> {};
#endif

template <class T>
using standard_counterpart_t = typename standard_counterpart<std::remove_const_t<T>>::type;
template <class T>
using counterpart_of_standard_t = typename counterpart_of_standard<std::remove_const_t<T>>::type;

}  // namespace detail

/// A number of this library that the compiler has a type for, and such a type.
template <class T>
concept has_standard_type = requires { typename detail::standard_counterpart_t<T>; };
template <class T>
concept standard_number = requires { typename detail::counterpart_of_standard_t<T>; };

/// The same bits as a number of the language.
///
///     std::float16_t x = mp::to_standard(mp::half{0.1f});
template <has_standard_type T>
[[nodiscard]] constexpr detail::standard_counterpart_t<T> to_standard(T x) noexcept {
    return detail::bit_cast<detail::standard_counterpart_t<T>>(x);
}
/// The same bits as a number of this library.
template <standard_number T>
[[nodiscard]] constexpr detail::counterpart_of_standard_t<T> from_standard(T x) noexcept {
    return detail::bit_cast<detail::counterpart_of_standard_t<T>>(x);
}

/// The same memory under the other type. See view_as in same_layout.hpp for what to mind.
template <has_standard_type T>
[[nodiscard]] auto as_standard(std::span<T> x) noexcept {
    return detail::view_as<detail::standard_counterpart_t<T>>(x);
}
template <standard_number T>
[[nodiscard]] auto view_of_standard(std::span<T> x) noexcept {
    return detail::view_as<detail::counterpart_of_standard_t<T>>(x);
}

}  // namespace mp
