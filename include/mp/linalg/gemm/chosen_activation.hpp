// SPDX-License-Identifier: MIT
/// \file
/// Epilogues whose activation is chosen at run time.
#pragma once

#include <mp/config.hpp>
#include <mp/linalg/gemm/activation.hpp>
#include <mp/linalg/gemm/epilogue.hpp>

#include <cstddef>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Epilogue with an activation that is chosen at run time, so that a product is compiled once for all of them: any on a
/// GPU, gelu, gelu_tanh and silu on a CPU.
struct chosen_activation {
    mp::activation act;

    /// Calls f with the epilogue of a smooth one.
    template <class Function>
    decltype(auto) visit(Function f) const {
        switch (act) {
            case mp::activation::gelu:
                return f(gelu_epilogue{});
            case mp::activation::gelu_tanh:
                return f(gelu_tanh_epilogue{});
            default:
                return f(silu_epilogue{});
        }
    }
    MP_HOST_DEVICE float operator()(float value, std::ptrdiff_t row, std::ptrdiff_t column) const {
        switch (act) {
            case mp::activation::none:
                return value;
            case mp::activation::relu:
                return relu_epilogue{}(value, row, column);
            case mp::activation::gelu:
                return gelu_epilogue{}(value, row, column);
            case mp::activation::gelu_tanh:
                return gelu_tanh_epilogue{}(value, row, column);
            default:
                return silu_epilogue{}(value, row, column);
        }
    }
    void apply(float* values, std::ptrdiff_t count, std::ptrdiff_t row, std::ptrdiff_t column,
               bool down) const {
        visit([=](auto epilogue) { epilogue.apply(values, count, row, column, down); });
    }
    bool apply_runs(const epilogue_runs& all) const {
        return visit([&](auto epilogue) { return epilogue.apply_runs(all); });
    }
};

}}  // namespace mp::detail
