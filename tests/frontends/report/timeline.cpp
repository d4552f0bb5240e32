// SPDX-License-Identifier: MIT
// The page about a scale's history: well formed, complete, and of bounded length.
#include <doctest/doctest.h>
#include <mp/frontends/report/timeline.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "page_checks.hpp"

namespace {

using kind = mp::scale_change_kind;

/// The data of the line of the scale.
std::string line_of(std::string_view html) {
    const std::size_t svg = html.find("role=\"img\"");
    const std::string_view begin = "<path class=\"scale\" d=\"";
    const std::size_t at = html.find(begin, svg);
    if (at == std::string_view::npos) return {};
    return std::string(html.substr(at + begin.size(), html.find('"', at + begin.size()) - at - begin.size()));
}

mp::scale_event event(std::uint64_t iteration, float before, float after, kind what,
                      std::uint64_t infinities = 0, std::uint64_t nans = 0) {
    return {.iteration = iteration,
            .change = {before, after, what},
            .seen = {.infinities = infinities, .nans = nans},
            .applied = infinities + nans == 0 ? 1U : 0U,
            .skipped = infinities + nans == 0 ? 0U : 1U};
}

std::vector<mp::scale_event> one_of_everything() {
    return {event(10, 8, 8, kind::unchanged),          event(11, 8, 16, kind::grown),
            event(12, 16, 8, kind::backed_off, 3),     event(13, 8, 4, kind::backed_off, 0, 2),
            event(14, 4, 4, kind::absorbed, 1),        event(15, 4, 4, kind::nan_kept, 0, 1),
            event(16, 4, 2, kind::at_floor, 1, 1),     event(17, 2, 2, kind::at_ceiling),
            event(18, 2, 2, kind::growth_refused),     event(19, 2, 64, kind::replaced),
            event(20, 64, 1, kind::disabled, 1),       event(21, 1, 1, kind::no_gradients),
            event(22, 1, 0x1p-129F, kind::vanished, 1)};
}

}  // namespace

TEST_CASE("the timeline is a well-formed page that takes nothing from anywhere else") {
    const std::string page = mp::timeline_page(one_of_everything(), "A <run> & \"more\"\x01");
    CHECK(first_fault(page) == "");
    CHECK(has_clean_paths(page));
    for (const char* outside : {"http", "url(", "@import", "src=", "href=", "<script"}) {
        CAPTURE(outside);
        CHECK(page.find(outside) == std::string::npos);
    }
    CHECK(page.find("prefers-color-scheme: dark") != std::string::npos);
    CHECK(occurrences(page, "A &lt;run&gt; &amp; &quot;more&quot;&#xFFFD;") == 2);
    CHECK(page.find("<run>") == std::string::npos);
    CHECK(page.find(">iteration</div>") != std::string::npos);
    CHECK(page.find(">loss scale</div>") != std::string::npos);
    CHECK(occurrences(page, "class=\"legend\"") == 1);
}

TEST_CASE("every skip and every change has its mark, and what happened as its tooltip") {
    const std::string page = mp::timeline_page(one_of_everything());
    CHECK(occurrences(page, "class=\"mark infinity\"") == 5);
    CHECK(occurrences(page, "class=\"mark nan\"") == 2);
    CHECK(occurrences(page, "class=\"mark growth\"") == 1);
    CHECK(occurrences(page, "class=\"mark backoff\"") == 3);
    CHECK(occurrences(page, "class=\"mark limit\"") == 2);
    CHECK(occurrences(page, "class=\"mark other\"") == 3);
    CHECK(occurrences(page, "class=\"mark") == 16);
    CHECK(occurrences(page, "<title>iteration 12: 16 -&gt; 8 backed off, 3 infinities</title>") == 2);
    CHECK(occurrences(page, "<title>iteration 11: 8 -&gt; 16 grown</title>") == 1);
    // Infinity and NaN differ in their shapes, floor and ceiling as well.
    const auto shape = [&](std::string_view style, std::size_t nth) {
        std::size_t at = 0;
        for (std::size_t i = 0; i <= nth; ++i) at = page.find(style, at) + 1;
        const std::size_t data = page.find('m', page.find(" d=\"", at));
        return page.substr(data, page.find('"', data) - data);
    };
    CHECK(shape("mark infinity", 0) != shape("mark nan", 0));
    CHECK(shape("mark growth", 0) != shape("mark backoff", 0));
    CHECK(shape("mark limit", 0) != shape("mark limit", 1));
}

