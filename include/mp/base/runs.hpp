// SPDX-License-Identifier: MIT
/// \file
/// Loops that compilers vectorise.
#pragma once

#include <mp/config.hpp>

#include <cstddef>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Calls f(i) for every i in [0, count), in order. Most of it happens in runs of a constant length, because
/// that is what g++ 12 vectorises at -O2 already; loops of unknown length it leaves to -O3.
template <class Function>
MP_ALWAYS_INLINE void in_runs(std::size_t count, Function f) {
    constexpr std::size_t run = 64;
    std::size_t i = 0;
    for (; i + run <= count; i += run) {
        for (std::size_t j = 0; j < run; ++j) f(i + j);
    }
    for (; i < count; ++i) f(i);
}

}}  // namespace mp::detail
