// SPDX-License-Identifier: MIT
/// \file
/// Matrices put side by side and taken apart, and heads brought into the other layout: copies, in any mix of
/// formats, each element rounded once. The gradient of one is another of them.
#pragma once

#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/autocast/library_op.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/nn/ops/attention/heads.hpp>
#include <mp/nn/ops/matrix_operand.hpp>
#include <mp/numbers/rules/function_names.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#if MP_CORE_BODIES
#include <mp/arrays/array/for_each_element.hpp>
#include <mp/arrays/array/parallel.hpp>
#endif

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Where the parts of a matrix lie.
enum class parts_along : unsigned char {
    rows,    ///< one below the other: torch's dim = 0
    columns  ///< side by side: dim = 1
};

struct permute_heads_options {
    /// Heads of a sequence.
    std::ptrdiff_t heads = 1;
    /// Sequences, one below the other.
    std::ptrdiff_t batch = 1;
    /// The layout of x; y has the other one.
    head_layout from = head_layout::side_by_side;
};

}}  // namespace mp::ops

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

#if MP_CORE_BODIES
/// Writes the elements of `from` to `to`, each rounded once.
template <class Real>
void copy_matrix(const cpu& exec, const any_matrix& from, const any_matrix& to) {
    if (from.row_major == to.row_major) return copy_elements(exec, from, to);
    map_operands<identity_function, Real>(exec, to, from);
}
#endif

/// Most parts of a call.
inline constexpr std::size_t most_parts = 8;
inline constexpr std::array<std::string_view, most_parts> part_names{
    "parts[0]", "parts[1]", "parts[2]", "parts[3]", "parts[4]", "parts[5]", "parts[6]", "parts[7]"};

/// Names of the arguments of an op of a whole matrix and its parts.
constexpr std::array<std::string_view, most_parts + 3> names_with_parts(std::string_view whole) {
    std::array<std::string_view, most_parts + 3> names{"exec", "along", whole};
    for (std::size_t i = 0; i < most_parts; ++i) names[i + 3] = part_names[i];
    return names;
}

/// Returns the parts that are there, with their names.
template <class... Parts>
std::vector<named_operand> named_parts(const Parts&... parts) {
    std::vector<named_operand> all;
    const auto add = [&](const auto& part) {
        if (is_present(part)) all.push_back(named(part_names[all.size()], part));
    };
    (add(parts), ...);
    return all;
}

/// Appends absent parts, so that every call has the same number of them.
template <class Parts>
auto with_absent_parts(const Parts& parts) {
    return std::tuple_cat(parts, std::array<ops::absent_t, most_parts - std::tuple_size_v<Parts>>{});
}

/// Checks that the parts make up the whole.
inline void check_parts(std::string_view function, const auto& exec, ops::parts_along along,
                        const named_operand& whole, const std::vector<named_operand>& parts) {
    check_executor(function, exec);
    check_operand(function, whole);
    const bool by_rows = along == ops::parts_along::rows;
    const std::string name(whole.name);
    std::ptrdiff_t sum = 0;
    for (const named_operand& part : parts) {
        check_operand(function, part);
        const std::string part_name(part.name);
        if (by_rows) {
            check_equal_sizes(function, part_name + ".columns", part.extent.columns, name + ".columns",
                              whole.extent.columns);
        } else {
            check_equal_sizes(function, part_name + ".rows", part.extent.rows, name + ".rows",
                              whole.extent.rows);
        }
        // Compared before it is added, so that sums of absurd sizes do not overflow.
        const std::ptrdiff_t size = by_rows ? part.extent.rows : part.extent.columns;
        const std::ptrdiff_t left = (by_rows ? whole.extent.rows : whole.extent.columns) - sum;
        if (size > left) {
            throw_argument(function, part_name + (by_rows ? ".rows" : ".columns"), size,
                           "must be at most what the parts before it leave of " + name +
                               (by_rows ? ".rows" : ".columns") + ", which is " + error_text(left));
        }
        sum += size;
    }
    check_equal_sizes(function, name + (by_rows ? ".rows" : ".columns"),
                      by_rows ? whole.extent.rows : whole.extent.columns,
                      by_rows ? "the sum of the rows of parts" : "the sum of the columns of parts", sum);
}

