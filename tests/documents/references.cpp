// SPDX-License-Identifier: MIT
// The code of docs/checking.md that needs Boost.
#include <doctest/doctest.h>
#include <mp/check.hpp>
#include <mp/half.hpp>

#include <iostream>
#include <sstream>
#include <vector>

namespace {

TEST_CASE("docs/checking.md: a product against exact sums") {
    const std::vector<mp::half> a_values(4, mp::half(1.0F)), b_values(4, mp::half(0.5F));
    const std::vector<float> c_values(4, 1.0F);
    const auto a = mp::row_major(a_values, 2, 2), b = mp::row_major(b_values, 2, 2);
    const auto c = mp::row_major(c_values, 2, 2);
    std::ostringstream text;
    std::streambuf* const before = std::cout.rdbuf(text.rdbuf());
#include "checking_1.inl"
    std::cout.rdbuf(before);
    CHECK_FALSE(text.str().empty());
    CHECK(third == mp::half(1.0F / 3));
}

}  // namespace
