// SPDX-License-Identifier: MIT
/// \file
/// Rotary position embedding of queries and keys, and its gradient.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/autocast/library_op.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/nn/ops/attention/heads.hpp>
#include <mp/nn/ops/matrix_operand.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#if MP_CORE_BODIES
#include <mp/arrays/array/for_each_element.hpp>
#include <mp/arrays/array/parallel.hpp>
#include <mp/nn/ops/rotary_embedding/frequencies.hpp>
#endif

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Which elements of a head are the two coordinates that are turned by angle i.
enum class rotary_pairing : unsigned char {
    half_split,  ///< i and i + rotated / 2: GPT-NeoX, LLaMA
    interleaved  ///< 2 i and 2 i + 1: GPT-J, the original paper
};

struct rotary_options {
    /// As attention_options has them. Stacked: of all sequences together. Side by side: of a sequence.
    std::ptrdiff_t heads = 1;
    head_layout layout = head_layout::stacked;
    /// Sequences, one below the other; 1 where heads are stacked.
    std::ptrdiff_t batch = 1;
    rotary_pairing pairing = rotary_pairing::half_split;
    /// Elements of a head that are rotated, the first ones, an even number; the rest is copied. 0 for all.
    std::ptrdiff_t rotated = 0;
    /// Angle i of position p is p * base^(-2 i / rotated); from 1 to 1e30.
    double base = 10000;
    /// Position of the first token of each sequence: the number of keys in a cache.
    std::ptrdiff_t first_position = 0;
};

}}  // namespace mp::ops

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

inline constexpr std::ptrdiff_t most_rotary_positions = std::ptrdiff_t{1} << 24;

/// Elements of a head that are turned.
inline std::ptrdiff_t rotated_elements(std::ptrdiff_t head_dim, const ops::rotary_options& options) {
    return options.rotated == 0 ? head_dim : options.rotated;
}

/// Checks what angles depend on; tokens_name() and head_dim_name() are what messages call the numbers by.
template <class TokensName, class HeadDimName>
void check_angles(std::string_view function, const TokensName& tokens_name, std::ptrdiff_t tokens,
                  const HeadDimName& head_dim_name, std::ptrdiff_t head_dim,
                  const ops::rotary_options& options) {
    if (options.rotated < 0 || options.rotated % 2 != 0 || options.rotated > head_dim) {
        throw_argument(function, "options.rotated", options.rotated,
                       "must be even, and from 0 to " + std::string(head_dim_name()) + ", which is " +
                           error_text(head_dim));
    }
    if (options.rotated == 0 && head_dim % 2 != 0) {
        throw_argument(function, head_dim_name(), head_dim, "must be even where options.rotated is 0");
    }
    // Bits, as a compiler may assume that there is no NaN.
    const auto bits = bit_cast<std::uint64_t>(options.base);
    if (bits < bit_cast<std::uint64_t>(1.0) || bits > bit_cast<std::uint64_t>(1e30)) {
        throw_argument(function, "options.base", options.base, "must be from 1 to 1e30");
    }
    if (options.first_position < 0 || options.first_position > most_rotary_positions) {
        throw_argument(function, "options.first_position", options.first_position,
                       "must be from 0 to " + error_text(most_rotary_positions));
    }
    if (tokens < 0 || tokens > most_rotary_positions - options.first_position) {
        throw_argument(function, tokens_name(), tokens,
                       "must be from 0 to " + error_text(most_rotary_positions - options.first_position) +
                           ", so that positions stay below " + error_text(most_rotary_positions));
    }
}

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Writes rotated / 2 cosines and as many sines of the angles of each position.
MP_CORE_FUNCTION void fill_rotary_table(const cpu& exec, double base, std::ptrdiff_t first_position,
                                        std::ptrdiff_t positions, std::ptrdiff_t rotated, float* to);
MP_CORE_FUNCTION void fill_rotary_table(const cpu& exec, double base, std::ptrdiff_t first_position,
                                        std::ptrdiff_t positions, std::ptrdiff_t rotated, double* to);

}}  // namespace mp::detail

