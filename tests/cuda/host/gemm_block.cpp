// SPDX-License-Identifier: MIT
#include <mp/cuda/gemm_block.hpp>

#include <mp/bfloat16.hpp>
#include <mp/gemm.hpp>
#include <mp/half.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cuda/host/host_block.hpp"

namespace {

using generator = std::mt19937;

constexpr mp::storage_order orders[2] = {mp::storage_order::row_major, mp::storage_order::column_major};

int random_int(generator& random, int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
}

/// A matrix in memory of its own, everything that is not an element filled with NaN.
template <class Value>
class matrix {
public:
    /// `shift` elements before the first one and `padding` after each line decide about the alignment.
    matrix(std::ptrdiff_t rows, std::ptrdiff_t columns, mp::storage_order order, std::ptrdiff_t shift,
           std::ptrdiff_t padding)
        : rows_(rows), columns_(columns), order_(order), shift_(shift) {
        const bool row_major = order == mp::storage_order::row_major;
        leading_ = (row_major ? columns : rows) + padding;
        const std::ptrdiff_t lines = row_major ? rows : columns;
        // Nothing behind the last element, so that the sanitizer sees every access beyond it.
        const std::ptrdiff_t count =
            rows == 0 || columns == 0 ? 0 : (lines - 1) * leading_ + leading_ - padding;
        values_.resize(static_cast<std::size_t>(shift + count));
        std::fill_n(reinterpret_cast<unsigned char*>(values_.data()), values_.size() * sizeof(Value), 0x7F);
    }

