// SPDX-License-Identifier: MIT
// The same as torch.cpp with PyTorch's own headers, where CMake found them.
// alone: namespace c10 is PyTorch's here
#if __has_include(<torch/headeronly/core/ScalarType.h>)
#include <torch/headeronly/core/ScalarType.h>

#include "torch_checks.hpp"

#include <bit>
#include <cmath>

TEST_CASE("PyTorch's numbers and ours have the same values") {
    for (std::uint32_t code = 0; code < 65536; ++code) {
        const c10::Half theirs(static_cast<unsigned short>(code), c10::Half::from_bits());
        const float ours = mp::from_torch(theirs);
        REQUIRE(std::bit_cast<std::uint32_t>(ours) ==
                std::bit_cast<std::uint32_t>(static_cast<float>(theirs)));
    }
    for (std::uint32_t code = 0; code < 256; ++code) {
        const c10::Float8_e5m2fnuz theirs(static_cast<std::uint8_t>(code), c10::Float8_e5m2fnuz::from_bits());
        const float ours = mp::from_torch(theirs);
        const auto value = static_cast<float>(theirs);
        REQUIRE((ours == value || (std::isnan(ours) && std::isnan(value))));
    }
}
#else
#include <doctest/doctest.h>
TEST_CASE("PyTorch's own headers" * doctest::skip()) {
    MESSAGE("no headers of PyTorch");
}
#endif
