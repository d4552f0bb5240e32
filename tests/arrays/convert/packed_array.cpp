// SPDX-License-Identifier: MIT
// Packed numbers lie in a little-endian stream of bits, and go there and back as single numbers do.
#include <mp/float4.hpp>
#include <mp/float6.hpp>
#include <mp/half.hpp>
#include <mp/p3109.hpp>
#include <mp/packed_array.hpp>

#include <doctest/doctest.h>
#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

/// Bit `bit` of the stream, from the definition of the layout.
unsigned bit_of(std::span<const std::byte> bytes, std::size_t bit) {
    return (static_cast<unsigned>(bytes[bit / 8]) >> (bit % 8)) & 1;
}

/// Code i of the stream, bit by bit.
template <class T>
unsigned code_in(std::span<const std::byte> bytes, std::size_t i) {
    constexpr std::size_t width = mp::layout_of<typename T::format>::width;
    unsigned code = 0;
    for (std::size_t b = 0; b < width; ++b) code |= bit_of(bytes, i * width + b) << b;
    return code;
}

template <class T>
std::vector<T> random_numbers(std::size_t count, std::uint64_t seed) {
    oracle::random_bits random(seed);
    std::vector<T> values;
    for (std::size_t i = 0; i < count; ++i) {
        values.push_back(T::from_bits(static_cast<std::uint8_t>(random.next())));
    }
    return values;
}

template <class Function>
std::string message_of(Function function) {
    try {
        function();
    } catch (const mp::argument_error& error) {
        return error.what();
    }
    return "nothing thrown";
}

std::vector<unsigned> as_numbers(std::span<const std::byte> bytes) {
    std::vector<unsigned> numbers;
    for (const std::byte byte : bytes) numbers.push_back(static_cast<unsigned>(byte));
    return numbers;
}

using unsigned_p3109 = mp::p3109<3, 2, mp::signedness::is_unsigned, mp::domain::finite>;

#define PACKABLE_TYPES                                                                        \
    mp::float4_e2m1fn, mp::float6_e2m3fn, mp::float6_e3m2fn, unsigned_p3109, mp::p3109<3, 1>, \
        mp::p3109<4, 2>, mp::p3109<5, 3>, mp::p3109<6, 3>, mp::p3109<7, 4>

}  // namespace

static_assert(std::random_access_iterator<mp::packed_array<mp::float4_e2m1fn>::iterator>);
static_assert(std::random_access_iterator<mp::packed_array<mp::float4_e2m1fn>::const_iterator>);
static_assert(std::sortable<mp::packed_array<mp::float6_e2m3fn>::iterator>);
static_assert(std::ranges::random_access_range<mp::packed_span<const mp::float6_e3m2fn>>);
static_assert(!mp::packable<mp::half>);
static_assert(mp::packed_size<mp::float4_e2m1fn>(5) == 3);
static_assert(mp::packed_size<mp::float6_e2m3fn>(4) == 3);
static_assert(mp::packed_size<mp::p3109<7, 4>>(9) == 8);

TEST_CASE("the bytes of packed numbers are those that other libraries write") {
    // Codes 2, 9 and 7, the first one in the low half of the first byte.
    const mp::packed_array<mp::float4_e2m1fn> four{mp::float4_e2m1fn{1}, mp::float4_e2m1fn{-0.5},
                                                   mp::float4_e2m1fn{6}};
    CHECK(as_numbers(four.bytes()) == std::vector<unsigned>{0x92, 0x07});
    // Codes 0x01, 0x22, 0x33, 0x3f: 000001 | 10 0010 | 1100 11 | 111111 from the lowest bit up.
    mp::packed_array<mp::float6_e2m3fn> six(4);
    const std::uint8_t codes[] = {0x01, 0x22, 0x33, 0x3f};
    for (std::size_t i = 0; i < 4; ++i) six[i] = mp::float6_e2m3fn::from_bits(codes[i]);
    CHECK(as_numbers(six.bytes()) == std::vector<unsigned>{0x81, 0x38, 0xff});
}

TEST_CASE_TEMPLATE("elements are read and written at their bits and nowhere else", T, PACKABLE_TYPES) {
    constexpr unsigned mask = mp::layout_of<typename T::format>::code_mask;
    const std::vector<T> values = random_numbers<T>(100, 1);
    mp::packed_array<T> packed(values.size());
    std::vector<unsigned> codes(values.size());
    oracle::random_bits random(2);
    for (int step = 0; step < 3000; ++step) {
        const std::size_t i = random.below(100);
        packed[i] = values[random.below(100)];
        codes[i] = packed[i].value().bits();
        if (step % 100 != 0) continue;
        for (std::size_t k = 0; k < codes.size(); ++k) {
            REQUIRE(code_in<T>(packed.bytes(), k) == codes[k]);
            REQUIRE(std::as_const(packed)[k].bits() == codes[k]);
            REQUIRE(codes[k] <= mask);
        }
    }
    const mp::packed_array<T> copy(values.begin(), values.end());
    CHECK(
        std::equal(copy.begin(), copy.end(), values.begin(), [](T a, T b) { return a.bits() == b.bits(); }));
    CHECK(copy.bytes().size() == (100u * mp::packed_span<T>::width + 7) / 8);
}

