// SPDX-License-Identifier: MIT
// The page about a cast ledger: well formed, complete, and right about lengths.
#include <doctest/doctest.h>
#include <mp/frontends/report/ledger_page.hpp>

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "nn/autocast/ledger_ops.hpp"
#include "page_checks.hpp"

namespace {

namespace ac = mp::autocast;
using namespace ledger_ops;

ac::cast_record record(std::string_view op, std::string_view argument) {
    return {.op = std::string(op),
            .argument = std::string(argument),
            .from = "float",
            .to = "half",
            .casts = 1,
            .losses = {}};
}

struct rectangle {
    double x = 0.0;
    double width = 0.0;
    std::string title;
};

/// The rectangles of a class in the rows of casts; places are in percent of the width.
std::vector<rectangle> rectangles(std::string_view page, const std::string& style) {
    std::size_t at = page.find("<div class=\"casts\">");
    const std::size_t end = page.find("<div class=\"traffic\">", at);
    std::vector<rectangle> result;
    const std::string begin = "<rect class=\"" + style + "\" ";
    const auto number = [&](std::size_t from, std::string_view name) {
        const std::size_t value = page.find(name, from) + name.size();
        return std::atof(std::string(page.substr(value, 20)).c_str());
    };
    for (at = page.find(begin, at); at < end; at = page.find(begin, at + 1)) {
        rectangle it{number(at, " x=\""), number(at, " width=\""), {}};
        const std::size_t title = page.find("<title>", at);
        it.title = page.substr(title + 7, page.find("</title>", at) - title - 7);
        result.push_back(it);
    }
    return result;
}

}  // namespace

TEST_CASE("the page of a run is well formed and takes nothing from anywhere else") {
    ac::cast_ledger ledger;
    const std::vector<float> x{1.0F, 0.0F, 70000.0F, -80000.0F, 1e-9F, 0x1p-20F};
    std::vector<float> y(6);
    {
        const mp::autocast_region region({.cpu = mp::precision::fp16, .ledger = &ledger});
        ac::dispatch(low_copy{}, std::span<const float>(x), ac::out(std::span<float>(y)));
        ac::dispatch(full_copy{}, std::span<const float>(x), ac::out(std::span<float>(y)));
    }
    const std::string page = ac::ledger_page(ledger, "A <run> & \"more\"");
    CHECK(first_fault(page) == "");
    CHECK(has_clean_paths(page));
    for (const char* outside : {"http", "url(", "@import", "src=", "href=", "<script"}) {
        CAPTURE(outside);
        CHECK(page.find(outside) == std::string::npos);
    }
    CHECK(page.find("prefers-color-scheme: dark") != std::string::npos);
    CHECK(occurrences(page, "A &lt;run&gt; &amp; &quot;more&quot;") == 2);
    CHECK(occurrences(page, "<div class=\"casts\">") == 1);
    CHECK(occurrences(page, "<div class=\"traffic\">") == 1);
    CHECK(page.find(
              "<div class=\"box alarm\">The first value that is not finite: infinity in &#39;x&#39; of op "
              "&#39;copy&#39;, element 2") != std::string::npos);
    // 2, 1 and 1 of 5 numbers other than zero.
    CHECK(occurrences(page, "<span class=\"share text-overflowed\">40%</span>") == 1);
    CHECK(occurrences(page, "<span class=\"share text-flushed\">20%</span>") == 1);
    CHECK(occurrences(page, "<span class=\"share text-subnormal\">20%</span>") == 1);
    CHECK(page.find("1 call, lower_precision, computes in half; 1 call, full_precision") !=
          std::string::npos);
    CHECK(page.find("copy, argument x: float to half; 1 cast of 6 numbers, magnitudes 1e-09 to 80000, 2 "
                    "overflowed (40%), 1 became zero (20%), 1 became subnormal (20%), 1 changed (20%)") !=
          std::string::npos);
    CHECK(page.find("<td>copy</td><td>x</td><td>float → half</td><td>1</td><td>0</td><td>6</td><td>1</td>"
                    "<td>2</td><td>1</td><td>1</td><td>1</td>") != std::string::npos);
}

