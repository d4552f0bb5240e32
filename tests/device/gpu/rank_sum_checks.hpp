// SPDX-License-Identifier: MIT
// Gradients that are reduced on a device have the bits of the CPU.
#pragma once

#include <mp/parallel.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace gpu_test {

/// Three ranks, of which the others do what this one does; memory is the device's.
template <class Device>
struct mirrored_ranks {
    struct request {};
    Device& device;

    [[nodiscard]] int rank() const { return 0; }
    [[nodiscard]] int size() const { return 3; }
    [[nodiscard]] std::chrono::nanoseconds timeout() const { return mp::default_rank_timeout; }
    void(max)(std::span<std::uint64_t> /*values*/) {}
    void sum(std::span<std::uint64_t> values) {
        for (std::uint64_t& it : values) it *= 3;
    }
    request start_exchange(std::span<const std::byte> from, std::span<std::byte> to,
                           std::span<const std::size_t> cuts) {
        const auto exec = device.exec();
        using memory = mp::detail::executor_memory<std::remove_cvref_t<decltype(exec)>>;
        std::vector<std::byte> part(cuts[1]);
        memory::copy_to_host(exec, part.data(), from.data(), part.size());
        for (std::size_t r = 0; r < 3; ++r) {
            memory::copy_to_device(exec, to.data() + r * part.size(), part.data(), part.size());
        }
        return {};
    }
    request start_gather(std::span<std::byte> /*all*/, std::span<const std::size_t> /*cuts*/) { return {}; }
    bool finished(request& /*it*/) { return true; }
    void wait(request& /*it*/) {}
    void broadcast(std::span<std::byte> /*bytes*/, int /*root*/) {}
};

/// Values of all exponents.
template <class Value>
std::vector<Value> drawn(std::size_t count, std::uint64_t seed) {
    std::vector<Value> result(count);
    for (std::size_t i = 0; i < count; ++i) {
        const float x = static_cast<float>(mp::random_bits(seed, i)) * 0x1p-31F - 1.0F;
        result[i] = static_cast<Value>(x * static_cast<float>(1U << (i % 12)));
    }
    return result;
}

template <class Wire, class To, class Device>
void check_rank_sum(Device& device, std::size_t ranks, std::size_t count, std::size_t shift) {
    const auto values = drawn<Wire>(ranks * count + shift, 3);
    auto parts = device.put(values);
    for (const bool mean : {false, true}) {
        std::vector<To> expected(count);
        mp::detail::sum_over_ranks<Wire, To>(
            mp::cpu{}, reinterpret_cast<const std::byte*>(values.data() + shift), count * sizeof(Wire), ranks,
            mean, reinterpret_cast<std::byte*>(expected.data()), count);
        auto sums = device.put(std::vector<To>(count + shift));
        const auto columns = static_cast<std::ptrdiff_t>(count);
        mp::detail::sum_over_ranks("check_rank_sum", device.exec(),
                                   mp::matrix_view<const Wire>(mp::row_major(
                                       parts.data() + shift, static_cast<std::ptrdiff_t>(ranks), columns)),
                                   mp::row_major(sums.data() + shift, 1, columns), mean);
        const std::vector<To> found = device.get(sums);
        CHECK(std::memcmp(found.data() + shift, expected.data(), count * sizeof(To)) == 0);
    }
}

/// This rank's third of the parameters is the sum; what the other ranks would send back stays as it was sent.
template <class Gradient, class Device>
void check_gradient_reduction(Device& device, mp::wire_format wire) {
    constexpr std::size_t each = 200, count = 30;
    const auto values = drawn<Gradient>(each * count, 5);
    auto weights = device.put(std::vector<Gradient>(values.size()));
    auto gradients = device.put(values);
    std::vector<mp::parameter<Gradient>> parameters;
    for (std::size_t i = 0; i < count; ++i) {
        parameters.push_back({"", {weights.data() + i * each, each}, {gradients.data() + i * each, each}});
    }
    mirrored_ranks<Device> ranks{device};
    mp::gradient_reduction reduction(device.exec(), ranks, {.wire = wire, .mean = false}, parameters);
    static_cast<void>(reduction.backward(1.0F));
    reduction.finish();
    const std::vector<Gradient> found = device.get(gradients);
    const auto in_wire = [&](float x) {
        return wire == mp::wire_format::bfloat16 ? static_cast<float>(mp::bfloat16(x)) : x;
    };
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const float sent = in_wire(static_cast<float>(values[i]));
        const float sum = i < values.size() / 3 ? in_wire(3.0F * sent) : sent;
        if (static_cast<float>(found[i]) != static_cast<float>(static_cast<Gradient>(sum))) ++wrong;
    }
    CHECK(wrong == 0);
}

template <class Device>
void check_rank_sums(Device& device) {
    for (const std::size_t count : {1U, 7U, 4096U, 5001U}) {
        for (const std::size_t shift : {0U, 1U}) {
            check_rank_sum<float, float>(device, 2, count, shift);
            check_rank_sum<mp::half, mp::half>(device, 3, count, shift);
            check_rank_sum<mp::bfloat16, float>(device, 5, count, shift);
            check_rank_sum<float, mp::bfloat16>(device, 3, count, shift);
        }
    }
    check_gradient_reduction<float>(device, mp::wire_format::as_stored);
    check_gradient_reduction<float>(device, mp::wire_format::bfloat16);
    check_gradient_reduction<mp::half>(device, mp::wire_format::as_stored);
}

}  // namespace gpu_test
