// SPDX-License-Identifier: MIT
/// \file
/// Types whose numbers are all floats as data: how rows of them become floats and are rounded from them. Fewer functions
/// than an element_type has, for what computes in float alone.
#pragma once

#include <mp/arrays/array/element_type.hpp>
#include <mp/base/instruction_set.hpp>
#include <mp/config.hpp>

#include <cstddef>
#include <limits>
#include <type_traits>

#if MP_CORE_BODIES
#include <mp/arrays/convert/bulk.hpp>
#endif

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// A type of arrays; rows are rounded to nearest even.
struct row_type {
    std::size_t size;
    double largest;  ///< finite number
    void (*widen)(instruction_set isa, const void* from, float* to, std::size_t count);
    void (*narrow)(instruction_set isa, const float* from, void* to, std::size_t count);

    /// to = `count` elements of `array` starting at element `at`.
    MP_ALWAYS_INLINE void load(instruction_set isa, const void* array, std::size_t at, std::size_t count,
                               float* to) const {
        widen(isa, static_cast<const std::byte*>(array) + at * size, to, count);
    }
    MP_ALWAYS_INLINE void store(instruction_set isa, const float* from, void* array, std::size_t at,
                                std::size_t count) const {
        narrow(isa, from, static_cast<std::byte*>(array) + at * size, count);
    }
};

template <class Value, class Owner>
struct owned_row_type {
    static const row_type record;
};

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Value>
using row_record = owned_row_type<
    Value, std::conditional_t<has_compiled_kernels<Value>, kernels_of_compiled_part, kernels_of_source>>;

#if MP_CORE_BODIES
template <class Value>
constexpr row_type make_row_type() {
    return {sizeof(Value), static_cast<double>((std::numeric_limits<Value>::max)()),
            [](instruction_set isa, const void* from, float* to, std::size_t count) {
                convert_nearest(isa, static_cast<const Value*>(from), to, count);
            },
            [](instruction_set isa, const float* from, void* to, std::size_t count) {
                convert_nearest(isa, from, static_cast<Value*>(to), count);
            }};
}
#else
template <class Value>
constexpr row_type make_row_type() {
    return {sizeof(Value), static_cast<double>((std::numeric_limits<Value>::max)()),
            &element_rows<Value>::widen, &element_rows<Value>::narrow};
}
#endif

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

template <class Value>
struct owned_row_type<Value, kernels_of_source> {
    static const row_type record;
};
template <class Value>
constinit const row_type owned_row_type<Value, kernels_of_source>::record = make_row_type<Value>();

#if defined(MP_COMPILED)
// Declared here, and defined in the compiled part.
#define MP_DECLARE_ROWS(...) \
    template <>              \
    const row_type owned_row_type<__VA_ARGS__, kernels_of_compiled_part>::record;
#define MP_DECLARE_FORMAT(format) MP_DECLARE_ROWS(basic_float<formats::format>)
MP_DECLARE_ROWS(float)
MP_FOR_EACH_LARGE_FORMAT(MP_DECLARE_FORMAT)
MP_FOR_EACH_SMALL_FORMAT(MP_DECLARE_FORMAT)
#undef MP_DECLARE_FORMAT
#undef MP_DECLARE_ROWS
#endif

}}  // namespace mp::detail
