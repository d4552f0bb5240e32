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

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace {

using mp::arch;
using mp::simt::fragment_coordinate;
using mp::simt::shared_pointer;
using simt_test::error_of;
using simt_test::run;

/// Whether registers and lanes reach `lines` x `positions` places, each once.
template <class Place>
bool is_one_to_one(int registers, int lines, int positions, int step, Place place) {
    std::set<std::pair<int, int>> seen;
    for (int lane = 0; lane < 32; ++lane) {
        for (int i = 0; i < registers; ++i) {
            const fragment_coordinate at = place(lane, i);
            if (at.row < 0 || at.row >= lines || at.position < 0 || at.position >= positions) return false;
            if (at.position % step != 0 || !seen.emplace(at.row, at.position).second) return false;
        }
    }
    return seen.size() == static_cast<std::size_t>(lines * positions / step);
}

TEST_CASE("every element of a fragment is in one register of one lane") {
    CHECK(is_one_to_one(4, 16, 32, 4, mp::simt::mma_a_coordinate));
    CHECK(is_one_to_one(2, 8, 32, 4, mp::simt::mma_b_coordinate));
    CHECK(is_one_to_one(4, 16, 8, 1, mp::simt::mma_c_coordinate));
    CHECK(is_one_to_one(1, 8, 16, 4, [](int lane, int) { return mp::simt::loaded_coordinate(lane); }));
    CHECK(is_one_to_one(2, 8, 16, 2, [](int lane, int i) {
        const fragment_coordinate at = mp::simt::loaded_transposed_coordinate(lane);
        return fragment_coordinate{at.row + i, at.position};
    }));
}

template <int LineBytes>
void check_swizzle() {
    std::set<std::uint32_t> seen;
    for (std::uint32_t offset = 0; offset < 2048; ++offset) {
        const std::uint32_t to = mp::simt::swizzled<LineBytes>(offset);
        CHECK(mp::simt::swizzled<LineBytes>(to) == offset);
        CHECK(to / 128 == offset / 128);
        CHECK(to % 16 == offset % 16);
        seen.insert(to);
    }
    CHECK(seen.size() == 2048);
    // Eight lines of one column of chunks fill all banks.
    for (std::uint32_t column = 0; column < LineBytes; column += 16) {
        for (std::uint32_t first = 0; first < 1024 / LineBytes; first += 8) {
            std::set<std::uint32_t> banks;
            for (std::uint32_t line = first; line < first + 8; ++line) {
                banks.insert(mp::simt::swizzled<LineBytes>(line * LineBytes + column) / 4 % 32);
            }
            CHECK(banks.size() == 8);
        }
    }
}

TEST_CASE("swizzles are their own inverse, stay in their 128 bytes, and spread columns over the banks") {
    check_swizzle<16>();
    check_swizzle<128>();
    check_swizzle<64>();
    check_swizzle<32>();
}

TEST_CASE("load_matrix gives each lane its bytes, also transposed") {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
        run<32>(
            [](auto thread) {
                // Four matrices whose element (row, column) of matrix m is 100 m + 10 row + column.
                const shared_pointer<std::uint16_t> all{};
                const int lane = thread.lane();
                for (int column = 0; column < 8; ++column) {
                    thread.store(all + (lane * 8 + column),
                                 static_cast<std::uint16_t>(lane / 8 * 100 + lane % 8 * 10 + column));
                }
                thread.sync_warp();
                const auto plain = thread.template load_matrix<4>(all + lane * 8);
                const auto turned = thread.template load_matrix_transposed<4>(all + lane * 8);
                for (int m = 0; m < 4; ++m) {
                    for (int half = 0; half < 2; ++half) {
                        const auto number = [half](std::uint32_t word) {
                            return static_cast<int>(word >> (16 * half) & 0xFFFF);
                        };
                        // As the instruction's description has it: lane l, element e of row l / 4 and column
                        // 2 (l % 4) + e.
                        CHECK(number(plain[m]) == 100 * m + 10 * (lane / 4) + 2 * (lane % 4) + half);
                        CHECK(number(turned[m]) == 100 * m + 10 * (2 * (lane % 4) + half) + lane / 4);
                    }
                }
            },
            seed);
    }
}

