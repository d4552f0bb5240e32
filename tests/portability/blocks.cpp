// SPDX-License-Identifier: MIT
// Block-scaled arrays, by every rule of scales.
#include <mp/block_scaled.hpp>

#include "formats.hpp"

namespace portability {

namespace {

template <class Blocks>
void add_blocks(report& to, const std::string& name) {
    constexpr std::ptrdiff_t rows = 11;
    constexpr std::ptrdiff_t columns = 145;
    const mp::cpu exec{1, mp::instruction_set::portable};
    std::vector<float> values = plain_floats(rows * columns, 41, 100, 40);
    values[3] = 0;
    for (std::size_t i = 200; i < 240; ++i) values[i] = 0;
    checksum sum, reports;
    for (const auto rule : {mp::scale_rule::standard, mp::scale_rule::floor, mp::scale_rule::ceil,
                            mp::scale_rule::even, mp::scale_rule::nearest}) {
        for (const auto round :
             {mp::rounding::nearest_even, mp::rounding::toward_zero, mp::rounding::stochastic_a}) {
            mp::quantize_options options{.rule = rule, .seed = 5};
            options.element.round = round;
            options.element.random_bits = 16;
            options.direction = rule == mp::scale_rule::ceil ? mp::block_direction::along_columns
                                                             : mp::block_direction::along_rows;
            const auto blocks = mp::quantize<Blocks>(
                exec, mp::row_major(std::as_const(values).data(), rows, columns), options);
            for (const std::byte byte : blocks.bytes()) sum.add(static_cast<unsigned char>(byte));
            sum.add(blocks.scales());
            sum.add(blocks.tensor_scale());
            std::vector<float> back(values.size());
            mp::dequantize(exec, blocks, mp::row_major(back.data(), rows, columns));
            sum.add(back);
            std::vector<mp::half> halves(values.size());
            mp::dequantize(exec, blocks, mp::row_major(halves.data(), rows, columns));
            sum.add(halves);
            sum.add(blocks.value(3, 5));
            const auto report = mp::report_quantization(
                exec, mp::row_major(std::as_const(values).data(), rows, columns), blocks);
            for (const std::uint64_t number :
                 {report.count, report.nonfinite, report.flushed, report.clamped}) {
                reports.add(number);
            }
            for (const double error :
                 {report.max_error, report.squared_error, report.squared_value, report.relative_error()}) {
                reports.add(error);
            }
        }
    }
    to.add(name + ".blocks", sum);
    to.add(name + ".report_quantization", reports);
}

}  // namespace

void add_block_checksums(report& to) {
    add_blocks<mp::mxfp8_e4m3>(to, "mxfp8_e4m3");
    add_blocks<mp::nvfp4>(to, "nvfp4");
#if !defined(MP_FEW_CHECKSUMS)
    add_blocks<mp::mxfp8_e5m2>(to, "mxfp8_e5m2");
    add_blocks<mp::mxfp6_e2m3>(to, "mxfp6_e2m3");
    add_blocks<mp::mxfp6_e3m2>(to, "mxfp6_e3m2");
    add_blocks<mp::mxfp4>(to, "mxfp4");
    add_blocks<mp::mxint8>(to, "mxint8");
#endif
}

}  // namespace portability
