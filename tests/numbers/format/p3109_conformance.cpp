// SPDX-License-Identifier: MIT
// The query for operation specializations of IEEE P3109, and the list of operations by annex G of the report.
#include <doctest/doctest.h>

#include <mp/numbers/format/p3109/conformance.hpp>

#include <string>
#include <vector>

namespace {

using mp::p3109_operations::operation_group;
using mp::p3109_operations::provides;
using mp::p3109_operations::standard_operations;

int count_of(operation_group group) {
    int result = 0;
    for (const auto& op : standard_operations) result += op.group == group ? 1 : 0;
    return result;
}

}  // namespace

TEST_CASE("the list has as many operations in each group as annex G") {
    CHECK(count_of(operation_group::core) == 32);
    CHECK(count_of(operation_group::basic) == 16);
    CHECK(count_of(operation_group::full) == 21);
    CHECK(count_of(operation_group::meta) == 12);
    CHECK(count_of(operation_group::block_core) == 3);
    CHECK(count_of(operation_group::reductions) == 3);
    int elementwise = 0;
    for (const auto& op : standard_operations) elementwise += op.is_elementwise ? 1 : 0;
    CHECK(elementwise == 19 + 12 + 21);  // groups KA but for its three conversions, KB and KC
    for (const auto& one : standard_operations) {
        int same = 0;
        for (const auto& other : standard_operations) same += one.name == other.name ? 1 : 0;
        CHECK(same == 1);
    }
}

TEST_CASE("specializations of the report are provided") {
    // The examples of sections 4.1, 4.6 and D.2.
    static_assert(provides("Exp<Binary8p4se, Binary8p3ue, (NearestTiesToEven, SatNone)>"));
    static_assert(provides("Exp<Binary8p3se, Binary8p4se, (NearestTiesToEven, SatFinite)>"));
    CHECK(
        provides("BlockDotProduct<8, Binary8p1uf, Binary8p4se, Binary8p1uf, Binary8p4se, binary32, "
                 "(NearestTiesToEven, SatNone)>"));
    CHECK(provides("Add<Binary8p3se,Binary4p2sf,binary32,(ToOdd,SatPropagate)>"));
    CHECK(
        provides("ScaledAdd<(Binary8p1uf, Binary8p4se), (Binary8p1uf, Binary4p2sf), BFloat16, (TowardZero, "
                 "SatNone)>"));
    CHECK(
        provides("BlockFMA<4, Binary8p1uf, Binary8p4se, Binary8p1uf, Binary8p4se, Binary8p1uf, Binary8p4se, "
                 "Binary8p1uf, Binary8p3se, (StochasticC12, SatFinite)>"));
    CHECK(provides(
        "ConvertToBlockMaxAbsFinite<32, binary32, Binary8p1uf, Binary8p4se, (TowardPositive, SatNone), "
        "(NearestTiesToEven, SatFinite)>"));
    CHECK(provides("IsOne<Binary2p1sf>"));
    CHECK(provides("CompareLess<Binary16p5ue, binary32>"));
    CHECK(provides("NextGreaterThan<Binary8p4se>"));
}

TEST_CASE("other texts are not") {
    const std::vector<std::string> texts{
        "",
        "Add",
        "Add<",
        "Add<>",
        "Add<Binary8p3se, Binary8p3se, (NearestTiesToEven, SatNone)>",
        "Add<Binary8p3se, Binary8p3se, Binary8p3se, Binary8p3se, (NearestTiesToEven, SatNone)>",
        "Add<Binary8p3se, Binary8p3se, Binary8p3se, (NearestTiesToEven)>",
        "Add<Binary8p3se, Binary8p3se, Binary8p3se, (NearestTiesToEven, OvfInf)>",
        "Add<Binary8p8se, Binary8p3se, Binary8p3se, (NearestTiesToEven, SatNone)>",
        "Add<Binary17p3se, Binary8p3se, Binary8p3se, (NearestTiesToEven, SatNone)>",
        "Add<Binary08p3se, Binary8p3se, Binary8p3se, (NearestTiesToEven, SatNone)>",
        "Add<Binary8p3s, Binary8p3se, Binary8p3se, (NearestTiesToEven, SatNone)>",
        "Add<binary64, Binary8p3se, Binary8p3se, (NearestTiesToEven, SatNone)>",
        "Convert<Binary8p3se, Binary8p3se, (StochasticA, SatNone)>",
        "Convert<Binary8p3se, Binary8p3se, (StochasticA33, SatNone)>",
        "Convert<Binary8p3se, Binary8p3se, (StochasticD8, SatNone)>",
        "Exp<Binary8p3se, binary32, (NearestTiesToEven, SatNone)>",
        "BlockReduceAdd<0, Binary8p1uf, Binary8p4se, binary32, (NearestTiesToEven, SatNone)>",
        "ReduceAdd<8, Binary8p1uf, Binary8p4se, binary32, (NearestTiesToEven, SatNone)>",
        "ScaledIsOne<Binary8p1uf, Binary8p4se>",
        "ScaledAdd<(Binary16p1se, Binary8p4se), (Binary8p1uf, Binary4p2sf), BFloat16, (ToOdd, SatNone)>",
        "Pow<Binary8p3se, Binary8p3se, Binary8p3se, (NearestTiesToEven, SatNone)>"};
    for (const std::string& text : texts) {
        CAPTURE(text);
        CHECK_FALSE(provides(text));
    }
}
