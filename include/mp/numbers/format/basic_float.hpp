// SPDX-License-Identifier: MIT
/// \file
/// mp::basic_float, the class template behind every number type of the library.
#pragma once

#include <mp/numbers/format/mixed_operands.hpp>

#include <compare>

namespace mp {

template <format_descriptor Format>
class basic_float;

namespace detail { inline namespace MP_ISA_NAMESPACE {
template <class T>
inline constexpr bool is_basic_float = false;
template <class Format>
inline constexpr bool is_basic_float<basic_float<Format>> = true;

/// What the compiler's message says when a number would silently lose its fraction: an integer has to be
/// asked for, by static_cast<int>(h) toward zero, or in any direction by mp::round_to_integer<int>(h, {...}).
struct write_static_cast_or_round_to_integer;
template <class Integer, bool ConvertsSilently>
using advice_for =
    std::enable_if_t<integer<Integer> && ConvertsSilently, write_static_cast_or_round_to_integer>;
/// The same where a number would become a bool that is not a condition.
struct compare_with_zero_or_write_static_cast;
template <class Truth, bool ConvertsSilently>
using advice_for_bool =
    std::enable_if_t<std::same_as<Truth, bool> && ConvertsSilently, compare_with_zero_or_write_static_cast>;
/// Satisfied by the integers, and more special than integer, so that a template for these wins.
template <class T>
concept integer_asked_for = integer<T> && !std::is_class_v<T>;

/// Specialised in mp/frontends/interop/ for classes of other libraries that numbers convert to and from explicitly:
/// `template <class Number> static Number to(const Foreign&)` and `static Foreign from(Number)`.
template <class Foreign>
struct foreign_conversion {
    static constexpr bool is_known = false;
};
template <class T>
concept foreign_number = std::is_class_v<T> && foreign_conversion<T>::is_known;
}}  // namespace detail

/// A number type of this library: a specialisation of basic_float.
template <class T>
concept reduced = detail::is_basic_float<std::remove_cv_t<T>>;

/// Any number that bulk algorithms take: a reduced one, float or double.
template <class T>
concept number =
    reduced<T> || std::same_as<std::remove_cv_t<T>, float> || std::same_as<std::remove_cv_t<T>, double>;

/// A binary floating-point number of the given format, as small as its bits.
///
/// Every operation returns the exact mathematical result rounded once, to nearest even, with gradual
/// underflow; overflow gives infinity (NaN in a format without infinities; in those of IEEE P3109 the
/// largest finite number, see docs/p3109.md). Other roundings and saturation
/// are explicit: round_to, add, multiply and so on take a projection. Everything is constexpr, usable on host
/// and device, free of global state, and never throws; the floating-point environment is neither read nor
/// changed by constant expressions, and its flags carry no meaning for these types.
///
/// Conversion to float is implicit where it is exact, which it is for all formats that have a name; all
/// others are explicit, and those to integers do not compile unless asked for. Arithmetic with an integer
/// operand stays in the format, with a float or double it happens in float or double, comparisons are by the
/// exact values of both sides, and compound assignment rounds once to the left side: see mixed_operators.hpp,
/// and docs/numbers.md for all of it in one table. Two different reduced formats do not mix.
///
///     mp::half x{0.1f}, y{3};
///     mp::half z = x * y + 1;                   // each operation rounded once to half
///     float f = z + 1.0f;                       // float arithmetic
///     z += 0.1f;                                // exact sum, rounded once to half
///     mp::bfloat16 b{z};                        // explicit, rounded once
///     int i = static_cast<int>(z);              // explicit, toward zero
template <format_descriptor Format>
class basic_float {
    static_assert(layout_of<Format>::width <= 32, "mp: formats of up to 32 bits are supported");
    static_assert(layout_of<Format>::fraction_bits <= 30, "mp: formats have at most 30 fraction bits");
    static_assert(layout_of<Format>::quantum_exponent > -33000 && (layout_of<Format>::max_exponent < 33000),
                  "mp: the exponents of a format lie between -33000 and 33000");

public:
    /// The descriptor, the constants that follow from it, and the integer that holds the bits.
    using format = Format;
    using layout = layout_of<Format>;
    using storage = typename layout::storage;
    /// Whether a float holds every number of the format.
    static constexpr bool converts_silently = detail::exactly_representable_in<Format, float>;