#if MP_CORE_BODIES
namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Real>
void write_rotary_table(const cpu& exec, double base, std::ptrdiff_t first_position, std::ptrdiff_t positions,
                        std::ptrdiff_t rotated, Real* to) {
    const auto angles = static_cast<std::size_t>(rotated / 2);
    const std::vector<double_pair> frequencies = rotary_frequencies(base, rotated / 2);
    parallel_arithmetic(
        exec, static_cast<std::size_t>(positions), 1 + 256 / angles, [&](std::size_t begin, std::size_t end) {
            for (std::size_t p = begin; p < end; ++p) {
                Real* const of_position = to + p * 2 * angles;
                const std::ptrdiff_t position = first_position + static_cast<std::ptrdiff_t>(p);
                for (std::size_t i = 0; i < angles; ++i) {
                    const auto turned = sine_and_cosine_of(angle_of(position, frequencies[i]));
                    of_position[i] = as<Real>(turned.cosine);
                    of_position[angles + i] = as<Real>(turned.sine);
                }
            }
        });
}

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION void fill_rotary_table(const cpu& exec, double base, std::ptrdiff_t first_position,
                                        std::ptrdiff_t positions, std::ptrdiff_t rotated, float* to) {
    write_rotary_table(exec, base, first_position, positions, rotated, to);
}
MP_CORE_FUNCTION void fill_rotary_table(const cpu& exec, double base, std::ptrdiff_t first_position,
                                        std::ptrdiff_t positions, std::ptrdiff_t rotated, double* to) {
    write_rotary_table(exec, base, first_position, positions, rotated, to);
}

}}  // namespace mp::detail
#endif

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// The cosines and sines that rotary_embedding() turns by, for callers who keep them from call to call:
///
///     const mp::ops::rotary_table table(exec, longest_sequence, head_dim, options);
///     mp::ops::rotary_embedding(exec, q, table, q, options);
///
/// Each is the exact value rounded to double, with an error of 2^-51, and from there to float; no C library,
/// compiler option or rounding direction changes a bit. Takes 4 * positions * rotated bytes.
///
/// \tparam Real  float, which is rotary_table, or double, to turn doubles by, without the rounding to float
template <class Real>
class basic_rotary_table {
public:
    /// For positions from options.first_position on, and heads of `head_dim` elements. heads, layout, batch and
    /// pairing do not matter. Throws argument_error for a negative number of positions, one that leads beyond
    /// position 2^24, a head_dim that is odd or less than options.rotated, and options out of range.
    basic_rotary_table(cpu exec, std::ptrdiff_t positions, std::ptrdiff_t head_dim,
                       const rotary_options& options = {}) {
        constexpr std::string_view function = "mp::ops::rotary_table";
        detail::check_threads(function, exec);
        if (head_dim < 0) detail::throw_argument(function, "head_dim", head_dim, "must not be negative");
        detail::check_angles(
            function, [] { return "positions"; }, positions, [] { return "head_dim"; }, head_dim, options);
        base_ = options.base;
        first_position_ = options.first_position;
        positions_ = positions;
        rotated_ = detail::rotated_elements(head_dim, options);
        if (rotated_ == 0) return;
        values_.resize(static_cast<std::size_t>(positions_ * rotated_));
        detail::fill_rotary_table(exec, base_, first_position_, positions_, rotated_, values_.data());
    }

    [[nodiscard]] double base() const { return base_; }
    [[nodiscard]] std::ptrdiff_t first_position() const { return first_position_; }
    [[nodiscard]] std::ptrdiff_t positions() const { return positions_; }
    /// Elements of a head that are turned.
    [[nodiscard]] std::ptrdiff_t rotated() const { return rotated_; }

    /// rotated() / 2 numbers for a position of the table.
    [[nodiscard]] const Real* cosines(std::ptrdiff_t position) const { return at(position); }
    [[nodiscard]] const Real* sines(std::ptrdiff_t position) const { return at(position) + rotated_ / 2; }

private:
    [[nodiscard]] const Real* at(std::ptrdiff_t position) const {
        return values_.data() + (position - first_position_) * rotated_;
    }

