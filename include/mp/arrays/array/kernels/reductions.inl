// SPDX-License-Identifier: MIT
// The 64 lanes of a block as accumulators in registers.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

template <class Value>
MP_ALWAYS_INLINE vec<float> load_terms(const Value* from) {
    if constexpr (std::is_same_v<Value, float>) {
        return load(from);
    } else {
        return load_arguments(from);
    }
}

/// The lower and the upper half of a vector as doubles.
template <int Half>
MP_ALWAYS_INLINE doubles to_doubles(vec<float> x) {
#if MP_TARGET_NUMBER == MP_TARGET_NEON
    return widen_half(Half == 0 ? low_half(x) : high_half(x));
#else
    half_floats parts[2];
    std::memcpy(parts, &x, sizeof x);
    return __builtin_convertvector(parts[Half], doubles);
#endif
}

template <class Vector>
MP_ALWAYS_INLINE Vector term_of(summed_value, Vector x) {
    return x;
}
template <class Vector>
MP_ALWAYS_INLINE Vector term_of(summed_product, Vector x, Vector y) {
    return opt_barrier(x * y);
}
template <class Vector>
MP_ALWAYS_INLINE Vector term_of(summed_square, Vector x) {
    return opt_barrier(x * x);
}

/// Lanes whose sums are in registers at a time: all, or half of them where those of doubles take 32
/// registers.
template <class Accumulator>
inline constexpr std::size_t lanes_at_once =
    sum_lanes * sizeof(Accumulator) / vector_bytes > 16 ? sum_lanes / 2 : sum_lanes;

/// Adds terms to their lanes.
template <class Term, std::size_t Count, class... Value>
MP_ALWAYS_INLINE void add_terms(vec<float> (&sums)[Count], const Value*... from) {
#pragma GCC unroll 16
    for (std::size_t k = 0; k < Count; ++k) {
        sums[k] = opt_barrier(sums[k] + term_of(Term{}, load_terms(from + k * lanes)...));
    }
}
template <class Term, std::size_t Count, class... Value>
MP_ALWAYS_INLINE void add_terms(doubles (&sums)[Count], const Value*... from) {
#pragma GCC unroll 16
    for (std::size_t k = 0; k < Count / 2; ++k) {
        doubles& lower = sums[2 * k];
        doubles& upper = sums[2 * k + 1];
        lower = opt_barrier(lower + term_of(Term{}, to_doubles<0>(load_terms(from + k * lanes))...));
        upper = opt_barrier(upper + term_of(Term{}, to_doubles<1>(load_terms(from + k * lanes))...));
    }
}

/// As add_terms(), for lanes that were copied.
template <class Term, class Sums, class... Value>
MP_ALWAYS_INLINE void add_last_terms(Sums& sums, std::size_t first, const Value*... copies) {
    add_terms<Term>(sums, (copies + first)...);
}

/// The lanes of a block in the order of sum_of_lanes(): lanes j and j + 32 are lanes of two vectors, and so on
/// until one vector is left.
template <class Accumulator, class Vector, std::size_t Count>
MP_ALWAYS_INLINE Accumulator sum_of_vectors(Vector (&sums)[Count]) {
    static_assert(Count * sizeof(Vector) == sum_lanes * sizeof(Accumulator));
#pragma GCC unroll 16
    for (std::size_t half = Count / 2; half != 0; half /= 2) {
#pragma GCC unroll 16
        for (std::size_t k = 0; k < half; ++k) sums[k] = opt_barrier(sums[k] + sums[k + half]);
    }
    return reduce_add(sums[0]);
}

template <class Term, class Accumulator, class... Value>
MP_ALWAYS_INLINE Accumulator sum_of_block(std::size_t count, const Value*... from) {
    using vector = std::conditional_t<std::is_same_v<Accumulator, float>, vec<float>, doubles>;
    constexpr std::size_t at_once = lanes_at_once<Accumulator>;
    constexpr std::size_t vectors = at_once * sizeof(Accumulator) / sizeof(vector);
    vector all[sum_lanes / at_once * vectors];
    for (std::size_t first = 0; first < sum_lanes; first += at_once) {
        vector sums[vectors] = {};
        std::size_t i = 0;
        for (; i + sum_lanes <= count; i += sum_lanes) add_terms<Term>(sums, (from + i + first)...);
        if (i != count) {
            // Zeros at the end change nothing: no lane is ever -0.
            add_last_terms<Term>(sums, first,
                                 operand_copy<const Value*, sum_lanes>{}.fill(from + i, count - i)...);
        }
        std::memcpy(all + first / at_once * vectors, sums, sizeof sums);
    }
    return sum_of_vectors<Accumulator>(all);
}

template <class Term, class Accumulator, class... Value>
void sum_array(Accumulator* result, std::size_t count, const Value*... from) noexcept {
    const default_floating_point_modes modes;
    *result = sum_of_tree<Accumulator>((count + sum_block - 1) / sum_block, [&](std::size_t block) {
        const std::size_t begin = block * sum_block;
        return sum_of_block<Term, Accumulator>((std::min)(count - begin, sum_block), (from + begin)...);
    });
}

}}}  // namespace mp::detail::MP_TARGET