    /// Uninitialised, like a built-in number; basic_float{} is zero.
    basic_float() = default;

    /// The number with these bits; every pattern is valid.
    /// What lies above the format's width is ignored.
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE static constexpr basic_float from_bits(
        storage bits) noexcept {
        basic_float result{};
        result.bits_ = contained(static_cast<storage>(bits & layout::code_mask));
        return result;
    }

    /// The bits of this number, in the lowest layout::width bits. (In memory those of tfloat32 are the
    /// highest bits of 32, so that it has the bytes of a float; bits() does not show that.)
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr storage bits() const noexcept {
        return static_cast<storage>(bits_ >> layout::container_shift);
    }

    /// Rounds to nearest even once, from a built-in floating-point number or an integer.
    MP_HOST_DEVICE MP_ALWAYS_INLINE explicit constexpr basic_float(float x) noexcept
        : bits_(contained(detail::from_native<Format>(x, projection{}))) {}
    MP_HOST_DEVICE MP_ALWAYS_INLINE explicit constexpr basic_float(double x) noexcept
        : bits_(contained(detail::from_native<Format>(x, projection{}))) {}
    template <detail::host_float Native>
    MP_ALWAYS_INLINE explicit constexpr basic_float(Native x) noexcept
        : bits_(contained(detail::from_host_float<Format>(x, projection{}))) {}
    template <detail::integer Integer>
    MP_HOST_DEVICE MP_ALWAYS_INLINE explicit constexpr basic_float(Integer x) noexcept
        : bits_(contained(detail::from_integer<Format>(x, projection{}))) {}
    /// From a number of another library that mp/frontends/interop/ knows.
    template <detail::foreign_number Foreign>
    MP_ALWAYS_INLINE explicit basic_float(const Foreign& x)
        : basic_float(detail::foreign_conversion<Foreign>::template to<basic_float>(x)) {}
    /// An unscoped enumeration is the integer that it converts to; a scoped one is no number.
    template <detail::unscoped_enum Enum>
    MP_HOST_DEVICE MP_ALWAYS_INLINE explicit constexpr basic_float(Enum x) noexcept
        : basic_float(detail::integer_of(x)) {}
    /// True is one and false is zero.
    MP_HOST_DEVICE MP_ALWAYS_INLINE explicit constexpr basic_float(bool x) noexcept
        : basic_float(x ? 1.0f : 0.0f) {}
    /// Rounds to nearest even once, from a number of another format.
    template <class Other>
        requires(!std::same_as<Other, Format>)
    MP_HOST_DEVICE MP_ALWAYS_INLINE explicit constexpr basic_float(basic_float<Other> x) noexcept
        : bits_(contained(detail::from_number<Format, Other>(x.bits(), projection{}))) {}

