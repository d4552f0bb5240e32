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
    doctest::Context context(argc, argv);
    int devices = 0;
    const cudaError_t status = cudaGetDeviceCount(&devices);
    if (status != cudaSuccess || devices == 0) {
        // What is checked before a device is asked for can be tested without one.
        context.addFilter("test-suite", "no device needed");
        const int result = context.run();
        std::printf("skipped all else: no CUDA device (%s)\n", cudaGetErrorString(status));
        return result != 0 ? result : skipped;
    }
    return context.run();
}
