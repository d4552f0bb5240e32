// SPDX-License-Identifier: MIT
// DeepSpeed's configuration files: what they mean, and that a mistake in them is found and named.
#include <doctest/doctest.h>

#if __has_include(<nlohmann/json.hpp>)
#include <mp/frontends/compat/deepspeed/configuration.hpp>
#include <mp/frontends/compat/deepspeed/configuration_block.hpp>
#include <mp/nn/scaling/loss_scaler.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "nn/scaling/thrown.hpp"

namespace {

using argument_error = mp::argument_error;

mp::deepspeed_configuration read(const std::string& text, std::int64_t world_size = 1) {
    return mp::read_deepspeed_configuration(text, world_size);
}

std::string refusal(const std::string& text, std::int64_t world_size = 1) {
    return thrown<argument_error>([&] { (void)read(text, world_size); });
}

/// The text as Hjson, written again as JSON.
std::string json_of(std::string_view text) {
    return mp::detail::hjson_reader("reader", text).object().dump();
}

/// A configuration with ZeRO whose block fp16 is enabled and has these members besides.
std::string with_fp16(const std::string& members) {
    return R"({"zero_optimization": {"stage": 2, "overlap_comm": true}, "fp16": {"enabled": true)" +
           (members.empty() ? "" : ", " + members) + "}}";
}

mp::deepspeed_policy zero_policy(const std::string& members) {
    return std::get<mp::deepspeed_policy>(read(with_fp16(members)).scaling);
}

}  // namespace

TEST_CASE("a whole file is read as it stands") {
    const auto configuration = read(R"({
        "train_batch_size": 64,
        "gradient_accumulation_steps": 2,
        "optimizer": {"type": "AdamW", "params": {"lr": 3e-5, "betas": [0.9, 0.999]}},
        "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 500}},
        "gradient_clipping": 0.5,
        "steps_per_print": 100,
        "wall_clock_breakdown": false,
        "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}},
        "fp16": {
            "enabled": true,
            "auto_cast": false,
            "loss_scale": 0,
            "initial_scale_power": 20,
            "loss_scale_window": 500,
            "hysteresis": 4,
            "consecutive_hysteresis": true,
            "min_loss_scale": 8
        },
        "bf16": {"enabled": false}
    })",
                                    8);
    CHECK(configuration.dtype == mp::deepspeed_dtype::fp16);
    CHECK(configuration.zero_stage == 3);
    CHECK(configuration.batch == mp::deepspeed_batch{64, 4, 2});
    CHECK(configuration.gradient_clipping == 0.5);
    const mp::deepspeed_policy expected{1048576.0, 500, 4, true, 8.0, true};
    CHECK(std::get<mp::deepspeed_policy>(configuration.scaling) == expected);
    std::visit([](const auto& policy) { CHECK(mp::loss_scaler(policy).current_scale() == 1048576.0F); },
               configuration.scaling);
}

TEST_CASE("defaults are DeepSpeed's") {
    const auto nothing = read("{}");
    CHECK(nothing == mp::deepspeed_configuration{});
    CHECK(nothing.dtype == mp::deepspeed_dtype::fp32);
    CHECK(std::get<mp::static_policy>(nothing.scaling) == mp::static_policy{1.0F, false});
    CHECK(nothing.batch == std::nullopt);
    CHECK(nothing.gradient_clipping == 1.0);
    CHECK(read(R"({"fp16": {}})") == nothing);
    CHECK(read(R"({"fp16": {"enabled": false, "loss_scale_window": 0, "min_loss_scale": -5}})") == nothing);
    CHECK(zero_policy("") == mp::deepspeed_policy{65536.0, 1000, 2, false, 1.0, true});
}

