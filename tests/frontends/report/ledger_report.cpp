// SPDX-License-Identifier: MIT
// Cast ledgers as tables and as comma-separated values.
#include <doctest/doctest.h>
#include <mp/frontends/report/ledger_report.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nn/autocast/ledger_ops.hpp"
#include "nn/scaling/thrown.hpp"

namespace {

namespace ac = mp::autocast;
using namespace ledger_ops;

std::vector<std::string> vectors_of(const std::string& text) {
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        lines.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return lines;
}

/// 8 numbers: 1 zero, 2 too large, 1 that becomes zero, 1 subnormal; and a product of 2, 1 and 2.
void fill(ac::cast_ledger& ledger) {
    const std::vector<float> x{1.0F, 0.0F, 70000.0F, -80000.0F, 1e-9F, 0x1p-20F, 2.0F, 3.0F};
    std::vector<float> y(8);
    const mp::autocast_layer layer("head");
    const mp::autocast_region region({.cpu = mp::precision::fp16, .ledger = &ledger});
    ac::dispatch(low_copy{}, std::span<const float>(x), ac::out(std::span<float>(y)));
    ac::buffer_version version;
    const std::vector<float> w{0.5F};
    for (int i = 0; i < 3; ++i) {
        ac::dispatch(low_product{}, std::span<const float>(x).first(2),
                     ac::cached(std::span<const float>(w), version), ac::out(std::span<float>(y).first(2)));
    }
    ac::dispatch(full_copy{}, std::span<const float>(x), ac::out(std::span<float>(y)));
}

ac::cast_record record(std::string op, std::string argument) {
    return {
        .op = std::move(op), .argument = std::move(argument), .from = "float", .to = "half", .losses = {}};
}

}  // namespace

TEST_CASE("the table says what was cast, what was called, and what was first") {
    ac::cast_ledger ledger;
    fill(ledger);
    // Shares are of 7 numbers other than zero: 2/7, 1/7, 1/7; 1e-9 is the only inexact one besides.
    const std::string table = ac::ledger_table(ledger);
    CAPTURE(table);
    const auto lines = vectors_of(table);
    REQUIRE(lines.size() > 20);
    // Spaces depend on the widest cell; words do not.
    const auto words = [](const std::string& line) {
        std::string result;
        for (const char c : line) {
            if (c != ' ' || (!result.empty() && result.back() != ' ')) result += c;
        }
        while (result.ends_with(' ')) result.pop_back();
        return result;
    };
    CHECK(words(lines[1]) ==
          "argument from -> to (reused) elements flowed flushed normal inexact magnitudes");
    CHECK(lines[2] == "copy");
    CHECK(words(lines[3]) == "x float -> half 1 8 28.6% 14.3% 14.3% 14.3% 1e-09..80000");
    CHECK(words(lines[4]) == "y half -> float 1 8 0 0 0 0 9.54e-07..3");
    CHECK(lines[5] == "product");
    CHECK(words(lines[6]) == "x float -> half 3 6 0 0 0 0 1..1");
    CHECK(words(lines[7]) == "w float -> half 1 (2) 1 0 0 0 0 0.5..0.5");
    CHECK(words(lines[8]) == "y half -> float 3 6 0 0 0 0 0.5..0.5");
    CHECK(lines[9].empty());
    CHECK(words(lines[10]) == "calls category computes in region rule");
    CHECK(lines[11] == "copy");
    CHECK(words(lines[12]) == "1 lower_precision half fp16 the op's own");
    CHECK(words(lines[13]) == "1 full_precision float fp16 the op's own");
    CHECK(lines[14] == "product");
    CHECK(words(lines[15]) == "3 lower_precision half fp16 the op's own");
    CHECK(words(lines[17]) == "matrix product factors m n k calls");
    CHECK(words(lines[18]) == "product half 2 1 2 3");
    std::string rest;
    for (std::size_t i = 20; i < lines.size(); ++i) rest += (i == 20 ? "" : " ") + lines[i];
    CHECK(
        rest.starts_with("The first value that is not finite: infinity in 'x' of op 'copy', element 2, in "
                         "layer 'head', after 0 calls of ops. The cast of the argument made it"));
    // Columns are aligned: numbers end where their headings end.
    CHECK(lines[3].size() == lines[1].size());
    CHECK(lines[7].size() == lines[1].size());
    CHECK(lines[3].find(" 8 ") + 2 == lines[1].find("elements") + 8);
}

