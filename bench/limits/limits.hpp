// SPDX-License-Identifier: MIT
/// \file
/// What the machine at hand can do at most: multiply-adds without memory, moves of memory without
/// arithmetic, and passes over arrays written by hand for AVX-512. Every measurement stands beside the limit
/// that was measured in the same run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace bench::limits {

/// A kind of multiply-add instructions, run from registers alone.
struct peak {
    std::string_view name;
    /// Floating-point or integer operations of one round: an addition and a multiplication are two.
    double operations;
    /// So many rounds on the calling thread.
    void (*run)(std::int64_t rounds);
};

/// Those that this processor has.
std::span<const peak> peaks();

/// The fastest for products of these factors that are added in float, or in 32-bit integers for int8;
/// nullptr where none is known.
const peak* float_peak();
const peak* bfloat16_peak();
const peak* int8_peak();

/// Runs at least `operations` operations on `threads` threads in all; returns how many.
double run(const peak& it, double operations, int threads);

/// Waits until this thread does multiply-adds of both kinds, float and bfloat16, at nine tenths of the best
/// rate that it has seen, except for at most a second, and a minute in all calls. On a processor that is shared,
/// what other programs leave changes by a factor of four from one moment to the next, and contenders are to
/// meet the same moments.
void await_peaks();

/// A way to move memory. All addresses are multiples of 64, what is read and written is a multiple of 256
/// bytes, and the two stand in the proportion of `reads` to `writes`, except for memcpy, which moves half of the
/// sum.
struct move {
    std::string_view name;
    int reads;   ///< vectors read in a step
    int writes;  ///< vectors written in a step
    std::size_t vector_bytes;
    void (*run)(void* to, const void* from, std::size_t steps);

    void operator()(void* to, const void* from, std::size_t read, std::size_t written) const;
};

/// Ways that read as many bytes as they write: memcpy, and loops with normal and with streaming stores where
/// there are vectors for them.
std::span<const move> copies();

/// Of the ways that read and write this number of bytes, the one that took the least time, of a few tries. In
/// proportions other than 1:1, 1:2, 1:4, 2:1, 3:1 and 4:1, and without vectors, a copy of as many bytes in
/// all.
const move& fastest_move(void* to, const void* from, std::size_t read, std::size_t written);

/// Reads bytes, and does nothing with them.
void read(const void* from, std::size_t bytes);

/// The same by several threads, a part each.
void read(const void* from, std::size_t bytes, int threads);

/// Whether the passes below can run here.
bool has_passes();

/// values *= factor; returns whether one of the results is not finite.
bool unscale(float* values, std::size_t count, float factor);

/// to = from * factor, `from` being codes of binary16; returns whether one of the results is not finite.
bool unscale_half(const std::uint16_t* from, float* to, std::size_t count, float factor);

/// What an AdamW step multiplies by.
struct adamw_factors {
    float inverse_scale, decay, beta1, one_minus_beta1, beta2, one_minus_beta2, rate, inverse_bias, epsilon;
};

/// One AdamW step: float master weights and state, and codes of bfloat16 rounded from them. `count` is a
/// multiple of 16.
void adamw(std::uint16_t* weights, float* master, float* mean, float* square, const float* gradient,
           std::size_t count, const adamw_factors& factors);

}  // namespace bench::limits
