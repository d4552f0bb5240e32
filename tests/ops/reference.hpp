// SPDX-License-Identifier: MIT
// What the tests of the ops compare with: matrices that own their elements, and the ops in double.
#pragma once

#include <mp/error.hpp>
#include <mp/format/operations.hpp>
#include <mp/matrix_view.hpp>

#include <cmath>
#include <cstddef>
#include <random>
#include <string>
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
        for (const Value& value : elements) found += static_cast<float>(value) == -88.0F ? 1 : 0;
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
