// SPDX-License-Identifier: MIT
/// \file
/// What softmax, log_softmax, the cross entropy and attention do with a row of floats: its largest element,
/// exponentials of the distances from it, their sum; and the slopes. Sums are in double, in an order that
/// depends on the length alone, and everything has the same bits for every instruction set.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/numbers/rules/activations.hpp>
#include <mp/numbers/rules/exponential.hpp>
#include <mp/numbers/simd/loops.hpp>
#include <mp/numbers/simd/select_target.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The largest of some floats, -infinity if there are none, and whether NaN or +infinity is among them: then
/// the largest means nothing.
struct row_maximum {
    float value = -std::numeric_limits<float>::infinity();
    bool is_bad = false;
};

}}  // namespace mp::detail

#define MP_KERNEL_FILE <mp/numbers/rules/softmax.inl>
#include <mp/numbers/simd/for_each_loop.inl>
