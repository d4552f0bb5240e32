// SPDX-License-Identifier: MIT
/// \file
/// Sums, inner products and norms of arrays, the same bits on every processor and with any number of threads.
#pragma once

#include <mp/arrays/array/arguments.hpp>
#include <mp/arrays/array/kernels/reductions.hpp>

#include <bit>

namespace mp {

/// In which type a sum is accumulated.
enum class summation : unsigned char {
    in_float,   ///< every addition rounds to float
    in_double,  ///< every addition rounds to double, and the sum to float, once
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <array_range Range>
void check_reduced_range(std::string_view function, std::string_view name, const Range& range) {
    using value = array_element<Range>;
    static_assert(exactly_representable_in<format_of_t<value>, float>,
                  "mp: sums are of numbers that float holds exactly; convert others with mp::convert");
    const std::span values = as_span(range);
    check_not_null(function, name, values.data(), values.size());
}

// Results go through memory, which keeps them between the changes of modes.

template <class Accumulator>
MP_NEVER_INLINE void add_tree(Accumulator* result, const Accumulator* sums, std::size_t count) noexcept {
    const default_floating_point_modes modes;
    *result = sum_of_tree<Accumulator>(count, [sums](std::size_t i) { return sums[i]; });
}
MP_NEVER_INLINE inline void round_to_float(float* result, const double* x) noexcept {
    const default_floating_point_modes modes;
    *result = round_to<float>(*x);
}
MP_NEVER_INLINE inline void replace_by_root(double* x) noexcept {
    const default_floating_point_modes modes;
    *x = double_sqrt(*x);
}

/// The terms of all elements added up in the order of mp::sum. Threads take chunks of 2^k blocks, which are
/// subtrees of the tree, so that it does not show how many chunks there were.
template <class Term, class Accumulator, class... Value>
Accumulator sum_of_terms(cpu exec, instruction_set isa, std::size_t count, const Value*... from) {
    const auto kernel = sum_kernel<Term, Accumulator, Value...>(isa);
    constexpr std::size_t most_chunks = 64;
    constexpr std::size_t grain = 1 << 17;
    const std::size_t chunk = std::bit_ceil((std::max)(count / most_chunks + 1, sum_block));
    Accumulator result = 0;
    if (exec.threads == 1 || count < 2 * grain_of(exec, grain)) {
        kernel(&result, count, from...);
        return result;
    }
    Accumulator sums[most_chunks];
    const std::size_t chunks = (count + chunk - 1) / chunk;
    parallel_for(exec, chunks, (std::max)(grain / chunk, std::size_t{1}),
                 [&](std::size_t begin, std::size_t end) {
                     for (std::size_t i = begin; i < end; ++i) {
                         kernel(&sums[i], (std::min)(chunk, count - i * chunk), (from + i * chunk)...);
                     }
                 });
    add_tree(&result, sums, chunks);
    return result;
}

/// The sum of all terms as `how` says.
template <class Term, class... Value>
float rounded_sum(cpu exec, instruction_set isa, summation how, std::size_t count, const Value*... from) {
    if (how == summation::in_float) return sum_of_terms<Term, float>(exec, isa, count, from...);
    const double wide = sum_of_terms<Term, double>(exec, isa, count, from...);
    float result = 0;
    round_to_float(&result, &wide);
    return result;
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The sum of all elements, 0 if there are none; with the same bits whatever the instructions, the number of
/// threads and the floating-point modes of the caller.
///
/// The order. The array is cut into blocks of 4096 elements. In a block, element i is added to lane i mod 64,
/// in ascending order, beginning with +0. Of the 64 lanes, lane j + 32 is added to lane j, then j + 16 to j,
/// and so on. Blocks form a binary tree: the sum of n of them is that of the first 2^k, the largest power of
/// two below n, plus that of the others.
///
/// Accuracy: an element passes through at most d = 69 + ceil(log2(number of blocks)) additions that round, so
/// that the error is at most d 2^-24 / (1 - d 2^-24) times the sum of the magnitudes; with
/// summation::in_double the same with 2^-53, and half a unit in the last place of the result.
///
/// NaN gives NaN, and so do infinities of both signs and sums that pass the largest float on the way with
/// different signs; in_double cannot overflow on the way.
///
/// \param exec    mp::cpu; its instructions and threads
/// \param x       contiguous range of float or of a reduced format whose numbers are floats; vector, span,
/// array... \param how     in what the sum is accumulated \throws argument_error  null with a size other than
/// zero, fewer than one thread, instructions that the processor
///                         lacks
template <detail::array_range X>
[[nodiscard]] float sum(cpu exec, const X& x, summation how = summation::in_float) {
    using value = detail::array_element<X>;
    constexpr std::string_view function = "mp::sum";
    detail::check_threads(function, exec);
    const instruction_set isa = detail::isa_of(function, exec);
    detail::check_reduced_range(function, "x", x);
    const std::span<const value> values = detail::as_span(x);
    return detail::rounded_sum<detail::summed_value>(exec, isa, how, values.size(), values.data());
}

/// The sum of a[i] b[i], in the order of sum() and with its guarantees. The elements may be of two types.
///
/// A product is rounded to float (in_double: to double) and then added; they are not fused. Products of two
/// numbers of half, bfloat16 and narrower formats are exact in float but where they fall below 2^-126, and
/// all are in double. So the error bound is that of sum(), with one more rounding of each product of floats
/// where accumulated in float.
///
/// \throws argument_error  as sum(), and where the sizes differ
///
///     const float similarity = mp::dot(mp::cpu{}, query, key);
///     const float exact = mp::dot(mp::cpu{}, query, key, mp::summation::in_double);
template <detail::array_range A, detail::array_range B>
[[nodiscard]] float dot(cpu exec, const A& a, const B& b, summation how = summation::in_float) {
    constexpr std::string_view function = "mp::dot";
    detail::check_threads(function, exec);
    const instruction_set isa = detail::isa_of(function, exec);
    detail::check_reduced_range(function, "a", a);
    detail::check_reduced_range(function, "b", b);
    const std::span<const detail::array_element<A>> x = detail::as_span(a);
    const std::span<const detail::array_element<B>> y = detail::as_span(b);
    if (x.size() != y.size()) {
        detail::throw_argument(function, "b.size()", y.size(),
                               "must equal a.size(), which is " + std::to_string(x.size()));
    }
    return detail::rounded_sum<detail::summed_product>(exec, isa, how, x.size(), x.data(), y.data());
}

/// The Euclidean norm, the square root of the sum of the squares; 0 for an empty array. Squares are exact in
/// double and are added in the order of sum(), so that nothing over- or underflows on the way. The error is
/// at most half a unit in the last place of float and (d + 2) 2^-54 of the result, d as in sum(). Infinities
/// give infinity, NaN gives NaN.
///
/// \throws argument_error  as sum()
template <detail::array_range X>
[[nodiscard]] float norm(cpu exec, const X& x) {
    using value = detail::array_element<X>;
    constexpr std::string_view function = "mp::norm";
    detail::check_threads(function, exec);
    const instruction_set isa = detail::isa_of(function, exec);
    detail::check_reduced_range(function, "x", x);
    const std::span<const value> values = detail::as_span(x);
    double squares =
        detail::sum_of_terms<detail::summed_square, double>(exec, isa, values.size(), values.data());
    float result = 0;
    detail::replace_by_root(&squares);
    detail::round_to_float(&result, &squares);
    return result;
}

}}  // namespace mp
