// SPDX-License-Identifier: MIT
/// \file
/// Block-scaled matrices of a format that is known at run time.
#pragma once

#include <mp/block_scaled.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace mp_python {

/// A quantised matrix.
class quantized {
public:
    virtual ~quantized() = default;
    [[nodiscard]] virtual std::ptrdiff_t rows() const = 0;
    [[nodiscard]] virtual std::ptrdiff_t columns() const = 0;
    /// The elements as they are stored, packed, vector after vector.
    [[nodiscard]] virtual std::span<std::byte> bytes() = 0;
    [[nodiscard]] virtual std::span<std::byte> scales() = 0;
    [[nodiscard]] virtual float tensor_scale() const = 0;
    virtual void set_tensor_scale(float scale) = 0;
    /// The code of each element in a byte, by rows.
    virtual void unpack(std::uint8_t* codes) const = 0;
    virtual void dequantize(float* to, int threads) const = 0;
    [[nodiscard]] virtual mp::quantization_report report(const float* values, int threads) const = 0;
    [[nodiscard]] virtual mp::quantization_report report(const double* values, int threads) const = 0;
    /// c = this matrix times the other, row-major, as the tensor cores of an architecture multiply them. Throws
    /// mp::argument_error for what they do not multiply.
    virtual void multiply(const quantized& right, int architecture, float* c, int threads) const = 0;
};

struct block_row {
    const char* name;
    const char* element;
    const char* scale;
    int block_size;
    int element_width;
    bool has_tensor_scale;
    std::unique_ptr<quantized> (*from_float)(const float*, std::ptrdiff_t rows, std::ptrdiff_t columns,
                                             const mp::quantize_options& options, int threads);
    std::unique_ptr<quantized> (*from_double)(const double*, std::ptrdiff_t rows, std::ptrdiff_t columns,
                                              const mp::quantize_options& options, int threads);
    /// With elements and scales to be filled in.
    std::unique_ptr<quantized> (*empty)(std::ptrdiff_t rows, std::ptrdiff_t columns,
                                        mp::block_direction direction);
};

std::span<const block_row> all_block_formats();
/// Throws mp::argument_error for a name that is no block format's.
const block_row& block_format_named(std::string_view name);

}  // namespace mp_python
