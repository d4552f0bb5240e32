// SPDX-License-Identifier: MIT
// A float's code as that of a bfloat16 and 16 bits more, over vec<std::uint32_t>; see
// <mp/nn/optim/weight_update.hpp> for the proof. A condition is a bit that is 0 or 1.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// 1 for the code of a NaN of float.
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr vec<std::uint32_t> is_nan_bit(vec<std::uint32_t> code) {
    return (0x7F80'0000U - (code & 0x7FFF'FFFFU)) >> 31;
}

/// The bfloat16's code, in the lower half of the word, of the float with this code.
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr vec<std::uint32_t> high_of_master(vec<std::uint32_t> code) {
    const vec<std::uint32_t> nan = is_nan_bit(code);
    return ((code + ((nan ^ 1U) << 15)) >> 16) | nan << 6;
}

/// The other bits.
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr vec<std::uint32_t> low_of_master(vec<std::uint32_t> code) {
    return code & 0xFFFFU;
}

/// The float's code again: the upper half is one less if rounding has carried into it.
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr vec<std::uint32_t> join_codes(vec<std::uint32_t> high,
                                                                        vec<std::uint32_t> low) {
    const vec<std::uint32_t> carried = (low >> 15) & (is_nan_bit(high << 16) ^ 1U);
    return (high - carried) << 16 | low;
}

}}}  // namespace mp::detail::MP_TARGET
