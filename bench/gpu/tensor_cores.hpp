// SPDX-License-Identifier: MIT
/// \file
/// Asks tensor cores for single sums of products: kernels that put one row of A and one column of B into a
/// matrix instruction, with zeros around them, and what the model of mp says that comes out.
#pragma once

#include <mp/device/gpu/gemm/plan.hpp>
#include <mp/device/gpu/properties.hpp>
#include <mp/device/simt/fragments.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/device/simt/matrix_descriptor.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/half.hpp>
#include <mp/tensor_core.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "device.hpp"

namespace bench::gpu {

/// One sum: the codes of 32 bytes of A and of B, and the addend, as bits of the type of the sum.
struct question {
    std::uint32_t a[8];
    std::uint32_t b[8];
    std::uint32_t addend;
};

/// mma.sync. A warp has a question.
template <class Input, class Sum>
struct ask_warp_kernel {
    static constexpr int threads = mp::simt::warp_size;

    const question* questions;
    std::uint32_t* answers;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        constexpr int least = mp::detail::least_capability<Input>(mp::gpu_gemm_kernel::mma);
        if constexpr (Thread::capability >= least) run(thread);
    }

private:
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void run(Thread thread) const {
        using namespace mp::simt;  // NOLINT(google-build-using-namespace)
        const question* const it = questions + thread.block();
        registers<4> a{};
        registers<2> b{};
        for (int i = 0; i < 4; ++i) {
            const fragment_coordinate at = mma_a_coordinate(thread.lane(), i);
            if (at.row == 0) a[i] = thread.load(&it->a[at.position / 4]);
        }
        for (int i = 0; i < 2; ++i) {
            const fragment_coordinate at = mma_b_coordinate(thread.lane(), i);
            if (at.row == 0) b[i] = thread.load(&it->b[at.position / 4]);
        }
        std::uint32_t bits = thread.lane() == 0 ? thread.load(&it->addend) : 0;
        if constexpr (std::is_same_v<Sum, mp::half>) {
            registers<2> sum{};
            sum[0] = bits;
            thread.template multiply_add<Input, Input>(sum, a, b);
            bits = sum[0] & 0xFFFFU;
        } else {
            float sum[4] = {mp::detail::bit_cast<float>(bits), 0, 0, 0};
            thread.template multiply_add<Input, Input>(sum, a, b);
            bits = mp::detail::bit_cast<std::uint32_t>(sum[0]);
        }
        if (thread.lane() == 0) thread.store(answers + thread.block(), bits);
    }
};

/// wgmma. A warpgroup has a question.
template <class Input>
struct ask_warpgroup_kernel {
    static constexpr int threads = mp::simt::warpgroup_size;
    static constexpr std::uint32_t tile_bytes = 64 * 128;
    static constexpr std::size_t shared_bytes = 2 * tile_bytes;

    const question* questions;
    std::uint32_t* answers;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        if constexpr (Thread::has_warpgroups) run(thread);
    }

private:
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void run(Thread thread) const {
        using word_pointer = mp::simt::shared_pointer<std::uint32_t>;
        const question* const it = questions + thread.block();
        for (std::uint32_t word = static_cast<std::uint32_t>(thread.index()); word < shared_bytes / 4;
             word += threads) {
            thread.store(word_pointer{word * 4}, std::uint32_t{0});
        }
        thread.sync_block();
        // The first line of a tile is where it is without the exchange of 16-byte chunks, too.
        if (thread.index() < 8) {
            const auto offset = static_cast<std::uint32_t>(thread.index() * 4);
            thread.store(word_pointer{offset}, thread.load(&it->a[thread.index()]));
            thread.store(word_pointer{tile_bytes + offset}, thread.load(&it->b[thread.index()]));
        }
        thread.fence_asynchronous();
        thread.sync_block();
        float sum[32];
        for (float& element : sum) element = 0;
        if (thread.index() == 0) sum[0] = mp::detail::bit_cast<float>(thread.load(&it->addend));
        thread.fence_products();
        thread.template multiply_async<Input, Input, 64>(sum, thread.describe(0, 16, 1024, 128),
                                                         thread.describe(tile_bytes, 16, 1024, 128));
        thread.commit_products();
        thread.template wait_products<0>();
        if (thread.index() == 0) {
            thread.store(answers + thread.block(), mp::detail::bit_cast<std::uint32_t>(sum[0]));
        }
    }
};

/// The bits that the device returns for each question.
template <class Input, class Sum, bool ByWarpgroups>
std::vector<std::uint32_t> ask(device& on, const std::vector<question>& questions) {
    const auto asked = on.put(questions);
    auto answers = on.put(std::vector<std::uint32_t>(questions.size(), 0xDEADBEEF));
    const auto blocks = static_cast<std::ptrdiff_t>(questions.size());
    if constexpr (ByWarpgroups) {
        using kernel = ask_warpgroup_kernel<Input>;
        launch("ask_warpgroup", on.exec(), mp::simt::launch_size{blocks, kernel::shared_bytes},
               kernel{asked.data(), answers.data()});
    } else {
        launch("ask_warp", on.exec(), mp::simt::launch_size{blocks},
               ask_warp_kernel<Input, Sum>{asked.data(), answers.data()});
    }
    on.wait();
    return on.get(answers);
}

/// The bits that the model has for it; or nothing where the architecture has no such instruction.
template <mp::arch Arch, class Input, class Sum, bool ByWarpgroups>
std::uint32_t answer_of_model(const question& it) {
    constexpr int k = mp::simt::mma_k<Input>;
    Input a[k];
    Input b[k];
    std::memcpy(static_cast<void*>(a), it.a, sizeof a);
    std::memcpy(static_cast<void*>(b), it.b, sizeof b);
    constexpr bool is_half = std::is_same_v<Sum, mp::half>;
    const Sum c = [&] {
        if constexpr (is_half) {
            return mp::half::from_bits(static_cast<std::uint16_t>(it.addend));
        } else {
            return mp::detail::bit_cast<float>(it.addend);
        }
    }();
    constexpr auto unit = sizeof(Input) == 1 && !ByWarpgroups && mp::has_float8_through_half(Arch)
                              ? mp::float8_unit::through_half
                              : mp::float8_unit::native;
    Sum d{};
    mp::mma<Arch>(mp::row_major(a, 1, k), mp::column_major(b, k, 1), mp::row_major(&c, 1, 1),
                  mp::row_major(&d, 1, 1), unit);
    if constexpr (is_half) {
        return d.bits();
    } else {
        return mp::detail::bit_cast<std::uint32_t>(d);
    }
}

}  // namespace bench::gpu