TEST_CASE("a name from outside cannot leave its tooltip") {
    mp::scale_event bad = event(0, 2, 1, kind::backed_off, 1);
    bad.parameter = 0;
    bad.parameter_name = mp::short_name("</title><script>'\"&\n");
    const std::string page = mp::timeline_page(std::vector{bad});
    CHECK(first_fault(page) == "");
    CHECK(page.find("<script>") == std::string::npos);
    CHECK(page.find("&lt;/title&gt;&lt;script&gt;&#39;&quot;&amp;\\x0a") != std::string::npos);
}

TEST_CASE("the line goes where the scale goes") {
    // 4 iterations over 1000 units: 250 each. The axis reaches from 2^(2 - 1) to 2^(4 + 1), 288 pixels: 72 a
    // power.
    const std::string page =
        mp::timeline_page(std::vector{event(0, 4, 4, kind::unchanged), event(1, 4, 16, kind::grown),
                                      event(2, 16, 8, kind::backed_off, 1), event(3, 8, 8, kind::unchanged)});
    CHECK(line_of(page) == "M0 216H500V72H750V144H1000");
    // A gap in the numbers of iterations is a gap in the line: to it 4 until 2, from it 4 from 3.
    CHECK(line_of(
              mp::timeline_page(std::vector{event(0, 4, 4, kind::unchanged), event(1, 4, 4, kind::unchanged),
                                            event(3, 4, 4, kind::unchanged)})) == "M0 144H500M750 144H1000");
}

TEST_CASE("the share of flushed values is drawn if it was measured") {
    std::vector<mp::scale_event> events = one_of_everything();
    CHECK(mp::timeline_page(events).find("became zero") == std::string::npos);
    events[3].seen.values = 120;
    events[3].seen.zeros = 20;
    events[3].seen.flushed = 25;
    const std::string page = mp::timeline_page(events);
    CHECK(first_fault(page) == "");
    CHECK(page.find("became zero") != std::string::npos);
    CHECK(page.find("<title>largest share: 25%</title>") != std::string::npos);
    // Iteration 3 of 13 is from 3 / 13 * 1000 = 230.8 to 307.7, over the full height.
    CHECK(page.find("d=\"M0 60H230V0H307V60H1000V60Z\"") != std::string::npos);
    events[3].seen.flushed = 0;
    CHECK(mp::timeline_page(events).find("<title>largest share: 0%</title>") != std::string::npos);
}

TEST_CASE("the table has the totals, those of dropped events too") {
    mp::scale_event_log log(3);
    for (const mp::scale_event& it : one_of_everything()) log(it);
    const std::string page = mp::timeline_page(log);
    CHECK(first_fault(page) == "");
    CHECK(page.find("the last 3 of 13 iterations") != std::string::npos);
    CHECK(page.find("<td>iterations</td><td>13</td>") != std::string::npos);
    CHECK(page.find("<td>with a skipped step</td><td>7</td>") != std::string::npos);
    CHECK(page.find("<td>with infinities</td><td>5</td>") != std::string::npos);
    CHECK(page.find("<td>with NaN and no infinity</td><td>2</td>") != std::string::npos);
    CHECK(page.find("<td>back-offs</td><td>4</td>") != std::string::npos);
    CHECK(page.find("<td>largest scale</td><td>64</td>") != std::string::npos);
    CHECK(page.find("<td>smallest scale</td><td>2<sup>-129</sup></td>") != std::string::npos);
}

TEST_CASE("an empty log and a single event have their pages") {
    const mp::scale_event_log empty(1);
    CHECK(first_fault(mp::timeline_page(empty)) == "");
    CHECK(mp::timeline_page(empty).find("There are no events") != std::string::npos);
    CHECK(mp::timeline_page(empty).find("<svg") == std::string::npos);
    CHECK(mp::timeline_page(std::vector<mp::scale_event>{}) == mp::timeline_page(empty));
    for (const std::uint64_t iteration : {std::uint64_t{0}, std::uint64_t{1} << 53U, ~std::uint64_t{0}}) {
        const std::string page =
            mp::timeline_page(std::vector{event(iteration, 65536, 32768, kind::backed_off, 1)});
        CHECK(first_fault(page) == "");
        CHECK(has_clean_paths(page));
        CHECK(occurrences(page, "class=\"mark") == 2);
        CHECK(page.find(">" + std::to_string(iteration) + "</text>") != std::string::npos);
        CHECK(line_of(page) == "M0 96H1000V192H1000");
    }
}