TEST_CASE("load_matrix refuses rows that begin elsewhere than at multiples of 16 bytes, and unwritten ones") {
    CHECK(error_of<32>([](auto thread) {
              const shared_pointer<std::uint16_t> all{};
              for (int i = 0; i < 8; ++i) thread.store(all + (thread.lane() * 8 + i), std::uint16_t{1});
              thread.sync_warp();
              static_cast<void>(thread.template load_matrix<1>(all + (thread.lane() * 8 + 4)));
          }).violation() == mp::kernel_violation::alignment);
    CHECK(error_of<32>([](auto thread) {
              static_cast<void>(
                  thread.template load_matrix<1>(shared_pointer<std::uint16_t>{} + thread.lane() * 8));
          }).violation() == mp::kernel_violation::uninitialised_read);
}

TEST_CASE("store_matrix brings each lane's bytes to the rows that lanes point to") {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
        run<32, arch::sm_90>(
            [](auto thread) {
                // As the instruction's description has it: element e of register m of lane l is that in row l / 4 and column
                // 2 (l % 4) + e of matrix m. Rows lie in reverse order.
                const shared_pointer<std::uint16_t> all{};
                const int lane = thread.lane();
                mp::simt::registers<4> from;
                for (int m = 0; m < 4; ++m) {
                    const auto first = static_cast<std::uint32_t>(100 * m + 10 * (lane / 4) + lane % 4 * 2);
                    from[m] = first | (first + 1) << 16;
                }
                thread.store_matrix(all + (31 - lane) * 8, from);
                thread.sync_warp();
                for (int column = 0; column < 8; ++column) {
                    CHECK(thread.load(all + ((31 - lane) * 8 + column)) ==
                          100 * (lane / 8) + 10 * (lane % 8) + column);
                }
            },
            seed);
    }
}

TEST_CASE(
    "store_matrix refuses rows at other places than multiples of 16 bytes, and others' that nothing orders") {
    CHECK(error_of<32, arch::sm_90>([](auto thread) {
              thread.store_matrix(shared_pointer<std::uint16_t>{} + (thread.lane() * 8 + 4),
                                  mp::simt::registers<1>{});
          }).violation() == mp::kernel_violation::alignment);
    CHECK(error_of<32, arch::sm_90>([](auto thread) {
              const auto row = shared_pointer<std::uint16_t>{} + thread.lane() * 8;
              thread.store_matrix(row, mp::simt::registers<4>{});
              static_cast<void>(thread.load(row + (thread.lane() == 0 ? 8 : -8)));
          }).violation() == mp::kernel_violation::race);
}

/// One matrix instruction by registers that are filled by hand, against mp::mma.
template <arch Arch, class A, class B>
void check_multiply_add(unsigned seed) {
    constexpr int k = mp::simt::mma_k<A>;
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<A> a(16 * k);
    std::vector<B> b(8 * k);
    std::vector<float> c(16 * 8);
    for (A& x : a) x = A(normal(random));
    for (B& x : b) x = B(normal(random));
    for (float& x : c) x = normal(random);
    std::vector<float> expected = c;
    mp::mma<Arch>(
        mp::row_major(a.data(), 16, k), mp::column_major(b.data(), k, 8), mp::row_major(c.data(), 16, 8),
        mp::row_major(expected.data(), 16, 8),
        mp::has_float8_through_half(Arch) ? mp::float8_unit::through_half : mp::float8_unit::native);
    const A* const a_data = a.data();
    const B* const b_data = b.data();
    float* const c_data = c.data();
    run<32, Arch>(
        [=](auto thread) {
            const int group = thread.lane() / 4;
            const int pair = thread.lane() % 4;
            // From the tables of the instruction, in bytes: row group and group + 8, bytes 4 pair and 16 + 4
            // pair.
            mp::simt::registers<4> left;
            mp::simt::registers<2> right;
            const auto bytes_at = [](const auto* matrix, int line, int byte) {
                std::uint32_t word = 0;
                std::memcpy(&word, reinterpret_cast<const unsigned char*>(matrix) + line * 32 + byte, 4);
                return word;
            };
            left[0] = bytes_at(a_data, group, 4 * pair);
            left[1] = bytes_at(a_data, group + 8, 4 * pair);
            left[2] = bytes_at(a_data, group, 16 + 4 * pair);
            left[3] = bytes_at(a_data, group + 8, 16 + 4 * pair);
            right[0] = bytes_at(b_data, group, 4 * pair);
            right[1] = bytes_at(b_data, group, 16 + 4 * pair);
            float sum[4] = {c_data[group * 8 + 2 * pair], c_data[group * 8 + 2 * pair + 1],
                            c_data[(group + 8) * 8 + 2 * pair], c_data[(group + 8) * 8 + 2 * pair + 1]};
            thread.template multiply_add<A, B>(sum, left, right);
            thread.sync_block();
            for (int i = 0; i < 4; ++i) {
                thread.store(c_data + (group + i / 2 * 8) * 8 + 2 * pair + i % 2, sum[i]);
            }
        },
        seed);
    CHECK(std::memcmp(c.data(), expected.data(), c.size() * sizeof(float)) == 0);
}

