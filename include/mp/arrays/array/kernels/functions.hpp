// SPDX-License-Identifier: MIT
/// \file
/// Exponentials and the like of arrays. See functions.inl.
#pragma once

#include <mp/arrays/array/kernels/arithmetic.hpp>
#include <mp/arrays/array/sigmoid.hpp>
#include <mp/numbers/format/math/exponential.hpp>
#include <mp/numbers/format/math/hyperbolic.hpp>
#include <mp/numbers/format/math/logarithm.hpp>
#include <mp/numbers/format/math/power.hpp>
#include <mp/numbers/rules/exponential.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

struct natural_exponential {
    template <class Value>
    static Value apply(Value x) noexcept {
        return exp(x);
    }
};
struct natural_logarithm {
    template <class Value>
    static Value apply(Value x) noexcept {
        return log(x);
    }
};
struct hyperbolic_tangent {
    template <class Value>
    static Value apply(Value x) noexcept {
        return tanh(x);
    }
};
struct logistic_function {
    template <class Value>
    static Value apply(Value x) noexcept {
        return sigmoid(x);
    }
};
struct reciprocal_root {
    template <class Value>
    static Value apply(Value x) noexcept {
        return rsqrt(x);
    }
};

/// Types whose functions the kernels evaluate in float: with at most 11 bits, so that few results are too
/// close to a midpoint for float to tell on which side they are.
template <class Value>
inline constexpr bool has_function_vectors = [] {
    if constexpr (reduced<Value>) {
        return has_array_vectors<Value> && has_fast_math<typename Value::format>;
    }
    return false;
}();

}}  // namespace mp::detail

#define MP_KERNEL_FILE <mp/arrays/array/kernels/functions.inl>
#include <mp/numbers/simd/for_each_target.inl>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The kernel for an instruction set, as arithmetic_kernel().
template <class Function, class Value>
auto function_kernel([[maybe_unused]] instruction_set isa) noexcept {
    if constexpr (MP_SIMD_TARGETS && has_function_vectors<Value>) {
        return MP_SELECT_TARGET(isa, (&map_portable<Function, Value, const Value*>),
                                map_function<Function, Value>);
    } else {
        return &map_portable<Function, Value, const Value*>;
    }
}

}}  // namespace mp::detail
