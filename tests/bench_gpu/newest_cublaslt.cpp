// SPDX-License-Identifier: MIT
#include "../../bench/gpu/newest_cublaslt.hpp"

#include <doctest/doctest.h>

#include <dlfcn.h>

#include <cstddef>
#include <string>

namespace {

/// Version of the library that is loaded, or 0.
std::size_t newest(const std::string& paths, std::size_t major) {
    void* const library = bench::gpu::load_newest_cublaslt(paths, major);
    if (library == nullptr) return 0;
    const std::size_t result = reinterpret_cast<std::size_t (*)()>(dlsym(library, "cublasLtGetVersion"))();
    dlclose(library);
    return result;
}

TEST_CASE("cuBLASLt is chosen by the version that it reports") {
    const std::string v12 = MP_CUBLASLT_120905, old = MP_CUBLASLT_130002, recent = MP_CUBLASLT_130100;
    CHECK(newest(old + ":" + recent + ":" + v12, 13) == 130100);
    CHECK(newest(recent + "::" + v12 + ":/nowhere/libcublasLt.so.14:" + old, 13) == 130100);
    CHECK(newest(recent + ":" + v12, 12) == 120905);
    CHECK(newest(recent, 12) == 0);
    CHECK(newest("", 13) == 0);
}

}  // namespace
