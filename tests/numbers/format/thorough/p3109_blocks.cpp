// SPDX-License-Identifier: MIT
// The operations of IEEE P3109 on scaled numbers and on blocks of many formats, in every mode.
#include <doctest/doctest.h>

#include "numbers/format/p3109_block_cases.hpp"

using namespace p3109_cases;

namespace {

template <class Run>
void check(Run run) {
    tally to;
    run(to);
    MESSAGE(to.compared, " comparisons");
    INFO(to.wrong.first());
    CHECK(to.wrong.count == 0);
}

}  // namespace

TEST_CASE("random blocks of formats of 3 to 16 bits") {
    check([](tally& to) {
        compare_blocks<uf<8, 1>, se<8, 4>, uf<8, 1>, se<8, 3>, uf<8, 1>, sf<4, 2>>(to, 5000, 21);
        compare_blocks<se<6, 3>, se<5, 3>, ue<8, 4>, uf<5, 2>, se<5, 3>, se<4, 2>>(to, 5000, 22);
        compare_blocks<se<4, 2>, se<4, 2>, sf<4, 1>, ue<4, 2>, sf<4, 3>, ue<5, 2>>(to, 5000, 23);
        compare_blocks<se<3, 1>, sf<3, 1>, uf<3, 1>, ue<3, 2>, se<3, 2>, uf<4, 1>>(to, 5000, 24);
        compare_blocks<ue<8, 1>, se<8, 1>, se<8, 6>, ue<8, 8>, sf<8, 7>, mp::half>(to, 3000, 25);
        compare_blocks<mp::bfloat16, se<16, 11>, ue<8, 4>, mp::half, mp::half, float>(to, 3000, 26);
        compare_blocks<float, float, float, float, uf<8, 1>, se<8, 4>>(to, 3000, 27);
    });
}
