// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/frontends/compat/presets.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "thrown.hpp"
#include "train_digits/options.hpp"

namespace {

using examples::train_digits::options;

options parse(std::vector<std::string_view> arguments) {
    static constexpr std::string_view known[] = {"fp32", "fp16", "bf16"};
    return examples::train_digits::parse_options(arguments, known);
}

std::string message_for(std::vector<std::string_view> arguments) {
    return examples_test::user_error_of([&] { parse(arguments); });
}

TEST_CASE("without arguments everything has its default") {
    const options chosen = parse({});
    CHECK_FALSE(chosen.help);
    CHECK(chosen.recipes.empty());
    CHECK(chosen.epochs == 30);
    CHECK(chosen.seed == 1);
    CHECK_FALSE(chosen.loss_weight.has_value());
    CHECK(chosen.report == "train_digits.html");
}

TEST_CASE("options take their value from the next argument or after an equals sign") {
    const options chosen = parse({"--epochs", "3", "--seed=0", "--repeats", "2", "--threads=4", "--report",
                                  "a=b.html", "--data=x.csv", "--loss-weight", "2^-14"});
    CHECK(chosen.epochs == 3);
    CHECK(chosen.seed == 0);
    CHECK(chosen.repeats == 2);
    CHECK(chosen.threads == 4);
    CHECK(chosen.report == "a=b.html");
    CHECK(chosen.data == "x.csv");
    CHECK(chosen.loss_weight == 0x1p-14);
    CHECK(parse({"--loss-weight=0.125"}).loss_weight == 0.125);
    CHECK(parse({"--epochs", "2", "--help"}).help);
    CHECK(parse({"-h"}).help);
}

TEST_CASE("recipes are repeated or listed, and named once") {
    CHECK(parse({"--recipe", "fp16,fp32", "--recipe", "bf16", "--recipe=fp16"}).recipes ==
          std::vector<std::string>{"fp16", "fp32", "bf16"});
    CHECK(message_for({"--recipe", "fp64"}) == "--recipe is 'fp64'; it must be one of fp32 fp16 bf16");
    CHECK(message_for({"--recipe", "fp32,"}) == "--recipe is ''; it must be one of fp32 fp16 bf16");
}

TEST_CASE("presets of autocast are repeated or listed, and all means all of them") {
    CHECK(parse({}).presets.empty());
    CHECK(parse({"--preset", "mxnet,jmp", "--preset=off"}).presets ==
          std::vector<std::string>{"mxnet", "jmp", "off"});
    CHECK(parse({"--preset", "jmp", "--preset", "all"}).presets.size() == mp::autocast::presets::all.size());
    CHECK(parse({"--preset", "jmp"}).recipes.empty());
    const std::string message = message_for({"--preset", "torch"});
    CHECK(message.starts_with("--preset is 'torch'; it must be one of off fp16 bf16 "));
    CHECK(message.ends_with(" jmp all"));
}

TEST_CASE("a wrong option is named together with its value") {
    CHECK(message_for({"--epoch", "3"}) == "unknown option '--epoch'; --help lists them");
    CHECK(message_for({"--epoch=3"}) == "unknown option '--epoch'; --help lists them");
    CHECK(message_for({"fp32"}) == "unknown option 'fp32'; --help lists them");
    CHECK(message_for({""}) == "unknown option ''; --help lists them");
    CHECK(message_for({"--seed"}) == "--seed needs a value");
    CHECK(message_for({"--report="}) == "--report needs the name of a file");
    for (const std::string_view wrong : {"0", "-1", "1e3", "", "3x", "99999", "99999999999999999999"}) {
        CHECK(message_for({"--epochs", wrong}) ==
              "--epochs is '" + std::string(wrong) + "'; it must be a whole number from 1 to 10000");
    }
    CHECK(message_for({"--seed", "-1"}).starts_with("--seed is '-1'; it must be a whole number from 0"));
    CHECK(message_for({"--threads", "0"}).starts_with("--threads is '0'"));
    CHECK(message_for({"--repeats", "x"}).starts_with("--repeats is 'x'"));
    for (const std::string_view wrong :
         {"0", "-1", "nan", "inf", "1e-30", "2^", "2^-25", "2^999", "2^x", ""}) {
        CHECK(message_for({"--loss-weight", wrong}) ==
              "--loss-weight is '" + std::string(wrong) + "'; it must be a number from 2^-24 to 2^24");
    }
}

}  // namespace
