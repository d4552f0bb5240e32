// SPDX-License-Identifier: MIT
/// \file
/// Dropout, forward and backward, with a mask that is computed from a counter and never stored.
#pragma once

#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/autocast/library_op.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/nn/ops/dropout/mask.hpp>
#include <mp/nn/ops/matrix_operand.hpp>
#include <mp/nn/ops/unary_op.hpp>
#include <mp/numbers/format/classification.hpp>
#include <mp/numbers/format/philox.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#if MP_CORE_BODIES
#include <mp/arrays/array/for_each_element.hpp>
#include <mp/numbers/rules/random_words.hpp>
#include <mp/numbers/simd/processor.hpp>
#endif

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Names the walk under a mask, for apply_dropout().
struct dropout_walk {};

#if MP_CORE_BODIES
/// to = from where the mask keeps it, times 1 / (1 - probability), and +0 elsewhere. On a GPU the function of this name in
/// <mp/nn/ops/dropout/gpu.hpp> does it.
template <class Real>
void apply_dropout(const cpu& exec, const any_matrix& from, const any_matrix& to,
                   const ops::dropout_options& options) {
    const dropout_mask mask(options);
    const std::uint64_t offset = dropout_offset(options);
    const instruction_set isa = best_instruction_set();
    const auto columns = static_cast<std::uint64_t>(to.columns);
    for_each_run<Real>(
        exec,
        [&](const element_run& run, Real* results, const Real* values) {
            std::uint32_t room[random_room(run_block)];
            const std::uint32_t* words = room;
            const std::uint64_t first = offset + static_cast<std::uint64_t>(run.row) * columns +
                                        static_cast<std::uint64_t>(run.column);
            if (run.along_row) {
                words = random_words(isa, options.seed, first, run.count, room);
            } else {
                for (std::size_t i = 0; i < run.count; ++i) {
                    room[i] = random_bits(options.seed, first + i * columns);
                }
            }
            for (std::size_t i = 0; i < run.count; ++i) results[i] = mask.applied(values[i], words[i]);
        },
        to, from);
}
#endif

/// Tag of dropout, or of its gradient, which is the same function. Right in any format, so nothing is cast.
template <class Op, autocast::fixed_string Name, autocast::fixed_string From, autocast::fixed_string To>
struct dropout_pass : library_op<Op, Name> {
    static constexpr auto category = op_category::pass_through;
    static constexpr std::array<std::string_view, 4> argument_names{"exec", From.view(), To.view(),
                                                                    "options"};

    static void validate(const auto& exec, const auto& from, const auto& to,
                         const ops::dropout_options& options) {
        check_unary(Op::function, exec, named(From.view(), from), named(To.view(), to));
        check_dropout_probability(Op::function, "options.probability", options.probability);
    }

    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const any_operand& from, const any_operand& to,
                        const ops::dropout_options& options) {
        apply_dropout<Real>(exec, from, to, options);
    }
    void operator()(const gpu_executor auto& exec, const auto&... operands) const {
        apply_dropout(dropout_walk{}, exec, operands...);
    }
};

}}  // namespace mp::detail

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Tag of dropout().
struct dropout_op : detail::dropout_pass<dropout_op, "dropout", "x", "y"> {
    static constexpr std::array<std::string_view, 2> known_as{"native_dropout", "Dropout"};
};

/// y = x / (1 - probability) where the mask keeps an element, and +0 where it drops it, whatever x is there.
///
///     mp::ops::dropout(exec, x, y, {.probability = 0.1F, .seed = seed, .offset = offset});
///
/// The element in row r and column c is dropped if random_bits(seed, offset + r * columns + c) is less than
/// probability * 2^32, rounded to an integer: so the mask is the same in every storage order, for every
/// number of threads and on every machine, and nothing of it needs to be kept for the gradient. With a
/// probability of 0, y is a copy of x; with 1, it is all zeros, as in PyTorch. Call it in training alone.
///
/// x and y are matrices of one shape, in any storage order and formats; y may be x, but not overlap it
/// otherwise. An element is rounded to float and from there to the format of y. Throws argument_error for
/// shapes that differ, invalid views and a probability outside 0 to 1; y is then unchanged. Runs on CPUs and,
/// with <mp/nn/ops/dropout/gpu.hpp>, on GPUs, with the same mask and the same bits.
template <class Policy = autocast::by_region, executor Executor = cpu, element X, matrix_result Y>
void dropout(const Executor& exec, matrix_view<X> x, const Y& y, const dropout_options& options) {
    detail::call_op<Policy>(dropout_op{}, exec, detail::input_view(x), detail::output_view(y), options);
}

/// Tag of dropout_backward().
struct dropout_backward_op : detail::dropout_pass<dropout_backward_op, "dropout_backward", "dy", "dx"> {
    using forward_op = dropout_op;
    static constexpr std::array<std::string_view, 1> known_as{"native_dropout_backward"};
};

/// The gradient of dropout() with the same options: dx = dy / (1 - probability) where the mask keeps an
/// element, and +0 elsewhere. dx may be dy. Rounding and errors are those of dropout().
template <class Policy = autocast::by_region, executor Executor = cpu, element DY, matrix_result DX>
void dropout_backward(const Executor& exec, matrix_view<DY> dy, const DX& dx,
                      const dropout_options& options) {
    detail::call_op<Policy>(dropout_backward_op{}, exec, detail::input_view(dy), detail::output_view(dx),
                            options);
}

}}  // namespace mp::ops
