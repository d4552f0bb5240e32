// SPDX-License-Identifier: MIT
/// \file
/// For targets that read files: bytes in a file of the process's own.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace fuzzing {

inline void require(bool condition) {
    if (!condition) std::abort();
}

/// A file for this process, the same at each call.
inline const std::string& path() {
    static const std::string name = [] {
        char pattern[] = "/tmp/mp_fuzz_XXXXXX";
        const int handle = ::mkstemp(pattern);
        require(handle >= 0);
        ::close(handle);
        return std::string(pattern);
    }();
    return name;
}

}  // namespace fuzzing
