// SPDX-License-Identifier: MIT
/// \file
/// Linear layers on the CPU: what is done to the elements of their products.
#pragma once

#include <mp/arrays/array/for_each_element.hpp>
#include <mp/config.hpp>
#include <mp/executor.hpp>
#include <mp/linalg/gemm/activation.hpp>
#include <mp/linalg/gemm/chosen_activation.hpp>
#include <mp/linalg/gemm/epilogue.hpp>
#include <mp/linalg/gemm/epilogue_gradients.hpp>
#include <mp/linalg/gemm/epilogue_outputs.hpp>
#include <mp/linalg/gemm/gemm.hpp>
#include <mp/nn/ops/product.hpp>
#include <mp/numbers/rules/double_functions.hpp>
#include <mp/numbers/rules/elementwise.hpp>

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// What a linear layer does to the elements of its product on the CPU: adds a bias to each column, stores what comes
/// before the activation, and applies the activation. Bias and preactivation may be absent.
struct linear_epilogue {
    any_matrix bias;
    any_matrix preactivation;
    mp::activation act;

    [[nodiscard]] bool is_identity() const { return !bias && !preactivation && act == mp::activation::none; }
    static void apply(const void* epilogue, const epilogue_runs& all) {
        const auto& self = *static_cast<const linear_epilogue*>(epilogue);
        if (self.bias) self.add_bias(all);
        if (self.preactivation) self.store(all);
        self.activate(all);
    }

private:
    void add_bias(const epilogue_runs& all) const {
        const instruction_set isa = best_instruction_set();
        constexpr auto most = static_cast<std::ptrdiff_t>(run_block);
        float room[run_block];
        const auto biases = [&](std::ptrdiff_t first, std::ptrdiff_t count) -> const float* {
            const std::byte* const from = bias.at(0, all.column + first);
            if (holds_reals<float>(bias)) return reinterpret_cast<const float*>(from);
            load_elements(*bias.type, from, 1, static_cast<std::size_t>(count), room);
            return room;
        };
        if (!all.down) {
            for (std::ptrdiff_t first = 0; first < all.count; first += most) {
                const std::ptrdiff_t count = (std::min)(most, all.count - first);
                add_to_each_run(isa, all.values + first, all.stride, all.runs,
                                static_cast<std::size_t>(count), biases(first, count));
            }
            return;
        }
        for (std::ptrdiff_t first = 0; first < all.runs; first += most) {
            const std::ptrdiff_t count = (std::min)(most, all.runs - first);
            const float* const terms = biases(first, count);
            for (std::ptrdiff_t i = 0; i < count; ++i) {
                float* const values = all.values + (first + i) * all.stride;
                for (std::ptrdiff_t j = 0; j < all.count; ++j) values[j] = float_add(values[j], terms[i]);
            }
        }
    }
    void store(const epilogue_runs& all) const {
        const auto count = static_cast<std::size_t>(all.count);
        if (preactivation.row_major != all.down) {
            return all.for_each([&](const float* values, std::ptrdiff_t row, std::ptrdiff_t column) {
                store_elements(*preactivation.type, values, count, preactivation.at(row, column));
            });
        }
        // Values of neighbouring runs are neighbours in the matrix.
        float across[run_block];
        constexpr auto most = static_cast<std::ptrdiff_t>(run_block);
        for (std::ptrdiff_t run = 0; run < all.runs; run += most) {
            const std::ptrdiff_t runs = (std::min)(most, all.runs - run);
            for (std::ptrdiff_t i = 0; i < all.count; ++i) {
                for (std::ptrdiff_t r = 0; r < runs; ++r) across[r] = all.values[(run + r) * all.stride + i];
                store_elements(*preactivation.type, across, static_cast<std::size_t>(runs),
                               all.down ? preactivation.at(all.row + i, all.column + run)
                                        : preactivation.at(all.row + run, all.column + i));
            }
        }
    }
    void activate(const epilogue_runs& all) const {
        if (act == mp::activation::none) return;
        if (act == mp::activation::relu) {
            relu_epilogue{}.apply_runs(all);
        } else {
            chosen_activation{act}.apply_runs(all);
        }
    }
};

[[nodiscard]] inline double activated_double(double value, mp::activation act) {
    switch (act) {
        case mp::activation::none:
            return value;
        case mp::activation::relu:
            return double_elementwise<relu_function>::apply(value);
        case mp::activation::gelu:
            return double_elementwise<gelu_function>::apply(value);
        case mp::activation::gelu_tanh:
            return double_elementwise<gelu_tanh_function>::apply(value);
        default:
            return double_elementwise<silu_function>::apply(value);
    }
}

