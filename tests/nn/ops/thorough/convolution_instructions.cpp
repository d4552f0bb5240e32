// SPDX-License-Identifier: MIT
// Convolutions on every instruction set, whose patches are packed from the padded image, against the portable
// code, which makes the matrix of patches; in the order of accumulation::ordered they have the same bits.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/gemm.hpp>
#include <mp/half.hpp>
#include <mp/nn/ops/convolution.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <vector>

#include "nn/ops/reference.hpp"

namespace {

using mp::bfloat16;
using mp::half;
using mp::instruction_set;
using mp::storage_order;
using mp::ops::absent;
using mp::ops::conv2d_geometry;
using ops_test::matrix;
using ops_test::same_bits;

/// A format of the user's of 10 bits, which are kept in 16 as those of half and bfloat16 are, but are other codes.
struct ten_bits : mp::detail::ieee_format<5, 4> {
    static constexpr const char* name = "e5m4";
};

struct problem {
    conv2d_geometry geometry;
    std::ptrdiff_t outputs;
    std::ptrdiff_t images = 3;
};

/// Around the widths of vectors and panels, with everything that moves cells apart.
const problem problems[] = {
    {{.channels = 3, .height = 9, .width = 11, .kernel = {3, 3}, .padding = {1, 1}}, 16},
    {{.channels = 8, .height = 7, .width = 7, .kernel = {3, 2}, .padding = {1, 1}}, 33},
    {{.channels = 9, .height = 13, .width = 1, .kernel = {3, 1}}, 8},
    {{.channels = 4, .height = 12, .width = 37, .kernel = {5, 5}, .stride = {2, 3}, .padding = {2, 4}}, 24},
    {{.channels = 16, .height = 10, .width = 34, .kernel = {3, 3}, .padding = {2, 2}, .dilation = {2, 2}}, 8},
    {{.channels = 32, .height = 6, .width = 5, .kernel = {3, 3}, .padding = {1, 1}, .groups = 2}, 64},
    {{.channels = 10, .height = 8, .width = 40, .kernel = {1, 1}}, 40},
    {{.channels = 8, .height = 5, .width = 5, .kernel = {2, 2}, .padding = {1, 1}}, 3},
    {{.channels = 24, .height = 20, .width = 30, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}},
     72,
     2},
    // Images that are multiplied together, with a sum of several blocks, and five of seven at a time.
    {{.channels = 64, .height = 6, .width = 6, .kernel = {3, 3}, .padding = {1, 1}}, 70, 5},
    {{.channels = 8, .height = 16, .width = 17, .kernel = {3, 3}, .padding = {1, 1}}, 13, 7},
};

std::vector<instruction_set> vector_instruction_sets() {
    std::vector<instruction_set> found;
    for (const instruction_set isa :
         {instruction_set::neon, instruction_set::avx2, instruction_set::avx512, instruction_set::avx512_bf16,
          instruction_set::avx512_fp16, instruction_set::amx}) {
        if (mp::processor_has(isa)) found.push_back(isa);
    }
    return found;
}

template <class X, class W>
struct results {
    matrix<float> y;
    matrix<float> dx;
    matrix<X> dx_narrow;
    matrix<float> dw;

    results(const mp::cpu& exec, const problem& p, storage_order order, std::ptrdiff_t padding)
        : y(p.images, p.outputs * p.geometry.output_positions(), padding, order),
          dx(p.images, p.geometry.image_size(), padding, order),
          dx_narrow(p.images, p.geometry.image_size()),
          dw(p.outputs, p.geometry.patch_size()) {
        matrix<X> x(p.images, p.geometry.image_size(), padding, order);
        matrix<W> w(p.outputs, p.geometry.patch_size());
        matrix<X> dy(p.images, p.outputs * p.geometry.output_positions(), padding, order);
        x.randomize(1);
        w.randomize(2);
        dy.randomize(3);
        std::vector<float> bias(static_cast<std::size_t>(p.outputs));
        for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i) / 8;
        mp::ops::conv2d(exec, x.view, w.view, bias, y.view, p.geometry);
        mp::ops::conv2d_backward(exec, x.view, w.view, dy.view, dx.view, dw.view, absent, p.geometry);
        mp::ops::conv2d_backward(exec, x.view, w.view, dy.view, dx_narrow.view, absent, absent, p.geometry);
        CHECK(y.padding_is_untouched());
        CHECK(dx.padding_is_untouched());
    }
};

double largest_difference(const matrix<float>& a, const matrix<float>& b) {
    double largest = 0;
    for (std::ptrdiff_t r = 0; r < a.view.rows; ++r) {
        for (std::ptrdiff_t c = 0; c < a.view.columns; ++c) {
            largest = std::max(
                largest, std::fabs(static_cast<double>(a.view(r, c)) - static_cast<double>(b.view(r, c))));
        }
    }
    return largest;
}

template <class X, class W>
void check_all() {
    for (const problem& p : problems) {
        CAPTURE(p.geometry.channels);
        CAPTURE(p.outputs);
        const mp::cpu portable{.instructions = instruction_set::portable,
                               .products = mp::accumulation::ordered};
        const results<X, W> expected(portable, p, storage_order::row_major, 0);
        const double terms =
            static_cast<double>(p.outputs * p.geometry.kernel.height * p.geometry.kernel.width);
        for (const instruction_set isa : vector_instruction_sets()) {
            CAPTURE(static_cast<int>(isa));
            for (const int threads : {1, 3}) {
                for (const storage_order order : {storage_order::row_major, storage_order::column_major}) {
                    const mp::cpu exec{
                        .threads = threads, .instructions = isa, .products = mp::accumulation::ordered};
                    const results<X, W> found(exec, p, order, threads - 1);
                    CHECK(same_bits(found.y, expected.y));
                    CHECK(same_bits(found.dw, expected.dw));
                    CHECK(same_bits(found.dx, expected.dx));
                    CHECK(same_bits(found.dx_narrow, expected.dx_narrow));
                    const results<X, W> fastest({.threads = threads, .instructions = isa}, p, order, 1);
                    CHECK(largest_difference(fastest.y, expected.y) <= 0x1p-21 * terms + 0x1p-20);
                    CHECK(largest_difference(fastest.dw, expected.dw) <= 0x1p-14);
                    CHECK(largest_difference(fastest.dx, found.dx) <= 0x1p-21 * terms + 0x1p-22);
                }
            }
        }
    }
}

TEST_CASE("convolutions of floats have the bits of the matrix of patches") {
    check_all<float, float>();
}
TEST_CASE("convolutions of half have the bits of the matrix of patches") {
    check_all<half, half>();
}
TEST_CASE("convolutions of bfloat16 have the bits of the matrix of patches") {
    check_all<bfloat16, bfloat16>();
}
TEST_CASE("convolutions of 8 bits and of mixed formats have the bits of the matrix of patches") {
    check_all<mp::float8_e4m3fn, bfloat16>();
    check_all<bfloat16, float>();
    check_all<float, half>();
    check_all<mp::basic_float<ten_bits>, bfloat16>();
}

}  // namespace
