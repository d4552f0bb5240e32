// SPDX-License-Identifier: MIT
// Traces, there and back, their recorder, and replay against counts and rules of its own.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/convert.hpp>
#include <mp/float8.hpp>
#include <mp/frontends/report/replay.hpp>
#include <mp/frontends/report/replay_page.hpp>
#include <mp/loss_scaling.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "nn/scaling/thrown.hpp"

namespace {

const std::string header = "largest,at_least,infinite,nan,zeros,exponents\n";

std::vector<mp::trace_step> with_magnitudes(std::initializer_list<double> magnitudes) {
    std::vector<mp::trace_step> trace;
    for (const double it : magnitudes) trace.push_back({.largest = it});
    return trace;
}

/// Any trace at all, its doubles taken from bits.
std::vector<mp::trace_step> any_trace(std::mt19937_64& random, int steps) {
    std::vector<mp::trace_step> trace;
    for (int i = 0; i < steps; ++i) {
        mp::trace_step step;
        step.largest = std::bit_cast<double>(random() % 0x7ff0000000000000U);
        step.at_least = random() % 2 == 0;
        step.infinite = random() % 2 == 0;
        step.nan = random() % 2 == 0;
        step.zeros = random() >> 3U;
        for (int e = -1100; e <= 1100; ++e) {
            if (random() % 500 == 0) step.exponents.push_back({e, random() >> (10 + random() % 54)});
        }
        trace.push_back(step);
    }
    return trace;
}

std::string refusal(const std::string& table) {
    return thrown<mp::argument_error>([&] { (void)mp::read_trace_csv(table); });
}

/// Gradients spread over many powers of two, and their trace step.
std::vector<float> gradients_of(std::uint64_t seed, double middle) {
    std::mt19937_64 random(seed);
    std::vector<float> gradients;
    for (int i = 0; i < 500; ++i) {
        const double sign = random() % 2 == 0 ? 1.0 : -1.0;
        const double level = middle + static_cast<double>(random() % 3000) / 100.0 - 15.0;
        gradients.push_back(i % 50 == 0 ? 0.0F : static_cast<float>(sign * std::exp2(level)));
    }
    return gradients;
}

mp::trace_step step_of(const std::vector<float>& gradients) {
    mp::trace_recorder recorder;
    recorder.count_exponents(mp::report_range<mp::half>(mp::cpu{}, gradients));
    recorder.record(mp::gradient_observation{}, 1.0F);
    return recorder.trace().front();
}

}  // namespace

TEST_CASE("whatever trace is written is read back exactly") {
    std::mt19937_64 random(5);
    const std::vector<mp::trace_step> trace = any_trace(random, 300);
    CHECK(mp::read_trace_csv(mp::write_trace_csv(trace)) == trace);
    CHECK(mp::write_trace_csv({}) == header);
    CHECK(mp::read_trace_csv(header).empty());
    const std::vector<mp::trace_step> one{
        {.largest = 0.0123, .nan = true, .zeros = 512, .exponents = {{-20, 7}, {-19, 130}, {-7, 1}}}};
    CHECK(mp::write_trace_csv(one) == header + "0.0123,0,0,1,512,-20:7 -19:130 -7:1\n");
}

TEST_CASE("the columns may be in any order, and all but the magnitude may be left out") {
    CHECK(mp::read_trace_csv("largest\n0.5\n1e-3\n") == with_magnitudes({0.5, 1e-3}));
    const auto trace = mp::read_trace_csv("nan,largest\r\n1,0.5\r\n0,2");
    REQUIRE(trace.size() == 2);
    CHECK(trace[0] == mp::trace_step{.largest = 0.5, .nan = true});
    CHECK(trace[1] == mp::trace_step{.largest = 2.0});
    // What tools write that take the maximum of everything.
    const auto odd = mp::read_trace_csv("largest\ninf\nnan\n");
    CHECK(odd[0] == mp::trace_step{.infinite = true});
    CHECK(odd[1] == mp::trace_step{.nan = true});
}

