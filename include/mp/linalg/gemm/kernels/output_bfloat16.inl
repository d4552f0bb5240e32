// SPDX-License-Identifier: MIT
// Rows of a C of bfloat16 by vcvtne2ps2bf16, which rounds to nearest even but takes subnormal numbers for
// zero (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2). So it is for sums that are
// none.

#if MP_TARGET_NUMBER == MP_TARGET_AVX512_BF16
namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// Two vectors as bfloat16, the first in the lower half.
MP_ALWAYS_INLINE vec<float> round_normal(vec<float> first, vec<float> second) {
    vec<float> both;
    __asm__("vcvtne2ps2bf16 %2, %1, %0" : "=v"(both) : "v"(second), "v"(first));
    return both;
}

inline void write_normal_bfloat16(const output_floats& from, void* to, std::ptrdiff_t leading_dimension) {
    constexpr auto step = static_cast<std::ptrdiff_t>(2 * lanes);
    for (std::ptrdiff_t i = 0; i < from.vectors; ++i) {
        const float* floats = from.first + i * from.stride;
        auto* codes = static_cast<std::uint16_t*>(to) + i * leading_dimension;
        std::ptrdiff_t left = from.count;
        for (; left >= step; left -= step, floats += step, codes += step) {
            const vec<float> both = round_normal(load(floats), load(floats + lanes));
            std::memcpy(codes, &both, sizeof both);
        }
        if (left <= 0) continue;
        const auto rest = static_cast<std::size_t>(left);
        const std::size_t lower = (std::min)(rest, lanes);
        const std::size_t upper = rest - lower;
        const vec<float> both =
            round_normal(load_partial(floats, lower), load_partial(floats + lower, upper));
        vec<std::uint16_t> halves[2];
        std::memcpy(halves, &both, sizeof both);
        store_partial(codes, halves[0], lower);
        store_partial(codes + lower, halves[1], upper);
    }
}

}}}  // namespace mp::detail::MP_TARGET
#endif
