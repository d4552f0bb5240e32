// SPDX-License-Identifier: MIT
/// \file
/// Epilogues: functions of the elements of a matrix product between float accumulator and the memory of C.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/base/opt_barrier.hpp>
#include <mp/base/view_extent.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/linalg/gemm/epilogue_operands.hpp>
#include <mp/linalg/gemm/epilogue_runs.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/elementwise.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// A function object that can end a matrix product: called as epilogue(value, row, column) once for every
/// element of C, with value = alpha * (A B) + beta * C in float and the coordinate of the element, and
/// returning the float that is rounded to the element type of C. Calls come in no fixed order and from
/// several threads at once through one const reference. It must not read or write C; what it writes elsewhere it
/// refers to, as the epilogues of <mp/linalg/gemm/epilogue_outputs.hpp> do. For a product on a CUDA device it is also trivially
/// copyable, callable in device code, and refers to device memory only; the library's epilogues are, if
/// bias, scales and outputs lie in device memory.
///
/// Before anything is written, products compare what the library's epilogues read and write with A, B and C, also
/// within mp::compose, and throw mp::argument_error where they overlap. What a function object of the user's refers
/// to, a lambda's captures for example, no product knows: its author sees to it.
///
/// An epilogue may have a member validate(rows, columns), which mp::gemm calls with the shape of C before it
/// writes anything, and which throws mp::argument_error when the epilogue cannot serve that shape. And it may
/// have a member apply(values, count, row, column, down) const, which products on the CPU call in place of
/// the operator for `count` floats of a row of C, from (row, column) on, or of a column where `down`; it
/// gives each the bits that the operator gives.
template <class Function>
concept gemm_epilogue = std::is_invocable_r_v<float, const Function&, float, std::ptrdiff_t, std::ptrdiff_t>;

/// Along which axis of C a bias or a scale has one value per position.
enum class bias_axis {
    column,  ///< [column]: what belongs to a linear layer's outputs when each row of C is one sample
    row,     ///< [row]: the same for products written the other way round
};

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Function>
struct activation_epilogue {
    MP_HOST_DEVICE constexpr float operator()(float value, std::ptrdiff_t /*row*/,
                                              std::ptrdiff_t /*column*/) const {
        return apply_elementwise<Function>(value);
    }
    /// As operator(), for `count` values of a row, or of a column where `down`.
    void apply(float* values, std::ptrdiff_t count, std::ptrdiff_t /*row*/, std::ptrdiff_t /*column*/,
               bool /*down*/) const {
        map_runs<Function>(best_instruction_set(), values, 0, 1, static_cast<std::size_t>(count));
    }
    bool apply_runs(const epilogue_runs& all) const {
        map_runs<Function>(best_instruction_set(), all.values, all.stride, all.runs,
                           static_cast<std::size_t>(all.count));
        return true;
    }
};

/// Throws argument_error unless there is one value per column (or row) of C.
inline void check_epilogue_size(std::string_view name, std::size_t size, bias_axis axis, std::ptrdiff_t rows,
                                std::ptrdiff_t columns) {
    const std::ptrdiff_t expected = axis == bias_axis::column ? columns : rows;
    if (static_cast<std::ptrdiff_t>(size) != expected) {
        throw_argument("mp::gemm", join_text({name, ".size()"}), size,
                       join_text({"must equal ", axis == bias_axis::column ? "c.columns" : "c.rows",
                                  ", which is ", error_text(expected)}));
    }
}