    [[nodiscard]] mp::matrix_view<Value> view() {
        return {values_.data() + shift_, rows_, columns_, leading_, order_};
    }
    template <class Draw>
    matrix& fill(Draw draw) {
        for (std::ptrdiff_t r = 0; r < rows_; ++r) {
            for (std::ptrdiff_t c = 0; c < columns_; ++c) view()(r, c) = Value(draw());
        }
        return *this;
    }
    /// All bytes, those around the elements included.
    [[nodiscard]] std::string bytes() const {
        return {reinterpret_cast<const char*>(values_.data()), values_.size() * sizeof(Value)};
    }

private:
    std::ptrdiff_t rows_;
    std::ptrdiff_t columns_;
    mp::storage_order order_;
    std::ptrdiff_t shift_;
    std::ptrdiff_t leading_ = 0;
    std::vector<Value> values_;
};

/// Runs the kernel's blocks in random order, as mp::gemm(cuda_stream) launches them. Returns what went wrong.
template <class Tile, class Input, class Output, class Epilogue>
std::string run_blocks(generator& random, float alpha, mp::matrix_view<Input> a, mp::matrix_view<Input> b,
                       float beta, mp::matrix_view<Output> c, const Epilogue& epilogue,
                       bool barriers = true) {
    auto problem = mp::detail::make_product_problem<Input>(alpha, a, b, beta, c, epilogue);
    const std::ptrdiff_t tiles = mp::detail::tile_count(problem.c.rows, Tile::rows) *
                                 mp::detail::tile_count(problem.c.columns, Tile::columns);
    std::vector<std::ptrdiff_t> blocks(static_cast<std::size_t>(tiles));
    std::iota(blocks.begin(), blocks.end(), 0);
    std::shuffle(blocks.begin(), blocks.end(), random);
    std::string violation;
    mp::detail::with_layouts(problem, [&]<bool ADepthContiguous, bool BDepthContiguous>() {
        using body = mp::detail::gemm_body<Tile, ADepthContiguous, BDepthContiguous, Input,
                                           mp::detail::lane_fragments<Input>>;
        // The tiles from the middle on belong to a second launch.
        const std::ptrdiff_t second = tiles / 2;
        for (const std::ptrdiff_t number : blocks) {
            problem.first_tile = number < second ? 0 : second;
            host::block_state block(number - problem.first_tile, Tile::threads, body::shared_bytes,
                                    static_cast<unsigned>(random()));
            if (!barriers) block.ignore_barriers();
            host::machine<Tile::threads> machine{&block};
            body::run(machine, problem);
            if (violation.empty()) violation = block.violation();
        }
    });
    return violation;
}

struct problem {
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    std::ptrdiff_t depth;
    float alpha = 1;
    float beta = 0;
};

/// Compares with mp::gemm on the CPU: sums in ascending depth of products that are exact in float, so the
/// bits are the same whatever the values.
template <class Tile, class Input, class Output, class Epilogue = mp::identity_epilogue>
void check_product(generator& random, const problem& p, mp::storage_order a_order, mp::storage_order b_order,
                   mp::storage_order c_order, bool aligned, const Epilogue& epilogue = {}) {
    const auto make = [&](auto value, std::ptrdiff_t rows, std::ptrdiff_t columns, mp::storage_order order) {
        const std::ptrdiff_t length = order == mp::storage_order::row_major ? columns : rows;
        const std::ptrdiff_t padding = aligned ? (16 - length % 16) % 16 : random_int(random, 0, 3);
        matrix<decltype(value)> result(rows, columns, order, aligned ? 0 : random_int(random, 0, 9), padding);
        std::normal_distribution<float> draw;
        return result.fill([&] { return draw(random); });
    };
    auto a = make(Input{}, p.rows, p.depth, a_order);
    auto b = make(Input{}, p.depth, p.columns, b_order);
    auto c = make(Output{}, p.rows, p.columns, c_order);
    auto expected = c;
    const mp::cpu ordered{.products = mp::accumulation::ordered};
    mp::gemm(ordered, p.alpha, a.view(), b.view(), p.beta, expected.view(), epilogue);
    const std::string violation =
        run_blocks<Tile>(random, p.alpha, a.view(), b.view(), p.beta, c.view(), epilogue);
    CAPTURE(p.rows);
    CAPTURE(p.columns);
    CAPTURE(p.depth);
    CAPTURE(p.alpha);
    CAPTURE(p.beta);
    CAPTURE(aligned);
    CHECK(violation == "");
    CHECK(c.bytes() == expected.bytes());
}

/// A tile that makes small matrices have many blocks, steps and edges.
using tiny_tile = mp::detail::gemm_tile<32, 32, 16, 16, 16>;
using flat_tile = mp::detail::gemm_tile<16, 64, 32, 16, 32>;

template <class Function>
void for_all_orders(Function f) {
    for (const auto a : orders) {
        for (const auto b : orders) {
            for (const auto c : orders) f(a, b, c);
        }
    }
}

TEST_CASE("the kernel's body gives the bits of the CPU for all layouts, alignments and many odd sizes") {
    generator random(1);
    for (int round = 0; round < 6; ++round) {
        for_all_orders([&](auto a, auto b, auto c) {
            problem p{random_int(random, 1, 70), random_int(random, 1, 70), random_int(random, 0, 70)};
            if (round % 3 == 1) p.alpha = -0.375F;
            if (round % 3 == 2) p.beta = 1.7F;
            check_product<tiny_tile, mp::half, float>(random, p, a, b, c, round % 2 == 0);
            check_product<tiny_tile, mp::half, mp::half>(random, p, a, b, c, round % 2 == 1);
            check_product<flat_tile, mp::bfloat16, mp::bfloat16>(random, p, a, b, c, round % 2 == 0);
        });
    }
    check_product<tiny_tile, mp::bfloat16, float>(random, {33, 31, 40, 2.0F, -1.0F}, orders[0], orders[0],
                                                  orders[0], true);
    check_product<tiny_tile, mp::half, mp::bfloat16>(random, {33, 31, 40}, orders[0], orders[1], orders[0],
                                                     true);
}

TEST_CASE("no size is special: all sizes around the edges of a tile") {
    generator random(2);
    for (const std::ptrdiff_t rows : {1, 7, 8, 9, 31, 32, 33}) {
        for (const std::ptrdiff_t columns : {1, 7, 8, 9, 31, 32, 33}) {
            for (const std::ptrdiff_t depth : {1, 8, 15, 16, 17}) {
                const auto pick = [&] { return orders[random_int(random, 0, 1)]; };
                check_product<tiny_tile, mp::half, float>(random, {rows, columns, depth}, pick(), pick(),
                                                          pick(), random_int(random, 0, 1) == 1);
            }
        }
    }
}

TEST_CASE("the tiles that are launched give the bits of the CPU") {
    generator random(3);
    bool aligned = false;
    for_all_orders([&](auto a, auto b, auto c) {
        aligned = !aligned;
        check_product<mp::detail::small_gemm_tile, mp::half, float>(random, {70, 65, 40, 1.0F, 0.5F}, a, b, c,
                                                                    aligned);
    });
    check_product<mp::detail::large_gemm_tile, mp::half, mp::half>(random, {129, 131, 65}, orders[0],
                                                                   orders[0], orders[0], true);
    check_product<mp::detail::large_gemm_tile, mp::bfloat16, float>(random, {127, 20, 33}, orders[1],
                                                                    orders[1], orders[1], false);
    check_product<mp::detail::large_gemm_tile, mp::half, float>(random, {128, 128, 64}, orders[1], orders[0],
                                                                orders[0], true);
}

TEST_CASE("epilogues see the place in C whatever its order") {
    generator random(4);
    std::vector<float> bias(40);
    for (float& value : bias) value = static_cast<float>(random_int(random, -9, 9));
    for_all_orders([&](auto a, auto b, auto c) {
        const problem p{35, 40, 20};
        check_product<tiny_tile, mp::half, float>(random, p, a, b, c, true,
                                                  mp::then(mp::bias_per_column(bias), mp::relu_epilogue{}));
        check_product<tiny_tile, mp::half, mp::half>(
            random, p, a, b, c, false, mp::bias_per_row(std::span<const float>(bias).first(35)));
    });
}

TEST_CASE("beta 0 does not read C, and alpha 0 or no depth does not read A and B") {
    generator random(5);
    for_all_orders([&](auto a_order, auto b_order, auto c_order) {
        matrix<mp::half> a(33, 17, a_order, 0, 0);
        matrix<mp::half> b(17, 34, b_order, 0, 0);
        a.fill([] { return 1.0F; });
        b.fill([] { return 2.0F; });
        for (const std::ptrdiff_t padding : {0, 7}) {  // c is full of NaN
            matrix<float> c(33, 34, c_order, 0, padding);
            CHECK(run_blocks<tiny_tile>(random, 1.0F, a.view(), b.view(), 0.0F, c.view(),
                                        mp::identity_epilogue{}) == "");
            bool right = true;
            for (std::ptrdiff_t r = 0; r < 33; ++r) {
                for (std::ptrdiff_t j = 0; j < 34; ++j) right = right && c.view()(r, j) == 34.0F;
            }
            CHECK(right);

            matrix<mp::half> nothing_a(33, 17, a_order, 0, 0);  // full of NaN
            matrix<mp::half> nothing_b(17, 34, b_order, 0, 0);
            CHECK(run_blocks<tiny_tile>(random, 0.0F, nothing_a.view(), nothing_b.view(), 0.5F, c.view(),
                                        mp::identity_epilogue{}) == "");
            CHECK(c.view()(32, 33) == 17.0F);
            const mp::matrix_view<mp::half> no_a{nullptr, 33, 0, 33, a_order};
            const mp::matrix_view<mp::half> no_b{nullptr, 0, 34, 34, b_order};
            CHECK(run_blocks<tiny_tile>(random, 1.0F, no_a, no_b, 2.0F, c.view(), mp::identity_epilogue{}) ==
                  "");
            CHECK(c.view()(0, 33) == 34.0F);
            CHECK(run_blocks<tiny_tile>(random, 1.0F, no_a, no_b, 0.0F, c.view(),
                                        mp::bias_per_row(std::vector<float>(33, 3.0F))) == "");
        }
    });
}

TEST_CASE("infinities and NaN reach only the rows and columns that they belong to") {
    generator random(6);
    matrix<mp::half> a(40, 35, orders[0], 0, 5);
    matrix<mp::half> b(35, 40, orders[1], 0, 5);
    matrix<float> c(40, 40, orders[0], 0, 0);
    a.fill([] { return 1.0F; });
    b.fill([] { return 1.0F; });
    a.view()(3, 34) = mp::half(1e9F);
    b.view()(0, 39) = mp::half::from_bits(0x7e00);
    CHECK(run_blocks<tiny_tile>(random, 1.0F, a.view(), b.view(), 0.0F, c.view(), mp::identity_epilogue{}) ==
          "");
    bool right = true;
    for (std::ptrdiff_t r = 0; r < 40; ++r) {
        for (std::ptrdiff_t j = 0; j < 40; ++j) {
            const float value = c.view()(r, j);
            right = right && (j == 39 ? mp::isnan(value) : r == 3 ? mp::isinf(value) : value == 35.0F);
        }
    }
    CHECK(right);
}

TEST_CASE("a missing barrier is found") {
    generator random(7);
    matrix<mp::half> a(40, 40, orders[0], 0, 0);
    matrix<mp::half> b(40, 40, orders[0], 0, 0);
    matrix<float> c(40, 40, orders[0], 0, 0);
    a.fill([] { return 1.0F; });
    b.fill([] { return 1.0F; });
    const std::string violation = run_blocks<tiny_tile>(random, 1.0F, a.view(), b.view(), 0.0F, c.view(),
                                                        mp::identity_epilogue{}, false);
    CHECK(violation.find("another thread") != std::string::npos);
}

TEST_CASE("the host's shared memory tells what a device would not") {
    host::block_state block(5, 64, 256, 1);
    unsigned char* shared = block.shared();
    block.note_write(0, shared, 16);
    block.note_write(0, shared, 16);
    block.note_read(0, shared + 8, 8);
    CHECK(block.violation() == "");
    block.warp_barrier();
    block.note_read(31, shared, 4);  // of the same warp, behind its barrier
    CHECK(block.violation() == "");
    block.barrier();
    block.note_read(33, shared, 16);
    block.note_read(34, shared, 16);
    CHECK(block.violation() == "");
    block.note_write(33, shared + 4, 1);
    CHECK(block.violation() ==
          "block 5, thread 33 writes what another thread reads, at byte 4 of shared memory");

    host::block_state fresh(0, 64, 256, 1);
    fresh.note_read(1, fresh.shared() + 7, 1);
    CHECK(fresh.violation() == "block 0, thread 1 reads what nobody wrote, at byte 7 of shared memory");
    host::block_state small(0, 64, 256, 1);
    small.note_write(1, small.shared() + 255, 2);
    CHECK(small.violation() == "block 0, thread 1 leaves shared memory, at byte 255 of shared memory");
    host::block_state warps(0, 64, 256, 1);
    warps.note_write(1, warps.shared(), 4);
    warps.warp_barrier();
    warps.note_read(32, warps.shared(), 4);
    CHECK(warps.violation() ==
          "block 0, thread 32 reads what another thread writes, at byte 0 of shared memory");
}

TEST_CASE("the numbers of the tiles cover C once, also where there are more than 2^32") {
    for (const std::ptrdiff_t rows : {1, 2, 7, 8, 9, 16, 23}) {
        for (const std::ptrdiff_t columns : {1, 3, 8, 17}) {
            std::set<std::pair<std::ptrdiff_t, std::ptrdiff_t>> places;
            for (std::ptrdiff_t number = 0; number < rows * columns; ++number) {
                const auto place = mp::detail::place_of_tile(number, rows, columns);
                CHECK((place.row >= 0 && place.row < rows && place.column >= 0 && place.column < columns));
                places.insert({place.row, place.column});
            }
            CHECK(static_cast<std::ptrdiff_t>(places.size()) == rows * columns);
        }
    }
    constexpr auto last = mp::detail::place_of_tile((std::ptrdiff_t{1} << 40) - 1, std::ptrdiff_t{1} << 20,
                                                    std::ptrdiff_t{1} << 20);
    static_assert(last.row == (1 << 20) - 1 && last.column == (1 << 20) - 1);
}

TEST_CASE("large products get large tiles") {
    CHECK(mp::detail::prefers_large_tile(4096, 4096));
    CHECK(mp::detail::prefers_large_tile(128, std::ptrdiff_t{128} * 128));
    CHECK_FALSE(mp::detail::prefers_large_tile(1024, 1024));
    CHECK_FALSE(mp::detail::prefers_large_tile(1, 1));
}

}  // namespace
