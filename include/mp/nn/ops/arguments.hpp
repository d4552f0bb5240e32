// SPDX-License-Identifier: MIT
/// \file
/// What the ops share: the mark for an absent operand, and the checks of their arguments.
#pragma once

#include <mp/base/argument_checks.hpp>
#include <mp/base/contiguous.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/linalg/gemm/validation.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/autocast/category.hpp>
#include <mp/nn/autocast/operand.hpp>
#include <mp/nn/autocast/operand_record.hpp>
#include <mp/numbers/rules/row_statistics.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// The type of mp::ops::absent.
struct absent_t {};

/// Stands for an operand that is not there: a bias that a layer does not have, a gradient that is not needed.
inline constexpr absent_t absent{};

/// An element type that the ops work on: float or a reduced format, and on the CPU double. An op that has a
/// double among its operands computes in double from end to end, whatever the others are, which are exact in
/// it, and rounds each result once; autocast leaves doubles alone. That is for checking gradients: it is
/// slow.
template <class Element>
concept element =
    autocast::eligible<std::remove_const_t<Element>> || std::same_as<std::remove_const_t<Element>, double>;

/// Statistics of the rows of an x of such elements: of doubles where the op computes in double. Autocast leaves
/// them alone.
template <class X>
using softmax_statistics_of = basic_softmax_statistics<detail::arithmetic_type<X>>;
template <class X>
using normalization_statistics_of = basic_normalization_statistics<detail::arithmetic_type<X>>;

}}  // namespace mp::ops

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The members that the tags of the library's ops have in common.
template <class Op, autocast::fixed_string Name>
struct library_op {
    using compiled_op = Op;
    static constexpr std::string_view name = Name.view();
    static constexpr bool computes_in_float = true;
    static constexpr auto qualified_name = [] {
        constexpr std::string_view scope = "mp::ops::";
        std::array<char, scope.size() + Name.view().size()> all{};
        std::copy(name.begin(), name.end(), std::copy(scope.begin(), scope.end(), all.begin()));
        return all;
    }();
    static constexpr std::string_view function{qualified_name.data(), qualified_name.size()};  ///< for errors
};

template <class Argument>
inline constexpr bool is_matrix_result = false;
template <ops::element Element>
    requires(!std::is_const_v<Element>)
inline constexpr bool is_matrix_result<matrix_view<Element>> = true;
template <ops::element Element>
inline constexpr bool is_matrix_result<autocast::sum_operand<matrix_view<Element>>> = true;

template <class Argument>
inline constexpr bool is_matrix_argument = false;
template <ops::element Element>
inline constexpr bool is_matrix_argument<matrix_view<Element>> = true;
template <ops::element Element>
inline constexpr bool is_matrix_argument<autocast::cached_operand<matrix_view<Element>>> = true;

}}  // namespace mp::detail

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// A matrix that an op reads: a view, or mp::autocast::cached(view, version) for weights whose cast to the
/// low precision of a region is to be kept.
template <class Argument>
concept matrix_argument = detail::is_matrix_argument<Argument>;

/// A matrix that an op writes: a view, or add_to() of one.
template <class Argument>
concept matrix_result = detail::is_matrix_result<Argument>;

}}  // namespace mp::ops

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A read-only view of an operand that the op reads: a matrix view, a contiguous range, or absent.
template <class Element>
constexpr matrix_view<const Element> input_view(matrix_view<Element> view) {
    return view;
}
template <class Element>
autocast::cached_operand<matrix_view<const Element>> input_view(
    const autocast::cached_operand<matrix_view<Element>>& operand) {
    return {operand.view, operand.version};
}
constexpr ops::absent_t input_view(ops::absent_t absent) {
    return absent;
}
template <contiguous Range>
constexpr auto input_view(const Range& range) {
    return std::span<const contiguous_element<const Range>>(as_span(range));
}

/// The operand that the op reads, marked as one that is not cast. Absent, it stays so.
template <class Operand>
constexpr auto uncast_view(const Operand& operand) {
    const auto view = input_view(operand);
    if constexpr (std::same_as<Operand, ops::absent_t>) {
        return view;
    } else if constexpr (is_cached_operand<std::remove_cvref_t<decltype(view)>>) {
        return autocast::uncast(view.view);
    } else {
        return autocast::uncast(view);
    }
}

