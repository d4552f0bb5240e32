// SPDX-License-Identifier: MIT
// Passes over arrays, written by hand for AVX-512: as fast as they get without giving up a bit of the result.
#include <mp/config.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#if MP_X86_TARGETS
#if defined(__GNUC__) && !defined(__clang__)
// The AVX-512 intrinsics of g++ 12 warn about their own deliberately undefined vectors.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#endif

#include "limits.hpp"

namespace bench::limits {

#if MP_X86_TARGETS

namespace {

constexpr int exponent_bits = 0x7f80'0000;

/// Lanes that are infinite or NaN: without the sign, not below the code of infinity.
__attribute__((target("avx512f"))) inline __mmask16 not_finite(__m512 x) {
    const __m512i magnitude = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fff'ffff));
    return _mm512_cmpge_epi32_mask(magnitude, _mm512_set1_epi32(exponent_bits));
}

/// Rounded to nearest even; NaN stays NaN.
__attribute__((target("avx512f"))) inline __m256i bfloat16_codes(__m512 x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x0040'0000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_mask_mov_epi32(rounded, nan, quiet), 16));
}

}  // namespace

bool has_passes() {
    return mp::best_instruction_set() >= mp::instruction_set::avx512;
}

__attribute__((target("avx512f"))) bool unscale(float* values, std::size_t count, float factor) {
    const __m512 by = _mm512_set1_ps(factor);
    unsigned found = 0;
    std::size_t i = 0;
    for (; i + 32 <= count; i += 32) {
        const __m512 a = _mm512_mul_ps(_mm512_loadu_ps(values + i), by);
        const __m512 b = _mm512_mul_ps(_mm512_loadu_ps(values + i + 16), by);
        _mm512_storeu_ps(values + i, a);
        _mm512_storeu_ps(values + i + 16, b);
        found |= static_cast<unsigned>(not_finite(a)) | static_cast<unsigned>(not_finite(b));
    }
    for (; i < count; ++i) {
        values[i] *= factor;
        found |= (std::bit_cast<std::uint32_t>(values[i]) & exponent_bits) == exponent_bits ? 1U : 0U;
    }
    return found != 0;
}

__attribute__((target("avx512f"))) bool unscale_half(const std::uint16_t* from, float* to, std::size_t count,
                                                     float factor) {
    const __m512 by = _mm512_set1_ps(factor);
    unsigned found = 0;
    std::size_t i = 0;
    for (; i + 32 <= count; i += 32) {
        const auto* const source = reinterpret_cast<const __m256i*>(from + i);
        const __m512 a = _mm512_mul_ps(_mm512_cvtph_ps(_mm256_loadu_si256(source)), by);
        const __m512 b = _mm512_mul_ps(_mm512_cvtph_ps(_mm256_loadu_si256(source + 1)), by);
        _mm512_storeu_ps(to + i, a);
        _mm512_storeu_ps(to + i + 16, b);
        found |= static_cast<unsigned>(not_finite(a)) | static_cast<unsigned>(not_finite(b));
    }
    for (; i < count; ++i) {
        const __m512 a = _mm512_mul_ps(_mm512_cvtph_ps(_mm256_set1_epi16(static_cast<short>(from[i]))), by);
        _mm512_mask_storeu_ps(to + i, 1, a);
        found |= not_finite(a);
    }
    return found != 0;
}

__attribute__((target("avx512f"))) void adamw(std::uint16_t* weights, float* master, float* mean,
                                              float* square, const float* gradient, std::size_t count,
                                              const adamw_factors& f) {
    for (std::size_t i = 0; i < count; i += 16) {
        const __m512 g = _mm512_mul_ps(_mm512_loadu_ps(gradient + i), _mm512_set1_ps(f.inverse_scale));
        const __m512 m = _mm512_add_ps(_mm512_mul_ps(_mm512_loadu_ps(mean + i), _mm512_set1_ps(f.beta1)),
                                       _mm512_mul_ps(g, _mm512_set1_ps(f.one_minus_beta1)));
        const __m512 v = _mm512_add_ps(_mm512_mul_ps(_mm512_loadu_ps(square + i), _mm512_set1_ps(f.beta2)),
                                       _mm512_mul_ps(_mm512_mul_ps(g, g), _mm512_set1_ps(f.one_minus_beta2)));
        const __m512 denominator = _mm512_add_ps(
            _mm512_mul_ps(_mm512_sqrt_ps(v), _mm512_set1_ps(f.inverse_bias)), _mm512_set1_ps(f.epsilon));
        const __m512 w = _mm512_loadu_ps(master + i);
        const __m512 change =
            _mm512_add_ps(_mm512_mul_ps(w, _mm512_set1_ps(f.decay)),
                          _mm512_mul_ps(_mm512_div_ps(m, denominator), _mm512_set1_ps(f.rate)));
        const __m512 updated = _mm512_sub_ps(w, change);
        _mm512_storeu_ps(mean + i, m);
        _mm512_storeu_ps(square + i, v);
        _mm512_storeu_ps(master + i, updated);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(weights + i), bfloat16_codes(updated));
    }
}

#else

bool has_passes() {
    return false;
}
bool unscale(float*, std::size_t, float) {
    std::abort();
}
bool unscale_half(const std::uint16_t*, float*, std::size_t, float) {
    std::abort();
}
void adamw(std::uint16_t*, float*, float*, float*, const float*, std::size_t, const adamw_factors&) {
    std::abort();
}

#endif

}  // namespace bench::limits
