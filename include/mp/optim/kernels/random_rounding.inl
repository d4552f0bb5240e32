// SPDX-License-Identifier: MIT
// Random words for a group of elements, and stochastic rounding by them, on vectors.

namespace mp::detail::inline MP_ISA_NAMESPACE::MP_TARGET {

/// The state of philox4x32::generate for lanes / 2 calls. Only the lower half of a lane means something, all
/// the way: that spares the work of keeping the upper halves clean.
struct philox_calls {
    longwords w0, w1, w2, w3;

    MP_ALWAYS_INLINE explicit philox_calls(const philox4x32& counter)
        : w0(longwords{} + counter.word[0]),
          w1(longwords{} + counter.word[1]),
          w2(longwords{} + counter.word[2]),
          w3(longwords{} + counter.word[3]) {}

    MP_ALWAYS_INLINE void round(longwords key_low, longwords key_high) {
        const longwords product_0 = multiply_low(w0, longwords{} + 0xd2511f53U);
        const longwords product_1 = multiply_low(w2, longwords{} + 0xcd9e8d57U);
        w0 = (product_1 >> 32) ^ w1 ^ key_low;
        w1 = product_1;
        w2 = (product_0 >> 32) ^ w3 ^ key_high;
        w3 = product_0;
    }
};

/// The lower halves of two vectors of longwords by turns, into memory.
MP_ALWAYS_INLINE void store_by_turns(std::uint32_t* to, longwords even, longwords odd) {
    const longwords both = (even & 0xffff'ffffU) | odd << 32;
    std::memcpy(to, &both, sizeof both);
}

/// random_rounding_bits of the elements `element` to `element` + random_group - 1, where `element` is a
/// multiple of random_group.
MP_ALWAYS_INLINE void fill_random_group(const rounding_stream& stream, std::uint64_t element,
                                        std::uint32_t* words_of_group) {
    longwords by_twos{};
    for (std::size_t i = 0; i < lanes / 2; ++i) by_twos[i] = 2 * i;
    // Sixteen calls for 64 elements. Groups begin at multiples of 16, so counting does not carry.
    const philox4x32 counter = rounding_counter(stream, element / 4);
    for (std::size_t lane = 0; lane < 16; lane += lanes) {
        philox_calls even(counter);
        even.w0 += by_twos + lane;
        philox_calls odd = even;
        odd.w0 += 1;
        longwords key_low = longwords{} + static_cast<std::uint32_t>(stream.seed);
        longwords key_high = longwords{} + static_cast<std::uint32_t>(stream.seed >> 32);
        for (int round = 0; round < 10; ++round) {
            even.round(key_low, key_high);
            odd.round(key_low, key_high);
            key_low += 0x9e3779b9U;
            key_high += 0xbb67ae85U;
        }
        store_by_turns(words_of_group + lane, even.w0, odd.w0);
        store_by_turns(words_of_group + 16 + lane, even.w1, odd.w1);
        store_by_turns(words_of_group + 32 + lane, even.w2, odd.w2);
        store_by_turns(words_of_group + 48 + lane, even.w3, odd.w3);
    }
}

/// round_to<Value>(x, mp::stochastic(random)) in every lane, into memory.
template <class Value>
MP_ALWAYS_INLINE void store_stochastic(Value* to, vec<float> x, vec<std::uint32_t> random) {
    using format = typename Value::format;
    using narrow = layout_of<format>;
    constexpr int shift = 23 - narrow::fraction_bits;
    const vec<std::uint32_t> bits = as_words(x);
    const vec<std::uint32_t> magnitude = bits & 0x7fff'ffffU;
    const auto is_nan = magnitude > 0x7f80'0000U;
    const vec<std::uint32_t> nan = (bits >> shift) | std::uint32_t{narrow::quiet_bit};
    // What is dropped has `shift` bits, so of the random ones only so many can matter.
    const vec<std::uint32_t> threshold = random >> (32 - shift);
    if constexpr (format::exponent_bits == 8) {
        const vec<std::uint32_t> code = (bits + threshold) >> shift;
        store(codes_of(to), narrow_to_halfwords(is_nan ? nan : code));
    } else {
        constexpr std::uint32_t bias_difference = static_cast<std::uint32_t>(127 - format::bias) << 23;
        constexpr std::uint32_t largest = (std::uint32_t{narrow::infinity_code} << shift) + bias_difference;
        constexpr std::uint32_t smallest_normal = static_cast<std::uint32_t>(127 + narrow::min_exponent)
                                                  << 23;
        const vec<std::uint32_t> limited = magnitude < largest ? magnitude : vec<std::uint32_t>{} + largest;
        vec<std::uint32_t> code = (limited - bias_difference + threshold) >> shift;
        // Subnormal results: in units of the last place, with 32 bits behind the point. All steps are exact
        // except for bits beyond those, which are cut off.
        constexpr float unit = power_of_two<float>(-narrow::quantum_exponent);
        const vec<float> tiny = as_floats(magnitude < smallest_normal ? magnitude : vec<std::uint32_t>{});
        const vec<float> value = opt_barrier(tiny * unit);
        const vec<std::int32_t> whole = __builtin_convertvector(value, vec<std::int32_t>);
        const vec<float> fraction = opt_barrier(value - __builtin_convertvector(whole, vec<float>)) * 0x1p16F;
        const vec<std::int32_t> upper = __builtin_convertvector(fraction, vec<std::int32_t>);
        const vec<float> rest = opt_barrier(fraction - __builtin_convertvector(upper, vec<float>)) * 0x1p16F;
        const vec<std::uint32_t> behind_point =
            as_words(upper) << 16 | as_words(__builtin_convertvector(rest, vec<std::int32_t>));
        const vec<std::uint32_t> summed = behind_point + random;
        const vec<std::uint32_t> subnormal =
            as_words(whole) + (summed < behind_point ? vec<std::uint32_t>{} + 1U : vec<std::uint32_t>{});
        code = magnitude < smallest_normal ? subnormal : code;
        const vec<std::uint32_t> sign = (bits ^ magnitude) >> (31 - narrow::magnitude_bits);
        code = is_nan ? (nan & std::uint32_t{narrow::magnitude_mask}) | std::uint32_t{narrow::infinity_code}
                      : code;
        store(codes_of(to), narrow_to_halfwords(code | sign));
    }
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE::MP_TARGET