TEST_CASE("the sentence about the first value names its origin") {
    using origin = ac::value_origin;
    ac::ledger_contents contents;
    CHECK(ac::ledger_table(contents) == "No casts.\n\nAll values were finite.\n");
    const auto sentence = [&](origin from) {
        contents.first_non_finite = {"mul", "x", "", 3, true, from, 1};
        std::string text = ac::ledger_table(contents);
        std::replace(text.begin(), text.end(), '\n', ' ');  // lines are broken somewhere
        return text;
    };
    CHECK(holds(sentence(origin::argument), "NaN in 'x' of op 'mul', element 3, after 1 call of ops."));
    CHECK(holds(sentence(origin::argument), "It was there before the op"));
    CHECK(holds(sentence(origin::cast), "The cast of the argument made it"));
    CHECK(holds(sentence(origin::kernel), "computed it from finite arguments"));
    CHECK(holds(sentence(origin::result), "The op's result was finite"));
}

TEST_CASE("no line of the table is over 110 characters for the longest ordinary names and numbers") {
    ac::ledger_contents contents;
    ac::cast_record it = record("softmax_cross_entropy_backward", "argument 3");
    it.to = "float8_e4m3fn";
    it.casts = 1000;
    it.reused = 10;
    it.losses = {99999999999, 1000000, 999999, 123456789, 99999999990, 0, 1.234e+38, 1.234e-38};
    contents.casts.push_back(it);
    contents.ops.push_back({"softmax_cross_entropy_backward", mp::op_category::full_precision_output,
                            mp::precision::fp16, "bfloat16", "the list pytorch_cuda, as 'nll_loss'", 1000});
    contents.first_non_finite = {
        "softmax_cross_entropy_backward", "argument 3", "encoder.layers.11.attention", 123456, false,
        ac::value_origin::cast,           9999};
    for (const std::string& line : vectors_of(ac::ledger_table(contents))) {
        CAPTURE(line);
        CHECK(line.size() <= 110);
    }
    CHECK(holds(ac::ledger_table(contents), "100 G"));
}

TEST_CASE("names with control characters and line breaks cannot upset a terminal") {
    ac::ledger_contents contents;
    contents.casts.push_back(record("evil\x1b[2J\n", "x\r\n"));
    contents.ops.push_back({"a\tb", mp::op_category::promote, mp::precision::bf16, "half", "r\n", 1});
    const std::string table = ac::ledger_table(contents);
    CHECK(holds(table, "evil\\x1b[2J\\x0a"));
    for (const char c : table) CHECK((c == '\n' || static_cast<unsigned char>(c) >= 0x20));
}

TEST_CASE("comma-separated values have a line for each cast, and read back the same") {
    ac::cast_ledger ledger;
    fill(ledger);
    const std::string text = ac::ledger_csv(ledger);
    const auto lines = vectors_of(text);
    REQUIRE(lines.size() == 6);
    CHECK(lines[0] ==
          "op,argument,direction,from,to,scaled,casts,reused,bytes,elements,overflowed,flushed,subnormal,"
          "inexact,zeros,largest,smallest");
    CHECK(lines[1] == "copy,x,input,float,half,0,1,0,48,8,2,1,1,1,1,80000,9.999999717180685e-10");
    CHECK(lines[2].starts_with("copy,y,output,half,float,0,1,0,48,8,0,0,0,0,"));
    CHECK(lines[4] == "product,w,input,float,half,0,1,2,6,1,0,0,0,0,0,0.5,0.5");
    CHECK(ac::ledger_csv(ac::read_ledger_csv(text)) == text);
    const auto read = ac::read_ledger_csv(text);
    const auto casts = ledger.casts();
    REQUIRE(read.casts.size() == casts.size());
    for (std::size_t i = 0; i < casts.size(); ++i) {
        CHECK(read.casts[i].op == casts[i].op);
        CHECK(read.casts[i].argument == casts[i].argument);
        CHECK(read.casts[i].direction == casts[i].direction);
        CHECK(read.casts[i].bytes == casts[i].bytes);
        CHECK(read.casts[i].losses == casts[i].losses);
    }
    CHECK(read.ops.empty());
}

