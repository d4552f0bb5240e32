// SPDX-License-Identifier: MIT
// Functions of one or two floats over vec<float>, and their walk over arrays: see elementwise.hpp, which
// includes this for every kind of vector.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// The functions of activations.inl.
template <class Function>
struct elementwise {
    MP_HOST_DEVICE MP_ALWAYS_INLINE static vec<float> apply(vec<float> x) {
        return activation<Function>::value(x);
    }
};
template <>
struct elementwise<identity_function> {
    MP_HOST_DEVICE MP_ALWAYS_INLINE static vec<float> apply(vec<float> x) { return x; }
};
/// NaN where x or dy is NaN, or zero meets infinity.
template <class Function>
struct elementwise<slope_of<Function>> {
    MP_HOST_DEVICE MP_ALWAYS_INLINE static vec<float> apply(vec<float> x, vec<float> dy) {
        return unless_nan(x, mul(activation<Function>::slope(x), dy));
    }
};
/// (1 - y) (1 + y) dy, from the result y: the first factor is exact where it matters, near 1.
template <>
struct elementwise<slope_of<tanh_function>> {
    MP_HOST_DEVICE MP_ALWAYS_INLINE static vec<float> apply(vec<float> y, vec<float> dy) {
        return mul(mul(sub(1.0F, y), add(1.0F, y)), dy);
    }
};
/// y (1 - y) dy, from the result y: the second factor is exact from 1/2 on.
template <>
struct elementwise<slope_of<sigmoid_function>> {
    MP_HOST_DEVICE MP_ALWAYS_INLINE static vec<float> apply(vec<float> y, vec<float> dy) {
        return mul(mul(y, sub(1.0F, y)), dy);
    }
};
template <>
struct elementwise<relu_function> {
    template <class Floats>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static constexpr Floats apply(Floats x) {
        // The patterns from -0 up to -infinity are contiguous, and the NaNs with a sign come after them.
        return select(as_uint32(x) - 0x8000'0000U <= 0x7f80'0000U, broadcast(0.0F), x);
    }
};
/// dy where x (or y, which has the same sign) is positive or NaN, else +0.
template <>
struct elementwise<slope_of<relu_function>> {
    MP_HOST_DEVICE MP_ALWAYS_INLINE static vec<float> apply(vec<float> x, vec<float> dy) {
        return select((as_uint32(max_or_nan(-0.0F, x)) << 1) == 0, broadcast(0.0F), dy);
    }
};
template <>
struct elementwise<sum_function> {
    MP_HOST_DEVICE MP_ALWAYS_INLINE static vec<float> apply(vec<float> a, vec<float> b) { return add(a, b); }
};
template <>
struct elementwise<product_function> {
    MP_HOST_DEVICE MP_ALWAYS_INLINE static vec<float> apply(vec<float> a, vec<float> b) { return mul(a, b); }
};

template <class Function, class... From>
void map_arrays(std::size_t count, float* to, const From*... from) {
    // In one place, since it may be thousands of instructions.
    for (std::size_t i = 0; i < count; i += lanes) {
        const std::size_t rest = count - i;
        const vec<float> y =
            elementwise<Function>::apply((rest >= lanes ? load(from + i) : load_partial(from + i, rest))...);
        if (rest < lanes) return store_partial(to + i, y, rest);
        store(to + i, y);
    }
}

/// Replaces every x in runs of `count` floats, `stride` apart, by function(x).
template <class Function>
MP_ALWAYS_INLINE void update_runs(float* values, std::ptrdiff_t stride, std::ptrdiff_t runs,
                                  std::size_t count, Function function) {
    for (; runs > 0; --runs, values += stride) {
        for (std::size_t i = 0; i < count; i += lanes) {
            const std::size_t rest = count - i;
            const vec<float> y = function(rest >= lanes ? load(values + i) : load_partial(values + i, rest));
            if (rest < lanes) {
                store_partial(values + i, y, rest);
            } else {
                store(values + i, y);
            }
        }
    }
}
template <class Function>
void map_runs(float* values, std::ptrdiff_t stride, std::ptrdiff_t runs, std::size_t count) {
    update_runs(values, stride, runs, count,
                [&](vec<float> x) MP_INLINED_LAMBDA { return elementwise<Function>::apply(x); });
}

