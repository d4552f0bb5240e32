// SPDX-License-Identifier: MIT
/// \file
/// Sizes of matrix products that tensor cores like.
#pragma once

#include <mp/error.hpp>

#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <string_view>

namespace mp::autocast {

/// Of what elements the operands of a product are, as far as it matters for their sizes.
enum class operand_elements : unsigned char {
    sixteen_bit,  ///< half or bfloat16
    float8,       ///< float8 of either kind, with one scale for an array
    block_scaled  ///< MX formats, with a scale for each block of 32 numbers
};

}  // namespace mp::autocast

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

/// The number of which m, n and k should be multiples: 8 for 16-bit formats (DeepSpeed warns about others),
/// 16 for float8 (Transformer Engine and torchao refuse others) and 32 for the blocks of MX formats (the
/// sizes to which Transformer Engine pads).
constexpr std::ptrdiff_t size_multiple(operand_elements elements) noexcept {
    constexpr std::array<std::ptrdiff_t, 3> multiples = {8, 16, 32};
    const auto index = static_cast<std::size_t>(elements);
    return index < multiples.size() ? multiples[index] : 1;
}

/// The kind of a format by its name in product_record::type; nothing for formats without such a rule, such as
/// float. "float8" is what operands of float8 regions are called.
constexpr std::optional<operand_elements> operand_elements_named(std::string_view type) noexcept {
    if (type == "half" || type == "bfloat16") return operand_elements::sixteen_bit;
    if (type.starts_with("mxfp")) return operand_elements::block_scaled;
    if (type.starts_with("float8")) return operand_elements::float8;
    return std::nullopt;
}

}}  // namespace mp::autocast

namespace mp::autocast {

/// A product m x k times k x n with padding.
struct padded_product {
    std::ptrdiff_t m = 0;
    std::ptrdiff_t n = 0;
    std::ptrdiff_t k = 0;
    std::ptrdiff_t multiple = 1;
    bool padded = false;      ///< whether any size had to grow
    double added_work = 0.0;  ///< multiplications with padding, as a share of those without; 0 for no work
};

}  // namespace mp::autocast

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

/// The smallest sizes that are at least m, n and k and multiples of size_multiple(elements), and the share of
/// work that they add: 0.6 for k = 10 that becomes 16. Throws argument_error for negative sizes, for sizes so
/// large that the padded ones are no std::ptrdiff_t, and for a value that is no enumerator.
constexpr padded_product padding_advice(std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k,
                                        operand_elements elements) {
    constexpr std::string_view function = "mp::autocast::padding_advice";
    if (elements > operand_elements::block_scaled) {
        detail::throw_argument(function, "elements", static_cast<unsigned>(elements),
                               "must be an enumerator of mp::autocast::operand_elements");
    }
    padded_product result;
    result.multiple = size_multiple(elements);
    const auto up = [&](std::string_view name, std::ptrdiff_t size) {
        if (size < 0 || size > (std::numeric_limits<std::ptrdiff_t>::max)() - result.multiple) {
            detail::throw_argument(function, name, size,
                                   "must be a size that is not negative, with room above");
        }
        return (size + result.multiple - 1) / result.multiple * result.multiple;
    };
    result.m = up("m", m);
    result.n = up("n", n);
    result.k = up("k", k);
    result.padded = result.m != m || result.n != n || result.k != k;
    if (m != 0 && n != 0 && k != 0) {
        result.added_work = static_cast<double>(result.m) / static_cast<double>(m) *
                                (static_cast<double>(result.n) / static_cast<double>(n)) *
                                (static_cast<double>(result.k) / static_cast<double>(k)) -
                            1.0;
    }
    return result;
}

}}  // namespace mp::autocast
