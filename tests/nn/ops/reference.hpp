// SPDX-License-Identifier: MIT
// What the tests of the ops compare with: matrices that own their elements, and the ops in double.
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/format/operations.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace ops_test {

/// A matrix with its elements; padding between the lines is filled with a value that no test data has.
template <class Value>
struct matrix {
    static inline const Value padding_value = Value(-88.0F);

    std::vector<Value> elements;
    mp::matrix_view<Value> view;

    matrix(std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t padding = 0,
           mp::storage_order order = mp::storage_order::row_major)
        : elements(), view{nullptr, rows, columns, 0, order} {
        const bool by_rows = order == mp::storage_order::row_major;
        view.leading_dimension = (by_rows ? columns : rows) + padding;
        elements.assign(static_cast<std::size_t>(view.leading_dimension * (by_rows ? rows : columns)),
                        padding_value);
        view.data = elements.data();
    }
    matrix(const matrix&) = delete;
    matrix& operator=(const matrix&) = delete;
    matrix(matrix&&) noexcept = default;

    template <class Function>
    void fill(Function function) {
        for (std::ptrdiff_t r = 0; r < view.rows; ++r) {
            for (std::ptrdiff_t c = 0; c < view.columns; ++c) view(r, c) = function(r, c);
        }
    }

    /// Values from -1 to 1, the same for the same seed.
    void randomize(unsigned seed) {
        std::mt19937 generator(seed);
        fill([&](auto, auto) {
            return mp::round_to<Value>(static_cast<double>(generator()) / 2147483648.0 - 1.0);
        });
    }

    bool padding_is_untouched() const {
        std::size_t found = 0;
        for (const Value& value : elements)
            found += static_cast<float>(value) == static_cast<float>(padding_value) ? 1 : 0;
        return found == elements.size() - static_cast<std::size_t>(view.rows * view.columns);
    }
};

template <class Value>
std::vector<Value> random_vector(std::size_t size, unsigned seed) {
    matrix<Value> row(1, static_cast<std::ptrdiff_t>(size));
    row.randomize(seed);
    return row.elements;
}

/// The same matrix with elements of another format, dense, each rounded once.
template <class To, class From>
matrix<To> cast(const matrix<From>& from) {
    matrix<To> to(from.view.rows, from.view.columns);
    to.fill([&](auto r, auto c) { return mp::round_to<To>(from.view(r, c)); });
    return to;
}

template <class To, class From>
std::vector<To> cast(const std::vector<From>& from) {
    std::vector<To> to;
    for (const From& value : from) to.push_back(mp::round_to<To>(value));
    return to;
}

/// Whether two matrices have the same values bit for bit, in whatever places.
template <class A, class B>
bool same_bits(const A& a, const B& b) {
    for (std::ptrdiff_t r = 0; r < a.view.rows; ++r) {
        for (std::ptrdiff_t c = 0; c < a.view.columns; ++c) {
            const auto x = static_cast<float>(a.view(r, c));
            const auto y = static_cast<float>(b.view(r, c));
            if (mp::detail::bits_of(x) != mp::detail::bits_of(y)) return false;
        }
    }
    return a.view.rows == b.view.rows && a.view.columns == b.view.columns;
}

/// A unit in the last place of Value at x: by the definition of the format's parameters, written out here.
template <class Value>
double unit_in_last_place(double x) {
    struct shape {
        int precision, quantum_exponent;
    };
    constexpr shape format = sizeof(Value) == 4                         ? shape{24, -149}
                             : std::is_same_v<Value, mp::half>          ? shape{11, -24}
                             : std::is_same_v<Value, mp::bfloat16>      ? shape{8, -133}
                             : std::is_same_v<Value, mp::float8_e4m3fn> ? shape{4, -9}
                                                                        : shape{3, -16};
    if (x == 0) return std::ldexp(1.0, format.quantum_exponent);
    return std::ldexp(1.0, std::max(std::ilogb(x) - format.precision + 1, format.quantum_exponent));
}

/// Whether `run(exec, result)` writes the same bits with one thread and with three; `rows` x `columns` is
/// large enough for three chunks.
template <class Value, class Function>
bool same_with_three_threads(std::ptrdiff_t rows, std::ptrdiff_t columns, Function run) {
    matrix<Value> one(rows, columns), three(rows, columns);
    run(mp::cpu{.threads = 1}, one.view);
    run(mp::cpu{.threads = 3}, three.view);
    return same_bits(one, three);
}

/// Calls f(order, padding) for both storage orders, without and with padding.
template <class Function>
void for_each_layout(Function f) {
    for (const auto order : {mp::storage_order::row_major, mp::storage_order::column_major}) {
        for (const std::ptrdiff_t padding : {0, 3}) f(order, padding);
    }
}

/// The derivative of f() with respect to the double x, by central differences.
template <class Function>
double derivative(double& x, Function f, double step) {
    const double before = x;
    x = before + step;
    const double above = f();
    x = before - step;
    const double below = f();
    x = before;
    return (above - below) / (2.0 * step);
}

/// The text of the argument_error that the function throws.
template <class Function>
std::string message_of(Function function) {
    try {
        function();
    } catch (const mp::argument_error& error) {
        return error.what();
    }
    return "nothing was thrown";
}

}  // namespace ops_test
