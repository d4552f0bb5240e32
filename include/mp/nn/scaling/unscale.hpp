// SPDX-License-Identifier: MIT
/// \file
/// Taking the loss scale out of gradients and finding infinities and NaNs, in one pass.
#pragma once

#include <mp/base/argument_checks.hpp>
#include <mp/base/bits.hpp>
#include <mp/base/contiguous.hpp>
#include <mp/base/parallel.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/scaling/kernels/unscale.hpp>
#include <mp/nn/scaling/scale_checks.hpp>
#include <mp/numbers/format/basic_float.hpp>
#include <mp/numbers/simd/processor.hpp>

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

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Throws argument_error in the name of `function` for a negative scale or NaN.
MP_CORE_FUNCTION void require_inverse_scale(std::string_view function, float inverse_scale);

/// Checks the arrays of unscale_and_check; returns whether they are the same one.
MP_CORE_FUNCTION bool check_unscale_arrays(std::string_view function, const void* in, std::size_t count,
                                           std::size_t size, bool is_float, const float* out,
                                           std::size_t results);

/// Body of unscale_and_check over `count` gradients and `results` results; magnitudes whose bits are above `limit` count
/// as too large.
MP_CORE_FUNCTION non_finite_report unscale_elements(cpu exec, const gradient_type& type, const void* in,
                                                    std::size_t count, float* out, std::size_t results,
                                                    float inverse_scale, std::uint32_t limit);
/// Body of check_finite.
MP_CORE_FUNCTION non_finite_report check_elements(cpu exec, const gradient_type& type, const void* in,
                                                  std::size_t count, float inverse_scale);

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Fewest elements that are worth a thread.
inline constexpr std::size_t unscale_grain = 64 * unscale_block;

/// What several threads have found in chunks of an array, or of several that are numbered through. Sums and a
/// minimum: independent of how the threads share the work.
class shared_report {
public:
    /// Adds the report of a chunk whose first element has index `begin`.
    void add(std::size_t begin, const non_finite_report& chunk) noexcept {
        if (!chunk.found() && chunk.too_large == 0) return;
        infinities_ += chunk.infinities;
        nans_ += chunk.nans;
        too_large_ += chunk.too_large;
        if (chunk.found()) lower(first_index_, begin + chunk.first_index);
        if (chunk.too_large != 0) lower(first_too_large_, begin + chunk.first_too_large);
    }

    [[nodiscard]] non_finite_report total() const noexcept {
        return {infinities_, nans_, first_index_, too_large_, first_too_large_};
    }

private:
    static void lower(std::atomic<std::size_t>& first, std::size_t index) noexcept {
        std::size_t lowest = first;
        while (index < lowest && !first.compare_exchange_weak(lowest, index)) {
        }
    }

    std::atomic<std::uint64_t> infinities_{0};
    std::atomic<std::uint64_t> nans_{0};
    std::atomic<std::size_t> first_index_{no_index};
    std::atomic<std::uint64_t> too_large_{0};
    std::atomic<std::size_t> first_too_large_{no_index};
};

/// Calls `block(begin, count)` over [0, count), which says whether there is something to be found, and then
/// looks at the results `values` of such blocks.
template <class Block>
non_finite_report scan_blocks(cpu exec, const float* values, std::size_t count, Block block) {
    shared_report report;
    parallel_for(exec, count, unscale_grain, [&](std::size_t begin, std::size_t end) {
        non_finite_report mine;
        for (std::size_t at = begin; at < end; at += unscale_block) {
            const std::size_t length = (std::min)(unscale_block, end - at);
            if (block(at, length)) count_non_finite(values + at, length, at - begin, mine);
        }
        report.add(begin, mine);
    });
    return report.total();
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
concept writable_float_range =
    contiguous<Range> &&
    std::same_as<typename decltype(as_span(std::declval<Range&>()))::element_type, float>;

template <class Gradient>
bool check_unscale_arrays(std::string_view function, std::span<const Gradient> in, std::span<float> out) {
    return mp::detail::check_unscale_arrays(function, in.data(), in.size(), sizeof(Gradient),
                                            std::is_same_v<Gradient, float>, out.data(), out.size());
}

template <class Gradient>
non_finite_report unscale_within(cpu exec, std::span<Gradient> gradients, std::span<float> out,
                                 float inverse_scale, std::uint32_t limit) {
    return unscale_elements(exec, gradient_record<std::remove_const_t<Gradient>>::record, gradients.data(),
                            gradients.size(), out.data(), out.size(), inverse_scale, limit);
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Multiplies gradients by the inverse of the loss scale and reports infinities and NaNs among the results,
/// in one pass.
///
/// unscaled[i] = float(gradients[i]) * inverse_scale, rounded once; with an inverse scale of exactly 1 the
/// bits are copied. The results are checked rather than the inputs: every infinity and NaN of the input is
/// one in the output too, and a quotient that only the unscaling makes infinite (a scale below 1) is found
/// besides. All results are written, bad ones included. The check works on bits and holds under -ffast-math.
///
/// \param exec           mp::cpu; the result does not depend on threads and instructions
/// \param gradients      contiguous range of float or of a reduced format; vector, span, array...
/// \param unscaled       contiguous range of float of the same size; the same memory as `gradients`
///                       if that is float, and otherwise without overlap
/// \param inverse_scale  not negative, as from inverse_of_scale; may be infinite
/// \throws argument_error  sizes differ, null with a size other than zero, overlap, inverse scale NaN or
///                         negative, fewer than one thread, or instructions that the processor lacks
template <detail::gradient_range Gradients, detail::writable_float_range Unscaled>
non_finite_report unscale_and_check(cpu exec, const Gradients& gradients, Unscaled&& unscaled,
                                    float inverse_scale) {
    return detail::unscale_within(exec, detail::as_span(gradients), detail::as_span(unscaled), inverse_scale,
                                  detail::no_check_limit);
}

/// unscale_and_check in place.
template <detail::writable_float_range Gradients>
non_finite_report unscale_and_check(cpu exec, Gradients&& gradients, float inverse_scale) {
    return unscale_and_check(exec, gradients, gradients, inverse_scale);
}

/// The report that unscale_and_check would give, without writing anything.
///
/// \throws argument_error  null with a size other than zero, inverse scale NaN or negative, fewer than one
///                         thread, or instructions that the processor lacks
template <detail::gradient_range Gradients>
non_finite_report check_finite(cpu exec, const Gradients& gradients, float inverse_scale = 1.0F) {
    using gradient = detail::element_value<const Gradients>;
    const std::span<const gradient> in = detail::as_span(gradients);
    return detail::check_elements(exec, detail::gradient_record<gradient>::record, in.data(), in.size(),
                                  inverse_scale);
}

}}  // namespace mp

