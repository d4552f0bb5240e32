// SPDX-License-Identifier: MIT
// mp-replay-scaling: its parts, and the program as its users run it.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "examples/workplace.hpp"
#include "mp_replay_scaling/options.hpp"
#include "mp_replay_scaling/policies.hpp"
#include "mp_replay_scaling/synthetic.hpp"

namespace {

using replay_scaling::options;

options parse(std::vector<std::string_view> arguments) {
    static constexpr std::string_view policies[] = {"pytorch", "keras", "apex"};
    static constexpr std::string_view formats[] = {"half", "e5m2"};
    return replay_scaling::parse_options(arguments, policies, formats);
}

std::string message_for(std::vector<std::string_view> arguments) {
    try {
        (void)parse(std::move(arguments));
    } catch (const replay_scaling::user_error& error) {
        return error.what();
    }
    return {};
}

using examples::content_of;
using examples::outcome;

/// A folder to run the program in.
struct workplace : examples::workplace {
    workplace() : examples::workplace(MP_REPLAY_SCALING) {}
};

/// The line of a table that begins with a name.
std::string line_of(const std::string& text, const std::string& name) {
    const std::size_t begin = text.find("\n" + name + " ");
    return begin == std::string::npos ? "" : text.substr(begin + 1, text.find('\n', begin + 1) - begin - 1);
}

}  // namespace

TEST_CASE("mp-replay-scaling: without arguments everything has its default") {
    const options chosen = parse({});
    CHECK_FALSE(chosen.help);
    CHECK(chosen.trace.empty());
    CHECK(chosen.policies.empty());
    CHECK(chosen.format == "half");
    CHECK(chosen.html == "replay_scaling.html");
    CHECK(chosen.save_trace.empty());
}

TEST_CASE("mp-replay-scaling: options take their value from the next argument or after an equals sign") {
    const options chosen = parse({"--policies", "keras,apex,keras", "run.csv", "--format=e5m2", "--html",
                                  "a=b.html", "--save-trace=out.csv", "--policies=pytorch"});
    CHECK(chosen.trace == "run.csv");
    CHECK(chosen.policies == std::vector<std::string>{"keras", "apex", "pytorch"});
    CHECK(chosen.format == "e5m2");
    CHECK(chosen.html == "a=b.html");
    CHECK(chosen.save_trace == "out.csv");
    CHECK(parse({"-h"}).help);
}

TEST_CASE("mp-replay-scaling: a wrong option is named together with its value") {
    CHECK(message_for({"--policies", "torch"}) ==
          "--policies is 'torch'; it must be one of pytorch keras apex");
    CHECK(message_for({"--policies", "keras,"}) == "--policies is ''; it must be one of pytorch keras apex");
    CHECK(message_for({"--format=fp16"}) == "--format is 'fp16'; it must be one of half e5m2");
    CHECK(message_for({"--html"}) == "--html needs a value");
    CHECK(message_for({"--html="}) == "--html needs the name of a file");
    CHECK(message_for({"--steps=3"}) == "unknown option '--steps'; --help lists them");
    CHECK(message_for({"a", "b"}) == "there are two traces, 'a' and 'b'; give one");
    CHECK(message_for({""}) == "the name of the trace is empty");
}

TEST_CASE("the made-up trace is always the same and has what it says") {
    const std::vector<mp::trace_step> trace = replay_scaling::made_up_trace(20000);
    CHECK(trace.size() == 20000);
    CHECK(trace == replay_scaling::made_up_trace(20000));
    mp::validate_trace(trace);
    double early = 0.0;
    double late = 0.0;
    double largest = 0.0;
    std::size_t nans = 0;
    for (std::size_t i = 0; i < trace.size(); ++i) {
        (i < 1000 ? early : i >= 19000 ? late : largest) += trace[i].largest / 1000.0;
        nans += trace[i].nan ? 1 : 0;
        // The largest magnitude lies in the last of the counted exponents.
        REQUIRE(std::ilogb(trace[i].largest) == trace[i].exponents.back().exponent);
    }
    CHECK(late < early / 8);
    CHECK(nans > 0);
    CHECK(nans < 20);
    CHECK(replay_scaling::made_up_trace(0).empty());
}

TEST_CASE("every policy of mp-replay-scaling has a name of its own and replays in every format") {
    const std::vector<mp::trace_step> trace = replay_scaling::made_up_trace(300);
    std::set<std::string_view> names;
    for (const auto& policy : replay_scaling::all_policies) {
        CAPTURE(policy.name);
        names.insert(policy.name);
        for (const auto& format : replay_scaling::all_formats) {
            const mp::replay_result result = policy.replay(trace, policy.name, format.range);
            CHECK(result.name == policy.name);
            CHECK(result.scales.size() == (result.failed_at ? *result.failed_at : 300));
        }
    }
    CHECK(names.size() == replay_scaling::all_policies.size());
}

