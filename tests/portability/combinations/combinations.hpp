// SPDX-License-Identifier: MIT
// Digests of what calls compute in combinations of element types, shapes, storage orders, policies and executors. Two
// versions of the library agree where their lists do.
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/convert.hpp>
#include <mp/executor.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/matrix_view.hpp>
#include <mp/tfloat32.hpp>

#include "portability/checksums.hpp"

#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace portability {

/// A format that the library does not name, as users define it.
struct custom_format {
    static constexpr const char* name = "custom";
    static constexpr int exponent_bits = 6;
    static constexpr int fraction_bits = 6;
    static constexpr int bias = 31;
    static constexpr bool is_signed = true;
    static constexpr bool has_infinity = true;
    static constexpr mp::nan_encoding nans = mp::nan_encoding::ieee;
};
using custom_float = mp::basic_float<custom_format>;

/// Digests by name: those that are the same on every processor, and those that depend on the processor.
class combinations {
public:
    /// \param shown  prefix of the names whose cases are printed one by one; null: none
    explicit combinations(const char* shown = nullptr) : shown_(shown) {}

    /// Adds one result, which consists of these values.
    template <class... Values>
    void add(const std::string& name, const Values&... values) {
        add_to(everywhere_, name, values...);
    }
    template <class... Values>
    void add_local(const std::string& name, const Values&... values) {
        add_to(local_, name, values...);
    }

    [[nodiscard]] const std::map<std::string, checksum>& everywhere() const { return everywhere_; }
    [[nodiscard]] const std::map<std::string, checksum>& local() const { return local_; }
    [[nodiscard]] std::size_t count() const { return count_; }

private:
    template <class... Values>
    void add_to(std::map<std::string, checksum>& sums, const std::string& name, const Values&... values) {
        checksum one;
        (one.add(values), ...);
        sums[name].add_word(one.value());
        ++count_;
        if (shown_ != nullptr && name.starts_with(shown_)) {
            std::printf("%s #%zu %016" PRIx64 "\n", name.c_str(), count_, one.value());
        }
    }

    const char* shown_;
    std::map<std::string, checksum> everywhere_;
    std::map<std::string, checksum> local_;
    std::size_t count_ = 0;
};

template <class T>
std::string type_name() {
    if constexpr (std::is_same_v<T, float>) {
        return "float";
    } else if constexpr (std::is_same_v<T, double>) {
        return "double";
    } else if constexpr (std::is_same_v<T, std::int8_t>) {
        return "int8";
    } else {
        return T::format::name;
    }
}
template <class... T>
std::string type_names() {
    std::string result;
    ((result += (result.empty() ? "" : "_") + type_name<T>()), ...);
    return result;
}

inline constexpr std::size_t supply_size = 20'000;

/// Moderate numbers of a type; where `special`, infinities, NaN, subnormal and large numbers are among them.
template <class T>
const std::vector<T>& supply(bool special) {
    const auto make = [](bool with_special) {
        std::vector<T> result(supply_size);
        if constexpr (std::is_same_v<T, std::int8_t>) {
            generator random(with_special ? 5 : 6);
            for (T& x : result) x = static_cast<T>(random.next());
        } else {
            std::vector<float> floats = plain_floats(result.size(), 7, 120, 9);
            constexpr std::uint32_t bits[] = {0x7f800000U, 0xff800000U, 0x7fc00000U, 0x00000001U,
                                              0x80012345U, 0x7149f2caU, 0x33800000U, 0x80000000U};
            for (std::size_t i = 5; with_special && i < floats.size(); i += 101) {
                std::memcpy(&floats[i], &bits[i / 101 % std::size(bits)], sizeof bits[0]);
            }
            mp::convert(mp::cpu{1, mp::instruction_set::portable}, floats, result);
        }
        return result;
    };
    static const std::vector<T> of_kind[] = {make(false), make(true)};
    return of_kind[special ? 1 : 0];
}

template <class T>
std::vector<T> numbers(std::size_t count, std::size_t seed, bool special = false) {
    const std::vector<T>& from = supply<T>(special);
    std::vector<T> result(count);
    std::size_t at = seed * 997 % from.size();
    for (T& x : result) {
        x = from[at];
        if (++at == from.size()) at = 0;
    }
    return result;
}

/// A matrix in either storage order, with padding after each row or column.
template <class T>
struct stored_matrix {
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    mp::storage_order order;
    std::ptrdiff_t leading_dimension;
    std::vector<T> values;

    stored_matrix(std::ptrdiff_t height, std::ptrdiff_t width, bool by_column, std::ptrdiff_t padding,
                  std::size_t seed, bool special = false)
        : rows(height),
          columns(width),
          order(by_column ? mp::storage_order::column_major : mp::storage_order::row_major),
          leading_dimension((by_column ? height : width) + padding),
          values(numbers<T>(static_cast<std::size_t>((by_column ? width : height) * leading_dimension), seed,
                            special)) {}

    [[nodiscard]] mp::matrix_view<T> view() {
        return {values.data(), rows, columns, leading_dimension, order};
    }
    [[nodiscard]] mp::matrix_view<const T> view() const {
        return {values.data(), rows, columns, leading_dimension, order};
    }
};

/// Calls f, which adds results, and adds the message of the error that it throws, if any.
template <class Function>
void add_outcome(combinations& to, const std::string& name, const Function& f) {
    try {
        f();
    } catch (const std::exception& error) {
        to.add(name, std::string_view(error.what()));
    }
}

void add_product_combinations(combinations& to);
void add_epilogue_combinations(combinations& to);
void add_product_kind_combinations(combinations& to);
void add_conversions_from_wide(combinations& to);
void add_conversions_from_float8(combinations& to);
void add_conversions_from_narrow(combinations& to);
void add_optimizer_combinations(combinations& to);
void add_op_product_combinations(combinations& to);
void add_elementwise_op_combinations(combinations& to);
void add_row_op_combinations(combinations& to);
void add_layer_op_combinations(combinations& to);

}  // namespace portability
