// SPDX-License-Identifier: MIT
/// \file
/// Parameters that take part in a step on a GPU.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/tensor_list.hpp>
#include <mp/device/simt/gpu_executor.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// used[i] = 1 where parameter i is known to be used, or an element of its gradient is not zero.
template <class Gradient>
struct find_used_work : tensor_work {
    struct arrays {
        const Gradient* from;
        bool known;
    };
    static constexpr int count = chunk_count<Gradient, Gradient>;

    std::uint32_t* used;

    struct thread_data : loads_one_array<Gradient> {
        bool active;
        std::uint32_t* used;
        std::uint32_t reported;  // the last tensor that this thread has found to be used

        MP_ANY_EXECUTION_SPACE
        template <int Count, class Thread>
        MP_HOST_DEVICE MP_ALWAYS_INLINE void finish(const Thread& thread, const tensor_entry<arrays>& tensor,
                                                    std::size_t /*index*/,
                                                    const chunk<Gradient, Count>& gradient, int) {
            bool found = tensor.arrays.known;
            // By bits: with -ftz=true comparisons take subnormal numbers for zero.
            for (int i = 0; i < Count; ++i) {
                found = found || bit_cast<std::uint32_t>(static_cast<float>(gradient.values[i])) << 1 != 0;
            }
            if (!found || reported == tensor.number) return;
            thread.atomic_or(used + tensor.number, 1U);
            reported = tensor.number;
        }
    };

    [[nodiscard]] static chunk_split split(const arrays& of, std::size_t size) {
        return split_together<count>(size, of.from);
    }
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE thread_data begin(const Thread& /*thread*/) const {
        return {{}, true, used, 0xffffffffU};
    }
};

/// Finds them for `count` parameters, into zeros; of those that are known one element is read.
template <class Executor, class GradientOf, class Known>
void find_used(std::string_view function, const Executor& exec, std::uint32_t* used, std::size_t count,
               const GradientOf& gradient_of, const Known& known) {
    using gradient = std::remove_cvref_t<decltype(gradient_of(0)[0])>;
    using work = find_used_work<gradient>;
    run_over_tensors(function, exec, work{{}, used}, count,
                     [&](std::size_t i, typename work::arrays& arrays, std::size_t& size) {
                         arrays = {gradient_of(i).data(), known(i)};
                         size = gradient_of(i).size();
                         if (arrays.known && size > 1) size = 1;
                     });
}

}}  // namespace mp::detail
