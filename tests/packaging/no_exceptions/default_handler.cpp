// SPDX-License-Identifier: MIT
// What becomes of an error without exceptions and without a handler of one's own.
#include <mp/float4.hpp>
#include <mp/packed_array.hpp>

int main() {
    const mp::packed_array<mp::float4_e2m1fn> numbers(3);
    static_cast<void>(numbers.at(3));
}
