// SPDX-License-Identifier: MIT
// The log of a scaler: what it keeps and counts, its lines and its table, there and back.
#include <doctest/doctest.h>
#include <mp/loss_scaling.hpp>
#include <mp/nn/scaling/event_log.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <deque>
#include <limits>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nn/scaling/thrown.hpp"

namespace {

using kind = mp::scale_change_kind;

mp::scale_event clean(std::uint64_t iteration, float scale) {
    return {.iteration = iteration, .change = {scale, scale, kind::unchanged}, .applied = 1};
}

mp::scale_event overflow(std::uint64_t iteration, float scale, std::uint64_t infinities = 1) {
    return {.iteration = iteration,
            .change = {scale, scale / 2, kind::backed_off},
            .seen = {.infinities = infinities},
            .skipped = 1,
            .parameter = 4,
            .element = 17};
}

/// Any event at all, its floats taken from bits.
mp::scale_event any_event(std::mt19937_64& random) {
    const auto number = [&] { return random() >> (random() % 64); };
    const auto scale = [&] {
        for (;;) {
            const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
            if (value == value) return value;  // NaN compares different even if it comes back
        }
    };
    mp::scale_event event;
    event.iteration = number();
    event.change = {scale(), scale(), static_cast<kind>(random() % 13)};
    event.seen = {number(), number(), number(),
                  number(), number(), number(),
                  number(), number(), std::bit_cast<double>(random() >> 2U)};
    event.applied = static_cast<std::uint32_t>(random());
    event.skipped = static_cast<std::uint32_t>(random() % 2);
    if (random() % 2 == 0) event.parameter = number();
    if (random() % 2 == 0) event.element = number();
    constexpr std::string_view bytes = "ab,\"\n\r\t ;'\0\xC3\xA4=";
    std::string name;
    for (std::uint64_t i = random() % 48; i > 0; --i) name += bytes[random() % bytes.size()];
    event.parameter_name = mp::short_name(name);
    return event;
}

std::string refusal(std::string_view table) {
    return thrown<mp::argument_error>([&] { (void)mp::scale_event_log::read_csv(table); });
}

const std::string header =
    "iteration,scale_before,scale_after,kind,infinities,nans,values,zeros,flushed,subnormals,overflows,large,"
    "largest,applied,skipped,parameter,element,parameter_name\n";

}  // namespace

TEST_CASE("every kind of change has a name, by which it is found again") {
    CHECK(mp::to_string(kind::unchanged) == "unchanged");
    CHECK(mp::to_string(kind::backed_off) == "backed_off");
    CHECK(mp::to_string(kind::no_gradients) == "no_gradients");
    CHECK(mp::to_string(kind::at_ceiling) == "at_ceiling");
    CHECK(mp::to_string(kind::failed) == "failed");
    CHECK(mp::to_string(static_cast<kind>(200)) == "unknown");
    std::set<std::string_view> names;
    for (int i = 0; i <= static_cast<int>(kind::failed); ++i) {
        const std::string_view name = mp::to_string(static_cast<kind>(i));
        names.insert(name);
        REQUIRE(mp::scale_change_kind_named(name).has_value());
        CHECK(*mp::scale_change_kind_named(name) == static_cast<kind>(i));
    }
    CHECK(names.size() == 13);
    CHECK_FALSE(mp::scale_change_kind_named("backed off").has_value());
    CHECK_FALSE(mp::scale_change_kind_named("").has_value());
}

TEST_CASE("the log keeps the newest events in order and counts those that it drops") {
    for (const std::size_t capacity : {1U, 2U, 3U, 7U}) {
        CAPTURE(capacity);
        mp::scale_event_log log(capacity);
        CHECK(log.capacity() == capacity);
        CHECK(log.empty());
        std::deque<mp::scale_event> expected;
        for (std::uint64_t i = 0; i < 25; ++i) {
            log(clean(i, static_cast<float>(i)));
            expected.push_back(clean(i, static_cast<float>(i)));
            if (expected.size() > capacity) expected.pop_front();
            REQUIRE(log.size() == expected.size());
            CHECK(log.dropped() == i + 1 - expected.size());
            CHECK(log.totals().iterations == i + 1);
            CHECK(std::equal(log.begin(), log.end(), expected.begin(), expected.end()));
            CHECK(log[0] == expected.front());
        }
        log.clear();
        CHECK(log.empty());
        CHECK(log.begin() == log.end());
        CHECK(log.totals() == mp::scale_event_totals{});
        log(clean(3, 1.0F));
        CHECK(log.begin()->iteration == 3);
    }
}

