// SPDX-License-Identifier: MIT
/// \file
/// Conversions of arrays of an element type to and from floats and doubles, by the kernels of mp::convert.
#pragma once

#include <mp/arrays/array/element_type.hpp>
#include <mp/arrays/convert/convert.hpp>
#include <mp/base/instruction_set.hpp>
#include <mp/config.hpp>
#include <mp/executor.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <cstddef>

#if MP_CORE_BODIES
namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The conversions of a type, for its record.
template <class Value>
struct element_rows {
    static void widen(instruction_set isa, const void* from, float* to, std::size_t count) {
        convert_nearest(isa, static_cast<const Value*>(from), to, count);
    }
    static void narrow(instruction_set isa, const float* from, void* to, std::size_t count) {
        convert_nearest(isa, from, static_cast<Value*>(to), count);
    }
    static void to_doubles(const void* from, double* to, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) to[i] = as<double>(static_cast<const Value*>(from)[i]);
    }
    static void from_doubles(const double* from, void* to, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) static_cast<Value*>(to)[i] = as<Value>(from[i]);
    }
    static void widen_array(const cpu& exec, const void* from, float* to, std::size_t count) {
        convert_array_nearest(exec, isa_of("mp::convert", exec), static_cast<const Value*>(from), to, count);
    }
    static void narrow_array(const cpu& exec, const float* from, void* to, std::size_t count) {
        convert_array_nearest(exec, isa_of("mp::convert", exec), from, static_cast<Value*>(to), count);
    }
};

}}  // namespace mp::detail
#endif
