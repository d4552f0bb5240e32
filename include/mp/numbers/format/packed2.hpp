// SPDX-License-Identifier: MIT
/// \file
/// mp::packed2, two neighbouring numbers in one register.
#pragma once

#include <mp/numbers/format/conversion_repairs.hpp>
#include <mp/numbers/format/device.hpp>
#include <mp/numbers/format/operations.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace mp {

/// Two floats, as an unpacked packed2.
struct float_pair {
    float first;
    float second;

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wfloat-equal"  // all members are equal, numbers too
#endif
    friend constexpr bool operator==(const float_pair&, const float_pair&) = default;
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
};

/// Two neighbouring numbers of 8 or 16 bits in one word: what GPUs compute with at twice the rate of single
/// ones.
///
/// Every operation is that of the scalar type on each of the two, with the same bits on the host and on the
/// device (payloads of NaN that come out of arithmetic excepted, as for scalars). For half, and from sm_80 on
/// for bfloat16, + - * fma, minimum and maximum, comparisons and conversions from and to floats are single
/// instructions on a device, and conversions between floats, halves and the 8-bit formats of OCP from sm_89
/// on; everything else is done number by number.
///
/// Memory holds `first()` and then `second()`: an array of Number that begins at a multiple of
/// alignof(packed2<Number>) bytes is an array of packed2<Number>. (As all of the library's arrays in words,
/// that is for little-endian machines.)
///
///     using mp::packed2, mp::half;
///     packed2<half> x(1.5f, 2.5f), y(half{3});       // {1.5, 2.5} and {3, 3}
///     packed2<half> z = mp::fma(x, y, y);            // {7.5, 10.5}
///     float sum = float(z.first()) + float(z.second());
template <reduced Number>
    requires(sizeof(Number) <= 2)
class packed2 {
public:
    using value_type = Number;
    using format = typename Number::format;
    /// The word that holds both.
    using storage = std::conditional_t<sizeof(Number) == 2, std::uint32_t, std::uint16_t>;

    /// Uninitialised, like a built-in number; packed2{} is two zeros.
    packed2() = default;
    MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr packed2(Number first, Number second) noexcept
        : bits_(static_cast<storage>(first.bits() | (std::uint32_t{second.bits()} << width))) {}
    /// The same number twice.
    MP_HOST_DEVICE MP_ALWAYS_INLINE explicit constexpr packed2(Number both) noexcept : packed2(both, both) {}
    /// Rounds each to nearest even once.
    template <std::same_as<float> Float>
    MP_HOST_DEVICE MP_ALWAYS_INLINE explicit constexpr packed2(Float first, Float second) noexcept
        : bits_(from_floats(first, second)) {}
    MP_HOST_DEVICE MP_ALWAYS_INLINE explicit constexpr packed2(float_pair x) noexcept
        : packed2(x.first, x.second) {}
    /// Converts each number, rounding to nearest even once.
    template <class Other>
        requires(!std::same_as<Other, Number>)
    MP_HOST_DEVICE MP_ALWAYS_INLINE explicit constexpr packed2(packed2<Other> x) noexcept
        : bits_(from_pair(x)) {}

    /// The numbers with these bits, the first one in the low half. What lies above the width of a format of 6
    /// or 4 bits is ignored.
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE static constexpr packed2 from_bits(storage bits) noexcept {
        constexpr std::uint32_t code_mask = layout_of<format>::code_mask;
        packed2 result{};
        result.bits_ = static_cast<storage>(bits & (code_mask | (code_mask << width)));
        return result;
    }
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr storage bits() const noexcept { return bits_; }

    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr Number first() const noexcept {
        return element(bits_);
    }
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr Number second() const noexcept {
        return element(std::uint32_t{bits_} >> width);
    }
    /// first() for 0 and second() for 1.
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr Number operator[](int index) const noexcept {
        return element(std::uint32_t{bits_} >> (index * width));
    }
    /// The two the other way round.
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr packed2 swapped() const noexcept {
        return {second(), first()};
    }

    /// Both as floats: exact, as it is for all formats of up to 16 bits that have a name.
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr float_pair floats() const noexcept {
#if MP_DEVICE_CODE
        if constexpr (detail::widens_pairs_by_instruction<format>) {
            if (!__builtin_is_constant_evaluated() && !detail::pair_has_nan<format>(bits_)) {
                float_pair result{};
                detail::device_widen_pair<format>(bits_, result.first, result.second);
                return result;
            }
        }
#endif
        return {static_cast<float>(first()), static_cast<float>(second())};
    }

    MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr packed2 operator+() const noexcept { return *this; }
    MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr packed2 operator-() const noexcept {
        if constexpr (layout_of<format>::has_signed_zero) {
            constexpr std::uint32_t sign = layout_of<format>::sign_mask;
            return from_bits(static_cast<storage>(bits_ ^ (sign | (sign << width))));
        } else {
            return {-first(), -second()};
        }
    }
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE friend constexpr packed2 operator+(packed2 a,
                                                                                     packed2 b) noexcept {
#if MP_DEVICE_CODE
        if constexpr (detail::has_device_instructions<format>) {
            if (!__builtin_is_constant_evaluated())
                return from_bits(detail::device_add<format>(a.bits_, b.bits_));
        }
#endif
        return {a.first() + b.first(), a.second() + b.second()};
    }
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE friend constexpr packed2 operator-(packed2 a,
                                                                                     packed2 b) noexcept {
#if MP_DEVICE_CODE
        if constexpr (detail::has_device_instructions<format>) {
            if (!__builtin_is_constant_evaluated())
                return from_bits(detail::device_subtract<format>(a.bits_, b.bits_));
        }
#endif
        return {a.first() - b.first(), a.second() - b.second()};
    }
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE friend constexpr packed2 operator*(packed2 a,
                                                                                     packed2 b) noexcept {
#if MP_DEVICE_CODE
        if constexpr (detail::has_device_instructions<format>) {
            if (!__builtin_is_constant_evaluated())
                return from_bits(detail::device_multiply<format>(a.bits_, b.bits_));
        }
#endif
        return {a.first() * b.first(), a.second() * b.second()};
    }
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE friend constexpr packed2 operator/(packed2 a,
                                                                                     packed2 b) noexcept {
        return {a.first() / b.first(), a.second() / b.second()};
    }
    MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr packed2& operator+=(packed2 b) noexcept {
        return *this = *this + b;
    }
    MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr packed2& operator-=(packed2 b) noexcept {
        return *this = *this - b;
    }
    MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr packed2& operator*=(packed2 b) noexcept {
        return *this = *this * b;
    }
    MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr packed2& operator/=(packed2 b) noexcept {
        return *this = *this / b;
    }

    /// Whether both numbers are equal to their counterparts, by the scalar comparison: zeros of both signs
    /// are equal, and a NaN is equal to nothing.
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE friend constexpr bool operator==(packed2 a,
                                                                                   packed2 b) noexcept {
        return equal_mask(a, b) == static_cast<storage>(~storage{0});
    }

private:
    template <reduced Other>
        requires(sizeof(Other) <= 2)
    friend class packed2;

    static constexpr int width = static_cast<int>(8 * sizeof(Number));

    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE static constexpr Number element(
        std::uint32_t bits) noexcept {
        return Number::from_bits(static_cast<typename Number::storage>(bits));
    }
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE static constexpr storage from_floats(
        float first, float second) noexcept {
#if MP_DEVICE_CODE
        if constexpr (detail::narrows_by_instruction<format>) {
            if (!__builtin_is_constant_evaluated())
                return static_cast<storage>(detail::device_narrow_pair<format>(first, second));
        }
#endif
        return packed2(Number(first), Number(second)).bits_;
    }

    template <class Other>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE static constexpr storage from_pair(
        packed2<Other> x) noexcept {
#if MP_DEVICE_CODE
        using other = typename Other::format;
        if (!__builtin_is_constant_evaluated()) {
            if constexpr (detail::is_binary16<format> && detail::widens_in_pairs<other>) {
                if (!detail::pair_has_nan<other>(x.bits_))
                    return detail::device_widen_pair_to_binary16<other>(x.bits_);
            } else if constexpr (detail::is_binary16<other> &&
                                 detail::narrows_halves_by_instruction<format>) {
                return static_cast<storage>(detail::device_narrow_halves<format>(x.bits_));
            } else if constexpr (detail::narrows_by_instruction<format> &&
                                 detail::fast_path_in<other, float>) {
                return packed2(x.floats()).bits_;
            }
        }
#endif
        return packed2(Number(x.first()), Number(x.second())).bits_;
    }

