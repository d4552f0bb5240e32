// SPDX-License-Identifier: MIT
/// \file
/// Check of arguments that point to memory.
#pragma once

#include <mp/config.hpp>
#include <mp/error.hpp>

#include <cstddef>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Throws if memory of a size other than zero is null.
inline void require_memory(std::string_view function, std::string_view argument, const void* data,
                           std::size_t size) {
    if (data != nullptr || size == 0) return;
    throw_joined<argument_error>(
        {function, ": ", argument, " is null; it must point to memory, for the size is ", error_text(size)});
}

}}  // namespace mp::detail
