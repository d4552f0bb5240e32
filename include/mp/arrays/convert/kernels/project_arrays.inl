// SPDX-License-Identifier: MIT
// Floats to every format in every projection.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// Whether stochastic rounding goes away from zero: all ones or zero. `rest` is what is cut off, in units of
/// 2^(-places) of the last place; see stochastically_up. Random bits and the rest are compared at the top of
/// a word: their sum carries out of it where it reaches one.
MP_ALWAYS_INLINE vec<std::uint32_t> goes_away(const projection_plan& plan, vec<std::uint32_t> rest,
                                              vec<std::uint32_t> places, vec<std::uint32_t> random) {
    const vec<std::uint32_t> few = places <= 31U ? places : vec<std::uint32_t>{} + 31U;
    const vec<std::uint32_t> beyond = places - 32U;
    const vec<std::uint32_t> shift = beyond <= 31U ? beyond : vec<std::uint32_t>{} + 31U;
    const vec<std::uint32_t> shifted = rest >> shift;
    const vec<std::uint32_t> aligned = places >= 32U ? shifted : rest << (32U - few);
    const vec<std::uint32_t> head = aligned & plan.compared;
    vec<std::uint32_t> increment = aligned & plan.next;
    if (plan.ties_to_even) {
        const vec<std::uint32_t> cut_off = (aligned & (plan.next - 1U)) |
                                           (places > 32U ? (shifted << shift) ^ rest : vec<std::uint32_t>{}) |
                                           (head & plan.unit);
        increment = cut_off != 0U ? increment : vec<std::uint32_t>{};
    }
    // The bit behind the compared ones, where it counts, makes one of their last.
    const vec<std::uint32_t> whole = head + increment * 2U;
    const vec<std::uint32_t> sum = whole + (random << plan.unused_random_bits);
    return as_uint32((whole < head) | (sum < whole));
}

/// Floats rounded as planned; the codes are in the low bits.
template <class Format>
MP_ALWAYS_INLINE vec<std::uint32_t> project_codes(const projection_plan& plan, vec<float> x,
                                                  vec<std::uint32_t> random) {
    using narrow = layout_of<Format>;
    constexpr std::uint32_t shift = 23 - narrow::fraction_bits;
    const vec<std::uint32_t> bits = as_uint32(x);
    const vec<std::uint32_t> magnitude = bits & 0x7fff'ffffU;
    const auto is_negative = bits > 0x7fff'ffffU;

    // The code before it is rounded, with `places` bits behind its last one. Of a number that will be
    // subnormal this is its significand, else the bits of the float as they are.
    vec<std::uint32_t> places = vec<std::uint32_t>{} + shift;
    vec<std::uint32_t> unrounded = magnitude;
    if constexpr (Format::exponent_bits < 8) {
        constexpr std::uint32_t smallest_field = 127 + narrow::min_exponent;
        constexpr std::uint32_t bias_difference = static_cast<std::uint32_t>(127 - Format::bias) << 23;
        const vec<std::uint32_t> field = magnitude >> 23;
        const vec<std::uint32_t> fraction = magnitude & 0x007f'ffffU;
        const vec<std::uint32_t> significand = field == 0U ? fraction : fraction | 0x0080'0000U;
        const vec<std::uint32_t> binade = field == 0U ? vec<std::uint32_t>{} + 1U : field;
        const auto is_small = magnitude < (smallest_field << 23);
        places = is_small ? (shift + smallest_field) - binade : places;
        unrounded = is_small ? significand : magnitude - bias_difference;
    }
    // 31 places are as good as more: a significand has 24 bits.
    const vec<std::uint32_t> cut = places < 31U ? places : vec<std::uint32_t>{} + 31U;
    const vec<std::uint32_t> ones = ((vec<std::uint32_t>{} + 1U) << cut) - 1U;
    const vec<std::uint32_t> kept = unrounded >> cut;
    vec<std::uint32_t> code;
    if (plan.is_stochastic) {
        code = kept - goes_away(plan, unrounded & ones, places, random);
    } else {
        const vec<std::uint32_t> last = kept & 1U;
        const vec<std::uint32_t> away =
            is_negative ? vec<std::uint32_t>{} + plan.away[1] : vec<std::uint32_t>{} + plan.away[0];
        vec<std::uint32_t> added = ((ones >> plan.halved) & away) + (last & plan.even) + plan.one;
        added &= ~((0U - last) & plan.odd);
        code = (unrounded + added) >> cut;
    }

    const vec<std::uint32_t> too_large =
        is_negative ? vec<std::uint32_t>{} + plan.too_large[1] : vec<std::uint32_t>{} + plan.too_large[0];
    const vec<std::uint32_t> infinite =
        is_negative ? vec<std::uint32_t>{} + plan.infinite[1] : vec<std::uint32_t>{} + plan.infinite[0];
    code = code > std::uint32_t{narrow::max_finite_code} ? too_large : code;
    code = magnitude == 0x7f80'0000U ? infinite : code;
    vec<std::uint32_t> sign = (bits >> 31) << narrow::magnitude_bits;
    if constexpr (Format::nans == nan_encoding::negative_zero) {
        constexpr std::uint32_t with_sign = narrow::max_finite_code + (narrow::has_infinity ? 1U : 0U);
        sign = code - 1U < with_sign ? sign : vec<std::uint32_t>{};
    }
    const vec<std::uint32_t> nan =
        (((magnitude >> shift) & plan.nan_payload) | plan.nan) | (sign & plan.nan_sign);
    return magnitude > 0x7f80'0000U ? nan : code | sign;
}