    double base_ = 0;
    std::ptrdiff_t first_position_ = 0;
    std::ptrdiff_t positions_ = 0;
    std::ptrdiff_t rotated_ = 0;
    std::vector<Real> values_;
};
using rotary_table = basic_rotary_table<float>;

/// That for elements of a type.
template <class X>
using rotary_table_of = basic_rotary_table<detail::arithmetic_type<X>>;

}}  // namespace mp::ops

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// How a call turns, and the table of the caller, if there is one.
template <class Real>
struct rotary_call {
    ops::rotary_options options;
    const ops::basic_rotary_table<Real>* table = nullptr;
};

/// Makes that for an X that is turned to a Y.
template <class X, class Y, class Real = arithmetic_type<X>>
rotary_call<Real> rotary_call_of(const ops::rotary_options& options,
                                 const ops::basic_rotary_table<Real>* table = nullptr) {
    static_assert(std::same_as<Real, arithmetic_type<X, Y>>,
                  "mp::ops: a rotary embedding of doubles has doubles on both sides");
    return {options, table};
}

/// Heads and tokens of a matrix whose shape fits.
struct rotary_shape {
    std::ptrdiff_t heads_in_row;
    std::ptrdiff_t tokens;
    std::ptrdiff_t head_dim;

    rotary_shape(std::ptrdiff_t rows, std::ptrdiff_t columns, const ops::rotary_options& options)
        : heads_in_row(options.layout == ops::head_layout::stacked ? 1 : options.heads),
          tokens(rows / (options.layout == ops::head_layout::stacked ? options.heads : options.batch)),
          head_dim(columns / heads_in_row) {}
};

template <class Real>
void check_rotary(std::string_view function, const auto& exec, const named_operand& x, const named_operand& y,
                  const rotary_call<Real>& call) {
    check_executor(function, exec);
    check_operand(function, x);
    const ops::rotary_options& options = call.options;
    check_attention_options(function,
                            {.heads = options.heads, .layout = options.layout, .batch = options.batch});
    const bool stacked = options.layout == ops::head_layout::stacked;
    const std::string name(x.name);
    const std::string_view sequences = stacked ? "options.heads" : "options.batch";
    check_multiple(function, name + ".rows", x.extent.rows, sequences,
                   stacked ? options.heads : options.batch);
    if (!stacked) {
        check_multiple(function, name + ".columns", x.extent.columns, "options.heads", options.heads);
    }
    const rotary_shape shape(x.extent.rows, x.extent.columns, options);
    check_angles(
        function, [&] { return name + ".rows / " + std::string(sequences); }, shape.tokens,
        [&] { return name + (stacked ? ".columns" : ".columns / options.heads"); }, shape.head_dim, options);
    check_same_shape(function, y, x);
    check_separate_or_same(function, y, x);
    if (call.table == nullptr) return;
    const ops::basic_rotary_table<Real>& table = *call.table;
    check_equal_sizes(function, "table.rotated()", table.rotated(),
                      options.rotated == 0 ? "head_dim" : "options.rotated",
                      rotated_elements(shape.head_dim, options));
    if (bit_cast<std::uint64_t>(table.base()) != bit_cast<std::uint64_t>(options.base)) {
        throw_argument(function, "table.base()", table.base(),
                       "must equal options.base, which is " + error_text(options.base));
    }
    const std::ptrdiff_t end = table.first_position() + table.positions();
    if (options.first_position < table.first_position() || options.first_position > end - shape.tokens) {
        throw_argument(function, "options.first_position", options.first_position,
                       "must be such that the table, which has positions from " +
                           error_text(table.first_position()) + " to " + error_text(end) +
                           ", the end excluded, has all " + error_text(shape.tokens) + " tokens");
    }
}

/// Names rotate_heads() of <mp/nn/ops/rotary_embedding/gpu.hpp>.
struct rotary_walk {};

#if MP_CORE_BODIES
/// Turns one head of a row.
template <class Real>
struct rotary_room {
    std::size_t head_dim;
    Real* loaded;
    Real* results;
    Real* apart;  ///< first coordinates, then second ones

    static std::size_t size(std::size_t head_dim, std::size_t rotated) { return 2 * head_dim + rotated; }

