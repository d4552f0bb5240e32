// SPDX-License-Identifier: MIT
/// \file
/// Sizes of containers, checked before they are multiplied.
#pragma once

#include <mp/error.hpp>

#include <cstddef>
#include <limits>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Returns `count`, or throws argument_error if `count` elements of `bits` bits cannot be addressed by
/// the number of a bit: then no size in bytes and no place of an element overflows. More than there is memory
/// for is std::bad_alloc, as in the standard's containers.
inline std::size_t addressable(std::string_view function, std::string_view argument, std::size_t count,
                               std::size_t bits) {
    const std::size_t most = (std::numeric_limits<std::size_t>::max)() / bits;
    if (count > most) {
        throw_argument(function, argument, count,
                       "must be at most " + error_text(most) + ", so that the elements can be addressed");
    }
    return count;
}

}}  // namespace mp::detail
