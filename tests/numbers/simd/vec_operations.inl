// SPDX-License-Identifier: MIT
// What every kind of vector can do, as functions that the baseline can call. See vec.cpp.

namespace mp::detail::MP_TARGET {

/// results[o] gets operation o of every element; `count` is a multiple of 16. See float_operations.
inline void apply_to_floats(const float* a, const float* b, const float* c, std::size_t count,
                            float* const* results) {
    const default_floating_point_modes modes;
    for (std::size_t i = 0; i < count; i += lanes) {
        const vec<float> x = load(a + i);
        const vec<float> y = load(b + i);
        const vec<float> z = load(c + i);
        std::size_t o = 0;
        const auto put = [&](vec<float> value) MP_INLINED_LAMBDA { store(results[o++] + i, value); };
        put(add(x, y));
        put(sub(x, y));
        put(mul(x, y));
        put(div(x, y));
        put(fma(x, y, z));
        put(fma(x, 3.0F, z));
        put(add(0.1F, x));
        put(sqrt(x));
        put(max_or_nan(-2.5F, x));
        put(select(x > 1.0F, y, z));
        put(select(x < 1.0F, y, z));
        put(select_by_sign(x, y, z));
        put(zero_unless_above(-2.5F, x, y));
        put(as_float((min)(as_uint32(x), as_uint32(y))));
        put(as_float(as_uint32((min)(as_int32(x), as_int32(y)))));
        put(as_float(as_uint32((max)(as_int32(x), as_int32(y)))));
        put(as_float(as_uint32(x) ^ broadcast(0x8000'0001U)));
        put(broadcast(y));
        put(broadcast(-0.0F));
        put(narrow(mul(widen(x), widen(y))));
    }
}

/// The same of doubles, made of floats. See double_operations.
inline void apply_to_doubles(const float* a, const double* b, std::size_t count, double* const* results) {
    const default_floating_point_modes modes;
    for (std::size_t i = 0; i < count; i += lanes) {
        const vec<double> x = load_wide(a + i);
        const vec<double> y = load_doubles(b + i);
        std::size_t o = 0;
        const auto put = [&](vec<double> value) MP_INLINED_LAMBDA { store(results[o++] + i, value); };
        put(widen(load(a + i)));
        put(x);
        put(add(x, y));
        put(sub(x, y));
        put(mul(x, y));
        put(broadcast(0.1));
        for (std::size_t k = 0; k < lanes; ++k) {
            const double left = static_cast<double>(a[i + k]);
            results[o][i + k] = div(left, b[i + k]);
            results[o + 1][i + k] = sqrt(b[i + k]);
        }
    }
}

/// The sum of the lanes of the first doubles; how many lanes there are.
inline std::size_t sum_lanes_of(const double* from, double* sum) {
    *sum = reduce_add(load_doubles(from));
    return lanes;
}

/// The largest of the first lanes.
inline std::int32_t largest_lane_of(const float* bits) {
    return reduce_max(as_int32(load(bits)));
}

/// Reads and writes the first n < lanes elements; the lanes of floats, doubles and filled doubles go to
/// `all_floats` and so on.
inline void copy_first(std::size_t n, const float* floats, const double* numbers, float* to_floats,
                       double* to_numbers, float* all_floats, double* all_numbers, double* all_filled) {
    const vec<float> x = load_partial(floats, n);
    const vec<double> y = load_partial_doubles(numbers, n);
    store_partial(to_floats, x, n);
    store_partial(to_numbers, y, n);
    store(all_floats, x);
    store(all_numbers, y);
    store(all_filled, or_fill(load_doubles(numbers), n, -3.0));
}

}  // namespace mp::detail::MP_TARGET
