// SPDX-License-Identifier: MIT
// Arrays are converted to the same bits as single numbers, and single numbers are compared with the oracle in
// tests/numbers/format.
#include <mp/convert.hpp>

#include <doctest/doctest.h>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

template <class Value>
std::vector<Value> all_codes() {
    std::vector<Value> values;
    for (std::uint64_t code = 0; code < 2 * oracle::sign_bit(oracle::format_of<Value>); ++code) {
        values.push_back(oracle::value_of<Value>(code));
    }
    return values;
}

template <class Value>
std::vector<Value> weighted_values(std::size_t count, std::uint64_t seed) {
    oracle::random_bits random(seed);
    std::vector<Value> values;
    for (std::size_t i = 0; i < count; ++i) {
        values.push_back(oracle::value_of<Value>(weighted_code(random, oracle::format_of<Value>)));
    }
    return values;
}

/// What a conversion of one number gives; compared by bits, NaNs included.
template <class To, class From>
void compare(oracle::disagreements& wrong, const std::vector<From>& from, const std::vector<To>& to,
             mp::projection p) {
    for (std::size_t i = 0; i < from.size(); ++i) {
        const std::uint64_t expected = oracle::code_of(mp::round_to<To>(from[i], p));
        if (oracle::code_of(to[i]) != expected) {
            wrong.add(oracle::code_of(from[i]), "becomes", oracle::code_of(to[i]), "instead of", expected,
                      "rounding", static_cast<int>(p.round), "saturation", static_cast<int>(p.saturate));
        }
    }
}

template <class To, class From>
void compare_in_every_projection(oracle::disagreements& wrong, const std::vector<From>& from) {
    std::vector<To> to(from.size());
    for (const oracle::mode m : oracle::modes) {
        for (const oracle::saturate s : oracle::saturations) {
            const mp::projection p = oracle::library_projection(m, s);
            mp::convert(mp::cpu{}, from, to, p);
            compare(wrong, from, to, p);
        }
    }
}

template <class From>
void compare_all_targets(oracle::disagreements& wrong, const std::vector<From>& from) {
    compare_in_every_projection<mp::half>(wrong, from);
    compare_in_every_projection<mp::bfloat16>(wrong, from);
    compare_in_every_projection<mp::float8_e4m3fn>(wrong, from);
    compare_in_every_projection<mp::float8_e5m2>(wrong, from);
    compare_in_every_projection<float>(wrong, from);
    compare_in_every_projection<double>(wrong, from);
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

}  // namespace