/// Calls f(part, block) for each part that is there with its place in the whole.
template <class Whole, class Function, class... Parts>
void for_each_part(ops::parts_along along, const Whole& whole, Function f, const Parts&... parts) {
    std::ptrdiff_t first = 0;
    const auto visit = [&]<class Part>(const Part& part) {
        if constexpr (!std::same_as<Part, ops::absent_t>) {
            if (!is_present(part)) return;
            const bool by_rows = along == ops::parts_along::rows;
            f(part, by_rows ? whole.block(first, 0, part.rows, part.columns)
                            : whole.block(0, first, part.rows, part.columns));
            first += by_rows ? part.rows : part.columns;
        }
    };
    (visit(parts), ...);
}

/// Tag of a copy of parts to a whole, or, unless it `joins`, of a whole to parts.
template <class Op, autocast::fixed_string Name, autocast::fixed_string Whole, bool Joins>
struct parts_op : library_op<Op, Name> {
    static constexpr auto argument_names = names_with_parts(Whole.view());

    static void validate(const auto& exec, ops::parts_along along, const auto& whole, const auto&... parts) {
        const auto all = named(Whole.view(), whole);
        const auto each = named_parts(parts...);
        check_parts(Op::function, exec, along, all, each);
        if constexpr (Joins) {
            for (const auto& part : each) check_separate(Op::function, all, part);
        } else {
            check_separate_results(Op::function, each, {all});
        }
    }

    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, ops::parts_along along, const any_operand& whole,
                        const any_operand& part0, const any_operand& part1, const any_operand& part2,
                        const any_operand& part3, const any_operand& part4, const any_operand& part5,
                        const any_operand& part6, const any_operand& part7) {
        for_each_part(
            along, whole,
            [&](const any_matrix& part, const any_matrix& block) {
                copy_matrix<Real>(exec, Joins ? part : block, Joins ? block : part);
            },
            part0, part1, part2, part3, part4, part5, part6, part7);
    }
    void operator()(const gpu_executor auto& exec, ops::parts_along along, const auto& whole,
                    const auto&... parts) const {
        for_each_part(
            along, whole,
            [&](const auto& part, const auto& block) {
                if constexpr (Joins) {
                    map_elements(identity_function{}, exec, block, part);
                } else {
                    map_elements(identity_function{}, exec, part, block);
                }
            },
            parts...);
    }
};

}}  // namespace mp::detail

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Tag of concatenate(): mixes arrays, so in the widest of their types.
struct concatenate_op : detail::parts_op<concatenate_op, "concatenate", "y", true> {
    static constexpr auto category = op_category::promote_widest;
    static constexpr std::array<std::string_view, 4> known_as{"cat", "concat", "Concat", "ConcatV2"};
};

/// y = the parts one below the other or side by side, a tuple or array of 1 to 8 matrix views:
///
///     mp::ops::concatenate(exec, mp::ops::parts_along::columns, std::tuple(q, k, v), qkv);
///     mp::ops::concatenate(exec, mp::ops::parts_along::rows, std::tuple(old_keys, new_keys), keys);
///
/// Shapes: along rows, the parts have the columns of y and together its rows; along columns the other way
/// round. Any storage orders and leading dimensions. Formats are any mp::ops::element, in any mix; each
/// element is rounded once to the format of y. Under a policy, parts are cast to the widest of their formats,
/// and the result has that format, too. The gradient of the parts is split() of dy. On a GPU, with
/// <mp/nn/ops/rearrange/gpu.hpp>, each part is a launch.
///
/// Throws argument_error for shapes that do not fit, invalid views and a y that overlaps a part; y is then
/// unchanged.
template <class Policy = autocast::by_region, executor Executor = cpu, class Parts, matrix_result Y>
void concatenate(const Executor& exec, parts_along along, const Parts& parts, const Y& y) {
    static_assert(std::tuple_size_v<Parts> >= 1 && std::tuple_size_v<Parts> <= detail::most_parts,
                  "mp::ops::concatenate: parts is a tuple or array of 1 to 8 matrix views");
    std::apply(
        [&](const auto&... part) {
            detail::call_op<Policy>(concatenate_op{}, exec, along, detail::output_view(y),
                                    detail::input_view(part)...);
        },
        detail::with_absent_parts(parts));
}

