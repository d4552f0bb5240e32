// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/error.hpp>
#include <mp/float8.hpp>
#include <mp/frontends/compat/jmp/dtype_policy.hpp>
#include <mp/frontends/compat/keras/dtype_policy.hpp>
#include <mp/half.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace {

namespace ac = mp::autocast;
using mp::element_format;
using enum mp::element_format;

static_assert(mp::element_format_of<mp::half> == f16);
static_assert(mp::element_format_of<mp::bfloat16> == mp::element_format::bf16);
static_assert(mp::element_format_of<mp::float8_e5m2fnuz> == mp::element_format::e5m2fnuz);
static_assert(mp::element_format_of<float> == f32);
static_assert(mp::element_format_of<double> == f64);
static_assert(mp::element_format_of<bool> == boolean);
static_assert(mp::element_format_of<std::int8_t> == int8);
static_assert(mp::element_format_of<std::uint16_t> == uint16);
static_assert(mp::element_format_of<std::int32_t> == int32);
static_assert(mp::element_format_of<std::uint64_t> == uint64);

std::string message_of(auto&& call) {
    try {
        call();
    } catch (const mp::argument_error& error) {
        return error.what();
    }
    return "nothing was thrown";
}

bool names_all(const std::string& message, std::initializer_list<std::string_view> parts) {
    for (const std::string_view part : parts) {
        if (message.find(part) == std::string::npos) return false;
    }
    return true;
}

bool has(const ac::dtype_policy& policy, element_format variable, element_format compute,
         element_format output) {
    return policy.variable == variable && policy.compute == compute && policy.output == output;
}

}  // namespace

TEST_CASE("every element format is found by its own name, and by no other") {
    std::set<std::string_view> names;
    for (int i = 0; i <= static_cast<int>(boolean); ++i) {
        const auto format = static_cast<element_format>(i);
        CHECK(names.insert(mp::name_of(format)).second);
        CHECK(mp::find_element_format(mp::name_of(format)) == format);
    }
    CHECK(mp::name_of(f16) == "float16");
    CHECK(mp::name_of(e2m1fn) == "float4_e2m1fn");
    CHECK(mp::name_of(int8) == "int8");
    CHECK(mp::name_of(uint64) == "uint64");
    CHECK(mp::name_of(boolean) == "bool");
    CHECK(mp::name_of(static_cast<element_format>(200)) == "unknown");
    CHECK_FALSE(mp::find_element_format("half").has_value());
    CHECK_FALSE(mp::find_element_format("").has_value());
    CHECK(mp::is_floating(e2m1fn));
    CHECK_FALSE(mp::is_floating(int8));
    CHECK_FALSE(mp::is_floating(boolean));
}

TEST_CASE("Keras's mixed policies compute in 16 bits and keep variables in float32") {
    CHECK(has(ac::dtype_policy_from_name("mixed_float16"), f32, f16, f16));
    CHECK(has(ac::dtype_policy_from_name("mixed_bfloat16"), f32, mp::element_format::bf16,
              mp::element_format::bf16));
    CHECK(ac::dtype_policy_from_name("mixed_float16").name == "mixed_float16");
}

TEST_CASE("the name of a format is Keras's policy with that format throughout") {
    CHECK(has(ac::dtype_policy_from_name("float32"), f32, f32, f32));
    CHECK(has(ac::dtype_policy_from_name("float64"), f64, f64, f64));
    CHECK(has(ac::dtype_policy_from_name("float16"), f16, f16, f16));
    CHECK(has(ac::dtype_policy_from_name("int32"), int32, int32, int32));
    CHECK(ac::dtype_policy_from_name("float64").name == "float64");
}

TEST_CASE("an unknown Keras policy is an error that lists the known ones") {
    for (const std::string_view name : {"", "mixed_float32", "half", "Float16", "int8_from_float32"}) {
        const std::string message = message_of([&] { (void)ac::dtype_policy_from_name(name); });
        CAPTURE(message);
        CHECK(names_all(message, {"dtype_policy_from_name", "name is '" + std::string(name) + "'",
                                  "mixed_float16", "mixed_bfloat16", "float32", "float8_e4m3fn", "bool"}));
    }
}

// keras.backend.standardize_dtype of Keras 3.15.
TEST_CASE("formats that Keras does not have are no policies of its") {
    const std::set<std::string_view> known{"float16", "float32", "float64", "bfloat16",      "uint8",
                                           "uint16",  "uint32",  "uint64",  "int8",          "int16",
                                           "int32",   "int64",   "bool",    "float8_e4m3fn", "float8_e5m2"};
    std::size_t found = 0;
    for (int i = 0; i <= static_cast<int>(boolean); ++i) {
        const auto format = static_cast<element_format>(i);
        const std::string name(mp::name_of(format));
        CAPTURE(name);
        const bool keras_has = known.count(name) != 0;
        found += keras_has ? 1 : 0;
        CHECK((message_of([&] { (void)ac::dtype_policy_from_name(name); }) == "nothing was thrown") ==
              keras_has);
        const ac::dtype_policy policy{"mine", format, format, format};
        CHECK((message_of([&] { (void)ac::keras_name_of(policy); }) == "nothing was thrown") == keras_has);
    }
    CHECK(found == known.size());
}

