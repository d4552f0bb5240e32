// SPDX-License-Identifier: MIT
#include <cuda_runtime_api.h>

#include <cstdio>

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

namespace {

/// The return code by which ctest knows that a test was skipped.
constexpr int skipped = 77;

}  // namespace

int main(int argc, char** argv) {
    int devices = 0;
    const cudaError_t status = cudaGetDeviceCount(&devices);
    if (status != cudaSuccess || devices == 0) {
        std::printf("skipped: no CUDA device (%s)\n", cudaGetErrorString(status));
        return skipped;
    }
    doctest::Context context(argc, argv);
    return context.run();
}