/// Tag of split(): a copy, right in any format, so nothing is cast.
struct split_op : detail::parts_op<split_op, "split", "x", false> {
    static constexpr auto category = op_category::pass_through;
    static constexpr std::array<std::string_view, 4> known_as{"split", "Split", "SplitV", "_split_v2"};
};

/// The parts = x taken apart, a tuple or array of 1 to 8 matrix views, or add_to() of them; also the gradient
/// of concatenate():
///
///     mp::ops::split(exec, mp::ops::parts_along::columns, dqkv, std::tuple(dq, add_to(dk), add_to(dv)));
///
/// Shapes, formats, rounding and errors are those of concatenate(); parts overlap neither x nor each other.
/// The gradient of x is concatenate() of those of the parts. (Who only reads the parts needs no copy:
/// x.block() is a view of one.)
template <class Policy = autocast::by_region, executor Executor = cpu, element X, class Parts>
void split(const Executor& exec, parts_along along, matrix_view<X> x, const Parts& parts) {
    static_assert(std::tuple_size_v<Parts> >= 1 && std::tuple_size_v<Parts> <= detail::most_parts,
                  "mp::ops::split: parts is a tuple or array of 1 to 8 matrix views");
    std::apply(
        [&](const auto&... part) {
            detail::call_op<Policy>(split_op{}, exec, along, detail::input_view(x),
                                    detail::output_view(part)...);
        },
        detail::with_absent_parts(parts));
}

}}  // namespace mp::ops

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Checks x and y, of which x has the layout options.from where `forward`, else the other.
inline void check_permute(std::string_view function, const auto& exec, const named_operand& x,
                          const named_operand& y, const ops::permute_heads_options& options, bool forward) {
    check_executor(function, exec);
    check_operand(function, x);
    if (options.heads < 1) throw_argument(function, "options.heads", options.heads, "must be at least 1");
    if (options.batch < 1) throw_argument(function, "options.batch", options.batch, "must be at least 1");
    const std::string rows = std::string(x.name) + ".rows";
    const std::string columns = std::string(x.name) + ".columns";
    check_multiple(function, rows, x.extent.rows, "options.batch", options.batch);
    if ((options.from == ops::head_layout::side_by_side) == forward) {
        check_multiple(function, columns, x.extent.columns, "options.heads", options.heads);
        check_shape(function, y, x.extent.rows * options.heads, rows + " * options.heads",
                    x.extent.columns / options.heads, columns + " / options.heads");
    } else {
        check_multiple(function, rows + " / options.batch", x.extent.rows / options.batch, "options.heads",
                       options.heads);
        check_shape(function, y, x.extent.rows / options.heads, rows + " / options.heads",
                    x.extent.columns * options.heads, columns + " * options.heads");
    }
    check_separate(function, y, x);
}

/// Names permute() of <mp/nn/ops/rearrange/gpu.hpp>.
struct head_permutation {};

#if MP_CORE_BODIES
/// Writes the heads of x, which lie side by side in x where `to_stacked`, else in y.
template <class Real>
void permute(const cpu& exec, const any_matrix& x, const any_matrix& y,
             const ops::permute_heads_options& options, bool to_stacked) {
    if (x.rows == 0 || x.columns == 0) return;
    const std::ptrdiff_t tokens = (to_stacked ? x.rows : y.rows) / options.batch;
    const std::ptrdiff_t head_dim = to_stacked ? y.columns : x.columns;
    const auto beside = [&](const any_matrix& matrix, std::ptrdiff_t i) {
        return matrix.block(i / options.heads * tokens, i % options.heads * head_dim, tokens, head_dim);
    };
    const auto stacked = [&](const any_matrix& matrix, std::ptrdiff_t i) {
        return matrix.block(i * tokens, 0, tokens, head_dim);
    };
    for_each_task(exec, options.batch * options.heads, tokens * head_dim,
                  [&](const cpu& inner, std::ptrdiff_t begin, std::ptrdiff_t end) {
                      for (std::ptrdiff_t i = begin; i < end; ++i) {
                          if (to_stacked) {
                              copy_matrix<Real>(inner, beside(x, i), stacked(y, i));
                          } else {
                              copy_matrix<Real>(inner, stacked(x, i), beside(y, i));
                          }
                      }
                  });
}
#endif

