// SPDX-License-Identifier: MIT
#include <device/gpu/convert_checks.hpp>
#include <device/gpu/simulated_device.hpp>

#include <mp/convert.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

namespace {

using gpu_test::check_convert;
using gpu_test::check_convert_stochastic;
using gpu_test::simulated_device;

const mp::projection saturating{mp::rounding::nearest_even, mp::saturation::finite};
const mp::projection downward{mp::rounding::downward};

TEST_CASE("arrays of every size and alignment are converted as single numbers are, and nothing else is") {
    std::vector<std::size_t> sizes{0, 2};
    for (std::size_t size = 1; size <= 130; size += 2) sizes.push_back(size);
    for (const std::uint64_t seed : {0U, 1U}) {
        simulated_device device(seed);
        for (const auto& [from_shift, to_shift] :
             std::vector<std::array<std::size_t, 2>>{{0, 0}, {1, 1}, {1, 0}, {0, 1}, {3, 7}}) {
            if (seed != 0 && from_shift != 1) continue;
            check_convert<float, mp::half>(device, sizes, from_shift, to_shift);
            check_convert<float, mp::half>(device, sizes, from_shift, to_shift, saturating);
            check_convert<float, mp::half>(device, sizes, from_shift, to_shift, downward);
            check_convert<mp::half, mp::float8_e4m3fn>(device, sizes, from_shift, to_shift);
            check_convert_stochastic<float, mp::bfloat16>(device, sizes, from_shift, to_shift, 77, 5);
        }
    }
}

TEST_CASE("kernels convert in every projection") {
    const std::vector<std::size_t> sizes{1, 700};
    simulated_device device(3);
    for (const mp::projection& p : gpu_test::projections()) {
        check_convert<float, mp::half>(device, sizes, 1, 1, p);
        check_convert<mp::half, mp::float8_e4m3fn>(device, sizes, 0, 0, p);
        check_convert<mp::float8_e5m2, float>(device, sizes, 1, 1, p);
        check_convert<double, mp::tfloat32>(device, sizes, 1, 1, p);
        check_convert<mp::bfloat16, mp::bfloat16>(device, sizes, 0, 0, p);
    }
}

TEST_CASE("results are those of exact arithmetic that shares no code with the library") {
    simulated_device device(4);
    const auto check = [&]<class From, class To>(From, To) {
        oracle::disagreements wrong;
        const oracle::format& from_format = oracle::format_of<From>;
        const oracle::format& to_format = oracle::format_of<To>;
        const std::vector<From> values = gpu_test::numbers_of_all_kinds<From>(1000, 8);
        auto from = device.put(values);
        auto to = device.put(std::vector<To>(values.size()));
        for (const oracle::mode mode : oracle::modes) {
            for (const oracle::saturate saturate : oracle::saturations) {
                mp::convert(device.exec(), from.span(), to.span(), library_projection(mode, saturate));
                const std::vector<To> results = device.get(to);
                for (std::size_t i = 0; i < values.size(); ++i) {
                    const std::uint64_t code = oracle::code_of(values[i]);
                    const std::uint64_t expected =
                        is_nan(from_format, code)
                            ? converted_nan(from_format, code, to_format)
                            : finish(to_format, convert(from_format, code, to_format), mode, saturate).code;
                    const bool any_nan =
                        !is_nan(from_format, code) &&
                        finish(to_format, convert(from_format, code, to_format), mode, saturate).nan;
                    const std::uint64_t found = oracle::code_of(results[i]);
                    if (any_nan ? !is_nan(to_format, found) : found != expected) {
                        wrong.add(name_of(mode), name_of(saturate), code, "becomes", found, "not", expected);
                    }
                }
            }
        }
        INFO(wrong.first());
        CHECK(wrong.count == 0);
    };
    check(float{}, mp::half{});
    check(mp::half{}, mp::float8_e4m3fn{});
    check(double{}, mp::tfloat32{});
}

/// Ten rounds of Philox 4x32 as its authors describe them, and the word of an element.
std::uint32_t philox_word(std::uint64_t seed, std::uint64_t index) {
    std::uint32_t x[4] = {static_cast<std::uint32_t>(index / 4), static_cast<std::uint32_t>(index / 4 >> 32),
                          0, 0};
    auto k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9U, k1 += 0xBB67AE85U) {
        const std::uint64_t a = std::uint64_t{x[0]} * 0xD2511F53U;
        const std::uint64_t b = std::uint64_t{x[2]} * 0xCD9E8D57U;
        const std::uint32_t next[4] = {
            static_cast<std::uint32_t>(b >> 32) ^ x[1] ^ k0, static_cast<std::uint32_t>(b),
            static_cast<std::uint32_t>(a >> 32) ^ x[3] ^ k1, static_cast<std::uint32_t>(a)};
        std::memcpy(x, next, sizeof x);
    }
    return x[index % 4];
}