inline void scale_array(std::size_t count, float* to, const float* from, float factor) {
    const vec<float> all = broadcast(factor);
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) store(to + i, mul(load(from + i), all));
    if (i == count) return;
    store_partial(to + i, mul(load_partial(from + i, count - i), all), count - i);
}

/// Multiplies runs of `count` floats, `stride` apart, by factors that are `step` apart: 0 where all are one.
inline void scale_each_run(float* values, std::ptrdiff_t stride, std::ptrdiff_t runs, std::size_t count,
                           const float* factors, std::ptrdiff_t step) {
    for (std::ptrdiff_t i = 0; i < runs; ++i, values += stride) {
        scale_array(count, values, values, factors[i * step]);
    }
}
/// Adds the terms to every run.
inline void add_to_each_run(float* values, std::ptrdiff_t stride, std::ptrdiff_t runs, std::size_t count,
                            const float* terms) {
    for (std::ptrdiff_t i = 0; i < runs; ++i, values += stride) {
        map_arrays<sum_function>(count, values, static_cast<const float*>(values), terms);
    }
}

/// The bits of the largest magnitude in runs of `count` floats, `stride` apart.
inline std::uint32_t largest_magnitude_of_runs(const float* values, std::ptrdiff_t stride,
                                               std::ptrdiff_t runs, std::size_t count) {
    vec<std::int32_t> largest = as_int32(broadcast(0.0F));
    for (std::ptrdiff_t r = 0; r < runs; ++r, values += stride) {
        for (std::size_t i = 0; i < count; i += lanes) {
            const std::size_t rest = count - i;
            const vec<float> x = rest >= lanes ? load(values + i) : load_partial(values + i, rest);
            largest = (max)(largest, as_int32(as_uint32(x) & 0x7fff'ffffU));
        }
    }
    return static_cast<std::uint32_t>(reduce_max(largest));
}

/// x scale, at most `largest` in magnitude, to be rounded to a format of up to 22 significant bits, whose smallest number
/// is above 2^-99. NaN stays.
///
/// Rounded to odd, so that the rounding to nearest that follows gives what it would give for the exact product (S. Boldo
/// and G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd",
/// 2008). The error of a product from 2^-102 on is a float; smaller products become zero, whatever their error.
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<float> multiply_and_saturate(vec<float> x, vec<float> scale,
                                                                 float largest) {
    const vec<float> product = mul(x, scale);
    const vec<std::uint32_t> bits = as_uint32(product);
    const vec<std::uint32_t> error = as_uint32(fma(x, scale, as_float(bits ^ 0x8000'0000U)));
    // Where it is even, the exact product lies between it and its neighbour on the side of the error, which is odd.
    const vec<std::uint32_t> neighbour = bits + 1U - ((bits ^ error) >> 31 << 1);
    const vec<float> exact_or_odd = select((error << 1) == 0, product, as_float(neighbour));
    const vec<float> odd = select((bits & 1U) == 0, exact_or_odd, product);
    const vec<std::uint32_t> magnitude = bits & 0x7fff'ffffU;
    const vec<float> limit = as_float(as_uint32(broadcast(largest)) | (bits & 0x8000'0000U));
    const vec<float> limited = select(magnitude > 0x7f80'0000U, product, limit);
    return select(magnitude < as_uint32(broadcast(largest)), odd, limited);
}
/// The same for runs.
inline void multiply_and_saturate_runs(float* values, std::ptrdiff_t stride, std::ptrdiff_t runs,
                                       std::size_t count, float scale, float largest) {
    const vec<float> factor = broadcast(scale);
    update_runs(values, stride, runs, count,
                [&](vec<float> x) MP_INLINED_LAMBDA { return multiply_and_saturate(x, factor, largest); });
}

/// to[i] = a x[i] + b y[i]. The products are exact in double, and the sum is rounded to double and then to
/// float, so that fused operations change nothing.
inline void scale_and_add_arrays(std::size_t count, float* to, const float* x, float a, const float* y,
                                 float b) {
    const vec<double> of_x = broadcast(static_cast<double>(a));
    const vec<double> of_y = broadcast(static_cast<double>(b));
    const auto sum = [&](vec<float> p, vec<float> q)
                         MP_INLINED_LAMBDA { return narrow(add(mul(of_x, widen(p)), mul(of_y, widen(q)))); };
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) store(to + i, sum(load(x + i), load(y + i)));
    if (i == count) return;
    const std::size_t rest = count - i;
    store_partial(to + i, sum(load_partial(x + i, rest), load_partial(y + i, rest)), rest);
}

/// Calls advance(high, low, x) for vectors of sums of two floats each and of x.
template <class Advance>
MP_ALWAYS_INLINE void advance_pairs(std::size_t count, float* high, float* low, const float* x,
                                    Advance advance) {
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        vec<float> h = load(high + i);
        vec<float> l = load(low + i);
        advance(h, l, load(x + i));
        store(high + i, h);
        store(low + i, l);
    }
    if (i == count) return;
    const std::size_t rest = count - i;
    vec<float> h = load_partial(high + i, rest);
    vec<float> l = load_partial(low + i, rest);
    advance(h, l, load_partial(x + i, rest));
    store_partial(high + i, h, rest);
    store_partial(low + i, l, rest);
}

/// a[i] += taken (x[i] - a[i]), where a[i] = high[i] + low[i] has 48 bits, so that increments as small as 2^-47 of an
/// average are not lost. Where taken > 1/2, x[i] - left (x[i] - a[i]) with left = 1 - taken, as torch.lerp
/// does, so that taken = 1 gives x[i] exactly. Increments have an error of 2^-22, which only changes the time that
/// an average takes.
inline void average_arrays(std::size_t count, float* high, float* low, const float* x, float taken,
                           float left) {
    const bool near_x = taken > 0.5F;
    const vec<float> factor = broadcast(near_x ? -left : taken);
    advance_pairs(count, high, low, x, [&](vec<float>& h, vec<float>& l, vec<float> to) MP_INLINED_LAMBDA {
        const vec<float> distance = sub(sub(to, h), l);
        const two_sum moved(near_x ? to : h, mul(factor, distance));
        const two_sum normal(moved.sum, near_x ? moved.error : add(l, moved.error));
        h = normal.sum;
        l = normal.error;
    });
}

/// high[i] + low[i] += x[i], see float_float.hpp.
inline void add_floats_to_pairs(std::size_t count, float* high, float* low, const float* x) {
    advance_pairs(count, high, low, x, [&](vec<float>& h, vec<float>& l, vec<float> term) MP_INLINED_LAMBDA {
        add_to_pair(h, l, term);
    });
}
/// Rounds high[i] + low[i] to high[i], and the error to low[i].
inline void normalize_pairs(std::size_t count, float* high, float* low) {
    advance_pairs(count, high, low, low,
                  [&](vec<float>& h, vec<float>& l, vec<float> /*low*/)
                      MP_INLINED_LAMBDA { normalize_pair(h, l); });
}

/// sums[i] += x[i].
inline void add_floats_to_doubles(std::size_t count, double* sums, const float* x) {
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) store(sums + i, add(load_doubles(sums + i), load_wide(x + i)));
    if (i == count) return;
    const std::size_t rest = count - i;
    store_partial(sums + i, add(load_partial_doubles(sums + i, rest), widen(load_partial(x + i, rest))),
                  rest);
}

}}}  // namespace mp::detail::MP_TARGET
