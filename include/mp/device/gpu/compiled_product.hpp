// SPDX-License-Identifier: MIT
/// \file
/// Matrix products on GPUs that are compiled in another source than the calls: their declarations.
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/config.hpp>
#include <mp/half.hpp>
#include <mp/linalg/gemm/activation.hpp>
#include <mp/linalg/gemm/matrix_batch.hpp>
#include <mp/matrix_view.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

namespace mp { inline namespace MP_LINKED_NAMESPACE {

/// A number for each column, or each row, of C: an array of float, half or bfloat16 in the memory of the executor, which
/// must stay until the product is done. Without an array, none.
struct epilogue_vector {
    /// Element type of the array.
    enum class element : unsigned char { float32, binary16, bfloat16 };

    const void* data = nullptr;       ///< first element; null for none
    std::size_t size = 0;             ///< number of elements: the columns of C, or the rows
    element type = element::float32;  ///< of the array
    bool per_row = false;             ///< whether there is one for each row

    epilogue_vector() = default;
    /// One number for each column, from a contiguous range such as a std::span.
    template <class Range>
        requires requires(const Range& values) { std::span(values); }
    // NOLINTNEXTLINE(google-explicit-constructor): it stands for the range
    MP_ALWAYS_INLINE epilogue_vector(const Range& values) : epilogue_vector(std::span(values), false) {}
    /// One number for each row.
    template <class Range>
    [[nodiscard]] MP_ALWAYS_INLINE static epilogue_vector of_rows(const Range& values) {
        return {std::span(values), true};
    }

private:
    template <class Value, std::size_t Extent>
    MP_ALWAYS_INLINE epilogue_vector(std::span<Value, Extent> values, bool rows)
        : data(values.data()),
          size(values.size()),
          type(type_of<std::remove_const_t<Value>>()),
          per_row(rows) {}

    template <class Value>
    MP_ALWAYS_INLINE static constexpr element type_of() {
        static_assert(
            std::same_as<Value, float> || std::same_as<Value, half> || std::same_as<Value, bfloat16>,
            "mp::epilogue_vector: elements are float, mp::half or mp::bfloat16");
        return std::same_as<Value, half>       ? element::binary16
               : std::same_as<Value, bfloat16> ? element::bfloat16
                                               : element::float32;
    }
};

/// Epilogue of a product whose parts are chosen at run time: activation(scale * value + bias) with
/// value = alpha * (A B) + beta * C in float. Each step is rounded to float as those of mp::compose are: the bits of
///
///     mp::compose(mp::scale_per_column(scale), mp::compose(mp::bias_per_column(bias), mp::relu_epilogue{}))
struct product_epilogue {
    epilogue_vector scale{};                           ///< of the values; none is 1
    epilogue_vector bias{};                            ///< added to them
    mp::activation activation = mp::activation::none;  ///< applied to the sums
};

/// Products of matrices of A and B to a matrix of C on an executor, whose definition is in
/// <mp/device/gpu/compiled_product_kernels.hpp>. An explicit instantiation in one source,
///
///     #include <mp/compiled_cuda.hpp>
///     template struct mp::compiled_product<mp::cuda_stream, mp::half, mp::half, float>;
///
/// compiles the kernels. All others only declare it.
template <class Executor, class A, class B, class C>
struct compiled_product {
    /// c = epilogue(alpha * a b + beta * c): see mp::gemm in <mp/device/gpu/gemm.hpp>.
    static void multiply(const Executor& exec, float alpha, matrix_view<const A> a, matrix_view<const B> b,
                         float beta, matrix_view<C> c, const product_epilogue& epilogue);
    /// Products of `count` matrices: see mp::gemm_batched.
    static void multiply_batch(const Executor& exec, std::ptrdiff_t count, float alpha,
                               matrix_batch<const A> a, matrix_batch<const B> b, float beta,
                               matrix_batch<C> c, const product_epilogue& epilogue);
};

}}  // namespace mp
