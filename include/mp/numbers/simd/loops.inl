// SPDX-License-Identifier: MIT
// Walks over arrays and sums over vec<T>, whose order does not depend on the instruction set.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// Elements whose indices are equal modulo this are added up together, whatever the width of a
/// vector.
inline constexpr std::size_t row_parts = 16;
static_assert(row_parts % lanes == 0);
inline constexpr std::size_t row_vectors = row_parts / lanes;

/// Calls f(v, i, n) for the n elements from i on, n being the number of lanes but at the end, where it may be
/// less; v = i / lanes % row_vectors.
#if MP_TARGET_NUMBER == MP_TARGET_PORTABLE
template <class Function>
MP_ALWAYS_INLINE void for_each_vector(std::size_t count, Function f) {
    std::size_t i = 0;
    for (; i + row_parts <= count; i += row_parts) {
        for (std::size_t v = 0; v < row_vectors; ++v) f(v, i + v * lanes, lanes);
    }
    // Less than row_parts are left, which g++ 12 does not always know: it warned of the later iterations.
    for (std::size_t v = 0; v < row_vectors && i < count; ++v, i += lanes) {
        f(v, i, count - i < lanes ? count - i : lanes);
    }
}
#else
/// The calls for each v are written out: sums in an array that is indexed by a variable would go through
/// memory.
template <class Function, std::size_t... V>
MP_ALWAYS_INLINE void for_each_vector(std::size_t count, Function f, std::index_sequence<V...> /*all*/) {
    std::size_t i = 0;
    for (; i + row_parts <= count; i += row_parts) (f(V, i + V * lanes, lanes), ...);
    const auto at_end = [&](std::size_t v) MP_INLINED_LAMBDA {
        if (i < count) f(v, i, count - i < lanes ? count - i : lanes);
        i += lanes;
    };
    (at_end(V), ...);
}
template <class Function>
MP_ALWAYS_INLINE void for_each_vector(std::size_t count, Function f) {
    for_each_vector(count, f, std::make_index_sequence<row_vectors>{});
}
#endif
/// The n elements from there on, and zeros.
MP_ALWAYS_INLINE vec<float> load_up_to(const float* from, std::size_t n) {
    return n == lanes ? load(from) : load_partial(from, n);
}
/// The n elements from there on, and `fill` in the other lanes.
MP_ALWAYS_INLINE vec<float> load_or_fill(const float* from, std::size_t n, float fill) {
    if (n == lanes) return load(from);
    float values[lanes];
    for (std::size_t i = 0; i < lanes; ++i) values[i] = i < n ? from[i] : fill;
    return load(values);
}
/// The first n lanes, and zeros.
MP_ALWAYS_INLINE vec<float> keep_first(vec<float> x, std::size_t n) {
    if (n == lanes) return x;
    float values[lanes];
    store(values, x);
    return load_partial(values, n);
}
MP_ALWAYS_INLINE void store_up_to(float* to, vec<float> x, std::size_t n) {
    if (n == lanes) {
        store(to, x);
    } else {
        store_partial(to, x, n);
    }
}
/// Of doubles: the n elements from there on, and zeros.
MP_ALWAYS_INLINE vec<double> load_up_to(const double* from, std::size_t n) {
    return n == lanes ? load_doubles(from) : load_partial_doubles(from, n);
}
MP_ALWAYS_INLINE void store_up_to(double* to, vec<double> x, std::size_t n) {
    if (n == lanes) {
        store(to, x);
    } else {
        store_partial(to, x, n);
    }
}
/// The n floats from there on as doubles, and `fill` in the other lanes.
MP_ALWAYS_INLINE vec<double> load_wide_or_fill(const float* from, std::size_t n, double fill) {
    return n == lanes ? load_wide(from) : or_fill(widen(load_partial(from, n)), n, fill);
}

/// f of all Count values as a tree: values that are Count / 2 apart first, and neighbours last.
template <std::size_t Count, std::size_t Step = 1, class T, class Function>
MP_ALWAYS_INLINE T reduce_tree(const T* values, Function f) {
    if constexpr (Step == Count) {
        return values[0];
    } else {
        return f(reduce_tree<Count, 2 * Step>(values, f), reduce_tree<Count, 2 * Step>(values + Step, f));
    }
}

/// A sum in double, in row_parts parts, which a tree adds up.
class long_sum {
public:
    MP_ALWAYS_INLINE long_sum() {
        for (vec<double>& part : parts_) part = broadcast(0.0);
    }
    MP_ALWAYS_INLINE void add_terms(std::size_t v, vec<double> terms) { parts_[v] = add(parts_[v], terms); }
    [[nodiscard]] MP_ALWAYS_INLINE double value() const {
        vec<double> total[row_vectors];
        for (std::size_t v = 0; v < row_vectors; ++v) total[v] = parts_[v];
        for (std::size_t half = row_vectors / 2; half > 0; half /= 2) {
            for (std::size_t v = 0; v < half; ++v) total[v] = add(total[v], total[v + half]);
        }
        return reduce_add(total[0]);
    }

private:
    vec<double> parts_[row_vectors];
};

/// A sum of a few terms in float, in as many parts.
class short_sum {
public:
    MP_ALWAYS_INLINE short_sum() {
        for (vec<float>& part : parts_) part = broadcast(0.0F);
    }
    MP_ALWAYS_INLINE void add_terms(std::size_t v, vec<float> terms) { parts_[v] = add(parts_[v], terms); }
    MP_ALWAYS_INLINE void add_to(long_sum& total) const {
        for (std::size_t v = 0; v < row_vectors; ++v) total.add_terms(v, widen(parts_[v]));
    }

private:
    vec<float> parts_[row_vectors];
};

inline double sum_of_row(const float* x, std::size_t count) {
    long_sum sum;
    for_each_vector(count, [&](std::size_t v, std::size_t i, std::size_t n)
                               MP_INLINED_LAMBDA { sum.add_terms(v, load_wide_or_fill(x + i, n, 0.0)); });
    return sum.value();
}

}}}  // namespace mp::detail::MP_TARGET
