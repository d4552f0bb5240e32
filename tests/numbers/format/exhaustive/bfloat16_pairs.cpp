// SPDX-License-Identifier: MIT
// All 2^32 pairs of bfloat16 for + - * /, and all 2^32 floats converted to bfloat16.
// run with: --rounding upward
#include "numbers/format/exhaustive/pairs.hpp"

int main(int argc, char** argv) {
    return exhaustive::main_of<mp::bfloat16, 5>("bfloat16", argc, argv);
}