    rotary_room(std::size_t of_head, Real* room)
        : head_dim(of_head), loaded(room), results(room + of_head), apart(room + 2 * of_head) {}

    void turn(const any_matrix& x, const any_matrix& y, ops::rotary_pairing pairing, std::size_t rotated,
              double direction, const Real* cosines, const Real* sines) {
        const Real* const from = reals_of_row(x, 0, loaded);
        Real* const to = row_target(y, 0, results);
        const std::size_t half = rotated / 2;
        if (pairing == ops::rotary_pairing::half_split) {
            rotate_points<Real>(half, direction, cosines, sines, from, from + half, to, to + half);
        } else {
            Real* const first = apart;
            Real* const second = first + half;
            for (std::size_t i = 0; i < half; ++i) {
                first[i] = from[2 * i];
                second[i] = from[2 * i + 1];
            }
            rotate_points<Real>(half, direction, cosines, sines, first, second, first, second);
            for (std::size_t i = 0; i < half; ++i) {
                to[2 * i] = first[i];
                to[2 * i + 1] = second[i];
            }
        }
        const std::size_t rest = head_dim - rotated;
        if (rest > 0 && to != from) std::memcpy(to + rotated, from + rotated, rest * sizeof(Real));
        put_row(to, y, 0);
    }
};

/// Turns x by its angles times `direction`.
template <class Real>
void rotate_heads(const cpu& exec, double direction, const any_matrix& x, const any_matrix& y,
                  const rotary_call<Real>& call) {
    if (x.rows == 0 || x.columns == 0) return;
    const ops::rotary_options& options = call.options;
    const rotary_shape shape(x.rows, x.columns, options);
    if (call.table == nullptr) {
        const ops::basic_rotary_table<Real> table(exec, shape.tokens, shape.head_dim, options);
        return rotate_heads<Real>(exec, direction, x, y, {options, &table});
    }
    const auto rotated = static_cast<std::size_t>(call.table->rotated());
    const std::size_t grain = 1 + 8192 / static_cast<std::size_t>(x.columns);
    const auto head_dim = static_cast<std::size_t>(shape.head_dim);
    thread_buffers<Real> rooms(exec, rotary_room<Real>::size(head_dim, rotated));
    parallel_arithmetic(
        exec, static_cast<std::size_t>(x.rows), grain, [&](std::size_t begin, std::size_t end) {
            rotary_room<Real> room(head_dim, rooms.take());
            for (auto row = static_cast<std::ptrdiff_t>(begin); row < static_cast<std::ptrdiff_t>(end);
                 ++row) {
                const std::ptrdiff_t position = options.first_position + row % shape.tokens;
                for (std::ptrdiff_t head = 0; head < shape.heads_in_row; ++head) {
                    const std::ptrdiff_t column = head * shape.head_dim;
                    room.turn(x.block(row, column, 1, shape.head_dim),
                              y.block(row, column, 1, shape.head_dim), options.pairing, rotated, direction,
                              call.table->cosines(position), call.table->sines(position));
                }
            }
        });
}
#endif

/// Tag of rotary_embedding(), or of its gradient, which turns back: angles and products do not depend on the format, so
/// nothing is cast.
template <class Op, autocast::fixed_string Name, autocast::fixed_string From, autocast::fixed_string To,
          int Direction>
struct rotation_op : library_op<Op, Name> {
    static constexpr auto category = op_category::pass_through;
    static constexpr std::array<std::string_view, 4> argument_names{"exec", From.view(), To.view(),
                                                                    "options"};

    static void validate(const auto& exec, const auto& from, const auto& to, const auto& call) {
        check_rotary(Op::function, exec, named(From.view(), from), named(To.view(), to), call);
    }

    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const any_operand& from, const any_operand& to,
                        const rotary_call<Real>& call) {
        rotate_heads(exec, double{Direction}, from, to, call);
    }
    void operator()(const gpu_executor auto& exec, const auto&... operands) const {
        rotate_heads(rotary_walk{}, exec, double{Direction}, operands...);
    }
};

}}  // namespace mp::detail

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Tag of rotary_embedding().
struct rotary_embedding_op : detail::rotation_op<rotary_embedding_op, "rotary_embedding", "x", "y", 1> {};