TEST_CASE("a table that is no trace is refused with line and column") {
    CHECK(refusal("") == "mp::read_trace_csv: line 1 is missing; it must name the columns");
    CHECK(refusal("nan,zeros\n") == "mp::read_trace_csv: line 1 must name a column largest");
    CHECK(
        refusal("largest,amax\n") ==
        "mp::read_trace_csv: line 1, column 2 is 'amax'; it must be one of largest, at_least, infinite, nan, "
        "zeros and exponents, each once");
    CHECK(holds(refusal("largest,nan,largest\n"), "line 1, column 3 is 'largest'"));
    CHECK(
        holds(refusal("largest\n1\n-1\n"), "line 3, column 1 (largest) is '-1'; it must be a finite number"));
    for (const char* number : {"", "x", "1e999", "-inf", "1,", " 1", "0x1p3"}) {
        CAPTURE(number);
        CHECK(holds(refusal("largest\n" + std::string(number) + "\n"), "mp::read_trace_csv: "));
    }
    CHECK(holds(refusal("largest,nan\n1,2\n"), "line 2, column 2 (nan) is '2'; it must be 0 or 1"));
    CHECK(holds(refusal("largest,at_least\n1,true\n"), "line 2, column 2 (at_least) is 'true'"));
    CHECK(holds(refusal("largest,zeros\n1,-3\n"), "line 2, column 2 (zeros) is '-3'"));
    for (const char* cell : {"5", "5:", ":5", "5:1 ", " 5:1", "5:1  6:1", "5:1,6:1", "5:1x", "5:-1", "1.5:1",
                             "6:1 5:1", "5:1 5:1", "1101:1", "-1101:1", "5:18446744073709551616",
                             "5:18446744073709551615 6:1", "99999999999:1"}) {
        CAPTURE(cell);
        CHECK(holds(refusal("largest,exponents\n1,1:1\n1,\"" + std::string(cell) + "\"\n"),
                    "line 3, column 2 (exponents) is '"));
    }
}

TEST_CASE("the range of a format is that of its numbers") {
    CHECK(mp::magnitude_range{} == mp::magnitude_range::of<mp::half>());
    CHECK(mp::magnitude_range::of<mp::half>() == mp::magnitude_range{65504.0, 0x1p-14, 0x1p-24});
    CHECK(mp::magnitude_range::of<mp::float8_e5m2>() == mp::magnitude_range{57344.0, 0x1p-14, 0x1p-16});
    CHECK(mp::magnitude_range::of<mp::bfloat16>() == mp::magnitude_range{0x1.fep127, 0x1p-126, 0x1p-133});
}

TEST_CASE("overflow begins above the largest number, and the policy sees it") {
    const auto trace = with_magnitudes({1.0, 65504.0 / 65536.0, 0.9999, 0.4998, 0.0, 0.49988});
    // 65536: 65536, which is above; 32768: below, below; then growth after 4 clean iterations.
    const mp::replay_result it = mp::replay(trace, mp::pytorch_policy{.growth_interval = 4}, "name");
    CHECK(it.name == "name");
    CHECK(it.scales == std::vector<float>{65536, 32768, 32768, 32768, 32768, 65536});
    CHECK(it.totals.iterations == 6);
    CHECK(it.totals.skips == 1);
    CHECK(it.skipped_steps == std::vector<std::uint64_t>{0});
    CHECK(it.totals.growths == 1);
    CHECK(it.totals.backoffs == 1);
    CHECK(it.final_scale == 65536.0F);
    CHECK(it.smallest_scale == 32768.0F);
    CHECK(it.largest_scale == 65536.0F);
    CHECK_FALSE(it.underflow_known);
    // At scale 1 the format's own numbers decide: the largest half is none too many, the next one is.
    for (const double largest : {65504.0, 65505.0}) {
        const auto result = mp::replay(with_magnitudes({largest}), mp::static_policy{}, "static");
        CHECK(result.totals.skips == (largest > 65504.0 ? 1 : 0));
        const auto e5m2 = mp::replay(with_magnitudes({largest - 8160.0}), mp::static_policy{}, "static",
                                     mp::magnitude_range::of<mp::float8_e5m2>());
        CHECK(e5m2.totals.skips == (largest > 65504.0 ? 1 : 0));
    }
}

