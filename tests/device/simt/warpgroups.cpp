// SPDX-License-Identifier: MIT
#include "device/simt/body.hpp"

#include <mp/bfloat16.hpp>
#include <mp/device/simt/fragments.hpp>
#include <mp/device/simt/matrix_descriptor.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/tensor_core.hpp>
#include <mp/tfloat32.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

namespace {

using mp::kernel_violation;
using mp::simt::shared_pointer;

template <class Function>
void run(Function function, std::uint64_t seed) {
    launch("test", mp::simulated_gpu<mp::arch::sm_90>{.seed = seed},
           mp::simt::launch_size{.shared_bytes = std::size_t{96} << 10},
           simt_test::body<128, Function>{function});
}

template <class Function>
kernel_violation violation_of(Function function, std::uint64_t seed = 1) {
    try {
        run(function, seed);
    } catch (const mp::kernel_error& error) {
        return error.violation();
    }
    throw std::logic_error("the kernel was expected to fail");
}

constexpr std::uint32_t a_begin = 0;
constexpr std::uint32_t b_begin = 32768;

/// Puts a matrix of `lines` lines of `row_bytes` into shared memory, in panels of SwizzleBytes of each line
/// that follow each other, swizzled.
template <int SwizzleBytes, class Thread>
void place(Thread thread, std::uint32_t begin, const unsigned char* from, int lines, int row_bytes) {
    for (int chunk = thread.index(); chunk < lines * row_bytes / 16; chunk += 128) {
        const int line = chunk / (row_bytes / 16);
        const int byte = chunk % (row_bytes / 16) * 16;
        const int panel = byte / SwizzleBytes;
        const auto offset = static_cast<std::uint32_t>(line * SwizzleBytes + byte % SwizzleBytes);
        const std::uint32_t to = begin + static_cast<std::uint32_t>(panel * lines * SwizzleBytes) +
                                 mp::simt::swizzled<SwizzleBytes>(offset);
        mp::simt::registers<4> words;
        std::memcpy(&words, from + line * row_bytes + byte, 16);
        thread.store(shared_pointer<mp::simt::registers<4>>{to}, words);
    }
}

template <class Value>
std::vector<Value> normal_numbers(std::size_t size, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<Value> values(size);
    for (Value& x : values) x = Value(normal(random));
    return values;
}

/// The product of tiles of 128 bytes of k, in four instructions, against mp::mma.
template <class A, class B, int Columns>
void check_product(std::uint64_t seed) {
    constexpr int k = 128 / static_cast<int>(sizeof(A));
    const std::vector<A> a = normal_numbers<A>(64 * k, 1);
    const std::vector<B> b = normal_numbers<B>(Columns * k, 2);
    std::vector<float> c = normal_numbers<float>(64 * Columns, 3);
    std::vector<float> expected = c;
    mp::mma<mp::arch::sm_90>(mp::row_major(a.data(), 64, k), mp::column_major(b.data(), k, Columns),
                             mp::row_major(c.data(), 64, Columns),
                             mp::row_major(expected.data(), 64, Columns));
    const auto* const a_bytes = reinterpret_cast<const unsigned char*>(a.data());
    const auto* const b_bytes = reinterpret_cast<const unsigned char*>(b.data());
    float* const c_data = c.data();
    run(
        [=](auto thread) {
            place<128>(thread, a_begin, a_bytes, 64, 128);
            place<128>(thread, b_begin, b_bytes, Columns, 128);
            thread.fence_asynchronous();
            thread.sync_block();
            float sum[Columns / 2];
            for (int i = 0; i < Columns / 2; ++i) {
                const auto at = mp::simt::wgmma_coordinate(thread.index(), i);
                sum[i] = thread.load(c_data + at.row * Columns + at.position);
            }
            const auto left = thread.describe(a_begin, 16, 1024, 128);
            const auto right = thread.describe(b_begin, 16, 1024, 128);
            thread.fence_products();
            for (int p = 0; p < 4; ++p) {
                thread.template multiply_async<A, B, Columns>(sum, left.advanced(32 * p),
                                                              right.advanced(32 * p));
            }
            thread.commit_products();
            thread.template wait_products<0>();
            for (int i = 0; i < Columns / 2; ++i) {
                const auto at = mp::simt::wgmma_coordinate(thread.index(), i);
                thread.store(c_data + at.row * Columns + at.position, sum[i]);
            }
        },
        seed);
    CHECK(std::memcmp(c.data(), expected.data(), c.size() * sizeof(float)) == 0);
}

TEST_CASE("products of a warpgroup of signed bytes: exact sums, modulo 2^32") {
    constexpr int columns = 16, k = 32;
    std::mt19937 random(6);
    std::vector<std::int8_t> a(64 * k), b(columns * k);
    for (std::int8_t& it : a) it = static_cast<std::int8_t>(random());
    for (std::int8_t& it : b) it = static_cast<std::int8_t>(random());
    std::vector<std::int32_t> c(64 * columns);
    for (std::int32_t& it : c) it = static_cast<std::int32_t>(random());
    std::vector<std::int32_t> expected = c;
    for (std::size_t i = 0; i < c.size(); ++i) {
        std::int64_t sum = c[i];
        for (std::size_t p = 0; p < k; ++p)
            sum += std::int64_t{a[i / columns * k + p]} * b[i % columns * k + p];
        expected[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum));
    }
    const auto* const a_bytes = reinterpret_cast<const unsigned char*>(a.data());
    const auto* const b_bytes = reinterpret_cast<const unsigned char*>(b.data());
    std::int32_t* const c_data = c.data();
    run(
        [=](auto thread) {
            place<32>(thread, a_begin, a_bytes, 64, k);
            place<32>(thread, b_begin, b_bytes, columns, k);
            thread.fence_asynchronous();
            thread.sync_block();
            std::int32_t sum[columns / 2];
            for (int i = 0; i < columns / 2; ++i) {
                const auto at = mp::simt::wgmma_coordinate(thread.index(), i);
                sum[i] = thread.load(c_data + at.row * columns + at.position);
            }
            thread.fence_products();
            thread.template multiply_async<std::int8_t, std::int8_t, columns>(
                sum, thread.describe(a_begin, 16, 256, 32), thread.describe(b_begin, 16, 256, 32));
            thread.commit_products();
            thread.template wait_products<0>();
            for (int i = 0; i < columns / 2; ++i) {
                const auto at = mp::simt::wgmma_coordinate(thread.index(), i);
                thread.store(c_data + at.row * columns + at.position, sum[i]);
            }
        },
        1);
    CHECK(c == expected);
}

