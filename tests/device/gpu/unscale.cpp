// SPDX-License-Identifier: MIT
#include <device/gpu/loss_scaling_checks.hpp>
#include <device/gpu/simulated_device.hpp>

#include <mp/float8.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace {

using gpu_test::check_observe_list;
using gpu_test::check_unscale_list;
using gpu_test::simulated_device;
using mp::detail::chunk_count;
using mp::detail::split_into_chunks;

TEST_CASE("an array that is aligned, or can be after some elements, moves in chunks") {
    alignas(16) const mp::half from[64] = {};
    alignas(16) float to[64] = {};
    CHECK(chunk_count<mp::half, float> == 4);
    CHECK(chunk_count<mp::half, mp::bfloat16> == 8);
    CHECK(chunk_count<double, mp::half> == 2);
    auto split = split_into_chunks(from, to, 64);
    CHECK((split.head == 0 && split.chunks == 16));
    split = split_into_chunks(from + 1, to + 1, 63);
    CHECK((split.head == 3 && split.chunks == 15));
    split = split_into_chunks(from + 1, to + 1, 62);
    CHECK((split.head == 3 && split.chunks == 14 && split.singles<4>() == 6));
    split = split_into_chunks(from + 1, to, 63);
    CHECK((split.chunks == 0 && split.singles<4>() == 63));
    split = split_into_chunks(from, to, 3);
    CHECK((split.chunks == 0 && split.singles<4>() == 3));
    // An array that is not there does not count.
    split = mp::detail::split_together<4>(63, from + 1, static_cast<float*>(nullptr));
    CHECK((split.head == 3 && split.chunks == 15));
}

TEST_CASE("a list of gradients is unscaled and checked at every size and alignment, in every schedule") {
    const std::vector<std::size_t> sizes{0, 1, 2, 3, 5, 4099, 8, 33, 0, 1000};
    for (const std::uint64_t seed : {0U, 1U, 2U}) {
        simulated_device device(seed);
        for (const std::size_t shift : {0U, 1U, 3U}) {
            for (const std::size_t to_shift : {0U, 1U}) {
                for (const int bad : {0, 9}) {
                    check_unscale_list<mp::half>(device, sizes, shift, to_shift, 1.0F / 3.0F, bad);
                    check_unscale_list<float>(device, sizes, shift, to_shift, 0x1p-16F, bad);
                }
            }
        }
    }
    simulated_device device(3);
    check_unscale_list<mp::half>(device, sizes, 0, 0, 0x1p126F, 3);  // makes infinities of its own
    check_unscale_list<mp::bfloat16>(device, sizes, 1, 1, 0x1p-126F, 3);
    check_unscale_list<mp::float8_e5m2>(device, sizes, 2, 2, 2.0F, 3);
}

TEST_CASE("a factor of 1 copies the bits, payloads of NaNs included, also in place") {
    simulated_device device(5);
    const std::vector<float> codes = gpu_test::random_codes<float>(777, 4);
    auto values = device.put(codes);
    auto one = device.put(std::vector<float>{1.0F});
    auto report = device.put(std::vector<mp::device_gradient_report>(1));
    mp::unscale_and_check(device.exec(), values.span(), values.span(), one.data(), report.data(), 3);
    CHECK(gpu_test::same_bits(device.get(values), codes));
    mp::device_gradient_report expected;
    gpu_test::look_at(codes, 3, expected);
    CHECK(device.get(report)[0] == expected);
}

TEST_CASE("more tensors than fit into one launch take several, with numbers that go on") {
    simulated_device device(6);
    std::vector<std::size_t> sizes;
    for (std::size_t i = 0; i < 150; ++i) sizes.push_back(i % 7);
    sizes[140] = 3000;
    CHECK(mp::detail::tensor_list_kernel<mp::detail::unscale_work<mp::half>>::capacity < 120);
    check_unscale_list<mp::half>(device, sizes, 0, 0, 0.5F, 2);
}

