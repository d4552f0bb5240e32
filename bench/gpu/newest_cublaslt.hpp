// SPDX-License-Identifier: MIT
/// \file
/// Selects a cuBLASLt among several installed ones.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <sstream>
#include <string>

namespace bench::gpu {

/// Loads the cuBLASLt of the highest version among `paths`, separated by ':', whose major version is `major`. The version
/// is the one that the library reports: names and folders need not have it. Returns null if there is none.
inline void* load_newest_cublaslt(const std::string& paths, std::size_t major) {
    void* newest = nullptr;
    std::size_t newest_version = 0;
    std::istringstream all(paths);
    for (std::string path; std::getline(all, path, ':');) {
        void* const library = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
        if (library == nullptr) continue;
        const auto version = reinterpret_cast<std::size_t (*)()>(dlsym(library, "cublasLtGetVersion"));
        const std::size_t number = version == nullptr ? 0 : version();
        if (number / 10000 == major && number > newest_version) {
            if (newest != nullptr) dlclose(newest);
            newest = library;
            newest_version = number;
        } else {
            dlclose(library);
        }
    }
    return newest;
}

}  // namespace bench::gpu
