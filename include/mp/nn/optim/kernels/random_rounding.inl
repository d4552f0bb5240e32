// SPDX-License-Identifier: MIT
// Random words for a group of elements, and stochastic rounding by them, on vectors.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// The lower halves of two vectors of uint64_lanes by turns, into memory.
MP_ALWAYS_INLINE void store_by_turns(std::uint32_t* to, uint64_lanes even, uint64_lanes odd) {
    const uint64_lanes both = (even & 0xffff'ffffU) | odd << 32;
    std::memcpy(to, &both, sizeof both);
}

/// random_rounding_bits of the elements `element` to `element` + random_group - 1, where `element` is a
/// multiple of random_group.
MP_ALWAYS_INLINE void fill_random_group(const rounding_stream& stream, std::uint64_t element,
                                        std::uint32_t* words_of_group) {
    uint64_lanes by_twos{};
    for (std::size_t i = 0; i < lanes / 2; ++i) by_twos[i] = 2 * i;
    // Sixteen calls for 64 elements. Groups begin at multiples of 16, so counting does not carry.
    const philox4x32 counter = rounding_counter(stream, element / 4);
    const uint64_lanes key_low = uint64_lanes{} + static_cast<std::uint32_t>(stream.seed);
    const uint64_lanes key_high = uint64_lanes{} + static_cast<std::uint32_t>(stream.seed >> 32);
    for (std::size_t lane = 0; lane < 16; lane += lanes) {
        philox_calls<uint64_lanes> even{by_twos + (counter.word[0] + lane), uint64_lanes{} + counter.word[1],
                                        uint64_lanes{} + counter.word[2], uint64_lanes{} + counter.word[3]};
        philox_calls<uint64_lanes> odd = even;
        odd.word0 += 1;
        philox_rounds(key_low, key_high, even, odd);
        store_by_turns(words_of_group + lane, even.word0, odd.word0);
        store_by_turns(words_of_group + 16 + lane, even.word1, odd.word1);
        store_by_turns(words_of_group + 32 + lane, even.word2, odd.word2);
        store_by_turns(words_of_group + 48 + lane, even.word3, odd.word3);
    }
}

/// round_to<Value>(x, mp::stochastic(random)) in every lane, into memory.
template <class Value>
MP_ALWAYS_INLINE void store_stochastic(Value* to, vec<float> x, vec<std::uint32_t> random) {
    store(codes_of(to), narrow_to_uint16(stochastic_codes<typename Value::format>(x, random)));
}

}}}  // namespace mp::detail::MP_TARGET