TEST_CASE("without ZeRO hysteresis is ignored, as the optimizer there does") {
    const char* fp16 =
        R"("fp16": {"enabled": true, "initial_scale_power": 8, "hysteresis": 7, "min_loss_scale": 4})";
    const mp::deepspeed_fused_policy expected{256.0, 1000, 4.0};
    for (const char* zero : {"", R"("zero_optimization": {"stage": 0},)", R"("zero_optimization": false,)",
                             R"("zero_optimization": {},)"}) {
        CAPTURE(zero);
        const auto configuration = read(std::string("{") + zero + fp16 + "}");
        CHECK(configuration.zero_stage == 0);
        CHECK(std::get<mp::deepspeed_fused_policy>(configuration.scaling) == expected);
    }
    const auto old_form = read(std::string(R"({"zero_optimization": true,)") + fp16 + "}");
    CHECK(old_form.zero_stage == 1);
    CHECK(std::get<mp::deepspeed_policy>(old_form.scaling).hysteresis == 7);
}

TEST_CASE("a loss scale other than 0 is static, and numbers that nothing uses may be anything") {
    const auto configuration =
        read(with_fp16(R"("loss_scale": 128.5, "loss_scale_window": 0, "hysteresis": -1)"));
    CHECK(configuration.dtype == mp::deepspeed_dtype::fp16);
    CHECK(std::get<mp::static_policy>(configuration.scaling) == mp::static_policy{128.5F, true});
    CHECK(std::holds_alternative<mp::deepspeed_policy>(read(with_fp16(R"("loss_scale": 0.0)")).scaling));
    CHECK(std::holds_alternative<mp::deepspeed_policy>(read(with_fp16(R"("loss_scale": -0.0)")).scaling));
    CHECK(
        holds(refusal(with_fp16(R"("loss_scale": true)")), "fp16.loss_scale is 'true'; it must be a number"));
    CHECK(holds(refusal(with_fp16(R"("loss_scale": -1)")),
                "fp16.loss_scale is '-1'; it must be finite and at"));
    CHECK(holds(refusal(with_fp16("\"loss_scale\": 1e999\n")),
                "fp16.loss_scale is '\"1e999\"'; it must be a number"));
    CHECK(holds(refusal(with_fp16("\"loss_scale\": NaN\n")),
                "fp16.loss_scale is '\"NaN\"'; it must be finite"));
    CHECK(holds(refusal(with_fp16(R"("loss_scale": 1e39)")),
                "fp16.loss_scale is 1e+39; it must be 0 or a float"));
    CHECK(holds(refusal(with_fp16(R"("loss_scale": 1e-39)")),
                "fp16.loss_scale is 1e-39; it must be 0 or a float"));
}

