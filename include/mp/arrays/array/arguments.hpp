// SPDX-License-Identifier: MIT
/// \file
/// Checks of the arguments of the functions of <mp/array.hpp>.
#pragma once

#include <mp/arrays/convert/number_range.hpp>
#include <mp/base/parallel.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Numbers that the functions of arrays calculate with: float, and reduced ones.
template <class Range>
concept array_range =
    number_range<Range> && !std::same_as<std::remove_cv_t<contiguous_element<const Range>>, double>;
template <class Range>
concept writable_array_range = array_range<std::remove_cvref_t<Range>> && writable_number_range<Range>;

template <class Range>
using array_element = std::remove_cv_t<contiguous_element<const std::remove_reference_t<Range>>>;

/// An input array with the name that messages give it.
template <class Value>
struct array_input {
    std::string_view name;
    std::span<const Value> values;
};
template <array_range Range>
array_input<array_element<Range>> input_array(std::string_view name, const Range& range) {
    return {name, as_span(range)};
}

[[noreturn]] MP_NEVER_INLINE inline void throw_null(std::string_view function, std::string_view name) {
    const std::string text(name);
    throw_argument(function, text + ".data()", "null", "must point to " + text + ".size() elements");
}
MP_ALWAYS_INLINE void check_not_null(std::string_view function, std::string_view name, const void* data,
                                     std::size_t size) {
    if (data == nullptr && size != 0) [[unlikely]]
        throw_null(function, name);
}

/// Throws what is wrong with an input.
template <class Value>
[[noreturn]] MP_NEVER_INLINE void throw_input(std::string_view function, std::span<Value> out,
                                              const array_input<Value>& input, std::string_view out_name) {
    const std::string name(input.name);
    if (input.values.size() != out.size()) {
        throw_argument(
            function, name + ".size()", input.values.size(),
            "must equal " + std::string(out_name) + ".size(), which is " + std::to_string(out.size()));
    }
    if (input.values.data() == nullptr) throw_null(function, input.name);
    throw_argument(function, out_name, "overlapping " + name, "must be " + name + " or memory of its own");
}

/// Throws unless input and output have the same size and are the same memory, or memory of their own. Inlined,
/// as the two below: calls would take longer than a few elements do.
template <class Value>
MP_ALWAYS_INLINE void check_input(std::string_view function, std::span<Value> out,
                                  const array_input<Value>& input, std::string_view out_name = "out") {
    const auto in_begin = reinterpret_cast<std::uintptr_t>(input.values.data());
    const auto out_begin = reinterpret_cast<std::uintptr_t>(out.data());
    const bool overlaps = in_begin != out_begin && in_begin < out_begin + out.size_bytes() &&
                          out_begin < in_begin + input.values.size_bytes();
    const bool is_null = in_begin == 0 && !input.values.empty();
    if (input.values.size() != out.size() || is_null || overlaps) [[unlikely]] {
        throw_input(function, out, input, out_name);
    }
}

/// Checks an executor, an output and the inputs that go into it, and returns the instruction set to run with.
template <class Value, class... Input>
MP_ALWAYS_INLINE instruction_set check_elementwise(std::string_view function, const cpu& exec,
                                                   std::span<Value> out, const Input&... inputs) {
    check_threads(function, exec);
    const instruction_set isa = isa_of(function, exec);
    check_not_null(function, "out", out.data(), out.size());
    (check_input<Value>(function, out, inputs), ...);
    return isa;
}

}}  // namespace mp::detail
