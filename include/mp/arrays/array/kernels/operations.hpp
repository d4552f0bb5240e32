// SPDX-License-Identifier: MIT
/// \file
/// The operations of the kernels, as tags that carry the scalar operation that every kernel has to agree
/// with.
#pragma once

#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/format/operations.hpp>

#include <concepts>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

struct addition {
    template <class Value>
    static Value apply(Value a, Value b) noexcept {
        return a + b;
    }
};
struct subtraction {
    template <class Value>
    static Value apply(Value a, Value b) noexcept {
        return a - b;
    }
};
struct multiplication {
    template <class Value>
    static Value apply(Value a, Value b) noexcept {
        return a * b;
    }
};
struct division {
    template <class Value>
    static Value apply(Value a, Value b) noexcept {
        if constexpr (std::same_as<Value, float>) {
            return float_divide(a, b);  // not by an estimate of the reciprocal
        } else {
            return a / b;
        }
    }
};
/// a b + c, rounded once.
struct multiply_addition {
    template <class Value>
    static Value apply(Value a, Value b, Value c) noexcept {
        if constexpr (std::same_as<Value, float>) {
            return fused_multiply_add(a, b, c);
        } else {
            return fma(a, b, c);
        }
    }
};
struct sqrt_operation {
    template <class Value>
    static Value apply(Value a) noexcept {
        if constexpr (std::same_as<Value, float>) {
            return float_sqrt(a);
        } else {
            return sqrt(a);
        }
    }
};

/// An operand that is the same number for all elements.
template <class Value>
struct broadcast_value {
    Value value;
};

/// The scalar element i of an operand.
template <class Value>
MP_ALWAYS_INLINE Value scalar_operand(const Value* operand, std::size_t i) noexcept {
    return operand[i];
}
template <class Value>
MP_ALWAYS_INLINE Value scalar_operand(broadcast_value<Value> operand, std::size_t) noexcept {
    return operand.value;
}

/// The operand from element i on.
template <class Value>
MP_ALWAYS_INLINE const Value* operand_from(const Value* operand, std::size_t i) noexcept {
    return operand + i;
}
template <class Value>
MP_ALWAYS_INLINE broadcast_value<Value> operand_from(broadcast_value<Value> operand, std::size_t) noexcept {
    return operand;
}

}}  // namespace mp::detail
