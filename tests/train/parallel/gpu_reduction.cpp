// SPDX-License-Identifier: MIT
// The reduction on a GPU, simulated, has the bits of the one on the CPU.
#include <mp/gpu.hpp>
#include <mp/ops.hpp>
#include <mp/parallel.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "nn/scaling/thrown.hpp"

namespace {

using simulated = mp::simulated_gpu<mp::arch::sm_80>;

template <class Gradient>
struct arrays {
    std::vector<Gradient> w1 = std::vector<Gradient>(4096 + 300), w2 = std::vector<Gradient>(77),
                          w3 = std::vector<Gradient>(1);
    std::vector<Gradient> g1 = w1, g2 = w2, g3 = w3;
    std::vector<mp::parameter<Gradient>> parameters{{"w1", w1, g1}, {"w2", w2, g2}, {"w3", w3, g3}};

    void fill(int rank) {
        std::uint64_t place = static_cast<std::uint64_t>(rank) * 100'000;
        for (auto& it : parameters) {
            for (Gradient& value : it.gradient) {
                value =
                    static_cast<Gradient>(static_cast<float>(mp::random_bits(7, place++)) * 0x1p-31F - 1.0F);
            }
        }
    }
    [[nodiscard]] std::vector<Gradient> all() const {
        std::vector<Gradient> result = g1;
        result.insert(result.end(), g2.begin(), g2.end());
        result.insert(result.end(), g3.begin(), g3.end());
        return result;
    }
};

template <class Gradient, class Executor>
std::vector<std::vector<Gradient>> reduced(const Executor& exec, int ranks,
                                           const mp::reduction_options& options) {
    std::vector<std::vector<Gradient>> results(static_cast<std::size_t>(ranks));
    mp::run_loopback(ranks, [&](auto& self) {
        arrays<Gradient> mine;
        mp::gradient_reduction reduction(exec, self, options, mine.parameters);
        for (int step = 0; step < 2; ++step) {
            mine.fill(self.rank() + 10 * step);
            static_cast<void>(reduction.backward(1.0F));
            reduction.finish();
        }
        results[static_cast<std::size_t>(self.rank())] = mine.all();
    });
    return results;
}

template <class Gradient>
void compare(int ranks, const mp::reduction_options& options) {
    const auto expected = reduced<Gradient>(mp::cpu{}, ranks, options);
    const auto found = reduced<Gradient>(simulated{}, ranks, options);
    for (std::size_t r = 0; r < expected.size(); ++r) {
        CHECK(std::memcmp(found[r].data(), expected[r].data(), expected[r].size() * sizeof(Gradient)) == 0);
    }
}

/// An op that writes a gradient.
void copy(const simulated& gpu, const std::vector<float>& values, std::vector<float>& gradient) {
    const auto count = std::ssize(gradient);
    mp::ops::relu(gpu, mp::row_major(values.data(), 1, count), mp::row_major(gradient.data(), 1, count));
}

}  // namespace

TEST_CASE("the simulated GPU reduces to the bits of the CPU, in every wire format") {
    using enum mp::wire_format;
    for (const auto wire : {as_stored, float32, bfloat16, half}) {
        CAPTURE(mp::name_of(wire));
        compare<float>(3, {.wire = wire, .bucket_bytes = 2000});
    }
    compare<mp::half>(2, {.bucket_bytes = 1});
    compare<mp::bfloat16>(3, {.mean = false});
    compare<mp::bfloat16>(2, {.wire = mp::wire_format::float32, .share_only = true});
}

TEST_CASE("buckets go out while ops of the GPU write gradients, and 8 bits are refused") {
    mp::run_loopback(2, [](auto& self) {
        mp::host_workspace workspace;
        const simulated gpu{.workspace = &workspace};
        arrays<float> mine;
        const std::vector<float> ranks(5000, static_cast<float>(self.rank()));
        mp::gradient_reduction reduction(gpu, self, {.bucket_bytes = 1}, mine.parameters);
        for (int step = 0; step < 3; ++step) {
            {
                const auto overlap = reduction.backward(1.0F);
                copy(gpu, ranks, mine.g2);
                copy(gpu, ranks, mine.g1);
            }
            reduction.finish();
        }
        CHECK(reduction.statistics().buckets_early == 0);  // w3, which is the first to be sent, has no op
        CHECK(mine.g1[17] == 0.5F);
        CHECK(mine.g2[3] == 0.5F);
        std::vector<mp::parameter<float>> two(mine.parameters.begin(), mine.parameters.begin() + 2);
        mp::gradient_reduction rest(gpu, self, {.bucket_bytes = 1}, two);
        for (int step = 0; step < 2; ++step) {
            {
                const auto overlap = rest.backward(1.0F);
                copy(gpu, ranks, mine.g2);
                copy(gpu, ranks, mine.g1);
            }
            rest.finish();
        }
        CHECK(rest.statistics().buckets_early == 2);
        {
            const auto overlap = rest.backward(1.0F);
            copy(gpu, ranks, mine.g2);
            copy(gpu, ranks, mine.g1);
            copy(gpu, ranks, mine.g2);
        }
        CHECK(holds(thrown<mp::state_error>([&] { rest.finish(); }),
                    "parameters[1] ('w2') was written once more"));
        CHECK(holds(thrown<mp::argument_error>(
                        [&] { mp::gradient_reduction(gpu, self, {.wire = mp::wire_format::mxfp8}, two); }),
                    "options.wire is 'mxfp8'; it must be another one: 8 bits are for mp::cpu"));
    });
}