TEST_CASE("numbers of the block fp16 are checked, and named with their path") {
    CHECK(zero_policy(R"("loss_scale_window": 7.0, "min_loss_scale": 2e3)").min_loss_scale == 2000.0);
    CHECK(zero_policy(R"("initial_scale_power": 1023)").initial_scale == 0x1p1023);
    struct broken {
        const char* members;
        const char* message;
    };
    const broken cases[] = {
        {R"("loss_scale_window": 0)", "fp16.loss_scale_window is '0'; it must lie between 1 and"},
        {R"("loss_scale_window": true)", "fp16.loss_scale_window is 'true'; it must be a whole number"},
        {R"("loss_scale_window": 1.5)", "fp16.loss_scale_window is '1.5'; it must be a whole number"},
        {R"("loss_scale_window": 1e300)", "fp16.loss_scale_window is '1e+300'; it must be a whole number"},
        {R"("loss_scale_window": null)", "fp16.loss_scale_window is 'null'; it must be a whole number"},
        {R"("loss_scale_window": [1])", "fp16.loss_scale_window is array; it must be a whole number"},
        {R"("hysteresis": 0)", "fp16.hysteresis is '0'; it must lie between 1 and 2147483647"},
        {R"("hysteresis": 4294967298)",
         "fp16.hysteresis is '4294967298'; it must lie between 1 and 2147483647"},
        {R"("hysteresis": 18446744073709551615)", "fp16.hysteresis is '18446744073709551615'; it must lie"},
        {R"("consecutive_hysteresis": 2)", "fp16.consecutive_hysteresis is '2'; it must be true or false"},
        {R"("min_loss_scale": 0)", "fp16.min_loss_scale is '0'; it must lie between 1"},
        {R"("min_loss_scale": 131072)",
         "fp16.min_loss_scale is 131072; it must not be greater than 2^initial_scale_power, which is 65536"},
        {R"("initial_scale_power": -1)", "fp16.initial_scale_power is '-1'; it must lie between 0 and 1023"},
        {R"("initial_scale_power": 1024)",
         "fp16.initial_scale_power is '1024'; it must lie between 0 and 1023"},
        {R"("loss_scale_windows": 5)",
         "there is no key 'fp16.loss_scale_windows' in DeepSpeed's configuration; did you mean "
         "'fp16.loss_scale_window'?"},
        {R"("quite_another": 5)", "there is no key 'fp16.quite_another'"},
        {R"("hysteresis": 2, "hysteresis": 3)", "the key 'hysteresis' is there twice"},
    };
    for (const broken& one : cases) {
        CAPTURE(one.members);
        const std::string message = refusal(with_fp16(one.members));
        CAPTURE(message);
        CHECK(message.starts_with("mp::read_deepspeed_configuration: "));
        CHECK(holds(message, one.message));
    }
    CHECK(!holds(refusal(with_fp16(R"("quite_another": 5)")), "did you mean"));
    CHECK(holds(refusal(R"({"fp16": {"enabled": true, "fp16_master_weights_and_grads": true}})"), "stage"));
    CHECK(std::holds_alternative<mp::deepspeed_policy>(
        read(with_fp16(R"("fp16_master_weights_and_grads": true)")).scaling));
}

TEST_CASE("bf16 has a static scale of 1 and skips by check_grad_overflow") {
    for (const char* name : {"bf16", "bfloat16"}) {
        const std::string start = std::string("{\"") + name + "\": {\"enabled\": true";
        const auto configuration = read(start + "}}");
        CHECK(configuration.dtype == mp::deepspeed_dtype::bf16);
        CHECK(std::get<mp::static_policy>(configuration.scaling) == mp::static_policy{1.0F, true});
        const auto unchecked =
            read(start + R"(, "check_grad_overflow": false, "immediate_grad_update": true}})");
        CHECK(std::get<mp::static_policy>(unchecked.scaling) == mp::static_policy{1.0F, false});
        CHECK(holds(refusal(start + R"(, "check_grad_overflw": false}})"),
                    (std::string("there is no key '") + name + ".check_grad_overflw'").c_str()));
        CHECK(holds(refusal(start + R"(, "loss_scale": 0}})"), ".loss_scale'"));
        CHECK(
            holds(refusal(start + R"(, "bf16_optimizer_states": true}})"), "bf16_master_weights_and_grads"));
    }
    CHECK(holds(refusal(R"({"bf16": {}, "bfloat16": {}})"), "two names of one block"));
}

