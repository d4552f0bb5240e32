// SPDX-License-Identifier: MIT

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// rows[v][i] = the i-th of `length` elements of vector v of some, as a float: it lies at from[v + i * stride].
/// A row begins `row_stride` floats behind the one before. In the order of memory, whose pages a large stride
/// changes with every step.
template <class Value>
void gather_columns(const Value* from, std::ptrdiff_t stride, std::ptrdiff_t vectors, std::ptrdiff_t length,
                    float* rows, std::ptrdiff_t row_stride) {
    constexpr auto width = static_cast<std::ptrdiff_t>(lanes);
    constexpr std::ptrdiff_t block = 64;
    alignas(64) float lines[lanes][block];
    alignas(64) float columns[block][lanes];
    for (std::ptrdiff_t i = 0; i < length; i += width) {
        const std::ptrdiff_t steps = length - i < width ? length - i : width;
        for (std::ptrdiff_t v = 0; v < vectors; v += block) {
            const std::ptrdiff_t count = vectors - v < block ? vectors - v : block;
            float* const target = rows + v * row_stride + i;
            if constexpr (std::is_same_v<Value, float>) {
                if (steps == width && count % 4 == 0) {
                    transpose_words(from + v + i * stride, stride * 4, count, target, row_stride * 4);
                    continue;
                }
            }
            for (std::ptrdiff_t k = 0; k < steps; ++k) {
                const Value* const source = from + v + (i + k) * stride;
                for (std::ptrdiff_t n = 0; n < count; n += width) {
                    const auto left = static_cast<std::size_t>(count - n);
                    store(lines[k] + n,
                          left >= lanes ? load_numbers(source + n) : load_first_numbers(source + n, left));
                }
            }
            const bool whole = steps == width;
            transpose_words(lines, sizeof lines[0], count, whole ? target : columns[0],
                            whole ? row_stride * 4 : std::ptrdiff_t{sizeof columns[0]});
            for (std::ptrdiff_t n = 0; !whole && n < count; ++n) {
                store_partial(target + n * row_stride, load(static_cast<const float*>(columns[n])),
                              static_cast<std::size_t>(steps));
            }
        }
    }
}

}}}  // namespace mp::detail::MP_TARGET
