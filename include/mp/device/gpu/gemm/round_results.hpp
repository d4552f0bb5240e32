// SPDX-License-Identifier: MIT
/// \file
/// Results of a product rounded to the type of C.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/convert_chunks.hpp>

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

}}  // namespace mp::detail