/// The operand marked as one that the op writes: a matrix view, a contiguous range, or absent.
template <class Element>
constexpr auto output_view(matrix_view<Element> view) {
    return autocast::out(view);
}
constexpr ops::absent_t output_view(ops::absent_t absent) {
    return absent;
}
template <contiguous Range>
constexpr auto output_view(Range& range) {
    return autocast::out(as_span(range));
}
template <class View>
constexpr autocast::sum_operand<View> output_view(const autocast::sum_operand<View>& sum) {
    return sum;
}

/// The view of an output that a kernel writes or adds to, and what a product multiplies its old values by.
template <class View>
constexpr View result_view(const View& view) {
    return view;
}
template <class View>
constexpr View result_view(const autocast::sum_operand<View>& sum) {
    return sum.view;
}
template <class View>
constexpr float result_beta(const View& /*view*/) {
    return 0.0F;
}
template <class View>
constexpr float result_beta(const autocast::sum_operand<View>& sum) {
    return sum.adds ? 1.0F : 0.0F;
}

template <class Element, std::size_t Extent>
view_extent extent_of(std::span<Element, Extent> view) {
    const auto size = static_cast<std::ptrdiff_t>(view.size());
    return {reinterpret_cast<std::uintptr_t>(view.data()),
            static_cast<std::ptrdiff_t>(sizeof(Element)),
            1,
            size,
            size,
            true};
}

/// An operand with its name. An absent one is an empty array.
[[nodiscard]] inline named_operand named(std::string_view name, const any_operand& view) {
    return {name, view};
}
template <class View>
named_operand named(std::string_view name, const View& view) {
    if constexpr (std::same_as<View, ops::absent_t>) {
        return {name, {0, 1, 0, 0, 0, true}};
    } else if constexpr (is_output_operand<View>) {
        return {name, extent_of(view.view)};
    } else {
        return {name, extent_of(view)};
    }
}

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// A contiguous range of integers of any type.
struct any_integers {
    const void* data;
    std::size_t size;
    std::size_t bytes;  ///< of each
    bool is_signed;

    /// An integer; the largest one for those beyond it.
    [[nodiscard]] MP_ALWAYS_INLINE std::int64_t operator[](std::size_t i) const {
        if (is_signed) return read<std::int64_t, std::int32_t, std::int16_t, std::int8_t>(i);
        const std::uint64_t value = unsigned_at(i);
        constexpr auto most = (std::numeric_limits<std::int64_t>::max)();
        return value > std::uint64_t{most} ? most : static_cast<std::int64_t>(value);
    }
    [[nodiscard]] MP_ALWAYS_INLINE std::uint64_t unsigned_at(std::size_t i) const {
        return read<std::uint64_t, std::uint32_t, std::uint16_t, std::uint8_t>(i);
    }

private:
    template <class Long, class Word, class Short, class Byte>
    [[nodiscard]] MP_ALWAYS_INLINE Long read(std::size_t i) const {
        switch (bytes) {
            case 8:
                return static_cast<const Long*>(data)[i];
            case 4:
                return static_cast<const Word*>(data)[i];
            case 2:
                return static_cast<const Short*>(data)[i];
            default:
                return static_cast<const Byte*>(data)[i];
        }
    }
};

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Throws because of an integer of the range `name`.
[[noreturn]] inline void reject_integer(std::string_view function, std::string_view name,
                                        const any_integers& integers, std::size_t i,
                                        std::string_view expected) {
    const std::string element = join_text({name, "[", error_text(i), "]"});
    if (integers.is_signed) throw_argument(function, element, integers[i], expected);
    throw_argument(function, element, integers.unsigned_at(i), expected);
}

/// The integers that an op on this executor reads: of any type on a CPU.
template <executor Executor, contiguous Range>
[[nodiscard]] auto integers_for(const Range& range) {
    const auto view = input_view(range);
    using integer = std::remove_const_t<typename decltype(view)::element_type>;
    static_assert(std::integral<integer>, "mp::ops: labels and indices are integers");
    if constexpr (std::same_as<Executor, cpu>) {
        return any_integers{view.data(), view.size(), sizeof(integer), std::signed_integral<integer>};
    } else {
        return view;
    }
}
template <class View>
[[nodiscard]] view_extent extent_of_integers(const View& view) {
    return extent_of(view);
}
[[nodiscard]] inline view_extent extent_of_integers(const any_integers& view) {
    const auto size = static_cast<std::ptrdiff_t>(view.size);
    return {reinterpret_cast<std::uintptr_t>(view.data),
            static_cast<std::ptrdiff_t>(view.bytes),
            1,
            size,
            size,
            true};
}

