// SPDX-License-Identifier: MIT
/// \file
/// How autocast sees the arguments of an op: which carry floating-point data, in which direction, and how a
/// copy of them in another format is made.
#pragma once

#include <mp/arrays/array/element_type.hpp>
#include <mp/base/buffer_version.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/autocast/types.hpp>
#include <mp/numbers/rules/function_names.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

namespace mp::autocast {

/// What an argument type is to autocast.
enum class operand_kind : unsigned char {
    parameter,  ///< no floating-point data: executors, sizes, labels, options; never touched
    value,      ///< a floating-point number: data if the op has no arrays, else a parameter such as alpha
    array       ///< a view of floating-point data
};

/// How autocast treats arguments of type Argument. The primary template makes them parameters. Specialise it
/// for a view type of your own with these members (std::span below is an example):
///
/// - `kind`, which is operand_kind::array;
/// - `element`, the type of the elements without const, and `writable`, whether they are not const;
/// - `static auto as_input(view)`: the same view with const elements;
/// - `static std::size_t size(view)`: how many elements a dense copy needs;
/// - `template <class To> static auto dense(To* storage, view)`: a view of the same kind and shape with
///   elements of type To, const or not, over storage for size(view) of them;
/// - `static const void* address(view)` and `static std::array<std::ptrdiff_t, 4> shape(view)`: the first
///   element, and numbers that are equal for views of the same elements only (given the address); needed by
///   cached() alone;
/// - `static std::span<const element> contiguous(view)`, if there is one: the elements in the order of a
/// dense
///   copy where they lie like that, else nothing;
/// - `static void copy(executor, from, to)`: converts the elements of a view of any element type to those of
///   a view of the same shape, each rounded once;
/// - `static void add(executor, from, to)`: to += from, element by element, in float and rounded once; needed
///   by add_to() alone.
template <class Argument>
struct operand_traits {
    static constexpr operand_kind kind = operand_kind::parameter;
    using element = void;
};

/// A number by itself is cast as a value.
template <floating Value>
struct operand_traits<Value> {
    static constexpr operand_kind kind = operand_kind::value;
    using element = Value;
};

/// Kernels receive spans of dynamic extent, whatever the caller passes.
template <class Element, std::size_t Extent>
    requires floating<std::remove_const_t<Element>>
struct operand_traits<std::span<Element, Extent>> {
    static constexpr operand_kind kind = operand_kind::array;
    using element = std::remove_const_t<Element>;
    static constexpr bool writable = !std::is_const_v<Element>;

    static std::span<const element> as_input(std::span<Element> view) { return view; }
    static std::size_t size(std::span<Element> view) { return view.size(); }
    static const void* address(std::span<Element> view) { return view.data(); }
    static std::array<std::ptrdiff_t, 4> shape(std::span<Element> view) {
        return {static_cast<std::ptrdiff_t>(view.size())};
    }

    static std::span<const element> contiguous(std::span<Element> view) { return view; }

    template <class To>
    static std::span<To> dense(To* storage, std::span<Element> view) {
        return std::span<To>(storage, view.size());
    }

    template <class Executor, class From, class To>
    static void copy(const Executor& exec, std::span<From> from, std::span<To> to) {
        if constexpr (std::same_as<Executor, cpu>) {
            detail::copy_elements(exec, detail::any_matrix_of(from), detail::any_matrix_of(to));
        } else {
            convert(exec, std::span<const From>(from), to);
        }
    }
    /// Needs <mp/ops.hpp>.
    template <class Executor, class From, class To>
    static void add(const Executor& exec, std::span<From> from, std::span<To> to) {
        const auto size = static_cast<std::ptrdiff_t>(to.size());
        map_elements(detail::sum_function{}, exec, row_major(to.data(), 1, size),
                     row_major<const To>(to.data(), 1, size), row_major<const From>(from.data(), 1, size));
    }
};

/// An array that the op writes, made by out() or in_out().
template <class View, bool ReadsOldValues>
struct output_operand {
    static_assert(operand_traits<View>::kind == operand_kind::array,
                  "mp::autocast: an output is a view of floating-point elements, such as std::span<float>");
    static_assert(operand_traits<View>::writable,
                  "mp::autocast: an output is a view of elements that are not const");
    View view;
};

/// An array that the op reads as it is, made by uncast().
template <class View>
struct uncast_operand {
    static_assert(operand_traits<View>::kind == operand_kind::array,
                  "mp::autocast: an array that is not cast is a view of floating-point elements, such as "
                  "std::span<const float>");
    View view;
};

/// An array argument of an op whose cast may be kept. Made by cached().
template <class View>
struct cached_operand {
    View view;
    buffer_version version;
};

/// An array that the op's result is added to, made by add_to().
template <class View>
struct sum_operand {
    static_assert(operand_traits<View>::kind == operand_kind::array && operand_traits<View>::writable,
                  "mp::autocast: a sum is a view of floating-point elements that are not const, such as "
                  "std::span<float>");
    View view;
    bool adds;
};

}  // namespace mp::autocast

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

/// Marks an argument of an op as an array that the op writes and does not read. Arrays without a mark are
/// inputs: the kernel receives them with const elements, so a forgotten mark does not compile.
///
///     mp::autocast::call<mp::autocast::fp16>(matmul_op{}, exec, a, b, mp::autocast::out(c));
template <class View>
constexpr output_operand<View, false> out(View view) {
    return {view};
}

template <class Element, std::size_t Extent>
constexpr output_operand<std::span<Element>, false> out(std::span<Element, Extent> view) {
    return {view};
}

/// Marks an argument of an op as an array that the op reads and writes, such as a sum that it adds to.
template <class View>
constexpr output_operand<View, true> in_out(View view) {
    return {view};
}
template <class Element, std::size_t Extent>
constexpr output_operand<std::span<Element>, true> in_out(std::span<Element, Extent> view) {
    return {view};
}

