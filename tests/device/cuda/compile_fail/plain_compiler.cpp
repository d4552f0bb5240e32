// expects: mp/cuda.hpp is for files compiled as CUDA
// SPDX-License-Identifier: MIT
#include <mp/cuda.hpp>

int main() {}