TEST_CASE(
    "only one of fp16, bf16 and amp can be enabled, and scalers of others are not taken for DeepSpeed's") {
    const char* fp16 = R"("fp16": {"enabled": true})";
    const char* bf16 = R"("bf16": {"enabled": true})";
    const char* amp = R"("amp": {"enabled": true, "opt_level": "O1"})";
    const auto both = [](const char* a, const char* b) { return std::string("{") + a + "," + b + "}"; };
    for (const std::string& text : {both(fp16, bf16), both(fp16, amp), both(bf16, amp)}) {
        CHECK(holds(refusal(text), "only one of fp16, bf16 and amp can be enabled"));
    }
    CHECK(holds(refusal(std::string("{") + amp + "}"), "amp.enabled is true"));
    CHECK(read(R"({"amp": {"enabled": false, "opt_level": "O1"}})") == mp::deepspeed_configuration{});
    for (const char* half : {"float16", "fp16", "half", "torch.float16"}) {
        CHECK(
            holds(refusal(R"({"torch_autocast": {"enabled": true, "dtype": ")" + std::string(half) + "\"}}"),
                  "torch_autocast is enabled with float16"));
    }
    CHECK(read(R"({"torch_autocast": {"enabled": true, "dtype": "bfloat16"}})") ==
          mp::deepspeed_configuration{});
    CHECK(read(R"({"torch_autocast": {"enabled": true}})") == mp::deepspeed_configuration{});
    CHECK(read(R"({"torch_autocast": {"enabled": false}})") == mp::deepspeed_configuration{});
}

TEST_CASE("two batch numbers give the third, and contradictions name all of them") {
    const auto batch = [](const std::string& members, std::int64_t world) {
        return *read("{" + members + "}", world).batch;
    };
    const mp::deepspeed_batch expected{96, 4, 3};
    const std::string train = R"("train_batch_size": 96)";
    const std::string micro = R"("train_micro_batch_size_per_gpu": 4)";
    const std::string steps = R"("gradient_accumulation_steps": 3)";
    CHECK(batch(train + "," + micro + "," + steps, 8) == expected);
    CHECK(batch(train + "," + micro, 8) == expected);
    CHECK(batch(train + "," + steps, 8) == expected);
    CHECK(batch(micro + "," + steps, 8) == expected);
    CHECK(batch(train, 8) == mp::deepspeed_batch{96, 12, 1});
    CHECK(batch(micro, 8) == mp::deepspeed_batch{32, 4, 1});
    CHECK(holds(refusal("{" + train + "," + micro + "," + steps + "}", 7),
                "train_batch_size (96) must be train_micro_batch_size_per_gpu (4) times "
                "gradient_accumulation_steps (3) times the world size (7)"));
    CHECK(holds(refusal("{" + train + "," + micro + "}", 7), "gradient_accumulation_steps (not given)"));
    CHECK(holds(refusal("{" + train + "}", 7), "train_batch_size (96) must be"));
    CHECK(holds(refusal("{" + train + "}", 97), "train_batch_size (96) must be"));
    CHECK(holds(refusal(R"({"train_batch_size": 2, "train_micro_batch_size_per_gpu": 4})"), "must be"));
    CHECK(holds(refusal(R"({"train_batch_size": 2, "gradient_accumulation_steps": 4})"), "must be"));
    CHECK(holds(refusal("{" + steps + "}"), "neither train_batch_size nor train_micro_batch_size_per_gpu"));
    CHECK(holds(refusal(R"({"train_batch_size": 0})"), "train_batch_size is '0'; it must lie between 1"));
    CHECK(holds(refusal(R"({"train_batch_size": "many"})"),
                "train_batch_size is '\"many\"'; it must be a whole number"));
    CHECK(holds(refusal(R"({"train_micro_batch_size_per_gpu": 2147483647})", 2), "31 bits"));
    CHECK(holds(
        refusal(
            R"({"train_micro_batch_size_per_gpu": 2147483647, "gradient_accumulation_steps": 2147483647})",
            2147483647),
        "31 bits"));
    CHECK(holds(refusal("{}", 0), "world_size is 0"));
}

TEST_CASE("clipping and ZeRO's stage are checked") {
    CHECK(read(R"({"gradient_clipping": 0})").gradient_clipping == 0.0);
    CHECK(holds(refusal(R"({"gradient_clipping": -1})"), "gradient_clipping is '-1'; it must be finite"));
    CHECK(
        holds(refusal(R"({"gradient_clipping": true})"), "gradient_clipping is 'true'; it must be a number"));
    CHECK(holds(refusal(R"({"zero_optimization": {"stage": 4}})"), "zero_optimization.stage is '4'"));
    CHECK(holds(refusal(R"({"zero_optimization": 2})"), "zero_optimization must be an object"));
}

