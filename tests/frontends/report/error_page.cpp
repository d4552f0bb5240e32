// SPDX-License-Identifier: MIT
// Pages of error histograms.
#include <mp/frontends/report/error_page.hpp>

#include <doctest/doctest.h>

#include <string>

#include "page_checks.hpp"

TEST_CASE("a page of errors is well formed and has quantiles and bars") {
    mp::error_histogram errors;
    for (int i = 0; i < 1000; ++i) errors.add(i < 100 ? 0.0 : 0x1p-12 * (1 + i));
    const mp::report::named_errors shown[] = {{"ulps of <x>", errors}, {"nothing", {}}};
    const std::string page = mp::report::error_page("half & double", shown);
    CHECK(first_fault(page) == "");
    CHECK(page.find("<h1>half &amp; double</h1>") != std::string::npos);
    CHECK(page.find("<td>ulps of &lt;x&gt;</td><td>1000</td><td>100</td><td>0</td>") != std::string::npos);
    // From 2^-3 to 2^-2 there are 512 of them, 128 to a quarter.
    CHECK(page.find("128 from 2^-3<") != std::string::npos);
    CHECK(page.find("128 from 2^-2.68<") != std::string::npos);
    CHECK(page.find("2^-2<") == std::string::npos);
    CHECK(mp::report::error_chart("none", {}).empty());
}
