// SPDX-License-Identifier: MIT
// The operations of IEEE P3109 on scaled numbers and on blocks (section 5), compared with a transcription of
// the report; random blocks, in which zeros, infinities and NaN are frequent.
#include <doctest/doctest.h>

#include <cmath>

#include "numbers/format/p3109_block_cases.hpp"

using namespace p3109_cases;

namespace {

template <class Run>
void check(Run run) {
    tally to;
    run(to);
    INFO(to.wrong.first());
    CHECK(to.compared > 0);
    CHECK(to.wrong.count == 0);
}

}  // namespace

TEST_CASE("blocks with scale factors that are powers of two are the report's") {
    check([](tally& to) {
        compare_blocks<uf<8, 1>, se<8, 4>, uf<8, 1>, sf<4, 2>, uf<8, 1>, se<8, 3>>(to, 100, 11);
    });
}

TEST_CASE("blocks with any scale factors are the report's") {
    check([](tally& to) {
        compare_blocks<se<6, 3>, se<5, 3>, ue<8, 4>, uf<5, 2>, se<5, 3>, se<4, 2>>(to, 100, 12);
    });
}

TEST_CASE("sums of far-apart terms are exact") {
    using scale = uf<8, 1>;
    using element = mp::p3109<16, 1>;
    const auto power = [](int n) { return element::from_bits(static_cast<std::uint16_t>(16384 + n)); };
    const operations::block<scale, element, 4> x{scale(1),
                                                 {power(16000), power(-16000), -power(16000), power(-16000)}};
    CHECK(operations::block_reduce_add<element>(x).bits() == power(-15999).bits());
    CHECK(operations::faa<element>(power(16000), power(-16000), -power(16000)).bits() ==
          power(-16000).bits());
    CHECK(operations::block_dot_product<element>(x, x).bits() == element(INFINITY).bits());
    // 2^16000 - 2^-16000 rounds toward zero to the number below.
    CHECK(operations::subtract<element>(power(16000), power(-16000), {.round = mp::rounding::toward_zero})
              .bits() == power(15999).bits());
}

TEST_CASE("operations on blocks are constant expressions") {
    using element = se<8, 4>;
    constexpr operations::block<uf<8, 1>, element, 3> x{uf<8, 1>(2.0F), {element(1), element(2), element(3)}};
    static_assert(operations::block_reduce_add<float>(x) > 11.9F &&
                  operations::block_reduce_add<float>(x) < 12.1F);
    static_assert(operations::block_multiply<element>(x, x, x.scale).elements[2].bits() ==
                  element(18).bits());
    static_assert(operations::scaled_add<element>(x.scale, x.elements[0], x.scale, x.elements[1]).bits() ==
                  element(6).bits());
    CHECK(operations::block_dot_product<float>(x, x) == 56);
}