/// y = act(x w^T + b), computed in Real; z receives what comes before the activation. b and z may be absent.
template <class Real>
void compute_linear(const cpu& exec, const any_matrix& x, const any_matrix& w, const any_matrix& b,
                    const any_matrix& z, const any_matrix& y, mp::activation act) {
    if constexpr (std::is_same_v<Real, double>) {
        product_in_double(exec, 1.0, x, w.transposed(), 0.0, y,
                          [&](double value, std::ptrdiff_t row, std::ptrdiff_t column) {
                              if (b) {
                                  double bias;
                                  load_elements(*b.type, b.at(0, column), 1, 1, &bias);
                                  value = double_add(value, bias);
                              }
                              if (z) store_elements(*z.type, &value, 1, z.at(row, column));
                              return activated_double(value, act);
                          });
    } else {
        const linear_epilogue epilogue{b, z, act};
        multiply_in_float(exec, 1.0, x, w.transposed(), 0.0, y, nullptr, &epilogue,
                          epilogue.is_identity() ? nullptr : &linear_epilogue::apply);
    }
}

/// y = act(z) for gelu, gelu_tanh and silu.
template <class Real>
void activate(const cpu& exec, const any_matrix& z, const any_matrix& y, mp::activation act) {
    switch (act) {
        case mp::activation::gelu:
            return map_operands<gelu_function, Real>(exec, y, z);
        case mp::activation::gelu_tanh:
            return map_operands<gelu_tanh_function, Real>(exec, y, z);
        default:
            return map_operands<silu_function, Real>(exec, y, z);
    }
}

/// The slope of an activation that is chosen at run time: see chosen_activation.
struct chosen_slope {
    mp::activation act;

    MP_ANY_EXECUTION_SPACE
    template <class Call>
    MP_HOST_DEVICE MP_ALWAYS_INLINE decltype(auto) visit(Call f) const {
        switch (act) {
            case mp::activation::relu:
                return f(slope_of<relu_function>{});
            case mp::activation::gelu:
                return f(slope_of<gelu_function>{});
            case mp::activation::gelu_tanh:
                return f(slope_of<gelu_tanh_function>{});
            default:
                return f(slope_of<silu_function>{});
        }
    }
};

/// Multiplies the elements of a product with the slope of `act` at z.
template <class Z>
auto chosen_gradient(matrix_view<const Z> z, mp::activation act) {
    return activation_gradient_epilogue<chosen_slope, Z>{z, {act}};
}

/// Multiplies the elements of a product with the slope of an activation at z, on the CPU.
struct slope_epilogue {
    any_matrix z;
    chosen_slope slope;

    static void apply(const void* epilogue, const epilogue_runs& all) {
        const auto& self = *static_cast<const slope_epilogue*>(epilogue);
        const any_matrix& z = self.z;
        const instruction_set isa = best_instruction_set();
        all.for_each([&](float* values, std::ptrdiff_t row, std::ptrdiff_t column) {
            constexpr auto most = static_cast<std::ptrdiff_t>(run_block);
            const std::ptrdiff_t step = all.down ? z.row_stride() : z.column_stride();
            float before[run_block];
            for (std::ptrdiff_t i = 0; i < all.count; i += most) {
                const auto count = static_cast<std::size_t>((std::min)(most, all.count - i));
                load_elements(*z.type, all.down ? z.at(row + i, column) : z.at(row, column + i), step, count,
                              before);
                self.slope.visit([&](auto function) {
                    map_floats<decltype(function)>(isa, count, values + i, static_cast<const float*>(before),
                                                   static_cast<const float*>(values + i));
                });
            }
        });
    }
};

/// dz = (dy w) times the slope of the activation at z, computed in Real.
template <class Real>
void multiply_by_slope(const cpu& exec, const any_matrix& dy, const any_matrix& w, const any_matrix& z,
                       const any_matrix& dz, mp::activation act) {
    const chosen_slope slope{act};
    if constexpr (std::is_same_v<Real, double>) {
        product_in_double(exec, 1.0, dy, w, 0.0, dz,
                          [&](double value, std::ptrdiff_t row, std::ptrdiff_t column) {
                              double before;
                              load_elements(*z.type, z.at(row, column), 1, 1, &before);
                              return slope.visit([=](auto function) {
                                  return double_elementwise<decltype(function)>::apply(before, value);
                              });
                          });
    } else {
        const slope_epilogue epilogue{z, slope};
        multiply_in_float(exec, 1.0, dy, w, 0.0, dz, nullptr, &epilogue, &slope_epilogue::apply);
    }
}

}}  // namespace mp::detail
