// SPDX-License-Identifier: MIT
#include <mp/gemm.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

namespace {

constexpr auto by_row = mp::storage_order::row_major;
constexpr auto by_column = mp::storage_order::column_major;

/// The arguments of a valid product 2 x 3 by 3 x 4, one of which a test then spoils.
struct arguments {
    std::array<float, 6> a_data{};
    std::array<float, 12> b_data{};
    std::array<float, 8> c_data{};
    mp::cpu exec{};
    mp::matrix_view<const float> a = mp::row_major(a_data.data(), 2, 3);
    mp::matrix_view<const float> b = mp::column_major(b_data.data(), 3, 4);
    mp::matrix_view<float> c = mp::row_major(c_data.data(), 2, 4);

    arguments() { c_data.fill(7.0F); }
    arguments(const arguments&) = delete;
    arguments& operator=(const arguments&) = delete;

    std::string message() {
        try {
            mp::gemm(exec, 1.0F, a, b, 0.0F, c);
        } catch (const mp::argument_error& failure) {
            REQUIRE(std::all_of(c_data.begin(), c_data.end(), [](float x) { return x == 7.0F; }));
            return failure.what();
        }
        return {};
    }
};

/// The message of the exception that spoiled arguments cause, or nothing when there is none; after an
/// exception, C must be as it was.
template <class Spoil>
std::string message_after(Spoil spoil) {
    arguments args;
    spoil(args);
    return args.message();
}

TEST_CASE("valid arguments pass") {
    arguments args;
    CHECK(args.message().empty());
    CHECK(args.c_data[7] == 0.0F);
}

TEST_CASE("an executor without threads is refused") {
    for (const int threads : {0, -1}) {
        CHECK(message_after([&](arguments& args) { args.exec.threads = threads; }) ==
              "mp::gemm: exec.threads is " + std::to_string(threads) + "; it must be at least 1");
    }
}

TEST_CASE("negative sizes are refused") {
    CHECK(message_after([](arguments& args) { args.a.rows = -2; }) ==
          "mp::gemm: a.rows is -2; it must not be negative");
    CHECK(message_after([](arguments& args) { args.b.columns = -4; }) ==
          "mp::gemm: b.columns is -4; it must not be negative");
    CHECK(message_after([](arguments& args) {
              args.c.columns = std::numeric_limits<std::ptrdiff_t>::min();
          }) == "mp::gemm: c.columns is -9223372036854775808; it must not be negative");
}

TEST_CASE("a leading dimension shorter than a line is refused") {
    CHECK(message_after([](arguments& args) { args.a.leading_dimension = 2; }) ==
          "mp::gemm: a.leading_dimension is 2; it must be at least a.columns, which is 3");
    CHECK(message_after([](arguments& args) { args.b.leading_dimension = 2; }) ==
          "mp::gemm: b.leading_dimension is 2; it must be at least b.rows, which is 3");
    CHECK(message_after([](arguments& args) { args.c.leading_dimension = -4; }) ==
          "mp::gemm: c.leading_dimension is -4; it must be at least c.columns, which is 4");
}

TEST_CASE("a leading dimension with which the matrix could not exist is refused") {
    for (const std::ptrdiff_t huge :
         {std::numeric_limits<std::ptrdiff_t>::max(), std::numeric_limits<std::ptrdiff_t>::max() / 4}) {
        CHECK(message_after([&](arguments& args) { args.a.leading_dimension = huge; }) ==
              "mp::gemm: a.leading_dimension is " + std::to_string(huge) +
                  "; it must be small enough for the matrix to fit in memory");
    }
}

TEST_CASE("operands and result that do not fit together are refused") {
    CHECK(message_after([](arguments& args) { args.b.rows = 2; }) ==
          "mp::gemm: b.rows is 2; it must equal a.columns, which is 3");
    CHECK(message_after([](arguments& args) { args.c.rows = 1; }) ==
          "mp::gemm: c.rows is 1; it must equal a.rows, which is 2");
    CHECK(message_after([](arguments& args) { args.c.columns = 3; }) ==
          "mp::gemm: c.columns is 3; it must equal b.columns, which is 4");
}

TEST_CASE("null data is refused where there are elements, and only there") {
    CHECK(message_after([](arguments& args) { args.a.data = nullptr; }) ==
          "mp::gemm: a.data is null; it must point to a matrix of 2 x 3 elements");
    CHECK(message_after([](arguments& args) { args.b.data = nullptr; }) ==
          "mp::gemm: b.data is null; it must point to a matrix of 3 x 4 elements");
    CHECK(message_after([](arguments& args) { args.c.data = nullptr; }) ==
          "mp::gemm: c.data is null; it must point to a matrix of 2 x 4 elements");

    const mp::matrix_view<const float> none{};
    const mp::matrix_view<float> no_result{};
    mp::gemm(mp::cpu{}, 1.0F, none, none, 0.0F, no_result);
    // No k: the operands are empty, the result is not.
    std::array<float, 4> c{1, 2, 3, 4};
    mp::gemm(mp::cpu{}, 1.0F, mp::row_major<const float>(nullptr, 2, 0),
             mp::row_major<const float>(nullptr, 0, 2), 2.0F, mp::row_major(c.data(), 2, 2));
    CHECK(c == std::array<float, 4>{2, 4, 6, 8});
}

TEST_CASE("a result that overlaps an operand is refused, whatever the types") {
    std::array<float, 20> memory{};
    const std::array<float, 4> other{};
    const auto run = [&](const auto& a, const auto& b, const auto& c) {
        mp::gemm(mp::cpu{}, 1.0F, a, b, 0.0F, c);
    };
    const auto second = mp::row_major(other.data(), 2, 2);
    CHECK_THROWS_AS(run(mp::row_major(memory.data(), 2, 2), second, mp::row_major(memory.data() + 3, 2, 2)),
                    mp::argument_error);
    CHECK_THROWS_AS(run(second, mp::row_major(memory.data() + 3, 2, 2), mp::row_major(memory.data(), 2, 2)),
                    mp::argument_error);
    CHECK_THROWS_AS(run(mp::row_major(memory.data(), 2, 2), second, mp::column_major(memory.data(), 2, 2)),
                    mp::argument_error);
    CHECK_NOTHROW(run(mp::row_major(memory.data(), 2, 2), second, mp::row_major(memory.data() + 4, 2, 2)));
    std::string message;
    try {
        run(second, mp::row_major(memory.data(), 2, 2), mp::row_major(memory.data(), 2, 2));
    } catch (const mp::argument_error& failure) {
        message = failure.what();
    }
    CHECK(message.starts_with("mp::gemm: c.data is 0x"));
    CHECK(message.ends_with("; it must not make c overlap b, which is read while c is written"));
}

TEST_CASE("overlap of blocks of one matrix is decided exactly") {
    // Compares with marking every byte, for all pairs of blocks of a small matrix and elements of two sizes.
    constexpr std::ptrdiff_t lines = 4;
    constexpr std::ptrdiff_t length = 5;
    struct block {
        std::ptrdiff_t line, first, vector_count, vector_length;
    };
    std::vector<block> blocks;
    for (std::ptrdiff_t line = 0; line < lines; ++line) {
        for (std::ptrdiff_t first = 0; first < length; ++first) {
            for (std::ptrdiff_t count = 0; line + count <= lines; ++count) {
                for (std::ptrdiff_t part = 0; first + part <= length; ++part) {
                    blocks.push_back({line, first, count, part});
                }
            }
        }
    }
    const std::uintptr_t base = 4096;
    int wrong = 0;
    for (const bool rows : {true, false}) {
        const auto extent = [&](const block& x) {
            const auto address = base + static_cast<std::uintptr_t>((x.line * length + x.first) * 2);
            return mp::detail::view_extent{address,
                                           2,
                                           rows ? x.vector_count : x.vector_length,
                                           rows ? x.vector_length : x.vector_count,
                                           length,
                                           rows};
        };
        for (const block& x : blocks) {
            for (const block& y : blocks) {
                const bool lines_meet = x.line < y.line + y.vector_count && y.line < x.line + x.vector_count;
                const bool parts_meet =
                    x.first < y.first + y.vector_length && y.first < x.first + x.vector_length;
                const bool empty =
                    x.vector_count * x.vector_length == 0 || y.vector_count * y.vector_length == 0;
                const bool expected = lines_meet && parts_meet && !empty;
                wrong += mp::detail::views_overlap(extent(x), extent(y)) != expected ? 1 : 0;
            }
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("overlap is decided exactly when lines reach past the place where the next one starts") {
    // Windows of one long array: lines of `length` bytes, `stride` bytes apart, at any distance of the
    // starts.
    constexpr std::ptrdiff_t stride = 7;
    int wrong = 0;
    for (std::ptrdiff_t shift = -40; shift <= 40; ++shift) {
        for (std::ptrdiff_t x_length = 1; x_length <= stride; ++x_length) {
            for (std::ptrdiff_t y_length = 1; y_length <= stride; ++y_length) {
                const std::uintptr_t base = 4096;
                std::vector<bool> marks(512);
                for (std::ptrdiff_t line = 0; line < 3; ++line) {
                    for (std::ptrdiff_t i = 0; i < x_length; ++i) {
                        marks[static_cast<std::size_t>(100 + line * stride + i)] = true;
                    }
                }
                bool expected = false;
                for (std::ptrdiff_t line = 0; line < 2; ++line) {
                    for (std::ptrdiff_t i = 0; i < y_length; ++i) {
                        expected =
                            expected || marks[static_cast<std::size_t>(100 + shift + line * stride + i)];
                    }
                }
                const mp::detail::view_extent x{base + 100, 1, 3, x_length, stride, true};
                const mp::detail::view_extent y{
                    base + static_cast<std::uintptr_t>(100 + shift), 1, 2, y_length, stride, true};
                wrong += mp::detail::views_overlap(x, y) != expected ? 1 : 0;
                wrong += mp::detail::views_overlap(y, x) != expected ? 1 : 0;
            }
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("a block of a matrix can be updated from other blocks of it") {
    for (const auto order : {by_row, by_column}) {
        std::array<float, 16> data{};
        for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i % 5);
        const mp::matrix_view<float> whole{data.data(), 4, 4, 4, order};
        const auto left = whole.block(2, 0, 2, 2);
        const auto top = whole.block(0, 2, 2, 2);
        const auto corner = whole.block(2, 2, 2, 2);
        std::array<float, 4> expected{};
        for (std::ptrdiff_t r = 0; r < 2; ++r) {
            for (std::ptrdiff_t c = 0; c < 2; ++c) {
                expected[static_cast<std::size_t>(2 * r + c)] =
                    corner(r, c) - left(r, 0) * top(0, c) - left(r, 1) * top(1, c);
            }
        }
        mp::gemm(mp::cpu{}, -1.0F, left, top, 1.0F, corner);
        for (std::ptrdiff_t r = 0; r < 2; ++r) {
            for (std::ptrdiff_t c = 0; c < 2; ++c) {
                CHECK(corner(r, c) == expected[static_cast<std::size_t>(2 * r + c)]);
            }
        }
        CHECK_THROWS_AS(mp::gemm(mp::cpu{}, -1.0F, left, top, 1.0F, whole.block(1, 1, 2, 2)),
                        mp::argument_error);
    }
}

}  // namespace
