// SPDX-License-Identifier: MIT
/// \file
/// Packing: parts of a matrix of any number format, layout and alignment, in the order in which the kernels
/// read them. A block of A has rows of floats, or of bfloat16, in an a_layout. A panel of B has, for every
/// step of k, panel_width elements of the type's panel_element side by side.
#pragma once

#include <mp/arrays/convert/bulk.hpp>
#include <mp/linalg/gemm/product_kernel.hpp>
#include <mp/numbers/simd/select_target.hpp>
#include <mp/numbers/simd/square.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Part of an operand, whose vectors are rows of A or columns of B, each along k, the dimension that is
/// summed over. What is between the sizes and the padded ones is filled with zeros.
struct operand_block {
    std::ptrdiff_t first_vector;
    std::ptrdiff_t vectors;
    std::ptrdiff_t padded_vectors;
    std::ptrdiff_t first_k;
    std::ptrdiff_t k;
    std::ptrdiff_t padded_k;
};

/// One operand of a product. One of the two strides is 1.
struct product_operand_source {
    const void* data;
    std::ptrdiff_t vector_stride;
    std::ptrdiff_t k_stride;

    template <class Value>
    [[nodiscard]] MP_ALWAYS_INLINE const Value* at(const operand_block& block) const {
        return static_cast<const Value*>(data) + block.first_vector * vector_stride +
               block.first_k * k_stride;
    }
};

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Packs a block of rows of A; `to` has padded_vectors rows.
using pack_rows_function = void (*)(const product_operand_source&, const operand_block&, std::byte* to);
/// Packs columns of B into panels that are panel_bytes apart; padded_vectors is a multiple of panel_width.
using pack_panels_function = void (*)(const product_operand_source&, const operand_block&, std::byte* to,
                                      std::ptrdiff_t panel_bytes);

/// `count` operands, at most widen_run of them, as floats.
inline constexpr std::ptrdiff_t widen_run = 256;
template <class Value>
void widen_operands(const void* from, float* to, std::ptrdiff_t count) {
    [[maybe_unused]] const auto* const values = static_cast<const Value*>(from);
    if constexpr (std::is_same_v<Value, float>) {
        std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
    } else if constexpr (reduced<Value>) {
        widen_to_float(values, to, static_cast<std::size_t>(count));
    } else {
        for (std::ptrdiff_t i = 0; i < count; ++i) to[i] = static_cast<float>(values[i]);
    }
}

/// Calls f(vector, k, value) for all elements of the block, in the order of memory. They have `size` bytes.
template <class Function>
void for_each_operand_element(const product_operand_source& source, const operand_block& block,
                              std::ptrdiff_t size, void (*widen)(const void*, float*, std::ptrdiff_t),
                              Function f) {
    const std::byte* const from =
        source.at<std::byte>({block.first_vector * size, 0, 0, block.first_k * size, 0, 0});
    const bool along_k = source.k_stride == 1;
    const std::ptrdiff_t outer = along_k ? block.vectors : block.k;
    const std::ptrdiff_t inner = along_k ? block.k : block.vectors;
    const std::ptrdiff_t stride = along_k ? source.vector_stride : source.k_stride;
    float values[widen_run];
    for (std::ptrdiff_t i = 0; i < outer; ++i) {
        for (std::ptrdiff_t j = 0; j < inner; j += widen_run) {
            const std::ptrdiff_t count = (std::min)(widen_run, inner - j);
            widen(from + (i * stride + j) * size, values, count);
            for (std::ptrdiff_t n = 0; n < count; ++n) {
                if (along_k) {
                    f(i, j + n, values[n]);
                } else {
                    f(j + n, i, values[n]);
                }
            }
        }
    }
}

/// Stores elements in packed rows of floats.
struct portable_rows {
    std::byte* to;
    void operator()(std::ptrdiff_t vector, std::ptrdiff_t p, float value) const {
        reinterpret_cast<float*>(to + vector * a_row_bytes)[p] = value;
    }
};

/// The portable way to pack rows of floats.
template <class Value>
void pack_float_rows(const product_operand_source& source, const operand_block& block, std::byte* to) {
    for (std::ptrdiff_t i = 0; i < block.padded_vectors; ++i) {
        std::memset(to + i * a_row_bytes, 0, static_cast<std::size_t>(block.padded_k) * sizeof(float));
    }
    for_each_operand_element(source, block, sizeof(Value), &widen_operands<Value>, portable_rows{to});
}

