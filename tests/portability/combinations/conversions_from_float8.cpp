// SPDX-License-Identifier: MIT
#include "conversions.hpp"

void portability::add_conversions_from_float8(combinations& to) {
    add_conversions_from(to, float8_types{});
}
