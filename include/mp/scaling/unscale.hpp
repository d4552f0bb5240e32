// SPDX-License-Identifier: MIT
/// \file
/// Taking the loss scale out of gradients and finding infinities and NaNs, in one pass.
#pragma once

#include <mp/convert/bulk.hpp>
#include <mp/detail/bits.hpp>
#include <mp/detail/contiguous.hpp>
#include <mp/detail/parallel.hpp>
#include <mp/detail/runs.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/format/basic_float.hpp>
#include <mp/scaling/scale_checks.hpp>

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace mp {

/// Index that stands for "none".
inline constexpr std::size_t no_index = static_cast<std::size_t>(-1);

/// The infinities and NaNs of an array.
struct non_finite_report {
    std::uint64_t infinities = 0;        ///< values that are plus or minus infinity
    std::uint64_t nans = 0;              ///< values that are NaN
    std::size_t first_index = no_index;  ///< the lowest index of either, or no_index

    /// True if there is any infinity or NaN.
    [[nodiscard]] constexpr bool found() const { return infinities != 0 || nans != 0; }

    friend constexpr bool operator==(const non_finite_report&, const non_finite_report&) = default;
};

namespace detail {

/// Elements that one run of the vectorised loops handles before it looks at the flag: 8 KiB of float, so that
/// a block with a bad value is still in the first-level cache when it is searched.
inline constexpr std::size_t unscale_block = 2048;

/// Fewest elements that are worth a thread.
inline constexpr std::size_t unscale_grain = 64 * unscale_block;

/// Adding this to the bits of a float without its sign carries into bit 31 exactly when the exponent field
/// is all ones, that is for infinities and NaNs; or-ing the sums of a block then leaves one bit to test.
inline constexpr std::uint32_t exponent_carry = 0x00800000U;

inline std::uint32_t carry_of(float value) noexcept {
    return (bit_cast<std::uint32_t>(value) & 0x7fffffffU) + exponent_carry;
}

/// Multiplies a block in place; true if a result is infinite or NaN.
template <bool Multiply>
bool unscale_block_in_place(float* values, std::size_t count, [[maybe_unused]] float inverse) noexcept {
    std::uint32_t carries = 0;
    in_runs(count, [&](std::size_t i) {
        float value = values[i];
        if constexpr (Multiply) {
            value *= inverse;
            values[i] = value;
        }
        carries |= carry_of(value);
    });
    return (carries >> 31) != 0;
}

/// unscaled = gradient * inverse; true if a result is infinite or NaN. The arrays must not overlap.
template <bool Multiply, class Gradient>
bool unscale_block_to(const Gradient* __restrict gradient, float* __restrict unscaled, std::size_t count,
                      float inverse) noexcept {
    if constexpr (std::same_as<Gradient, float>) {
        std::uint32_t carries = 0;
        in_runs(count, [&](std::size_t i) {
            float value = gradient[i];
            if constexpr (Multiply) value *= inverse;
            unscaled[i] = value;
            carries |= carry_of(value);
        });
        return (carries >> 31) != 0;
    } else {
        convert_nearest(gradient, unscaled, count);
        return unscale_block_in_place<Multiply>(unscaled, count, inverse);
    }
}

/// The same without writing.
template <bool Multiply, class Gradient>
bool check_block(const Gradient* gradient, std::size_t count, [[maybe_unused]] float inverse) noexcept {
    if constexpr (std::same_as<Gradient, float>) {
        std::uint32_t carries = 0;
        in_runs(count, [&](std::size_t i) {
            float value = gradient[i];
            if constexpr (Multiply) value *= inverse;
            carries |= carry_of(value);
        });
        return (carries >> 31) != 0;
    } else {
        using format = typename Gradient::format;
        using layout = layout_of<format>;
        if constexpr (!Multiply && format::is_signed && format::nans != nan_encoding::negative_zero) {
            // The codes themselves tell: as above, adding `carry` moves a one into the sign bit for every
            // magnitude code beyond the finite ones.
            using word = typename layout::storage;
            constexpr word carry =
                static_cast<word>((std::uint64_t{1} << layout::magnitude_bits) - layout::finite_code_count);
            word carries = 0;
            in_runs(count, [&](std::size_t i) {
                const word magnitude = gradient[i].bits() & layout::magnitude_mask;
                carries = static_cast<word>(carries | static_cast<word>(magnitude + carry));
            });
            return (carries & layout::sign_mask) != 0;
        } else {
            float values[unscale_block];
            convert_nearest(gradient, values, count);
            return unscale_block_in_place<Multiply>(values, count, inverse);
        }
    }
}

/// Adds the infinities and NaNs of `value(begin) ... value(end - 1)` to `report`.
template <class Value>
void count_non_finite(std::size_t begin, std::size_t end, Value value, non_finite_report& report) {
    for (std::size_t i = begin; i < end; ++i) {
        const std::uint32_t magnitude = bit_cast<std::uint32_t>(static_cast<float>(value(i))) & 0x7fffffffU;
        if (magnitude < 0x7f800000U) continue;
        ++(magnitude == 0x7f800000U ? report.infinities : report.nans);
        report.first_index = std::min(report.first_index, i);
    }
}

/// Calls `block(begin, count)` over [0, count), which says whether there is something to be found, and then
/// `value(i)` for the elements of such blocks. Sums and a minimum: independent of how the threads share it.
template <class Block, class Value>
non_finite_report scan_blocks(cpu exec, std::size_t count, Block block, Value value) {
    std::atomic<std::uint64_t> infinities{0};
    std::atomic<std::uint64_t> nans{0};
    std::atomic<std::size_t> first_index{no_index};
    parallel_for(exec, count, unscale_grain, [&](std::size_t begin, std::size_t end) {
        non_finite_report mine;
        for (std::size_t at = begin; at < end; at += unscale_block) {
            const std::size_t length = std::min(unscale_block, end - at);
            if (block(at, length)) count_non_finite(at, at + length, value, mine);
        }
        if (!mine.found()) return;
        infinities += mine.infinities;
        nans += mine.nans;
        std::size_t lowest = first_index;
        while (mine.first_index < lowest && !first_index.compare_exchange_weak(lowest, mine.first_index)) {
        }
    });
    return {infinities, nans, first_index};
}

/// The type of the elements of a contiguous range, without const.
template <class Range>
using element_value = std::remove_const_t<typename decltype(as_span(std::declval<Range&>()))::element_type>;

/// float, or a reduced format, whose numbers are all floats.
template <class Value>
concept exact_in_float = std::same_as<Value, float> || reduced<Value>;

/// A contiguous range of gradient values.
template <class Range>
concept gradient_range = contiguous<Range> && exact_in_float<element_value<Range>>;

/// A contiguous range of float that can be written.
template <class Range>
concept writable_float_range = contiguous<Range> &&
    std::same_as<typename decltype(as_span(std::declval<Range&>()))::element_type, float>;

inline void require_inverse_scale(std::string_view function, float inverse_scale) {
    // As signed integers the codes of floats from plus zero up to infinity are 0 to 0x7f800000; all else is
    // outside. Zero is the inverse of a scale that has grown to infinity, as some systems let it: whatever
    // gradient such a scale leaves is infinite or NaN, and NaN when it is multiplied by zero.
    const std::int32_t code = bit_cast<std::int32_t>(inverse_scale);
    if (code < 0 || code > 0x7f800000) {
        throw_argument(function, "inverse_scale", inverse_scale, "must not be negative or NaN");
    }
}

/// Throws if memory of a size other than zero is null.
inline void require_memory(std::string_view function, std::string_view argument, const void* data,
                           std::size_t size) {
    if (data != nullptr || size == 0) return;
    throw argument_error(std::string(function) + ": " + std::string(argument) +
                         " is null; it must point to memory, for the size is " + error_text(size));
}

/// Addresses of the first byte of a span and of the one after the last.
template <class Element>
std::pair<std::uintptr_t, std::uintptr_t> byte_range(std::span<Element> values) noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(values.data());
    return {begin, begin + values.size_bytes()};
}

/// Checks the arrays of unscale_and_check, and says whether they are the same one.
template <class Gradient>
bool check_unscale_arrays(std::string_view function, std::span<const Gradient> in, std::span<float> out) {
    require_memory(function, "gradients.data()", in.data(), in.size());
    require_memory(function, "unscaled.data()", out.data(), out.size());
    if (out.size() != in.size()) {
        throw_argument(function, "unscaled.size()", out.size(),
                       "must equal gradients.size(), which is " + error_text(in.size()));
    }
    const auto [in_begin, in_end] = byte_range(in);
    const auto [out_begin, out_end] = byte_range(out);
    constexpr bool is_float = std::same_as<Gradient, float>;
    const bool in_place = is_float && in_begin == out_begin;
    if (!in_place && in_begin < out_end && out_begin < in_end) {
        throw argument_error(std::string(function) +
                             ": unscaled overlaps gradients; it must be other memory" +
                             (is_float ? ", or the same from the first element on" : ""));
    }
    return in_place;
}

}  // namespace detail

