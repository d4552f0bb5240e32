// SPDX-License-Identifier: MIT
// Rows of a C of bfloat16 by vcvtne2ps2bf16, which rounds to nearest even but takes subnormal numbers for
// zero (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2). So it is for sums that are
// none.

#if MP_TARGET_NUMBER == MP_TARGET_AVX512_BF16
namespace mp::detail::inline MP_ISA_NAMESPACE::MP_TARGET {

inline void write_normal_bfloat16(const output_floats& from, void* to, std::ptrdiff_t leading_dimension) {
    constexpr auto step = static_cast<std::ptrdiff_t>(2 * lanes);
    for (std::ptrdiff_t i = 0; i < from.vectors; ++i) {
        const float* floats = from.first + i * from.stride;
        auto* codes = static_cast<std::uint16_t*>(to) + i * leading_dimension;
        std::ptrdiff_t left = from.count;
        for (; left >= step; left -= step, floats += step, codes += step) {
            vec<float> both;  // the lower half from the last operand
            __asm__("vcvtne2ps2bf16 %2, %1, %0" : "=v"(both) : "v"(load(floats + lanes)), "v"(load(floats)));
            std::memcpy(codes, &both, sizeof both);
        }
        if (left > 0) {
            float rest[2 * lanes] = {};
            std::memcpy(rest, floats, static_cast<std::size_t>(left) * sizeof(float));
            vec<float> both;
            __asm__("vcvtne2ps2bf16 %2, %1, %0" : "=v"(both) : "v"(load(rest + lanes)), "v"(load(rest)));
            std::memcpy(codes, &both, static_cast<std::size_t>(left) * sizeof(std::uint16_t));
        }
    }
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE::MP_TARGET
#endif
