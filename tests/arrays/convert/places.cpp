// SPDX-License-Identifier: MIT
// Conversion of matrices, and over the memory of the source.
#include <mp/convert.hpp>

#include <doctest/doctest.h>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "arrays/convert/instruction_sets.hpp"

namespace {

template <class Function>
std::string message_of(Function function) {
    try {
        function();
    } catch (const mp::argument_error& error) {
        return error.what();
    }
    return "nothing thrown";
}

template <class From, class To>
void check_in_place() {
    for (const mp::instruction_set isa : instruction_sets_at_hand()) {
        for (const std::size_t count : {0U, 1U, 7U, 64U, 511U, 513U, 3001U}) {
            for (const mp::projection p : {mp::projection{}, mp::projection{mp::rounding::toward_zero}}) {
                std::vector<From> values = edge_values<From, float>(count);
                const std::vector<From> before = values;
                const std::span<To> results =
                    mp::convert_in_place<To>(mp::cpu{.instructions = isa}, values, p);
                CHECK(static_cast<const void*>(results.data()) == static_cast<const void*>(values.data()));
                REQUIRE(results.size() == count);
                std::size_t wrong = 0;
                for (std::size_t i = 0; i < count; ++i)
                    wrong += bits_of(results[i]) != bits_of(mp::round_to<To>(before[i], p)) ? 1U : 0U;
                CHECK(wrong == 0);
            }
        }
    }
}

}  // namespace

TEST_CASE("an array is converted over its own memory") {
    check_in_place<float, mp::half>();
    check_in_place<float, mp::float8_e4m3fn>();
    check_in_place<double, float>();
    check_in_place<double, mp::bfloat16>();
    check_in_place<mp::half, mp::bfloat16>();
    check_in_place<mp::half, mp::half>();
    check_in_place<float, float>();
    CHECK(message_of([] {
              mp::convert_in_place<mp::half>(mp::cpu{}, std::span<float>(static_cast<float*>(nullptr), 3));
          }) == "mp::convert_in_place: numbers.data() is 'null'; it must point to numbers.size() elements");
}

TEST_CASE("matrices of all orders, shapes and leading dimensions are converted, and padding stays") {
    using enum mp::storage_order;
    oracle::random_bits random(9);
    std::size_t wrong = 0;
    for (const mp::instruction_set isa : instruction_sets_at_hand()) {
        for (int round = 0; round < 300; ++round) {
            const auto rows = static_cast<std::ptrdiff_t>(random.below(round % 3 == 0 ? 100 : 9));
            const auto columns = static_cast<std::ptrdiff_t>(random.below(round % 3 == 1 ? 100 : 9));
            const mp::storage_order from_order = random.below(2) == 0 ? row_major : column_major;
            const mp::storage_order to_order = random.below(2) == 0 ? row_major : column_major;
            const std::ptrdiff_t from_leading = (from_order == row_major ? columns : rows) + random.below(3);
            const std::ptrdiff_t to_leading = (to_order == row_major ? columns : rows) + random.below(3);
            std::vector<float> values = edge_values<float, float>(100 * 103);
            std::vector<mp::half> results(100 * 103, mp::half(-3.0f));
            const mp::matrix_view<const float> from{values.data(), rows, columns, from_leading, from_order};
            const mp::matrix_view<mp::half> to{results.data(), rows, columns, to_leading, to_order};
            const mp::projection p{round % 2 == 0 ? mp::rounding::nearest_even : mp::rounding::upward};
            mp::convert(mp::cpu{.threads = 1 + round % 3, .instructions = isa}, from, to, p);
            std::vector<mp::half> expected(results.size(), mp::half(-3.0f));
            for (std::ptrdiff_t r = 0; r < rows; ++r) {
                for (std::ptrdiff_t c = 0; c < columns; ++c) {
                    const std::ptrdiff_t at = to_order == row_major ? r * to_leading + c : c * to_leading + r;
                    expected[static_cast<std::size_t>(at)] = mp::round_to<mp::half>(from(r, c), p);
                }
            }
            wrong += std::memcmp(results.data(), expected.data(), 2 * results.size()) != 0 ? 1U : 0U;
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("large matrices are shared among threads") {
    constexpr std::ptrdiff_t rows = 700;
    constexpr std::ptrdiff_t columns = 900;
    const std::vector<float> values = edge_values<float, float>(rows * (columns + 1));
    for (const mp::storage_order order : {mp::storage_order::row_major, mp::storage_order::column_major}) {
        std::vector<mp::bfloat16> alone(rows * columns);
        std::vector<mp::bfloat16> shared(rows * columns);
        const mp::matrix_view<const float> from{values.data(), rows, columns, columns + 1};
        const std::ptrdiff_t leading = order == mp::storage_order::row_major ? columns : rows;
        mp::convert(mp::cpu{}, from,
                    mp::matrix_view<mp::bfloat16>{alone.data(), rows, columns, leading, order});
        mp::convert(mp::cpu{.threads = 3}, from,
                    mp::matrix_view<mp::bfloat16>{shared.data(), rows, columns, leading, order});
        CHECK(std::memcmp(alone.data(), shared.data(), alone.size() * 2) == 0);
        CHECK(bits_of(alone[1]) == bits_of(mp::round_to<mp::bfloat16>(
                                       order == mp::storage_order::row_major ? from(0, 1) : from(1, 0))));
    }
}

TEST_CASE("matrices that do not fit are refused by name, and nothing is written") {
    const std::vector<float> values(12, 1.0f);
    std::vector<mp::half> results(12, mp::half(7.0f));
    const auto from = mp::row_major(values.data(), 3, 4);
    CHECK(message_of([&] { mp::convert(mp::cpu{}, from, mp::row_major(results.data(), 4, 3)); }) ==
          "mp::convert: to.rows is 4; it must equal from.rows, which is 3");
    CHECK(message_of([&] { mp::convert(mp::cpu{}, from, mp::row_major(results.data(), 3, 3)); }) ==
          "mp::convert: to.columns is 3; it must equal from.columns, which is 4");
    CHECK(message_of([&] { mp::convert(mp::cpu{}, from, mp::row_major(results.data(), 3, 4, 2)); }) ==
          "mp::convert: to.leading_dimension is 2; it must be at least to.columns, which is 4");
    CHECK(results[0] == mp::half(7.0f));
    std::vector<float> shared(30, 1.0f);
    CHECK(message_of([&] {
              mp::convert(mp::cpu{}, mp::row_major(shared.data(), 3, 4), mp::row_major(&shared[11], 3, 4));
          }) == "mp::convert: to is 'overlapping from'; it must be memory of its own");
    CHECK(message_of([&] {
              mp::convert(mp::cpu{}, mp::row_major(shared.data(), 3, 4), mp::row_major(&shared[12], 3, 4));
          }) == "nothing thrown");
}