TEST_CASE("a NaN or an infinity of the trace is there at every scale") {
    std::vector<mp::trace_step> trace(8);
    trace[2].nan = true;
    trace[5].infinite = true;
    mp::scale_event_log log(10);
    const auto it = mp::replay(trace, mp::static_policy{}, "static", {}, log);
    CHECK(it.totals.skips == 2);
    CHECK(it.totals.with_nans_only == 1);
    CHECK(it.totals.with_infinities == 1);
    CHECK(it.skipped_steps == std::vector<std::uint64_t>{2, 5});
    CHECK(log.size() == 8);
    CHECK(log[2].seen.nans == 1);
    CHECK(log[5].iteration == 5);
    CHECK(log.totals() == it.totals);
}

TEST_CASE("replay moves the scale as the written rules do") {
    std::mt19937_64 random(9);
    std::vector<mp::trace_step> trace(3000);
    for (mp::trace_step& step : trace) {
        step.largest = std::exp2(static_cast<double>(random() % 2000) / 100.0 - 18.0);
        step.nan = random() % 100 == 0;
    }
    const auto it = mp::replay(trace, mp::pytorch_policy{.growth_interval = 5}, "pytorch");
    double scale = 65536.0;
    int clean = 0;
    std::uint64_t skips = 0;
    std::uint64_t run = 0;
    std::uint64_t longest = 0;
    double smallest = scale;
    double largest = scale;
    REQUIRE(it.scales.size() == trace.size());
    for (std::size_t i = 0; i < trace.size(); ++i) {
        REQUIRE(static_cast<double>(it.scales[i]) == scale);
        if (trace[i].nan || trace[i].largest * scale > 65504.0) {
            scale /= 2;
            clean = 0;
            ++skips;
            longest = std::max(longest, ++run);
        } else {
            run = 0;
            if (++clean == 5) {
                scale *= 2;
                clean = 0;
            }
        }
        smallest = std::min(smallest, scale);
        largest = std::max(largest, scale);
    }
    CHECK(it.totals.skips == skips);
    CHECK(it.skipped_steps.size() == skips);
    CHECK(it.longest_skip_run == longest);
    CHECK(longest > 1);
    CHECK(static_cast<double>(it.final_scale) == scale);
    CHECK(static_cast<double>(it.smallest_scale) == smallest);
    CHECK(static_cast<double>(it.largest_scale) == largest);
}

TEST_CASE("underflow is counted as rounding each value would") {
    for (const float scale : {1.0F, 256.0F, 65536.0F}) {
        double sum = 0.0;
        double most = 0.0;
        std::vector<mp::trace_step> trace;
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
            const std::vector<float> gradients = gradients_of(seed, -30.0);
            trace.push_back(step_of(gradients));
            int nonzero = 0;
            int flushed = 0;
            for (const float it : gradients) {
                const double scaled = std::fabs(static_cast<double>(it)) * static_cast<double>(scale);
                nonzero += it != 0.0F ? 1 : 0;
                flushed += it != 0.0F && scaled < std::ldexp(1.0, -25) ? 1 : 0;
            }
            sum += static_cast<double>(flushed) / nonzero;
            most = std::max(most, static_cast<double>(flushed) / nonzero);
        }
        const auto it = mp::replay(trace, mp::static_policy{.initial_scale = scale}, "static");
        CHECK(it.underflow_known);
        CHECK(it.totals.skips == 0);
        CHECK(it.mean_underflow == doctest::Approx(sum / 20).epsilon(1e-12));
        CHECK(it.largest_underflow == doctest::Approx(most).epsilon(1e-12));
        CHECK(most > 0.0);
    }
    // With a scale that is no power of two a bin is split: of [2^-26, 2^-25) a third is below 2^-25 / 1.5.
    const std::vector<mp::trace_step> one{{.largest = 1.0, .exponents = {{-27, 30}, {-26, 90}, {0, 80}}}};
    const auto it = mp::replay(one, mp::static_policy{.initial_scale = 1.5F}, "static");
    CHECK(it.mean_underflow == doctest::Approx((30.0 + 30.0) / 200.0));
}