/// Multiplies gradients by the inverse of the loss scale and reports infinities and NaNs among the results,
/// in one pass.
///
/// unscaled[i] = float(gradients[i]) * inverse_scale, rounded once; with an inverse scale of exactly 1 the
/// bits are copied. The results are checked rather than the inputs: every infinity and NaN of the input is
/// one in the output too, and a quotient that only the unscaling makes infinite (a scale below 1) is found
/// besides. All results are written, bad ones included. The check works on bits and holds under -ffast-math.
///
/// \param exec           mp::cpu; the result does not depend on the number of threads
/// \param gradients      contiguous range of float or of a reduced format; vector, span, array...
/// \param unscaled       contiguous range of float of the same size; the same memory as `gradients`
///                       if that is float, and otherwise without overlap
/// \param inverse_scale  not negative, as from inverse_of_scale; may be infinite
/// \throws argument_error  sizes differ, null with a size other than zero, overlap, inverse scale NaN or
///                         negative, or fewer than one thread
template <detail::gradient_range Gradients, detail::writable_float_range Unscaled>
non_finite_report unscale_and_check(cpu exec, const Gradients& gradients, Unscaled&& unscaled,
                                    float inverse_scale) {
    using gradient = detail::element_value<const Gradients>;
    const std::span<const gradient> in = detail::as_span(gradients);
    const std::span<float> out = detail::as_span(unscaled);
    constexpr std::string_view function = "mp::unscale_and_check";
    detail::check_threads(function, exec);
    detail::require_inverse_scale(function, inverse_scale);
    const bool in_place = detail::check_unscale_arrays(function, in, out);
    const auto result = [out](std::size_t i) { return out[i]; };
    const bool multiply = inverse_scale != 1.0F;
    if (in_place) {
        const auto block = [=](std::size_t at, std::size_t count) {
            return multiply ? detail::unscale_block_in_place<true>(out.data() + at, count, inverse_scale)
                            : detail::unscale_block_in_place<false>(out.data() + at, count, inverse_scale);
        };
        return detail::scan_blocks(exec, out.size(), block, result);
    }
    const auto block = [=](std::size_t at, std::size_t count) {
        return multiply
                   ? detail::unscale_block_to<true>(in.data() + at, out.data() + at, count, inverse_scale)
                   : detail::unscale_block_to<false>(in.data() + at, out.data() + at, count, inverse_scale);
    };
    return detail::scan_blocks(exec, in.size(), block, result);
}

