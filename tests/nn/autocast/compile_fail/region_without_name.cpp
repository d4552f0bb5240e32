// expects: ignoring return value of .*autocast_region|ignoring temporary created by a constructor declared with 'nodiscard'
// SPDX-License-Identifier: MIT
#include <mp/autocast.hpp>
#pragma GCC diagnostic error "-Wunused-result"
#pragma GCC diagnostic error "-Wunused-value"

void bad() {
    mp::autocast_region{mp::precision::fp16};
}
