// SPDX-License-Identifier: MIT
// The optimizers in double, by the formulas of their documentation, and how far their weights move after one
// gradient of any size. Shares no code with the library.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace recovery {

using values = std::vector<double>;

inline double norm(const values& x) {
    return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
}

/// One parameter in double: weights, up to two states, number of updates.
struct model {
    values w, m, v;
    int t = 0;
    std::function<void(model&, const values&)> rule;

    model(std::size_t size, std::function<void(model&, const values&)> update)
        : w(size, 1.0), m(size, 0.0), v(size, 0.0), rule(std::move(update)) {}
    void step(const values& g) {
        ++t;
        rule(*this, g);
    }
};

struct adam {
    double rate = 0.03, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
    bool blocks = false;  // 8-bit moments: no square below 2^-18 of the largest, no mean below 2^-18 of it

    /// What a weight loses at a learning rate of 1.
    values change(model& x, const values& g) const {
        values result(g.size());
        const double bias1 = 1.0 - std::pow(beta1, x.t);
        const double bias2 = 1.0 - std::pow(beta2, x.t);
        for (std::size_t i = 0; i < g.size(); ++i) {
            x.m[i] = beta1 * x.m[i] + (1.0 - beta1) * g[i];
            x.v[i] = beta2 * x.v[i] + (1.0 - beta2) * g[i] * g[i];
            result[i] = x.m[i] / bias1 / (std::sqrt(x.v[i]) / std::sqrt(bias2) + epsilon);
        }
        if (blocks) {
            double mean = 0.0;
            for (const double it : x.m) mean = std::fmax(mean, std::fabs(it));
            const double square = *std::max_element(x.v.begin(), x.v.end());
            for (double& it : x.m) it = std::fabs(it) < 0x1p-18 * mean ? 0.0 : it;
            for (double& it : x.v) it = std::fmax(it, 0x1p-18 * square);
        }
        return result;
    }
    void operator()(model& x, const values& g) const {
        const values u = change(x, g);
        for (std::size_t i = 0; i < g.size(); ++i) x.w[i] -= rate * u[i];
    }
};

struct lamb {
    adam inner{.epsilon = 1e-6};

    void operator()(model& x, const values& g) const {
        values u = inner.change(x, g);
        for (std::size_t i = 0; i < g.size(); ++i) u[i] += 0.01 * x.w[i];
        const double ratio = norm(x.w) > 0.0 && norm(u) > 0.0 ? norm(x.w) / norm(u) : 1.0;
        for (std::size_t i = 0; i < g.size(); ++i) x.w[i] -= inner.rate * ratio * u[i];
    }
};

struct sgd {
    double rate = 0.03, momentum = 0.0;
    bool nesterov = false;

    void operator()(model& x, const values& g) const {
        for (std::size_t i = 0; i < g.size(); ++i) {
            x.m[i] = momentum * x.m[i] + g[i];
            x.w[i] -= rate * (nesterov ? g[i] + momentum * x.m[i] : x.m[i]);
            if (momentum <= 0.0) x.m[i] = 0.0;  // no state
        }
    }
};

struct lars {
    sgd inner{.rate = 1.0, .momentum = 0.9};
    double trust = 0.02;

    void operator()(model& x, const values& g) const {
        const double length = norm(g);
        const double ratio = norm(x.w) > 0.0 && length > 0.0 ? trust * norm(x.w) / (length + 1e-8) : 1.0;
        values scaled = g;
        for (double& it : scaled) it *= ratio;
        inner(x, scaled);
    }
};

struct lion {
    void operator()(model& x, const values& g) const {
        for (std::size_t i = 0; i < g.size(); ++i) {
            const double direction = 0.9 * x.m[i] + 0.1 * g[i];
            x.m[i] = 0.99 * x.m[i] + 0.01 * g[i];
            x.w[i] -= 0.03 * (direction > 0.0 ? 1.0 : direction < 0.0 ? -1.0 : 0.0);
        }
    }
};

/// m has the means of the rows, v those of the columns; one row: a vector.
struct adafactor {
    std::size_t rows = 1;

    void operator()(model& x, const values& g) const {
        const std::size_t columns = g.size() / rows;
        const double b = 1.0 - std::pow(x.t, -0.8);
        values row(rows, 0.0), column(columns, 0.0);
        for (std::size_t i = 0; i < g.size(); ++i) {
            row[i / columns] += (g[i] * g[i] + 1e-30) / static_cast<double>(columns);
            column[i % columns] += (g[i] * g[i] + 1e-30) / static_cast<double>(rows);
        }
        for (std::size_t i = 0; i < rows; ++i) x.m[i] = b * x.m[i] + (1.0 - b) * row[i];
        for (std::size_t j = 0; j < columns; ++j) x.v[j] = b * x.v[j] + (1.0 - b) * column[j];
        double mean = 0.0;
        for (std::size_t i = 0; i < rows; ++i) mean += x.m[i] / static_cast<double>(rows);
        values u(g.size());
        for (std::size_t i = 0; i < g.size(); ++i) {
            const double of_row = rows == 1 ? 1.0 : x.m[i / columns] / mean;
            u[i] = g[i] / std::sqrt(of_row) / std::sqrt(x.v[i % columns]);
        }
        const double count = static_cast<double>(g.size());
        const double rate = std::fmin(0.03, 1.0 / std::sqrt(x.t)) *
                            std::fmax(1e-3, norm(x.w) / std::sqrt(count)) /
                            std::fmax(1.0, norm(u) / std::sqrt(count));
        for (std::size_t i = 0; i < g.size(); ++i) x.w[i] -= rate * u[i];
    }
};

/// Properties of a format: precision and largest number.
struct format {
    int digits;  // of the significand, the leading one included
    double largest;
};
inline constexpr format float_format{24, 0x1.fffffep127};
inline constexpr format bfloat16_format{8, 0x1.fep127};
inline constexpr format half_format{11, 65504.0};

inline double spacing(const format& of, double x) {
    return std::ldexp(1.0, std::ilogb(std::fmax(std::fabs(x), 1e-30)) + 1 - of.digits);
}

/// Gradients from the least subnormal number of the format to the largest, every so many binades, and both
/// sides of limits.
template <class Gradient>
std::vector<Gradient> magnitudes(int binades) {
    std::vector<Gradient> result;
    const auto add = [&](double x) {
        const auto rounded = static_cast<Gradient>(static_cast<float>(x));
        if (std::isfinite(static_cast<float>(rounded)) && static_cast<float>(rounded) > 0.0F)
            result.push_back(rounded);
    };
    for (int e = -149; e < 128; e += binades) add(std::ldexp(1.25, e));
    add(static_cast<double>(std::numeric_limits<Gradient>::denorm_min()));
    add(static_cast<double>((std::numeric_limits<Gradient>::max)()));
    for (const double x :
         {127.0, 255.75, 256.0, 257.0, 300.0, 6000.0, 7000.0, 32000.0, 1.84e19, 1.9e19, 1.7e38})
        add(x);
    return result;
}

/// Gradient of every step but one: 0.5 to 1.
inline values ordinary(std::size_t size, int step) {
    values g(size);
    for (std::size_t i = 0; i < size; ++i) {
        g[i] = 0.5 + 0.125 * static_cast<double>((3 * i + 2 * static_cast<std::size_t>(step)) % 5);
    }
    return g;
}

}  // namespace recovery