/// Stores elements in panels.
template <panel_element Element>
struct portable_panels {
    static constexpr std::ptrdiff_t together = k_interleave(Element);
    std::byte* to;
    std::ptrdiff_t panel_bytes;
    void operator()(std::ptrdiff_t column, std::ptrdiff_t p, float value) const {
        std::byte* const panel = to + column / panel_width * panel_bytes;
        const std::ptrdiff_t offset =
            (p / together * panel_width + column % panel_width) * together + p % together;
        if constexpr (Element == panel_element::float32) {
            reinterpret_cast<float*>(panel)[offset] = value;
        } else if constexpr (Element == panel_element::binary16) {
            reinterpret_cast<std::uint16_t*>(panel)[offset] = from_float<formats::binary16>(value);
        } else {
            reinterpret_cast<std::uint16_t*>(panel)[offset] =
                static_cast<std::uint16_t>(bit_cast<std::uint32_t>(value) >> 16);
        }
    }
};

/// The portable way to pack panels, of the type's panel_element or of floats.
template <class Value, panel_element Element>
void pack_panels_portably(const product_operand_source& source, const operand_block& block, std::byte* to,
                          std::ptrdiff_t panel_bytes) {
    const std::ptrdiff_t steps = (block.padded_k + k_interleave(Element) - 1) / k_interleave(Element);
    for (std::ptrdiff_t panel = 0; panel < block.padded_vectors / panel_width; ++panel) {
        std::memset(to + panel * panel_bytes, 0,
                    static_cast<std::size_t>(steps * panel_width * interleaved_bytes(Element)));
    }
    for_each_operand_element(source, block, sizeof(Value), &widen_operands<Value>,
                             portable_panels<Element>{to, panel_bytes});
}

/// Panels of floats from packed panels of another element: as pack_panels_function, with the
/// packed panels as the source's data, vector_stride bytes apart.
template <panel_element Element>
void widen_panels_portably(const product_operand_source& source, const operand_block& block, std::byte* to,
                           std::ptrdiff_t panel_bytes) {
    constexpr std::ptrdiff_t together = k_interleave(Element);
    const auto* const panels = static_cast<const std::byte*>(source.data);
    for (std::ptrdiff_t panel = 0; panel < block.padded_vectors / panel_width; ++panel) {
        const std::byte* const from =
            panels + (block.first_vector / panel_width + panel) * source.vector_stride;
        auto* const target = reinterpret_cast<float*>(to + panel * panel_bytes);
        for (std::ptrdiff_t p = 0; p < block.padded_k; ++p) {
            const std::ptrdiff_t step = block.first_k + p;
            for (std::ptrdiff_t j = 0; j < panel_width; ++j) {
                const std::ptrdiff_t offset =
                    (step / together * panel_width + j) * together + step % together;
                std::uint16_t code = 0;
                std::memcpy(&code, from + offset * 2, sizeof code);
                target[p * panel_width + j] = Element == panel_element::binary16
                                                  ? to_float<formats::binary16>(code)
                                                  : bit_cast<float>(std::uint32_t{code} << 16);
            }
        }
    }
}
}}  // namespace mp::detail

#define MP_KERNEL_FILE <mp/linalg/gemm/kernels/packing.inl>
#include <mp/numbers/simd/for_each_target.inl>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The function that packs rows of A for a kernel of this instruction set.
template <class Value>
pack_rows_function pack_rows_for(instruction_set isa, const product_kernel& kernel) {
#if MP_BEST_TARGET >= MP_TARGET_AVX512
    if constexpr (is_exact_in_bfloat16<Value>) {
        constexpr panel_element pair = panel_element::bfloat16_vnni2;
        if (kernel.layout == a_layout::tiles) return &avx512::pack_rows<Value, pair, a_layout::tiles>;
        if (kernel.a_element == pair) return &avx512::pack_rows<Value, pair, a_layout::rows>;
    }
#endif
    static_cast<void>(kernel);
    return MP_SELECT_TARGET(isa, &pack_float_rows<Value>,
                            pack_rows<Value, panel_element::float32, a_layout::rows>);
}

/// The function that packs columns of B: into the type's own panel_element, or as floats.
template <class Value>
pack_panels_function pack_panels_for(instruction_set isa, panel_element element) {
    constexpr panel_element own = panel_element_of<Value>();
    if constexpr (own != panel_element::float32) {
        if (element == panel_element::float32) {
            return MP_SELECT_TARGET(isa, (&pack_panels_portably<Value, panel_element::float32>),
                                    pack_panels<Value, panel_element::float32>);
        }
    }
    return MP_SELECT_TARGET(isa, (&pack_panels_portably<Value, own>), pack_panels<Value, own>);
}

/// The function that widens panels of a type's own panel_element to panels of floats.
template <class Value>
pack_panels_function widen_panels_for(instruction_set isa) {
    constexpr panel_element own = panel_element_of<Value>();
    if constexpr (own == panel_element::float32) {
        return nullptr;
    } else {
        return MP_SELECT_TARGET(isa, &widen_panels_portably<own>, widen_panels<own>);
    }
}

}}  // namespace mp::detail
