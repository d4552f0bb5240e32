// expects: ignoring return value of .*frame|ignoring temporary created by a constructor declared with 'nodiscard'
// SPDX-License-Identifier: MIT
#include <mp/workspace.hpp>
#pragma GCC diagnostic error "-Wunused-result"
#pragma GCC diagnostic error "-Wunused-value"

void bad(mp::workspace& memory) {
    mp::workspace::frame{&memory};
}