    storage bits_;
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// All ones in the places of the numbers for which the relation holds.
template <pair_relation Relation, class Number>
MP_HOST_DEVICE constexpr typename packed2<Number>::storage pair_mask(packed2<Number> a, packed2<Number> b) {
#if MP_DEVICE_CODE
    if constexpr (compares_pairs_by_instruction<typename Number::format>) {
        if (!__builtin_is_constant_evaluated())
            return device_pair_compare<typename Number::format>(a.bits(), b.bits(), Relation);
    }
#endif
    const auto holds = [](Number x, Number y) {
        if constexpr (Relation == pair_relation::equal) return x == y;
        return Relation == pair_relation::less ? x < y : x <= y;
    };
    constexpr int width = static_cast<int>(8 * sizeof(Number));
    constexpr std::uint32_t ones = (std::uint32_t{1} << width) - 1;
    const bool first = holds(a.first(), b.first());
    const bool second = holds(a.second(), b.second());
    return static_cast<typename packed2<Number>::storage>((first ? ones : 0u) |
                                                          (second ? ones << width : 0u));
}

template <class Number>
MP_HOST_DEVICE constexpr packed2<Number> choose_pair(packed2<Number> a, packed2<Number> b, bool smaller,
                                                     nan_rule rule) {
#if MP_DEVICE_CODE
    if constexpr (orders_by_instruction<typename Number::format>) {
        if (!__builtin_is_constant_evaluated()) {
            return packed2<Number>::from_bits(device_choose<typename Number::format>(
                a.bits(), b.bits(), smaller, rule == nan_rule::propagate));
        }
    }
#endif
    return {choose(a.first(), b.first(), smaller, false, rule, projection{}),
            choose(a.second(), b.second(), smaller, false, rule, projection{})};
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// All ones in the places of the numbers for which the relation holds, zeros in the others; see select.
template <class Number>
[[nodiscard]] MP_HOST_DEVICE constexpr typename packed2<Number>::storage equal_mask(
    packed2<Number> a, packed2<Number> b) noexcept {
    return detail::pair_mask<detail::pair_relation::equal>(a, b);
}
template <class Number>
[[nodiscard]] MP_HOST_DEVICE constexpr typename packed2<Number>::storage less_mask(
    packed2<Number> a, packed2<Number> b) noexcept {
    return detail::pair_mask<detail::pair_relation::less>(a, b);
}
template <class Number>
[[nodiscard]] MP_HOST_DEVICE constexpr typename packed2<Number>::storage less_equal_mask(
    packed2<Number> a, packed2<Number> b) noexcept {
    return detail::pair_mask<detail::pair_relation::less_equal>(a, b);
}

/// Where the bits of the mask are ones `yes`, elsewhere `no`:
///
///     packed2<half> relu = mp::select(mp::less_mask(zero, x), x, zero);
template <class Number>
[[nodiscard]] MP_HOST_DEVICE constexpr packed2<Number> select(
    std::type_identity_t<typename packed2<Number>::storage> mask, packed2<Number> yes,
    packed2<Number> no) noexcept {
    const std::uint32_t bits = (yes.bits() & mask) | (no.bits() & ~std::uint32_t{mask});
    return packed2<Number>::from_bits(static_cast<typename packed2<Number>::storage>(bits));
}

/// a * b + c of each, rounded once.
template <class Number>
[[nodiscard]] MP_HOST_DEVICE constexpr packed2<Number> fma(packed2<Number> a, packed2<Number> b,
                                                           packed2<Number> c) noexcept {
#if MP_DEVICE_CODE
    if constexpr (detail::has_device_instructions<typename Number::format>) {
        if (!__builtin_is_constant_evaluated()) {
            return packed2<Number>::from_bits(
                detail::device_multiply_add<typename Number::format>(a.bits(), b.bits(), c.bits()));
        }
    }
#endif
    return {fma(a.first(), b.first(), c.first()), fma(a.second(), b.second(), c.second())};
}
/// The square root of each, rounded once.
template <class Number>
[[nodiscard]] MP_HOST_DEVICE constexpr packed2<Number> sqrt(packed2<Number> a) noexcept {
    return {sqrt(a.first()), sqrt(a.second())};
}
/// The magnitude of each.
template <class Number>
[[nodiscard]] MP_HOST_DEVICE constexpr packed2<Number> fabs(packed2<Number> a) noexcept {
    using layout = typename Number::layout;
    if constexpr (layout::has_signed_zero) {
        constexpr std::uint32_t magnitude = layout::magnitude_mask;
        constexpr std::uint32_t both = magnitude | (magnitude << (8 * sizeof(Number)));
        return packed2<Number>::from_bits(static_cast<typename packed2<Number>::storage>(a.bits() & both));
    } else {
        return {fabs(a.first()), fabs(a.second())};
    }
}

/// The smaller or larger of each two, -0 being smaller than +0. NaN where either is NaN.
template <class Number>
[[nodiscard]] MP_HOST_DEVICE constexpr packed2<Number> minimum(packed2<Number> a,
                                                               packed2<Number> b) noexcept {
    return detail::choose_pair(a, b, true, detail::nan_rule::propagate);
}
template <class Number>
[[nodiscard]] MP_HOST_DEVICE constexpr packed2<Number> maximum(packed2<Number> a,
                                                               packed2<Number> b) noexcept {
    return detail::choose_pair(a, b, false, detail::nan_rule::propagate);
}
/// As minimum(), but a NaN next to a number is ignored.
template <class Number>
[[nodiscard]] MP_HOST_DEVICE constexpr packed2<Number> minimum_number(packed2<Number> a,
                                                                      packed2<Number> b) noexcept {
    return detail::choose_pair(a, b, true, detail::nan_rule::ignore);
}
template <class Number>
[[nodiscard]] MP_HOST_DEVICE constexpr packed2<Number> maximum_number(packed2<Number> a,
                                                                      packed2<Number> b) noexcept {
    return detail::choose_pair(a, b, false, detail::nan_rule::ignore);
}
/// C's names: NaNs are ignored.
template <class Number>
[[nodiscard]] MP_HOST_DEVICE constexpr packed2<Number> fmin(packed2<Number> a, packed2<Number> b) noexcept {
    return minimum_number(a, b);
}
template <class Number>
[[nodiscard]] MP_HOST_DEVICE constexpr packed2<Number> fmax(packed2<Number> a, packed2<Number> b) noexcept {
    return maximum_number(a, b);
}

}}  // namespace mp