TEST_CASE("steps that are skipped do not count for underflow") {
    std::vector<mp::trace_step> trace(2, {.largest = 1.0, .exponents = {{-30, 1}, {0, 1}}});
    trace[1].nan = true;
    trace[1].exponents = {{-30, 5}, {0, 1}};
    const auto it = mp::replay(trace, mp::static_policy{}, "static");
    CHECK(it.mean_underflow == 0.5);
    CHECK(it.largest_underflow == 0.5);
}

TEST_CASE("a histogram policy sees the values beyond its edge") {
    // Of 8 values 2 are above an eighth of the largest half at scale 4096, and 1 overflows at 32768.
    const std::vector<mp::trace_step> trace(40,
                                            {.largest = 3.0, .zeros = 1, .exponents = {{-10, 6}, {1, 1}}});
    const auto it = mp::replay(trace, mp::histogram_policy{.initial_scale = 1024.0F}, "histogram");
    CHECK(it.scales[0] == 1024.0F);
    CHECK(it.scales[1] == 2048.0F);  // 3 * 1024 is less than 8188
    CHECK(it.scales[2] == 4096.0F);  // 3 * 2048 is less than 8188
    CHECK(it.scales[3] == 2048.0F);  // 3 * 4096 is more
    CHECK(it.totals.skips == 0);
    const auto seen = mp::detail::observation_at(trace[0], 32768.0F, {}, 8188.0);
    CHECK(seen.infinities == 1);
    CHECK(seen.overflows == 1);
    CHECK(seen.large == 0);
    CHECK(seen.values == 8);
    CHECK(seen.zeros == 1);
    // Without exponents the largest magnitude alone decides.
    const auto alone = mp::replay(with_magnitudes({3.0, 3.0, 3.0, 3.0}),
                                  mp::histogram_policy{.initial_scale = 1024.0F}, "histogram");
    CHECK(alone.scales == std::vector<float>{1024, 2048, 4096, 2048});
}

TEST_CASE("a policy that refuses to go on ends the replay") {
    const auto trace = with_magnitudes({1.0, 1e6, 1e6, 1e6, 1e6, 1.0});
    const auto it =
        mp::replay(trace, mp::deepspeed_policy{.initial_scale = 2.0, .hysteresis = 1}, "deepspeed");
    REQUIRE(it.failed_at.has_value());
    CHECK(*it.failed_at == 2);  // 2 to 1, and below 1 it fails
    CHECK(it.totals.iterations == 2);
    CHECK(it.scales == std::vector<float>{2, 2});
    CHECK(it.final_scale == 1.0F);
    CHECK(holds(mp::replay_table(std::vector{it}), "failed at step 2\n"));
    CHECK(holds(mp::replay_page(std::vector{it}), "class=\"mark failure\""));
}

TEST_CASE("with a scale that became infinite nothing is finite any more") {
    std::vector<mp::trace_step> trace(300);
    const auto it =
        mp::replay(trace, mp::keras_policy{.initial_scale = 0x1p100F, .dynamic_growth_steps = 2}, "keras");
    // 28 growths of two steps each lead to infinity; from there every step is skipped.
    CHECK(it.totals.skips == 300 - 56);
    CHECK(mp::detail::is_non_finite(it.final_scale));
    CHECK(holds(mp::replay_table(std::vector{it}), "infinity"));
}