/// Tag of permute_heads(), or of its gradient, which is the permutation back: a copy, right in any format, so nothing is
/// cast.
template <class Op, autocast::fixed_string Name, autocast::fixed_string From, autocast::fixed_string To,
          bool Forward>
struct head_permutation_op : library_op<Op, Name> {
    static constexpr auto category = op_category::pass_through;
    static constexpr std::array<std::string_view, 4> argument_names{"exec", From.view(), To.view(),
                                                                    "options"};

    static void validate(const auto& exec, const auto& from, const auto& to,
                         const ops::permute_heads_options& options) {
        check_permute(Op::function, exec, named(From.view(), from), named(To.view(), to), options, Forward);
    }

    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const any_operand& from, const any_operand& to,
                        const ops::permute_heads_options& options) {
        permute<Real>(exec, from, to, options, to_stacked(options));
    }
    void operator()(const gpu_executor auto& exec, const auto& from, const auto& to,
                    const ops::permute_heads_options& options) const {
        permute(head_permutation{}, exec, from, to, options, to_stacked(options));
    }

private:
    static bool to_stacked(const ops::permute_heads_options& options) {
        return (options.from == ops::head_layout::side_by_side) == Forward;
    }
};

}}  // namespace mp::detail

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Tag of permute_heads().
struct permute_heads_op : detail::head_permutation_op<permute_heads_op, "permute_heads", "x", "y", true> {
    static constexpr std::array<std::string_view, 3> known_as{"transpose", "Transpose", "_npi_transpose"};
};

/// y = the heads of x in the other layout: (batch, tokens, heads, head_dim) to (batch, heads, tokens, head_dim), or
/// back where options.from is stacked.
///
///     mp::ops::permute_heads(exec, q, q_stacked, {.heads = 12, .batch = batch});
///
/// Shapes: side by side, (batch * tokens) x (heads * head_dim); stacked, (batch * heads * tokens) x head_dim. Any
/// storage orders and leading dimensions. Formats are any mp::ops::element, in any mix; each element is
/// rounded once to the format of y. Runs on CPUs and, with <mp/nn/ops/rearrange/gpu.hpp>, on GPUs, in one
/// launch. (Attention reads either layout where it lies.)
///
/// Throws argument_error for shapes that do not fit, sizes that heads and batch do not divide, invalid views
/// and a y that overlaps x; y is then unchanged.
template <class Policy = autocast::by_region, executor Executor = cpu, element X, matrix_result Y>
void permute_heads(const Executor& exec, matrix_view<X> x, const Y& y,
                   const permute_heads_options& options = {}) {
    detail::call_op<Policy>(permute_heads_op{}, exec, detail::input_view(x), detail::output_view(y), options);
}

/// Tag of permute_heads_backward().
struct permute_heads_backward_op
    : detail::head_permutation_op<permute_heads_backward_op, "permute_heads_backward", "dy", "dx", false> {
    using forward_op = permute_heads_op;
};

/// The gradient of x of y = permute_heads(x), given dy and the same options: dy in the layout options.from.
template <class Policy = autocast::by_region, executor Executor = cpu, element DY, matrix_result DX>
void permute_heads_backward(const Executor& exec, matrix_view<DY> dy, const DX& dx,
                            const permute_heads_options& options = {}) {
    detail::call_op<Policy>(permute_heads_backward_op{}, exec, detail::input_view(dy),
                            detail::output_view(dx), options);
}

}}  // namespace mp::ops
