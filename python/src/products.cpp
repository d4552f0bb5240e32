// SPDX-License-Identifier: MIT
#include "products.hpp"

#include <mp/error.hpp>
#include <mp/tensor_core.hpp>

#include <array>
#include <type_traits>

namespace mp_python {
namespace {

using mp::arch;
constexpr std::array architectures{arch::sm_70, arch::sm_75, arch::sm_80,  arch::sm_86,
                                   arch::sm_89, arch::sm_90, arch::sm_100, arch::sm_120};

constexpr bool same(const mp::block_rule& a, const mp::block_rule& b) {
    return a.products == b.products && a.fraction_bits == b.fraction_bits && a.output == b.output &&
           a.zero_exponent == b.zero_exponent && a.least_addend_exponent == b.least_addend_exponent;
}

/// The first architecture with the same arithmetic, so that it is compiled once.
constexpr arch first_alike(arch architecture, mp::operand_kind kind, bool half_output) {
    for (const arch it : architectures) {
        if (same(mp::block_rule_of(it, kind, half_output),
                 mp::block_rule_of(architecture, kind, half_output)) &&
            (kind != mp::operand_kind::fp8 ||
             mp::has_float8_through_half(it) == mp::has_float8_through_half(architecture))) {
            return it;
        }
    }
    return architecture;
}

struct operands {
    const void* a;
    const void* b;
    void* c;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    std::ptrdiff_t k;
};

template <arch Arch, class A, class B, class C>
void multiply_as(const product_request& request, const operands& it) {
    mp::emulated<Arch, C> exec{.threads = request.threads};
    exec.float8 = request.through_half ? mp::float8_unit::through_half : mp::float8_unit::native;
    exec.promotion_interval = request.promotion_interval;
    mp::gemm(exec, 1.0F, mp::row_major(static_cast<const A*>(it.a), it.rows, it.k),
             mp::row_major(static_cast<const B*>(it.b), it.k, it.columns), 0.0F,
             mp::row_major(static_cast<C*>(it.c), it.rows, it.columns));
}

/// Calls the product of the architecture, if it has one of these types.
template <class A, class B, class C, arch Arch>
bool multiply_on(const product_request& request, const operands& it) {
    constexpr mp::operand_kind kind = mp::detail::operand_kind_of<A>;
    constexpr bool half_output = std::is_same_v<C, mp::half>;
    constexpr bool exists = mp::block_rule_of(Arch, kind, half_output).products != 0 ||
                            (kind == mp::operand_kind::fp8 && mp::has_float8_through_half(Arch));
    if (request.architecture != static_cast<int>(Arch)) return false;
    if constexpr (exists) {
        multiply_as<first_alike(Arch, kind, half_output), A, B, C>(request, it);
        return true;
    } else {
        return false;
    }
}

template <class A, class B, class C, std::size_t... I>
bool multiply_on_any(const product_request& request, const operands& it, std::index_sequence<I...>) {
    return (multiply_on<A, B, C, architectures[I]>(request, it) || ...);
}

/// Tries operands of two types with either accumulator.
template <class A, class B>
bool multiply_types(const product_request& request, const operands& it) {
    constexpr std::make_index_sequence<architectures.size()> all;
    if (request.a_format != A::format::name || request.b_format != B::format::name) return false;
    return request.half_accumulators ? multiply_on_any<A, B, mp::half>(request, it, all)
                                     : multiply_on_any<A, B, float>(request, it, all);
}

}  // namespace

void multiply(const product_request& request, const void* a, const void* b, void* c, std::ptrdiff_t rows,
              std::ptrdiff_t columns, std::ptrdiff_t k) {
    using e4m3 = mp::float8_e4m3fn;
    using e5m2 = mp::float8_e5m2;
    const operands it{a, b, c, rows, columns, k};
    const bool done = multiply_types<mp::half, mp::half>(request, it) ||
                      multiply_types<mp::bfloat16, mp::bfloat16>(request, it) ||
                      multiply_types<mp::tfloat32, mp::tfloat32>(request, it) ||
                      multiply_types<e4m3, e4m3>(request, it) || multiply_types<e4m3, e5m2>(request, it) ||
                      multiply_types<e5m2, e4m3>(request, it) || multiply_types<e5m2, e5m2>(request, it);
    if (!done) {
        throw mp::argument_error(
            "the tensor cores of sm_" + std::to_string(request.architecture) + " do not multiply a of " +
            request.a_format + " by b of " + request.b_format + " into accumulators of " +
            (request.half_accumulators ? "half" : "float") + ", or no model of it is known");
    }
}

}  // namespace mp_python
