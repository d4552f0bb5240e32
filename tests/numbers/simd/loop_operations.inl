// SPDX-License-Identifier: MIT
// The walks and sums of <mp/numbers/simd/loops.hpp>, as functions that the baseline can call. See loops.cpp.

namespace mp::detail::MP_TARGET {

inline void walk(const float* x, const double* y, std::size_t count, simd_test::walk_results* results) {
    long_sum sum;
    long_sum of_shorts;
    short_sum terms;
    for_each_vector(count, [&](std::size_t v, std::size_t i, std::size_t n) MP_INLINED_LAMBDA {
        store_up_to(results->copied + i, load_up_to(x + i, n), n);
        store_up_to(results->copied_doubles + i, load_up_to(y + i, n), n);
        store(results->filled + i, load_or_fill(x + i, n, 7.0F));
        const vec<float> kept = keep_first(load_or_fill(x + i, n, 7.0F), n);
        store(results->kept + i, kept);
        store(results->filled_doubles + i, load_wide_or_fill(x + i, n, 9.0));
        sum.add_terms(v, load_wide_or_fill(x + i, n, 0.0));
        terms.add_terms(v, kept);
    });
    terms.add_to(of_shorts);
    results->long_sum = sum.value();
    results->short_sums = of_shorts.value();
}

inline std::size_t lanes_of_walk() {
    return lanes;
}

}  // namespace mp::detail::MP_TARGET