    /// Exact, except for formats that have more precision or range than the type; then rounded to nearest even.
    MP_HOST_DEVICE MP_ALWAYS_INLINE explicit(!converts_silently) constexpr operator float() const noexcept {
        return detail::to_float<Format>(bits());
    }
    MP_HOST_DEVICE MP_ALWAYS_INLINE explicit constexpr operator double() const noexcept {
        return detail::to_double<Format>(bits());
    }
    /// To long double, and to the compiler's _Float16, __bf16 and __float128 where it has them.
    template <detail::host_float Native>
    MP_ALWAYS_INLINE explicit constexpr operator Native() const noexcept {
        return detail::to_host_float<Native, Format>(bits());
    }
    /// To a number of another library that mp/frontends/interop/ knows.
    template <detail::foreign_number Foreign>
    MP_ALWAYS_INLINE explicit operator Foreign() const {
        return detail::foreign_conversion<Foreign>::from(*this);
    }
    /// Toward zero; out of range saturates and NaN gives zero.
    template <detail::integer_asked_for Integer, class Advice = void>
    MP_HOST_DEVICE MP_ALWAYS_INLINE explicit constexpr operator Integer() const noexcept {
        return detail::to_integer<Integer, Format>(bits());
    }
    /// Not silently, by way of float: `c ? h : 0` would be an int.
    template <detail::integer Integer, class Advice = detail::advice_for<Integer, converts_silently>>
    constexpr operator Integer() const = delete;  // mp: write static_cast<int>(h), or mp::round_to_integer
    template <std::same_as<bool> Truth, class Advice = detail::advice_for_bool<Truth, converts_silently>>
    constexpr operator Truth() const = delete;  // mp: compare with zero, or write static_cast<bool>(h)
    /// Whether this is not zero; NaN is not zero. Conditions take a number by themselves, `if (h)`; bool x =
    /// h would, by way of float, and so would `c ? h : false`, so these do not compile.
    MP_HOST_DEVICE MP_ALWAYS_INLINE explicit constexpr operator bool() const noexcept {
        return detail::categorize<Format>(bits()) != detail::category::zero;
    }

    MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr basic_float operator+() const noexcept { return *this; }
    MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr basic_float operator-() const noexcept {
        return from_bits(detail::negate_bits<Format>(bits()));
    }
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE friend constexpr basic_float operator+(
        basic_float a, basic_float b) noexcept {
        return from_bits(detail::add_nearest<Format>(a.bits(), b.bits()));
    }
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE friend constexpr basic_float operator-(
        basic_float a, basic_float b) noexcept {
        return from_bits(detail::subtract_nearest<Format>(a.bits(), b.bits()));
    }
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE friend constexpr basic_float operator*(
        basic_float a, basic_float b) noexcept {
        return from_bits(detail::multiply_nearest<Format>(a.bits(), b.bits()));
    }
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE friend constexpr basic_float operator/(
        basic_float a, basic_float b) noexcept {
        return from_bits(detail::divide_nearest<Format>(a.bits(), b.bits()));
    }
    MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr basic_float& operator+=(basic_float b) noexcept {
        return *this = *this + b;
    }
    MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr basic_float& operator-=(basic_float b) noexcept {
        return *this = *this - b;
    }
    MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr basic_float& operator*=(basic_float b) noexcept {
        return *this = *this * b;
    }
    MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr basic_float& operator/=(basic_float b) noexcept {
        return *this = *this / b;
    }
    MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr basic_float& operator++() noexcept {
        return *this += basic_float(1.0f);
    }
    MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr basic_float& operator--() noexcept {
        return *this -= basic_float(1.0f);
    }
    MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr basic_float operator++(int) noexcept {
        const basic_float before = *this;
        ++*this;
        return before;
    }
    MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr basic_float operator--(int) noexcept {
        const basic_float before = *this;
        --*this;
        return before;
    }

