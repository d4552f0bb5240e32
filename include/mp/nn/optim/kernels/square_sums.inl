// SPDX-License-Identifier: MIT
// Sums of squares on vectors; see square_sums.hpp for the order.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// sum += x^2 on as many floats from memory as a vector holds doubles. The square is exact, so it does not
/// matter whether the operation is fused.
MP_ALWAYS_INLINE void add_squares(const float* from, doubles& sum) {
    half_floats x;
    std::memcpy(&x, from, sizeof x);
#if MP_TARGET_NUMBER == MP_TARGET_NEON
    const doubles wide = widen_half(x);
    sum = opt_barrier(sum + wide * wide);
#elif MP_TARGET_NUMBER >= MP_TARGET_AVX512
    doubles wide;  // g++ 12 makes four instructions of its own conversion
    __asm__("vcvtps2pd %1, %0" : "=v"(wide) : "vm"(x));
    sum += wide * wide;
    __asm__("" : "+v"(sum));
#else
    doubles wide;
    __asm__("vcvtps2pd %1, %0" : "=x"(wide) : "xm"(x));
    sum += wide * wide;
    __asm__("" : "+x"(sum));
#endif
}

template <std::size_t BlockSize>
void square_sums(const float* values, std::size_t count, double* sums) {
    const default_floating_point_modes modes;
    constexpr std::size_t half = lanes / 2;
    constexpr std::size_t vectors = square_lanes / half;
    for (std::size_t at = 0; at < count; at += BlockSize, ++sums) {
        const std::size_t length = count - at < BlockSize ? count - at : BlockSize;
        const float* const block = values + at;
        doubles lane_sums[vectors] = {};
        std::size_t i = 0;
        for (; i + square_lanes <= length; i += square_lanes) {
#pragma GCC unroll 8
            for (std::size_t v = 0; v < vectors; ++v) add_squares(block + i + v * half, lane_sums[v]);
        }
        if (i < length) {
            float last[square_lanes] = {};
            std::memcpy(last, block + i, (length - i) * sizeof(float));
#pragma GCC unroll 8
            for (std::size_t v = 0; v < vectors; ++v) add_squares(last + v * half, lane_sums[v]);
        }
        double all[square_lanes];
        std::memcpy(all, lane_sums, sizeof all);
        *sums = sum_of_square_lanes(all);
    }
}

}}}  // namespace mp::detail::MP_TARGET
