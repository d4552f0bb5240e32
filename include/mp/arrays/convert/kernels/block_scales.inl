// SPDX-License-Identifier: MIT
// The largest magnitudes of `lanes` blocks in the lanes of one vector, and their scales, by the rules of
// <mp/arrays/convert/block_scale.hpp>.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// The larger of two magnitudes.
MP_ALWAYS_INLINE vec<std::int32_t> larger(vec<std::int32_t> a, vec<std::int32_t> b) {
    return a > b ? a : b;
}

/// Folds two vectors into one: the largest of lanes i and i + lanes / 2 of `a` becomes lane 2 i, that of `b`
/// lane 2 i + 1.
MP_ALWAYS_INLINE vec<std::int32_t> fold(vec<std::int32_t> a, vec<std::int32_t> b) {
    return larger(interleave_lower(a, b), interleave_upper(a, b));
}

/// Lane b: the largest magnitude code of a float in block b; 0 behind the last of them.
template <int Block, class Value>
MP_ALWAYS_INLINE vec<std::uint32_t> block_magnitudes(const Value* from, std::size_t blocks) {
    vec<std::int32_t> of_block[lanes];
    for (std::size_t b = 0; b < blocks; ++b) {
        vec<std::int32_t> largest = {};
        for (int i = 0; i < Block; i += static_cast<int>(lanes)) {
            const vec<std::uint32_t> magnitude = as_uint32(load_numbers(from + i)) & 0x7fff'ffffU;
            largest = larger(largest, reinterpret_cast<vec<std::int32_t>>(magnitude));
        }
        of_block[b] = largest;
        from += Block;
    }
    for (std::size_t b = blocks; b < lanes; ++b) of_block[b] = vec<std::int32_t>{};
    for (std::size_t half = lanes / 2; half != 0; half /= 2) {
        for (std::size_t b = 0; b < half; ++b) of_block[b] = fold(of_block[b], of_block[b + half]);
    }
    return as_uint32(of_block[0]);
}

/// scale_code for finite magnitudes; the smallest scale for a magnitude of zero.
///
/// The quotient of a float by max * tensor scale, of up to 3 + 24 bits, is rounded to double first, which is
/// innocuous: scales and the midpoints between them have at most 11 bits, so a quotient that is none of them
/// differs from it by more than 2^-40 of itself. Then it is cut to float with the last bit set if that loses
/// anything, which the comparisons and the rounding below see as they would the quotient.
template <class Format, class ScaleFormat>
MP_ALWAYS_INLINE vec<std::uint32_t> scale_quotient_codes(vec<std::uint32_t> magnitude, float tensor_scale,
                                                         const block_scaling& scaling) {
    using layout = layout_of<ScaleFormat>;
    constexpr double max_element = to_double<Format>(layout_of<Format>::max_finite_code);
    constexpr double largest = to_double<ScaleFormat>(layout::max_finite_code);
    constexpr double least = power_of_two<double>(layout::quantum_exponent - 4);
    const doubles divisor = doubles{} + max_element * static_cast<double>(tensor_scale);
    std::uint32_t magnitudes[lanes];
    store(magnitudes, magnitude);
    uint64_lanes cut[2];
    for (std::size_t i = 0; i < 2; ++i) {
        half_floats amax;
        std::memcpy(&amax, magnitudes + i * lanes / 2, sizeof amax);
        doubles x = div(__builtin_convertvector(amax, doubles), divisor);
        x = x < largest ? x : doubles{} + largest;
        x = x > least ? x : doubles{} + least;
        const auto bits = reinterpret_cast<uint64_lanes>(x);
        cut[i] = has_more_than_float(bits) ? cut_to_float(bits) | 1U : cut_to_float(bits);
    }
    const vec<float> q = as_float(low_halves(cut[0], cut[1]));
    vec<std::uint32_t> code = narrow_codes<ScaleFormat>(q);
    if (scaling.rule == scale_rule::floor) {
        code = widen_codes<ScaleFormat>(code) > q ? code - 1U : code;
    } else if (scaling.rule == scale_rule::ceil) {
        code = widen_codes<ScaleFormat>(code) < q ? code + 1U : code;
    }
    const auto smallest = std::uint32_t{scaling.smallest};
    const auto is_too_small = (magnitude == 0U) | (code < smallest);
    return is_too_small ? vec<std::uint32_t>{} + smallest : code;
}

}}}  // namespace mp::detail::MP_TARGET
