// SPDX-License-Identifier: MIT
/// \file
/// Checks of single arguments: the number of threads of an executor, memory, and sizes before they are multiplied.
#pragma once

#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>

#include <cstddef>
#include <limits>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

[[noreturn]] MP_NEVER_INLINE inline void throw_threads(std::string_view function, int threads) {
    throw_argument(function, "exec.threads", threads, "must be at least 1");
}
/// Throws argument_error in the name of `function` when the executor asks for fewer than one thread.
MP_ALWAYS_INLINE void check_threads(std::string_view function, const cpu& exec) {
    if (exec.threads < 1) [[unlikely]]
        throw_threads(function, exec.threads);
}

/// Throws if memory of a size other than zero is null.
inline void require_memory(std::string_view function, std::string_view argument, const void* data,
                           std::size_t size) {
    if (data != nullptr || size == 0) return;
    throw_joined<argument_error>(
        {function, ": ", argument, " is null; it must point to memory, for the size is ", error_text(size)});
}

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
