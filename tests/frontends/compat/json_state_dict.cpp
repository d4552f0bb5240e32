// SPDX-License-Identifier: MIT
// The state of torch's optimizers as JSON: what json.dump writes, and what is no such text.
#include <doctest/doctest.h>

#if __has_include(<nlohmann/json.hpp>)
#include <mp/bfloat16.hpp>
#include <mp/frontends/compat/pytorch/json_state_dict.hpp>
#include <mp/frontends/compat/pytorch/optimizer_state.hpp>
#include <mp/optim.hpp>

#include <string>
#include <vector>

#include "nn/scaling/thrown.hpp"

namespace {

std::string refusal(const std::string& text) {
    return thrown<mp::file_error>([&] { mp::json_state_dict it(text); });
}

// As json.dump(optimizer.state_dict(), default=lambda t: t.tolist()) of torch 2 writes it, for a matrix and a vector of
// which the second has had no gradient.
constexpr const char* written_by_torch = R"({"state": {"0": {"step": 2.0,
 "exp_avg": [[0.10000000149011612, -0.25], [1e-45, 3.4028234663852886e+38]], "exp_avg_sq": [[4.0, 1.0], [0.0, 2.5]]}},
 "param_groups": [{"lr": 0.001, "betas": [0.9, 0.999], "eps": 1e-08, "weight_decay": 0.01, "amsgrad": false,
 "foreach": null, "params": [0, 1]}]})";

TEST_CASE("AdamW takes over what json.dump has written, to the bit") {
    const mp::json_state_dict dict(written_by_torch);
    CHECK(dict.tensors().size() == 3);
    std::vector<float> w(4), dw(4), b(2), db(2);
    mp::adamw<float> optimizer({{"w", w, dw}, {"b", b, db}});
    mp::import_pytorch_optimizer(dict, optimizer);
    CHECK(optimizer.step_count() == 2);
    const auto mean = optimizer.gradient_mean(0);
    CHECK(std::vector<float>(mean.begin(), mean.end()) ==
          std::vector<float>{0.1F, -0.25F, 0x1p-149F, 0x1.fffffep127F});
    const auto square = optimizer.gradient_mean_square(0);
    CHECK(std::vector<float>(square.begin(), square.end()) == std::vector<float>{4.0F, 1.0F, 0.0F, 2.5F});
    CHECK(optimizer.gradient_mean(1)[1] == 0.0F);
}

TEST_CASE("SGD without a momentum has null, which is none") {
    const mp::json_state_dict dict(R"({"param_groups": [], "state": {"0": {"momentum_buffer": null},
                                      "1": {"momentum_buffer": [1, -2]}}})");
    std::vector<float> w(3), dw(3), b(2), db(2);
    mp::sgd<float> optimizer({{"w", w, dw}, {"b", b, db}}, {.momentum = 0.9});
    mp::import_pytorch_optimizer(dict, optimizer);
    CHECK(optimizer.momentum(0)[0] == 0.0F);
    CHECK(optimizer.momentum(1)[0] == 1.0F);
    CHECK(optimizer.momentum(1)[1] == -2.0F);
    const mp::json_state_dict larger(R"({"state": {"12": {"momentum_buffer": []}}})");
    CHECK(larger.tensors().at("state.12.momentum_buffer").empty());
    CHECK(
        holds(thrown<mp::argument_error>([&] { mp::import_pytorch_optimizer(larger, optimizer); }),
              "'state.12.momentum_buffer'; it must not be in it: the optimizer has no parameter 12, only 2"));
}

TEST_CASE("what is no state_dict is refused with its place") {
    CHECK(holds(refusal(""), "mp::json_state_dict: "));
    CHECK(holds(refusal("{\"state\": {\"0\": {\"step\": 1.0"), "parse error"));
    CHECK(holds(refusal("{\"state\": {\"0\": {\"exp_avg\": [NaN]}}}"), "parse error"));
    CHECK(holds(refusal("{\"state\": {\"0\": {\"exp_avg\": [1e999]}}}"), "1e999"));
    for (const char* const element : {"null", "true", "\"1\"", "{}", "[1, {\"a\": 2}]"}) {
        CAPTURE(element);
        CHECK(holds(refusal(std::string("{\"state\": {\"0\": {\"exp_avg\": [1.0, ") + element + "]}}}"),
                    "in the list 'state.0.exp_avg'"));
    }
    CHECK(holds(refusal(R"({"state": {"0": {"step": 1, "step": 2}}})"), "there are two of 'state.0.step'"));
    CHECK(holds(refusal(R"({"state": {"0": {"step": 1}, "0": {"step": [2]}}})"),
                "there are two of 'state.0.step'"));
    // A dictionary of something else would otherwise be an optimizer without any state.
    for (const char* const other :
         {"{}", "[]", R"({"optimizer": {"state": {"0": {"step": 1}}}})", R"({"state": [{"step": 1}]})"}) {
        CAPTURE(other);
        CHECK(holds(refusal(other), "there is no object 'state'"));
    }
    CHECK(holds(refusal(R"({"state": {"7": [1, 2]}})"), "there is no object 'state.7', but a list"));
    // Elsewhere anything may stand, at any depth.
    const std::string deep(100000, '[');
    const mp::json_state_dict dict("{\"state\": {}, \"param_groups\": " + deep + std::string(100000, ']') +
                                   "}");
    CHECK(dict.tensors().empty());
}

TEST_CASE("tensors that do not fit are refused, and nothing has changed") {
    const mp::json_state_dict dict(R"({"state": {"0": {"a": [1.5, 2.5], "b": 1e39}}})");
    std::vector<float> two = {7.0F, 8.0F};
    std::vector<float> one = {9.0F};
    const auto message = [&](const char* name, std::vector<float>& to) {
        return thrown<mp::file_error>([&] { dict.read_converted(name, to); });
    };
    CHECK(holds(message("state.0.c", one), "there is no 'state.0.c'"));
    CHECK(holds(message("state.0.a", one), "'state.0.a' has 2 elements, and 1 were expected"));
    CHECK(holds(message("state.0.b", one), "'state.0.b' has 1e+39, which is too large"));
    CHECK(one[0] == 9.0F);
    dict.read_converted("state.0.a", two);
    CHECK(two == std::vector<float>{1.5F, 2.5F});
    std::vector<mp::bfloat16> rounded(2);
    dict.read_converted("state.0.a", rounded);
    CHECK(static_cast<float>(rounded[1]) == 2.5F);
}

}  // namespace

#else

TEST_CASE("tests of mp/frontends/compat/pytorch/json_state_dict.hpp are left out") {
    MESSAGE("nlohmann-json is not installed");
}

#endif
