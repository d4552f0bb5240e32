// SPDX-License-Identifier: MIT
/// \file
/// Bulk conversion on one thread: the best kernel of an instruction set, or the portable loops. All give the
/// bits of the scalar conversion.
#pragma once

#include <mp/arrays/convert/kernels/number_vectors.hpp>
#include <mp/arrays/convert/portable.hpp>
#include <mp/base/bits.hpp>
#include <mp/base/instruction_set.hpp>
#include <mp/numbers/rules/random_words.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/processor.hpp>
#include <mp/numbers/simd/select_target.hpp>
#include <mp/numbers/simd/vec.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Whether convert_array exists for a pair of types: all formats whose numbers are floats, float and double.
template <class From, class To>
inline constexpr bool has_convert_array = (has_number_vectors<From> || std::same_as<From, double>) &&
                                          (has_number_vectors<To> || std::same_as<To, double>);

/// Elements that convert_array_streaming converts at a time: whole cache lines of every type.
inline constexpr std::size_t streamed_elements = 64;

}}  // namespace mp::detail

#define MP_KERNEL_FILE <mp/arrays/convert/kernels/convert_arrays.inl>
#include <mp/numbers/simd/for_each_target.inl>

#define MP_HIGHEST_TARGET MP_TARGET_AVX512_FP16
#define MP_KERNEL_FILE <mp/arrays/convert/kernels/narrow_by_instruction.inl>
#include <mp/numbers/simd/for_each_target.inl>

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

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// convert_nearest() and convert_projected() of the compiled part.
template <class From, class To>
void core_convert_nearest(instruction_set isa, const From* from, To* to, std::size_t count) noexcept;
template <class From, class To>
void core_convert_projected(instruction_set isa, const From* from, To* to, std::size_t count,
                            const projection& p) noexcept;

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class T>
inline constexpr bool is_common_type = built_in<T> || std::same_as<T, basic_float<formats::binary16>> ||
                                       std::same_as<T, basic_float<formats::bfloat16>>;
template <class T, class... Formats>
constexpr bool has_format_of(formats::list<Formats...>) {
    return (std::same_as<T, basic_float<Formats>> || ...);
}
/// Whether the compiled part converts between two types: float and each format that has a name, both ways, and all
/// pairs of float, double, half and bfloat16.
template <class From, class To>
inline constexpr bool has_core_conversion =
    !MP_CORE_BODIES && ((is_common_type<From> && is_common_type<To>) ||
                        (std::same_as<From, float> && has_format_of<To>(formats::all{})) ||
                        (std::same_as<To, float> && has_format_of<From>(formats::all{})));

/// Rounds to nearest even, overflow as saturation::none, with the kernel of an instruction set, which must
/// not be instruction_set::best (see isa_of). The arrays must not overlap.
///
/// The bits are those of the overload without one, which dispatches nothing at run time and serves where
/// there is no executor. Here a call first sees to the processor's floating-point modes, which takes some
/// nanoseconds, and an element then costs several times less.
template <number From, number To>
void convert_nearest(instruction_set isa, const From* from, To* to, std::size_t count) noexcept {
    if constexpr (has_core_conversion<From, To>) {
        core_convert_nearest(isa, from, to, count);
    } else if constexpr (has_convert_array<From, To>) {
#if MP_BEST_TARGET >= MP_TARGET_AVX512_BF16
        if constexpr (std::same_as<From, float> && std::same_as<To, basic_float<formats::bfloat16>>) {
            if (isa >= instruction_set::avx512_bf16) {
                return avx512_bf16::narrow_to_bfloat16(from, to, count);
            }
        }
#endif
#if MP_BEST_TARGET >= MP_TARGET_AVX512_FP16
        if constexpr (std::same_as<From, double> && std::same_as<To, basic_float<formats::binary16>>) {
            if (isa >= instruction_set::avx512_fp16) return avx512_fp16::narrow_to_half(from, to, count);
        }
#endif
        using function = void (*)(const From*, To*, std::size_t) noexcept;
        const auto kernel = MP_SELECT_TARGET(isa, (static_cast<function>(&convert_nearest<From, To>)),
                                             convert_array<From, To>);
        kernel(from, to, count);
    } else {
        static_cast<void>(isa);
        convert_nearest(from, to, count);
    }
}