TEST_CASE("text that is no configuration is refused") {
    CHECK(holds(refusal(""), "this is no JSON"));
    CHECK(holds(refusal("{"), "this is no JSON"));
    CHECK(holds(refusal("{} {}"), "this is no JSON"));
    CHECK(holds(refusal(" \n// nothing\n"), "there is nothing in it (line 3)"));
    CHECK(holds(refusal("[]"), "the configuration must be an object"));
    CHECK(holds(refusal(R"({"fp16": true})"), "fp16 must be an object"));
    CHECK(holds(refusal(R"({"optimizer": {"a": {"b": 1, "b": 2}}})"), "the key 'b' is there twice"));
    CHECK(read(R"({"optimizer": {"a": {"b": 1}, "c": {"b": 1}, "d": [{"b": 1}, {"b": 2}]}})") ==
          mp::deepspeed_configuration{});
    CHECK(holds(refusal(std::string(100000, '[')), "nested too deeply"));
    CHECK(refusal("{\"" + std::string(100000, 'a') + "\": 1}").size() < 300);
    CHECK(refusal("{\"a\": " + std::string(100000, 'a') + "}").size() < 400);
    CHECK(holds(refusal(std::string("{\0}", 3)), "this is no JSON"));
    CHECK(holds(refusal("{\"\xff\": 1}"), "this is no JSON"));
}

// What hjson 3.1.0 for Python makes of these texts.
TEST_CASE("Hjson is read as hjson for Python reads it") {
    struct reading {
        std::string_view text;
        std::string_view json;
    };
    const reading cases[] = {
        {R"({"loss_scale": 0, // Automatic loss scaling
            "a": [1, 2,], # and a comma at the end
            /* "b": 2, */ "c": {"d": 1e-8,},
        })",
         R"({"a":[1,2],"c":{"d":1e-08},"loss_scale":0})"},
        {"a: 1\n\"b\": true\n'c': null, d: false", R"({"a":1,"b":true,"c":null,"d":false})"},
        {"{a: some words, # and all\n b: 5 # five\n c: 5 o'clock\n}",
         R"({"a":"some words, # and all","b":5,"c":"5 o'clock"})"},
        {"{a: True\n b: 01\n c: .5\n d: -\n e: 1.5.2\n}",
         R"({"a":"True","b":"01","c":".5","d":"-","e":"1.5.2"})"},
        {"{a: 'it\\'s \"so\"' b: \"\\u00e9\\\"\"}", "{\"a\":\"it's \\\"so\\\"\",\"b\":\"\xc3\xa9\\\"\"}"},
        {"{\n  a:\n    '''\n      two\n    lines\n    '''\n}", "{\"a\":\"  two\\nlines\"}"},
        {"{ a: '''x''' }", R"({"a":"x"})"},
        {"\xef\xbb\xbf{\"a\": 1}", R"({"a":1})"},
        {"{ /* } */ }", "{}"},
        {"{a: [1 2\n 3, 4]}", R"({"a":["1 2",3,4]})"},
        {"{a: [], b: {}}  # end", R"({"a":[],"b":{}})"},
    };
    for (const reading& one : cases) {
        CAPTURE(one.text);
        CHECK(json_of(one.text) == one.json);
    }
    for (const char* wrong :
         {"{a b: 1}", "{: 1}", "{a: }", "{a: 1} 2", "{a: 1", "{a: 'b}", "{a: \"b\nc\"}", "{,}", "{a: 1,,}",
          "{a: [,]}", "{a: ]}", "{a: \"\\x\"}", "{a: ''' }", "{a: 1 /* }", "{a: abc}", "{a: 1}}"}) {
        CAPTURE(wrong);
        CHECK(holds(thrown<argument_error>([&] { (void)json_of(wrong); }), "this is no JSON or Hjson"));
    }
    CHECK(holds(refusal("{\n  \"fp16\": {\n    enabled: true,\n  ]\n}"), "a key is missing (line 4)"));
}

