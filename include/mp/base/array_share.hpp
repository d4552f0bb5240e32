// SPDX-License-Identifier: MIT
/// \file
/// A part of an array that is shared among ranks.
#pragma once

#include <mp/config.hpp>

#include <cstddef>
#include <span>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Elements [first, first + values.size()) of an array of `of`, whose others are on other ranks; or all of it
/// where it is not shared.
template <class Value>
struct array_share {
    std::span<Value> values;
    std::size_t first;
    std::size_t of;
    bool shared;

    array_share(std::span<Value> held, std::size_t first_element, std::size_t of_all, bool among_ranks)
        : values(held), first(first_element), of(of_all), shared(among_ranks) {}
};

template <class Thing>
inline constexpr bool is_array_share = false;
template <class Value>
inline constexpr bool is_array_share<array_share<Value>> = true;

}}  // namespace mp::detail
