// SPDX-License-Identifier: MIT
/// \file
/// The bits of 2/pi, as many as the largest exponent asks for: what the reduction of angles in radians takes.
#pragma once

#include <mp/config.hpp>

#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

// The bits of 2/pi after 64 zeros, in a table where the host finds it without building it up first.
#define MP_BITS_OF_TWO_OVER_PI                                                                              \
    0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,     \
        0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, \
        0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, \
        0x4f463f669e5fea2d, 0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, \
        0xf0cfbc209af4361d, 0xa9e391615ee61b08, 0x6599855f14a06840, 0x8dffd8804d732731, 0x06061556ca73a8c9, \
        0x60e27bc08c6b47c4, 0x19c367cddce8092a, 0x8359c4768b961ca6, 0xddaf44d15719053e, 0xa5ff07053f7e33e8, \
        0x32c2de4f98327dbb, 0xc33d26ef6b1e5ef8, 0x9f3a1f35caf27f1d, 0x87f121907c7c246a, 0xfa6ed5772d30433b, \
        0x15c614b59d19c3c2, 0xc4ad414d2c5d000c, 0x467d862d71e39ac6, 0x9b0062337cd2b497, 0xa7b4d55537f63ed7, \
        0x1810a3fc764d2a9d
inline constexpr std::uint64_t bits_of_two_over_pi[] = {MP_BITS_OF_TWO_OVER_PI};

/// 64 bits of 2/pi from the one of weight 2^(-64 index) on; there are none before index 1.
MP_HOST_DEVICE constexpr std::uint64_t two_over_pi(int index) {
#if MP_DEVICE_CODE
    constexpr std::uint64_t words[] = {MP_BITS_OF_TWO_OVER_PI};
    return words[index];
#else
    return bits_of_two_over_pi[index];
#endif
}
#undef MP_BITS_OF_TWO_OVER_PI

}}  // namespace mp::detail
