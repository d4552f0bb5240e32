// expects: an output is a view of elements that are not const
// SPDX-License-Identifier: MIT
#include <mp/autocast.hpp>

auto bad(std::span<const float> y) {
    return mp::autocast::out(y);
}
