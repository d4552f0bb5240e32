// SPDX-License-Identifier: MIT
// NaN, infinities, zeros, subnormal and largest numbers at every place of a block become what the options
// promise, in every block format, by every rule and on every instruction set; the report counts them.
#include <mp/block_scaled.hpp>

#include <doctest/doctest.h>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "arrays/convert/block_oracle.hpp"
#include "arrays/convert/block_specials.hpp"
#include "arrays/convert/instruction_sets.hpp"
#include "oracle/library.hpp"

namespace {

using block_specials::range;

/// Equality of values, in which NaN equals NaN and zeros have signs.
bool same(double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    return !(a < b) && !(b < a) && std::signbit(a) == std::signbit(b);
}

struct expectation {
    float tensor_scale = 1;
    std::vector<block_oracle::block> blocks;
    mp::quantization_report report;
};

void count_errors(mp::quantization_report& report, const std::vector<double>& values,
                  const block_oracle::block& block) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double before = values[i], after = block.values[i];
        ++report.count;
        if (!std::isfinite(before) || !std::isfinite(after)) {
            ++report.nonfinite;
            continue;
        }
        const double error = std::fabs(after - before);
        report.flushed += before != 0 && after == 0 ? 1U : 0U;
        report.clamped += std::fabs(before) > block.largest ? 1U : 0U;
        report.max_error = std::max(report.max_error, error);
        report.squared_error += error * error;
        report.squared_value += before * before;
    }
}

template <class Format>
expectation expect(const block_specials::values& x, const mp::quantize_options& options,
                   const Format& found) {
    const bool along_rows = options.direction == mp::block_direction::along_rows;
    const std::ptrdiff_t count = found.vector_count(), length = found.vector_length();
    constexpr std::ptrdiff_t block = Format::block_size;
    const std::ptrdiff_t height = options.square_tiles ? block : 1, across = found.blocks_per_vector();
    expectation result;
    result.blocks.resize(static_cast<std::size_t>(count * across));
    const std::vector<double> all(x.numbers.begin(), x.numbers.end());
    result.tensor_scale =
        block_oracle::tensor_scale_of<Format>(block_oracle::largest_magnitude(all, true), options);
    for (std::ptrdiff_t first = 0; first < count; first += height) {
        const std::ptrdiff_t last = std::min(count, first + height);
        for (std::ptrdiff_t b = 0; b < across; ++b) {
            std::vector<std::vector<double>> tile;
            for (std::ptrdiff_t v = first; v < last; ++v) {
                std::vector<double>& values = tile.emplace_back();
                for (std::ptrdiff_t i = b * block; i < std::min(length, (b + 1) * block); ++i) {
                    values.push_back(
                        all[static_cast<std::size_t>(along_rows ? v * x.columns + i : i * x.columns + v)]);
                }
            }
            const unsigned scale = found.scales()[static_cast<std::size_t>(first * across + b)].bits();
            const auto blocks = block_oracle::quantize<Format>(tile, result.tensor_scale, options, scale);
            for (std::size_t v = 0; v < tile.size(); ++v) {
                count_errors(result.report, tile[v], blocks[v]);
                result.blocks[static_cast<std::size_t>(first * across + b) +
                              v * static_cast<std::size_t>(across)] = blocks[v];
            }
        }
    }
    return result;
}

bool close(double a, double b) {
    return std::fabs(a - b) <= 1e-12 * std::fabs(b);
}

