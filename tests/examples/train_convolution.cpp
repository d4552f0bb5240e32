// SPDX-License-Identifier: MIT
// train_convolution: its parts, and the program as its users run it.
#include <doctest/doctest.h>
#include <mp/frontends/compat/presets.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "examples/workplace.hpp"
#include "page_checks.hpp"
#include "thrown.hpp"
#include "train_convolution/options.hpp"
#include "train_convolution/report.hpp"
#include "train_convolution/results.hpp"

namespace {

namespace presets = mp::autocast::presets;
namespace convolution = examples::train_convolution;
using convolution::result;
using examples::content_of;
using examples::outcome;

struct workplace : examples::workplace {
    workplace() : examples::workplace(MP_TRAIN_CONVOLUTION) {}
};

std::string message_for(std::vector<std::string_view> arguments) {
    return examples_test::user_error_of([&] { (void)convolution::parse_options(arguments); });
}

/// The cells of the line of the table that begins with this name, without the last one, the time.
std::vector<std::string> cells_of(const std::string& out, std::string_view name) {
    std::istringstream lines(out);
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with(std::string(name) + " ")) continue;
        std::istringstream stream(line);
        std::vector<std::string> cells;
        for (std::string cell; stream >> cell;) cells.push_back(cell);
        cells.pop_back();
        return cells;
    }
    return {};
}

/// The text with a space after each word, whatever the lines were.
std::string words_of(const std::string& text) {
    std::string words;
    std::istringstream stream(text);
    for (std::string word; stream >> word;) words += word + " ";
    return words;
}

/// The lines of the table without the time, whatever it is.
std::vector<std::vector<std::string>> all_cells_of(const std::string& out) {
    std::vector<std::vector<std::string>> lines;
    for (const mp::autocast::preset* it : presets::all) lines.push_back(cells_of(out, it->name));
    return lines;
}

/// A training that nobody has done.
result made_up(const mp::autocast::preset& preset, std::vector<double> losses) {
    result it{&preset, {}};
    it.record.scales.assign(2 * losses.size(), 1024.0F);
    it.record.losses = std::move(losses);
    it.record.accuracy = 0.9;
    it.record.stored_type = "float";
    return it;
}

}  // namespace

TEST_CASE("train_convolution: options take their value from the next argument or after an equals sign") {
    const std::vector<std::string_view> arguments = {"--preset", "jmp,off,jmp", "--preset=fp16",
                                                     "--epochs", "3",           "--seed=9",
                                                     "--report", "a=b.html",    "--explain"};
    const convolution::options chosen = convolution::parse_options(arguments);
    CHECK(chosen.presets == std::vector<std::string>{"jmp", "off", "fp16"});
    CHECK(chosen.epochs == 3);
    CHECK(chosen.seed == 9);
    CHECK(chosen.report == "a=b.html");
    CHECK(chosen.explain);
    const std::vector<std::string_view> all = {"--preset", "off", "--preset", "all"};
    CHECK(convolution::parse_options(all).presets.size() == presets::all.size());
}

TEST_CASE("train_convolution: a preset that is not there gets the names of those that are") {
    const std::string message = message_for({"--preset", "fp64"});
    CHECK(message.starts_with("--preset is 'fp64'; it must be one of off fp16 "));
    for (const mp::autocast::preset* it : presets::all) {
        CHECK(message.find(" " + std::string(it->name)) != std::string::npos);
    }
    CHECK(message_for({"--preset", "fp16,"}).starts_with("--preset is ''; it must be one of"));
    CHECK(message_for({"--epochs=0"}) == "--epochs is '0'; it must be a whole number from 1 to 10000");
    CHECK(message_for({"--presets=fp16"}) == "unknown option '--presets'; --help lists them");
    CHECK(message_for({"--explain=no"}) == "unknown option '--explain'; --help lists them");
}

TEST_CASE(
    "train_convolution: an op computes in what the ledger says, and in what is stored where it is silent") {
    result it = made_up(presets::fp8_hybrid, {1.0});
    it.record.ops = {{"conv2d", {}, {}, "bfloat16", {}, 2}, {"relu", {}, {}, "float", {}, 2}};
    mp::autocast::cast_record bias;
    bias.op = "conv2d";
    bias.to = "bfloat16";
    mp::autocast::cast_record factor = bias;
    factor.to = "float8_e4m3fn";
    it.record.casts = {bias};
    CHECK(convolution::computed_in(it.record, "conv2d") == "bf16");
    it.record.casts = {bias, factor};
    CHECK(convolution::computed_in(it.record, "conv2d") == "e4m3");
    CHECK(convolution::computed_in(it.record, "relu") == "float");
    it.record.stored_type = "half";
    CHECK(convolution::computed_in(it.record, "linear") == "half");
}