#if MP_CORE_BODIES
namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION void require_inverse_scale(std::string_view function, float inverse_scale) {
    // As signed integers the codes of floats from plus zero up to infinity are 0 to 0x7f800000; all else is
    // outside. Zero is the inverse of a scale that has grown to infinity, as some systems let it: whatever
    // gradient such a scale leaves is infinite or NaN, and NaN when it is multiplied by zero.
    const std::int32_t code = bit_cast<std::int32_t>(inverse_scale);
    if (code < 0 || code > 0x7f800000) {
        throw_argument(function, "inverse_scale", inverse_scale, "must not be negative or NaN");
    }
}

MP_CORE_FUNCTION bool check_unscale_arrays(std::string_view function, const void* in, std::size_t count,
                                           std::size_t size, bool is_float, const float* out,
                                           std::size_t results) {
    require_memory(function, "gradients.data()", in, count);
    require_memory(function, "unscaled.data()", out, results);
    if (results != count) {
        throw_argument(function, "unscaled.size()", results,
                       "must equal gradients.size(), which is " + error_text(count));
    }
    const auto in_begin = reinterpret_cast<std::uintptr_t>(in);
    const auto out_begin = reinterpret_cast<std::uintptr_t>(out);
    const bool in_place = is_float && in_begin == out_begin;
    if (!in_place && in_begin < out_begin + count * sizeof(float) && out_begin < in_begin + count * size) {
        throw_joined<argument_error>({function, ": unscaled overlaps gradients; it must be other memory",
                                      is_float ? ", or the same from the first element on" : ""});
    }
    return in_place;
}

MP_CORE_FUNCTION non_finite_report unscale_elements(cpu exec, const gradient_type& type, const void* in,
                                                    std::size_t count, float* out, std::size_t results,
                                                    float inverse_scale, std::uint32_t limit) {
    constexpr std::string_view function = "mp::unscale_and_check";
    check_threads(function, exec);
    require_inverse_scale(function, inverse_scale);
    const std::size_t size = type.rows->size;
    const bool in_place = check_unscale_arrays(function, in, count, size, type.is_float, out, results);
    const unscale_pass pass = select_unscale(type, isa_of(function, exec), inverse_scale, in_place, count);
    shared_report report;
    parallel_for(exec, count, unscale_grain, [&](std::size_t begin, std::size_t end) {
        report.add(begin, pass(static_cast<const std::byte*>(in) + begin * size, out + begin, end - begin,
                               inverse_scale, limit));
    });
    return report.total();
}

MP_CORE_FUNCTION non_finite_report check_elements(cpu exec, const gradient_type& type, const void* in,
                                                  std::size_t count, float inverse_scale) {
    constexpr std::string_view function = "mp::check_finite";
    check_threads(function, exec);
    require_inverse_scale(function, inverse_scale);
    require_memory(function, "gradients.data()", in, count);
    const check_pass pass = select_check(type, isa_of(function, exec), inverse_scale);
    shared_report report;
    parallel_for(exec, count, unscale_grain, [&](std::size_t begin, std::size_t end) {
        report.add(begin, pass(static_cast<const std::byte*>(in) + begin * type.rows->size, end - begin,
                               inverse_scale, no_check_limit));
    });
    return report.total();
}

}}  // namespace mp::detail
#endif