TEST_CASE("bars lie where the logarithms of the magnitudes put them, and shares add up") {
    ac::ledger_contents contents;
    ac::cast_record it = record("mul", "x");
    it.bytes = 6000;
    it.losses = {.elements = 1100,
                 .overflowed = 250,
                 .flushed = 100,
                 .subnormal = 150,
                 .inexact = 300,
                 .zeros = 100,
                 .largest = 0x1p20,
                 .smallest = 0x1p-30};
    contents.casts.push_back(it);
    const std::string page = ac::ledger_page(contents);
    // The axis goes from 2^-31 to 2^21, half from 2^-24 over 2^-14 to 65504.
    const auto place = [](double exponent) { return (exponent + 31.0) / 52.0 * 100.0; };
    const auto check = [&](const rectangle& found, double from, double to) {
        CHECK(std::fabs(found.x - from) <= 0.01);
        CHECK(std::fabs(found.x + found.width - to) <= 0.02);
    };
    REQUIRE(rectangles(page, "zone").size() == 1);
    check(rectangles(page, "zone")[0], place(-14), place(16));
    REQUIRE(rectangles(page, "zone-subnormal").size() == 1);
    check(rectangles(page, "zone-subnormal")[0], place(-24), place(-14));
    const auto flushed = rectangles(page, "bar flushed");
    const auto subnormal = rectangles(page, "bar subnormal");
    const auto normal = rectangles(page, "bar");
    const auto overflowed = rectangles(page, "bar overflowed");
    for (const auto* parts : {&flushed, &subnormal, &normal, &overflowed}) REQUIRE(parts->size() == 2);
    check(flushed[0], place(-30), place(-25));
    check(subnormal[0], place(-25), place(-14));
    check(normal[0], place(-14), place(16));
    check(overflowed[0], place(16), place(20));
    // Of 1000 numbers other than zero.
    check(overflowed[1], 0, 25);
    check(flushed[1], 25, 35);
    check(subnormal[1], 35, 50);
    check(normal[1], 50, 100);
    CHECK(overflowed[1].title.find("250 overflowed (25%)") != std::string::npos);
    CHECK(page.find(">5.9 KiB</span>") != std::string::npos);
}

TEST_CASE("a scaled cast is shown against a range that ends at its largest magnitude") {
    ac::ledger_contents contents;
    ac::cast_record it = record("mul", "x");
    it.to = "float8_e4m3fn";
    it.scaled = true;
    it.losses = {.elements = 10, .largest = 0x1p40, .smallest = 0x1p38};
    contents.casts.push_back(it);
    const std::string page = ac::ledger_page(contents);
    // 448 2^32 is the first of its kind that is not below 2^40; the subnormal numbers begin 2^-9 2^32.
    const auto zone = rectangles(page, "zone");
    REQUIRE(zone.size() == 1);
    CHECK(zone[0].title.find("from 6.71e+07 to 1.92e+12, subnormal ones from 8.39e+06; after scaling") !=
          std::string::npos);
}

TEST_CASE("pages of nothing, of formats of somebody else, and of strange names and numbers are well formed") {
    CHECK(first_fault(ac::ledger_page(ac::ledger_contents{})) == "");
    CHECK(ac::ledger_page(ac::ledger_contents{}).find("Nothing was cast.") != std::string::npos);
    CHECK(ac::ledger_page(ac::ledger_contents{}).find("All values were finite.") != std::string::npos);
    ac::ledger_contents contents;
    for (const char* op :
         {"<b>&\"'", "\x01\x1b", "an_op_with_a_name_that_is_much_longer_than_any_column_of_the_page"}) {
        contents.casts.push_back(record(op, op));
        contents.casts.back().to = "posit<8>";
        contents.casts.back().losses = {.elements = 3, .flushed = 1, .largest = 3.0, .smallest = 3.0};
    }
    contents.casts.push_back(record("empty", "x"));
    contents.casts.push_back(record("reused", "w"));
    contents.casts.back().casts = 0;
    contents.casts.back().reused = 4;
    contents.casts.push_back(record("zeros", "x"));
    contents.casts.back().losses = {.elements = 2, .zeros = 2};
    contents.casts.push_back(record("double", "x"));
    contents.casts.back().losses = {
        .elements = 2, .overflowed = 1, .largest = std::numeric_limits<double>::max(), .smallest = 5e-324};
    contents.ops.push_back({"<i>", mp::op_category::promote, mp::precision::bf16, "<u>", "<s>", 1});
    contents.first_non_finite = {"<q>", "&", "<layer>", 0, false, ac::value_origin::kernel, 0};
    const std::string page = ac::ledger_page(contents, "<title>");
    CHECK(first_fault(page) == "");
    CHECK(has_clean_paths(page));
    CHECK(page.find("nan") == std::string::npos);
    CHECK(page.find("=\"inf") == std::string::npos);
    CHECK(page.find(">zeros only</text>") != std::string::npos);
    CHECK(page.find(">no numbers</text>") != std::string::npos);
    CHECK(page.find(">0 made, 4 reused</span>") != std::string::npos);
    for (const char* name : {"<b>", "<i>", "<u>", "<s>", "<q>", "<layer>"}) {
        CHECK(page.find(name) == std::string::npos);
    }
}
