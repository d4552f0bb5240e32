// SPDX-License-Identifier: MIT
#include "conversions.hpp"

void portability::add_conversions_from_wide(combinations& to) {
    add_conversions_from(to, wide_types{});
}
