// SPDX-License-Identifier: MIT
/// \file
/// What the adapters of this folder share: a number of this library and one of a foreign library that have
/// the same bits at the same place are turned into one another without a conversion.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/numbers/format/basic_float.hpp>

#include <span>
#include <type_traits>

namespace mp {

/// Types of the same size and alignment whose objects are nothing but their bytes.
template <class A, class B>
concept same_layout = sizeof(A) == sizeof(B) && alignof(A) == alignof(B) &&
                      std::is_trivially_copyable_v<std::remove_const_t<A>> &&
                      std::is_trivially_copyable_v<std::remove_const_t<B>>;

namespace detail {

/// `To`, const if `From` is.
template <class To, class From>
using with_constness_of = std::conditional_t<std::is_const_v<From>, const To, To>;

/// The same memory under another type.
///
/// To a compiler that reasons by type, an object still has the type that it was made with. Functions that get
/// a view and work on it, as all of this library and of the foreign ones do, are safe in practice; code that
/// reads and writes the same element under both types within one function is not.
template <class To, class From>
    requires same_layout<To, From>
std::span<with_constness_of<To, From>> view_as(std::span<From> from) noexcept {
    return {reinterpret_cast<with_constness_of<To, From>*>(from.data()), from.size()};
}

}  // namespace detail

}  // namespace mp
