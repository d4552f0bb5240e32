// SPDX-License-Identifier: MIT
// Walks over arrays and sums over vec<T>, whose order does not depend on the instruction set.

namespace mp::detail::inline MP_ISA_NAMESPACE::MP_TARGET {

/// Elements whose numbers have the same remainder by this are added up together, whatever the width of a
/// vector.
inline constexpr std::size_t sum_lanes = 16;
static_assert(sum_lanes % lanes == 0);
inline constexpr std::size_t sum_vectors = sum_lanes / lanes;

/// Calls f(v, i, n) for the n elements from i on, n being the number of lanes but at the end, where it may be
/// less; v = i / lanes % sum_vectors.
template <class Function>
MP_ALWAYS_INLINE void for_each_vector(std::size_t count, Function f) {
    std::size_t i = 0;
    for (; i + sum_lanes <= count; i += sum_lanes) {
        for (std::size_t v = 0; v < sum_vectors; ++v) f(v, i + v * lanes, lanes);
    }
    for (std::size_t v = 0; i < count; ++v, i += lanes) {
        f(v, i, count - i < lanes ? count - i : lanes);
    }
}
/// The n elements from there on, and zeros.
MP_ALWAYS_INLINE vec<float> load_first(const float* from, std::size_t n) {
    return n == lanes ? load(from) : load_partial(from, n);
}
MP_ALWAYS_INLINE void store_first(float* to, vec<float> x, std::size_t n) {
    if (n == lanes) {
        store(to, x);
    } else {
        store_partial(to, x, n);
    }
}

/// A sum in double, in sum_lanes parts, which a tree adds up.
class long_sum {
public:
    MP_ALWAYS_INLINE long_sum() {
        for (vec<double>& part : parts_) part = broadcast(0.0);
    }
    MP_ALWAYS_INLINE void add_terms(std::size_t v, vec<double> terms) { parts_[v] = add(parts_[v], terms); }
    [[nodiscard]] MP_ALWAYS_INLINE double value() const {
        double sums[sum_lanes];
        for (std::size_t v = 0; v < sum_vectors; ++v) store(sums + v * lanes, parts_[v]);
        for (std::size_t half = sum_lanes / 2; half > 0; half /= 2) {
            for (std::size_t i = 0; i < half; ++i) sums[i] = double_add(sums[i], sums[i + half]);
        }
        return sums[0];
    }

private:
    vec<double> parts_[sum_vectors];
};

}  // namespace mp::detail::inline MP_ISA_NAMESPACE::MP_TARGET