/// unscale_and_check in place.
template <detail::writable_float_range Gradients>
non_finite_report unscale_and_check(cpu exec, Gradients&& gradients, float inverse_scale) {
    return unscale_and_check(exec, gradients, gradients, inverse_scale);
}

/// The report that unscale_and_check would give, without writing anything.
///
/// \throws argument_error  null with a size other than zero, inverse scale NaN or negative, or fewer than
///                         one thread
template <detail::gradient_range Gradients>
non_finite_report check_finite(cpu exec, const Gradients& gradients, float inverse_scale = 1.0F) {
    using gradient = detail::element_value<const Gradients>;
    const std::span<const gradient> in = detail::as_span(gradients);
    constexpr std::string_view function = "mp::check_finite";
    detail::check_threads(function, exec);
    detail::require_inverse_scale(function, inverse_scale);
    detail::require_memory(function, "gradients.data()", in.data(), in.size());
    // What is finite stays finite when it is multiplied by 1 or less; zero makes NaNs of infinities.
    const bool multiply = !(inverse_scale > 0.0F && inverse_scale <= 1.0F);
    const auto block = [=](std::size_t at, std::size_t count) {
        return multiply ? detail::check_block<true>(in.data() + at, count, inverse_scale)
                        : detail::check_block<false>(in.data() + at, count, inverse_scale);
    };
    const auto value = [=](std::size_t i) {
        const float unscaled = static_cast<float>(in[i]);
        return multiply ? unscaled * inverse_scale : unscaled;
    };
    return detail::scan_blocks(exec, in.size(), block, value);
}

}  // namespace mp
