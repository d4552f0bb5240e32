// SPDX-License-Identifier: MIT
/// \file
/// Epilogues with a second output: the value before an activation, the largest magnitude, and what an 8-bit C
/// needs of both for delayed scaling.
#pragma once

#include <mp/arrays/convert/kernels/number_vectors.hpp>
#include <mp/base/bits.hpp>
#include <mp/base/view_extent.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/linalg/gemm/epilogue.hpp>
#include <mp/linalg/gemm/epilogue_operands.hpp>
#include <mp/linalg/gemm/epilogue_runs.hpp>
#include <mp/linalg/gemm/tile_output.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/format/basic_float.hpp>
#include <mp/numbers/rules/elementwise.hpp>
#include <mp/numbers/simd/processor.hpp>
#include <mp/numbers/simd/select_target.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Raises a float that is not negative to one whose magnitude has these bits: floats without a sign are ordered as
/// their bits are, with NaN above infinity.
MP_HOST_DEVICE inline void raise_to_magnitude(float* at, std::uint32_t magnitude) {
#if MP_DEVICE_CODE
    atomicMax(reinterpret_cast<unsigned*>(at), magnitude);
#else
    typedef std::uint32_t word __attribute__((may_alias));  // NOLINT(modernize-use-using)
    auto* const bits = reinterpret_cast<word*>(at);
    word seen = __atomic_load_n(bits, __ATOMIC_RELAXED);
    while (magnitude > seen &&
           !__atomic_compare_exchange_n(bits, &seen, magnitude, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
#endif
}

/// Writes floats, rounded, to an array as output_floats are written to C.
template <class Value>
void write_rounded(const output_floats& from, Value* to, std::ptrdiff_t leading_dimension) {
    if constexpr (has_number_vectors<Value>) {
        const auto write =
            MP_SELECT_TARGET(best_instruction_set(), &write_output_portably<Value>, write_output<Value>);
        write(from, to, leading_dimension);
    } else {
        write_output_portably<Value>(from, to, leading_dimension);
    }
}

template <class Value>
void round_runs_portably(float* values, std::ptrdiff_t stride, std::ptrdiff_t runs, std::ptrdiff_t count) {
    for (; runs > 0; --runs, values += stride) {
        for (std::ptrdiff_t i = 0; i < count; ++i) {
            values[i] = static_cast<float>(static_cast<Value>(values[i]));
        }
    }
}

/// Rounds the value to Value, so that what follows in the chain sees what a C of that type would hold.
template <reduced Value>
struct rounding_epilogue {
    MP_HOST_DEVICE float operator()(float value, std::ptrdiff_t /*row*/, std::ptrdiff_t /*column*/) const {
        return static_cast<float>(static_cast<Value>(value));
    }
    bool apply_runs(const epilogue_runs& all) const {
        if constexpr (has_number_vectors<Value>) {
            const auto round =
                MP_SELECT_TARGET(best_instruction_set(), &round_runs_portably<Value>, round_runs<Value>);
            round(all.values, all.stride, all.runs, all.count);
        } else {
            round_runs_portably<Value>(all.values, all.stride, all.runs, all.count);
        }
        return true;
    }
    /// As operator(), for a run of C.
    void apply(float* values, std::ptrdiff_t count, std::ptrdiff_t row, std::ptrdiff_t column,
               bool down) const {
        apply_runs({values, 0, 1, count, row, column, down});
    }
};

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Writes the value, rounded to the matrix's type, to its place in a matrix of C's shape, and leaves it as it is.
/// Made by store_auxiliary.
template <class Value>
struct store_auxiliary_epilogue {
    matrix_view<Value> auxiliary;
    static constexpr bool stores_matrix = true;

    MP_HOST_DEVICE float operator()(float value, std::ptrdiff_t row, std::ptrdiff_t column) const {
        auxiliary(row, column) = static_cast<Value>(value);
        return value;
    }

    bool apply_runs(const detail::epilogue_runs& all) const {
        const bool down = auxiliary.order == storage_order::column_major;
        Value* const first = &auxiliary(all.row, all.column);
        if (down == all.down) {
            detail::write_rounded({all.values, all.stride, all.runs, all.count}, first,
                                  auxiliary.leading_dimension);
            return true;
        }
        // Values of neighbouring runs are neighbours in the matrix.
        for (std::ptrdiff_t run = 0; run < all.runs; run += detail::output_run) {
            const std::ptrdiff_t count = (std::min)(detail::output_run, all.runs - run);
            for (std::ptrdiff_t i = 0; i < all.count; ++i) {
                float across[detail::output_run];
                for (std::ptrdiff_t r = 0; r < count; ++r) across[r] = all.values[(run + r) * all.stride + i];
                detail::write_rounded({across, 0, 1, count}, first + i * auxiliary.leading_dimension + run,
                                      0);
            }
        }
        return true;
    }
    /// As operator(), for a run of C.
    void apply(float* values, std::ptrdiff_t count, std::ptrdiff_t row, std::ptrdiff_t column,
               bool down) const {
        apply_runs({values, 0, 1, count, row, column, down});
    }

    /// Throws argument_error unless the matrix has the shape of C.
    void validate(std::ptrdiff_t rows, std::ptrdiff_t columns) const {
        detail::check_view("mp::gemm", "auxiliary", detail::extent_of(auxiliary));
        detail::check_equal_sizes("mp::gemm", "auxiliary.rows", auxiliary.rows, "c.rows", rows);
        detail::check_equal_sizes("mp::gemm", "auxiliary.columns", auxiliary.columns, "c.columns", columns);
    }
    /// Passes the operand to f.
    template <class Function>
    void for_each_operand(const Function& f) const {
        f(detail::epilogue_operand{{"auxiliary", detail::extent_of(auxiliary)},
                                   detail::epilogue_access::written_by_element});
    }
};

/// Epilogue that writes the value at its point of the chain, rounded to the type of the matrix, to a second matrix of
/// C's shape, in any storage order (cuBLASLt's AUX, CUTLASS's AuxStore): what the backward pass of an activation needs.
///
///     mp::gemm(exec, 1, x, w, 0, y, mp::compose(mp::compose(mp::bias_per_column(bias), mp::store_auxiliary(before)),
///                                               mp::gelu_epilogue{}));
///
/// Every element is written once, by the thread that writes the element of C. The matrix must not overlap what the
/// product reads or writes otherwise; mp::gemm throws argument_error for one of another shape or over any of these.
/// Products of batches, masked groups and groups along k, which have more than one C, do not take it.
template <class Value>
    requires(number<Value> && !std::is_const_v<Value>)
[[nodiscard]] constexpr store_auxiliary_epilogue<Value> store_auxiliary(matrix_view<Value> auxiliary) {
    return {auxiliary};
}

/// Raises *amax to the magnitude of the value, which it leaves as it is. Made by amax_into.
struct amax_epilogue {
    float* amax;

    MP_HOST_DEVICE float operator()(float value, std::ptrdiff_t /*row*/, std::ptrdiff_t /*column*/) const {
        detail::raise_to_magnitude(amax, detail::bit_cast<std::uint32_t>(value) & 0x7fff'ffffU);
        return value;
    }
    bool apply_runs(const detail::epilogue_runs& all) const {
        detail::raise_to_magnitude(
            amax, detail::largest_magnitude_of_runs(best_instruction_set(), all.values, all.stride, all.runs,
                                                    static_cast<std::size_t>(all.count)));
        return true;
    }
    /// As operator(), for a run of C.
    void apply(float* values, std::ptrdiff_t count, std::ptrdiff_t row, std::ptrdiff_t column,
               bool down) const {
        apply_runs({values, 0, 1, count, row, column, down});
    }
    /// Throws argument_error for a null pointer.
    void validate(std::ptrdiff_t /*rows*/, std::ptrdiff_t /*columns*/) const {
        if (amax == nullptr) {
            detail::throw_error(argument_error("mp::gemm: amax is null; it must point to a float"));
        }
    }
    /// Passes the operand to f.
    template <class Function>
    void for_each_operand(const Function& f) const {
        f(detail::epilogue_operand{{"amax", detail::extent_of_value(amax)},
                                   detail::epilogue_access::written});
    }
};

/// Epilogue that raises *amax to the largest magnitude of the values at its point of the chain, as mp::amax finds it: an
/// infinity makes it infinite and a NaN NaN, whatever else there is. It does not depend on threads, tiles or order.
///
/// *amax is only ever raised, by atomic operations, so that several products may raise one, also at the same time: the
/// caller sets it to 0 before the first, and reads it when they are done. The newest of an amax_history will do, whose
/// update() clears it.
///
///     mp::gemm(exec, 1, x, w, 0, y, mp::amax_into(&history.newest()));
[[nodiscard]] constexpr amax_epilogue amax_into(float* amax) {
    return {amax};
}

/// Multiplies the value by a scale for a C of Number, and saturates. Made by quantize_to.
///
/// \tparam Scale  float, or const float* for one that is read while C is written
template <reduced Number, class Scale>
struct quantize_epilogue {
    using layout = layout_of<typename Number::format>;
    static_assert(
        Number::format::is_signed && layout::has_zero && layout::precision <= 22 &&
            layout::quantum_exponent > -99,
        "mp::quantize_to: the format must have signs, 0, at most 22 significant bits, and no number between "
        "0 and 2^-99");
    static constexpr float largest =
        static_cast<float>(detail::to_double<typename Number::format>(layout::max_finite_code));

    Scale scale;

    MP_HOST_DEVICE float operator()(float value, std::ptrdiff_t /*row*/, std::ptrdiff_t /*column*/) const {
        return detail::multiply_and_saturate(value, factor(), largest);
    }
    bool apply_runs(const detail::epilogue_runs& all) const {
        detail::multiply_and_saturate_runs(best_instruction_set(), all.values, all.stride, all.runs,
                                           static_cast<std::size_t>(all.count), factor(), largest);
        return true;
    }
    /// As operator(), for a run of C.
    void apply(float* values, std::ptrdiff_t count, std::ptrdiff_t row, std::ptrdiff_t column,
               bool down) const {
        apply_runs({values, 0, 1, count, row, column, down});
    }
    /// Throws argument_error for a scale that is not finite and greater than 0, and for a null pointer.
    void validate(std::ptrdiff_t /*rows*/, std::ptrdiff_t /*columns*/) const {
        if constexpr (std::is_same_v<Scale, float>) {
            const auto bits = detail::bit_cast<std::uint32_t>(scale);
            if (bits - 1 < 0x7f80'0000U - 1) return;
            detail::throw_argument("mp::gemm", "scale", scale, "must be finite and greater than 0");
        } else if (scale == nullptr) {
            detail::throw_error(argument_error("mp::gemm: scale is null; it must point to a float"));
        }
    }
    /// Passes a scale in memory to f.
    template <class Function>
    void for_each_operand(const Function& f) const {
        if constexpr (!std::is_same_v<Scale, float>) {
            f(detail::epilogue_operand{{"scale", detail::extent_of_value(scale)},
                                       detail::epilogue_access::read});
        }
    }

private:
    MP_HOST_DEVICE constexpr float factor() const {
        if constexpr (std::is_same_v<Scale, float>) {
            return scale;
        } else {
            return *scale;
        }
    }
};

/// Epilogue, the last one, for a C of Number, of 8 bits for example, whose values have a scale (cuBLASLt's D_SCALE): C
/// has the bits that mp::quantize_with_scale gives for the value, which is the exact product with the scale, rounded
/// once to nearest even; what is too large, infinities included, becomes the largest finite number, and NaN stays NaN
/// where Number has one. With amax_into a layer's result becomes the next one's operand in one pass, with the scale of
/// the iterations before:
///
///     mp::gemm(exec, 1, x, w, 0, y,       // y: of mp::float8_e4m3fn
///              mp::compose(mp::compose(mp::bias_per_column(bias), mp::gelu_epilogue{}),
///                          mp::compose(mp::amax_into(&history.newest()),
///                                      mp::quantize_to<mp::float8_e4m3fn>(history.scale()))));
///
/// The scale is finite and greater than 0; others by value are refused with argument_error. One by pointer is in the
/// memory of the product's executor and read while C is written.
template <reduced Number>
[[nodiscard]] constexpr quantize_epilogue<Number, float> quantize_to(float scale) {
    return {scale};
}
template <reduced Number>
[[nodiscard]] constexpr quantize_epilogue<Number, const float*> quantize_to(const float* scale) {
    return {scale};
}

}}  // namespace mp
