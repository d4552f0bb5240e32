// expects: store_auxiliary has one matrix, and these products have more than one C
// SPDX-License-Identifier: MIT
#include <mp/float8.hpp>
#include <mp/gemm.hpp>

#include <cstdint>
#include <span>
#include <vector>

int main() {
    const std::vector<mp::float8_e4m3fn> x(4 * 2 * 128), w(4 * 3 * 128);
    const std::vector<float> scales(4 * 3, 1.0F);
    const std::vector<std::int32_t> counts(4, 1);
    std::vector<float> y(4 * 2 * 3), before(2 * 3);
    mp::gemm_scaled_masked(mp::cpu{}, 1, mp::matrix_batch{mp::row_major(x.data(), 2, 128), 2 * 128},
                           {{mp::row_major(scales.data(), 2, 1)}, 2},
                           mp::matrix_batch{mp::transposed(mp::row_major(w.data(), 3, 128)), 3 * 128},
                           {{mp::transposed(mp::row_major(scales.data(), 3, 1))}, 3}, std::span(counts), 0,
                           mp::matrix_batch{mp::row_major(y.data(), 2, 3), 2 * 3}
#if !defined(ACCEPTED)
                           ,
                           mp::store_auxiliary(mp::row_major(before.data(), 2, 3))
#endif
    );
}
