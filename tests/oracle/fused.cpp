// SPDX-License-Identifier: MIT
// The judge of fused products against the search over the codes: it must admit that result and no other.
#include "oracle/fused.hpp"

#include <doctest/doctest.h>
#include <cstdint>

#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

template <int Words>
long disagreements_of(const oracle::format& f, int cases) {
    long wrong = 0;
    oracle::random_bits random(601);
    for (const oracle::mode m : oracle::modes) {
        const oracle::fused_oracle<Words> judge(f, m);
        for (int n = 0; n < cases; ++n) {
            const std::uint64_t a = weighted_code(random, f);
            const std::uint64_t b = weighted_partner(random, f, a);
            std::uint64_t c = weighted_partner(random, f, a);
            if (n % 2 == 0) c = finish(f, multiply(f, a, b), m, oracle::saturate::none).code ^ sign_bit(f);
            const oracle::outcome expected = finish(f, fma(f, a, b, c), m, oracle::saturate::none);
            for (const std::uint64_t change : {0U, 1U, 2U}) {
                for (const std::uint64_t sign : {std::uint64_t{0}, sign_bit(f)}) {
                    const std::uint64_t result =
                        ((expected.code + change + code_count(f) - 1) ^ sign) & (code_count(f) - 1);
                    if (judge.admits(a, b, c, result) != matches(f, expected, result)) ++wrong;
                }
            }
        }
    }
    return wrong;
}

}  // namespace

TEST_CASE("the judge of fused products admits exactly the right result") {
    CHECK(disagreements_of<2>(oracle::binary16, 20000) == 0);
    CHECK(disagreements_of<9>(oracle::bfloat16, 20000) == 0);
    CHECK(disagreements_of<1>(oracle::float8_e4m3, 20000) == 0);
    CHECK(disagreements_of<2>(oracle::float8_e5m2, 20000) == 0);
}