TEST_CASE("logging stays in the memory that was taken at the beginning") {
    static_assert(noexcept(std::declval<mp::scale_event_log&>()(std::declval<const mp::scale_event&>())));
    mp::scale_event_log log(5);
    std::set<const mp::scale_event*> places;
    for (std::uint64_t i = 0; i < 5; ++i) log(clean(i, 1.0F));
    for (const mp::scale_event& event : log) places.insert(&event);
    for (std::uint64_t i = 5; i < 500; ++i) log(clean(i, 1.0F));
    for (const mp::scale_event& event : log) CHECK(places.count(&event) == 1);
    CHECK(places.size() == 5);
}

TEST_CASE("a capacity that cannot be is refused") {
    CHECK(thrown<mp::argument_error>([] { mp::scale_event_log log(0); }) ==
          "mp::scale_event_log: capacity is 0; it must be at least 1 and fit into memory");
    CHECK(holds(thrown<mp::argument_error>([] { mp::scale_event_log log(~std::size_t{0}); }),
                "capacity is 1844"));
}

TEST_CASE("the totals tell apart what happened") {
    mp::scale_event_log log(2);
    const auto log_one = [&](kind what, float before, float after, std::uint64_t infinities,
                             std::uint64_t nans, std::uint32_t skipped) {
        log({.change = {before, after, what},
             .seen = {.infinities = infinities, .nans = nans},
             .skipped = skipped});
    };
    log_one(kind::unchanged, 8, 8, 0, 0, 0);
    log_one(kind::grown, 8, 16, 0, 0, 0);
    log_one(kind::growth_refused, 16, 16, 0, 0, 0);
    log_one(kind::backed_off, 16, 8, 2, 1, 1);
    log_one(kind::vanished, 8, 4, 0, 5, 2);
    log_one(kind::replaced, 4, 8, 0, 0, 0);
    log_one(kind::absorbed, 8, 8, 1, 0, 1);
    log_one(kind::nan_kept, 8, 8, 0, 1, 1);
    log_one(kind::at_floor, 8, 7, 1, 0, 1);
    log_one(kind::at_floor, 7, 7, 1, 0, 1);
    log_one(kind::at_ceiling, 7, 9, 0, 0, 0);
    log_one(kind::at_ceiling, 9, 9, 0, 0, 0);
    log_one(kind::unchanged, 9, 9, 1, 0, 0);  // a policy that applies all the same
    log({.seen = {.values = 10, .zeros = 4, .flushed = 3}});
    const mp::scale_event_totals& totals = log.totals();
    CHECK(totals.iterations == 14);
    CHECK(log.dropped() == 12);
    CHECK(totals.skips == 6);
    CHECK(totals.with_infinities == 5);
    CHECK(totals.with_nans_only == 2);
    CHECK(totals.growths == 2);
    CHECK(totals.backoffs == 3);
    CHECK(totals.absorbed == 1);
    CHECK(totals.at_floor == 2);
    CHECK(totals.at_ceiling == 2);
    CHECK(totals.replaced == 1);
    CHECK(totals.flushed == 3);
    CHECK(totals.nonzero == 6);
}

TEST_CASE("an event is one line that says what happened and where") {
    mp::scale_event event = overflow(1832, 65536.0F, 3);
    event.parameter_name = mp::short_name("layer4.weight");
    CHECK(mp::to_string(event) ==
          "iteration 1832: 65536 -> 32768 backed off, 3 infinities, first in 'layer4.weight'[17]");
    event.parameter_name = {};
    event.seen = {.infinities = 1, .nans = 2};
    CHECK(mp::to_string(event) ==
          "iteration 1832: 65536 -> 32768 backed off, 1 infinity, 2 NaNs, first in parameter 4[17]");
    event.parameter_name = mp::short_name("a\nb\x1b[2J");
    CHECK(holds(mp::to_string(event), "'a\\x0ab\\x1b[2J'[17]"));
    event = clean(5, 0x1p-20F);
    CHECK(mp::to_string(event) == "iteration 5: 9.536743e-07 unchanged");
    event.seen.nans = 1;
    CHECK(mp::to_string(event) == "iteration 5: 9.536743e-07 unchanged, 1 NaN, 1 optimizer stepped");
    event.applied = 2;
    event.skipped = 1;
    event.seen = {.infinities = 0, .nans = 1, .values = 50, .flushed = 7};
    CHECK(mp::to_string(event) ==
          "iteration 5: 9.536743e-07 unchanged, 1 NaN, 2 optimizers stepped and 1 skipped, 7 of 50 values "
          "flushed");
    event = {.change = {2.0F, std::numeric_limits<float>::infinity(), kind::grown}};
    CHECK(mp::to_string(event) == "iteration 0: 2 -> inf grown");
}

