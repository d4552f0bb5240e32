// SPDX-License-Identifier: MIT
/// \file
/// The check of the number of threads of an executor.
#pragma once

#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>

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

}}  // namespace mp::detail