TEST_CASE("stochastic rounding has the random bits of each element's number, as on a CPU") {
    constexpr std::uint64_t seed = 0xfedc'ba98'7654'3210;
    simulated_device device(5);
    for (const std::uint64_t first : {0x0ULL, 0x1ULL, 0x3'ffff'fff1ULL, 0xffff'ffff'ffff'0000ULL}) {
        const std::vector<float> values = gpu_test::numbers_of_all_kinds<float>(1003, 11);
        auto from = device.put(values);
        auto to = device.put(std::vector<mp::bfloat16>(values.size()));
        mp::convert_stochastic(device.exec(), from.span(), to.span(), seed, first);
        const std::vector<mp::bfloat16> found = device.get(to);
        std::vector<mp::bfloat16> on_cpu(values.size());
        mp::convert_stochastic(mp::cpu{}, values, on_cpu, seed, first);
        CHECK(gpu_test::same_bits(found, on_cpu));
        int wrong = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
            // Codes of bfloat16 are the upper halves of floats': a carry out of the lower half rounds up.
            const std::uint32_t bits = gpu_test::bits_of(values[i]);
            if ((bits & 0x7fff'ffffU) >= 0x7f80'0000U) continue;
            wrong += found[i].bits() != (bits + (philox_word(seed, first + i) >> 16)) >> 16 ? 1 : 0;
        }
        CHECK(wrong == 0);
    }
    for (const mp::rounding kind :
         {mp::rounding::stochastic_a, mp::rounding::stochastic_b, mp::rounding::stochastic_c}) {
        mp::projection p = mp::stochastic(0, 9);
        p.round = kind;
        p.saturate = mp::saturation::finite;
        check_convert_stochastic<float, mp::bfloat16>(device, {5, 0, 301, 2, 64}, 1, 1, seed, 1234567, p);
    }
}

TEST_CASE("more arrays than fit into one launch take several, with numbers that go on") {
    simulated_device device(6);
    std::vector<std::size_t> sizes;
    for (std::size_t i = 0; i < 150; ++i) sizes.push_back(i % 7);
    sizes[140] = 3000;
    using nearest = mp::detail::convert_work<float, mp::half, mp::detail::nearest_conversion>;
    CHECK(mp::detail::tensor_list_kernel<nearest>::capacity > 90);
    CHECK(mp::detail::tensor_list_kernel<nearest>::capacity < 120);
    check_convert<float, mp::half>(device, sizes, 0, 0);
    check_convert_stochastic<float, mp::bfloat16>(device, sizes, 0, 0, 3, 1);
}

TEST_CASE("aligned arrays move in full sectors, 16 bytes of the wider type at a time") {
    constexpr std::size_t size = 16384;
    const auto check = [](auto from_type, auto to_type, const mp::projection& p) {
        using from_number = decltype(from_type);
        using to_number = decltype(to_type);
        constexpr std::size_t wider =
            sizeof(from_number) > sizeof(to_number) ? sizeof(from_number) : sizeof(to_number);
        // Also where both begin in the same place behind a multiple of 16 bytes, except for the ends.
        for (const std::size_t shift : {std::size_t{0}, 16 / wider - 1}) {
            mp::simt::access_statistics statistics;
            simulated_device device(0, &statistics);
            auto from = device.put(std::vector<from_number>(size + shift));
            auto to = device.put(std::vector<to_number>(size + shift));
            mp::convert(device.exec(), from.span().subspan(shift), to.span().subspan(shift), p);
            std::uint64_t loads = 0;
            std::uint64_t stores = 0;
            for (const auto& cost : statistics.costs()) {
                CHECK_FALSE(cost.shared);
                (cost.operation == "load" ? loads : stores) += cost.instructions;
            }
            const std::uint64_t accesses = size / (32 * 16 / wider);
            if (shift == 0) CHECK(statistics.wasted_sectors() == 0);
            CHECK(loads >= accesses);
            CHECK(loads <= accesses + (shift == 0 ? 0 : 2));
            CHECK(stores == loads);
        }
    };
    check(float{}, mp::half{}, {});
    check(float{}, mp::half{}, saturating);
    check(float{}, mp::half{}, downward);
    check(mp::half{}, mp::float8_e4m3fn{}, {});
    check(mp::float8_e5m2{}, float{}, {});
    check(double{}, mp::tfloat32{}, downward);
}

TEST_CASE("arguments that make no sense are refused before anything is written") {
    const simulated_device device;
    const auto& exec = device.exec();
    std::vector<float> values(8, 1.0F);
    std::vector<mp::half> halves(8);
    const std::span<const float> from(values);
    const std::span<mp::half> to(halves);
    using mp::argument_error;
    CHECK_THROWS_WITH_AS(mp::convert(exec, from, to.first(7)),
                         "mp::convert: to.size() is 7; it must equal from.size(), which is 8",
                         argument_error);
    CHECK_THROWS_AS(mp::convert(exec, from, std::span(static_cast<mp::half*>(nullptr), 8)), argument_error);
    CHECK_THROWS_AS(mp::convert(exec, std::span(static_cast<const float*>(nullptr), 8), to), argument_error);
    CHECK_THROWS_AS(mp::convert(exec, from, std::span(values)), argument_error);
    CHECK_NOTHROW(mp::convert(exec, std::span<const float>{}, std::span<mp::half>{}));
    using list = std::vector<mp::gpu_conversion<float, mp::half>>;
    CHECK_THROWS_WITH_AS(
        mp::convert(exec, list{{from, to}, {from, std::span(static_cast<mp::half*>(nullptr), 8)}}),
        "mp::convert: arrays[1].to.data() is null; it must point to memory, for the size is 8",
        argument_error);
    CHECK_THROWS_AS(mp::convert(exec, list{{from, to}, {from, to.first(7)}}), argument_error);
    CHECK_NOTHROW(mp::convert(exec, list{}));
    CHECK_THROWS_WITH_AS(
        mp::convert_stochastic(exec, from, to, 1, 0, downward),
        "mp::convert_stochastic: p.round is 4; it must be stochastic_a, stochastic_b or stochastic_c",
        argument_error);
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    CHECK_THROWS_AS(mp::convert_stochastic(exec, from, to, 1, most - 6), argument_error);
    CHECK_THROWS_AS(
        mp::convert_stochastic(exec, list{{from.first(4), to.first(4)}, {from, to}}, 1, most - 10),
        argument_error);
    CHECK(gpu_test::same_bits(halves, std::vector<mp::half>(8)));
    CHECK_NOTHROW(mp::convert_stochastic(exec, from, to, 1, most - 7));
    CHECK_NOTHROW(mp::convert_stochastic(exec, list{}, 1, most));
    CHECK(halves[7] == mp::half(1.0F));
}

}  // namespace