/// Rotary position embedding (J. Su and others, "RoFormer", 2021): pairs of elements of each head of x are
/// turned by angles that grow with the position of their token,
///
///     y_1 = x_1 cos a - x_2 sin a,   y_2 = x_1 sin a + x_2 cos a,   a = position * base^(-2 i / rotated).
///
/// Shapes: stacked, x is (heads * tokens) x head_dim, where options.heads is the batch size times the number of
/// heads; side by side, (batch * tokens) x (heads * head_dim). y is like x, and may be x. Both in any storage
/// order and with any leading dimension: queries and keys are turned where one product left them,
///
///     const mp::ops::rotary_options options{.heads = 12, .layout = mp::ops::head_layout::side_by_side,
///                                           .batch = batch};
///     mp::ops::rotary_embedding(exec, qkv.block(0, 0, rows, width), qkv.block(0, 0, rows, width), options);
///
/// Formats are any mp::ops::element, in any mix. Sines and cosines are those of rotary_table, products and
/// their sum are in double, and the result is rounded to float and from there to the format of y; it does not
/// depend on threads. Without a table, one is made for the call.
///
/// Throws argument_error for shapes that differ, sizes that heads and batch do not divide, a head_dim that is
/// odd or less than options.rotated, positions beyond 2^24, a table of other angles or too few positions,
/// invalid views and a y that overlaps x but is not x; y is then unchanged.
///
/// On a GPU (<mp/nn/ops/rotary_embedding/gpu.hpp>) y has the same bits. Sines and cosines are computed on the
/// device for each call, into rotary_embedding_workspace(x.rows, x.columns, options) bytes of the executor's
/// workspace.
template <class Policy = autocast::by_region, executor Executor = cpu, element X, matrix_result Y>
void rotary_embedding(const Executor& exec, matrix_view<X> x, const Y& y,
                      const rotary_options& options = {}) {
    detail::call_op<Policy>(rotary_embedding_op{}, exec, detail::input_view(x), detail::output_view(y),
                            detail::rotary_call_of<X, Y>(options));
}

/// The same with a table that has all positions, base and rotated elements of the options, on a CPU.
template <class Policy = autocast::by_region, element X, matrix_result Y>
void rotary_embedding(cpu exec, matrix_view<X> x, const rotary_table_of<X>& table, const Y& y,
                      const rotary_options& options = {}) {
    detail::call_op<Policy>(rotary_embedding_op{}, exec, detail::input_view(x), detail::output_view(y),
                            detail::rotary_call_of<X, Y>(options, &table));
}

/// Tag of rotary_embedding_backward().
struct rotary_embedding_backward_op
    : detail::rotation_op<rotary_embedding_backward_op, "rotary_embedding_backward", "dy", "dx", -1> {
    using forward_op = rotary_embedding_op;
};

/// The gradient of x of y = rotary_embedding(x), given dy = dL/dy and the same options: dy turned by the
/// negative angles. Shapes, formats, rounding, executors and errors are those of rotary_embedding(); dx may
/// be dy.
template <class Policy = autocast::by_region, executor Executor = cpu, element DY, matrix_result DX>
void rotary_embedding_backward(const Executor& exec, matrix_view<DY> dy, const DX& dx,
                               const rotary_options& options = {}) {
    detail::call_op<Policy>(rotary_embedding_backward_op{}, exec, detail::input_view(dy),
                            detail::output_view(dx), detail::rotary_call_of<DY, DX>(options));
}

/// The same with the table of the forward pass, on a CPU.
template <class Policy = autocast::by_region, element DY, matrix_result DX>
void rotary_embedding_backward(cpu exec, matrix_view<DY> dy, const rotary_table_of<DY>& table, const DX& dx,
                               const rotary_options& options = {}) {
    detail::call_op<Policy>(rotary_embedding_backward_op{}, exec, detail::input_view(dy),
                            detail::output_view(dx), detail::rotary_call_of<DY, DX>(options, &table));
}

}}  // namespace mp::ops