/// Whether an operand is there.
[[nodiscard]] inline bool is_present(const any_operand& view) {
    return view.type != nullptr;
}
template <class View>
[[nodiscard]] constexpr bool is_present(const View& /*view*/) {
    return !std::same_as<View, ops::absent_t>;
}

/// Throws for an executor that cannot run anything; a launch on a GPU checks for itself.
inline void check_executor(std::string_view function, const cpu& exec) {
    check_threads(function, exec);
}
template <gpu_executor Executor>
void check_executor(std::string_view /*function*/, const Executor& /*exec*/) {}

inline void check_operand(std::string_view function, const named_operand& operand) {
    check_view(function, operand.name, operand.extent);
}

/// Throws unless `operand` is a matrix of rows x columns, which is the shape of `what`.
inline void check_shape(std::string_view function, const named_operand& operand, std::ptrdiff_t rows,
                        std::string_view rows_name, std::ptrdiff_t columns, std::string_view columns_name) {
    check_operand(function, operand);
    if (operand.extent.rows == rows && operand.extent.columns == columns) return;  // and no text is made
    const std::string_view name = operand.name;
    check_equal_sizes(function, join_text({name, ".rows"}), operand.extent.rows, rows_name, rows);
    check_equal_sizes(function, join_text({name, ".columns"}), operand.extent.columns, columns_name, columns);
}

/// Throws unless `operand` is a matrix of the shape of `like`.
inline void check_same_shape(std::string_view function, const named_operand& operand,
                             const named_operand& like) {
    check_operand(function, operand);
    const view_extent& extent = like.extent;
    if (operand.extent.rows == extent.rows && operand.extent.columns == extent.columns) return;
    check_shape(function, operand, extent.rows, join_text({like.name, ".rows"}), extent.columns,
                join_text({like.name, ".columns"}));
}

/// Throws if one of the results of an op overlaps an operand or another one of them.
inline void check_separate_results(std::string_view function, std::span<const named_operand> results,
                                   std::initializer_list<named_operand> operands) {
    for (std::size_t i = 0; i < results.size(); ++i) {
        for (const named_operand& operand : operands) check_separate(function, results[i], operand);
        for (std::size_t j = 0; j < i; ++j) check_separate(function, results[i], results[j]);
    }
}

/// Throws unless `operand`, an array, has this size.
inline void check_size(std::string_view function, const named_operand& operand, std::ptrdiff_t size,
                       std::string_view size_name) {
    check_operand(function, operand);
    if (operand.extent.columns == size) return;
    check_equal_sizes(function, join_text({operand.name, ".size()"}), operand.extent.columns, size_name,
                      size);
}

}}  // namespace mp::detail

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Marks an output of an op, a matrix view or a contiguous range, as a sum: the op's result is added to what
/// is there, or replaces it where `adds` is false. For the gradients of several micro batches, of a weight
/// that is used twice, and of a residual connection:
///
///     for (int micro = 0; micro < 4; ++micro) {
///         ...
///         mp::ops::linear_backward(exec, x, w, dy, dx, mp::ops::add_to(dw, micro != 0),
///                                  mp::ops::add_to(db, micro != 0));
///     }
///
/// Every output of every op takes it, on every executor. The result is added in float (in double to a sum of
/// doubles) and the sum rounded once to the format of its memory; in a region of low precision the result is
/// not rounded to that on the way, whether it is added or replaces, so that all terms are treated alike. (A plain
/// view receives the result of the op in that region, which is rounded to the low precision, as in PyTorch.)
/// Where the op is no product, it takes memory for the result, from the executor's workspace where there is
/// one (on a GPU there must be one).
template <class Element>
constexpr autocast::sum_operand<matrix_view<Element>> add_to(matrix_view<Element> view, bool adds = true) {
    return autocast::add_to(view, adds);
}
template <detail::contiguous Range>
constexpr auto add_to(Range&& range, bool adds = true) {
    return autocast::add_to(detail::as_span(range), adds);
}
constexpr absent_t add_to(absent_t nothing, bool /*adds*/ = true) {
    return nothing;
}

}}  // namespace mp::ops
