// SPDX-License-Identifier: MIT
/// \file
/// An operand of a product whose elements lie where a list of offsets says, such as the patches of an image:
/// packed from there, without a matrix in between. See indexed_packing.inl.
#pragma once

#include <mp/linalg/gemm/packing.hpp>
#include <mp/linalg/gemm/product_kernel.hpp>
#include <mp/numbers/simd/select_target.hpp>
#include <mp/numbers/simd/vec.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Element (i, j) is elements[offsets[i] + j / image * image_stride + j % image / run * run_stride + j % run], where
/// an image is `lines` runs: of the type that panels have, float, or the code of a half or bfloat16. A cache line
/// beyond the last element may be read.
struct indexed_operand {
    const void* elements;
    const std::ptrdiff_t* offsets;
    std::ptrdiff_t run;
    std::ptrdiff_t run_stride;
    std::ptrdiff_t lines;
    std::ptrdiff_t image_stride;
};

}}  // namespace mp::detail

#define MP_KERNEL_FILE <mp/linalg/gemm/kernels/indexed_packing.inl>
#include <mp/numbers/simd/for_each_target.inl>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The function that packs panels of a B whose steps of k are the offsets, or null.
inline pack_panels_function pack_indexed_panels_for(instruction_set isa, panel_element element) {
    const pack_panels_function none = nullptr;
    if (element == panel_element::float32) {
        return MP_SELECT_TARGET(isa, none, pack_indexed_panels<panel_element::float32>);
    }
    if (element == panel_element::binary16) {
        return MP_SELECT_TARGET(isa, none, pack_indexed_panels<panel_element::binary16>);
    }
    return MP_SELECT_TARGET(isa, none, pack_indexed_panels<panel_element::bfloat16_vnni2>);
}

/// The function that packs rows of an A whose rows are the offsets, or null.
inline pack_rows_function pack_indexed_rows_for(instruction_set isa, const product_kernel& kernel) {
    const pack_rows_function none = nullptr;
    if (kernel.layout == a_layout::tiles) return MP_SELECT_TARGET(isa, none, pack_indexed_tiles);
    if (kernel.a_element == panel_element::float32)
        return MP_SELECT_TARGET(isa, none, pack_indexed_rows<float>);
    return MP_SELECT_TARGET(isa, none, pack_indexed_rows<std::uint16_t>);
}

}}  // namespace mp::detail
