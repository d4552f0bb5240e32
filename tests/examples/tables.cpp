// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "common/text.hpp"
#include "made_up.hpp"
#include "train_digits/findings.hpp"
#include "train_digits/table.hpp"

namespace {

using examples::spread;
using examples::spread_of;
using examples::train_digits::findings;
using examples::train_digits::setting_summary;
using examples_test::setting_of;

TEST_CASE("numbers are written as people read them") {
    CHECK(examples::percent(0.0804) == "8.0%");
    CHECK(examples::percent(0.0) == "0.0%");
    CHECK(examples::percent(0.0004) == "0.04%");
    CHECK(examples::percent(0.00996) == "1.0%");
    CHECK(examples::percent(1e-9) == "<0.01%");
    CHECK(examples::percent(1.0) == "100.0%");
    CHECK(examples::power_text(65536) == "2^16");
    CHECK(examples::power_text(0x1p-14) == "2^-14");
    CHECK(examples::power_text(1) == "1");
    CHECK(examples::power_text(1000) == "1000");
    CHECK(examples::power_text(0) == "0");
    CHECK(examples::loss_text(0.000512) == "0.00051");
    CHECK(examples::loss_text(0.0134) == "0.013");
    CHECK(examples::loss_text(2.31) == "2.3");
    CHECK(examples::loss_text(123456.0) == "1.2e+05");
    CHECK(examples::loss_text(std::numeric_limits<double>::infinity()) == "inf");
    CHECK(examples::loss_text(std::numeric_limits<double>::quiet_NaN()).find("nan") != std::string::npos);
    CHECK(examples::times_text(1.04) == "1.04 times");
    CHECK(examples::times_text(4.06) == "4.1 times");
    CHECK(examples::times_text(25.2) == "25 times");
    CHECK(examples::times_text(4853) == "4900 times");
}

TEST_CASE("a spread has mean, median and range, and a broken training shows in it") {
    const spread odd = spread_of({3, 1, 8});
    CHECK(odd.mean == 4);
    CHECK(odd.lowest == 1);
    CHECK(odd.highest == 8);
    const spread broken = spread_of({1, std::numeric_limits<double>::quiet_NaN(), 2});
    CHECK(broken.lowest == 1);
    CHECK(mp::isnan(broken.highest));
    CHECK(mp::isnan(broken.mean));
}

TEST_CASE("the table is aligned and has a line for each recipe") {
    const setting_summary setting =
        setting_of({{"fp32", {}}, {"fp16", {.flushed = 8}}, {"fp16-dynamic", {.skipped = {1, 2}}}});
    const std::string text = to_text(examples::train_digits::results_table(setting, false));
    CHECK(text ==
          "                         test  training  skipped  final  flushed  gradient    bytes a\n"
          "recipe               accuracy      loss    steps  scale  to zero     error  parameter  seconds\n"
          "----------------------------------------------------------------------------------------------\n"
          "fp32                    98.0%    0.0010   0 of 6      -     0.0%     0.10%         12     1.50\n"
          "fp16 alone              98.0%    0.0010   0 of 6      -     8.0%     0.10%         12     1.50\n"
          "fp16, dynamic scale     98.0%    0.0010   2 of 6    2^9     0.0%     0.10%         12     1.50\n");
}

TEST_CASE("paragraphs are wrapped between words") {
    CHECK(examples::wrapped("one two three four", "* ", 10) == "* one two\n  three\n  four\n");
    CHECK(examples::wrapped("incomprehensibilities", "", 10) == "incomprehensibilities\n");
}

bool any_has(const std::vector<std::string>& sentences, const std::string& part) {
    return std::any_of(sentences.begin(), sentences.end(),
                       [&](const std::string& it) { return it.find(part) != std::string::npos; });
}

TEST_CASE("the sentences say what was measured, whichever way it went") {
    const auto harmless = findings(setting_of({{"fp32", {}}, {"fp16", {.accuracy = 0.979, .flushed = 8}}}));
    CHECK(any_has(harmless, "fp16 alone writes 8.0% of the gradients"));
    CHECK(any_has(harmless,
                  "fp16 alone stays within 0.3 points of fp32: test accuracy 97.9% against 98.0%, and"));
    CHECK(any_has(harmless, "What vanishes hardly counts"));

    const auto harmful = findings(
        setting_of({{"fp32", {}},
                    {"fp16", {.accuracy = 0.96, .loss = 0.025, .gradient_error = 0.6, .flushed = 70}},
                    {"fp16-master", {.accuracy = 0.97, .loss = 0.003, .gradient_error = 0.6}},
                    {"fp16-static", {.accuracy = 0.99}},
                    {"fp16-dynamic", {.accuracy = 0.97, .skipped = {0}}}},
                   0x1p-14));
    CHECK(any_has(harmful, "falls 2.0 points behind fp32"));
    CHECK(any_has(harmful, "25 times its training loss"));
    CHECK(any_has(harmful, "What vanishes counts: the gradient that reaches the optimizer is off by 60.0%"));
    CHECK(any_has(harmful, "Master weights without loss scaling end with 3.0 times"));
    CHECK(any_has(harmful, "Static loss scaling is 1.0 points ahead of fp32"));
    CHECK(any_has(harmful, "Dynamic loss scaling falls 1.0 points behind fp32"));
    CHECK(any_has(harmful, "it skipped 1 steps a training"));
    CHECK_FALSE(any_has(harmful, "within 0.3 points"));

    const auto slower =
        findings(setting_of({{"fp32", {}}, {"fp16", {.loss = 0.004, .gradient_error = 0.6}}}));
    CHECK(
        any_has(slower, "stays within 0.3 points of fp32: test accuracy 98.0% against 98.0%, but 4.0 times"));
}

TEST_CASE("nothing is said about recipes that were not trained") {
    CHECK(findings(setting_of({{"fp32", {}}})).empty());
    CHECK(findings(setting_of({{"bf16-master", {}}})).empty());
    CHECK(examples::train_digits::general_findings(setting_of({{"bf16", {}}, {"fp16", {}}})).empty());
    const auto alone = findings(setting_of({{"fp16", {.flushed = 8}}}));
    CHECK(alone.size() == 2);
    CHECK_FALSE(any_has(alone, "fp32"));
}

TEST_CASE("what holds in all settings is said once, with the numbers of one of them") {
    const auto sentences = examples::train_digits::general_findings(
        setting_of({{"fp32", {}}, {"fp16", {}}, {"bf16", {.loss = 0.004, .gradient_error = 0.03}}}));
    CHECK(sentences.size() == 2);
    CHECK(any_has(sentences, "the gradient is off by 3.0%. Alone it ends with 4.0 times"));
    CHECK(any_has(sentences, "fp16 takes 1.00 times as long as fp32"));
}

TEST_CASE("what ran on a GPU says so, and nothing about the CPU") {
    setting_summary setting = setting_of({{"fp32", {}}, {"fp16", {}}, {"bf16", {}}});
    const auto all_text = [&] {
        std::string text;
        for (const std::string& it : examples::train_digits::general_findings(setting)) text += it + "\n";
        for (const std::string& it : examples::train_digits::table_notes(setting)) text += it + "\n";
        return text;
    };
    CHECK(all_text().find("On this CPU fp16 takes 1.00 times as long") != std::string::npos);
    CHECK(all_text().find("one thread of this CPU.") != std::string::npos);
    CHECK(all_text().find("TF32") == std::string::npos);
    setting.gpu = "Model 5";
    CHECK(all_text().find("On Model 5 fp16 takes 1.00 times as long as fp32.\n") != std::string::npos);
    CHECK(all_text().find("a training on Model 5, launches included.") != std::string::npos);
    CHECK(all_text().find("fp32 in TF32: ") != std::string::npos);
    CHECK(all_text().find("CPU") == std::string::npos);
}

TEST_CASE("a setting says what its loss weight means") {
    CHECK(examples::train_digits::setting_title(setting_of({{"fp32", {}}})) ==
          "Ordinary setting: the loss is averaged over a batch of 128");
    CHECK(examples::train_digits::setting_title(setting_of({{"fp32", {}}}, 0x1p-14))
              .starts_with("Loss weight 2^-14, as when it is averaged over a global batch"));
    CHECK(examples::train_digits::setting_title(setting_of({{"fp32", {}}}, 2.0)) ==
          "Loss weight 2^1; the learning rate is 0.05 to match");
}

}  // namespace
