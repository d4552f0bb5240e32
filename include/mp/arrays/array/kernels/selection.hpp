// SPDX-License-Identifier: MIT
/// \file
/// Minimum, maximum, magnitude and sign of arrays, which are work on codes. See selection.inl.
#pragma once

#include <mp/arrays/array/kernels/arithmetic.hpp>
#include <mp/numbers/format/basic_float.hpp>
#include <mp/numbers/format/ordering.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// f of two numbers of any format, or of floats.
template <class Value, class Function>
Value select_number(Value a, Value b, Function f) noexcept {
    using number = basic_float<format_of_t<Value>>;
    return number_from_bits<Value>(f(number::from_bits(bits_of(a)), number::from_bits(bits_of(b))).bits());
}

/// mp::minimum and mp::maximum, for float, too: the quiet NaN of the first operand that is NaN, or else the
/// operand that comes first, or last, in the total order.
struct min_operation {
    static constexpr bool is_selection = true;
    template <class Value>
    static Value apply(Value a, Value b) noexcept {
        return select_number(a, b, [](auto x, auto y) { return minimum(x, y); });
    }
};
struct max_operation {
    static constexpr bool is_selection = true;
    template <class Value>
    static Value apply(Value a, Value b) noexcept {
        return select_number(a, b, [](auto x, auto y) { return maximum(x, y); });
    }
};
struct clamp_operation {
    static constexpr bool is_selection = true;
    template <class Value>
    static Value apply(Value x, Value low, Value high) noexcept {
        return min_operation::apply(max_operation::apply(x, low), high);
    }
};
struct negation {
    static constexpr bool is_selection = true;
    template <class Value>
    static Value apply(Value x) noexcept {
        return number_from_bits<Value>(negate_bits<format_of_t<Value>>(bits_of(x)));
    }
};
struct magnitude {
    static constexpr bool is_selection = true;
    template <class Value>
    static Value apply(Value x) noexcept {
        const auto number = basic_float<format_of_t<Value>>::from_bits(bits_of(x));
        return number_from_bits<Value>(fabs(number).bits());
    }
};

/// Types of which the kernels compare codes: those with a sign bit.
template <class Value>
inline constexpr bool has_ordered_codes = layout_of<format_of_t<Value>>::is_signed;

}}  // namespace mp::detail

#define MP_KERNEL_FILE <mp/arrays/array/kernels/selection.inl>
#include <mp/numbers/simd/for_each_target.inl>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The kernel for an instruction set, as arithmetic_kernel().
template <class Operation, class Value, class... Operand>
auto selection_kernel([[maybe_unused]] instruction_set isa) noexcept {
    if constexpr (MP_SIMD_TARGETS && has_ordered_codes<Value>) {
        return MP_SELECT_TARGET(isa, (&map_portable<Operation, Value, Operand...>),
                                select_array<Operation, Value, Operand...>);
    } else {
        return &map_portable<Operation, Value, Operand...>;
    }
}

}}  // namespace mp::detail
