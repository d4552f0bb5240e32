// SPDX-License-Identifier: MIT
#include "device/cuda/packed2.hpp"

namespace {

using packed2_test::compare;

TEST_CASE("packed2: the device gives the host's bits for pairs of 16-bit numbers") {
    compare<mp::half>();
    compare<mp::bfloat16>();
}

TEST_CASE("packed2: the device gives the host's bits for pairs of small numbers") {
    compare<mp::float8_e4m3fn>();
    compare<mp::float8_e5m2>();
    compare<mp::float8_e4m3fnuz>();
    compare<mp::float6_e2m3fn>();
    compare<mp::float4_e2m1fn>();
}

}  // namespace
