// SPDX-License-Identifier: MIT
/// \file
/// A matrix product as data: views and the kernels of their element types, behind one ordinary function for all types
/// and epilogues.
#pragma once

#include <mp/arrays/array/element_rows.hpp>
#include <mp/arrays/array/element_type.hpp>
#include <mp/base/view_extent.hpp>
#include <mp/config.hpp>
#include <mp/executor.hpp>
#include <mp/linalg/gemm/epilogue_runs.hpp>
#include <mp/linalg/gemm/workspace.hpp>
#include <mp/numbers/format/basic_float.hpp>
#include <mp/numbers/format/named_formats.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace mp {

/// An element type of the operands of a matrix product: float, a reduced format of which float holds every
/// value, or std::int8_t, whose scale goes into alpha or an epilogue.
template <class Value>
concept gemm_input = (number<Value> && !std::is_same_v<std::remove_cv_t<Value>, double>) ||
                     std::is_same_v<std::remove_cv_t<Value>, std::int8_t>;

/// An element type of the result of a matrix product.
template <class Value>
concept gemm_output = number<Value> && !std::is_const_v<Value>;

}  // namespace mp

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

template <class Value, class Owner>
struct owned_product_kernels {
    static const operand_kernels of_operand;
    static const result_kernels of_result;
};

/// Panels of B that are packed already, each of all of k.
struct packed_panels {
    const std::byte* data = nullptr;
    std::ptrdiff_t panel_bytes = 0;
};

/// c = epilogue(alpha a b + beta c).
struct product_call {
    float alpha;
    view_extent a;
    const operand_kernels* a_kernels;
    view_extent b;
    const operand_kernels* b_kernels;
    float beta;
    view_extent c;
    const result_kernels* c_kernels;
    gemm_workspace* workspace;  ///< null for memory of the executor, or of the heap
    /// Null for the identity.
    const void* epilogue;
    /// Throws where the epilogue does not suit the matrices.
    void (*check)(const void* epilogue, const product_call& call);
    /// value = epilogue(value, row, column) for runs of values.
    void (*apply)(const void* epilogue, const epilogue_runs& all);
    bool is_packed;   ///< whether `panels` hold b, which then has a shape only
    bool is_current;  ///< whether they are those of b as it is now
    packed_panels panels{};
};

/// Computes a product. Throws as mp::gemm does.
MP_CORE_FUNCTION void multiply(const cpu& exec, const product_call& call);

/// Packs b into panels in `memory`; empty ones where it has no elements. Throws as mp::packed_b does.
MP_CORE_FUNCTION packed_panels pack_panels_of_matrix(const cpu& exec, const view_extent& b,
                                                     const operand_kernels& kernels, gemm_workspace& memory);

/// Returns the name of the kernel that is selected for a product with `rows` rows.
MP_CORE_FUNCTION std::string_view product_kernel_name(const cpu& exec, const operand_kernels& a,
                                                      const operand_kernels& b, std::ptrdiff_t rows);

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Constants that multiply() requires for an element type, one for operands and one for results.
template <class Value>
using product_kernels = owned_product_kernels<
    Value, std::conditional_t<has_compiled_kernels<Value>, kernels_of_compiled_part, kernels_of_source>>;

/// Kernels of products for a record; doubles have none as operands.
template <class Value, class Owner>
constexpr element_type make_product_element() {
    if constexpr (std::is_same_v<Value, double>) {
        return make_element_type<Value>(nullptr, &owned_product_kernels<Value, Owner>::of_result);
    } else {
        return make_element_type<Value>(&owned_product_kernels<Value, Owner>::of_operand,
                                        &owned_product_kernels<Value, Owner>::of_result);
    }
}

/// Returns the memory of a view.
[[nodiscard]] inline void* memory_of(const view_extent& view) {
    return reinterpret_cast<void*>(view.address);  // NOLINT(performance-no-int-to-ptr)
}

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

template <class Value, class Owner>
constinit const element_type owned_element_type<Value, Owner>::record = make_product_element<Value, Owner>();

}}  // namespace mp::detail

#if defined(MP_COMPILED)
namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

// Declared here, and defined in the compiled part.
#define MP_DECLARE_OPERAND(...) \
    template <>                 \
    const operand_kernels owned_product_kernels<__VA_ARGS__, kernels_of_compiled_part>::of_operand;
#define MP_DECLARE_RESULT(...) \
    template <>                \
    const result_kernels owned_product_kernels<__VA_ARGS__, kernels_of_compiled_part>::of_result;
#define MP_DECLARE_FORMAT(format)                    \
    MP_DECLARE_OPERAND(basic_float<formats::format>) \
    MP_DECLARE_RESULT(basic_float<formats::format>)
MP_DECLARE_OPERAND(float)
MP_DECLARE_OPERAND(std::int8_t)
MP_DECLARE_RESULT(float)
MP_DECLARE_RESULT(double)
MP_FOR_EACH_LARGE_FORMAT(MP_DECLARE_FORMAT)
MP_FOR_EACH_SMALL_FORMAT(MP_DECLARE_FORMAT)
#undef MP_DECLARE_FORMAT
#undef MP_DECLARE_RESULT
#undef MP_DECLARE_OPERAND

}}  // namespace mp::detail
#endif
