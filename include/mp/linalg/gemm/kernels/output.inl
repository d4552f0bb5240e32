// SPDX-License-Identifier: MIT
// Rows of C from and to floats by vectors.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

template <class Value>
void write_output(const output_floats& from, void* to, std::ptrdiff_t leading_dimension) {
    constexpr auto step = static_cast<std::ptrdiff_t>(lanes);
    for (std::ptrdiff_t i = 0; i < from.vectors; ++i) {
        const float* floats = from.first + i * from.stride;
        Value* values = static_cast<Value*>(to) + i * leading_dimension;
        std::ptrdiff_t left = from.count;
        for (; left >= 2 * step; left -= 2 * step, floats += 2 * step, values += 2 * step) {
            convert_two_vectors(floats, values);
        }
        for (; left >= step; left -= step, floats += step, values += step)
            store_numbers(values, load(floats));
        if (left > 0) {
            const auto rest = static_cast<std::size_t>(left);
            store_first_numbers(values, load_first_numbers(floats, rest), rest);
        }
    }
}

/// Adds to rows of a C of floats.
inline void add_output(const output_floats& from, void* to, std::ptrdiff_t leading_dimension) {
    constexpr auto step = static_cast<std::ptrdiff_t>(lanes);
    for (std::ptrdiff_t i = 0; i < from.vectors; ++i) {
        const float* floats = from.first + i * from.stride;
        float* values = static_cast<float*>(to) + i * leading_dimension;
        std::ptrdiff_t left = from.count;
        for (; left >= step; left -= step, floats += step, values += step) {
            store(values, add(load(floats), load(static_cast<const float*>(values))));
        }
        if (left > 0) {
            const auto rest = static_cast<std::size_t>(left);
            const vec<float> sum =
                add(load_partial(floats, rest), load_partial(static_cast<const float*>(values), rest));
            store_partial(values, sum, rest);
        }
    }
}

/// Rounds runs of `count` floats, `stride` apart, to Value.
template <class Value>
void round_runs(float* values, std::ptrdiff_t stride, std::ptrdiff_t runs, std::ptrdiff_t count) {
    using format = typename Value::format;
    update_runs(values, stride, runs, static_cast<std::size_t>(count), [&](vec<float> x) MP_INLINED_LAMBDA {
        return widen_container<format>(narrow_to_container<format>(x));
    });
}

template <class Value>
void read_output(const void* from, float* to, std::ptrdiff_t count) {
    const auto* values = static_cast<const Value*>(from);
    constexpr auto step = static_cast<std::ptrdiff_t>(lanes);
    for (; count >= step; count -= step, to += step, values += step) store(to, load_numbers(values));
    if (count > 0) {
        const auto rest = static_cast<std::size_t>(count);
        store_first_numbers(to, load_first_numbers(values, rest), rest);
    }
}

}}}  // namespace mp::detail::MP_TARGET
