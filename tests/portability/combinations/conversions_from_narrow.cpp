// SPDX-License-Identifier: MIT
#include "conversions.hpp"

void portability::add_conversions_from_narrow(combinations& to) {
    add_conversions_from(to, narrow_types{});
}
