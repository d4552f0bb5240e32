// SPDX-License-Identifier: MIT
/// \file
/// The numbers of a type as data: range and precision, by which types are ordered at run time.
#pragma once

#include <mp/config.hpp>
#include <mp/numbers/format/basic_float.hpp>
#include <mp/numbers/format/limits.hpp>
#include <mp/numbers/format/operations.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Properties of the numbers of a type.
struct number_facts {
    std::string_view name;
    std::size_t size;
    bool is_reduced;  ///< a format of the library or of the user, not a built-in type
    bool is_double;
    bool has_infinity;
    bool has_nan;
    bool has_signed_zero;
    bool is_signed;
    int precision;
    int quantum_exponent;
    int max_exponent;
    std::uint64_t max_fraction;  ///< of the largest number, as 52 bits after the point
    double largest;              ///< finite number
    double smallest_normal;
    double overflow;  ///< magnitudes from here on do not round to `largest`
    /// False for no_number. (g++ takes a comparison with null for no constant expression under -fsanitize=address.)
    bool is_number = false;
};

/// Whether two records are of the same type. Sources of one program may have records of their own.
[[nodiscard]] MP_ALWAYS_INLINE constexpr bool is_same_type(const number_facts& a, const number_facts& b) {
    // Addresses are a shortcut, and clang rejects the comparison of those of two literals in a constant expression.
    if (!std::is_constant_evaluated() && a.name.data() == b.name.data()) return a.size == b.size;
    return a.size == b.size && a.name == b.name;
}

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The facts of a floating-point type; of long double those that its order by width needs.
template <class Value>
constexpr number_facts facts_of() {
    if constexpr (std::same_as<Value, long double>) {
        number_facts result = facts_of<double>();
        result.name = "long double";
        result.size = sizeof(Value) + 1;  // unlike any other, where it is a double
        result.precision += 64;
        result.quantum_exponent -= 20000;
        result.max_exponent += 20000;
        return result;
    } else {
        using limits = std::numeric_limits<Value>;
        using layout = layout_of<format_of_t<Value>>;
        constexpr auto largest = static_cast<double>((limits::max)());
        double last_bit = 1.0;
        while (last_bit <= largest / 2.0) last_bit *= 2.0;
        for (int i = 1; i < limits::digits; ++i) last_bit /= 2.0;
        return {.name = format_of_t<Value>::name,
                .size = sizeof(Value),
                .is_reduced = reduced<Value>,
                .is_double = std::same_as<Value, double>,
                .has_infinity = layout::has_infinity,
                .has_nan = layout::has_nan,
                .has_signed_zero = layout::has_signed_zero,
                .is_signed = layout::is_signed,
                .precision = layout::precision,
                .quantum_exponent = layout::quantum_exponent,
                .max_exponent = layout::max_exponent,
                .max_fraction = static_cast<std::uint64_t>(layout::max_finite_code & layout::fraction_mask)
                                << (52 - layout::fraction_bits),
                .largest = largest,
                .smallest_normal = static_cast<double>((limits::min)()),
                .overflow = std::same_as<Value, double> ? largest : largest + last_bit / 2.0,
                .is_number = true};
    }
}

template <class Value>
inline constexpr number_facts facts_v = facts_of<Value>();
/// Stands for the facts of a type that is no floating-point type, or of none.
inline constexpr number_facts no_number{};

/// Whether every value of `narrow`, infinities and NaN included, is a value of `wide`. A finite value of `narrow` is a
/// multiple of its quantum with at most `precision` significant bits, so both being at least as fine in `wide`, and its
/// largest finite value at least as large, is enough.
[[nodiscard]] constexpr bool holds_values(const number_facts& wide, const number_facts& narrow) {
    return narrow.precision <= wide.precision && narrow.quantum_exponent >= wide.quantum_exponent &&
           (!narrow.has_infinity || wide.has_infinity) && (!narrow.has_nan || wide.has_nan) &&
           (!narrow.has_signed_zero || wide.has_signed_zero) && (!narrow.is_signed || wide.is_signed) &&
           (narrow.max_exponent < wide.max_exponent ||
            (narrow.max_exponent == wide.max_exponent && narrow.max_fraction <= wide.max_fraction));
}

/// The type among `types`, of which some may be no_number, that holds every value of all the others; else float32;
/// no_number where there is none.
constexpr const number_facts* widest_of(std::span<const number_facts* const> types,
                                        const number_facts& float32) {
    const auto holds_all = [&](const number_facts& wide) {
        for (const number_facts* it : types) {
            if (it->is_number && !is_same_type(wide, *it) && !holds_values(wide, *it)) return false;
        }
        return true;
    };
    bool any = false;
    for (const number_facts* it : types) {
        if (it->is_number && holds_all(*it)) return it;
        any = any || it->is_number;
    }
    return any ? &float32 : &no_number;  // a double would hold all values of the others
}

}}  // namespace mp::detail
