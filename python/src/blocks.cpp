// SPDX-License-Identifier: MIT
#include "blocks.hpp"

#include <mp/error.hpp>
#include <mp/tensor_core.hpp>

#include <array>
#include <string>
#include <utility>

namespace mp_python {
namespace {

template <class Blocks>
class quantized_as final : public quantized {
public:
    explicit quantized_as(Blocks blocks) : blocks_(std::move(blocks)) {}

    [[nodiscard]] std::ptrdiff_t rows() const override { return blocks_.rows(); }
    [[nodiscard]] std::ptrdiff_t columns() const override { return blocks_.columns(); }
    [[nodiscard]] std::span<std::byte> bytes() override { return blocks_.bytes(); }
    [[nodiscard]] std::span<std::byte> scales() override { return std::as_writable_bytes(blocks_.scales()); }
    [[nodiscard]] float tensor_scale() const override { return blocks_.tensor_scale(); }
    void set_tensor_scale(float scale) override {
        if constexpr (Blocks::has_tensor_scale) blocks_.set_tensor_scale(scale);
    }
    void unpack(std::uint8_t* codes) const override {
        for (std::ptrdiff_t r = 0; r < rows(); ++r) {
            for (std::ptrdiff_t c = 0; c < columns(); ++c) {
                *codes++ = static_cast<std::uint8_t>(blocks_.element(r, c).bits());
            }
        }
    }
    void dequantize(float* to, int threads) const override {
        mp::dequantize(mp::cpu{.threads = threads}, blocks_, mp::row_major(to, rows(), columns()));
    }
    [[nodiscard]] mp::quantization_report report(const float* values, int threads) const override {
        return report_on(values, threads);
    }
    [[nodiscard]] mp::quantization_report report(const double* values, int threads) const override {
        return report_on(values, threads);
    }

    void multiply(const quantized& right, int architecture, float* c, int threads) const override {
        const bool has_blocks = architecture >= static_cast<int>(mp::arch::sm_100);
        if (!has_blocks || !multiply_by_any<mp::mxfp8_e4m3, mp::mxfp8_e5m2, mp::mxfp6_e2m3, mp::mxfp6_e3m2,
                                            mp::mxfp4, mp::nvfp4>(right, c, threads)) {
            throw mp::argument_error("the tensor cores of sm_" + std::to_string(architecture) +
                                     " do not multiply these block formats");
        }
    }
    [[nodiscard]] const Blocks& blocks() const { return blocks_; }

private:
    template <class... Rights>
    bool multiply_by_any(const quantized& right, float* c, int threads) const {
        return (multiply_by<Rights>(right, c, threads) || ...);
    }
    /// All architectures that multiply blocks have one arithmetic.
    template <class Right>
    bool multiply_by(const quantized& right, float* c, int threads) const {
        if constexpr (mp::block_scaled_rule_of<Blocks, Right>(mp::arch::sm_100).products != 0) {
            const auto* const other = dynamic_cast<const quantized_as<Right>*>(&right);
            if (other == nullptr) return false;
            mp::gemm(mp::emulated<mp::arch::sm_100>{.threads = threads}, 1.0F, blocks_, other->blocks(), 0.0F,
                     mp::row_major(c, rows(), right.columns()));
            return true;
        } else {
            return false;
        }
    }

    template <class Value>
    mp::quantization_report report_on(const Value* values, int threads) const {
        return mp::report_quantization(mp::cpu{.threads = threads}, mp::row_major(values, rows(), columns()),
                                       blocks_);
    }
    Blocks blocks_;
};

template <class Blocks, class Value>
std::unique_ptr<quantized> quantize_as(const Value* values, std::ptrdiff_t rows, std::ptrdiff_t columns,
                                       const mp::quantize_options& options, int threads) {
    return std::make_unique<quantized_as<Blocks>>(
        mp::quantize<Blocks>(mp::cpu{.threads = threads}, mp::row_major(values, rows, columns), options));
}

template <class Blocks>
std::unique_ptr<quantized> empty_as(std::ptrdiff_t rows, std::ptrdiff_t columns,
                                    mp::block_direction direction) {
    return std::make_unique<quantized_as<Blocks>>(Blocks(rows, columns, direction));
}

template <class Blocks>
constexpr block_row row_of(const char* name, const char* element) {
    return {.name = name,
            .element = element,
            .scale = Blocks::scale_type::format::name,
            .block_size = Blocks::block_size,
            .element_width = Blocks::element_width,
            .has_tensor_scale = Blocks::has_tensor_scale,
            .from_float = &quantize_as<Blocks, float>,
            .from_double = &quantize_as<Blocks, double>,
            .empty = &empty_as<Blocks>};
}

constexpr std::array rows{
    row_of<mp::mxfp8_e4m3>("mxfp8_e4m3", "float8_e4m3fn"),
    row_of<mp::mxfp8_e5m2>("mxfp8_e5m2", "float8_e5m2"),
    row_of<mp::mxfp6_e2m3>("mxfp6_e2m3", "float6_e2m3fn"),
    row_of<mp::mxfp6_e3m2>("mxfp6_e3m2", "float6_e3m2fn"),
    row_of<mp::mxfp4>("mxfp4", "float4_e2m1fn"),
    row_of<mp::mxint8>("mxint8", "int8"),
    row_of<mp::nvfp4>("nvfp4", "float4_e2m1fn"),
};

}  // namespace

std::span<const block_row> all_block_formats() {
    return rows;
}

const block_row& block_format_named(std::string_view name) {
    for (const block_row& row : rows) {
        if (name == row.name) return row;
    }
    std::string names;
    for (const block_row& row : rows) names.append(names.empty() ? "" : ", ").append(row.name);
    throw mp::argument_error("format is '" + std::string(name) + "'; it must be one of " + names);
}

}  // namespace mp_python
