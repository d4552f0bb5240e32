// SPDX-License-Identifier: MIT
// NaN, infinities, zeros, subnormal and largest numbers at every place of a block are quantised on a GPU to the
// bits of the CPU, which tests/arrays/convert/block_specials.cpp compares with an oracle.
#include <mp/block_scaled.hpp>
#include <mp/device/gpu/block_quantize.hpp>

#include <doctest/doctest.h>
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "arrays/convert/block_specials.hpp"
#include "device/gpu/matrices.hpp"
#include "oracle/library.hpp"

namespace {

using block_specials::range;
using gpu_test::simulated;

template <class Format>
void compare(oracle::disagreements& wrong, const block_specials::values& x,
             const mp::quantize_options& options) {
    using span = mp::block_scaled_span<Format>;
    const auto view = mp::row_major(x.numbers.data(), x.rows, x.columns);
    const auto expected = mp::quantize<Format>(mp::cpu{}, view, options);
    std::vector<std::byte> elements(span::element_bytes(x.rows, x.columns, options.direction));
    std::vector<typename Format::scale_type> scales(span::scale_count(x.rows, x.columns, options.direction));
    float tensor_scale = -1;
    const span found{elements,
                     scales,
                     x.rows,
                     x.columns,
                     options.direction,
                     Format::has_tensor_scale ? &tensor_scale : nullptr};
    mp::quantize(simulated{}, view, found, options);
    const auto bits = [](auto scale) { return scale.bits(); };
    const bool same_scales = std::ranges::equal(scales, expected.scales(), {}, bits, bits);
    const bool same_tensor =
        !Format::has_tensor_scale ||
        std::bit_cast<std::uint32_t>(tensor_scale) == std::bit_cast<std::uint32_t>(expected.tensor_scale());
    if (!same_scales || !same_tensor || !std::ranges::equal(elements, expected.bytes())) {
        wrong.add("rule", static_cast<int>(options.rule), "handling", static_cast<int>(options.nonfinite),
                  "saturation", static_cast<int>(options.element.saturate), "direction",
                  static_cast<int>(options.direction), options.tensor_scale, same_tensor, same_scales);
    }
    std::vector<float> back(x.numbers.size()), back_expected(x.numbers.size());
    mp::dequantize(simulated{}, found, mp::row_major(back.data(), x.rows, x.columns));
    mp::dequantize(mp::cpu{}, expected, mp::row_major(back_expected.data(), x.rows, x.columns));
    for (std::size_t i = 0; i < back.size(); ++i) {
        if (std::bit_cast<std::uint32_t>(back[i]) != std::bit_cast<std::uint32_t>(back_expected[i])) {
            wrong.add("value", i, back[i], "not", back_expected[i]);
        }
    }
}

using e4m3_e4m3 = mp::block_scaled<mp::float8_e4m3fn, 16, mp::float8_e4m3fn>;

}  // namespace

TEST_CASE_TEMPLATE("special values have the CPU's bits", Format, mp::mxfp8_e4m3, mp::mxfp8_e5m2,
                   mp::mxfp6_e2m3, mp::mxfp6_e3m2, mp::mxfp4, mp::mxint8, mp::nvfp4, e4m3_e4m3) {
    oracle::disagreements wrong;
    for (const auto which : {range::all, range::without_large, range::nothing_finite}) {
        // The largest numbers lead to a tensor scale under which everything is done exactly, which takes long.
        if (Format::has_tensor_scale && which == range::all) continue;
        const auto values = block_specials::make(Format::block_size, which);
        block_specials::for_each_option<Format>(
            [&](const mp::quantize_options& options) { compare<Format>(wrong, values, options); });
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
