// SPDX-License-Identifier: MIT
#include <mp/bfloat16.hpp>
#include <mp/convert.hpp>
#include <mp/cuda/convert_chunks.hpp>
#include <mp/float4.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

namespace {

/// Numbers of all magnitudes, NaNs with payloads among them, `shift` numbers behind the begin of 16 bytes.
template <class Number>
struct array_at {
    array_at(std::size_t size, std::size_t shift, unsigned seed)
        : memory((size + shift) * sizeof(Number) / sizeof(chunk) + 1), first(shift), count(size) {
        std::mt19937 random(seed);
        for (std::size_t i = 0; i < size; ++i) {
            Number value{};
            if constexpr (mp::reduced<Number>) {
                value = Number::from_bits(static_cast<typename Number::storage>(random()));
            } else {
                const std::uint64_t bits = std::uint64_t{random()} << 32 | random();
                std::memcpy(&value, &bits, sizeof value);
            }
            data()[i] = value;
        }
    }
    Number* data() { return reinterpret_cast<Number*>(memory.data()) + first; }
    std::span<Number> span() { return {data(), count}; }

    struct alignas(16) chunk {
        unsigned char bytes[16];
    };
    std::vector<chunk> memory;
    std::size_t first;
    std::size_t count;
};

/// All threads' shares of a conversion against mp::convert on the CPU, bits and neighbouring bytes.
template <class From, class To, bool Nearest>
void check_shares(std::size_t size, std::size_t from_shift, std::size_t to_shift, std::size_t threads,
                  mp::projection p) {
    array_at<From> from(size, from_shift, 3);
    array_at<To> to(size + 1, to_shift, 4);
    array_at<To> expected(size + 1, to_shift, 4);
    mp::convert(mp::cpu{}, from.span(), expected.span().first(size), p);
    const auto split = mp::detail::split_into_chunks(from.data(), to.data(), size);
    for (std::size_t thread = 0; thread < threads; ++thread) {
        mp::detail::convert_share(thread, threads, from.data(), to.data(), split,
                                  mp::detail::element_conversion<To, From, Nearest>{p});
    }
    CAPTURE(size);
    CAPTURE(from_shift);
    CAPTURE(to_shift);
    CAPTURE(threads);
    CHECK(std::memcmp(to.memory.data(), expected.memory.data(), to.memory.size() * 16) == 0);
}

template <class From, class To>
void check_all_shares() {
    const mp::projection saturating{mp::rounding::nearest_even, mp::saturation::finite};
    for (const std::size_t size : {0u, 1u, 2u, 7u, 16u, 17u, 33u, 64u, 100u, 333u}) {
        for (const std::size_t shift : {0u, 1u, 5u}) {
            check_shares<From, To, true>(size, shift, shift, 1, {});
            check_shares<From, To, true>(size, shift, 0, 5, {});
            check_shares<From, To, false>(size, shift, shift, 3, saturating);
            check_shares<From, To, false>(size, 0, shift, 64, {mp::rounding::downward});
        }
    }
}

TEST_CASE("shares of conversions are mp::convert, NaN included, at every size, alignment and projection") {
    check_all_shares<float, mp::float8_e4m3fn>();
    check_all_shares<mp::float8_e4m3fn, float>();
    check_all_shares<float, mp::half>();
    check_all_shares<mp::half, float>();
    check_all_shares<mp::half, mp::float8_e5m2>();
    check_all_shares<mp::float8_e5m2, mp::half>();
    check_all_shares<mp::bfloat16, mp::float4_e2m1fn>();
    check_all_shares<mp::half, mp::bfloat16>();
    check_all_shares<double, mp::half>();
    check_all_shares<mp::half, double>();
    check_all_shares<mp::half, mp::half>();
}

}  // namespace