// What DeepSpeed 0.19.8 with Pydantic 2 makes of these values.
TEST_CASE("truth values and numbers may be what DeepSpeed takes for them") {
    const auto enabled = [](const std::string& value) {
        return read("{\"fp16\": {\"enabled\": " + value + "}}").dtype == mp::deepspeed_dtype::fp16;
    };
    for (const char* value :
         {"true", "\"True\"", "\"TRUE\"", "\"yes\"", "\"t\"", "1", "1.0", "\"1\"", "\"on\""}) {
        CAPTURE(value);
        CHECK(enabled(value));
    }
    for (const char* value :
         {"false", "\"False\"", "\"off\"", "\"n\"", "0", "\"0\"", "False\n", "\"auto\""}) {
        CAPTURE(value);
        CHECK_FALSE(enabled(value));
    }
    for (const char* value : {"2", "0.5", "\"2\"", "null", "[]", "\"truth\"", "\"\""}) {
        CAPTURE(value);
        CHECK(holds(refusal("{\"fp16\": {\"enabled\": " + std::string(value) + "}}"), "fp16.enabled is "));
    }
    CHECK(zero_policy(R"("loss_scale_window": "500", "hysteresis": "+3", "min_loss_scale": " 4 ")") ==
          mp::deepspeed_policy{65536.0, 500, 3, false, 4.0, true});
    CHECK(zero_policy(R"("initial_scale_power": "2.0", "loss_scale_window": "007", "loss_scale": "0")") ==
          mp::deepspeed_policy{4.0, 7, 2, false, 1.0, true});
    for (const char* value :
         {"\"1e3\"", "\"0x10\"", "\"\"", "\"5 6\"", "\"1.5\"", "\"+-5\"", "\"99999999999999999999\""}) {
        CAPTURE(value);
        CHECK(holds(refusal(with_fp16("\"loss_scale_window\": " + std::string(value))),
                    "it must be a whole number"));
    }
    CHECK(holds(refusal(with_fp16(R"("loss_scale_window": "0")")),
                "fp16.loss_scale_window is '\"0\"'; it must lie between 1 and"));
    const auto static_scale = [](const std::string& value) {
        return std::get<mp::static_policy>(read(with_fp16("\"loss_scale\": " + value)).scaling).initial_scale;
    };
    CHECK(static_scale("\"128\"") == 128.0F);
    CHECK(static_scale("\" 1e2 \"") == 100.0F);
    CHECK(static_scale("\"1e-8\"") == 1e-8F);
    CHECK(static_scale("\".5\"") == 0.5F);
    for (const char* value : {"\"inf\"", "\"nan\"", "\"-1\"", "\"0x10\"", "\"abc\"", "\"\"", "null", "[]"}) {
        CAPTURE(value);
        CHECK(holds(refusal(with_fp16("\"loss_scale\": " + std::string(value))), "fp16.loss_scale is "));
    }
    // Not the default, which is 1: DeepSpeed hands None on.
    CHECK(read(R"({"gradient_clipping": null})").gradient_clipping == 0.0);
    CHECK(read(R"({"gradient_clipping": "0.5"})").gradient_clipping == 0.5);
    CHECK(read(R"({"train_batch_size": null, "train_micro_batch_size_per_gpu": "4"})", 2).batch ==
          mp::deepspeed_batch{8, 4, 1});
    CHECK(read(R"({"bf16": null, "zero_optimization": null, "fp16": null})") ==
          mp::deepspeed_configuration{});
    // A hysteresis that nothing uses may be anything.
    CHECK(std::holds_alternative<mp::deepspeed_fused_policy>(
        read(R"({"fp16": {"enabled": true, "hysteresis": 0}})").scaling));
}

