// SPDX-License-Identifier: MIT
/// \file
/// The interface of micro-kernels: the shape of a tile, the panels that it
/// reads, and the functions that compute it.
#pragma once

#include <mp/arrays/convert/kernels/number_vectors.hpp>
#include <mp/numbers/format/basic_float.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Layouts of a packed block of A.
enum class a_layout : unsigned char {
    rows,   ///< rows, packed ones a_row_bytes apart
    tiles,  ///< for every 32 rows, one after the other: tiles of 32 rows by 64 bytes, which follow each
            ///< other along k
};

/// Element types of blocks and panels.
enum class panel_element : unsigned char {
    float32,         ///< float
    binary16,        ///< half, widened where it is used
    bfloat16_vnni2,  ///< in A: bfloat16; in B: pairs of two steps of k, beside each other for every
                     ///< column
};

/// One tile: tile[r][c] (+)= sum over k of a[r][k] * b[k][c].
struct tile_product {
    std::ptrdiff_t k;            ///< a multiple of the kernel's k_unit; what is beyond the matrix is zero
    const void* a;               ///< rows of the kernel's a_element in its a_layout
    std::ptrdiff_t a_row;        ///< bytes from one row to the next
    std::ptrdiff_t a_tile;       ///< with a_layout::tiles, from one tile to the next along k
    const void* b;               ///< steps of the kernel's b_element
    std::ptrdiff_t b_step;       ///< bytes from one step (or pair) to the next
    float* tile;                 ///< rows of floats
    std::ptrdiff_t tile_stride;  ///< floats from one row to the next
    bool resume;                 ///< whether the sums go on from what is in the tile, or start at zero
};

using multiply_tile = void (*)(const tile_product&);

/// The innermost part of the product.
struct product_kernel {
    std::string_view name;
    std::ptrdiff_t rows;           ///< of a tile
    std::ptrdiff_t width;          ///< of a tile, in columns
    std::ptrdiff_t k_unit = 1;     ///< blocks of k are filled up with zeros to a multiple of it
    std::ptrdiff_t k_block = 256;  ///< longest block of k; longer ones pass over C less often
    std::ptrdiff_t block_rows;     ///< rows of a block of A, which stays in the second-level cache
    panel_element a_element = panel_element::float32;
    panel_element b_element = panel_element::float32;
    a_layout layout = a_layout::rows;
    /// Whether rows of A and steps of B may be any distance apart, and so stay where they lie.
    bool any_strides = false;
    bool normal_sums = false;  ///< whether no sum is subnormal, because the kernel takes such for zero
    /// The micro-kernels by the most rows that each takes, ascending; the last one takes `rows`.
    struct of_rows {
        std::ptrdiff_t rows;
        multiply_tile multiply;
    };
    static constexpr std::size_t most_choices = 4;
    of_rows choices[most_choices];
    /// Called by every thread before its first and after its last tile, if not null.
    void (*begin)() = nullptr;
    void (*end)() = nullptr;
    /// For tiles of all rows that half the columns are enough for, or null.
    multiply_tile multiply_narrow = nullptr;

    /// Smallest micro-kernel that covers `wanted` rows and `columns` columns.
    [[nodiscard]] MP_ALWAYS_INLINE multiply_tile multiply_for(std::ptrdiff_t wanted,
                                                              std::ptrdiff_t columns) const {
        if (multiply_narrow != nullptr && 2 * columns <= width && wanted > choices[most_choices - 2].rows) {
            return multiply_narrow;
        }
        return multiply_for(wanted);
    }
    /// Of all columns.
    [[nodiscard]] MP_ALWAYS_INLINE multiply_tile multiply_for(std::ptrdiff_t wanted) const {
        return choice_for(wanted).multiply;
    }
    [[nodiscard]] MP_ALWAYS_INLINE const of_rows& choice_for(std::ptrdiff_t wanted) const {
        std::size_t i = 0;
        while (choices[i].rows < wanted) ++i;
        return choices[i];
    }
};

