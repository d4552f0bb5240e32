// SPDX-License-Identifier: MIT
/// \file
/// An op of the library as a constant record, and the functions that run it.
#pragma once

#include <mp/config.hpp>
#include <mp/executor.hpp>
#include <mp/nn/autocast/category.hpp>
#include <mp/nn/autocast/op_list.hpp>
#include <mp/nn/autocast/op_names.hpp>
#include <mp/nn/autocast/operand_record.hpp>
#include <mp/nn/autocast/policy.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Properties of an op that a decision depends on, with the overrides of a call.
struct decided_op {
    op_category category;
    found_category overridden;
    found_category registered;
    std::span<const std::string_view> names;  ///< of the op and of its forward op
    /// The value of a parameter of the call; null where the op tells none.
    std::string_view (*parameter)(const void* arguments, std::string_view name);
};

/// Most arguments of an op.
inline constexpr std::size_t max_operands = 16;

/// The functions of an op: checks of its operands, the product that it computes (null if none), and its kernel, which
/// returns 0 where the op returns nothing.
struct op_functions {
    void (*validate)(const cpu& exec, const any_operand* operands);
    autocast::product_size (*product)(const any_operand* operands);
    double (*compute)(const cpu& exec, const any_operand* operands);
};

/// An op as data. Sets of arguments are bits by their indices.
struct op_record {
    std::string_view name;
    decided_op decided;
    std::string_view (*argument_name)(std::size_t index);
    std::uint32_t product_operands;
    std::uint32_t incoming_gradients;
    std::uint32_t sums;  ///< that the kernel itself adds to
    /// Whether the kernel reads any format and rounds once, so that casts to float need no copy.
    bool computes_in_float;
    std::string_view banned_reason;
    const element_type* requested;  ///< type of result that the call asks for; null if none
    element_family types;
    const float8_recipe* float8;  ///< null where the op has no product
    const op_functions& (*functions)();
    const number_facts* result;  ///< float or double; null where the op returns nothing
};

/// Runs an op as the calling thread's region decides. Operands are its arguments after the executor, `count` of them; where
/// it throws, they may be of staged arrays.
/// Returns the op's result, rounded.
MP_CORE_FUNCTION double run_in_region(const op_record& op, const cpu& exec, any_operand* operands,
                                      std::size_t count);
/// Runs an op with casts to the given types.
MP_CORE_FUNCTION double run_with_types(const op_record& op, const cpu& exec, any_operand* operands,
                                       std::size_t count, const cast_types& types);

/// Runs an op without casts; no operand is a sum.
MP_CORE_FUNCTION double run_as_it_is(const op_functions& functions, const cpu& exec,
                                     const any_operand* operands, std::size_t count);

/// Casts operands, calls kernel(context, operands as it receives them), and writes back. Of `op`, the sums, the
/// types and computes_in_float are read. The workspace of `exec` has the memory of the operands' executor.
MP_CORE_FUNCTION void run_staged(const op_record& op, const cpu& exec, any_operand* operands,
                                 std::size_t count, const cast_types& types, const region_observer* observer,
                                 void (*kernel)(void* context, const any_operand* operands), void* context);

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Op>
inline constexpr auto banned_reason = banned_reason_of<Op>();

template <class Op, device_kind Device, class... Overrides>
constexpr decided_op decided_op_of() {
    return {Op::category, find_override<Op, Overrides...>(), find_registration<Op, Device>(), names_of_op<Op>,
            nullptr};
}

}}  // namespace mp::detail