TEST_CASE("names with commas, quotes and line ends go through comma-separated values") {
    ac::ledger_contents contents;
    contents.casts.push_back(record("a,\"b\"\r\nc", "\""));
    contents.casts.back().scaled = true;
    const std::string text = ac::ledger_csv(contents);
    CHECK(holds(text, "\"a,\"\"b\"\"\r\nc\",\"\"\"\",input,float,half,1,"));
    const auto read = ac::read_ledger_csv(text);
    REQUIRE(read.casts.size() == 1);
    CHECK(read.casts[0].op == "a,\"b\"\r\nc");
    CHECK(read.casts[0].argument == "\"");
    CHECK(read.casts[0].scaled);
    CHECK(ac::read_ledger_csv(ac::ledger_csv(ac::ledger_contents{})).casts.empty());
}

TEST_CASE("errors in comma-separated values name line and column") {
    const std::string header =
        "op,argument,direction,from,to,scaled,casts,reused,bytes,elements,overflowed,flushed,subnormal,"
        "inexact,"
        "zeros,largest,smallest\n";
    const std::string good = "copy,x,input,float,half,0,1,0,48,8,2,1,1,1,1,80000,1e-9\n";
    const auto message = [](const std::string& text) {
        return thrown<mp::argument_error>([&] { (void)ac::read_ledger_csv(text); });
    };
    CHECK(ac::read_ledger_csv(header + good).casts.size() == 1);
    CHECK(holds(message(""), "line 1 is missing"));
    CHECK(holds(message("op,argument\n"), "line 1, column 3"));
    CHECK(holds(message("op,Argument" + header.substr(11)),
                "line 1, column 2 is 'Argument'; it must be argument"));
    CHECK(holds(message(header.substr(0, header.size() - 1) + ",more\n"), "line 1, column 18 is 'more'"));
    CHECK(holds(message(header + "copy,x\n"), "line 2"));
    struct mistake {
        const char* from;
        const char* to;
        const char* expected;
    };
    for (const auto& [from, to, expected] :
         {mistake{"input", "inward", "line 3, column 3 (direction) is 'inward'"},
          mistake{"half,0", "half,2", "line 3, column 6 (scaled) is '2'"},
          mistake{"0,1,0,", "0,-1,0,", "line 3, column 7 (casts) is '-1'"},
          mistake{",48,", ",4x8,", "line 3, column 9 (bytes) is '4x8'"},
          mistake{",8,2,", ",0,2,", "line 3, column 15 (zeros) is '1'"},
          mistake{",8,2,", ",8,8,", "line 3, column 11 (overflowed) is '8'"},
          mistake{"80000", "inf", "line 3, column 16 (largest) is 'inf'"},
          mistake{"80000", "1e300", "line 3, column 16 (largest) is '1e300'"},
          mistake{"1e-9", "nan", "line 3, column 17 (smallest) is 'nan'"},
          mistake{"1e-9", "-1", "line 3, column 17 (smallest) is '-1'"},
          mistake{"1e-9", "90000", "line 3, column 17 (smallest) is '90000'"}}) {
        std::string bad = good;
        bad.replace(bad.find(from), std::string_view(from).size(), to);
        CAPTURE(bad);
        const std::string what = message(header + good + bad);
        CAPTURE(what);
        CHECK(holds(what, expected));
        CHECK(holds(what, "mp::autocast::read_ledger_csv"));
    }
}
