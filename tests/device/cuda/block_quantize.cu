// SPDX-License-Identifier: MIT
// Block-scaled matrices.
#include <mp/cuda.hpp>
#include <mp/device/cuda/launch_kernel.hpp>

#include <mp/bfloat16.hpp>
#include <mp/block_scaled.hpp>
#include <mp/device/gpu/block_quantize.hpp>
#include <mp/half.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "device_results.hpp"

namespace {

using device_test::random_values;
using mp::bfloat16;
using mp::half;
using mp::row_major;

template <class Format, class Value>
void check_quantize(std::ptrdiff_t rows, std::ptrdiff_t columns, const mp::quantize_options& options) {
    using span = mp::block_scaled_span<Format>;
    const auto size = static_cast<std::size_t>(rows * columns);
    mp::unique_cuda_stream stream;
    const std::vector<Value> values = random_values<Value>(size, 6);
    const auto expected = mp::quantize<Format>(mp::cpu{}, row_major(values.data(), rows, columns), options);
    const mp::device_buffer<Value> from(stream, values);
    mp::device_buffer<std::byte> elements(span::element_bytes(rows, columns, options.direction));
    mp::device_buffer<typename Format::scale_type> scales(
        span::scale_count(rows, columns, options.direction));
    mp::device_buffer<float> tensor_scale(1);
    const span to{
        elements.span(), scales.span(),     rows,
        columns,         options.direction, Format::has_tensor_scale ? tensor_scale.span().data() : nullptr};
    mp::quantize(stream.get(), row_major(from.span().data(), rows, columns), to, options);
    const auto found = elements.to_host(stream);
    const auto found_scales = scales.to_host(stream);
    CHECK(std::memcmp(found.data(), expected.bytes().data(), found.size()) == 0);
    CHECK(std::memcmp(static_cast<const void*>(found_scales.data()),
                      static_cast<const void*>(expected.scales().data()), found_scales.size()) == 0);
    mp::device_buffer<Value> back(size);
    mp::dequantize(stream.get(), to, row_major(back.span().data(), rows, columns));
    std::vector<Value> expected_back(size);
    mp::dequantize(mp::cpu{}, expected, row_major(expected_back.data(), rows, columns));
    const auto found_back = back.to_host(stream);
    CHECK(std::memcmp(static_cast<const void*>(found_back.data()),
                      static_cast<const void*>(expected_back.data()), size * sizeof(Value)) == 0);
}

TEST_CASE("block quantisation on a device has the CPU's bits") {
    constexpr mp::projection stochastic{mp::rounding::stochastic_a, mp::saturation::finite, 32};
    const mp::quantize_options all[] = {{},
                                        {.rule = mp::scale_rule::ceil},
                                        {.rule = mp::scale_rule::even},
                                        {.element = stochastic, .seed = 5},
                                        {.direction = mp::block_direction::along_columns}};
    for (const mp::quantize_options& options : all) {
        check_quantize<mp::mxfp8_e4m3, half>(65, 320, options);
        check_quantize<mp::mxfp8_e5m2, float>(3, 1111, options);
        check_quantize<mp::mxfp6_e2m3, half>(5, 96, options);
        check_quantize<mp::mxfp6_e3m2, float>(7, 100, options);
        check_quantize<mp::mxfp4, bfloat16>(9, 256, options);
        check_quantize<mp::mxint8, float>(2, 333, options);
        check_quantize<mp::nvfp4, bfloat16>(33, 512, options);
        check_quantize<mp::nvfp4, float>(4, 77, options);
    }
    for (const bool square_tiles : {false, true}) {
        for (const auto rule : {mp::scale_rule::torchao_rceil, mp::scale_rule::torchao_ceil}) {
            check_quantize<mp::mxfp8_e4m3, half>(65, 320, {.rule = rule, .square_tiles = square_tiles});
        }
        for (const auto rule : {mp::scale_rule::four_over_six_mse, mp::scale_rule::four_over_six_mae}) {
            for (const auto scale_floor : {mp::block_scale_floor::normal, mp::block_scale_floor::none}) {
                const mp::quantize_options options{
                    .rule = rule, .scale_floor = scale_floor, .square_tiles = square_tiles};
                check_quantize<mp::nvfp4, bfloat16>(33, 512, options);
                check_quantize<mp::nvfp4, float>(19, 77, options);
            }
        }
    }
}

}  // namespace
