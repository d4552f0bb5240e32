// SPDX-License-Identifier: MIT
// Block-scaled arrays in a project that is compiled with -O3 -Wall -Wextra -Werror: compilers that unroll and
// vectorise loops warn of bounds that they do not see. One kind of block, MP_TEST_BLOCKS, in a program: what is called once is
// inlined, and is where they look.
#include <mp/block_scaled.hpp>

#include <cstddef>
#include <vector>

namespace {

bool keeps_ones() {
    std::vector<float> values(std::size_t{4} * 64, 1.0F);
    const auto view = mp::row_major(values.data(), 4, 64);
    const auto quantized = mp::quantize<mp::MP_TEST_BLOCKS>(mp::cpu{}, view);
    for (float& x : values) x = 0.0F;
    mp::dequantize(mp::cpu{}, quantized, view);
    for (const float x : values) {
        if (x < 1.0F || x > 1.0F) return false;
    }
    return true;
}

}  // namespace

int main() {
    return keeps_ones() ? 0 : 1;
}
