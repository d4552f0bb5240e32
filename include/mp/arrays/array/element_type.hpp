// SPDX-License-Identifier: MIT
/// \file
/// Element types as data: a constant record for each type that a program uses, and views without their types.
#pragma once

#include <mp/base/instruction_set.hpp>
#include <mp/base/view_extent.hpp>
#include <mp/config.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/format/basic_float.hpp>
#include <mp/numbers/format/named_formats.hpp>
#include <mp/numbers/format/number_facts.hpp>
#include <mp/numbers/format/operations.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

/// Calls f(format) for the formats of the compiled part, all that have a name: those of 16 and 32 bits, and the others.
#define MP_FOR_EACH_LARGE_FORMAT(f) f(binary16) f(bfloat16) f(tfloat32)
#define MP_FOR_EACH_SMALL_FORMAT(f)                                                                        \
    f(float8_e4m3fn) f(float8_e5m2) f(float8_e4m3) f(float8_e3m4) f(float8_e4m3b11fnuz) f(float8_e4m3fnuz) \
        f(float8_e5m2fnuz) f(float8_e8m0fnu) f(float6_e2m3fn) f(float6_e3m2fn) f(float4_e2m1fn)

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Owner of the records for the library's formats where there is a compiled part.
struct kernels_of_compiled_part {};

struct operand_kernels;  // <mp/linalg/gemm/operand_kernels.hpp>
struct result_kernels;   // <mp/linalg/gemm/tile_output.hpp>

/// An element type of the operands of ops: its numbers, and how its arrays become floats or doubles, exactly, and are
/// rounded from them, to nearest even.
struct element_type : number_facts {
    void (*widen)(instruction_set, const void* from, float* to, std::size_t count);
    void (*narrow)(instruction_set, const float* from, void* to, std::size_t count);
    void (*to_doubles)(const void* from, double* to, std::size_t count);
    void (*from_doubles)(const double* from, void* to, std::size_t count);
    /// Whole arrays, on the threads of an executor; null for double.
    void (*widen_array)(const cpu& exec, const void* from, float* to, std::size_t count);
    void (*narrow_array)(const cpu& exec, const float* from, void* to, std::size_t count);
    /// Kernels of products; null in the records of ops without products.
    const operand_kernels* factor;
    const result_kernels* result;
};

/// The element types of the ops that regions cast to.
struct element_family {
    const element_type* float32;
    const element_type* half;
    const element_type* bfloat16;
};

template <class Value, class Owner>
struct owned_element_type {
    static const element_type record;
};

/// A matrix view without its type; one of an absent operand has no type. A leading dimension of 0 in row-major order
/// stands for one row that is repeated.
struct any_matrix : view_extent {
    const element_type* type = nullptr;

    [[nodiscard]] MP_ALWAYS_INLINE explicit operator bool() const { return type != nullptr; }
    [[nodiscard]] MP_ALWAYS_INLINE std::ptrdiff_t row_stride() const {
        return row_major ? leading_dimension : 1;
    }
    [[nodiscard]] MP_ALWAYS_INLINE std::ptrdiff_t column_stride() const {
        return row_major ? 1 : leading_dimension;
    }
    /// Address of an element; the view may be of const elements.
    [[nodiscard]] MP_ALWAYS_INLINE std::byte* at(std::ptrdiff_t row, std::ptrdiff_t column) const {
        const std::ptrdiff_t elements = row * row_stride() + column * column_stride();
        return reinterpret_cast<std::byte*>(address) + elements * element_size;  // NOLINT
    }
    [[nodiscard]] MP_ALWAYS_INLINE any_matrix block(std::ptrdiff_t first_row, std::ptrdiff_t first_column,
                                                    std::ptrdiff_t row_count,
                                                    std::ptrdiff_t column_count) const {
        any_matrix result = *this;
        result.address = reinterpret_cast<std::uintptr_t>(at(first_row, first_column));
        result.rows = row_count;
        result.columns = column_count;
        return result;
    }
    [[nodiscard]] MP_ALWAYS_INLINE any_matrix transposed() const {
        any_matrix result = *this;
        result.rows = columns;
        result.columns = rows;
        result.row_major = !row_major;
        return result;
    }
    /// Whether all elements follow each other in memory.
    [[nodiscard]] MP_ALWAYS_INLINE bool is_contiguous() const { return leading_dimension == vector_length(); }
};

/// Converts the elements of a matrix to those of one of the same shape and order, each rounded once.
MP_CORE_FUNCTION void copy_elements(const cpu& exec, const any_matrix& from, const any_matrix& to);

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Owner of the records for all other types. It is in the namespace of the target, so that sources of different -march
/// have different constants: they refer to code that is compiled for the target of the source.
struct kernels_of_source {};
/// Owner of records without kernels of products.
struct rows_of_source {};