/// One value per column (or row) of C, as a matrix of one row (or column), which is in use by element where C is no
/// larger.
template <class Value>
epilogue_operand axis_operand(std::string_view name, const Value* values, std::size_t size, bias_axis axis) {
    const auto count = static_cast<std::ptrdiff_t>(size);
    const bool is_row = axis == bias_axis::column;
    return {{name,
             {reinterpret_cast<std::uintptr_t>(values), static_cast<std::ptrdiff_t>(sizeof(Value)),
              is_row ? 1 : count, is_row ? count : 1, count, is_row}},
            epilogue_access::read_by_element};
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Leaves the value as it is.
struct identity_epilogue {
    MP_HOST_DEVICE constexpr float operator()(float value, std::ptrdiff_t /*row*/,
                                              std::ptrdiff_t /*column*/) const {
        return value;
    }
    static bool apply_runs(const detail::epilogue_runs& /*all*/) { return true; }
};

/// Sets negative values and -0 to +0. NaN stays NaN, also in projects compiled with -ffast-math, so that a
/// broken product is not mistaken for a sound one.
struct relu_epilogue : detail::activation_epilogue<detail::relu_function> {};

/// x Phi(x), the Gaussian error linear unit, where Phi is the normal distribution function (not the tanh
/// approximation: that is gelu_tanh_epilogue).
///
/// Calculated in float, to 6 ulp, in the negative tail, too: the bits of mp::ops::gelu, on every processor
/// and GPU. NaN stays NaN, -infinity gives -0 and +infinity stays. The gradient needs x:
/// mp::ops::gelu_backward.
struct gelu_epilogue : detail::activation_epilogue<detail::gelu_function> {};

/// x / 2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), the approximation of gelu that many models were trained
/// with, to 4 ulp. The rest is as for gelu_epilogue.
struct gelu_tanh_epilogue : detail::activation_epilogue<detail::gelu_tanh_function> {};

/// x / (1 + e^-x), the sigmoid linear unit, also called swish, to 4 ulp. The rest is as for gelu_epilogue.
/// The gradient needs x: mp::ops::silu_backward.
struct silu_epilogue : detail::activation_epilogue<detail::silu_function> {};

/// Adds bias[column] or bias[row] to the value, rounded once to float. The bias is read while C is written,
/// so the two must not overlap. Made by bias_per_column and bias_per_row.
template <class Value, bias_axis Axis>
struct bias_epilogue {
    const Value* bias;  // not a span, whose members cannot be called on a device
    std::size_t size;

    MP_HOST_DEVICE constexpr float operator()(float value, std::ptrdiff_t row, std::ptrdiff_t column) const {
        return detail::float_add(value, static_cast<float>(bias[Axis == bias_axis::column ? column : row]));
    }

    /// As operator(), for a run of C whose values have one bias, or a bias each.
    void apply(float* values, std::ptrdiff_t count, std::ptrdiff_t row, std::ptrdiff_t column,
               bool down) const {
        const std::ptrdiff_t at = Axis == bias_axis::column ? column : row;
        if ((Axis == bias_axis::column) != down) {
            detail::add_terms_to_run(values, count, bias + at);
        } else {
            const auto term = static_cast<float>(bias[at]);
            for (std::ptrdiff_t j = 0; j < count; ++j) values[j] = detail::float_add(values[j], term);
        }
    }

    bool apply_runs(const detail::epilogue_runs& all) const {
        constexpr std::size_t most = 256;
        const auto count = static_cast<std::size_t>(all.count);
        if ((Axis == bias_axis::column) == all.down || count > most) return false;
        const Value* const terms = bias + (Axis == bias_axis::column ? all.column : all.row);
        const auto add = [&](const float* floats) {
            detail::add_to_each_run(best_instruction_set(), all.values, all.stride, all.runs, count, floats);
        };
        if constexpr (std::is_same_v<Value, float>) {
            add(terms);
        } else {
            float widened[most];
            for (std::size_t j = 0; j < count; ++j) widened[j] = static_cast<float>(terms[j]);
            add(widened);
        }
        return true;
    }

    /// Throws argument_error unless there is one bias per column (or row) of C.
    void validate(std::ptrdiff_t rows, std::ptrdiff_t columns) const {
        detail::check_epilogue_size("bias", size, Axis, rows, columns);
    }
    /// Passes the operand to f.
    template <class Function>
    void for_each_operand(const Function& f) const {
        f(detail::axis_operand("bias", bias, size, Axis));
    }
};

/// Multiplies the value by scale[column] or scale[row], rounded once to float: what quantised weights carry.
/// The scales are read while C is written, so the two must not overlap. Made by scale_per_column and
/// scale_per_row.
template <class Value, bias_axis Axis>
struct scale_epilogue {
    const Value* scale;
    std::size_t size;
    static constexpr bool ends_in_product = true;

    MP_HOST_DEVICE constexpr float operator()(float value, std::ptrdiff_t row, std::ptrdiff_t column) const {
        return detail::float_multiply(value,
                                      static_cast<float>(scale[Axis == bias_axis::column ? column : row]));
    }

    /// As operator(), for a run of C whose values have one scale, or a scale each.
    void apply(float* values, std::ptrdiff_t count, std::ptrdiff_t row, std::ptrdiff_t column,
               bool down) const {
        const std::ptrdiff_t at = Axis == bias_axis::column ? column : row;
        if ((Axis == bias_axis::column) != down) {
            for (std::ptrdiff_t j = 0; j < count; ++j) {
                values[j] = detail::float_multiply(values[j], static_cast<float>(scale[at + j]));
            }
        } else {
            detail::scale_floats(best_instruction_set(), static_cast<std::size_t>(count), values, values,
                                 static_cast<float>(scale[at]));
        }
    }

    bool apply_runs(const detail::epilogue_runs& all) const {
        if constexpr (std::is_same_v<Value, float>) {
            if ((Axis == bias_axis::column) == all.down) {
                detail::scale_each_run(best_instruction_set(), all.values, all.stride, all.runs,
                                       static_cast<std::size_t>(all.count),
                                       scale + (Axis == bias_axis::column ? all.column : all.row), 1);
                return true;
            }
        }
        return false;
    }

    /// Throws argument_error unless there is one scale per column (or row) of C.
    void validate(std::ptrdiff_t rows, std::ptrdiff_t columns) const {
        detail::check_epilogue_size("scale", size, Axis, rows, columns);
    }
    /// Passes the operand to f.
    template <class Function>
    void for_each_operand(const Function& f) const {
        f(detail::axis_operand("scale", scale, size, Axis));
    }
};

/// Adds an element of another matrix, such as what goes around a block of layers, rounded once to float. The
/// matrix is read while C is written: it may be C itself, from the same place on, but not overlap it
/// otherwise. Made by add_residual.
template <class Value>
struct residual_epilogue {
    matrix_view<const Value> residual;

    MP_HOST_DEVICE constexpr float operator()(float value, std::ptrdiff_t row, std::ptrdiff_t column) const {
        return detail::float_add(value, static_cast<float>(residual(row, column)));
    }

    /// As operator(), for a run of C.
    void apply(float* values, std::ptrdiff_t count, std::ptrdiff_t row, std::ptrdiff_t column,
               bool down) const {
        const std::ptrdiff_t stride = down ? residual.row_stride() : residual.column_stride();
        const Value* const terms = &residual(row, column);
        if (stride == 1) {
            detail::add_terms_to_run(values, count, terms);
        } else {
            for (std::ptrdiff_t j = 0; j < count; ++j) {
                values[j] = detail::float_add(values[j], static_cast<float>(terms[j * stride]));
            }
        }
    }

    /// Throws argument_error unless the matrix has the shape of C.
    void validate(std::ptrdiff_t rows, std::ptrdiff_t columns) const {
        detail::check_view("mp::gemm", "residual", detail::extent_of(residual));
        detail::check_equal_sizes("mp::gemm", "residual.rows", residual.rows, "c.rows", rows);
        detail::check_equal_sizes("mp::gemm", "residual.columns", residual.columns, "c.columns", columns);
    }
    /// Passes the operand to f.
    template <class Function>
    void for_each_operand(const Function& f) const {
        f(detail::epilogue_operand{{"residual", detail::extent_of(residual)},
                                   detail::epilogue_access::read_by_element});
    }
};

/// Epilogue that adds bias[column]. `bias` is any contiguous range of numbers (vector, array, span) of which
/// float holds every value; it must live until the product is done and not overlap C.
template <class Range>
[[nodiscard]] constexpr auto bias_per_column(const Range& bias) {
    const std::span view(bias);
    return bias_epilogue<typename decltype(view)::value_type, bias_axis::column>{view.data(), view.size()};
}

/// Epilogue that adds bias[row]; the conditions of bias_per_column hold.
template <class Range>
[[nodiscard]] constexpr auto bias_per_row(const Range& bias) {
    const std::span view(bias);
    return bias_epilogue<typename decltype(view)::value_type, bias_axis::row>{view.data(), view.size()};
}

/// Epilogue that multiplies by scale[column], for weights of eight bits with a scale for every output; the
/// conditions of bias_per_column hold.
///
///     mp::gemm(exec, 1, x, int8_weights, 0, y, mp::compose(mp::scale_per_column(scales), mp::relu_epilogue{}));
template <class Range>
[[nodiscard]] constexpr auto scale_per_column(const Range& scale) {
    const std::span view(scale);
    return scale_epilogue<typename decltype(view)::value_type, bias_axis::column>{view.data(), view.size()};
}

/// Epilogue that multiplies by scale[row], for operands of eight bits with a scale for every sample; the
/// conditions of bias_per_column hold.
template <class Range>
[[nodiscard]] constexpr auto scale_per_row(const Range& scale) {
    const std::span view(scale);
    return scale_epilogue<typename decltype(view)::value_type, bias_axis::row>{view.data(), view.size()};
}

/// Epilogue that adds residual(row, column); the matrix must live until the product is done.
template <class Value>
[[nodiscard]] constexpr residual_epilogue<std::remove_const_t<Value>> add_residual(
    matrix_view<Value> residual) {
    return {residual};
}

/// Two epilogues, one after the other, on the float value; made by mp::compose.
template <gemm_epilogue First, gemm_epilogue Second>
struct epilogue_chain {
    First first;
    Second second;

    // The parts may be callable on the host only; then so is the chain.
    MP_ANY_EXECUTION_SPACE
    MP_HOST_DEVICE constexpr float operator()(float value, std::ptrdiff_t row, std::ptrdiff_t column) const {
        return second(rounded(first(value, row, column)), row, column);
    }

    /// As operator(), for values of a row or a column of C.
    void apply(float* values, std::ptrdiff_t count, std::ptrdiff_t row, std::ptrdiff_t column,
               bool down) const {
        detail::apply_to_run(first, values, count, row, column, down);
        if constexpr (requires { requires First::ends_in_product; }) {
            for (std::ptrdiff_t j = 0; j < count; ++j) values[j] = detail::opt_barrier(values[j]);
        }
        detail::apply_to_run(second, values, count, row, column, down);
    }

    bool apply_runs(const detail::epilogue_runs& all) const {
        detail::apply_to_runs(first, all);
        if constexpr (requires { requires First::ends_in_product; }) {
            all.for_each([&](float* values, std::ptrdiff_t /*row*/, std::ptrdiff_t /*column*/) {
                for (std::ptrdiff_t j = 0; j < all.count; ++j) values[j] = detail::opt_barrier(values[j]);
            });
        }
        detail::apply_to_runs(second, all);
        return true;
    }

    /// Lets both parts check the shape of C.
    void validate(std::ptrdiff_t rows, std::ptrdiff_t columns) const {
        if constexpr (requires { first.validate(rows, columns); }) first.validate(rows, columns);
        if constexpr (requires { second.validate(rows, columns); }) second.validate(rows, columns);
    }

    /// Passes the operands of both parts to f.
    template <class Function>
    void for_each_operand(const Function& f) const {
        detail::for_each_operand_of(first, f);
        detail::for_each_operand_of(second, f);
    }
    static constexpr bool stores_matrix = detail::stores_matrix<First> || detail::stores_matrix<Second>;

    /// Whether what it returns is a product, which compilers could fuse with a sum behind it.
    static constexpr bool ends_in_product = requires { requires Second::ends_in_product; };

private:
    MP_HOST_DEVICE static constexpr float rounded(float value) {
        if constexpr (requires { requires First::ends_in_product; }) {
            if (!__builtin_is_constant_evaluated()) return detail::opt_barrier(value);
        }
        return value;
    }
};

/// The epilogue that applies `first` and then `second`, without rounding to the type of C in between:
///
///     mp::gemm(exec, 1, x, w, 0, y, mp::compose(mp::bias_per_column(bias), mp::relu_epilogue{}));
template <gemm_epilogue First, gemm_epilogue Second>
[[nodiscard]] constexpr epilogue_chain<First, Second> compose(First first, Second second) {
    return {first, second};
}

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Epilogue>
void apply_epilogue(const void* epilogue, const epilogue_runs& all) {
    apply_to_runs(*static_cast<const Epilogue*>(epilogue), all);
}

/// The function that applies an epilogue to runs; null for the identity.
template <class Epilogue>
constexpr auto apply_of() -> void (*)(const void*, const epilogue_runs&) {
    return std::is_same_v<Epilogue, identity_epilogue> ? nullptr : &apply_epilogue<Epilogue>;
}

}}  // namespace mp::detail