TEST_CASE("aligned gradients move in full sectors, 16 bytes at a time") {
    mp::simt::access_statistics statistics;
    simulated_device device(0, &statistics);
    check_unscale_list<mp::half>(device, {4096, 1024, 8192}, 0, 0, 0.5F, 0);
    CHECK(statistics.wasted_sectors() == 0);
    std::uint64_t stores = 0;
    for (const auto& cost : statistics.costs()) {
        if (cost.operation == "store") stores += cost.instructions;
    }
    CHECK(stores == (4096 + 1024 + 8192) / (32 * 4));
}

TEST_CASE("convert_and_observe rounds and counts as the CPU's range report, one by one and as a list") {
    const std::vector<std::size_t> sizes{0, 1, 9, 1000, 5003, 4096};
    for (const std::uint64_t seed : {0U, 7U}) {
        simulated_device device(seed);
        check_observe_list<float, mp::half>(device, sizes, 0, 0x1p-16F, 8188.0);
        check_observe_list<float, mp::half>(device, sizes, 1, 1.0F / 3.0F, 0.0);
        check_observe_list<float, mp::bfloat16>(device, sizes, 2, 0x1p-127F,
                                                std::numeric_limits<double>::infinity());
        check_observe_list<float, mp::float8_e5m2>(device, sizes, 0, 1.0F, 7168.0);
        check_observe_list<float, mp::float8_e4m3fn>(device, sizes, 0, 2.0F, 56.5);
        check_observe_list<mp::bfloat16, mp::half>(device, sizes, 1, 0x1p-3F, 100.0);
    }
}

TEST_CASE("blocks that have several chunks to observe do them all") {
    simulated_device device(1);
    // Of single elements, since the arrays are aligned differently: more chunks than blocks of a launch.
    const std::size_t size =
        1024 * (std::size_t{mp::detail::observe_work<mp::bfloat16, mp::half>::most_blocks} + 2);
    auto from = device.put(std::vector<mp::bfloat16>(size + 1, mp::bfloat16(0x1p-30F)));
    auto to = device.put(std::vector<mp::half>(size, mp::half(1.0F)));
    auto one = device.put(std::vector<float>{1.0F});
    auto report = device.put(std::vector<mp::device_gradient_report>(1));
    mp::convert_and_observe(device.exec(), from.span().subspan(1), to.span(), one.data(), report.data());
    CHECK(device.get(report)[0].flushed == size);
    CHECK(gpu_test::same_bits(device.get(to), std::vector<mp::half>(size)));
}

TEST_CASE("what makes no sense is refused before anything is enqueued") {
    simulated_device device;
    float one = 1.0F;
    mp::device_gradient_report report;
    std::vector<mp::half> gradient(8);
    std::vector<float> unscaled(8);
    using list = std::vector<mp::gpu_gradient<mp::half>>;
    const list fine{{gradient, unscaled}};
    CHECK_THROWS_AS(mp::unscale_and_check(device.exec(), fine, nullptr, &report), mp::argument_error);
    CHECK_THROWS_AS(
        mp::unscale_and_check(device.exec(), fine, &one, static_cast<mp::device_gradient_report*>(nullptr)),
        mp::argument_error);
    CHECK_THROWS_WITH_AS(
        mp::unscale_and_check(device.exec(),
                              list{{gradient, unscaled}, {gradient, std::span(unscaled).first(3)}}, &one,
                              &report),
        "mp::unscale_and_check: unscaled.size() is 3; it must equal gradients.size(), which is 8",
        mp::argument_error);
    const std::span<const mp::half> null(static_cast<const mp::half*>(nullptr), 4);
    CHECK_THROWS_WITH_AS(
        mp::check_gradients(device.exec(), list{{gradient, {}}, {null, {}}}, &one, &report),
        "mp::check_gradients: gradients[1].gradient.data() is null; it must point to memory, "
        "for the size is 4",
        mp::argument_error);
    CHECK_THROWS_AS(mp::check_gradients(device.exec(), fine, &one, &report, std::size_t{1} << 20),
                    mp::argument_error);
    CHECK(report == mp::device_gradient_report{});
    mp::check_gradients(device.exec(), list{}, &one, &report);
    CHECK(report == mp::device_gradient_report{});
}

}  // namespace