TEST_CASE_TEMPLATE("a packed array can be sorted, resized, cut and compared", T, mp::float4_e2m1fn,
                   mp::float6_e2m3fn, mp::float6_e3m2fn) {
    const std::vector<T> values = random_numbers<T>(77, 3);
    mp::packed_array<T> packed(values.begin(), values.end());
    std::vector<T> sorted = values;
    std::ranges::sort(sorted);
    std::ranges::sort(packed);
    for (std::size_t i = 0; i < sorted.size(); ++i) CHECK(packed[i].value() == sorted[i]);

    for (const std::size_t size : {76u, 33u, 32u, 3u, 1u}) {
        packed.resize(size);
        CHECK(packed.bytes().size() == mp::packed_size<T>(size));
        for (std::size_t b = size * mp::packed_span<T>::width; b < packed.bytes().size() * 8; ++b) {
            CHECK(bit_of(packed.bytes(), b) == 0);
        }
    }
    packed.resize(5);
    CHECK(packed.at(4).value().bits() == 0);
    CHECK(packed.at(0).value() == sorted[0]);

    const mp::packed_array<T> whole(values.begin(), values.end());
    for (std::size_t first = 0; first < 12; ++first) {
        const auto part = whole.view().subspan(first, 60).subspan(2, 55);
        REQUIRE(part.size() == 55);
        for (std::size_t i = 0; i < part.size(); ++i) {
            CHECK(part[i].bits() == values[first + 2 + i].bits());
        }
        std::vector<float> floats(55);
        mp::unpack(mp::cpu{}, part, floats);
        for (std::size_t i = 0; i < part.size(); ++i) CHECK(floats[i] == float(values[first + 2 + i]));
    }
    CHECK(same_codes(whole, mp::packed_array<T>(values.begin(), values.end())));
    CHECK_FALSE(same_codes(whole, packed));
}

TEST_CASE_TEMPLATE("pack and unpack give what single numbers give, for every size and number of threads", T,
                   PACKABLE_TYPES) {
    oracle::random_bits random(4);
    for (const std::size_t size : {0u, 1u, 7u, 8u, 9u, 255u, 256u, 257u, 1000u, 300007u}) {
        std::vector<float> floats(size);
        for (float& x : floats) {
            x = oracle::value_of<float>(weighted_code(random, oracle::binary32));
            if (random.below(2) != 0) x = static_cast<float>(random.below(4096)) / 256 - 8;
        }
        for (const mp::projection p :
             {mp::projection{}, mp::projection{mp::rounding::upward, mp::saturation::finite}}) {
            for (const int threads : {1, 3}) {
                mp::packed_array<T> packed(size);
                mp::pack(mp::cpu{threads}, floats, packed, p);
                oracle::disagreements wrong;
                std::vector<mp::half> halves(size);
                mp::unpack(mp::cpu{threads}, packed, halves, p);
                for (std::size_t i = 0; i < size; ++i) {
                    const T expected = mp::round_to<T>(floats[i], p);
                    if (code_in<T>(packed.bytes(), i) != expected.bits()) wrong.add("pack", i, floats[i]);
                    if (halves[i].bits() != mp::round_to<mp::half>(expected, p).bits()) {
                        wrong.add("unpack", i, floats[i]);
                    }
                }
                INFO(wrong.first());
                CHECK(wrong.count == 0);
            }
        }
    }
}

TEST_CASE("packing into the middle of an array changes nothing around it") {
    using T = mp::float6_e2m3fn;
    for (std::size_t first = 0; first < 9; ++first) {
        for (std::size_t count = 0; count < 20; ++count) {
            mp::packed_array<T> packed(32, T{7.5f});
            const std::vector<float> ones(count, -1.0f);
            mp::pack(mp::cpu{.threads = 2}, ones, packed.view().subspan(first, count));
            for (std::size_t i = 0; i < 32; ++i) {
                CHECK(packed[i].value() == (i >= first && i < first + count ? T{-1.0f} : T{7.5f}));
            }
        }
    }
}

TEST_CASE("wrong arguments are refused by name, before anything is written") {
    using T = mp::float4_e2m1fn;
    mp::packed_array<T> packed(4, T{1.0f});
    std::vector<float> three(3, 2.0f);
    CHECK(message_of([&] { (void)packed.at(4); }) ==
          "mp::packed_span::at: i is 4; it must be less than size(), which is 4");
    CHECK(message_of([&] { (void)packed.view().subspan(5, 0); }) ==
          "mp::packed_span::subspan: first is 5; it must be at most size(), which is 4");
    CHECK(message_of([&] { (void)packed.view().subspan(1, 4); }) ==
          "mp::packed_span::subspan: count is 4; it must be at most size() - first, which is 3");
    CHECK(message_of([&] { mp::pack(mp::cpu{}, three, packed); }) ==
          "mp::pack: to.size() is 4; it must equal from.size(), which is 3");
    CHECK(message_of([&] { mp::unpack(mp::cpu{}, packed, three); }) ==
          "mp::unpack: to.size() is 3; it must equal from.size(), which is 4");
    CHECK(message_of([&] { mp::pack(mp::cpu{.threads = 0}, three, packed); }) ==
          "mp::pack: exec.threads is 0; it must be at least 1");
    std::byte bytes[16] = {};
    const mp::packed_span<T> inside(bytes + 1, 4);
    const std::span<float> floats(reinterpret_cast<float*>(bytes), 4);
    CHECK(message_of([&] { mp::unpack(mp::cpu{}, inside, floats); }) ==
          "mp::unpack: to is 'overlapping from'; it must be memory of its own");
    CHECK(message_of([&] { mp::pack(mp::cpu{}, three, mp::packed_span<T>(nullptr, 3)); }) ==
          "mp::pack: to.data() is 'null'; it must point to to.size() elements");
    CHECK(packed[0].value() == T{1.0f});
    CHECK(three[0] == 2.0f);
}
