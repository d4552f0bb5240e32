// SPDX-License-Identifier: MIT
/// \file
/// Operands of ops as data, and the types that a category of ops gives to them.
#pragma once

#include <mp/arrays/array/element_type.hpp>
#include <mp/base/buffer_version.hpp>
#include <mp/config.hpp>
#include <mp/executor.hpp>
#include <mp/nn/autocast/category.hpp>

#include <cstddef>
#include <cstdint>
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

/// An argument of an op: a matrix of any element type, or, with one row, a contiguous range; or a parameter.
struct any_operand : any_matrix {
    operand_role role = operand_role::parameter;
    bool is_vector = false;
    bool adds = false;                        ///< of a sum: whether the result is added, or replaces it
    const buffer_version* version = nullptr;  ///< of an input whose cast may be kept
    const void* parameter = nullptr;

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

/// Types that a category gives to the data of a call.
struct resolved_types {
    const number_facts* target = nullptr;  ///< of the casts; null if data stay as they are
    const number_facts* output = nullptr;  ///< of results; null if they stay as the kernel makes them
    const number_facts* third = nullptr;   ///< of a promotion that is rejected
};

/// Whether autocast may cast numbers of the type: float and the reduced formats.
[[nodiscard]] MP_ALWAYS_INLINE constexpr bool is_eligible(const number_facts& type) {
    return type.is_reduced || (!type.is_double && type.size == sizeof(float));
}

/// Whether every value of `narrow`, infinities and NaN included, is a value of `wide`. A finite value of `narrow` is a
/// multiple of its quantum with at most `precision` significant bits, so both being at least as fine in `wide`, and its
/// largest finite value at least as large, is enough.
[[nodiscard]] MP_ALWAYS_INLINE constexpr bool holds_values(const number_facts& wide,
                                                           const number_facts& narrow) {
    return narrow.precision <= wide.precision && narrow.quantum_exponent >= wide.quantum_exponent &&
           (!narrow.has_infinity || wide.has_infinity) && (!narrow.has_nan || wide.has_nan) &&
           (!narrow.has_signed_zero || wide.has_signed_zero) && (!narrow.is_signed || wide.is_signed) &&
           (narrow.max_exponent < wide.max_exponent ||
            (narrow.max_exponent == wide.max_exponent && narrow.max_fraction <= wide.max_fraction));
}

/// Resolves a category for data of the given types; `requested` is the type of result that the call asks for, or null.
MP_CORE_FUNCTION resolved_types resolve_types(op_category category, const number_facts& low,
                                              const number_facts& float32, const number_facts* requested,
                                              std::span<const number_facts* const> data);
/// The type among `types` that holds every value of all the others; else float32; null where there is none.
MP_CORE_FUNCTION const number_facts* widest_of(std::span<const number_facts* const> types,
                                               const number_facts& float32);

#if MP_CORE_BODIES
MP_CORE_FUNCTION const number_facts* widest_of(std::span<const number_facts* const> types,
                                               const number_facts& float32) {
    const auto holds_all = [&](const number_facts& wide) {
        for (const number_facts* it : types) {
            if (!is_same_type(wide, *it) && !holds_values(wide, *it)) return false;
        }
        return true;
    };
    for (const number_facts* it : types) {
        if (holds_all(*it)) return it;
    }
    return types.empty() ? nullptr : &float32;  // a double would hold all values of the others
}

MP_CORE_FUNCTION resolved_types resolve_types(op_category category, const number_facts& low,
                                              const number_facts& float32, const number_facts* requested,
                                              std::span<const number_facts* const> data) {
    constexpr std::size_t most = 16;
    const number_facts* cast[most];
    const auto widest_cast_to = [&](const number_facts* target) {
        for (std::size_t i = 0; i < data.size(); ++i) cast[i] = is_eligible(*data[i]) ? target : data[i];
        return widest_of({cast, data.size()}, float32);
    };
    const number_facts* const first = data.empty() ? nullptr : data[0];
    const bool first_is_eligible = first != nullptr && is_eligible(*first);
    switch (category) {
        case op_category::lower_precision:
            return {&low, widest_cast_to(&low)};
        case op_category::full_precision:
            return {&float32, widest_cast_to(&float32)};
        case op_category::full_precision_output:
            return {nullptr, requested != nullptr ? requested : first_is_eligible ? &float32 : nullptr};
        case op_category::append_output_type:
            return {nullptr, requested != nullptr ? requested : first_is_eligible ? &float32 : first};
        case op_category::promote: {
            const number_facts* target = &low;
            const number_facts* third = nullptr;
            for (const number_facts* it : data) {
                if (is_same_type(*it, float32)) target = &float32;
                if (third == nullptr && it->is_reduced && !is_same_type(*it, low)) third = it;
            }
            return {target, widest_cast_to(target), third};
        }
        case op_category::promote_widest: {
            const number_facts* const target = widest_of(data, float32);
            return {target, target};
        }
        case op_category::pass_through:
        case op_category::banned:
            break;
    }
    return {};
}
#endif

}}  // namespace mp::detail
