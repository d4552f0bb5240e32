// SPDX-License-Identifier: MIT
#include <device/gpu/clip_checks.hpp>
#include <device/gpu/simulated_device.hpp>

#include <mp/loss_scaling.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace {

using gpu_test::check_clip;
using gpu_test::check_clip_of_spans;
using gpu_test::simulated_device;
constexpr float infinity = std::numeric_limits<float>::infinity();

TEST_CASE("clipped gradients are the CPU's at every size and alignment, in every schedule") {
    std::vector<std::size_t> sizes{0, 2, 4099};
    for (std::size_t size = 1; size <= 130; size += 6) sizes.push_back(size);
    for (const std::uint64_t seed : {0U, 1U, 2U}) {
        simulated_device device(seed);
        for (const std::size_t shift : {0U, 1U}) {
            check_clip<mp::half>(device, sizes, shift, 1.0F / 3.0F, 2.0);
            check_clip<float>(device, sizes, shift, 0x1p-16F, 1e-4);
        }
    }
    simulated_device device(3);
    check_clip<float>(device, sizes, 1, 1.0F, 0x1p-130);  // products below the normal numbers
    check_clip<float>(device, sizes, 1, 1.0F, 1e9);       // a factor of 1
}

TEST_CASE("spans of any format are clipped where they lie, rounded once to float and then to the format") {
    simulated_device device(4);
    const std::vector<std::size_t> sizes{1, 0, 3, 129, 4100};
    for (const std::size_t shift : {0U, 1U}) {
        check_clip_of_spans<float>(device, sizes, shift, 0.3F);
        check_clip_of_spans<mp::half>(device, sizes, shift, 0.3F);
        check_clip_of_spans<mp::half>(device, sizes, shift, 0x1p-20F);
    }
    check_clip_of_spans<float>(device, std::vector<std::size_t>(300, 5), 0, 0x1.fffffep-1F);
    using work = mp::detail::clip_work<float, mp::detail::skip_by_report>;
    CHECK(mp::detail::tensor_list_kernel<work>::capacity < 300);
}

/// Codes of all kinds, clipped by a factor; and how many loads and stores of gradients that took.
struct clipping {
    std::vector<float> before = gpu_test::random_codes<float>(1000, 4);
    std::vector<float> after;
    std::uint64_t loads = 0;
    std::uint64_t stores = 0;

    template <class Clip>
    explicit clipping(Clip clip) {
        mp::simt::access_statistics statistics;
        simulated_device device(0, &statistics);
        auto memory = device.put(before);
        const std::vector<std::span<float>> list{memory.span()};
        clip(device, list);
        after = device.get(memory);
        for (const auto& cost : statistics.costs()) {
            if (cost.operation == "store") stores += cost.instructions;
            if (cost.operation == "load") loads += cost.instructions;
        }
    }
    [[nodiscard]] bool untouched() const { return stores == 0 && gpu_test::same_bits(before, after); }
};

TEST_CASE("a factor of 1 and a report that has found something leave gradients untouched") {
    const auto clip = [](float factor, unsigned long long infinities) {
        return clipping([&](simulated_device& device, const auto& list) {
            auto clip_factor = device.put(std::vector<float>{factor});
            mp::device_gradient_report found;
            found.infinities = infinities;
            auto report = device.put(std::vector<mp::device_gradient_report>{found});
            mp::clip_gradients(device.exec(), list, clip_factor.data(), report.data());
        });
    };
    CHECK(clip(1.0F, 0).untouched());
    CHECK(clip(0.5F, 1).untouched());
    // Each of the eight warps of the one block has read the factor, and nothing else.
    CHECK(clip(1.0F, 0).loads == 8);
    CHECK(clip(0.5F, 1).loads == 8);
    const clipping clipped = clip(0.5F, 0);
    CHECK_FALSE(clipped.untouched());
    CHECK(clipped.loads == 8 + 8);
    CHECK(clipped.stores == 8);
}

TEST_CASE("the policy of a loss scale decides whether there is a step") {
    const auto clip = [](const auto& policy, unsigned long long nans) {
        return clipping([&](simulated_device& device, const auto& list) {
            auto clip_factor = device.put(std::vector<float>{0.5F});
            auto scale = mp::make_device_loss_scale<0>(policy);
            scale.seen.checked = 1000;
            scale.seen.nans = nans;
            auto on_device = device.put(std::vector<decltype(scale)>{scale});
            mp::clip_gradients(device.exec(), list, policy, on_device.data(), clip_factor.data());
        });
    };
    CHECK(clip(mp::pytorch_policy{}, 1).untouched());
    CHECK_FALSE(clip(mp::pytorch_policy{}, 0).untouched());
    // A policy that takes such steps.
    CHECK_FALSE(clip(mp::static_policy{.initial_scale = 8.0F, .skip_non_finite = false}, 1).untouched());
}

TEST_CASE("a norm that is not finite clips nothing, whatever the report says") {
    for (const float bad : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
        simulated_device device(1);
        std::vector<float> values(100, 3.0F);
        values[70] = bad;
        auto memory = device.put(values);
        auto workspace = device.put(std::vector<double>(1));
        auto norm = device.put(std::vector<mp::device_gradient_norm>(1));
        const std::vector<mp::gpu_gradient<float>> list{{memory.span(), memory.span()}};
        mp::gradient_norm(device.exec(), list, nullptr, workspace.span(), norm.data(), 1.0);
        mp::clip_gradients(device.exec(), list, &norm.data()->clip_factor);
        CHECK(gpu_test::same_bits(device.get(memory), values));
    }
}

TEST_CASE("aligned gradients are clipped in full sectors, 16 bytes at a time") {
    mp::simt::access_statistics statistics;
    simulated_device device(0, &statistics);
    auto memory = device.put(std::vector<mp::half>(8192, mp::half(1.0F)));
    auto factor = device.put(std::vector<float>{0.25F});
    mp::clip_gradients(device.exec(), std::vector<std::span<mp::half>>{memory.span()}, factor.data());
    std::uint64_t stores = 0;
    for (const auto& cost : statistics.costs()) {
        if (cost.operation != "store") continue;
        stores += cost.instructions;
        CHECK(cost.transactions == cost.ideal);
    }
    CHECK(stores == 8192 / (32 * 8));
}

TEST_CASE("clipping with arguments that make no sense") {
    const simulated_device device;
    float factor = 0.5F;
    std::vector<float> values(8, 1.0F);
    const std::vector<std::span<float>> fine{values};
    CHECK_THROWS_WITH_AS(
        mp::clip_gradients(device.exec(), fine, nullptr),
        "mp::clip_gradients: clip_factor is null; it must point to memory, for the size is 1",
        mp::argument_error);
    CHECK_THROWS_WITH_AS(
        mp::clip_gradients(device.exec(),
                           std::vector<std::span<float>>{values, {static_cast<float*>(nullptr), 4}}, &factor),
        "mp::clip_gradients: gradients[1].data() is null; it must point to memory, for the size is 4",
        mp::argument_error);
    const mp::device_loss_scale<mp::pytorch_policy>* const none = nullptr;
    CHECK_THROWS_AS(mp::clip_gradients(device.exec(), fine, mp::pytorch_policy{}, none, &factor),
                    mp::argument_error);
    CHECK(values[0] == 1.0F);
    CHECK_NOTHROW(mp::clip_gradients(device.exec(), std::vector<std::span<float>>{}, &factor));
    mp::clip_gradients(device.exec(), fine, &factor);
    CHECK(values[7] == 0.5F);
}

}  // namespace
