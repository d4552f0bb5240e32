// SPDX-License-Identifier: MIT
/// \file
/// Conversion of arrays of floats in every projection for one instruction set. See project_arrays.inl.
#pragma once

#include <mp/arrays/convert/kernels/convert_arrays.hpp>

#include <cstddef>
#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A projection onto a format as the constants that its kernel works with.
struct projection_plan {
    // Rounding adds ((ones below the last place >> halved) & away) + (last bit & even) + one, or nothing
    // where the last bit is set and `odd`, to what is cut at the last place; `away` goes by the sign.
    std::uint32_t halved = 0;
    std::uint32_t away[2] = {};
    std::uint32_t even = 0;
    std::uint32_t one = 0;
    std::uint32_t odd = 0;
    // Stochastic rounding: N random bits, which are compared at the top of a word.
    bool is_stochastic = false;
    int unused_random_bits = 0;  ///< 32 - N
    std::uint32_t compared = 0;  ///< the N highest bits
    std::uint32_t unit = 0;      ///< the last of them
    std::uint32_t next = 0;      ///< the bit behind, if that counts (kinds B and C)
    bool ties_to_even = false;   ///< kind C
    // Magnitude codes by sign, and what a NaN becomes.
    std::uint32_t too_large[2] = {};
    std::uint32_t infinite[2] = {};
    std::uint32_t nan = 0;
    std::uint32_t nan_payload = 0;
    std::uint32_t nan_sign = 0;
};

/// Whether the kernels have a projection: all but some stochastic ones with very few or very many bits.
constexpr bool has_plan(const projection& p) noexcept {
    if (!is_stochastic(p.round)) return true;
    return p.random_bits >= 1 && p.random_bits <= (p.round == rounding::stochastic_a ? 32 : 31);
}

template <class Format>
constexpr projection_plan plan_of(const projection& p) noexcept {
    using layout = layout_of<Format>;
    constexpr std::uint32_t all = ~std::uint32_t{0};
    projection_plan plan;
    switch (p.round) {
        case rounding::nearest_even:
        case rounding::nearest_away:
            plan.halved = 1;
            plan.away[0] = plan.away[1] = all;
            (p.round == rounding::nearest_even ? plan.even : plan.one) = 1;
            break;
        case rounding::toward_zero:
            break;
        case rounding::upward:
            plan.away[0] = all;
            break;
        case rounding::downward:
            plan.away[1] = all;
            break;
        case rounding::to_odd:
            plan.away[0] = plan.away[1] = plan.odd = all;
            break;
        case rounding::stochastic_a:
        case rounding::stochastic_b:
        case rounding::stochastic_c:
            plan.is_stochastic = true;
            plan.unused_random_bits = 32 - p.random_bits;
            plan.compared = all << plan.unused_random_bits;
            plan.unit = plan.compared & (0U - plan.compared);
            plan.next = p.round == rounding::stochastic_a ? 0 : plan.unit >> 1;
            plan.ties_to_even = p.round == rounding::stochastic_c;
            break;
    }
    for (const bool negative : {false, true}) {
        plan.too_large[negative] = static_cast<std::uint32_t>(overflow_code<Format>(negative, false, p));
        plan.infinite[negative] = static_cast<std::uint32_t>(overflow_code<Format>(negative, true, p));
    }
    const bool keeps = layout::has_nan && p.nan == nan_propagation::keep;
    plan.nan = pack_nan<Format>(false, p);
    plan.nan_payload = keeps && Format::nans == nan_encoding::ieee ? layout::fraction_mask : 0U;
    plan.nan_sign = keeps && Format::nans != nan_encoding::negative_zero ? layout::sign_mask : 0U;
    return plan;
}

}}  // namespace mp::detail

#define MP_KERNEL_FILE <mp/arrays/convert/kernels/project_arrays.inl>
#include <mp/numbers/simd/for_each_target.inl>
