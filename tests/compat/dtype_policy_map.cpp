// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/compat/keras/dtype_policy_map.hpp>
#include <mp/error.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace {

namespace ac = mp::autocast;

ac::dtype_policy_map sample(ac::path_match match = ac::path_match::whole) {
    ac::dtype_policy_map map(ac::dtype_policy_from_name("float32"), match);
    map.set("encoder/layer_0/dense", ac::dtype_policy_from_name("bfloat16"));
    map.set("encoder/.*", ac::dtype_policy_from_name("float16"));
    map.set("decoder", ac::dtype_policy_from_name("mixed_bfloat16"));
    return map;
}

std::string message_of(auto&& call) {
    try {
        call();
    } catch (const mp::argument_error& error) {
        return error.what();
    }
    return "nothing was thrown";
}

}  // namespace

TEST_CASE("a key that is the path wins over patterns that match it") {
    const auto map = sample();
    CHECK(map.at("encoder/layer_0/dense").name == "bfloat16");
    // "encoder/.*" as a path is found although it also matches itself as a pattern.
    CHECK(map.at("encoder/.*").name == "float16");
}

TEST_CASE("a pattern must match the whole path, and no match gives the default") {
    const auto map = sample();
    CHECK(map.at("encoder/attention/query").name == "float16");
    CHECK(map.at("decoder").name == "mixed_bfloat16");
    CHECK(map.at("decoder/attention").name == "float32");
    CHECK(map.at("my/encoder/dense").name == "float32");
    CHECK(map.at("").name == "float32");
    CHECK(map.default_policy().name == "float32");
}

TEST_CASE("matching anywhere is what earlier versions of Keras did") {
    const auto map = sample(ac::path_match::anywhere);
    CHECK(map.at("decoder/attention").name == "mixed_bfloat16");
    CHECK(map.at("my/encoder/dense").name == "float16");
    CHECK(map.at("head").name == "float32");
}

TEST_CASE("a path that several patterns match is an error that names them all") {
    auto map = sample();
    map.set("encoder/attention/.*", ac::dtype_policy_from_name("bfloat16"));
    map.set(".*/query", ac::dtype_policy_from_name("float64"));
    const std::string message = message_of([&] { (void)map.at("encoder/attention/query"); });
    CAPTURE(message);
    CHECK(message.find("path is 'encoder/attention/query'") != std::string::npos);
    CHECK(message.find("'encoder/.*', 'encoder/attention/.*', '.*/query'") != std::string::npos);
    CHECK(message.find("decoder") == std::string::npos);
    map.set("encoder/attention/query", ac::dtype_policy_from_name("float16"));
    CHECK(map.at("encoder/attention/query").name == "float16");
}

TEST_CASE("a key is set once, can be removed, and must be a regular expression") {
    auto map = sample();
    const std::vector<std::string> keys{"encoder/layer_0/dense", "encoder/.*", "decoder"};
    CHECK(map.keys() == keys);
    const std::string twice = message_of([&] { map.set("decoder", ac::dtype_policy_from_name("float16")); });
    CHECK(twice.find("key is 'decoder'") != std::string::npos);
    CHECK(twice.find("'mixed_bfloat16'") != std::string::npos);
    const std::string bad = message_of([&] { map.set("layer(", ac::dtype_policy_from_name("float16")); });
    CHECK(bad.find("key is 'layer('") != std::string::npos);
    CHECK(map.keys() == keys);
    CHECK(map.contains("decoder"));
    CHECK_FALSE(map.contains("encoder/dense"));

    map.erase("decoder");
    CHECK(map.size() == 2);
    CHECK(map.at("decoder").name == "float32");
    CHECK(message_of([&] { map.erase("decoder"); }).find("'decoder'") != std::string::npos);
    CHECK_FALSE(map.empty());
    CHECK(ac::dtype_policy_map(ac::dtype_policy_from_name("float32")).empty());
}
