// SPDX-License-Identifier: MIT
/// \file
/// Normalization of rows of floats, forward and backward, over vec<T>: the same bits for every instruction
/// set. Formats, strides and threads are the business of <mp/nn/ops/normalization/rows.hpp>.
#pragma once

#include <mp/config.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/row_statistics.hpp>
#include <mp/numbers/simd/loops.hpp>
#include <mp/numbers/simd/select_target.hpp>
#include <mp/numbers/simd/vec.hpp>

#include <cstddef>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Rows that are worked on together, so that one waits for its statistics while others are read; and rows
/// whose terms of column sums are added up in float, before they are added to sums in double.
inline constexpr std::ptrdiff_t normalization_block = 8;

/// Rows of floats, of which the elements lie side by side.
template <class Float>
struct float_rows {
    Float* data = nullptr;
    std::ptrdiff_t stride = 0;

    [[nodiscard]] MP_ALWAYS_INLINE Float* row(std::ptrdiff_t i) const { return data + i * stride; }
};

/// A row of floats is normalized as (x - center) * inverse.
struct row_statistics {
    double center = 0;
    double inverse = 0;
};

/// \tparam Real  float, or double in ops with doubles
template <class Real>
struct normalized_rows {
    std::size_t columns;
    bool centered;  ///< whether the mean is subtracted
    Real epsilon;
    float_rows<const Real> x;
};

template <class Real>
struct normalization_forward {
    const double* gamma;
    const double* beta;
    float_rows<Real> y;                                     ///< may be x
    ops::basic_normalization_statistics<Real>* statistics;  ///< null where they are not wanted
};

template <class Real>
struct normalization_backward {
    const Real* gamma;
    float_rows<const Real> dy;
    float_rows<Real> dx;  ///< may be x or dy; null data where it is not wanted
    const ops::basic_normalization_statistics<Real>* saved;  ///< null to compute them
    // Sums that are added to; null where they are not wanted.
    double* dgamma;
    double* dbeta;
    Real* room;  ///< for normalization_block rows
};

}}  // namespace mp::detail

#define MP_KERNEL_FILE <mp/numbers/rules/normalization.inl>
#include <mp/numbers/simd/for_each_loop.inl>
