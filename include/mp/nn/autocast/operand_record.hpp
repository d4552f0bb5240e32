// SPDX-License-Identifier: MIT
/// \file
/// Operands of ops as data, and the types that a category of ops gives to them.
#pragma once

#include <mp/arrays/array/element_type.hpp>
#include <mp/base/buffer_version.hpp>
#include <mp/config.hpp>
#include <mp/executor.hpp>
#include <mp/nn/autocast/category.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Role of an argument of an op.
enum class operand_role : unsigned char {
    parameter,  ///< no floating-point data, or an absent operand
    input,
    uncast,  ///< an input that is not cast and does not decide the precision
    output,
    in_out,
    sum  ///< the result is added to it
};

class region_observer;
struct foreign_view;

/// How the dispatcher reads and writes views of a type on an executor. Staged arrays are dense, and in the executor's
/// memory.
struct view_functions {
    /// Converts the elements to those of a staged array, through the operand's float8 format where `quantises`.
    void (*read)(const foreign_view& view, const number_facts& type, bool quantises, void* to);
    /// Converts the elements of a staged array to those of the view, or adds them.
    void (*write)(const foreign_view& view, const number_facts& type, const void* from, bool adds);
    /// Copies the elements, or where `type` is not null those of a staged array, to the host.
    void (*copy_floats)(const foreign_view& view, const number_facts* type, const void* staged, float* to);
    /// Reports an array that is not cast: one that the op reads, or has computed.
    void (*report)(const foreign_view& view, const region_observer& observer, std::size_t index,
                   bool is_read);
    /// Memory that outlives the call; null where there is none.
    std::shared_ptr<void> (*allocate_kept)(const foreign_view& view, std::size_t bytes);
    std::size_t (*size)(const foreign_view& view);  ///< of a staged array
    bool on_device;
};

/// A view of a type of the user's, or in the memory of another executor than mp::cpu.
struct foreign_view {
    const view_functions* functions;
    const void* executor;
    const void* view;
    bool can_keep;                        ///< whether casts are kept now
    std::array<std::ptrdiff_t, 4> shape;  ///< with the address, equal for views of the same elements only
    const void* queue;                    ///< of the executor's kernels, which alone may read kept casts
};

/// An argument of an op: a matrix of any element type, or, with one row, a contiguous range; a foreign view; or a
/// parameter.
struct any_operand : any_matrix {
    operand_role role = operand_role::parameter;
    bool is_vector = false;
    bool adds = false;                        ///< of a sum: whether the result is added, or replaces it
    const buffer_version* version = nullptr;  ///< of an input whose cast may be kept
    /// The parameter; of a foreign view, its foreign_view.
    const void* parameter = nullptr;

    [[nodiscard]] MP_ALWAYS_INLINE const foreign_view* foreign() const {
        return role == operand_role::parameter ? nullptr : static_cast<const foreign_view*>(parameter);
    }
    [[nodiscard]] MP_ALWAYS_INLINE bool is_output() const { return role >= operand_role::output; }
    /// What a product multiplies the old values of a result by.
    [[nodiscard]] MP_ALWAYS_INLINE float beta() const {
        return role == operand_role::sum && adds ? 1.0F : 0.0F;
    }
};

/// A float8 format that operands of products are rounded to on their way to another type, after scaling.
struct quantiser {
    number_facts format;
    int (*scale_exponent)(std::span<const float> values);
    void (*quantise)(const cpu& exec, std::span<const float> from, void* to);
};

/// Formats that a region of fp8 quantises the operands of products to.
struct float8_recipe {
    quantiser forward;
    quantiser gradient;
};

/// Types that the arguments and results of a call are rounded to. Eligible inputs (floats and reduced formats) are
/// cast to `target`, results are rounded to `output`; where null, they stay. `quantisers` has an entry for each
/// argument, or is null.
struct cast_types {
    const element_type* target = nullptr;
    const element_type* output = nullptr;
    const quantiser* const* quantisers = nullptr;
};

}}  // namespace mp::detail
