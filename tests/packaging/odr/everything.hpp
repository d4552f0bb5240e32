// SPDX-License-Identifier: MIT
#pragma once

#include <mp/check.hpp>
#include <mp/mp.hpp>

#include <sstream>
#include <string>

namespace {

/// Uses a little of each format, so that both translation units hold the same inline functions.
template <class Value>
std::string use_format() {
    std::ostringstream text;
    text << mp::fma(Value(1.5f), Value(1.5f), Value(0.25f)) << ' ' << mp::sqrt(Value(2.0f)) << ' '
         << mp::round_to<Value>(1e30, {mp::rounding::toward_zero, mp::saturation::finite}) << ';';
    return text.str();
}

std::string use_everything() {
    return use_format<mp::half>() + use_format<mp::bfloat16>() + use_format<mp::float8_e4m3fn>() +
           use_format<mp::float8_e5m2>();
}

}  // namespace
