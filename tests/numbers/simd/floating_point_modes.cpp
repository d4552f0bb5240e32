// SPDX-License-Identifier: MIT
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <doctest/doctest.h>

#include <cfenv>
#include <initializer_list>
#include <limits>

#include "numbers/simd/caller_modes.hpp"

namespace {

// Not constants to the compiler.
float opaque(float x) {
    volatile float kept = x;
    return kept;
}

#if TEST_HAS_MODES

TEST_CASE("modes of the caller are back afterwards") {
    for (const mode_bits wanted : caller_modes) {
        mode_bits after = 0;
        {
            const modes_scope scope(wanted);
            {
                const mp::detail::default_floating_point_modes modes;
                const float third = opaque(1.0F) / opaque(3.0F);
                static_cast<void>(opaque(third));
            }
            after = current_modes();
        }
        CHECK(after == wanted);
    }
}

TEST_CASE("flags of the caller are back afterwards") {
    for (const mode_bits wanted : {mode_bits{0}, mode_bits{1}, mode_bits{3}}) {
        const mode_bits before = current_flags();
        set_flags(wanted);
        {
            const mp::detail::default_floating_point_modes modes;
            static_cast<void>(opaque(opaque(1.0F) / opaque(0.0F)));
            static_cast<void>(opaque(opaque(1.0F) / opaque(3.0F)));
        }
        const mode_bits after = current_flags();
        set_flags(before);
        CHECK(after == wanted);
    }
}

TEST_CASE("subnormal numbers count and halves go to even, whatever the caller has set") {
    for (const mode_bits wanted : caller_modes) {
        float smallest = 0;
        float rounded = 0;
        {
            const modes_scope scope(wanted);
            const mp::detail::default_floating_point_modes modes;
            smallest = opaque(std::numeric_limits<float>::denorm_min()) * opaque(4.0F);
            rounded = opaque(1.0F) + opaque(0x1.8p-23F);
        }
        CHECK(smallest == 4 * std::numeric_limits<float>::denorm_min());
        CHECK(rounded == 0x1.000004p0F);
    }
}

#endif

TEST_CASE("a directed mode of the C library is back afterwards") {
    REQUIRE(std::fesetround(FE_UPWARD) == 0);
    float rounded = 0;
    {
        const mp::detail::default_floating_point_modes modes;
        rounded = opaque(1.0F) + opaque(0x1p-30F);
    }
    const int after = std::fegetround();
    std::fesetround(FE_TONEAREST);
    CHECK(after == FE_UPWARD);
    CHECK(rounded == 1.0F);
}

}  // namespace
