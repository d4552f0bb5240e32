// SPDX-License-Identifier: MIT
/// \file
/// Bulk conversion on one thread: the best kernel of an instruction set, or the portable loops. All give the
/// bits of the scalar conversion.
#pragma once

#include <mp/arrays/convert/kernels/convert_arrays.hpp>
#include <mp/arrays/convert/kernels/project_arrays.hpp>
#include <mp/arrays/convert/portable.hpp>
#include <mp/base/bits.hpp>
#include <mp/base/instruction_set.hpp>
#include <mp/numbers/rules/random_words.hpp>
#include <mp/numbers/simd/processor.hpp>
#include <mp/numbers/simd/select_target.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

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
