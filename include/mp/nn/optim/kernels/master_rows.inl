// SPDX-License-Identifier: MIT
// Rounding of rows of masters: stochastic, in two halves, with a compensation.

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

/// Rounds to half or bfloat16, elements of a parameter starting at `first`, a multiple of random_group.
template <class Value>
void round_stochastically(const float* from, Value* to, std::size_t count, const rounding_stream& stream,
                          std::uint64_t first) {
    for (std::size_t group = 0; group < count; group += random_group) {
        alignas(64) std::uint32_t words[random_group];
        fill_random_group(stream, first + group, words);
        const std::size_t size = count - group < random_group ? count - group : random_group;
        std::size_t i = 0;
        for (; i + lanes <= size; i += lanes) {
            const vec<std::uint32_t> codes =
                stochastic_codes<typename Value::format>(load(from + group + i), load(words + i));
            store(codes_of(to + group + i), narrow_to_uint16(codes));
        }
        if (i == size) continue;
        float values[lanes] = {};
        std::uint16_t codes[lanes];
        std::memcpy(values, from + group + i, (size - i) * sizeof(float));
        store(codes,
              narrow_to_uint16(stochastic_codes<typename Value::format>(load(values), load(words + i))));
        std::memcpy(codes_of(to + group + i), codes, (size - i) * sizeof(std::uint16_t));
    }
}

/// Masters of two halves as floats, and back.
inline void join_masters(const std::uint16_t* high, const std::uint16_t* low, float* masters,
                         std::size_t count) {
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        store(masters + i, as_float(join_codes(widen(load(high + i)), widen(load(low + i)))));
    }
    join_masters_portable(high + i, low + i, masters + i, count - i);
}
inline void split_masters(const float* masters, std::uint16_t* high, std::uint16_t* low, std::size_t count) {
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        const vec<std::uint32_t> codes = as_uint32(load(masters + i));
        store(high + i, narrow_to_uint16(high_of_master(codes)));
        store(low + i, narrow_to_uint16(low_of_master(codes)));
    }
    split_masters_portable(masters + i, high + i, low + i, count - i);
}

/// to = to + other.
inline void add_row(float* to, const float* other, std::size_t count) {
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) store(to + i, add(load(to + i), load(other + i)));
    const std::size_t n = count - i;
    if (n != 0) store_partial(to + i, add(load_partial(to + i, n), load_partial(other + i, n)), n);
}
/// to = from - to.
inline void subtract_row(const float* from, float* to, std::size_t count) {
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) store(to + i, sub(load(from + i), load(to + i)));
    const std::size_t n = count - i;
    if (n != 0) store_partial(to + i, sub(load_partial(from + i, n), load_partial(to + i, n)), n);
}

}}}  // namespace mp::detail::MP_TARGET