TEST_CASE("without a trace the program says so, prints the table of all policies and draws them") {
    const workplace here;
    const outcome run = here.run("");
    CHECK(run.code == 0);
    CHECK(run.error.empty());
    CHECK(run.out.find("No trace was given, so this is a made-up one: 20000 steps, gradients in half.") == 0);
    const std::string page = content_of(here.path("replay_scaling.html"));
    CHECK(page.ends_with("</html>\n"));
    CHECK(page.size() < 600 * 1024);
    for (const auto& policy : replay_scaling::all_policies) {
        CAPTURE(policy.name);
        CHECK_FALSE(line_of(run.out, std::string(policy.name)).empty());
        CHECK(page.find("<h3>" + std::string(policy.name) + "</h3>") != std::string::npos);
    }
    CHECK(here.run("").out == run.out);
}

TEST_CASE("the program replays the trace that it is given, in the format that it is given") {
    const workplace here;
    std::ofstream(here.path("run.csv")) << "largest,at_least\n0.5,0\n1.2,1\n0.5,0\n";
    const outcome run = here.run("run.csv --policies pytorch,none --html page.html --save-trace again.csv");
    CHECK(run.code == 0);
    CHECK(run.out.find("run.csv: 3 steps, gradients in half. In 1 of them the recorded run overflowed") == 0);
    CHECK(line_of(run.out, "pytorch").find("pytorch      1         1        0          1") == 0);
    CHECK(line_of(run.out, "none").find("none         0         0 ") == 0);
    CHECK(line_of(run.out, "keras").empty());
    CHECK(std::filesystem::exists(here.path("page.html")));
    CHECK_FALSE(std::filesystem::exists(here.path("replay_scaling.html")));
    CHECK(content_of(here.path("again.csv")) ==
          "largest,at_least,infinite,nan,zeros,exponents\n0.5,0,0,0,0,\n1.2,1,0,0,0,\n0.5,0,0,0,0,\n");
    const outcome small = here.run("again.csv --policies=none --format=e4m3fn");
    CHECK(small.out.find("again.csv: 3 steps, gradients in e4m3fn") == 0);
    const outcome wide = here.run("again.csv --policies pytorch --format bfloat16");
    CHECK(line_of(wide.out, "pytorch").find("pytorch      0         0 ") == 0);
}

TEST_CASE("the help of mp-replay-scaling names every option, policy and format, and does nothing else") {
    const workplace here;
    const outcome run = here.run("--help");
    CHECK(run.code == 0);
    CHECK(run.error.empty());
    for (const char* word :
         {"TRACE.csv", "--policies", "--format", "--html", "--save-trace", "--help", "at_least"}) {
        CAPTURE(word);
        CHECK(run.out.find(word) != std::string::npos);
    }
    for (const auto& it : replay_scaling::all_policies)
        CHECK(run.out.find("\n  " + std::string(it.name)) != std::string::npos);
    for (const auto& it : replay_scaling::all_formats) CHECK(run.out.find(it.name) != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(here.path("replay_scaling.html")));
}

TEST_CASE("wrong use of mp-replay-scaling gets one line on the error stream and exit code 2") {
    const workplace here;
    std::ofstream(here.path("broken.csv")) << "largest\n1\ntwo\n";
    std::ofstream(here.path("none.csv")) << "largest\n";
    std::ofstream(here.path("empty.csv")) << "";
    for (const char* arguments :
         {"--policy pytorch", "--policies", "--policies torch", "--format fp16", "missing.csv", "broken.csv",
          "none.csv", "empty.csv", ".", "broken.csv none.csv", "--html no/such/folder.html",
          "--save-trace no/such/folder.csv"}) {
        CAPTURE(arguments);
        const outcome run = here.run(arguments);
        CHECK(run.code == 2);
        CHECK(run.out.empty());
        CHECK(run.error.starts_with("mp-replay-scaling: "));
        CHECK(std::count(run.error.begin(), run.error.end(), '\n') == 1);
        CHECK_FALSE(std::filesystem::exists(here.path("replay_scaling.html")));
    }
    CHECK(here.run("broken.csv").error ==
          "mp-replay-scaling: 'broken.csv' is no trace: mp::read_trace_csv: line 3, column 1 (largest) is "
          "'two'; it must "
          "be a finite number that is not negative, inf or nan\n");
}

TEST_CASE("a disk that is full is exit code 1") {
    if (!std::filesystem::exists("/dev/full")) return;
    const workplace here;
    const outcome run = here.run("--policies none --html /dev/full");
    CHECK(run.code == 1);
    CHECK(run.error == "mp-replay-scaling: cannot write to '/dev/full'\n");
}