TEST_CASE("products of a warpgroup have the bits of mp::mma") {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
        check_product<mp::half, mp::half, 16>(seed);
        check_product<mp::half, mp::half, 64>(seed);
        check_product<mp::bfloat16, mp::bfloat16, 256>(seed);
        check_product<mp::tfloat32, mp::tfloat32, 128>(seed);
        check_product<mp::float8_e4m3fn, mp::float8_e5m2, 64>(seed);
    }
}

TEST_CASE("every sum of a warpgroup is in one register of one thread") {
    std::set<std::pair<int, int>> seen;
    for (int thread = 0; thread < 128; ++thread) {
        for (int i = 0; i < 128; ++i) {
            const auto at = mp::simt::wgmma_coordinate(thread, i);
            CHECK((at.row >= 0 && at.row < 64 && at.position >= 0 && at.position < 256));
            seen.emplace(at.row, at.position);
        }
    }
    CHECK(seen.size() == 64 * 256);
}

TEST_CASE("transposed operands of 16 bits give the same product") {
    // Lines of 64 rows of A (columns of B), 128 bytes, for each of 16 ks; B has two panels of them.
    constexpr int columns = 128;
    constexpr int k = 16;
    const std::vector<mp::half> a = normal_numbers<mp::half>(k * 64, 4);       // [k][row]
    const std::vector<mp::half> b = normal_numbers<mp::half>(k * columns, 5);  // [k][column]
    std::vector<float> c(64 * columns);
    std::vector<float> expected(64 * columns);
    mp::mma<mp::arch::sm_90>(mp::column_major(a.data(), 64, k), mp::row_major(b.data(), k, columns),
                             mp::row_major(c.data(), 64, columns),
                             mp::row_major(expected.data(), 64, columns));
    const auto* const a_bytes = reinterpret_cast<const unsigned char*>(a.data());
    const auto* const b_bytes = reinterpret_cast<const unsigned char*>(b.data());
    float* const c_data = c.data();
    run(
        [=](auto thread) {
            place<128>(thread, a_begin, a_bytes, k, 128);
            place<128>(thread, b_begin, b_bytes, k, columns * 2);
            thread.fence_asynchronous();
            thread.sync_block();
            float sum[columns / 2] = {};
            thread.fence_products();
            thread.template multiply_async<mp::half, mp::half, columns, true, true>(
                sum, thread.describe(a_begin, k * 128, 1024, 128),
                thread.describe(b_begin, k * 128, 1024, 128), false);
            thread.commit_products();
            thread.template wait_products<0>();
            for (int i = 0; i < columns / 2; ++i) {
                const auto at = mp::simt::wgmma_coordinate(thread.index(), i);
                thread.store(c_data + at.row * columns + at.position, sum[i]);
            }
        },
        2);
    CHECK(std::memcmp(c.data(), expected.data(), c.size() * sizeof(float)) == 0);
}