TEST_CASE_TEMPLATE("arrays of all codes become what single numbers become, in every projection", From,
                   mp::half, mp::bfloat16, mp::float8_e4m3fn, mp::float8_e5m2) {
    oracle::disagreements wrong;
    compare_all_targets(wrong, all_codes<From>());
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("arrays of floats and doubles become what single numbers become, in every projection",
                   From, float, double) {
    oracle::disagreements wrong;
    compare_all_targets(wrong, weighted_values<From>(40000, 1));
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("a sample of all floats becomes the numbers that the oracle names", To, mp::half,
                   mp::bfloat16, mp::float8_e4m3fn, mp::float8_e5m2) {
    const oracle::format& f = oracle::format_of<To>;
    std::vector<float> from;
    for (std::uint64_t code = 0; code < std::uint64_t{1} << 32; code += 8191) {
        from.push_back(oracle::value_of<float>(code));
    }
    std::vector<To> to(from.size());
    mp::convert(mp::cpu{}, from, to);
    oracle::disagreements wrong;
    for (std::size_t i = 0; i < from.size(); ++i) {
        const std::uint64_t code = oracle::code_of(from[i]);
        const oracle::outcome expected =
            finish(f, convert(oracle::binary32, code, f), oracle::mode::nearest_even, oracle::saturate::none);
        if (!matches(f, expected, to[i].bits()))
            wrong.add(code, "becomes", +to[i].bits(), "instead of", expected.code);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("every length and alignment is converted completely and no more", To, mp::half,
                   mp::bfloat16, mp::float8_e4m3fn, float, double) {
    const auto floats = weighted_values<float>(300, 2);
    const auto halves = weighted_values<mp::half>(300, 3);
    oracle::disagreements wrong;
    const auto compare_at = [&](const auto& source, std::size_t offset, std::size_t length) {
        using From = typename std::remove_cvref_t<decltype(source)>::value_type;
        const To guard(-3.0f);
        std::vector<To> to(length + 2 * offset + 2, guard);
        const std::span<const From> from(source.data() + offset, length);
        mp::convert(mp::cpu{}, from, std::span<To>(to.data() + offset + 1, length));
        for (std::size_t i = 0; i < to.size(); ++i) {
            const bool inside = i > offset && i <= offset + length;
            const To expected = inside ? mp::round_to<To>(from[i - offset - 1]) : guard;
            if (oracle::code_of(to[i]) != oracle::code_of(expected)) wrong.add(offset, length, i);
        }
    };
    for (std::size_t offset = 0; offset < 5; ++offset) {
        for (std::size_t length = 0; length < 200; length += length < 80 ? 1 : 7) {
            compare_at(floats, offset, length);
            compare_at(halves, offset, length);
        }
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE("the number of threads changes nothing") {
    const auto from = weighted_values<float>(1000003, 4);
    std::vector<mp::half> alone(from.size());
    mp::convert(mp::cpu{}, from, alone);
    for (const int threads : {2, 3, 7, 64}) {
        std::vector<mp::half> to(from.size());
        mp::convert(mp::cpu{.threads = threads}, from, to);
        std::size_t different = 0;
        for (std::size_t i = 0; i < to.size(); ++i) different += to[i].bits() != alone[i].bits() ? 1 : 0;
        CAPTURE(threads);
        CHECK(different == 0);
    }
}

TEST_CASE("vectors, arrays, spans and C arrays are taken, and empty ones do nothing") {
    const float plain[2] = {1.0f, 2.5f};
    std::array<mp::half, 2> to{};
    mp::convert(mp::cpu{}, plain, to);
    CHECK(to[1] == mp::half(2.5f));
    double back[2] = {};
    mp::convert(mp::cpu{}, std::span<const mp::half>(to), back);
    CHECK(back[1] == 2.5);
    std::vector<mp::bfloat16> nothing;
    mp::convert(mp::cpu{}, std::vector<float>{}, nothing);
    mp::convert(mp::cpu{}, std::span<const float>{}, std::span<mp::half>{});
}

TEST_CASE("arguments that make no sense are named, and nothing is written") {
    const std::vector<float> three = {1.0f, 2.0f, 3.0f};
    std::vector<mp::half> two(2, mp::half(7.0f));
    CHECK(message_of([&] { mp::convert(mp::cpu{}, three, two); }) ==
          "mp::convert: to.size() is 2; it must equal from.size(), which is 3");
    CHECK(two[0] == mp::half(7.0f));
    std::vector<mp::half> to(3, mp::half(7.0f));
    CHECK(message_of([&] { mp::convert(mp::cpu{.threads = 0}, three, to); }) ==
          "mp::convert: exec.threads is 0; it must be at least 1");
    CHECK(to[0] == mp::half(7.0f));
    CHECK(message_of([&] {
              mp::convert(mp::cpu{}, std::span<const float>(static_cast<float*>(nullptr), 3), to);
          }) == "mp::convert: from.data() is 'null'; it must point to from.size() elements");
    CHECK(message_of([&] {
              mp::convert(mp::cpu{}, three, std::span<mp::half>(static_cast<mp::half*>(nullptr), 3));
          }) == "mp::convert: to.data() is 'null'; it must point to to.size() elements");
    CHECK(to[0] == mp::half(7.0f));

    std::vector<float> shared(8, 1.0f);
    const std::span<const float> front(shared.data(), 5);
    CHECK(message_of([&] { mp::convert(mp::cpu{}, front, std::span<float>(shared.data() + 3, 5)); }) ==
          "mp::convert: to is 'overlapping from'; it must be memory of its own");
    CHECK(message_of([&] {
              mp::convert(mp::cpu{}, front.first(3), std::span<float>(shared.data() + 3, 3));
          }) == "nothing thrown");
}
