// SPDX-License-Identifier: MIT
// Normalization of rows of floats over vec<T>: see normalization.hpp.
//
// Each step is done for all rows of a block before the next one: a sum or a root is some fifty cycles of
// waiting, in which the processor works on the next row.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

MP_ALWAYS_INLINE vec<double> normalized(vec<double> x, row_statistics statistics) {
    return mul(sub(x, broadcast(statistics.center)), broadcast(statistics.inverse));
}
/// The n elements of a row from there on, normalized, to half an ulp.
MP_ALWAYS_INLINE vec<float> normalized_floats(const float* x, std::size_t n, row_statistics statistics) {
    return narrow(normalized(load_wide_or_fill(x, n, 0.0), statistics));
}
/// Statistics as they are kept, and in double. Each operation is hidden from the compiler's algebra; the functions of
/// float_arithmetic.hpp would be in the encoding of SSE here. Factors are powers of two.
MP_ALWAYS_INLINE ops::normalization_statistics kept_statistics(const row_statistics& statistics) {
    const double inverse = statistics.inverse;
    const double factor = inverse < 0x1p-60 ? 0x1p-64 : inverse > 0x1p60 ? 0x1p64 : 1.0;
    const double scaled = mp::detail::opt_barrier(statistics.center * factor);
    const auto high = static_cast<float>(scaled);
    const double tail = mp::detail::opt_barrier(scaled - static_cast<double>(mp::detail::opt_barrier(high)));
    return {high, static_cast<float>(tail), static_cast<float>(mp::detail::opt_barrier(inverse / factor)),
            static_cast<float>(factor)};
}
MP_ALWAYS_INLINE row_statistics statistics_of(const ops::normalization_statistics& kept) {
    const auto factor = static_cast<double>(kept.factor);
    row_statistics result;
    result.center =
        mp::detail::opt_barrier(static_cast<double>(kept.center) + static_cast<double>(kept.center_tail));
    result.center = mp::detail::opt_barrier(result.center / factor);
    result.inverse = mp::detail::opt_barrier(static_cast<double>(kept.inverse) * factor);
    return result;
}
/// x normalized in float, to 1.5 ulp, for statistics with a factor of 1.
MP_ALWAYS_INLINE vec<float> normalized_floats(const float* x, std::size_t n,
                                              const ops::normalization_statistics& statistics) {
    const vec<float> distance = sub(sub(load_up_to(x, n), statistics.center), statistics.center_tail);
    return mul(distance, statistics.inverse);
}

/// The sum of the squared distances from the center. What is not there has none.
MP_ALWAYS_INLINE double squares_of_row(const float* x, std::size_t columns, double center) {
    long_sum sum;
    for_each_vector(columns, [&](std::size_t v, std::size_t i, std::size_t n) MP_INLINED_LAMBDA {
        const vec<double> distance = sub(load_wide_or_fill(x + i, n, center), broadcast(center));
        sum.add_terms(v, mul(distance, distance));
    });
    return sum.value();
}

/// The statistics of `rows` rows from row `first` on, at most a block.
MP_ALWAYS_INLINE void find_statistics(const normalized_rows<float>& in, std::ptrdiff_t first,
                                      std::ptrdiff_t rows, row_statistics* out) {
    const auto [columns, centered, epsilon, x] = in;
    const auto count = static_cast<double>(columns);
    for (std::ptrdiff_t r = 0; r < rows; ++r) {
        out[r].center = centered ? div(sum_of_row(x.row(first + r), columns), count) : 0.0;
    }
    for (std::ptrdiff_t r = 0; r < rows; ++r) {
        const double squares = squares_of_row(x.row(first + r), columns, out[r].center);
        const double square = add(div(squares, count), static_cast<double>(epsilon));
        out[r].inverse = div(1.0, sqrt(square));
    }
}

/// Everything is in double, and y is rounded once.
inline void normalize_rows(const normalized_rows<float>& in, const normalization_forward<float>& out,
                           std::ptrdiff_t rows) {
    const std::size_t columns = in.columns;
    const auto [gamma, beta, y, statistics_of_rows] = out;
    row_statistics of_rows[normalization_block];
    for (std::ptrdiff_t first = 0; first < rows; first += normalization_block) {
        const std::ptrdiff_t height = rows - first < normalization_block ? rows - first : normalization_block;
        find_statistics(in, first, height, of_rows);
        for (std::ptrdiff_t r = 0; r < height; ++r) {
            const row_statistics statistics = of_rows[r];
            const float* const from = in.x.row(first + r);
            float* const to = y.row(first + r);
            for_each_vector(columns, [&](std::size_t /*v*/, std::size_t i, std::size_t n) MP_INLINED_LAMBDA {
                const vec<double> whole = normalized(load_wide_or_fill(from + i, n, 0.0), statistics);
                const vec<double> scaled = mul(whole, load_up_to(gamma + i, n));
                store_up_to(to + i, narrow(add(scaled, load_up_to(beta + i, n))), n);
            });
            if (statistics_of_rows != nullptr) {
                statistics_of_rows[first + r] = kept_statistics(statistics);
            }
        }
    }
}

/// A row's means of the gradient of its normalized numbers, and of the products with them.
struct mean_gradients {
    float plain, along;
};

