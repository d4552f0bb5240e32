// SPDX-License-Identifier: MIT
// The rounds of Philox4x32-10, for calls side by side: included by philox.hpp for single words, and for vectors
// by <mp/numbers/rules/random_words.hpp>. The namespace has multiply_low_halves.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// The state of a call in every lane of Words, which are 32 bits or the lower halves of 64. Those are what
/// counts, all the way: that spares the work of keeping the upper halves clean.
template <class Words>
struct philox_calls {
    Words word0, word1, word2, word3;

    template <class Key>
    MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr void round(const Key& key_low, const Key& key_high) {
        // Multipliers of the paper, table 2.
        const auto product_0 = multiply_low_halves(word0, Words{} + 0xd251'1f53U);
        const auto product_1 = multiply_low_halves(word2, Words{} + 0xcd9e'8d57U);
        word0 = static_cast<Words>(product_1 >> 32) ^ word1 ^ key_low;
        word1 = static_cast<Words>(product_1);
        word2 = static_cast<Words>(product_0 >> 32) ^ word3 ^ key_high;
        word3 = static_cast<Words>(product_0);
    }
};

/// All ten rounds of calls with one key, whose steps alternate so that they run side by side.
template <class Key, class... Calls>
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr void philox_rounds(Key key_low, Key key_high, Calls&... calls) {
    for (int round = 0; round < 10; ++round) {
        (calls.round(key_low, key_high), ...);
        // The golden ratio and the square root of 3, section 4.2.
        key_low += 0x9e37'79b9U;
        key_high += 0xbb67'ae85U;
    }
}

}}}  // namespace mp::detail::MP_TARGET
