// SPDX-License-Identifier: MIT
#include <mp/mp.hpp>

int main() {
    // 65504 is the largest finite binary16 number; the sum with 16 is a tie that rounds to infinity.
    const mp::half largest(65504.0f);
    return mp::isfinite(largest) && mp::isinf(largest + mp::half(16.0f)) ? 0 : 1;
}
