// SPDX-License-Identifier: MIT
/// \file
/// c10::Half, c10::BFloat16, c10::Float8_e4m3fn and their like, the numbers of PyTorch's C++ side, without a
/// copy and without including PyTorch.
#pragma once

#include <mp/interop/same_layout.hpp>

namespace mp {

/// A type that is made as PyTorch's numbers are: a trivially copyable class whose only content is the member
/// x, an unsigned integer of the number's bits.
template <class T>
concept torch_number =
    std::is_class_v<T> && std::is_trivially_copyable_v<T> && !reduced<T> &&
    requires(T value) { requires std::unsigned_integral<decltype(value.x)>; } && sizeof(T) == sizeof(T::x);

/// The number of this library with the bits of x. Which format these are of, the caller says: PyTorch's types
/// do not tell.
///
///     mp::half h = mp::from_torch<mp::half>(tensor.item<c10::Half>());
template <reduced To, torch_number From>
    requires same_layout<To, From>
[[nodiscard]] MP_HOST_DEVICE constexpr To from_torch(From x) noexcept {
    return detail::bit_cast<To>(x);
}

/// The PyTorch number with the bits of x.
///
///     c10::BFloat16 b = mp::to_torch<c10::BFloat16>(mp::bfloat16{1.5f});
template <torch_number To, reduced From>
    requires same_layout<To, From>
[[nodiscard]] MP_HOST_DEVICE constexpr To to_torch(From x) noexcept {
    return detail::bit_cast<To>(x);
}

/// An array under the other library's type: the same memory. See view_as in same_layout.hpp for what to mind.
///
///     std::span<c10::Half> data(tensor.data_ptr<c10::Half>(), tensor.numel());
///     mp::convert(mp::cpu{}, floats, mp::view_from_torch<mp::half>(data));
template <reduced To, class From>
    requires torch_number<std::remove_const_t<From>>
[[nodiscard]] auto view_from_torch(std::span<From> x) noexcept {
    return detail::view_as<To>(x);
}
template <torch_number To, class From>
    requires reduced<From>
[[nodiscard]] auto view_as_torch(std::span<From> x) noexcept {
    return detail::view_as<To>(x);
}

}  // namespace mp