TEST_CASE("scales that no axis can show leave gaps and are counted") {
    const float infinity = std::numeric_limits<float>::infinity();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const std::string page = mp::timeline_page(
        std::vector{event(0, 4, infinity, kind::grown), event(1, infinity, nan, kind::backed_off, 1),
                    event(2, nan, 0, kind::backed_off, 1), event(3, 0, -1, kind::replaced),
                    event(4, -1, 4, kind::replaced), event(5, 4, 4, kind::unchanged)});
    CHECK(first_fault(page) == "");
    CHECK(has_clean_paths(page));
    CHECK(page.find("4 iterations have a scale that is not a finite number above 0") != std::string::npos);
    CHECK(line_of(page) == "M0 144H166.7M833.3 144H1000");
    const std::string nothing = mp::timeline_page(std::vector{event(0, nan, nan, kind::unchanged)});
    CHECK(first_fault(nothing) == "");
    CHECK(has_clean_paths(nothing));
}

TEST_CASE("events in any order and of any kind make a well-formed page") {
    std::mt19937_64 random(3);
    for (int round = 0; round < 50; ++round) {
        std::vector<mp::scale_event> events;
        for (std::uint64_t i = random() % 40; i > 0; --i) {
            mp::scale_event it;
            it.iteration = random() >> (random() % 64);
            const auto scale = [&] { return std::bit_cast<float>(static_cast<std::uint32_t>(random())); };
            it.change = {scale(), scale(), static_cast<kind>(random() % 13)};
            it.seen = {random() % 2, random() % 2, random(), random(), random()};
            events.push_back(it);
        }
        const std::string page = mp::timeline_page(events);
        CHECK(first_fault(page) == "");
        CHECK(has_clean_paths(page));
    }
}

TEST_CASE("a long log is thinned so that the page stays small and loses no extreme") {
    std::mt19937_64 random(1);
    std::vector<mp::scale_event> events;
    for (std::uint64_t i = 0; i < 200000; ++i) {
        const auto scale = static_cast<float>(1U << (8 + random() % 8));
        events.push_back(
            event(i, scale, scale, static_cast<kind>(random() % 13), random() % 2, random() % 2));
        events.back().parameter = 7;
        events.back().parameter_name = mp::short_name(std::string(47, '"'));
        events.back().seen.values = 100;
        events.back().seen.flushed = random() % 50;
    }
    events[123456].change.before = 0x1p40F;
    events[100000].seen.flushed = 90;
    const std::string page = mp::timeline_page(events);
    CHECK(page.size() < 400 * 1024);
    CHECK(first_fault(page) == "");
    CHECK(has_clean_paths(page));
    CHECK(occurrences(page, "class=\"mark infinity\"") == 160);
    CHECK(occurrences(page, "class=\"mark nan\"") == 160);
    CHECK(page.find(" growths, iterations 0 to 12") == std::string::npos);
    // 1250 iterations a mark; the counts of one kind add up to all of them.
    std::size_t growths = 0;
    for (std::size_t at = page.find(" growths, iterations"); at != std::string::npos;
         at = page.find(" growths, iterations", at + 1)) {
        growths += std::strtoul(page.c_str() + page.rfind('>', at) + 1, nullptr, 10);
    }
    CHECK(growths == static_cast<std::size_t>(std::count_if(events.begin(), events.end(), [](const auto& it) {
              return it.change.kind == kind::grown;
          })));
    // The axis reaches from 2^7 to 2^41, and the one high scale is there: one power below the top, 288 / 34.
    CHECK(line_of(page).find("V8.5") != std::string::npos);
    CHECK(page.find("largest share: 90%") != std::string::npos);
}

TEST_CASE("as many events as can be drawn one by one are") {
    for (const std::size_t count : {400U, 401U}) {
        std::vector<mp::scale_event> events;
        for (std::uint64_t i = 0; i < count; ++i) events.push_back(event(i, 2, 2, kind::replaced));
        CHECK(occurrences(mp::timeline_page(events), "class=\"mark other\"") == (count == 400 ? 400 : 160));
    }
}
