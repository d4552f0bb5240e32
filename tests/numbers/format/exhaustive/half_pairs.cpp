// SPDX-License-Identifier: MIT
// All 2^32 pairs of half for + - * /, and all 2^32 floats converted to half.
// run with: --rounding upward
#include "numbers/format/exhaustive/pairs.hpp"

int main(int argc, char** argv) {
    return exhaustive::main_of<mp::half, 1>("half", argc, argv);
}