    /// Comparisons are IEEE 754's, on bits: zeros of both signs are equal, NaN is unordered with everything.
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE friend constexpr bool operator==(basic_float a,
                                                                                   basic_float b) noexcept {
#if MP_DEVICE_CODE
        if constexpr (detail::compares_by_instruction<Format>) {
            if (!__builtin_is_constant_evaluated()) return detail::device_equal<Format>(a.bits(), b.bits());
        }
#endif
        const bool equal = a.order_key() == b.order_key();
        return are_ordered(a, b) & equal;
    }
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE friend constexpr bool operator<(basic_float a,
                                                                                  basic_float b) noexcept {
#if MP_DEVICE_CODE
        if constexpr (detail::compares_by_instruction<Format>) {
            if (!__builtin_is_constant_evaluated()) return detail::device_less<Format>(a.bits(), b.bits());
        }
#endif
        const bool less = a.order_key() < b.order_key();
        return are_ordered(a, b) & less;
    }
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE friend constexpr bool operator>(basic_float a,
                                                                                  basic_float b) noexcept {
        return b < a;
    }
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE friend constexpr bool operator<=(basic_float a,
                                                                                   basic_float b) noexcept {
#if MP_DEVICE_CODE
        if constexpr (detail::compares_by_instruction<Format>) {
            if (!__builtin_is_constant_evaluated())
                return detail::device_less_equal<Format>(a.bits(), b.bits());
        }
#endif
        const bool not_greater = a.order_key() <= b.order_key();
        return are_ordered(a, b) & not_greater;
    }
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE friend constexpr bool operator>=(basic_float a,
                                                                                   basic_float b) noexcept {
        return b <= a;
    }
    [[nodiscard]] MP_ALWAYS_INLINE friend constexpr std::partial_ordering operator<=>(
        basic_float a, basic_float b) noexcept {
        if (!are_ordered(a, b)) return std::partial_ordering::unordered;
        return a.order_key() <=> b.order_key();
    }

private:
    // The following have no branches, for a loop over comparisons of unpredictable numbers.
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr bool is_nan() const noexcept {
        if constexpr (!layout::has_nan) return false;
        if constexpr (Format::nans == nan_encoding::negative_zero) return bits() == layout::nan_code;
        return (bits() & layout::magnitude_mask) >
               (layout::has_infinity ? layout::infinity_code : layout::max_finite_code);
    }
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE static constexpr bool are_ordered(basic_float a,
                                                                                    basic_float b) noexcept {
        const bool a_is_nan = a.is_nan();
        const bool b_is_nan = b.is_nan();
        return !(a_is_nan | b_is_nan);
    }
    /// An integer that orders like the values: the magnitude code with the sign of the number.
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr auto order_key() const noexcept {
        using key = std::conditional_t<(layout::width < 32), std::int32_t, std::int64_t>;
        const auto magnitude = static_cast<key>(bits() & layout::magnitude_mask);
        const auto all_ones_if_negative =
            static_cast<key>(-static_cast<key>(detail::is_negative<Format>(bits())));
        return static_cast<key>((magnitude ^ all_ones_if_negative) - all_ones_if_negative);
    }

    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE static constexpr storage contained(storage code) noexcept {
        return static_cast<storage>(code << layout::container_shift);
    }

    storage bits_;
};

// Two reduced formats do not mix silently: neither holds the other's numbers in general. Convert one of them,
// or both to float.
template <class A, class B>
    requires(!std::same_as<A, B>)
void operator+(basic_float<A>, basic_float<B>) = delete;
template <class A, class B>
    requires(!std::same_as<A, B>)
void operator-(basic_float<A>, basic_float<B>) = delete;
template <class A, class B>
    requires(!std::same_as<A, B>)
void operator*(basic_float<A>, basic_float<B>) = delete;
template <class A, class B>
    requires(!std::same_as<A, B>)
void operator/(basic_float<A>, basic_float<B>) = delete;
template <class A, class B>
    requires(!std::same_as<A, B>)
void operator==(basic_float<A>, basic_float<B>) = delete;
template <class A, class B>
    requires(!std::same_as<A, B>)
void operator<=>(basic_float<A>, basic_float<B>) = delete;

}  // namespace mp

#include <mp/numbers/format/mixed_operators.hpp>

// Reduced numbers, float and double under one view: their descriptor and their bits.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class T>
struct format_of;
template <class Format>
struct format_of<basic_float<Format>> {
    using type = Format;
};
template <>
struct format_of<float> : native_format<float> {};
template <>
struct format_of<double> : native_format<double> {};

template <class T>
using format_of_t = typename format_of<std::remove_cv_t<T>>::type;

/// The bits of any number, float and double included.
template <number T>
MP_HOST_DEVICE constexpr storage_of<format_of_t<T>> bits_of(T x) noexcept {
    if constexpr (reduced<T>) {
        return x.bits();
    } else {
        return bit_cast<storage_of<format_of_t<T>>>(x);
    }
}

/// The number with the given bits, float and double included.
template <number T>
MP_HOST_DEVICE constexpr T number_from_bits(storage_of<format_of_t<T>> bits) noexcept {
    if constexpr (reduced<T>) {
        return T::from_bits(bits);
    } else {
        return bit_cast<T>(bits);
    }
}

}}  // namespace mp::detail
