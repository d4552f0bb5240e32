// SPDX-License-Identifier: MIT
/// \file
/// Rows of softmax and of normalization in double, one element after the other: what the ops with double
/// operands have in place of the vectors of <mp/numbers/rules/softmax.inl> and <mp/numbers/rules/normalization.inl>, under
/// the same names.
#pragma once

#include <mp/config.hpp>
#include <mp/numbers/format/classification.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/double_functions.hpp>
#include <mp/numbers/rules/normalization.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

struct double_row_maximum {
    double value = -std::numeric_limits<double>::infinity();
    bool is_bad = false;
};

/// The functions of softmax_kernels.
struct double_softmax_kernels {
    using number = rounded_doubles<1>;

    static double_row_maximum maximum(const double* x, std::size_t count) {
        double_row_maximum result;
        for (std::size_t i = 0; i < count; ++i) {
            const bool infinite = isinf(x[i]);
            if (isnan(x[i]) || (infinite && x[i] > 0)) result.is_bad = true;
            if (!infinite && (isinf(result.value) || x[i] > result.value)) result.value = x[i];
        }
        return result;
    }
    static double exponentials(const double* x, std::size_t count, double reference, double* to) {
        number sum = 0.0;
        for (std::size_t i = 0; i < count; ++i) {
            const double power = double_exp(double_subtract(x[i], reference));
            if (to != nullptr) to[i] = power;
            sum += power;
        }
        return sum.value();
    }
    static void scale(std::size_t count, double* to, const double* from, double factor) {
        for (std::size_t i = 0; i < count; ++i) to[i] = double_multiply(from[i], factor);
    }
    static void scale_and_shift(const double* x, std::size_t count, double factor, double shift, double* to) {
        for (std::size_t i = 0; i < count; ++i) to[i] = (number(x[i]) * factor - shift).value();
    }
    static void log_softmax(const double* x, std::size_t count, double largest, double log_sum, double* to) {
        for (std::size_t i = 0; i < count; ++i) to[i] = (number(x[i]) - largest - log_sum).value();
    }
    static double dot(const double* a, const double* b, std::size_t count) {
        number sum = 0.0;
        for (std::size_t i = 0; i < count; ++i) sum += number(a[i]) * b[i];
        return sum.value();
    }
    static double sum(const double* x, std::size_t count) {
        number sum = 0.0;
        for (std::size_t i = 0; i < count; ++i) sum += x[i];
        return sum.value();
    }
    static void softmax_slopes(const double* y, const double* dy, std::size_t count, double mean,
                               double* to) {
        for (std::size_t i = 0; i < count; ++i) to[i] = (number(y[i]) * (number(dy[i]) - mean)).value();
    }
    static void log_softmax_slopes(const double* y, const double* dy, std::size_t count, double sum,
                                   double* to) {
        for (std::size_t i = 0; i < count; ++i) {
            to[i] = (number(dy[i]) - number(double_exp(y[i])) * sum).value();
        }
    }
    static void score_slopes(const double* p, std::size_t count, double* slopes) {
        const auto is_zero = [p](std::size_t i) { return bit_cast<std::uint64_t>(p[i]) << 1 == 0; };
        number sum = 0.0;
        for (std::size_t i = 0; i < count; ++i) {
            if (!is_zero(i)) sum += number(p[i]) * slopes[i];
        }
        for (std::size_t i = 0; i < count; ++i) {
            slopes[i] = is_zero(i) ? 0.0 : (number(p[i]) * (number(slopes[i]) - sum)).value();
        }
    }
};

using double_row_statistics = ops::basic_normalization_statistics<double>;

inline rounded_doubles<1> distance_from_center(double x, const double_row_statistics& row) {
    return rounded_doubles<1>(x) - row.center - row.center_tail;
}
inline double normalized_double(double x, const double_row_statistics& row) {
    return (distance_from_center(x, row) * row.inverse).value();
}

/// The statistics of a row. The tail of the center is the mean distance from it.
inline double_row_statistics double_statistics_of(const double* x, std::size_t columns, bool centered,
                                                  double epsilon) {
    using number = rounded_doubles<1>;
    const auto count = static_cast<double>(columns);
    double_row_statistics result;
    if (centered) {
        result.center = double_divide(double_softmax_kernels::sum(x, columns), count);
        number distances = 0.0;
        for (std::size_t i = 0; i < columns; ++i) distances += number(x[i]) - result.center;
        result.center_tail = (distances / count).value();
    }
    number squares = 0.0;
    for (std::size_t i = 0; i < columns; ++i) {
        const number distance = distance_from_center(x[i], result);
        squares += distance * distance;
    }
    const number square = squares / count + epsilon;
    result.inverse = double_divide(1.0, double_sqrt(square.value()));
    return result;
}

inline void normalize_rows_of_doubles(const normalized_rows<double>& in,
                                      const normalization_forward<double>& out, std::ptrdiff_t rows) {
    for (std::ptrdiff_t r = 0; r < rows; ++r) {
        const double* const from = in.x.row(r);
        const double_row_statistics statistics =
            double_statistics_of(from, in.columns, in.centered, in.epsilon);
        for (std::size_t i = 0; i < in.columns; ++i) {
            const double scaled = double_multiply(normalized_double(from[i], statistics), out.gamma[i]);
            out.y.row(r)[i] = double_add(scaled, out.beta[i]);
        }
        if (out.statistics != nullptr) out.statistics[r] = statistics;
    }
}

inline void normalize_rows_of_doubles_backward(const normalized_rows<double>& in,
                                               const normalization_backward<double>& out,
                                               std::ptrdiff_t rows) {
    using number = rounded_doubles<1>;
    const auto count = static_cast<double>(in.columns);
    for (std::ptrdiff_t r = 0; r < rows; ++r) {
        const double* const x = in.x.row(r);
        const double* const dy = out.dy.row(r);
        const double_row_statistics statistics =
            out.saved == nullptr ? double_statistics_of(x, in.columns, in.centered, in.epsilon)
                                 : out.saved[r];
        double* const whole = out.room;  // the normalized row, since dx may be x
        number plain = 0.0;
        number along = 0.0;
        for (std::size_t i = 0; i < in.columns; ++i) {
            whole[i] = normalized_double(x[i], statistics);
            const number g = number(dy[i]) * out.gamma[i];
            plain += g;
            along += g * whole[i];
            if (out.dgamma != nullptr) out.dgamma[i] = (number(dy[i]) * whole[i] + out.dgamma[i]).value();
            if (out.dbeta != nullptr) out.dbeta[i] = double_add(out.dbeta[i], dy[i]);
        }
        if (out.dx.data == nullptr) continue;
        plain = in.centered ? plain / count : 0.0;
        along = along / count;
        for (std::size_t i = 0; i < in.columns; ++i) {
            const number g = number(dy[i]) * out.gamma[i];
            out.dx.row(r)[i] = ((g - plain - along * whole[i]) * statistics.inverse).value();
        }
    }
}

}}  // namespace mp::detail