TEST_CASE("auto is what the caller says, or the default with a warning") {
    const std::string file = R"({
        "train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": "auto", "gradient_clipping": "auto",
        "zero_optimization": {"stage": 2, "reduce_bucket_size": "auto"},
        "optimizer": {"type": "AdamW", "params": {"lr": "auto"}},
        "fp16": {"enabled": "auto", "loss_scale": 0, "initial_scale_power": "auto"},
        "bf16": {"enabled": "auto"}})";
    const auto filled = mp::read_deepspeed_configuration(file, 4,
                                                         {{"train_micro_batch_size_per_gpu", "2"},
                                                          {"gradient_accumulation_steps", "3"},
                                                          {"train_batch_size", "24"},
                                                          {"gradient_clipping", "0.25"},
                                                          {"optimizer.params.lr", "1e-4"},
                                                          {"fp16.enabled", "True"},
                                                          {"fp16.initial_scale_power", "12"},
                                                          {"bf16.enabled", "false"}});
    CHECK(filled.batch == mp::deepspeed_batch{24, 2, 3});
    CHECK(filled.gradient_clipping == 0.25);
    CHECK(std::get<mp::deepspeed_policy>(filled.scaling).initial_scale == 4096.0);
    CHECK(filled.warnings.empty());

    const auto defaults = read(file, 4);
    CHECK(defaults.batch == mp::deepspeed_batch{32, 8, 1});  // of transformers.TrainingArguments
    CHECK(defaults.gradient_clipping == 1.0);
    CHECK(defaults.dtype == mp::deepspeed_dtype::fp32);
    CHECK(defaults.zero_stage == 2);
    CHECK(defaults.warnings.size() == 7);
    for (const char* path : {"fp16.enabled", "bf16.enabled", "train_batch_size", "gradient_clipping"}) {
        CAPTURE(path);
        bool warned = false;
        for (const std::string& warning : defaults.warnings) {
            warned |= warning == std::string(path) +
                                     " is \"auto\" and has no value in auto_values: the default is taken";
        }
        CHECK(warned);
    }

    CHECK(read(R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": "auto"})", 4).batch ==
          mp::deepspeed_batch{64, 16, 1});
    CHECK(read(R"({"train_batch_size": "auto", "gradient_accumulation_steps": 2})", 4).batch ==
          mp::deepspeed_batch{64, 8, 2});
    CHECK(read(R"({"gradient_accumulation_steps": "auto"})").batch == std::nullopt);
    CHECK(holds(thrown<argument_error>([&] {
                    (void)mp::read_deepspeed_configuration(file, 1, {{"fp16.enabled", "per\xffhaps"}});
                }),
                "fp16.enabled is "));
    CHECK(holds(thrown<argument_error>(
                    [&] { (void)mp::read_deepspeed_configuration(file, 3, {{"train_batch_size", "16"}}); }),
                "train_batch_size (16) must be"));
}

TEST_CASE("keys at the top that DeepSpeed does not know are warnings, in the blocks they are errors") {
    const auto configuration =
        read(R"({"fp61": {"enabled": true}, "our_remark": "mine", "steps_per_print": 5})");
    CHECK(configuration.dtype == mp::deepspeed_dtype::fp32);
    REQUIRE(configuration.warnings.size() == 2);
    CHECK(configuration.warnings[0] == "DeepSpeed ignores the key 'fp61'; did you mean 'fp16'?");
    CHECK(configuration.warnings[1] == "DeepSpeed ignores the key 'our_remark'");
    CHECK(holds(refusal(R"({"fp16": {"enable": true}})"), "there is no key 'fp16.enable'"));
}

#else
TEST_CASE("tests of mp/frontends/compat/deepspeed/configuration.hpp are left out") {
    MESSAGE("nlohmann-json is not installed");
}
#endif