/// What a kernel might do wrong with a product.
enum class mistake {
    none,
    no_proxy_fence,
    no_fence,
    reads_early,
    writes_early,
    overwrites_factor,
    no_second_fence
};

/// Whether the sums came out as NaN.
bool product_with(mistake what, std::uint64_t seed) {
    const std::vector<mp::half> ones(256 * 64, mp::half(1));
    const auto* const bytes = reinterpret_cast<const unsigned char*>(ones.data());
    bool is_nan = false;
    bool* const saw_nan = &is_nan;
    run(
        [=](auto thread) {
            place<128>(thread, a_begin, bytes, 64, 128);
            place<128>(thread, b_begin, bytes, 64, 128);
            if (what != mistake::no_proxy_fence) thread.fence_asynchronous();
            thread.sync_block();
            float sum[32] = {};
            const auto left = thread.describe(a_begin, 16, 1024, 128);
            const auto right = thread.describe(b_begin, 16, 1024, 128);
            if (what != mistake::no_fence) thread.fence_products();
            thread.template multiply_async<mp::half, mp::half, 64>(sum, left, right);
            thread.commit_products();
            if (what == mistake::reads_early && thread.index() == 3) *saw_nan = sum[0] != sum[0];
            if (what == mistake::writes_early && thread.index() == 3) sum[5] = 1;
            if (what == mistake::overwrites_factor) {
                place<128>(thread, a_begin, bytes, 64, 128);
            }
            thread.template wait_products<0>();
            CHECK(sum[0] == 16.0F);
            if (what == mistake::no_second_fence) {
                sum[0] = 0;
                thread.template multiply_async<mp::half, mp::half, 64>(sum, left, right);
                thread.commit_products();
                thread.template wait_products<0>();
            }
        },
        seed);
    return is_nan;
}

kernel_violation violation_with(mistake what, std::uint64_t seed) {
    try {
        static_cast<void>(product_with(what, seed));
    } catch (const mp::kernel_error& error) {
        return error.violation();
    }
    throw std::logic_error("the kernel was expected to fail");
}

TEST_CASE("fences and waits of products are not forgotten unnoticed") {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
        CHECK_NOTHROW(product_with(mistake::none, seed));
        CHECK(violation_with(mistake::no_proxy_fence, seed) == kernel_violation::missing_fence);
        CHECK(violation_with(mistake::no_fence, seed) == kernel_violation::missing_fence);
        CHECK(violation_with(mistake::no_second_fence, seed) == kernel_violation::missing_fence);
        CHECK(violation_with(mistake::writes_early, seed) == kernel_violation::unfinished_copy);
        CHECK(violation_with(mistake::overwrites_factor, seed) == kernel_violation::unfinished_copy);
        CHECK(product_with(mistake::reads_early, seed));
    }
}

TEST_CASE("an operand that nobody wrote, and descriptors that differ among threads, are refused") {
    CHECK(violation_of([](auto thread) {
              float sum[32] = {};
              thread.fence_products();
              const auto tile = thread.describe(a_begin, 16, 1024, 128);
              thread.template multiply_async<mp::half, mp::half, 64>(sum, tile, tile);
          }) == kernel_violation::uninitialised_read);
    CHECK(violation_of([](auto thread) {
              float sum[32] = {};
              thread.fence_products();
              const auto tile = thread.describe(a_begin, 16, 1024, 128);
              thread.template multiply_async<mp::half, mp::half, 64>(
                  sum, thread.index() == 5 ? tile.advanced(32) : tile, tile);
          }) == kernel_violation::argument);
}

}  // namespace
