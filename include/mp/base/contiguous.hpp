// SPDX-License-Identifier: MIT
/// \file
/// What bulk algorithms accept as an array: anything with std::data and std::size.
#pragma once

#include <mp/config.hpp>

#include <cstddef>
#include <span>  // also gives std::data and std::size
#include <type_traits>
#include <utility>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The type of the elements of a contiguous range, const where they cannot be written.
template <class Range>
using contiguous_element = std::remove_pointer_t<decltype(std::data(std::declval<Range&>()))>;

/// std::vector, std::array, std::span, a C array, and whatever else std::data and std::size work on.
template <class Range>
concept contiguous = requires(Range& range) {
    std::data(range);
    std::size(range);
};

/// The range as a span.
template <contiguous Range>
constexpr std::span<contiguous_element<Range>> as_span(Range& range) {
    return {std::data(range), static_cast<std::size_t>(std::size(range))};
}

}}  // namespace mp::detail