TEST_CASE("multiply_add has the bits of mp::mma") {
    for (unsigned seed = 0; seed < 4; ++seed) {
        check_multiply_add<arch::sm_75, mp::half, mp::half>(seed);
        check_multiply_add<arch::sm_80, mp::half, mp::half>(seed);
        check_multiply_add<arch::sm_86, mp::bfloat16, mp::bfloat16>(seed);
        check_multiply_add<arch::sm_89, mp::float8_e4m3fn, mp::float8_e5m2>(seed);
        check_multiply_add<arch::sm_90, mp::tfloat32, mp::tfloat32>(seed);
        check_multiply_add<arch::sm_90, mp::float8_e5m2, mp::float8_e4m3fn>(seed);
        check_multiply_add<arch::sm_100, mp::bfloat16, mp::bfloat16>(seed);
        check_multiply_add<arch::sm_120, mp::float8_e4m3fn, mp::float8_e4m3fn>(seed);
    }
}

/// The same with sums of half.
template <arch Arch>
void check_half_sums(unsigned seed) {
    constexpr int k = mp::simt::mma_k<mp::half>;
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<mp::half> a(16 * k);
    std::vector<mp::half> b(8 * k);
    std::vector<mp::half> c(16 * 8);
    for (auto* const values : {&a, &b, &c}) {
        for (mp::half& x : *values) x = mp::half(normal(random) * 0x1p-9F);
    }
    std::vector<mp::half> expected = c;
    mp::mma<Arch>(mp::row_major(a.data(), 16, k), mp::column_major(b.data(), k, 8),
                  mp::row_major(c.data(), 16, 8), mp::row_major(expected.data(), 16, 8));
    const mp::half* const a_data = a.data();
    const mp::half* const b_data = b.data();
    mp::half* const c_data = c.data();
    run<32, Arch>(
        [=](auto thread) {
            const int group = thread.lane() / 4;
            const int pair = thread.lane() % 4;
            const auto pair_at = [](const mp::half* matrix, int line, int width, int element) {
                const mp::half* const from = matrix + line * width + element;
                return from[0].bits() | std::uint32_t{from[1].bits()} << 16;
            };
            mp::simt::registers<4> left;
            mp::simt::registers<2> right;
            mp::simt::registers<2> sum;
            for (int i = 0; i < 4; ++i) {
                left[i] = pair_at(a_data, group + i % 2 * 8, k, 2 * pair + i / 2 * 8);
            }
            for (int i = 0; i < 2; ++i) {
                right[i] = pair_at(b_data, group, k, 2 * pair + i * 8);
                sum[i] = pair_at(c_data, group + i * 8, 8, 2 * pair);
            }
            thread.template multiply_add<mp::half, mp::half>(sum, left, right);
            thread.sync_block();
            for (int i = 0; i < 4; ++i) {
                const auto bits = static_cast<std::uint16_t>(sum[i / 2] >> i % 2 * 16);
                thread.store(c_data + (group + i / 2 * 8) * 8 + 2 * pair + i % 2, mp::half::from_bits(bits));
            }
        },
        seed);
    CHECK(std::memcmp(c.data(), expected.data(), c.size() * sizeof(mp::half)) == 0);
}

