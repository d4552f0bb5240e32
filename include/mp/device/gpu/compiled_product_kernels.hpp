// SPDX-License-Identifier: MIT
/// \file
/// Matrix products on GPUs that are compiled in another source than the calls: their definitions.
#pragma once

#include <mp/base/opt_barrier.hpp>
#include <mp/bfloat16.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/compiled_product.hpp>
#include <mp/device/gpu/gemm.hpp>
#include <mp/error.hpp>
#include <mp/half.hpp>
#include <mp/linalg/gemm/chosen_activation.hpp>
#include <mp/linalg/gemm/epilogue.hpp>
#include <mp/linalg/gemm/matrix_batch.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The function object of a product_epilogue.
struct product_epilogue_function {
    product_epilogue it;

    MP_HOST_DEVICE float operator()(float value, std::ptrdiff_t row, std::ptrdiff_t column) const {
        // The barrier keeps compilers from contracting product and sum.
        if (it.scale.data != nullptr) {
            value = opt_barrier(float_multiply(value, number_of(it.scale, row, column)));
        }
        if (it.bias.data != nullptr) value = float_add(value, number_of(it.bias, row, column));
        return chosen_activation{it.activation}(value, row, column);
    }

    /// Throws argument_error unless scale and bias fit C, and the activation is one.
    void validate(std::ptrdiff_t rows, std::ptrdiff_t columns) const {
        validate_vector("epilogue.scale", it.scale, rows, columns);
        validate_vector("epilogue.bias", it.bias, rows, columns);
        if (it.activation > activation::silu) {
            throw_argument("mp::gemm", "epilogue.activation", static_cast<int>(it.activation),
                           "must be an enumerator of mp::activation");
        }
    }
    /// Passes the operands to f.
    template <class Function>
    void for_each_operand(const Function& f) const {
        if (it.scale.data != nullptr) f(operand_of_vector("epilogue.scale", it.scale));
        if (it.bias.data != nullptr) f(operand_of_vector("epilogue.bias", it.bias));
    }

    [[nodiscard]] bool is_identity() const {
        return it.scale.data == nullptr && it.scale.size == 0 && it.bias.data == nullptr &&
               it.bias.size == 0 && it.activation == activation::none;
    }
    /// See epilogue_instructions.
    [[nodiscard]] int instructions() const {
        switch (it.activation) {
            case activation::gelu:
                return epilogue_instructions<gelu_epilogue>;
            case activation::gelu_tanh:
                return epilogue_instructions<gelu_tanh_epilogue>;
            case activation::silu:
                return epilogue_instructions<silu_epilogue>;
            default:
                return least_epilogue_instructions;
        }
    }

private:
    using element = epilogue_vector::element;

    MP_HOST_DEVICE static float number_of(const epilogue_vector& vector, std::ptrdiff_t row,
                                          std::ptrdiff_t column) {
        const std::ptrdiff_t at = vector.per_row ? row : column;
        switch (vector.type) {
            case element::binary16:
                return static_cast<float>(static_cast<const half*>(vector.data)[at]);
            case element::bfloat16:
                return static_cast<float>(static_cast<const bfloat16*>(vector.data)[at]);
            default:
                return static_cast<const float*>(vector.data)[at];
        }
    }
    static bias_axis axis_of(const epilogue_vector& vector) {
        return vector.per_row ? bias_axis::row : bias_axis::column;
    }
    static void validate_vector(std::string_view name, const epilogue_vector& vector, std::ptrdiff_t rows,
                                std::ptrdiff_t columns) {
        if (vector.data == nullptr && vector.size == 0) return;
        check_epilogue_size(name, vector.size, axis_of(vector), rows, columns);
        if (vector.data == nullptr) {
            throw_joined<argument_error>({"mp::gemm: ", name, ".data is null; it must point to ",
                                          error_text(vector.size), " elements"});
        }
    }
    static epilogue_operand operand_of_vector(std::string_view name, const epilogue_vector& vector) {
        const auto operand = [&]<class Value>(const Value* values) {
            return axis_operand(name, values, vector.size, axis_of(vector));
        };
        return vector.type == element::float32 ? operand(static_cast<const float*>(vector.data))
                                               : operand(static_cast<const half*>(vector.data));
    }
};

/// Calls multiply() with the epilogue and its instructions. Without parts it is the identity, whose tiles TMA stores.
template <class Multiply>
void with_epilogue_function(const product_epilogue& epilogue, Multiply multiply) {
    const product_epilogue_function function{epilogue};
    if (function.is_identity()) {
        multiply(identity_epilogue{}, epilogue_instructions<identity_epilogue>);
    } else {
        multiply(function, function.instructions());
    }
}

/// Options of the plan for products with this beta: the threads of a block read a C that is added to.
[[nodiscard]] inline gpu_gemm_options options_of_epilogue(int instructions, float beta) {
    const bool reads_c = !same_value(beta, 0.0F);
    return {.epilogue_instructions =
                reads_c ? (std::max)(instructions, least_epilogue_instructions) : instructions};
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_LINKED_NAMESPACE {

template <class Executor, class A, class B, class C>
void compiled_product<Executor, A, B, C>::multiply(const Executor& exec, float alpha, matrix_view<const A> a,
                                                   matrix_view<const B> b, float beta, matrix_view<C> c,
                                                   const product_epilogue& epilogue) {
    detail::with_epilogue_function(epilogue, [&](const auto& function, [[maybe_unused]] int instructions) {
        if constexpr (gpu_gemm_pair<A, B>) {
            constexpr auto chosen = gpu_gemm_kernel::automatic;
            detail::check_gpu_product("mp::gemm", a, b, c, function);
            if (c.rows == 0 || c.columns == 0) return;
            const auto plan = plan_gemm<chosen>(exec, a, b, detail::options_of_epilogue(instructions, beta));
            gemm<chosen>(exec, plan, alpha, a, b, beta, c, function);
        } else {
            gemm(exec, alpha, a, b, beta, c, function);
        }
    });
}

template <class Executor, class A, class B, class C>
void compiled_product<Executor, A, B, C>::multiply_batch(const Executor& exec, std::ptrdiff_t count,
                                                         float alpha, matrix_batch<const A> a,
                                                         matrix_batch<const B> b, float beta,
                                                         matrix_batch<C> c,
                                                         const product_epilogue& epilogue) {
    if (count < 0) detail::throw_argument("mp::gemm_batched", "count", count, "must not be negative");
    detail::with_epilogue_function(epilogue, [&](const auto& function, [[maybe_unused]] int instructions) {
        if constexpr (gpu_gemm_pair<A, B>) {
            constexpr auto chosen = gpu_gemm_kernel::automatic;
            const auto plan =
                plan_gemm<chosen>(exec, count, a, b, detail::options_of_epilogue(instructions, beta));
            gemm_batched<chosen>(exec, plan, alpha, a, b, beta, c, function);
        } else if (count != 0) {
            detail::check_batch("mp::gemm_batched", count, a, b, c);
            detail::validate_batch_epilogue(function, count, c, detail::product_input{"a", a, count},
                                            detail::product_input{"b", b, count});
            for (std::ptrdiff_t i = 0; i < count; ++i) gemm(exec, alpha, a[i], b[i], beta, c[i], function);
        }
    });
}

}}  // namespace mp