TEST_CASE("train_convolution: the flushed share is that of the numbers which are not zero before") {
    result it = made_up(presets::fp16, {1.0});
    CHECK(convolution::flushed_fraction(it.record) == 0.0);
    mp::autocast::cast_record cast;
    cast.losses.elements = 10;
    cast.losses.zeros = 2;
    cast.losses.flushed = 1;
    it.record.casts = {cast, cast};
    CHECK(convolution::flushed_fraction(it.record) == 2.0 / 16.0);
    it.record.casts[0].losses.zeros = it.record.casts[0].losses.elements = 0;
    it.record.casts[0].losses.flushed = 0;
    CHECK(convolution::flushed_fraction(it.record) == 1.0 / 8.0);
}

TEST_CASE("train_convolution: trainings are taken together where every loss and scale is the same") {
    const std::vector<result> results = {
        made_up(presets::off, {1.0, 0.5}), made_up(presets::fp16, {1.0, 0.25}),
        made_up(presets::apex_o0, {1.0, 0.5}), made_up(presets::jmp, {1.0, 0.25 + 0x1p-54})};
    const auto groups = convolution::groups_of(results);
    REQUIRE(groups.size() == 3);
    CHECK(groups[0].names == "off, apex_o0");
    CHECK(groups[0].size == 2);
    CHECK(groups[1].names == "fp16");
    CHECK(groups[2].names == "jmp");
    std::vector<result> scaled = {results[1], results[1]};
    scaled[1].record.scales.back() = 2048.0F;
    CHECK(convolution::groups_of(scaled).size() == 2);
}

TEST_CASE("train_convolution: the page is well formed, also when a training broke") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double infinity = std::numeric_limits<double>::infinity();
    for (const double loss : {0.5, nan, infinity, 0.0, 1e30}) {
        std::vector<result> results = {made_up(presets::off, {1.0, 0.5}), made_up(presets::fp16, {1.0, loss}),
                                       made_up(presets::bf16, {loss, loss})};
        results[1].record.skipped = {1};
        const std::string page = convolution::report_page(results, {.epochs = 2});
        CHECK(first_fault(page) == "");
        CHECK(page.find("skipped at scale 2^10") != std::string::npos);
        for (std::size_t at = page.find(" d=\""); at != std::string::npos; at = page.find(" d=\"", at + 1)) {
            const std::string path = page.substr(at + 4, page.find('"', at + 4) - at - 4);
            CHECK(path.find_first_not_of("MLHVZlm0123456789.- ") == std::string::npos);
        }
        for (const char* outside : {"http", "url(", "@import", "src=", "href=", "<script"}) {
            CHECK(page.find(outside) == std::string::npos);
        }
        std::vector<result> alone = {results[2]};
        CHECK(first_fault(convolution::report_page(alone, {})) == "");
    }
}

