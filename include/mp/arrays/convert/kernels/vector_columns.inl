// SPDX-License-Identifier: MIT

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// rows[v][i] = the i-th of `length` elements of vector v of some, as a float: it lies at from[v + i * stride].
/// A row begins `row_stride` floats behind the one before. In the order of memory, whose pages a large stride
/// changes with every step.
template <class Value>
void gather_columns(const Value* from, std::ptrdiff_t stride, std::ptrdiff_t vectors, std::ptrdiff_t length,
                    float* rows, std::ptrdiff_t row_stride) {
    constexpr auto width = static_cast<std::ptrdiff_t>(lanes);
    for (std::ptrdiff_t i = 0; i < length; i += width) {
        const auto steps = static_cast<std::size_t>(length - i < width ? length - i : width);
        for (std::ptrdiff_t v = 0; v < vectors; v += width) {
            const auto count = static_cast<std::size_t>(vectors - v < width ? vectors - v : width);
            vec_square square;
            const Value* const source = from + v + i * stride;
            float* const target = rows + v * row_stride + i;
            if (steps == lanes && count == lanes) {
                square.load_rows([&](std::ptrdiff_t k)
                                     MP_INLINED_LAMBDA { return load_numbers(source + k * stride); });
                square.transpose();
                square.store_rows([&](std::ptrdiff_t k, vec<float> row)
                                      MP_INLINED_LAMBDA { store(target + k * row_stride, row); });
                continue;
            }
            for (std::size_t k = 0; k < lanes; ++k) {
                const Value* const place = source + static_cast<std::ptrdiff_t>(k) * stride;
                square.row[k] = k >= steps       ? vec<float>{}
                                : count == lanes ? load_numbers(place)
                                                 : load_first_numbers(place, count);
            }
            square.transpose();
            for (std::size_t k = 0; k < count; ++k) {
                float* const row = target + static_cast<std::ptrdiff_t>(k) * row_stride;
                if (steps == lanes) {
                    store(row, square.row[k]);
                } else {
                    store_partial(row, square.row[k], steps);
                }
            }
        }
    }
}

}}}  // namespace mp::detail::MP_TARGET
