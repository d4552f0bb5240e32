// SPDX-License-Identifier: MIT
#include "device/cuda/numbers.hpp"

namespace {

TEST_CASE("numbers: the device gives the host's bits for 16-bit formats") {
    compare<mp::half>(make_operands<mp::half>(8));
    compare<mp::bfloat16>(make_operands<mp::bfloat16>(8));
}

TEST_CASE("numbers: the device gives the host's bits for formats of 6 and 4 bits") {
    compare<mp::float6_e2m3fn>(make_operands<mp::float6_e2m3fn>(1024));
    compare<mp::float4_e2m1fn>(make_operands<mp::float4_e2m1fn>(4096));
}

TEST_CASE("numbers: the device gives the host's bits for 8-bit formats") {
    compare<mp::float8_e4m3fn>(make_operands<mp::float8_e4m3fn>(1024));
    compare<mp::float8_e5m2>(make_operands<mp::float8_e5m2>(1024));
}

}  // namespace
