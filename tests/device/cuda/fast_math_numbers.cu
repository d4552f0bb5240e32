// SPDX-License-Identifier: MIT
#include "device/cuda/numbers.hpp"

namespace {

TEST_CASE("numbers: --use_fast_math changes no bit on the device") {
    compare<mp::half>(make_operands<mp::half>(4));
    compare<mp::bfloat16>(make_operands<mp::bfloat16>(4));
}

}  // namespace
