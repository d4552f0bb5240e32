// SPDX-License-Identifier: MIT
/// \file
/// Conversion of whole arrays.
#pragma once

#include <mp/convert/bulk.hpp>
#include <mp/convert/number_range.hpp>
#include <mp/detail/parallel.hpp>

#include <cstdint>

namespace mp {

namespace detail {

/// Throws unless the arrays are not null while not empty, and do not overlap.
template <class From, class To>
void check_memory(std::string_view function, std::span<From> from, std::span<To> to) {
    if (!from.empty() && from.data() == nullptr)
        throw_argument(function, "from.data()", "null", "must point to from.size() elements");
    if (!to.empty() && to.data() == nullptr)
        throw_argument(function, "to.data()", "null", "must point to to.size() elements");
    const auto from_begin = reinterpret_cast<std::uintptr_t>(from.data());
    const auto to_begin = reinterpret_cast<std::uintptr_t>(to.data());
    if (from_begin < to_begin + to.size_bytes() && to_begin < from_begin + from.size_bytes()) {
        throw_argument(function, "to", "overlapping from", "must be memory of its own");
    }
}

/// The same, and unless they have the same size.
template <class From, class To>
void check_arrays(std::string_view function, std::span<From> from, std::span<To> to) {
    if (from.size() != to.size()) {
        throw_argument(function, "to.size()", to.size(),
                       "must equal from.size(), which is " + std::to_string(from.size()));
    }
    check_memory(function, from, to);
}

}  // namespace detail

/// Converts an array of numbers to another type, element by element: to[i] = round_to<To>(from[i], p), with
/// the same bits whatever the instructions and the number of threads.
///
/// `from` and `to` are contiguous ranges (vector, array, span) of any number types, float and double
/// included, with the same number of elements. Throws argument_error, with nothing written, if the sizes
/// differ, a range is null but not empty, the ranges overlap, or exec.threads is less than one. May be called
/// from several threads on different targets.
///
///     std::vector<float> weights = ...;
///     std::vector<mp::half> copy(weights.size());
///     mp::convert(mp::cpu{}, weights, copy);
template <detail::number_range Source, detail::writable_number_range Target>
void convert(cpu exec, const Source& from, Target&& to, projection p = {}) {
    const std::span source = detail::as_span(from);
    const std::span target = detail::as_span(to);
    detail::check_threads("mp::convert", exec);
    detail::check_arrays("mp::convert", source, target);
    constexpr std::size_t grain = 1 << 16;
    detail::parallel_for(exec, source.size(), grain, [&](std::size_t begin, std::size_t end) {
        using from_type = std::remove_cv_t<detail::contiguous_element<const Source>>;
        detail::convert_projected<from_type, detail::contiguous_element<Target>>(
            source.data() + begin, target.data() + begin, end - begin, p);
    });
}

}  // namespace mp
