// SPDX-License-Identifier: MIT
// Compiled without exceptions, it must not link with a compiled part that throws them.
#include <mp/gemm.hpp>

int main() {
    float values[3] = {1, 2, 0};
    mp::gemm(mp::cpu{}, 1.0F, mp::row_major(values, 1, 1), mp::row_major(values + 1, 1, 1), 0.0F,
             mp::row_major(values + 2, 1, 1));
}