/// Writes the normalized row to `whole`. Terms are in float, sums of up to eight of them, too.
template <class Statistics>
MP_ALWAYS_INLINE mean_gradients mean_gradients_of(const float* x, const Statistics& statistics,
                                                  const float* dy, const float* gamma, std::size_t columns,
                                                  float* whole) {
    constexpr std::size_t chunk = 8 * row_parts;
    long_sum sum, sum_along;
    for (std::size_t begin = 0; begin < columns; begin += chunk) {
        short_sum part, part_along;
        const auto add_terms = [&](std::size_t v, std::size_t i, std::size_t n) MP_INLINED_LAMBDA {
            const std::size_t c = begin + i;
            const vec<float> row = normalized_floats(x + c, n, statistics);
            store_up_to(whole + c, row, n);
            const vec<float> g = mul(load_up_to(dy + c, n), load_up_to(gamma + c, n));
            part.add_terms(v, g);
            part_along.add_terms(v, mul(g, row));
        };
        for_each_vector(columns - begin < chunk ? columns - begin : chunk, add_terms);
        part.add_to(sum);
        part_along.add_to(sum_along);
    }
    const auto count = static_cast<double>(columns);
    return {static_cast<float>(div(sum.value(), count)), static_cast<float>(div(sum_along.value(), count))};
}

MP_ALWAYS_INLINE void add_to_sums(double* sums, vec<float> x, std::size_t n) {
    if (sums != nullptr) store_up_to(sums, add(load_up_to(sums, n), widen(x)), n);
}
/// Adds dy times the normalized rows in `whole`, and dy, to the sums of the columns.
MP_ALWAYS_INLINE void add_rows_to_sums(float_rows<const float> dy, std::ptrdiff_t first, std::ptrdiff_t rows,
                                       const float* whole, std::size_t columns, double* dgamma,
                                       double* dbeta) {
    for_each_vector(columns, [&](std::size_t /*v*/, std::size_t i, std::size_t n) MP_INLINED_LAMBDA {
        vec<float> of_gamma = broadcast(0.0F);
        vec<float> of_beta = broadcast(0.0F);
        const float* row = whole + i;
        for (std::ptrdiff_t r = first; r < first + rows; ++r, row += columns) {
            const vec<float> gradient = load_up_to(dy.row(r) + i, n);
            of_gamma = add(of_gamma, mul(gradient, load_up_to(row, n)));
            of_beta = add(of_beta, gradient);
        }
        add_to_sums(dgamma + (dgamma == nullptr ? 0 : i), of_gamma, n);
        add_to_sums(dbeta + (dbeta == nullptr ? 0 : i), of_beta, n);
    });
}

inline void normalize_rows_backward(const normalized_rows<float>& in,
                                    const normalization_backward<float>& out, std::ptrdiff_t rows) {
    const auto [columns, centered, epsilon, x] = in;
    const auto [gamma, dy, dx, saved, dgamma, dbeta, room] = out;
    row_statistics of_rows[normalization_block];
    mean_gradients means[normalization_block];
    for (std::ptrdiff_t first = 0; first < rows; first += normalization_block) {
        const std::ptrdiff_t height = rows - first < normalization_block ? rows - first : normalization_block;
        if (saved == nullptr) {
            find_statistics(in, first, height, of_rows);
        } else {
            for (std::ptrdiff_t r = 0; r < height; ++r) of_rows[r] = statistics_of(saved[first + r]);
        }
        const auto whole_row = [&](std::ptrdiff_t r) MP_INLINED_LAMBDA {
            return room + r * static_cast<std::ptrdiff_t>(columns);
        };
        for (std::ptrdiff_t r = 0; r < height; ++r) {
            const auto of_row = [&](const auto& statistics) MP_INLINED_LAMBDA {
                return mean_gradients_of(x.row(first + r), statistics, dy.row(first + r), gamma, columns,
                                         whole_row(r));
            };
            const bool in_floats = saved != nullptr && same_value(saved[first + r].factor, 1.0F);
            means[r] = in_floats ? of_row(saved[first + r]) : of_row(of_rows[r]);
            if (!centered) means[r].plain = 0.0F;
        }
        if (dgamma != nullptr || dbeta != nullptr) {
            add_rows_to_sums(dy, first, height, room, columns, dgamma, dbeta);
        }
        if (dx.data == nullptr) continue;
        for (std::ptrdiff_t r = 0; r < height; ++r) {
            const float* const whole = whole_row(r);
            const float* const gradient = dy.row(first + r);
            float* const to = dx.row(first + r);
            const auto inverse = static_cast<float>(of_rows[r].inverse);
            const mean_gradients mean = means[r];
            for_each_vector(columns, [&](std::size_t /*v*/, std::size_t i, std::size_t n) MP_INLINED_LAMBDA {
                const vec<float> g = mul(load_up_to(gradient + i, n), load_up_to(gamma + i, n));
                const vec<float> rest = sub(sub(g, mean.plain), mul(load_up_to(whole + i, n), mean.along));
                store_up_to(to + i, mul(rest, inverse), n);
            });
        }
    }
}

}}}  // namespace mp::detail::MP_TARGET