/// What kernels are chosen by, of an operand's element type.
struct operand_facts {
    std::ptrdiff_t size;
    bool is_float;
    bool is_exact_in_bfloat16;
    bool holds_bfloat16;
    panel_element panel;
    // The range of its non-zero magnitudes.
    int precision;
    int quantum_exponent;
    int max_exponent;
};

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Columns of a panel of B. The same for all kernels, so that a packed B serves any of them; the width of
/// every tile divides it.
inline constexpr std::ptrdiff_t panel_width = 32;

/// Bytes from one row of a block of A to the next: what 512 floats take and a cache line more, because rows
/// that are a power of two apart would fall into the same few sets of the cache.
inline constexpr std::ptrdiff_t a_row_bytes = 2048 + 64;

/// Bytes from one panel of a block of B to the next beyond what the panel takes, for the same reason.
inline constexpr std::ptrdiff_t panel_padding = 128;

/// Steps of k that stand together.
constexpr std::ptrdiff_t k_interleave(panel_element element) {
    return element == panel_element::bfloat16_vnni2 ? 2 : 1;
}

/// Bytes of one column in one step (or pair of steps) of a panel of B.
constexpr std::ptrdiff_t interleaved_bytes(panel_element element) {
    return element == panel_element::float32 || element == panel_element::bfloat16_vnni2 ? 4 : 2;
}

/// Bytes from one panel to the next where each is `k` long.
constexpr std::ptrdiff_t panel_bytes_of(panel_element element, std::ptrdiff_t k) {
    return k / k_interleave(element) * panel_width * interleaved_bytes(element) + panel_padding;
}

/// Whether every value is one of bfloat16's normal numbers, zeros, infinities or NaNs, or a bfloat16.
template <class Value>
inline constexpr bool is_exact_in_bfloat16 = [] {
    if constexpr (std::is_same_v<Value, std::int8_t>) {
        return true;
    } else if constexpr (reduced<Value>) {
        using layout = layout_of<typename Value::format>;
        using target = layout_of<formats::bfloat16>;
        return std::is_same_v<typename Value::format, formats::bfloat16> ||
               (layout::precision <= target::precision && layout::quantum_exponent >= target::min_exponent &&
                layout::max_exponent <= target::max_exponent);
    } else {
        return false;
    }
}();

/// Whether it is bfloat16 itself.
template <class Value>
inline constexpr bool holds_bfloat16 = std::is_same_v<Value, basic_float<formats::bfloat16>>;

/// In which element a panel of B is packed.
template <class Value>
constexpr panel_element panel_element_of() {
    if constexpr (is_exact_in_bfloat16<Value>) return panel_element::bfloat16_vnni2;
    if constexpr (reduced<Value>) {
        if (is_binary16<typename Value::format>) return panel_element::binary16;
    }
    return panel_element::float32;
}

template <class Value>
constexpr operand_facts operand_facts_of() {
    operand_facts facts{sizeof(Value),
                        std::is_same_v<Value, float>,
                        is_exact_in_bfloat16<Value>,
                        holds_bfloat16<Value>,
                        panel_element_of<Value>(),
                        24,
                        -149,
                        127};
    if constexpr (std::is_same_v<Value, std::int8_t>) {
        facts.precision = 8;
        facts.quantum_exponent = 0;
        facts.max_exponent = 7;
    } else if constexpr (reduced<Value>) {
        using layout = layout_of<typename Value::format>;
        facts.precision = layout::precision;
        facts.quantum_exponent = layout::quantum_exponent;
        facts.max_exponent = layout::max_exponent;
    }
    return facts;
}

/// Whether every product of two finite operands is a float, so that it makes no difference whether it is
/// fused with the addition.
constexpr bool has_exact_products(const operand_facts& a, const operand_facts& b) {
    return a.precision + b.precision <= 24 && a.quantum_exponent + b.quantum_exponent >= -149 &&
           a.max_exponent + b.max_exponent + 2 <= 128;
}

}}  // namespace mp::detail
