// SPDX-License-Identifier: MIT
// Writes pages of mp/frontends/report/ that hold much, and words that are longer than they should be: library_pages FOLDER.
#include <mp/frontends/compat/scalers.hpp>
#include <mp/frontends/report/error_page.hpp>
#include <mp/frontends/report/ledger_page.hpp>
#include <mp/frontends/report/replay.hpp>
#include <mp/frontends/report/replay_page.hpp>
#include <mp/frontends/report/timeline.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace {

namespace ac = mp::autocast;
using kind = mp::scale_change_kind;

const std::string long_name =
    "an_op_with_a_name_that_is_much_longer_than_any_column_of_the_page_and_then_some";

std::string ledger() {
    ac::ledger_contents contents;
    std::uint64_t seed = 1;
    const auto random = [&](std::uint64_t below) {
        seed = seed * 6364136223846793005U + 1442695040888963407U;
        return (seed >> 33U) % below;
    };
    for (const std::string& op : {std::string("linear"), std::string("softmax_cross_entropy"), long_name}) {
        for (const char* to : {"half", "bfloat16", "float8_e4m3fn"}) {
            ac::cast_record it;
            it.op = op;
            it.argument = "input";
            it.from = "float";
            it.to = to;
            it.casts = 1 + random(100000);
            it.reused = random(1000);
            it.bytes = random(1000000000);
            it.losses = {.elements = 1000000,
                         .overflowed = random(1000),
                         .flushed = random(400000),
                         .subnormal = random(100000),
                         .inexact = random(400000),
                         .zeros = random(1000),
                         .largest = std::ldexp(1.0, static_cast<int>(random(40))),
                         .smallest = std::ldexp(1.0, -static_cast<int>(random(60)))};
            contents.casts.push_back(it);
        }
        contents.ops.push_back(
            {op, mp::op_category::lower_precision, mp::precision::fp16, "half", "float", 123456789});
    }
    contents.first_non_finite = {
        long_name, "gradient", "decoder.layers.3", 123456, false, ac::value_origin::kernel, 7};
    return ac::ledger_page(contents, "What the casts of a run lost");
}

std::string timeline() {
    std::vector<mp::scale_event> events;
    const kind kinds[] = {kind::grown,        kind::backed_off, kind::absorbed,       kind::nan_kept,
                          kind::at_floor,     kind::at_ceiling, kind::growth_refused, kind::replaced,
                          kind::no_gradients, kind::unchanged};
    float scale = 65536.0F;
    for (std::uint64_t i = 0; i < 400; ++i) {
        const kind what = kinds[i * 7 % 10];
        const float next = what == kind::grown ? 2 * scale : what == kind::backed_off ? scale / 2 : scale;
        const std::uint64_t infinities = what == kind::backed_off ? 1000000 + i : 0;
        events.push_back({.iteration = 250 * i,
                          .change = {scale, next, what},
                          .seen = {.infinities = infinities},
                          .applied = infinities == 0 ? 1U : 0U,
                          .skipped = infinities == 0 ? 0U : 1U});
        scale = next;
    }
    return mp::timeline_page(events, "The scale of a run with " + long_name);
}

std::string errors() {
    mp::error_histogram ulps, relative;
    for (int i = 0; i < 100000; ++i) {
        ulps.add(0.5 * std::fabs(std::sin(i)));
        relative.add(std::ldexp(std::fabs(std::sin(i)), -11 - i % 9));
    }
    const mp::report::named_errors shown[] = {
        {"ulps", ulps}, {"relative errors of " + long_name, relative}, {"nothing", {}}};
    return mp::report::error_page("exp of half against exact", shown);
}

std::string replay() {
    std::vector<mp::trace_step> trace;
    for (int i = 0; i < 6000; ++i)
        trace.push_back({.largest = std::ldexp(1.0, (i * 37 % 400 == 0 ? 4 : -8) - i / 1000)});
    const std::vector results{mp::replay(trace, mp::pytorch_policy{.growth_interval = 50}, "pytorch"),
                              mp::replay(trace, mp::apex_policy{.scale_window = 100}, "apex"),
                              mp::replay(trace, mp::deepspeed_policy{.loss_scale_window = 70}, "deepspeed"),
                              mp::replay(trace, mp::static_policy{.initial_scale = 1024.0F}, long_name)};
    return mp::replay_page(results);
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) {
        std::fputs("usage: library_pages FOLDER\n", stderr);
        return 2;
    }
    const auto write = [&](const char* name, const std::string& page) {
        std::ofstream(std::string(arguments[1]) + "/" + name) << page;
    };
    write("ledger.html", ledger());
    write("timeline.html", timeline());
    write("errors.html", errors());
    write("replay.html", replay());
}