template <class Format>
void compare(oracle::disagreements& wrong, const block_specials::values& x,
             const mp::quantize_options& options, int which) {
    const auto view = mp::row_major(x.numbers.data(), x.rows, x.columns);
    const auto portable = mp::cpu{.instructions = mp::instruction_set::portable};
    const expectation expected = expect<Format>(x, options, mp::quantize<Format>(portable, view, options));
    const bool along_rows = options.direction == mp::block_direction::along_rows;
    for (const mp::instruction_set isa : instruction_sets_at_hand()) {
        const mp::cpu exec{.instructions = isa};
        const auto q = mp::quantize<Format>(exec, view, options);
        std::vector<float> back(x.numbers.size());
        mp::dequantize(exec, q, mp::row_major(back.data(), x.rows, x.columns));
        const auto tell = [&](const auto&... what) {
            wrong.add(std::string(name_of(isa)), "values", which, "rule", static_cast<int>(options.rule),
                      "handling", static_cast<int>(options.nonfinite), "saturation",
                      static_cast<int>(options.element.saturate), along_rows ? "rows" : "columns", what...);
        };
        if (!same(q.tensor_scale(), expected.tensor_scale)) tell("tensor scale", q.tensor_scale());
        const std::ptrdiff_t per_vector = q.blocks_per_vector();
        for (std::ptrdiff_t b = 0; b < q.vector_count() * per_vector; ++b) {
            const auto& block = expected.blocks[static_cast<std::size_t>(b)];
            const std::ptrdiff_t vector = b / per_vector;
            const unsigned scale = q.scales()[static_cast<std::size_t>(b)].bits();
            if (block.nan ? !mp::isnan(q.scales()[static_cast<std::size_t>(b)]) : scale != block.scale) {
                tell("block", b, "scale", scale, "not", block.scale);
                continue;
            }
            const auto& table = block_oracle::table_of<typename Format::element_type>();
            for (std::size_t i = 0; i < block.elements.size(); ++i) {
                const std::ptrdiff_t p = b % per_vector * Format::block_size + static_cast<std::ptrdiff_t>(i);
                const std::ptrdiff_t r = along_rows ? vector : p, c = along_rows ? p : vector;
                const unsigned code = q.element(r, c).bits();
                const auto at = static_cast<std::size_t>(r * x.columns + c);
                if (table.is_nan(block.elements[i]) ? !table.is_nan(code) : code != block.elements[i]) {
                    tell("element", r, c, x.numbers[at], "is", code, "not", block.elements[i]);
                }
                const auto value = static_cast<float>(block.values[i]);
                if (!same(back[at], value) || !same(q.value(r, c), value)) {
                    tell("value", r, c, x.numbers[at], "is", back[at], "and", q.value(r, c), "not", value);
                }
            }
        }
        const auto report = mp::report_quantization(exec, view, q);
        const auto& e = expected.report;
        if (report.count != e.count || report.nonfinite != e.nonfinite || report.flushed != e.flushed ||
            report.clamped != e.clamped) {
            tell("report", report.nonfinite, report.flushed, report.clamped, "not", e.nonfinite, e.flushed,
                 e.clamped);
        }
        if (!close(report.max_error, e.max_error) || !close(report.squared_error, e.squared_error) ||
            !close(report.squared_value, e.squared_value)) {
            tell("errors", report.max_error, report.squared_error, "not", e.max_error, e.squared_error);
        }
    }
}

using e5m2fnuz_16 = mp::block_scaled<mp::float8_e5m2fnuz, 16>;
using e3m2_5 = mp::block_scaled<mp::float6_e3m2fn, 5>;
using e2m1_b11 = mp::block_scaled<mp::float4_e2m1fn, 16, mp::float8_e4m3b11fnuz>;
using e4m3_e4m3 = mp::block_scaled<mp::float8_e4m3fn, 16, mp::float8_e4m3fn>;
using e2m1_e5m2 = mp::block_scaled<mp::float4_e2m1fn, 16, mp::float8_e5m2>;

}  // namespace

TEST_CASE_TEMPLATE("special values become what the options say, on every instruction set", Format,
                   mp::mxfp8_e4m3, mp::mxfp8_e5m2, mp::mxfp6_e2m3, mp::mxfp6_e3m2, mp::mxfp4, mp::mxint8,
                   mp::nvfp4, e5m2fnuz_16, e3m2_5, e2m1_b11, e4m3_e4m3, e2m1_e5m2) {
    oracle::disagreements wrong;
    for (const auto which : {range::all, range::without_large, range::nothing_finite}) {
        const auto values = block_specials::make(Format::block_size, which);
        block_specials::for_each_option<Format>([&](mp::quantize_options options) {
            compare<Format>(wrong, values, options, static_cast<int>(which));
            if constexpr (Format::has_tensor_scale) {
                const bool is_default = options.element == mp::quantize_options{}.element &&
                                        options.direction == mp::block_direction::along_rows;
                if (which != range::all || !is_default) return;
                for (const float tensor_scale : {0x1.8p-80f, 0x1.4p60f}) {
                    options.tensor_scale = tensor_scale;
                    compare<Format>(wrong, values, options, static_cast<int>(which));
                }
            }
        });
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
