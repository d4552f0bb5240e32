// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/error.hpp>
#include <mp/frontends/compat/keras/dtype_policy_map.hpp>

#include <cstddef>
#include <iterator>
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

// What re.compile(pattern).fullmatch and .search of Python 3.11 say of each path.
TEST_CASE("keys are regular expressions of Python") {
    const std::string_view paths[] = {"encoder",
                                      "encoder/",
                                      "encoder/dense",
                                      "my/encoder/dense",
                                      "decoder/dense",
                                      "layer_1",
                                      "layer_12",
                                      "layer_",
                                      "layer__1",
                                      "layer1",
                                      "layer_{1,2}1",
                                      "a{",
                                      "a{}b",
                                      "a{b}",
                                      "]/]",
                                      "ab",
                                      "a",
                                      "-",
                                      "b",
                                      ":]",
                                      "Aencoder/xZ",
                                      "encoderZ",
                                      "dense_A",
                                      "a/b_c",
                                      "head",
                                      "]",
                                      "}"};
    struct reading {
        std::string_view pattern;
        std::string_view whole;
        std::string_view anywhere;
    };
    const reading cases[] = {
        {R"(\Aencoder/.*\Z)", "011000000000000000000000000", "011000000000000000000000000"},
        {R"(encoder\Z)", "100000000000000000000000000", "100000000000000000000000000"},
        {R"(\Alayer_\d+)", "000001100000000000000000000", "000001100000000000000000000"},
        {R"(layer_{1,2}\d)", "000001001000000000000000000", "000001101000000000000000000"},
        {R"(layer_{,2}\d)", "000001001100000000000000000", "000001101100000000000000000"},
        {R"(a{)", "000000000001000000000000000", "000000000001110000000000000"},
        {R"(a{}b)", "000000000000100000000000000", "000000000000100000000000000"},
        {R"(a{b})", "000000000000010000000000000", "000000000000010000000000000"},
        {R"([]/]+)", "000000000000001000000000010", "011110000000001000011001010"},
        {R"([^]/]+)", "100001111111110111100110101", "111111111111110111111111101"},
        {R"([a\-c])", "000000000000000011000000000", "111111111111110111001101100"},
        {R"([[:alpha:]])", "000000000000000000010000000", "000000000000000000010000000"},
        {R"((?P<block>encoder|decoder)/dense)", "001010000000000000000000000", "001110000000000000000000000"},
        {R"(encoder(?#all of it)/.*)", "011000000000000000000000000", "011100000000000000001000000"},
        {R"((?:encoder|decoder)_?/.+)", "001010000000000000000000000", "001110000000000000001000000"},
        {R"((?!encoder).*/dense)", "000110000000000000000000000", "001110000000000000000000000"},
        {R"(\x65ncoder\u002fdense)", "001000000000000000000000000", "001100000000000000000000000"},
        {R"([\w/]+)", "111111111100000110101111100", "111111111111111110101111100"},
        {R"([^\W\d]+)", "100000010000000110100110100", "111111111111110110101111100"},
        {R"(dense_\101)", "000000000000000000000010000", "000000000000000000000010000"},
        {R"(.*\bdense)", "001110000000000000000000000", "001110000000000000000010000"},
        {R"(a\/b\_c)", "000000000000000000000001000", "000000000000000000000001000"},
        {R"(encoder/dense|head)", "001000000000000000000000100", "001100000000000000000000100"},
        {R"(])", "000000000000000000000000010", "000000000000001000010000010"},
        {R"(})", "000000000000000000000000001", "000000000010110000000000001"},
    };
    const auto found = [&](std::string_view pattern, ac::path_match match) {
        ac::dtype_policy_map map(ac::dtype_policy_from_name("float32"), match);
        map.set(pattern, ac::dtype_policy_from_name("float16"));
        std::string result;
        for (const std::string_view path : paths) result += map.at(path).name == "float16" ? '1' : '0';
        return result;
    };
    for (const reading& one : cases) {
        CAPTURE(one.pattern);
        // A key is a path, too, and its own.
        std::string whole(one.whole);
        std::string anywhere(one.anywhere);
        for (std::size_t i = 0; i < std::size(paths); ++i) {
            if (paths[i] == one.pattern) whole[i] = anywhere[i] = '1';
        }
        CHECK(found(one.pattern, ac::path_match::whole) == whole);
        CHECK(found(one.pattern, ac::path_match::anywhere) == anywhere);
    }
}

TEST_CASE("what Python refuses is refused, and what std::regex cannot say") {
    auto map = sample();
    struct refusal {
        std::string_view pattern;
        std::string_view why;
    };
    const refusal cases[] = {
        {"layer(", "has a '(' without ')'"},
        {"layer)", "has a ')' too many"},
        {"[a", "has a '[' without ']'"},
        {"[b-a]", "has a range that is none"},
        {"[\\d-z]", "has a range that is none"},
        {"*", "has nothing to repeat"},
        {"\\A*", "has nothing to repeat"},
        {"(|+)", "has nothing to repeat"},
        {"a**", "repeats what is repeated already"},
        {"a{3,2}", "has a count whose limits are the wrong way round"},
        {"\\q", "has the escape \\q, which Python does not know"},
        {"[\\Z]", "has the escape \\Z, which Python does not know"},
        {"\\z", "has the escape \\z, which Python does not know"},
        {"\\x6", "has an escape without its hexadecimal digits"},
        {"a\\", "ends with a backslash"},
        {"(?P<1>a)", "has a group whose name is no identifier of ASCII"},
        {"(?P<n>a)(?P<n>b)", "has two groups of one name"},
        {"(?#", "has a comment without end"},
        {"(a)\\1", "refers back to a group, which is not supported"},
        {"a++", "has a possessive count, which is not supported"},
        {"a{1001}", "has a count above 1000"},
        {"(?i)a", "has a group that is not supported"},
        {"(?<=a)b", "has a group that is not supported"},
        {"(?=^a)", "has an assertion on the past in one that looks ahead"},
        {"[\xc3\xa9]", "has a class with characters above ASCII"},
        {"\\u00e9", "has the code of a character above ASCII"},
    };
    for (const refusal& one : cases) {
        CAPTURE(one.pattern);
        const std::string message =
            message_of([&] { map.set(one.pattern, ac::dtype_policy_from_name("float16")); });
        CAPTURE(message);
        CHECK(message.find("key is '" + std::string(one.pattern) +
                           "'; it must be a regular expression of Python") != std::string::npos);
        CHECK(message.find(one.why) != std::string::npos);
    }
    CHECK(map.size() == 3);
    CHECK(message_of([&] {
              map.set(std::string(100000, '('), ac::dtype_policy_from_name("float16"));
          }).find("nested too deeply") != std::string::npos);
    // Characters of several bytes stand for themselves, and are counted as one.
    map.set("caf\xc3\xa9+", ac::dtype_policy_from_name("bfloat16"));
    CHECK(map.at("caf\xc3\xa9\xc3\xa9").name == "bfloat16");
}