TEST_CASE("clean iterations without a change are summarised in a line") {
    mp::scale_event_log log(100);
    CHECK(log.to_text().empty());
    for (std::uint64_t i = 0; i < 10; ++i) log(clean(i, 8.0F));
    log(overflow(10, 8.0F));
    log(clean(11, 4.0F));
    log({.iteration = 12, .change = {4.0F, 8.0F, kind::grown}, .applied = 1});
    log(clean(13, 8.0F));
    log(clean(14, 8.0F));
    log(clean(20, 8.0F));  // another run of the program: not in a row with 14
    log(clean(21, 9.0F));  // changed outside of the log
    log(clean(22, 9.0F));
    CHECK(log.to_text() ==
          "iterations 0 to 9: 8 unchanged\n"
          "iteration 10: 8 -> 4 backed off, 1 infinity, first in parameter 4[17]\n"
          "iteration 11: 4 unchanged\n"
          "iteration 12: 4 -> 8 grown\n"
          "iterations 13 to 14: 8 unchanged\n"
          "iteration 20: 8 unchanged\n"
          "iterations 21 to 22: 9 unchanged\n");
    mp::scale_event_log small(2);
    for (const mp::scale_event& event : log) small(event);
    CHECK(small.to_text() == "(16 earlier iterations are not kept)\niterations 21 to 22: 9 unchanged\n");
    mp::scale_event measured = clean(0, 1.0F);
    measured.seen = {.values = 100, .flushed = 4};
    small.clear();
    small(measured);
    ++measured.iteration;
    small(measured);
    CHECK(small.to_text() == "iterations 0 to 1: 1 unchanged, 8 of 200 values flushed\n");
}

TEST_CASE("the table is what RFC 4180 and the columns say") {
    mp::scale_event_log log(4);
    CHECK(log.to_csv() == header);
    mp::scale_event event = overflow(7, 0.3F, 3);
    event.seen.largest = 0.1;
    event.parameter_name = mp::short_name("a \"b\", c");
    log(event);
    log(clean(8, 65536.0F));
    CHECK(log.to_csv() == header +
                              "7,0.3,0.15,backed_off,3,0,0,0,0,0,0,0,0.1,0,1,4,17,\"a \"\"b\"\", c\"\n"
                              "8,65536,65536,unchanged,0,0,0,0,0,0,0,0,0,1,0,,,\n");
}

TEST_CASE("whatever is logged is read back exactly") {
    std::mt19937_64 random(20);
    mp::scale_event_log log(2000);
    for (int i = 0; i < 2000; ++i) log(any_event(random));
    const std::vector<mp::scale_event> events = mp::scale_event_log::read_csv(log.to_csv());
    REQUIRE(events.size() == 2000);
    CHECK(std::equal(log.begin(), log.end(), events.begin()));
    CHECK(mp::scale_event_log::read_csv(header).empty());

    mp::scale_event odd = clean(0, std::numeric_limits<float>::infinity());
    odd.change.before = std::numeric_limits<float>::denorm_min();
    odd.seen.largest = std::numeric_limits<double>::denorm_min();
    log.clear();
    log(odd);
    CHECK(mp::scale_event_log::read_csv(log.to_csv()).front() == odd);
    odd.change.before = std::numeric_limits<float>::quiet_NaN();
    log.clear();
    log(odd);
    const float read = mp::scale_event_log::read_csv(log.to_csv()).front().change.before;
    CHECK((std::bit_cast<std::uint32_t>(read) & 0x7fffffffU) > 0x7f800000U);
}

TEST_CASE("lines may end as RFC 4180 has it, without an end, and after a byte order mark") {
    const std::string line = "7,4,2,backed_off,3,0,0,0,0,0,0,0,0.1,0,1,4,17,\"a\r\nb\"";
    std::string table = "\xEF\xBB\xBF" + header;
    table.insert(table.size() - 1, "\r");
    const auto events = mp::scale_event_log::read_csv(table + line + "\r\n" + line);
    REQUIRE(events.size() == 2);
    CHECK(events[0] == events[1]);
    CHECK(events[0].parameter_name.view() == "a\r\nb");
}