/// `random` has a word for every element if the plan is stochastic, and is not read otherwise.
template <class To>
void project_array(const float* from, To* to, std::size_t count, const projection_plan& plan,
                   const std::uint32_t* random) noexcept {
    using format = typename To::format;
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        const vec<std::uint32_t> bits = plan.is_stochastic ? load(random + i) : vec<std::uint32_t>{};
        store(codes_of(to + i), container_of<format>(project_codes<format>(plan, load(from + i), bits)));
    }
    if (i < count) {
        const vec<std::uint32_t> bits =
            plan.is_stochastic ? load_partial(random + i, count - i) : vec<std::uint32_t>{};
        const vec<std::uint32_t> codes = project_codes<format>(plan, load_partial(from + i, count - i), bits);
        store_partial(codes_of(to + i), container_of<format>(codes), count - i);
    }
}

/// Finite doubles beyond the range of float become the largest float, which is odd.
MP_ALWAYS_INLINE doubles limited_to_floats(doubles x) {
    constexpr std::uint64_t largest = 0x47ef'ffff'e000'0000;
    constexpr std::uint64_t infinity = 0x7ff0'0000'0000'0000;
    const auto bits = reinterpret_cast<uint64_lanes>(x);
    const uint64_lanes magnitude = bits & double_magnitude;
    const uint64_lanes limited = (bits ^ magnitude) | largest;
    const auto is_large = (magnitude > largest) & (magnitude < infinity);
    return reinterpret_cast<doubles>(is_large ? limited : bits);
}

/// Doubles as floats, rounded to odd: what is rounded to a format next is then rounded once.
inline void narrow_to_odd_array(const double* from, float* to, std::size_t count) noexcept {
    const default_floating_point_modes modes;
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes)
        store(to + i, narrow_to_odd<true>(limited_to_floats(load(from + i)),
                                          limited_to_floats(load(from + i + lanes / 2))));
    if (i < count) {
        alignas(64) double source[lanes] = {};
        std::memcpy(source, from + i, (count - i) * sizeof(double));
        const vec<float> odd =
            narrow_to_odd<true>(limited_to_floats(load(source)), limited_to_floats(load(source + lanes / 2)));
        store_partial(to + i, odd, count - i);
    }
}

}}}  // namespace mp::detail::MP_TARGET