TEST_CASE("the convolutional network learns under every preset, each in the precision that it promises") {
    const workplace here;
    const outcome run = here.run("--epochs 3 --report page.html");
    CHECK(run.code == 0);
    for (const mp::autocast::preset* it : presets::all) {
        CAPTURE(it->name);
        const std::vector<std::string> cells = cells_of(run.out, it->name);
        REQUIRE(cells.size() == 12);
        CHECK(std::stod(cells[1]) > 93.0);
        CHECK(std::stod(cells[2]) < 0.25);
        CHECK((cells[4] != "-") == (it->value == mp::precision::fp16));
        const std::string low = it->value == mp::precision::off    ? "float"
                                : it->value == mp::precision::fp16 ? "half"
                                : it->value == mp::precision::bf16 ? "bf16"
                                                                   : "e4m3";
        CHECK(cells[6] == low);
        CHECK(cells[10] == low);
        CHECK(cells[11] == "float");
    }
    // Where the systems disagree: Keras, JMP and Apex O2 run the whole model in half, PyTorch does not.
    CHECK(cells_of(run.out, "keras_mixed_float16")[9] == "half");
    CHECK(cells_of(run.out, "apex_o3")[7] == "half");
    CHECK(cells_of(run.out, "pytorch_cuda")[9] == "float");
    CHECK(cells_of(run.out, "mxnet")[9] == "float");

    // Losses and scales are compared by the program as they are, not as they are printed.
    const std::string words = words_of(run.out);
    const std::size_t same = words.find("the same in every bit");
    REQUIRE(same != std::string::npos);
    const std::string groups = words.substr(same, words.find("* ", same) - same);
    CHECK(groups.find(": off, keras_float32, apex_o0; fp16, pytorch_cuda, ") != std::string::npos);
    CHECK(groups.find("; keras_mixed_float16, apex_o2, jmp") != std::string::npos);
    CHECK(groups.find("fp8_hybrid") == std::string::npos);

    const std::string page = content_of(here.path("page.html"));
    CHECK(page.ends_with("</html>\n"));
    CHECK(page.find("aria-label=\"Training loss") != std::string::npos);
    CHECK(page.find("aria-label=\"Loss scale") != std::string::npos);
    CHECK(run.error.find('\r') == std::string::npos);
}

TEST_CASE("the same seed gives the same convolutional network, whatever the number of threads") {
    const workplace here;
    const std::string arguments = "--epochs 1 --preset fp16,bf16,apex_o3 --seed ";
    const outcome one = here.run(arguments + "5 --threads 1");
    CHECK(one.code == 0);
    CHECK(cells_of(one.out, "apex_o3").size() == 12);
    CHECK(cells_of(one.out, "off").empty());
    CHECK(all_cells_of(one.out) == all_cells_of(here.run(arguments + "5 --threads 3").out));
    CHECK(all_cells_of(one.out) != all_cells_of(here.run(arguments + "6").out));
    CHECK_FALSE(std::filesystem::exists(here.path("train_convolution.html")));
}

TEST_CASE("train_convolution explains what a preset does with each op of the network, and trains nothing") {
    const workplace here;
    const outcome run = here.run("--explain --preset mxnet,apex_o3");
    CHECK(run.code == 0);
    CHECK(run.error.empty());
    CHECK(run.out.starts_with("apex_o3, Apex O3: everything in half\n"));
    CHECK(run.out.find("\nmxnet, MXNet's amp.init()\n") != std::string::npos);
    const std::string words = words_of(run.out);
    CHECK(words.find(
              "conv2d under policy half: float and reduced arguments are cast to the low precision of the "
              "policy (category lower_precision, the list mxnet, as 'Convolution'); computes in half, "
              "returns half ") != std::string::npos);
    CHECK(words.find(" softmax_cross_entropy_with_gradient under policy half") != std::string::npos);
    for (const char* op : {"conv2d", "relu", "max_pool2d", "layer_norm", "linear"}) {
        CAPTURE(op);
        CHECK(words.find(" " + std::string(op) + " under policy half") != std::string::npos);
        CHECK(words.find(" " + std::string(op) + "_backward under policy half") != std::string::npos);
    }
}

TEST_CASE("the help of train_convolution names every option and preset") {
    const workplace here;
    const outcome run = here.run("--help");
    CHECK(run.code == 0);
    CHECK(run.error.empty());
    for (const char* word :
         {"--preset", "--epochs", "--seed", "--report", "--explain", "--data", "--threads"}) {
        CHECK(run.out.find(word) != std::string::npos);
    }
    for (const mp::autocast::preset* it : presets::all) CHECK(run.out.find(it->name) != std::string::npos);
}

TEST_CASE("wrong use of train_convolution gets one line on the error stream and exit code 2") {
    const workplace here;
    std::ofstream(here.path("broken.csv")) << "1,2,3\n";
    for (const char* arguments :
         {"--preset torch", "--preset", "--epochs none", "--data missing.csv", "--data broken.csv",
          "--report no/such/folder.html", "--recipe fp16", "mxnet"}) {
        CAPTURE(arguments);
        const outcome run = here.run(arguments);
        CHECK(run.code == 2);
        CHECK(run.out.empty());
        CHECK(run.error.starts_with("train_convolution: "));
        CHECK(std::count(run.error.begin(), run.error.end(), '\n') == 1);
    }
}
