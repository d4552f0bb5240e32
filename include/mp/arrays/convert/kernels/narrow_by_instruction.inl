// SPDX-License-Identifier: MIT
// Conversions for which processors have an instruction that rounds once (Intel 64 and IA-32 Architectures
// Software Developer's Manual, volume 2). The bits are those of convert_array, which converts what is left.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

#if MP_TARGET_NUMBER == MP_TARGET_AVX512_BF16
/// Whether a lane of the four holds a subnormal number.
MP_ALWAYS_INLINE bool any_subnormal(const vec<float> (&x)[4]) {
    std::uint16_t found[4];
    for (int i = 0; i < 4; ++i) __asm__("vfpclassps $0x20, %1, %0" : "=Yk"(found[i]) : "v"(x[i]));
    return (found[0] | found[1] | found[2] | found[3]) != 0;
}

/// By vcvtne2ps2bf16, which rounds to nearest even whatever the modes are, but takes subnormal numbers for
/// zero: those go the other way. Where a number is normal, so is what it is rounded to, or infinite.
inline void narrow_to_bfloat16(const float* from, basic_float<formats::bfloat16>* to,
                               std::size_t count) noexcept {
    std::size_t i = 0;
    if (count >= 4 * lanes) {
        const default_floating_point_modes modes;
        for (; i + 4 * lanes <= count; i += 4 * lanes) {
            const float* const x = from + i;
            const vec<float> four[4] = {load(x), load(x + lanes), load(x + 2 * lanes), load(x + 3 * lanes)};
            if (any_subnormal(four)) {
                avx512::convert_two_vectors(x, to + i);
                avx512::convert_two_vectors(x + 2 * lanes, to + i + 2 * lanes);
                continue;
            }
            for (std::size_t pair = 0; pair < 2; ++pair) {
                vec<float> codes;  // the lower half from the last operand
                __asm__("vcvtne2ps2bf16 %2, %1, %0"
                        : "=v"(codes)
                        : "v"(four[2 * pair + 1]), "v"(four[2 * pair]));
                std::memcpy(codes_of(to + i + 2 * lanes * pair), &codes, sizeof codes);
            }
        }
    }
    avx512::convert_array(from + i, to + i, count - i);
}
#endif

#if MP_TARGET_NUMBER == MP_TARGET_AVX512_FP16
/// By vcvtpd2ph, which makes subnormal numbers in every mode and rounds as the modes say.
inline void narrow_to_half(const double* from, basic_float<formats::binary16>* to,
                           std::size_t count) noexcept {
    typedef std::uint64_t eight_codes __attribute__((vector_size(16)));  // NOLINT(modernize-use-using)
    constexpr std::size_t step = lanes / 2;
    std::size_t i = 0;
    {
        const default_floating_point_modes modes;
        for (; i + step <= count; i += step) {
            doubles x;
            std::memcpy(&x, from + i, sizeof x);
            eight_codes codes;
            __asm__("vcvtpd2ph %1, %0" : "=v"(codes) : "v"(x));
            std::memcpy(codes_of(to + i), &codes, sizeof codes);
        }
    }
    avx512::convert_array(from + i, to + i, count - i);
}
#endif

}}}  // namespace mp::detail::MP_TARGET
