// SPDX-License-Identifier: MIT
/// \file
/// How kernels call epilogues: for a chunk at a time, with what a thread keeps of the chunks of its tile. How results are
/// rounded to the type of C.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/base/opt_barrier.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/convert_chunks.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/linalg/gemm/epilogue.hpp>
#include <mp/linalg/gemm/epilogue_gradients.hpp>
#include <mp/linalg/gemm/epilogue_outputs.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/rules/elementwise.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Two products of floats rounded to the type of C.
///
/// On devices the instruction does the whole conversion to half and bfloat16: what it does otherwise than
/// the core are NaNs, of which it makes 0x7FFF, and the NaN of a product is 0x7FFFFFFF there, which has all
/// bits of the payload and becomes 0x7FFF here, too.
template <class Output>
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE chunk<Output, 2> round_products(float first, float second) {
    if constexpr (std::is_same_v<Output, float>) {
        return {{first, second}};
    } else {
#if MP_DEVICE_CODE
        if constexpr (sizeof(Output) == 2 && has_device_instructions<typename Output::format>) {
            return bit_cast<chunk<Output, 2>>(
                device_round_pair<typename Output::format>(first, second, false));
        }
#endif
        if constexpr (sizeof(Output) <= 2 && fast_path_in<typename Output::format, float>) {
            const packed2<Output> pair(first, second);
            return {{pair.first(), pair.second()}};
        } else {
            return {{static_cast<Output>(first), static_cast<Output>(second)}};
        }
    }
}

/// Results of any kind rounded to the type of C. On devices NaNs, whose payloads are to be kept, are looked for
/// in all of them at once: the largest of them is NaN if one is.
template <class Output, int Count>
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE chunk<Output, Count> round_results(
    const chunk<float, Count>& results) {
    if constexpr (std::is_same_v<Output, float>) {
        return results;
    } else {
#if MP_DEVICE_CODE && __CUDA_ARCH__ >= 800
        if constexpr (sizeof(Output) == 2 && has_device_instructions<typename Output::format>) {
            float largest = results.values[0];
            MP_UNROLL
            for (int i = 1; i < Count; ++i) {
                asm("max.NaN.f32 %0, %0, %1;" : "+f"(largest) : "f"(results.values[i]));
            }
            if (!device_has_nan(largest, largest)) {
                chunk<Output, Count> rounded;
                MP_UNROLL
                for (int i = 0; i < Count; i += 2) {
                    const auto pair = round_products<Output>(results.values[i], results.values[i + 1]);
                    rounded.values[i] = pair.values[0];
                    rounded.values[i + 1] = pair.values[1];
                }
                return rounded;
            }
        }
#endif
        return nearest_conversion{}.convert<Output>(results, 0);
    }
}

/// Where neighbouring elements lie in the C that the epilogue knows.
struct chunk_in_c {
    std::ptrdiff_t row;
    std::ptrdiff_t column;
    int count;  ///< elements inside of C
    bool down;  ///< below each other

    /// Those from (row, column) on of a C whose rows are columns to the epilogue if `swapped`.
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE static chunk_in_c of(bool swapped, std::ptrdiff_t row,
                                                                       std::ptrdiff_t column, int count) {
        return {swapped ? column : row, swapped ? row : column, count, swapped};
    }
};

/// How an epilogue is called: apply() for a chunk, finish() by all lanes of a warp at the end of its tile, with what a
/// thread has kept in between.
template <class Epilogue>
struct tile_epilogue {
    static constexpr bool is_pointwise = true;
    struct state {};

    MP_ANY_EXECUTION_SPACE
    template <class Thread, int Count>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void apply(Thread /*thread*/, const Epilogue& epilogue,
                                                      state& /*state*/, chunk<float, Count>& values,
                                                      const chunk_in_c& at) {
        MP_UNROLL
        for (int i = 0; i < Count; ++i) {
            const std::ptrdiff_t row = at.down ? at.row + i : at.row;
            const std::ptrdiff_t column = at.down ? at.column : at.column + i;
            if (i < at.count) values.values[i] = epilogue(values.values[i], row, column);
        }
    }
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void finish(Thread /*thread*/, const Epilogue& /*epilogue*/,
                                                       const state& /*state*/) {}
};

template <class Epilogue>
using tile_state = typename tile_epilogue<Epilogue>::state;
/// Whether an epilogue is nothing but a function of each element.
template <class Epilogue>
inline constexpr bool is_pointwise = tile_epilogue<Epilogue>::is_pointwise;

template <class First, class Second>
    requires(!is_pointwise<First> || !is_pointwise<Second>)
struct tile_epilogue<epilogue_chain<First, Second>> {
    static constexpr bool is_pointwise = false;
    struct state {
        tile_state<First> first;
        tile_state<Second> second;
    };

    MP_ANY_EXECUTION_SPACE
    template <class Thread, int Count>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void apply(Thread thread,
                                                      const epilogue_chain<First, Second>& epilogue,
                                                      state& kept, chunk<float, Count>& values,
                                                      const chunk_in_c& at) {
        tile_epilogue<First>::apply(thread, epilogue.first, kept.first, values, at);
        if constexpr (requires { requires First::ends_in_product; }) {
            MP_UNROLL
            for (int i = 0; i < Count; ++i) values.values[i] = opt_barrier(values.values[i]);
        }
        tile_epilogue<Second>::apply(thread, epilogue.second, kept.second, values, at);
    }
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void finish(Thread thread,
                                                       const epilogue_chain<First, Second>& epilogue,
                                                       const state& kept) {
        tile_epilogue<First>::finish(thread, epilogue.first, kept.first);
        tile_epilogue<Second>::finish(thread, epilogue.second, kept.second);
    }
};