TEST_CASE("multiply_add of 8-bit integers is exact, modulo 2^32") {
    std::mt19937 random(1);
    std::vector<std::int8_t> a(16 * 32), b(8 * 32);
    std::vector<std::int32_t> c(16 * 8), result(16 * 8);
    for (std::int8_t& it : a) it = static_cast<std::int8_t>(random());
    for (std::int8_t& it : b) it = static_cast<std::int8_t>(random());
    std::fill_n(a.begin(), 32, std::int8_t{-128});
    std::fill_n(b.begin(), 32, std::int8_t{-128});
    for (std::int32_t& it : c) it = static_cast<std::int32_t>(random());
    c[0] = 0x7FFFFFFF;
    run<32, arch::sm_80>([&](auto thread) {
        mp::simt::registers<4> left;
        mp::simt::registers<2> right;
        for (int i = 0; i < 4; ++i) {
            const fragment_coordinate at = mp::simt::mma_a_coordinate(thread.lane(), i);
            std::memcpy(&left[i], a.data() + at.row * 32 + at.position, 4);
        }
        for (int i = 0; i < 2; ++i) {
            const fragment_coordinate at = mp::simt::mma_b_coordinate(thread.lane(), i);
            std::memcpy(&right[i], b.data() + at.row * 32 + at.position, 4);
        }
        std::int32_t sum[4];
        const auto at = [&](int i) {
            const fragment_coordinate place = mp::simt::mma_c_coordinate(thread.lane(), i);
            return static_cast<std::size_t>(place.row * 8 + place.position);
        };
        for (int i = 0; i < 4; ++i) sum[i] = c[at(i)];
        thread.template multiply_add<std::int8_t, std::int8_t>(sum, left, right);
        for (int i = 0; i < 4; ++i) result[at(i)] = sum[i];
    });
    for (std::size_t i = 0; i < 16; ++i) {
        for (std::size_t j = 0; j < 8; ++j) {
            std::int64_t sum = c[i * 8 + j];
            for (std::size_t k = 0; k < 32; ++k) sum += a[i * 32 + k] * b[j * 32 + k];
            CHECK(static_cast<std::uint32_t>(result[i * 8 + j]) == static_cast<std::uint32_t>(sum));
        }
    }
    CHECK(result[0] < 0);
}

TEST_CASE("multiply_add with sums of half has the bits of mp::mma") {
    for (unsigned seed = 0; seed < 4; ++seed) {
        check_half_sums<arch::sm_75>(seed);
        check_half_sums<arch::sm_80>(seed);
        check_half_sums<arch::sm_90>(seed);
    }
}

TEST_CASE("where elements of a wmma fragment lie changes with the seed") {
    const auto first_of_lane = [](std::uint64_t seed) {
        std::vector<float> firsts(32);
        float* const to = firsts.data();
        run<32>(
            [to](auto thread) {
                const shared_pointer<mp::half> all{};
                for (int i = 0; i < 8; ++i) {
                    const int number = thread.lane() * 8 + i;
                    thread.store(all + number, mp::half(static_cast<float>(number)));
                }
                thread.sync_warp();
                typename decltype(thread)::template wmma_a<mp::half, true> fragment;
                thread.load_fragment(fragment, all, 16);
                to[thread.lane()] = static_cast<float>(fragment.values[0]);
            },
            seed);
        return firsts;
    };
    CHECK(first_of_lane(1) != first_of_lane(2));
}

TEST_CASE("wmma refuses addresses that are no multiple of 32 bytes, and lanes that disagree") {
    const auto load_from = [](auto place) {
        return [place](auto thread) {
            const shared_pointer<mp::half> all{};
            for (int i = 0; i < 16; ++i) thread.store(all + (thread.lane() * 16 + i), mp::half(1));
            thread.sync_warp();
            typename decltype(thread)::template wmma_a<mp::half, true> fragment;
            thread.load_fragment(fragment, all + place(thread.lane()), 16);
        };
    };
    CHECK_NOTHROW(run<32>(load_from([](int) { return 16; })));
    CHECK(error_of<32>(load_from([](int) { return 8; })).violation() == mp::kernel_violation::alignment);
    CHECK(error_of<32>(load_from([](int lane) { return lane == 7 ? 16 : 0; })).violation() ==
          mp::kernel_violation::argument);
}

}  // namespace