TEST_CASE("Keras's names are written as they are read") {
    for (const std::string_view name : {"mixed_float16", "mixed_bfloat16", "float32", "float16", "uint8"}) {
        CHECK(ac::keras_name_of(ac::dtype_policy_from_name(name)) == name);
    }
    CHECK(ac::keras_name_of(ac::dtype_policy_from_jmp("c=f16")) == "mixed_float16");
    const auto full_output = ac::dtype_policy_from_jmp("p=f32,c=f16,o=f32");
    CHECK(names_all(message_of([&] { (void)ac::keras_name_of(full_output); }), {"p=full,c=f16,o=full"}));
    const auto reversed = ac::dtype_policy_from_jmp("p=f16,c=f32");
    CHECK_THROWS_AS((void)ac::keras_name_of(reversed), mp::argument_error);
    const auto wide = ac::dtype_policy_from_jmp("p=f64,c=f16");
    CHECK_THROWS_AS((void)ac::keras_name_of(wide), mp::argument_error);
}

TEST_CASE("JMP's texts are read by their keys, and what is missing follows") {
    constexpr auto bf16 = mp::element_format::bf16;
    CHECK(has(ac::dtype_policy_from_jmp("p=f32,c=f16,o=f32"), f32, f16, f32));
    CHECK(has(ac::dtype_policy_from_jmp("params=float32,compute=float16,output=float16"), f32, f16, f16));
    CHECK(has(ac::dtype_policy_from_jmp("o=f64,c=bf16,p=f16"), f16, bf16, f64));
    CHECK(has(ac::dtype_policy_from_jmp("c=f16"), f32, f16, f16));
    CHECK(has(ac::dtype_policy_from_jmp("p=f16"), f16, f16, f16));
    CHECK(has(ac::dtype_policy_from_jmp("p=f16,c=bf16"), f16, bf16, bf16));
    CHECK(has(ac::dtype_policy_from_jmp("p=bf16,o=full"), bf16, bf16, f32));
    CHECK(has(ac::dtype_policy_from_jmp("o=f16"), f32, f32, f16));
}

TEST_CASE("one format of JMP holds for everything, and half is what the caller says") {
    constexpr auto bf16 = mp::element_format::bf16;
    CHECK(has(ac::dtype_policy_from_jmp("half"), f16, f16, f16));
    CHECK(has(ac::dtype_policy_from_jmp("half", bf16), bf16, bf16, bf16));
    CHECK(has(ac::dtype_policy_from_jmp("c=half", bf16), f32, bf16, bf16));
    CHECK(has(ac::dtype_policy_from_jmp("f16", bf16), f16, f16, f16));
    for (const std::string_view name : {"full", "f32", "float32"}) {
        CHECK(has(ac::dtype_policy_from_jmp(name), f32, f32, f32));
    }
    for (const std::string_view name : {"f64", "float64"}) {
        CHECK(has(ac::dtype_policy_from_jmp(name), f64, f64, f64));
    }
    for (const std::string_view name : {"bf16", "bfloat16"}) {
        CHECK(has(ac::dtype_policy_from_jmp(name), bf16, bf16, bf16));
    }
    CHECK_THROWS_AS((void)ac::dtype_policy_from_jmp("half", f32), mp::argument_error);
}

TEST_CASE("a text that JMP cannot read is an error that names the part at fault") {
    struct bad {
        std::string_view text;
        std::string_view part;
    };
    for (const auto& [text, part] :
         {bad{"p=f32,c=f17", "'f17'"}, bad{"p=f32,x=f16", "'x=f16'"}, bad{"p=f32,c", "'c'"},
          bad{"p=f32,", "''"}, bad{"=f16", "'=f16'"}, bad{"p=", "''"}, bad{"p=f16=f32", "'f16=f32'"},
          bad{"p=f32,params=f16", "'params=f16'"}, bad{"p=f32, c=f16", "' c=f16'"}, bad{"", "''"},
          bad{"float8_e4m3fn", "'float8_e4m3fn'"}, bad{"FULL", "'FULL'"}}) {
        const std::string message = message_of([&, t = text] { (void)ac::dtype_policy_from_jmp(t); });
        CAPTURE(message);
        CHECK(names_all(message, {"dtype_policy_from_jmp", "'" + std::string(text) + "'",
                                  "the part is " + std::string(part)}));
    }
}

TEST_CASE("JMP's texts are written with its own names, which read back the same") {
    CHECK(ac::jmp_text_of(ac::dtype_policy_from_name("mixed_float16")) == "p=full,c=f16,o=f16");
    CHECK(ac::dtype_policy_from_jmp("c=half").name == "p=full,c=f16,o=f16");
    for (const std::string_view variable : {"bf16", "f16", "full", "f64"}) {
        for (const std::string_view compute : {"bf16", "f16", "full", "f64"}) {
            for (const std::string_view output : {"bf16", "f16", "full", "f64"}) {
                const std::string text =
                    "p=" + std::string(variable) + ",c=" + std::string(compute) + ",o=" + std::string(output);
                const auto policy = ac::dtype_policy_from_jmp(text);
                CHECK(ac::jmp_text_of(policy) == text);
                CHECK(ac::dtype_policy_from_jmp(policy.name) == policy);
            }
        }
    }
    const auto eight_bits = ac::dtype_policy_from_name("float8_e5m2");
    CHECK(names_all(message_of([&] { (void)ac::jmp_text_of(eight_bits); }),
                    {"float8_e5m2", "bfloat16, float16, float32, float64"}));
}

TEST_CASE("policies with different names may have the same formats") {
    const auto keras = ac::dtype_policy_from_name("mixed_float16");
    const auto jmp = ac::dtype_policy_from_jmp("c=f16");
    CHECK(ac::same_formats(keras, jmp));
    CHECK_FALSE(keras == jmp);
    CHECK_FALSE(ac::same_formats(keras, ac::dtype_policy_from_jmp("c=f16,o=f32")));
    CHECK_FALSE(ac::same_formats(keras, ac::dtype_policy_from_jmp("p=f16,c=f16")));
    CHECK_FALSE(ac::same_formats(keras, ac::dtype_policy_from_jmp("c=bf16,o=f16")));
}