/// The instruction set of conversions that are a part of algorithms without kernels.
inline instruction_set conversion_isa() noexcept {
    return best_instruction_set();
}

/// The values as floats, exactly.
template <reduced From>
void widen_to_float(instruction_set isa, const From* from, float* to, std::size_t count) noexcept {
    convert_nearest(isa, from, to, count);
}

/// Elements that go through buffers at a time.
inline constexpr std::size_t project_block = 512;

/// Pairs whose every number is converted exactly, to a type that has infinity.
template <class From, class To>
inline constexpr bool widens_exactly = [] {
    if constexpr (std::same_as<From, To> || (std::same_as<From, float> && std::same_as<To, double>)) {
        return built_in<To>;
    } else if constexpr (reduced<From> && built_in<To>) {
        return exactly_representable_in<format_of_t<From>, To>;
    } else {
        return false;
    }
}();

/// Whether the kernels round From to To in every projection.
template <class From, class To>
inline constexpr bool has_project_array = has_convert_array<From, To> && reduced<To>;

#if MP_SIMD_TARGETS
/// Rounds as the projection says, which must have a plan; for stochastic rounding by words of one element
/// each, whose source must not be double.
template <class From, class To>
    requires has_project_array<From, To>
void project_blocks(instruction_set isa, const From* from, To* to, std::size_t count, const projection& p,
                    const std::uint32_t* random) noexcept {
    const projection_plan plan = plan_of<typename To::format>(p);
    void (*const none)(const float*, To*, std::size_t, const projection_plan&,
                       const std::uint32_t*) noexcept = nullptr;
    const auto project = MP_SELECT_TARGET(isa, none, project_array<To>);
    if constexpr (std::same_as<From, float>) {
        project(from, to, count, plan, random);
    } else {
        float values[project_block];
        for (std::size_t i = 0; i < count; i += project_block) {
            const std::size_t length = (std::min)(project_block, count - i);
            if constexpr (std::same_as<From, double>) {
                void (*const no_odd)(const double*, float*, std::size_t) noexcept = nullptr;
                MP_SELECT_TARGET(isa, no_odd, narrow_to_odd_array)(from + i, values, length);
            } else {
                convert_nearest(isa, from + i, values, length);
            }
            project(values, to + i, length, plan, random != nullptr ? random + i : nullptr);
        }
    }
}
#endif

/// Rounds as the projection says, all elements with the same random bits.
template <number From, number To>
void convert_projected(instruction_set isa, const From* from, To* to, std::size_t count,
                       const projection& p) noexcept {
    if constexpr (has_core_conversion<From, To>) {
        core_convert_projected(isa, from, to, count, p);
    } else {
        const bool is_exact =
            widens_exactly<From, To> && p.saturate != saturation::finite && p.nan == nan_propagation::keep;
        if (p == projection{} || is_exact) return convert_nearest(isa, from, to, count);
#if MP_SIMD_TARGETS
        if constexpr (has_project_array<From, To>) {
            if (isa != instruction_set::portable && !is_stochastic(p.round)) {
                return project_blocks(isa, from, to, count, p, nullptr);
            }
        }
#endif
        convert_projected(from, to, count, p);
    }
}

/// Rounds stochastically, element i with random_bits(seed, first + i).
template <number From, number To>
void convert_stochastically(instruction_set isa, const From* from, To* to, std::size_t count, projection p,
                            std::uint64_t seed, std::uint64_t first) noexcept {
    std::uint32_t room[random_room(project_block)];
    for (std::size_t i = 0; i < count; i += project_block) {
        const std::size_t length = (std::min)(project_block, count - i);
        const std::uint32_t* const random = random_words(isa, seed, first + i, length, room);
#if MP_SIMD_TARGETS
        if constexpr (has_project_array<From, To> && !std::same_as<From, double>) {
            if (isa != instruction_set::portable && has_plan(p)) {
                project_blocks(isa, from + i, to + i, length, p, random);
                continue;
            }
        }
#endif
        for (std::size_t j = 0; j < length; ++j) {
            p.random = random[j];
            to[i + j] = round_to<To>(from[i + j], p);
        }
    }
}

}}  // namespace mp::detail
