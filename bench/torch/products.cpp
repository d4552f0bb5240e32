// SPDX-License-Identifier: MIT
// The products that products.py measures beside those of its peers, as functions of a shared library.
// y = x w for x of m x k, and w of k x n (its rows contiguous) or, with `transposed`, stored as n x k.
#include <mp/bfloat16.hpp>
#include <mp/gemm.hpp>
#include <mp/half.hpp>

#include <cstddef>
#include <memory>

namespace {

struct setting {
    int threads;
    bool transposed;
    std::ptrdiff_t m, n, k;
};

template <class Value>
void multiply(const setting& s, const void* x, const void* w, void* y) {
    static const auto pool = std::make_unique<mp::gemm_workspace>();
    const auto* const weights = static_cast<const Value*>(w);
    mp::gemm(
        mp::cpu{.threads = s.threads}, 1.0F, mp::row_major(static_cast<const Value*>(x), s.m, s.k),
        s.transposed ? mp::transposed(mp::row_major(weights, s.n, s.k)) : mp::row_major(weights, s.k, s.n),
        0.0F, mp::row_major(static_cast<Value*>(y), s.m, s.n), mp::identity_epilogue{}, *pool);
}

}  // namespace

extern "C" void mp_float(int threads, int transposed, std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k,
                         const void* x, const void* w, void* y) {
    multiply<float>({threads, transposed != 0, m, n, k}, x, w, y);
}
extern "C" void mp_bfloat16(int threads, int transposed, std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k,
                            const void* x, const void* w, void* y) {
    multiply<mp::bfloat16>({threads, transposed != 0, m, n, k}, x, w, y);
}
extern "C" void mp_half(int threads, int transposed, std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k,
                        const void* x, const void* w, void* y) {
    multiply<mp::half>({threads, transposed != 0, m, n, k}, x, w, y);
}