/// Marks an argument of an op as an array that no policy casts and that does not decide the precision: one that is
/// added to sums in float, not multiplied, such as the mask of an attention. The kernel receives it with const
/// elements, of the type that they have.
template <class View>
constexpr uncast_operand<View> uncast(View view) {
    return {view};
}

/// Marks an array that an op reads, a weight for example, as one whose casts the region's cache may keep.
/// `version` is the counter of the buffer's changes: a change without version.changed() goes unnoticed,
/// unless address or shape differ. Outside of regions, and where nothing is cast, it is just the view.
template <class View>
cached_operand<View> cached(View view, buffer_version version) {
    static_assert(operand_traits<View>::kind == operand_kind::array,
                  "mp::autocast::cached: the first argument is a view of floating-point elements, such as "
                  "std::span<const float> or mp::matrix_view<const float>");
    static_assert(
        requires { operand_traits<View>::shape(view); },
        "mp::autocast::cached: operand_traits of this view has no address() and shape(), by which casts "
        "are found again");
    return {view, std::move(version)};
}

/// Marks an argument of an op as an array that the op's result is added to, or written to where `adds` is
/// false: a gradient that grows with every micro batch, or that several uses of a weight share.
///
/// The kernel still writes and does not read. Its result is not rounded to the low precision of a policy on
/// the way: it is added in float, and the sum is rounded once to the format of the array.
template <class View>
constexpr sum_operand<View> add_to(View view, bool adds = true) {
    return {view, adds};
}
template <class Element, std::size_t Extent>
constexpr sum_operand<std::span<Element>> add_to(std::span<Element, Extent> view, bool adds = true) {
    return {view, adds};
}

}}  // namespace mp::autocast

namespace mp::autocast {

template <class View, bool ReadsOldValues>
struct operand_traits<output_operand<View, ReadsOldValues>> : operand_traits<View> {};
template <class View>
struct operand_traits<sum_operand<View>> : operand_traits<View> {};
template <class View>
struct operand_traits<uncast_operand<View>> : operand_traits<View> {};
template <class View>
struct operand_traits<cached_operand<View>> : operand_traits<View> {};

}  // namespace mp::autocast

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Argument>
using operand_of = autocast::operand_traits<std::remove_cvref_t<Argument>>;

template <class Argument>
using element_of = typename operand_of<Argument>::element;

template <class Argument>
inline constexpr bool is_array_operand = operand_of<Argument>::kind == autocast::operand_kind::array;

template <class Argument>
inline constexpr bool is_output_operand = false;
template <class View, bool ReadsOldValues>
inline constexpr bool is_output_operand<autocast::output_operand<View, ReadsOldValues>> = true;
template <class View>
inline constexpr bool is_output_operand<autocast::sum_operand<View>> = true;

template <class Argument>
inline constexpr bool is_sum_operand = false;
template <class View>
inline constexpr bool is_sum_operand<autocast::sum_operand<View>> = true;

template <class Argument>
inline constexpr bool is_uncast_operand = false;
template <class View>
inline constexpr bool is_uncast_operand<autocast::uncast_operand<View>> = true;

template <class Argument>
inline constexpr bool is_cached_operand = false;
template <class View>
inline constexpr bool is_cached_operand<autocast::cached_operand<View>> = true;

/// Whether the argument is written by the op.
template <class Argument>
inline constexpr bool is_output = is_output_operand<std::remove_cvref_t<Argument>>;

/// Whether the argument is data that decides the precision: an array that is read, unless it is marked by uncast(),
/// or, in an op on numbers alone, a number.
template <class Argument, bool AnyArray>
inline constexpr bool is_data = (is_array_operand<Argument> && !is_output<Argument> &&
                                 !is_uncast_operand<std::remove_cvref_t<Argument>>) ||
                                (operand_of<Argument>::kind == autocast::operand_kind::value && !AnyArray);
template <class Argument, class... Arguments>
inline constexpr bool is_input = is_data<Argument, (is_array_operand<Arguments> || ...)>;

/// The type that the library's ops compute in, given their operands or types of elements: double where there
/// is a double among them, else float.
template <class... Operands>
inline constexpr bool any_double = any_double_element<element_of<Operands>...>;
template <class... Operands>
using arithmetic_type = real_of<element_of<Operands>...>;

/// The type that a pointer, a built-in array, or the member data of a container or view leads to.
template <class Argument>
constexpr auto data_type_of() {
    using bare = std::remove_cvref_t<Argument>;
    if constexpr (std::is_pointer_v<std::decay_t<bare>>) {
        return std::type_identity<std::remove_cv_t<std::remove_pointer_t<std::decay_t<bare>>>>{};
    } else if constexpr (requires(const bare& it) { *it.data(); }) {
        return std::type_identity<std::remove_cvref_t<decltype(*std::declval<const bare&>().data())>>{};
    } else if constexpr (requires(const bare& it) { *it.data; }) {
        return std::type_identity<std::remove_cvref_t<decltype(*std::declval<const bare&>().data)>>{};
    } else {
        return std::type_identity<void>{};
    }
}

/// Floating-point data in a form that is no operand. Autocast would take it for a parameter and silently not
/// cast it.
template <class Argument>
concept data_but_no_operand =
    !is_array_operand<Argument> && autocast::floating<typename decltype(data_type_of<Argument>())::type>;

/// The executor that an op and its casts run on: its first argument where that is one, else mp::cpu.
template <class... Arguments>
constexpr cpu executor_among(const Arguments&...) {
    return {};
}
template <executor First, class... Rest>
constexpr const First& executor_among(const First& first, const Rest&...) {
    return first;
}

}}  // namespace mp::detail
