// SPDX-License-Identifier: MIT
// The operations of IEEE P3109 on operands of several formats, compared with a transcription of the report; a
// slice of what thorough/p3109.cpp runs through.
#include <doctest/doctest.h>

#include <cmath>

#include "numbers/format/p3109_cases.hpp"

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

TEST_CASE("operations of one operand are the report's in every mode") {
    check([](tally& to) {
        const auto ways = projections(5);
        compare_unary<se<4, 2>, sf<3, 2>>(to, ways);
        compare_unary<sf<4, 1>, ue<5, 3>>(to, ways);
        compare_unary<se<8, 4>, se<6, 3>>(to, ways, 7);
        compare_unary<ue<8, 1>, uf<4, 2>>(to, ways, 17);
        compare_unary<mp::half, se<8, 3>>(to, ways, 3997);
    });
}

TEST_CASE("operations of two operands of different formats are the report's in every mode") {
    check([](tally& to) {
        const auto ways = projections(3);
        compare_binary<se<3, 1>, sf<4, 2>, ue<5, 2>>(to, ways, 3);
        compare_binary<se<8, 4>, ue<8, 1>, sf<4, 2>>(to, ways, 5021);
        compare_binary<se<8, 3>, sf<8, 1>, mp::bfloat16>(to, ways, 6039);
    });
}

TEST_CASE("operations of three operands of different formats are the report's in every mode") {
    check([](tally& to) {
        const auto ways = projections(3);
        compare_ternary<se<3, 2>, sf<3, 1>, ue<4, 2>, se<5, 3>>(to, ways, 11);
        compare_ternary<ue<8, 1>, se<8, 4>, sf<8, 3>, mp::half>(to, ways, 1024 * 128 - 5);
    });
}

TEST_CASE("functions of one format of P3109 are the report's in every mode") {
    check([](tally& to) {
        const auto ways = projections(1);
        compare_functions<se<5, 2>>(to, ways, 13);
        compare_functions<sf<4, 3>>(to, ways, 3);
        compare_functions<ue<4, 2>>(to, ways, 3);
        compare_functions<uf<5, 5>>(to, ways, 19);
    });
}

TEST_CASE("comparisons and classes of numbers of different formats are those of their values") {
    check([](tally& to) {
        compare_predicates<se<4, 2>, ue<5, 1>>(to);
        compare_predicates<sf<5, 4>, uf<4, 4>>(to);
        compare_predicates<se<3, 1>, se<3, 1>>(to);
    });
}

TEST_CASE("properties of formats are those of the report's table") {
    using binary8 = se<8, 4>;
    static_assert(operations::bitwidth_of<binary8>() == 8 && operations::bitwidth_of<float>() == 32);
    static_assert(operations::precision_of<binary8>() == 4 && operations::precision_of<mp::bfloat16>() == 8);
    static_assert(operations::exponent_bias_of<binary8>() == 8 &&
                  operations::exponent_bias_of<ue<8, 4>>() == 16);
    static_assert(operations::exponent_bitwidth_of<uf<8, 4>>() == 5);
    static_assert(operations::trailing_significand_bitwidth_of<mp::half>() == 10);
    static_assert(operations::signedness_of<uf<8, 1>>() == mp::signedness::is_unsigned);
    static_assert(operations::domain_of<uf<8, 1>>() == mp::domain::finite);
    CHECK(static_cast<float>(operations::max_finite_of<sf<8, 4>>()) == 240);
    CHECK(static_cast<float>(operations::min_finite_of<sf<8, 4>>()) == -240);
    CHECK(operations::min_finite_of<ue<8, 4>>().bits() == 0);
    CHECK(static_cast<float>(operations::min_positive_of<se<4, 2>>()) == 0.25F);
    CHECK(static_cast<float>(operations::max_subnormal_of<se<8, 3>>()) == 0x3p-17F);
    CHECK(static_cast<float>(operations::min_normal_of<se<8, 3>>()) == 0x1p-15F);
    CHECK(mp::isnan(operations::max_subnormal_of<se<8, 1>>()));
    // Section 4.16: beyond the last number there is none.
    CHECK(operations::next_greater_than(operations::max_finite_of<se<4, 2>>()).bits() == 7);
    CHECK(mp::isnan(operations::next_greater_than(se<4, 2>::from_bits(7))));
    CHECK(mp::isnan(operations::next_greater_than(operations::max_finite_of<sf<4, 2>>())));
    CHECK(mp::isnan(operations::next_less_than(ue<4, 2>(0))));
    CHECK(operations::next_less_than(se<4, 2>(0)).bits() == 9);
    CHECK(operations::next_greater_than(se<4, 2>::from_bits(9)).bits() == 0);
}

TEST_CASE("formats of two bits have the values of annex C, and take what the report's others do") {
    const auto values = []<class T>(std::type_identity<T>) {
        std::array<float, 4> result{};
        for (unsigned i = 0; i < 4; ++i)
            result[i] = static_cast<float>(T::from_bits(static_cast<std::uint8_t>(i)));
        return result;
    };
    const auto se1 = values(std::type_identity<se<2, 1>>{});
    CHECK((se1[0] == 0 && se1[1] == INFINITY && std::isnan(se1[2]) && se1[3] == -INFINITY));
    const auto sf1 = values(std::type_identity<sf<2, 1>>{});
    CHECK((sf1[0] == 0 && sf1[1] == 1 && std::isnan(sf1[2]) && sf1[3] == -1));
    const auto ue2 = values(std::type_identity<ue<2, 2>>{});
    CHECK((ue2[0] == 0 && ue2[1] == 0.5F && ue2[2] == INFINITY && std::isnan(ue2[3])));
    CHECK((values(std::type_identity<uf<2, 1>>{})[2] == 1 &&
           values(std::type_identity<uf<2, 2>>{})[1] == 0.5F));
    CHECK(operations::min_positive_of<se<2, 1>>().bits() == 1);
    CHECK(mp::isnan(operations::min_normal_of<se<2, 1>>()));
    CHECK(mp::isnan(operations::min_normal_of<ue<2, 2>>()));
    check([](tally& to) {
        const auto ways = projections(1);
        compare_binary<sf<2, 1>, ue<2, 2>, uf<2, 2>>(to, ways);
        compare_binary<ue<3, 2>, se<2, 1>, se<2, 1>>(to, ways);
    });
}

TEST_CASE("what rounds to zero is plus zero in formats that have minus zero") {
    const auto tiny = se<8, 1>::from_bits(0x81);
    CHECK(operations::multiply<mp::half>(tiny, operations::abs<se<8, 1>>(tiny)).bits() == 0);
    CHECK(operations::negate<mp::bfloat16>(se<8, 1>(0)).bits() == 0);
}

TEST_CASE("kappa counts the values between approximate and defined results") {
    using value = se<8, 4>;
    operations::kappa_measure kappa;
    kappa.add(value(1), value(1.125F));
    CHECK(kappa.value() == 1);
    kappa.add(value::from_bits(3), value::from_bits(0x81 + 1));
    CHECK(kappa.value() == 5);
    kappa.add(value(INFINITY), value(1));
    CHECK(kappa.value() == INFINITY);
    kappa.add(value(NAN), value(1));
    CHECK(std::isnan(kappa.value()));
}
