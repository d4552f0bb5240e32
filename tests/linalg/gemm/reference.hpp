// SPDX-License-Identifier: MIT
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/gemm.hpp>
#include <mp/half.hpp>

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <random>
#include <vector>

/// What the tests of the matrix product compare with: values read from bits and rounded by plain double
/// arithmetic, matrices with poisoned surroundings, and the product as its documentation defines it.
namespace reference {

/// A number format, written down by hand.
struct format {
    int exponent_bits;
    int fraction_bits;
    int bias;
    double largest;
    bool has_infinity;
};

template <class Value>
inline constexpr format format_of = {};
template <>
inline constexpr format format_of<mp::half> = {5, 10, 15, 65504.0, true};
template <>
inline constexpr format format_of<mp::bfloat16> = {8, 7, 127, 0x1.FEp127, true};
template <>
inline constexpr format format_of<mp::float8_e4m3fn> = {4, 3, 7, 448.0, false};
template <>
inline constexpr format format_of<mp::float8_e5m2> = {5, 2, 15, 57344.0, true};
template <>
inline constexpr format format_of<float> = {8, 23, 127, FLT_MAX, true};
template <>
inline constexpr format format_of<double> = {11, 52, 1023, DBL_MAX, true};

/// Distance of the numbers of a format around x.
inline double spacing(const format& f, double x) {
    const int smallest = 1 - f.bias;
    const int exponent = x == 0 ? smallest : std::max(std::ilogb(x), smallest);
    return std::ldexp(1.0, exponent - f.fraction_bits);
}

/// x rounded to nearest even; the arithmetic is exact for every x of which it is asked here.
inline double rounded(const format& f, double x) {
    if (std::isnan(x) || std::isinf(x)) {
        return std::isinf(x) && !f.has_infinity ? std::numeric_limits<double>::quiet_NaN() : x;
    }
    const double unit = spacing(f, x);
    const double result = std::nearbyint(x / unit) * unit;
    if (std::fabs(result) <= f.largest) return result;
    return f.has_infinity ? std::copysign(std::numeric_limits<double>::infinity(), x)
                          : std::numeric_limits<double>::quiet_NaN();
}

template <class Value>
double value_of(Value x) {
    if constexpr (std::is_floating_point_v<Value>) {
        return static_cast<double>(x);
    } else {
        constexpr format f = format_of<Value>;
        const unsigned bits = x.bits();
        const unsigned fraction = bits & ((1U << f.fraction_bits) - 1U);
        const int exponent = static_cast<int>(bits >> f.fraction_bits & ((1U << f.exponent_bits) - 1U));
        const bool top = exponent == (1 << f.exponent_bits) - 1;
        double magnitude = 0;
        if (f.has_infinity && top) {
            magnitude = fraction == 0 ? std::numeric_limits<double>::infinity()
                                      : std::numeric_limits<double>::quiet_NaN();
        } else if (!f.has_infinity && top && fraction == (1U << f.fraction_bits) - 1U) {
            magnitude = std::numeric_limits<double>::quiet_NaN();
        } else {
            const unsigned hidden = exponent == 0 ? 0U : 1U << f.fraction_bits;
            magnitude = std::ldexp(static_cast<double>(fraction + hidden),
                                   std::max(exponent, 1) - f.bias - f.fraction_bits);
        }
        return bits >> (f.exponent_bits + f.fraction_bits) & 1U ? -magnitude : magnitude;
    }
}

/// The number of type Value that has this value exactly.
template <class Value>
Value number(double x) {
    if constexpr (std::is_floating_point_v<Value>) {
        return static_cast<Value>(x);
    } else {
        constexpr format f = format_of<Value>;
        const double magnitude = std::fabs(x);
        unsigned bits = std::signbit(x) ? 1U << (f.exponent_bits + f.fraction_bits) : 0U;
        if (std::isnan(x)) {
            bits |= (1U << (f.exponent_bits + f.fraction_bits)) - 1U;
        } else if (std::isinf(x)) {
            bits |= ((1U << f.exponent_bits) - 1U) << f.fraction_bits;
        } else {
            const auto steps = static_cast<unsigned>(magnitude / spacing(f, magnitude));
            const int exponent = magnitude == 0 ? 0 : std::max(std::ilogb(magnitude) + f.bias, 1);
            // The hidden bit in `steps` carries into the exponent field.
            bits |= steps + (static_cast<unsigned>(std::max(exponent - 1, 0)) << f.fraction_bits);
        }
        return Value::from_bits(static_cast<typename Value::storage>(bits));
    }
}

inline bool same_value(double a, double b) {
    return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

using generator = std::mt19937;

inline std::ptrdiff_t random_size(generator& random, std::ptrdiff_t low, std::ptrdiff_t high) {
    return std::uniform_int_distribution<std::ptrdiff_t>(low, high)(random);
}

/// What a test does with a matrix whatever the type of its elements; the values are doubles.
class any_matrix {
public:
    any_matrix() = default;
    any_matrix(const any_matrix&) = delete;
    any_matrix& operator=(const any_matrix&) = delete;
    virtual ~any_matrix() = default;

    [[nodiscard]] virtual std::ptrdiff_t rows() const = 0;
    [[nodiscard]] virtual std::ptrdiff_t columns() const = 0;
    [[nodiscard]] virtual double get(std::ptrdiff_t r, std::ptrdiff_t c) = 0;
    /// Stores the value rounded to nearest even.
    virtual void set(std::ptrdiff_t r, std::ptrdiff_t c, double value) = 0;
    /// Whether every byte that is not part of an element still is what it was at the beginning.
    [[nodiscard]] virtual bool surroundings_untouched() = 0;

    template <class Draw>
    void fill(Draw draw) {
        for (std::ptrdiff_t r = 0; r < rows(); ++r) {
            for (std::ptrdiff_t c = 0; c < columns(); ++c) set(r, c, draw());
        }
    }
    /// Values of both signs over eight binades around one.
    void fill_random(generator& random) {
        fill([&] {
            const auto bits = static_cast<std::int32_t>(random());
            return std::ldexp(static_cast<double>(bits >> 3), -28 - 4 + (bits & 7));
        });
    }
    /// Integers from -limit to limit.
    void fill_integers(generator& random, int limit) {
        fill([&] { return std::uniform_int_distribution<int>(-limit, limit)(random); });
    }

    /// The elements, row after row.
    [[nodiscard]] std::vector<double> values() {
        std::vector<double> result;
        for (std::ptrdiff_t r = 0; r < rows(); ++r) {
            for (std::ptrdiff_t c = 0; c < columns(); ++c) result.push_back(get(r, c));
        }
        return result;
    }
};

/// A matrix in a buffer of its own, with padding between the lines, at an odd alignment, everything around
/// the elements filled with bytes that make a NaN in every format.
template <class Value>
class matrix : public any_matrix {
public:
    matrix(std::ptrdiff_t rows, std::ptrdiff_t columns, mp::storage_order order, std::ptrdiff_t padding)
        : rows_(rows),
          columns_(columns),
          order_(order),
          leading_(padding + (order == mp::storage_order::row_major ? columns : rows)),
          bytes_((front + static_cast<std::size_t>(
                              leading_ * (order == mp::storage_order::row_major ? rows : columns))) *
                         sizeof(Value) +
                     back,
                 std::byte{0x7F}) {
        for (std::ptrdiff_t r = 0; r < rows; ++r) {
            for (std::ptrdiff_t c = 0; c < columns; ++c) view()(r, c) = Value{};
        }
    }

    [[nodiscard]] mp::matrix_view<Value> view() {
        return {reinterpret_cast<Value*>(bytes_.data() + front * sizeof(Value)), rows_, columns_, leading_,
                order_};
    }
    [[nodiscard]] std::ptrdiff_t rows() const override { return rows_; }
    [[nodiscard]] std::ptrdiff_t columns() const override { return columns_; }
    [[nodiscard]] double get(std::ptrdiff_t r, std::ptrdiff_t c) override { return value_of(view()(r, c)); }
    void set(std::ptrdiff_t r, std::ptrdiff_t c, double value) override {
        view()(r, c) = number<Value>(rounded(format_of<Value>, value));
    }

    [[nodiscard]] bool surroundings_untouched() override {
        std::vector<std::byte> copy = bytes_;
        for (std::ptrdiff_t r = 0; r < rows_; ++r) {
            for (std::ptrdiff_t c = 0; c < columns_; ++c) {
                const auto place = reinterpret_cast<std::byte*>(&view()(r, c)) - bytes_.data();
                std::fill_n(copy.begin() + place, sizeof(Value), std::byte{0x7F});
            }
        }
        return std::all_of(copy.begin(), copy.end(), [](std::byte b) { return b == std::byte{0x7F}; });
    }
    [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

private:
    static constexpr std::size_t front = 3;  // elements, so that nothing is aligned to more than an element
    static constexpr std::size_t back = 64;

    std::ptrdiff_t rows_;
    std::ptrdiff_t columns_;
    mp::storage_order order_;
    std::ptrdiff_t leading_;
    std::vector<std::byte> bytes_;
};

/// a * b + sum in float, with one rounding or with two. The volatile keeps the compiler from choosing.
inline float step(float a, float b, float sum, bool fused) {
    if (fused) return std::fma(a, b, sum);
    const volatile float product = a * b;
    return product + sum;
}

/// Every instruction set that this processor has, in both orders of accumulation.
inline std::vector<mp::cpu> executors() {
    std::vector<mp::cpu> result;
    for (int isa = 0; isa <= static_cast<int>(mp::processor_instruction_set()); ++isa) {
        if (!mp::processor_has(static_cast<mp::instruction_set>(isa))) continue;
        for (const auto order : {mp::accumulation::fastest, mp::accumulation::ordered}) {
            result.push_back(
                {.threads = 1, .instructions = static_cast<mp::instruction_set>(isa), .products = order});
        }
    }
    return result;
}

/// Those of them that use different kernels for these types.
template <class A, class B>
std::vector<mp::cpu> executors_of_kernels() {
    std::vector<mp::cpu> result;
    for (const mp::cpu exec : executors()) {
        const auto same = [&](mp::cpu other) {
            return mp::gemm_kernel_name<A, B>(other) == mp::gemm_kernel_name<A, B>(exec);
        };
        if (std::none_of(result.begin(), result.end(), same)) result.push_back(exec);
    }
    return result;
}

/// Whether products of floats fuse multiplication and addition on this executor: (1 + 2^-12)^2 - 1 keeps its
/// last bit 2^-24 only if they do.
inline bool fuses(mp::cpu exec) {
    const float a[2] = {-1.0F, 1.0F + 0x1p-12F};
    const float b[2] = {1.0F, 1.0F + 0x1p-12F};
    float c = 0;
    mp::gemm(exec, 1.0F, mp::row_major(a, 1, 2), mp::column_major(b, 2, 1), 0.0F, mp::row_major(&c, 1, 1));
    return c != 0x1p-11F;
}

/// In how many sums mp::gemm documents to add up an element: one over ascending k, or, where the operands suit
/// dot products, one for each k of so many.
inline std::ptrdiff_t documented_sums(mp::cpu exec, std::ptrdiff_t rows, std::ptrdiff_t columns,
                                      std::ptrdiff_t k, mp::storage_order a_order,
                                      mp::storage_order b_order) {
    const mp::instruction_set isa =
        exec.instructions == mp::instruction_set::best ? mp::best_instruction_set() : exec.instructions;
    const bool has_vectors = isa != mp::instruction_set::portable;
    if (exec.products == mp::accumulation::ordered || !has_vectors || k < 32) return 1;
    if (rows <= 16 && b_order == mp::storage_order::column_major && columns * k >= 8192)
        return rows == 1 ? 32 : 16;
    if (columns <= 16 && a_order == mp::storage_order::row_major && rows * k >= 8192)
        return columns == 1 ? 32 : 16;
    return 1;
}

/// The sum of some elements as a tree: the first half of them and the second one, element by element.
inline float sum_of_tree(std::vector<float> sums) {
    for (std::size_t half = sums.size() / 2; half > 0; half /= 2) {
        for (std::size_t i = 0; i < half; ++i) sums[i] = sums[i] + sums[i + half];
    }
    return sums[0];
}

/// alpha * a b + beta * c as mp::gemm documents it, in float: the sum over ascending k from zero, or `sums`
/// such sums as a tree, and both products exact before the last rounding.
inline std::vector<float> documented_product(const std::vector<double>& a, const std::vector<double>& b,
                                             const std::vector<double>& c, std::ptrdiff_t rows,
                                             std::ptrdiff_t columns, float alpha, float beta, bool fused,
                                             std::ptrdiff_t sums_of_element = 1) {
    const std::ptrdiff_t k = rows == 0 ? 0 : static_cast<std::ptrdiff_t>(a.size()) / rows;
    std::vector<float> result(static_cast<std::size_t>(rows * columns));
    for (std::ptrdiff_t r = 0; r < rows; ++r) {
        std::vector<std::vector<float>> all(static_cast<std::size_t>(sums_of_element),
                                            std::vector<float>(static_cast<std::size_t>(columns)));
        for (std::ptrdiff_t p = 0; p < k; ++p) {
            std::vector<float>& sums = all[static_cast<std::size_t>(p % sums_of_element)];
            const auto operand = static_cast<float>(a[static_cast<std::size_t>(r * k + p)]);
            const double* const b_row = b.data() + p * columns;
            for (std::size_t j = 0; j < sums.size(); ++j) {
                sums[j] = step(operand, static_cast<float>(b_row[j]), sums[j], fused);
            }
        }
        for (std::ptrdiff_t j = 0; j < columns; ++j) {
            const auto place = static_cast<std::size_t>(r * columns + j);
            std::vector<float> of_element;
            for (const std::vector<float>& sums : all)
                of_element.push_back(sums[static_cast<std::size_t>(j)]);
            const float sum = sum_of_tree(of_element);
            const double product = static_cast<double>(alpha) * static_cast<double>(sum);
            const double kept =
                beta == 0 ? 0 : static_cast<double>(beta) * static_cast<double>(static_cast<float>(c[place]));
            if (alpha == 0 || k == 0) {
                result[place] = static_cast<float>(kept);
            } else {
                result[place] = static_cast<float>(beta == 0 ? product : product + kept);
            }
        }
    }
    return result;
}

}  // namespace reference
