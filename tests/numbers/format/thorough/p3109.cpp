// SPDX-License-Identifier: MIT
// The operations of IEEE P3109 over all codes of many formats, in every rounding and saturation mode and with
// several random bits: more than 10^7 comparisons with a transcription of the report.
#include <doctest/doctest.h>

#include "numbers/format/p3109_cases.hpp"

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

TEST_CASE("operations of one operand: all codes of formats of 3 to 16 bits") {
    check([](tally& to) {
        const auto ways = projections(7);
        compare_unary<se<8, 4>, sf<4, 2>>(to, ways);
        compare_unary<se<8, 3>, se<8, 4>>(to, ways);
        compare_unary<sf<8, 5>, ue<8, 1>>(to, ways);
        compare_unary<ue<8, 1>, uf<7, 4>>(to, ways);
        compare_unary<uf<8, 8>, se<3, 1>>(to, ways);
        compare_unary<se<6, 5>, ue<6, 6>>(to, ways);
        compare_unary<se<16, 11>, se<8, 3>>(to, ways, 61);
        compare_unary<mp::half, sf<8, 1>>(to, ways, 67);
        compare_unary<mp::bfloat16, ue<5, 2>>(to, ways, 71);
        compare_unary<se<8, 2>, float>(to, ways, 3);
    });
}

TEST_CASE("operations of two operands: all pairs of small formats, many of 8 bits") {
    check([](tally& to) {
        const auto ways = projections(3);
        compare_binary<se<4, 2>, sf<4, 3>, ue<4, 2>>(to, ways);
        compare_binary<se<3, 1>, sf<5, 2>, uf<4, 1>>(to, ways);
        compare_binary<ue<5, 4>, uf<4, 4>, sf<4, 1>>(to, ways);
        compare_binary<se<5, 3>, se<5, 3>, se<5, 3>>(to, ways);
        compare_binary<se<8, 4>, se<8, 3>, sf<4, 2>>(to, ways, 61);
        compare_binary<se<8, 1>, ue<8, 1>, se<8, 4>>(to, ways, 67);
        compare_binary<sf<7, 2>, se<8, 5>, mp::half>(to, ways, 71);
        compare_binary<se<8, 4>, uf<6, 3>, float>(to, ways, 73);
        compare_binary<mp::half, se<8, 4>, ue<8, 2>>(to, ways, 64 * 256 - 1);
    });
}

TEST_CASE("operations of three operands: triples of small formats") {
    check([](tally& to) {
        const auto ways = projections(3);
        compare_ternary<se<3, 2>, sf<4, 1>, ue<4, 2>, se<5, 3>>(to, ways);
        compare_ternary<se<4, 2>, uf<4, 2>, sf<3, 2>, ue<4, 3>>(to, ways);
        compare_ternary<ue<8, 1>, se<8, 4>, sf<8, 3>, mp::half>(to, ways, 16001);
        compare_ternary<se<8, 1>, se<8, 1>, se<8, 1>, se<8, 1>>(to, ways, 16003);
        compare_ternary<se<8, 3>, se<8, 4>, float, float>(to, ways, (std::uint64_t{1} << 48) / 8009);
    });
}

TEST_CASE("functions of one format: all pairs") {
    check([](tally& to) {
        const auto ways = projections(3);
        compare_functions<se<4, 2>>(to, ways);
        compare_functions<sf<4, 2>>(to, ways);
        compare_functions<ue<5, 3>>(to, ways);
        compare_functions<uf<4, 1>>(to, ways);
        compare_functions<se<8, 4>>(to, ways, 61);
        compare_functions<se<8, 1>>(to, ways, 67);
        compare_functions<se<16, 11>>(to, ways, 65536 * 17 - 3);
        compare_predicates<se<8, 4>, ue<8, 1>>(to);
    });
}