TEST_CASE("replay refuses traces, policies and ranges that make no sense") {
    const auto message = [](const std::vector<mp::trace_step>& trace, const mp::pytorch_policy& policy,
                            const mp::magnitude_range& range) {
        return thrown<mp::argument_error>([&] { (void)mp::replay(trace, policy, "name", range); });
    };
    const double nan = std::numeric_limits<double>::quiet_NaN();
    CHECK(message(with_magnitudes({1.0, -1.0}), {}, {}) ==
          "mp::validate_trace: step 1 must have a largest magnitude that is finite and not negative");
    CHECK(holds(message(with_magnitudes({nan}), {}, {}), "step 0 must have a largest magnitude"));
    CHECK(holds(message({{.exponents = {{1, 1}, {1, 1}}}}, {}, {}), "step 0 must have exponents"));
    CHECK(holds(message({{.exponents = {{1, ~0ULL}, {2, 1}}}}, {}, {}), "step 0 must count fewer than 2^64"));
    CHECK(holds(message({}, {.growth_interval = 0}, {}), "growth_interval is 0"));
    CHECK(holds(message({}, {}, {.largest = nan}), "range is nan"));
    CHECK(holds(message({}, {}, {.smallest_subnormal = 0.0}), "range is 0"));
    const auto nothing = mp::replay({}, mp::pytorch_policy{}, "pytorch");
    CHECK(nothing.final_scale == 65536.0F);
    CHECK(nothing.scales.empty());
}

TEST_CASE("the recorder makes a trace of a run that replays as the run went") {
    // A run with magnitudes that nobody hides, under PyTorch's rules.
    std::mt19937_64 random(4);
    const mp::pytorch_policy policy{.growth_interval = 6};
    mp::scale_state state = mp::initial_scale_state(policy);
    mp::trace_recorder recorder;
    std::vector<float> scales;
    for (std::uint64_t i = 0; i < 500; ++i) {
        const double largest = std::exp2(static_cast<double>(random() % 600) / 100.0 - 4.0);
        mp::scale_event event{.iteration = i};
        scales.push_back(state.scale);
        if (random() % 50 == 0) {
            event.seen.nans = 1;
        } else if (largest * static_cast<double>(state.scale) > 65504.0) {
            event.seen.infinities = 3;
            event.seen.nans = random() % 2;  // infinity minus infinity
        } else {
            event.seen.largest = largest;
        }
        event.change = mp::update_scale(policy, state, event.seen);
        recorder(event);
    }
    CHECK(recorder.unmeasured() == 0);
    const auto it = mp::replay(recorder.trace(), policy, "pytorch");
    CHECK(it.scales == scales);
    CHECK(it.final_scale == state.scale);
    const auto bounds = std::count_if(recorder.trace().begin(), recorder.trace().end(),
                                      [](const mp::trace_step& step) { return step.at_least; });
    CHECK(bounds > 10);
}

TEST_CASE("at the scale that overflowed a recorded step overflows again, whatever the scale") {
    std::mt19937_64 random(8);
    for (int i = 0; i < 2000; ++i) {
        const auto scale =
            static_cast<float>(std::exp2(static_cast<double>(random() % 20000) / 100.0 - 100.0));
        mp::trace_recorder recorder;
        recorder.record(mp::gradient_observation{.infinities = 1}, scale);
        REQUIRE(recorder.trace()[0].at_least);
        const auto again = mp::replay(recorder.trace(), mp::static_policy{.initial_scale = scale}, "again");
        REQUIRE(again.totals.skips == 1);
        const auto below = mp::replay(
            recorder.trace(), mp::static_policy{.initial_scale = std::nextafter(scale, 0.0F)}, "below");
        REQUIRE(below.totals.skips == 0);
    }
}