template <class Value>
inline constexpr bool has_compiled_kernels = false;

#if defined(MP_COMPILED)
template <>
inline constexpr bool has_compiled_kernels<float> = true;
template <>
inline constexpr bool has_compiled_kernels<double> = true;
template <>
inline constexpr bool has_compiled_kernels<std::int8_t> = true;
#define MP_HAS_KERNELS(format) \
    template <>                \
    inline constexpr bool has_compiled_kernels<basic_float<formats::format>> = true;
MP_FOR_EACH_LARGE_FORMAT(MP_HAS_KERNELS)
MP_FOR_EACH_SMALL_FORMAT(MP_HAS_KERNELS)
#undef MP_HAS_KERNELS
#endif

/// Complete where the kernels of products of formats of users can be compiled, in <mp/linalg/gemm/operand_kernels.hpp>.
template <class Value>
struct product_elements;

/// The record of a type; Products is whether products are computed with it.
template <class Value, bool Products>
using element_record =
    owned_element_type<Value,
                       std::conditional_t<has_compiled_kernels<Value>, kernels_of_compiled_part,
                                          std::conditional_t<Products, kernels_of_source, rows_of_source>>>;

/// The conversions of a type, for its record: element by element, for formats of users where the library is compiled, and
/// else in <mp/arrays/array/element_rows.hpp>.
template <class Value>
struct element_rows;

#if !MP_CORE_BODIES
template <class Value>
struct element_rows {
    static void widen(instruction_set, const void* from, float* to, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) to[i] = as<float>(static_cast<const Value*>(from)[i]);
    }
    static void narrow(instruction_set, const float* from, void* to, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) static_cast<Value*>(to)[i] = as<Value>(from[i]);
    }
    static void to_doubles(const void* from, double* to, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) to[i] = as<double>(static_cast<const Value*>(from)[i]);
    }
    static void from_doubles(const double* from, void* to, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) static_cast<Value*>(to)[i] = as<Value>(from[i]);
    }
    static void widen_array(const cpu& /*exec*/, const void* from, float* to, std::size_t count) {
        widen(instruction_set::portable, from, to, count);
    }
    static void narrow_array(const cpu& /*exec*/, const float* from, void* to, std::size_t count) {
        narrow(instruction_set::portable, from, to, count);
    }
};
#endif

template <class Value>
constexpr element_type make_element_type(const operand_kernels* factor, const result_kernels* result) {
    using rows = element_rows<Value>;
    if constexpr (std::same_as<Value, double>) {
        return {facts_of<Value>(), nullptr, nullptr, &rows::to_doubles, &rows::from_doubles, nullptr,
                nullptr,           factor,  result};
    } else {
        return {facts_of<Value>(),
                &rows::widen,
                &rows::narrow,
                &rows::to_doubles,
                &rows::from_doubles,
                &rows::widen_array,
                &rows::narrow_array,
                factor,
                result};
    }
}

/// The term of a plain sum.
struct itself {
    template <class T>
    MP_ALWAYS_INLINE T operator()(T x) const {
        return x;
    }
};

template <class Value>
[[nodiscard]] any_matrix any_matrix_of(matrix_view<Value> view) {
    return {extent_of(view), &element_record<std::remove_const_t<Value>, false>::record};
}

template <class Value>
[[nodiscard]] any_matrix any_matrix_of(std::span<Value> values) {
    return any_matrix_of(row_major(values.data(), 1, static_cast<std::ptrdiff_t>(values.size())));
}

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

template <class Value>
struct owned_element_type<Value, rows_of_source> {
    static const element_type record;
};
template <class Value>
constinit const element_type owned_element_type<Value, rows_of_source>::record =
    make_element_type<Value>(nullptr, nullptr);

#if defined(MP_COMPILED)
// Declared here, and defined in the compiled part.
#define MP_DECLARE_ELEMENT(...) \
    template <>                 \
    const element_type owned_element_type<__VA_ARGS__, kernels_of_compiled_part>::record;
#define MP_DECLARE_FORMAT(format) MP_DECLARE_ELEMENT(basic_float<formats::format>)
MP_DECLARE_ELEMENT(float)
MP_DECLARE_ELEMENT(double)
MP_FOR_EACH_LARGE_FORMAT(MP_DECLARE_FORMAT)
MP_FOR_EACH_SMALL_FORMAT(MP_DECLARE_FORMAT)
#undef MP_DECLARE_FORMAT
#undef MP_DECLARE_ELEMENT
#endif

}}  // namespace mp::detail
