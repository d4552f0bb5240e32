// SPDX-License-Identifier: MIT
// Charts against places calculated by hand, and text of pages.
#include <doctest/doctest.h>
#include <mp/frontends/report/chart.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "page_checks.hpp"

namespace {

using mp::report::chart;

bool holds(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("what stands at a place stands at its share of the width and of the height") {
    // x from 10 to 20, y from -1 to 3: the point (12.5, 2) is a quarter to the right, and a quarter down.
    chart plot("A \"label\" & more", {10.0, -1.0}, {20.0, 3.0}, 80.0);
    CHECK(plot.unit_x(12.5) == 250.0);
    CHECK(plot.unit_y(2.0) == 20.0);
    plot.mark("up", {12.5, 2.0}, "m-5 5l10 0", "<tip>");
    plot.hover({15.0, 1.0}, "half & half");
    plot.cross("skip", {20.0, -1.0}, "corner");
    plot.text("name", {10.0, 3.0}, 3.0, -4.5, "start", "here");
    plot.upward_text("shape", {15.0, -1.0}, 2.0, 6.0, "up");
    plot.segment("roof", {10.0, 0.0}, {20.0, 2.0});
    plot.bar("bar", 12.0, 14.0, 1.0, "bar");
    plot.polyline("line", {{10.0, -1.0}, {12.5, 3.0}, {15.0, not_a_number}, {17.5, 1.0}, {20.0, 1.0}});
    plot.area("area", {{10.0, 0.0}, {20.0, infinity}, {20.0, 0.0}}, {{10.0, 1.0}, {20.0, 2.0}});
    const std::string html = plot.html();
    CHECK(first_fault(html) == "");
    CHECK(has_clean_paths(html));
    CHECK(holds(html, "aria-label=\"A &quot;label&quot; &amp; more\""));
    CHECK(holds(html,
                "<svg x=\"25%\" y=\"25%\"><path class=\"mark up\" d=\"M0 0m-5 5l10 0\"><title>&lt;tip&gt;"
                "</title></path></svg>"));
    CHECK(holds(html, "cx=\"50%\" cy=\"50%\" r=\"7\"><title>half &amp; half</title>"));
    CHECK(holds(html, "<svg x=\"100%\" y=\"100%\"><title>corner</title>"));
    CHECK(holds(html,
                "<text class=\"name\" x=\"0%\" y=\"0%\" dx=\"3\" dy=\"-4.5\" text-anchor=\"start\">here<"));
    CHECK(holds(
        html, "<svg x=\"50%\" y=\"100%\"><text class=\"shape\" transform=\"translate(2 -6) rotate(-90)\">"));
    CHECK(holds(html, "<line class=\"roof\" x1=\"0%\" y1=\"75%\" x2=\"100%\" y2=\"25%\"/>"));
    CHECK(holds(html, "<rect class=\"bar\" x=\"20%\" y=\"50%\" width=\"20%\" height=\"50%\">"));
    CHECK(holds(html,
                "viewBox=\"0 0 1000 80\" preserveAspectRatio=\"none\"><path class=\"line\" "
                "d=\"M0 80L250 0M750 40L1000 40\"/>"));
    CHECK(holds(html, "<path class=\"area\" d=\"M0 60L1000 60L1000 20L0 40Z\"/>"));
}

TEST_CASE("what is not finite is not drawn") {
    chart plot("", {0.0, 0.0}, {1.0, 1.0});
    const std::string empty = plot.html();
    for (const double bad : {infinity, -infinity, not_a_number}) {
        for (const mp::report::chart_point at : {mp::report::chart_point{bad, 0.5}, {0.5, bad}}) {
            plot.mark("m", at, "l1 1", "t");
            plot.cross("m", at, "t");
            plot.hover(at, "t");
            plot.text("m", at, 0.0, 0.0, "end", "t");
            plot.upward_text("m", at, 0.0, 0.0, "t");
            plot.segment("m", at, {0.5, 0.5});
            plot.segment("m", {0.5, 0.5}, at);
            plot.polyline("m", {at, at});
            plot.area("m", {at}, {at});
        }
        plot.band("m", bad, bad, "t", "t");
    }
    CHECK(plot.html() == empty);
}

TEST_CASE("a narrow chart shows the labels that it has room for, evenly") {
    const auto narrow = [](int ticks, int digits) {
        chart plot("", {0.0, 0.0}, {static_cast<double>(ticks), 1.0});
        for (int i = 0; i <= ticks; ++i) plot.x_tick(i, std::string(static_cast<std::size_t>(digits), '8'));
        const std::string html = plot.html();
        CHECK(occurrences(html, "class=\"tick") == static_cast<std::size_t>(ticks) + 1);
        return occurrences(html, "class=\"tick\"");
    };
    CHECK(narrow(4, 1) == 5);    // 67 pixels apart, 17 wide
    CHECK(narrow(12, 1) == 13);  // 22 apart
    CHECK(narrow(12, 5) == 7);   // 44 wide: every second
    CHECK(narrow(20, 6) == 6);   // 13.5 apart, 51 wide: every fourth
    CHECK(narrow(3, 20) == 2);   // 90 apart, 146 wide: every second
    // A label stands in the middle of its tick, but ends 12 pixels into the margin at most.
    chart plot("", {0.0, 0.0}, {100.0, 1.0});
    plot.x_tick(50.0, "50000000");
    plot.x_tick(90.0, "90000000000");
    plot.x_tick(99.0, "99000");
    plot.x_tick(100.0, "100");
    const std::string html = plot.html();
    CHECK(holds(html, "x=\"50%\" y=\"100%\" dx=\"0\" dy=\"18\" text-anchor=\"middle\">50000000<"));
    CHECK(holds(html, "x=\"90%\" y=\"100%\" dx=\"0\" dy=\"18\" text-anchor=\"middle\">90000000000<"));
    CHECK(holds(html, "x=\"99%\" y=\"100%\" dx=\"14.7\" dy=\"18\" text-anchor=\"end\">99000<"));
    CHECK(holds(html, "x=\"100%\" y=\"100%\" dx=\"0\" dy=\"18\" text-anchor=\"middle\">100<"));
}

TEST_CASE("counts of iterations are whole and exact, powers of two are set as such") {
    chart plot("", {0.0, -3.0}, {1000.0, 20.0});
    const std::uint64_t origin = (std::uint64_t{1} << 63U) + 30;  // ends in 5838
    plot.x_counts(5, origin);
    plot.y_exponents(6);
    const std::string html = plot.html();
    for (const char* label : {">9223372036854776000<", ">9223372036854776200<", ">9223372036854776800<"}) {
        CAPTURE(label);
        CHECK(holds(html, label));
    }
    CHECK(holds(html, ">2<tspan class=\"exponent\" dy=\"-5\">15</tspan>"));
    CHECK(holds(html, ">2<tspan class=\"exponent\" dy=\"-5\">0</tspan>"));
    CHECK(occurrences(html, "tspan class") == 5);  // 0, 5, 10, 15, 20
}

TEST_CASE("steps between ticks are 1, 2 or 5 times a power of ten") {
    CHECK(mp::report::tick_step(7.0, 10) == 1.0);
    CHECK(mp::report::tick_step(20.0, 10) == 2.0);
    CHECK(mp::report::tick_step(21.0, 10) == 5.0);
    CHECK(mp::report::tick_step(51.0, 10) == 10.0);
    CHECK(mp::report::tick_step(12000.0, 12) == 1000.0);
    CHECK(mp::report::tick_step(0.9, 10, 0.01) == doctest::Approx(0.1));
}

TEST_CASE("a band has its name where there is room for it") {
    chart plot("", {0.0, 0.0}, {100.0, 1.0});
    plot.band("band", -50.0, 50.0, "half", "tip");      // of the chart's 270 or 900 pixels
    plot.band("band", 50.0, 60.0, "a tenth", "tip");    // 48 pixels of 27 or 90
    plot.band("band", 60.0, 61.0, "hundredth", "tip");  // 61 pixels of 9
    plot.band("band", 120.0, 130.0, "outside", "tip");
    const std::string html = plot.html();
    CHECK(holds(html, "<rect class=\"band\" x=\"0%\" y=\"0%\" width=\"50%\" height=\"100%\">"));
    CHECK(holds(html, "class=\"band-name\" x=\"25%\""));
    CHECK(holds(html, "class=\"band-name wide\" x=\"55%\""));
    CHECK_FALSE(holds(html, "hundredth"));
    CHECK(occurrences(html, "<rect") == 3);
}

TEST_CASE("titles, entries of legends and text of pages are escaped") {
    chart plot("", {0.0, 0.0}, {1.0, 1.0});
    plot.x_title("<x>");
    plot.y_title("a & b");
    CHECK(holds(plot.html(), "<div class=\"x axis\">&lt;x&gt;</div>"));
    CHECK(holds(plot.html(), "<div class=\"y axis\">a &amp; b</div>"));
    CHECK(mp::report::legend_entry("line red", mp::report::legend_line, "<a>") ==
          "<span><svg viewBox=\"0 0 34 16\"><path class=\"line red\" d=\"M1 8H33\"/></svg>&lt;a&gt;</span>");
    CHECK(mp::report::html_escaped("a<b & \"c\" 'd'\x01") ==
          "a&lt;b &amp; &quot;c&quot; &#39;d&#39;&#xFFFD;");
    CHECK(mp::report::html_typeset("from 2^-14 to 2^16, <x>") ==
          "from 2<sup>-14</sup> to 2<sup>16</sup>, &lt;x&gt;");
    CHECK(mp::report::html_typeset("2^9..2^10") == "2<sup>9</sup>..2<sup>10</sup>");
}
