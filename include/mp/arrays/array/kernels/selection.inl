// SPDX-License-Identifier: MIT
// Codes as they lie in memory, as many in a vector as fit. What is said of codes holds for those of tfloat32
// too, which lie in the highest bits of 32: all constants are moved with them.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

template <class Value>
struct code_vectors {
    using layout = layout_of<format_of_t<Value>>;
    using code = typename layout::storage;
    using signed_code = std::make_signed_t<code>;
    // NOLINTBEGIN(modernize-use-using): attributes of an alias would be those of the element
    typedef code vector __attribute__((vector_size(vector_bytes)));
    typedef signed_code signed_vector __attribute__((vector_size(vector_bytes)));
    // NOLINTEND(modernize-use-using)
    static constexpr std::size_t count = vector_bytes / sizeof(code);

    static constexpr code contained(code x) { return static_cast<code>(x << layout::container_shift); }
    static constexpr code sign_mask = contained(layout::sign_mask);
    static constexpr code magnitude_mask = contained(layout::magnitude_mask);
    static constexpr bool has_nan = layout::has_nan;
    static constexpr bool nan_is_negative_zero = format_of_t<Value>::nans == nan_encoding::negative_zero;
    static constexpr code last_number =
        contained(layout::has_infinity ? layout::infinity_code : layout::max_finite_code);
    static constexpr code nan_code = contained(layout::nan_code);
    static constexpr code quiet_bit =
        format_of_t<Value>::nans == nan_encoding::ieee ? contained(layout::quiet_bit) : code{0};
};

template <class Value>
MP_ALWAYS_INLINE auto load_codes(const Value* from) {
    typename code_vectors<Value>::vector x;
    std::memcpy(&x, from, sizeof x);
    return x;
}
template <class Value>
MP_ALWAYS_INLINE auto load_codes(broadcast_value<Value> operand) {
    using of = code_vectors<Value>;
    return typename of::vector{} + of::contained(bits_of(operand.value));
}

/// All ones in the lanes that are NaN.
template <class Value, class Vector>
MP_ALWAYS_INLINE Vector nan_lanes(Vector x) {
    using of = code_vectors<Value>;
    if constexpr (of::nan_is_negative_zero) {
        return reinterpret_cast<Vector>(x == of::nan_code);
    } else {
        return reinterpret_cast<Vector>(Vector(x & of::magnitude_mask) > of::last_number);
    }
}

/// Signed integers in the total order of the numbers: a negative number counts down from -1, which is -0.
template <class Value, class Vector>
MP_ALWAYS_INLINE auto order_keys(Vector x) {
    using of = code_vectors<Value>;
    using keys = typename of::signed_vector;
    const Vector is_negative = reinterpret_cast<Vector>((x & of::sign_mask) != 0);
    return reinterpret_cast<keys>((x & of::magnitude_mask) ^ is_negative);
}

/// `chosen`, or the quiet NaN of the first operand that is NaN.
template <class Value, class Vector>
MP_ALWAYS_INLINE Vector or_nan(Vector chosen, Vector a, Vector b) {
    using of = code_vectors<Value>;
    if constexpr (!of::has_nan) {
        return chosen;
    } else {
        const Vector a_is_nan = nan_lanes<Value>(a);
        const Vector any_is_nan = a_is_nan | nan_lanes<Value>(b);
        const Vector nan = (a_is_nan != 0 ? a : b) | of::quiet_bit;
        return any_is_nan != 0 ? nan : chosen;
    }
}
template <class Value, class Vector>
MP_ALWAYS_INLINE Vector select_codes(min_operation, Vector a, Vector b) {
    const Vector smaller = order_keys<Value>(a) < order_keys<Value>(b) ? a : b;
    return or_nan<Value>(smaller, a, b);
}
template <class Value, class Vector>
MP_ALWAYS_INLINE Vector select_codes(max_operation, Vector a, Vector b) {
    const Vector larger = order_keys<Value>(a) < order_keys<Value>(b) ? b : a;
    return or_nan<Value>(larger, a, b);
}
template <class Value, class Vector>
MP_ALWAYS_INLINE Vector select_codes(clamp_operation, Vector x, Vector low, Vector high) {
    return select_codes<Value>(min_operation{}, select_codes<Value>(max_operation{}, x, low), high);
}
template <class Value, class Vector>
MP_ALWAYS_INLINE Vector select_codes(negation, Vector x) {
    using of = code_vectors<Value>;
    const Vector negative = x ^ of::sign_mask;
    if constexpr (of::nan_is_negative_zero) return (x & of::magnitude_mask) == 0 ? x : negative;
    return negative;
}
template <class Value, class Vector>
MP_ALWAYS_INLINE Vector select_codes(magnitude, Vector x) {
    using of = code_vectors<Value>;
    const Vector positive = x & of::magnitude_mask;
    if constexpr (of::nan_is_negative_zero) return positive == 0 ? x : positive;
    return positive;
}

template <class Operation, class Value, class... Operand>
MP_ALWAYS_INLINE void select_vector(Value* out, Operand... operands) {
    const auto result = select_codes<Value>(Operation{}, load_codes(operands)...);
    std::memcpy(static_cast<void*>(out), &result, sizeof result);
}

template <class Operation, class Value, class... Operand>
void select_array(Value* out, std::size_t count, Operand... operands) noexcept {
    constexpr std::size_t width = code_vectors<Value>::count;
    std::size_t i = 0;
    for (; i + width <= count; i += width) {
        select_vector<Operation>(out + i, operand_from(operands, i)...);
    }
    if (i == count) return;
    const std::size_t rest = count - i;
    alignas(64) Value last[width];
    select_vector<Operation>(last, operand_copy<Operand, width>{}.fill(operand_from(operands, i), rest)...);
    store_first(out + i, last, rest);
}

}}}  // namespace mp::detail::MP_TARGET