/// Neighbours of a chunk that one access moves.
template <class Value, int Count>
inline constexpr int chunk_of_at_most_16_bytes =
    static_cast<int>(sizeof(Value)) * Count <= 16 ? Count : 16 / static_cast<int>(sizeof(Value));

template <class Value>
struct tile_epilogue<store_auxiliary_epilogue<Value>> {
    static_assert(reduced<Value> || std::is_same_v<Value, float>,
                  "mp::store_auxiliary on a GPU: the matrix must be of float or of a reduced format");
    static constexpr bool is_pointwise = false;
    struct state {};

    MP_ANY_EXECUTION_SPACE
    template <class Thread, int Count>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void apply(Thread thread,
                                                      const store_auxiliary_epilogue<Value>& epilogue,
                                                      state& /*state*/, const chunk<float, Count>& values,
                                                      const chunk_in_c& at) {
        constexpr int together = chunk_of_at_most_16_bytes<Value, Count>;
        using part = chunk<Value, together>;
        const matrix_view<Value>& to = epilogue.auxiliary;
        Value* const first = &to(at.row, at.column);
        const std::ptrdiff_t stride = at.down ? to.row_stride() : to.column_stride();
        const chunk<Value, Count> rounded = round_results<Value>(values);
        const bool aligned = reinterpret_cast<std::uintptr_t>(first) % sizeof(part) == 0;
        if (at.count == Count && stride == 1 && aligned) {
            MP_UNROLL
            for (int i = 0; i < Count; i += together) {
                part stored;
                MP_UNROLL
                for (int n = 0; n < together; ++n) stored.values[n] = rounded.values[i + n];
                thread.store(chunk_at<together>(first + i), stored);
            }
        } else {
            MP_UNROLL
            for (int i = 0; i < Count; ++i) {
                if (i < at.count) thread.store(first + i * stride, rounded.values[i]);
            }
        }
    }
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void finish(Thread /*thread*/,
                                                       const store_auxiliary_epilogue<Value>& /*epilogue*/,
                                                       const state& /*state*/) {}
};

template <class Slope, class Value>
struct tile_epilogue<activation_gradient_epilogue<Slope, Value>> {
    static constexpr bool is_pointwise = false;
    struct state {};

    MP_ANY_EXECUTION_SPACE
    template <class Thread, int Count>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void apply(
        Thread thread, const activation_gradient_epilogue<Slope, Value>& epilogue, state& /*state*/,
        chunk<float, Count>& values, const chunk_in_c& at) {
        constexpr int together = chunk_of_at_most_16_bytes<Value, Count>;
        using part = chunk<Value, together>;
        const matrix_view<const Value>& from = epilogue.preactivation;
        const Value* const first = &from(at.row, at.column);
        const std::ptrdiff_t stride = at.down ? from.row_stride() : from.column_stride();
        const bool aligned = reinterpret_cast<std::uintptr_t>(first) % sizeof(part) == 0;
        chunk<Value, Count> before{};
        if (at.count == Count && stride == 1 && aligned) {
            MP_UNROLL
            for (int i = 0; i < Count; i += together) {
                const part loaded = thread.load(chunk_at<together>(first + i));
                MP_UNROLL
                for (int n = 0; n < together; ++n) before.values[i + n] = loaded.values[n];
            }
        } else {
            MP_UNROLL
            for (int i = 0; i < Count; ++i) {
                if (i < at.count) before.values[i] = thread.load(first + i * stride);
            }
        }
        epilogue.slope.visit([&](auto function) MP_INLINED_LAMBDA {
            MP_UNROLL
            for (int i = 0; i < Count; ++i) {
                values.values[i] = apply_elementwise<decltype(function)>(static_cast<float>(before.values[i]),
                                                                         values.values[i]);
            }
        });
    }
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void finish(
        Thread /*thread*/, const activation_gradient_epilogue<Slope, Value>& /*epilogue*/,
        const state& /*state*/) {}
};

/// One atomic operation of a warp for each of its tiles.
template <>
struct tile_epilogue<amax_epilogue> {
    static constexpr bool is_pointwise = false;
    struct state {
        std::uint32_t magnitude = 0;
    };

    template <class Thread, int Count>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void apply(Thread /*thread*/, const amax_epilogue& /*epilogue*/,
                                                      state& kept, const chunk<float, Count>& values,
                                                      const chunk_in_c& at) {
        MP_UNROLL
        for (int i = 0; i < Count; ++i) {
            const std::uint32_t magnitude = bit_cast<std::uint32_t>(values.values[i]) & 0x7fff'ffffU;
            if (i < at.count && magnitude > kept.magnitude) kept.magnitude = magnitude;
        }
    }
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void finish(Thread thread, const amax_epilogue& epilogue,
                                                       const state& kept) {
        std::uint32_t magnitude = kept.magnitude;
        MP_UNROLL
        for (int distance = simt::warp_size / 2; distance != 0; distance /= 2) {
            const std::uint32_t other = thread.shuffle_xor(magnitude, distance);
            magnitude = other > magnitude ? other : magnitude;
        }
        if (thread.lane() == 0 && magnitude != 0) {
            thread.atomic_max(reinterpret_cast<std::uint32_t*>(epilogue.amax), magnitude);
        }
    }
};

}}  // namespace mp::detail
