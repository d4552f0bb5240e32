// SPDX-License-Identifier: MIT
#include <mp/simd/floating_point_modes.hpp>

#include <doctest/doctest.h>

#include <cfenv>
#include <initializer_list>
#include <limits>

namespace {

// Not constants to the compiler.
float opaque(float x) {
    volatile float kept = x;
    return kept;
}

#if defined(__x86_64__) && defined(__GNUC__)

unsigned control_register() {
    unsigned value = 0;
    __asm__ volatile("stmxcsr %0" : "=m"(value));
    return value;
}
void set_control_register(unsigned value) {
    __asm__ volatile("ldmxcsr %0" : : "m"(value) : "memory");
}

TEST_CASE("modes of the caller are back afterwards, to the last flag") {
    const unsigned before = control_register();
    for (const unsigned wanted : {0x1f80U, 0x9fc0U, 0x7fa0U, 0x5f80U, 0x3f81U}) {
        set_control_register(wanted);
        {
            const mp::detail::default_floating_point_modes modes;
            const float third = opaque(1.0F) / opaque(3.0F);
            static_cast<void>(opaque(third));
        }
        const unsigned after = control_register();
        set_control_register(before);
        CHECK(after == wanted);
    }
}

TEST_CASE("subnormal numbers count and halves go to even, whatever the caller has set") {
    const unsigned before = control_register();
    set_control_register(0xffc0U);  // flush both ways, toward zero
    float smallest = 0;
    float rounded = 0;
    {
        const mp::detail::default_floating_point_modes modes;
        smallest = opaque(std::numeric_limits<float>::denorm_min()) * opaque(4.0F);
        rounded = opaque(1.0F) + opaque(0x1.8p-23F);
    }
    set_control_register(before);
    CHECK(smallest == 4 * std::numeric_limits<float>::denorm_min());
    CHECK(rounded == 0x1.000004p0F);
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