TEST_CASE("a table that is not one is refused with line and column") {
    const std::string good = "7,4,2,backed_off,3,0,0,0,0,0,0,0,0.1,0,1,4,17,name\n";
    REQUIRE(mp::scale_event_log::read_csv(header + good).size() == 1);
    CHECK(refusal("") == "mp::scale_event_log::read_csv: line 1 is missing; it must name the columns");
    CHECK(
        holds(refusal("iteration,kind\n"), "read_csv: line 1 is 'iteration,kind'; it must name the columns"));
    CHECK(holds(refusal(header.substr(0, header.size() - 1) + ",more\n"), "line 1 is 'iteration,"));
    CHECK(holds(refusal(good), "line 1 is '7,4,2"));
    CHECK(
        refusal(header + good + "\n") ==
        "mp::scale_event_log::read_csv: the number of cells in line 3 is 1; it must be 18, as in the header");
    CHECK(holds(refusal(header + "1,2\n" + good), "in line 2 is 2; it must be 18"));

    const auto with = [&](std::size_t column, const std::string& cell) {
        std::string line = good + good;
        std::size_t begin = good.size();
        for (std::size_t i = 1; i < column; ++i) begin = line.find(',', begin) + 1;
        line.replace(begin, line.find_first_of(",\n", begin) - begin, cell);
        return refusal(header + line);
    };
    CHECK(with(1, "x") ==
          "mp::scale_event_log::read_csv: line 3, column 1 (iteration) is 'x'; it must be a whole number "
          "from 0 "
          "to 2^64 - 1");
    for (const char* number : {"-1", "1.5", "", " 1", "1 ", "18446744073709551616", "0x1", "1e3", "+1"}) {
        CAPTURE(number);
        CHECK(holds(with(5, number), "line 3, column 5 (infinities) is '"));
    }
    CHECK(holds(with(15, "4294967296"),
                "line 3, column 15 (skipped) is '4294967296'; it must be a whole number"));
    for (const char* number : {"1e39", "", "1,5", "1.5.1", "two"}) {
        CAPTURE(number);
        CHECK(holds(with(2, number), "line 3"));
    }
    CHECK(holds(with(4, "grew"), "column 4 (kind) is 'grew'; it must be the name of a kind of change"));
    CHECK(holds(with(13, "1e999"), "column 13 (largest)"));
    CHECK(holds(with(18, std::string(48, 'n')), "column 18 (parameter_name)"));
    CHECK(holds(with(18, "\"open"), "line 3, column 18 has a quote that is not closed"));
    CHECK(holds(with(18, "a\"b"), "line 3, column 18 has a quote inside of a cell"));
    CHECK(holds(with(18, "\"a\"b"), "line 3, column 18 has text behind the closing quote"));
    // What is quoted back is neither long nor able to do something to a terminal.
    CHECK(with(4, std::string(100000, 'k')).size() < 300);
    CHECK(holds(with(4, "\x1b[2J"), "is '\\x1b[2J'"));
    // Lines are counted through quoted ends of lines.
    CHECK(holds(refusal(header + "7,4,2,backed_off,3,0,0,0,0,0,0,0,0.1,0,1,4,17,\"a\n\nb\"\nx\n"),
                "line 5 is 1"));
}

TEST_CASE("the log listens to a scaler") {
    struct one_parameter {
        float gradient = 0.0F;
        mp::gradient_report unscale_gradients(float inverse) {
            mp::gradient_report report;
            report.add(0, 1, mp::unscale_and_check(mp::cpu{}, std::span<float>(&gradient, 1), inverse));
            return report;
        }
        void step() {}
        void skip_step() {}
    } optimizer;
    mp::loss_scaler scaler(mp::pytorch_policy{.initial_scale = 8.0F, .growth_interval = 2});
    static_cast<void>(scaler.current_scale());  // as a backward pass does
    mp::scale_event_log log(10);
    scaler.set_listener(log);
    for (const float gradient : {1.0F, 1.0F, std::numeric_limits<float>::infinity(), 1.0F}) {
        optimizer.gradient = gradient;
        (void)scaler.step(optimizer);
        (void)scaler.update();
    }
    CHECK(log.totals().iterations == 4);
    CHECK(log.totals().growths == 1);
    CHECK(log.totals().skips == 1);
    CHECK(log[2] == mp::scale_event_log::read_csv(log.to_csv())[2]);
    CHECK(holds(log.to_text(), "iteration 2: 16 -> 8 backed off, 1 infinity"));
}
