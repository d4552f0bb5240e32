// SPDX-License-Identifier: MIT
// Runs of floats, each with a number of another matrix, by vectors.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// values = Function(operand, value) for runs of `count` floats, `stride` apart, whose operands are `leading` apart.
///
/// Operands are prefetched 16 runs ahead: the function has too many instructions for out-of-order execution to reach the next
/// loads, and hardware prefetchers do not follow short runs at a large stride.
template <class Function, class Value>
void map_runs_with_operand(float* values, std::ptrdiff_t stride, std::ptrdiff_t runs, std::size_t count,
                           const Value* operands, std::ptrdiff_t leading) {
    constexpr std::ptrdiff_t ahead = 16;
    constexpr std::size_t line = 64 / sizeof(Value);
    const auto prefetch = [=](const Value* run) MP_INLINED_LAMBDA {
        for (std::size_t i = 0; i < count; i += line) __builtin_prefetch(run + i);
        __builtin_prefetch(run + (count - 1));
    };
    if (count == 0) return;
    for (std::ptrdiff_t run = 0; run < (std::min)(ahead, runs); ++run) prefetch(operands + run * leading);
    for (; runs > 0; --runs, values += stride, operands += leading) {
        if (runs > ahead) prefetch(operands + ahead * leading);
        for (std::size_t i = 0; i < count; i += lanes) {
            const std::size_t rest = count - i;
            const bool whole = rest >= lanes;
            const vec<float> y = elementwise<Function>::apply(
                whole ? load_numbers(operands + i) : load_first_numbers(operands + i, rest),
                whole ? load(values + i) : load_partial(values + i, rest));
            if (whole) {
                store(values + i, y);
            } else {
                store_partial(values + i, y, rest);
            }
        }
    }
}

}}}  // namespace mp::detail::MP_TARGET
