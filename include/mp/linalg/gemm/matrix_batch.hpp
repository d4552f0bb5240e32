// SPDX-License-Identifier: MIT
/// \file
/// Views of many matrices of one shape.
#pragma once

#include <mp/matrix_view.hpp>

#include <cstddef>

namespace mp {

/// The matrices of a batch: `count` matrices of one shape, the first of them `first`, each `stride` elements
/// behind the one before. A stride of zero is the same matrix each time, for operands only.
template <class Value>
struct matrix_batch {
    matrix_view<Value> first;
    std::ptrdiff_t stride = 0;

    /// The matrix number `index`; not checked.
    [[nodiscard]] constexpr matrix_view<Value> operator[](std::ptrdiff_t index) const {
        matrix_view<Value> view = first;
        view.data += index * stride;
        return view;
    }
};

// What newer compilers deduce by themselves.
template <class Value>
matrix_batch(matrix_view<Value>) -> matrix_batch<Value>;
template <class Value>
matrix_batch(matrix_view<Value>, std::ptrdiff_t) -> matrix_batch<Value>;

}  // namespace mp