TEST_CASE("the recorder keeps what was measured apart from what was not") {
    mp::trace_recorder recorder;
    recorder(mp::scale_event{});  // nobody measured anything
    recorder(mp::scale_event{.change = {.kind = mp::scale_change_kind::no_gradients}});  // no step
    recorder(mp::scale_event{.seen = {.values = 3}});                                    // all zero
    recorder(mp::scale_event{.change = {4, 2}, .seen = {.infinities = 1, .largest = 1e9}});
    recorder(
        mp::scale_event{.change = {std::numeric_limits<float>::infinity(), 2}, .seen = {.infinities = 1}});
    recorder.record(mp::trace_step{.largest = 7.0});
    CHECK(recorder.unmeasured() == 1);
    REQUIRE(recorder.trace().size() == 5);
    CHECK(recorder.trace()[2] == mp::trace_step{.largest = 1e9});  // known, so no bound
    CHECK(recorder.trace()[3] == mp::trace_step{.infinite = true});
    CHECK(recorder.trace()[4] == mp::trace_step{.largest = 7.0});
    CHECK(holds(thrown<mp::argument_error>([&] { recorder.record(mp::trace_step{.largest = -7.0}); }),
                "step 0"));
    CHECK(recorder.trace().size() == 5);
    recorder.clear();
    CHECK(recorder.trace().empty());
    CHECK(recorder.unmeasured() == 0);
}

TEST_CASE("exponents of several parameters are added up") {
    const std::vector<float> first{1.0F, -1.5F, 0.25F, 0.0F};
    const std::vector<float> second{0.0F, 6.0F, 0.3F, 0x1p-30F};
    mp::trace_recorder recorder;
    for (const auto* it : {&first, &second})
        recorder.count_exponents(mp::report_range<mp::half>(mp::cpu{}, *it));
    recorder.record(mp::gradient_observation{}, 1.0F);
    CHECK(recorder.trace().front() ==
          mp::trace_step{.largest = 6.0, .zeros = 2, .exponents = {{-30, 1}, {-2, 2}, {0, 2}, {2, 1}}});
    recorder.record(mp::gradient_observation{.values = 1}, 1.0F);  // and do not linger
    CHECK(recorder.trace().back() == mp::trace_step{});
}

TEST_CASE("the table lines up and the page shows every policy") {
    const auto trace = with_magnitudes({1.0, 2.0, 1.0, 0.5});
    const std::vector results{mp::replay(trace, mp::pytorch_policy{}, "pytorch"),
                              mp::replay(trace, mp::static_policy{.initial_scale = 3.0F}, "<a> & b")};
    CHECK(mp::replay_table(results) ==
          "policy   skips  in a row  growths  back-offs  first scale  final scale  smallest  largest  mean "
          "underflow  "
          "largest underflow\n"
          "pytorch      2         2        0          2         2^16         2^14      2^14     2^16         "
          "      -  "
          "                -\n"
          "<a> & b      0         0        0          0            3            3         3        3         "
          "      -  "
          "                -\n");
    const std::string page = mp::replay_page(results, "A \"title\"", "A <note>");
    CHECK(holds(page, "<h1>A &quot;title&quot;</h1>"));
    CHECK(holds(page, "A &lt;note&gt;"));
    CHECK(holds(page, "&lt;a&gt; &amp; b"));
    CHECK_FALSE(holds(page, "<a>"));
    CHECK(holds(page, "<td>2<sup>16</sup></td>"));
    std::size_t lines = 0;
    for (std::size_t at = page.find("<path class=\"line"); at != std::string::npos;
         at = page.find("<path class=\"line", at + 1)) {
        ++lines;
    }
    CHECK(lines == 6);  // in the legend, the large chart and a small one, for each of two
    for (const char* outside : {"http", "url(", "@import", "src=", "href=", "<script", "nan", "inf"}) {
        CAPTURE(outside);
        CHECK_FALSE(holds(page, outside));
    }
    CHECK(holds(mp::replay_page({}), "There are no results"));
}
