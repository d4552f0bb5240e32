// SPDX-License-Identifier: MIT
// A library that reports the version MP_CUBLASLT_VERSION, as cuBLASLt does.
#include <cstddef>

extern "C" std::size_t cublasLtGetVersion() {
    return MP_CUBLASLT_VERSION;
}
