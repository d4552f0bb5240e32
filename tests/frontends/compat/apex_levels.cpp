// SPDX-License-Identifier: MIT
// The table of properties is written down here as Apex's documentation has it.
#include <doctest/doctest.h>
#include <mp/error.hpp>
#include <mp/frontends/compat/apex/levels.hpp>

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace {

namespace ac = mp::autocast;
using enum mp::element_format;
using enum mp::autocast::apex_level;
using scale = ac::apex_loss_scale;

std::string message_of(ac::apex_level level, const ac::apex_overrides& overrides) {
    try {
        (void)ac::apex_properties_of(level, overrides);
    } catch (const mp::argument_error& error) {
        return error.what();
    }
    return "nothing was thrown";
}

bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("Apex's levels have the properties of its table") {
    const auto zero = ac::apex_properties_of(o0);
    CHECK(zero.level == o0);
    CHECK(zero.cast_model_type == f32);
    CHECK_FALSE(zero.patch_functions);
    CHECK(zero.keep_batchnorm_fp32 == std::nullopt);
    CHECK(zero.master_weights == false);
    CHECK(zero.loss_scale == scale::fixed(1.0));

    const auto one = ac::apex_properties_of(o1);
    CHECK(one.level == o1);
    CHECK(one.cast_model_type == std::nullopt);
    CHECK(one.patch_functions);
    CHECK(one.keep_batchnorm_fp32 == std::nullopt);
    CHECK(one.master_weights == std::nullopt);
    CHECK(one.loss_scale.dynamic);

    const auto two = ac::apex_properties_of(o2);
    CHECK(two.level == o2);
    CHECK(two.cast_model_type == f16);
    CHECK_FALSE(two.patch_functions);
    CHECK(two.keep_batchnorm_fp32 == true);
    CHECK(two.master_weights == true);
    CHECK(two.loss_scale.dynamic);

    const auto three = ac::apex_properties_of(o3);
    CHECK(three.level == o3);
    CHECK(three.cast_model_type == f16);
    CHECK_FALSE(three.patch_functions);
    CHECK(three.keep_batchnorm_fp32 == false);
    CHECK(three.master_weights == false);
    CHECK(three.loss_scale == scale::fixed(1.0));

    CHECK(ac::apex_properties{} == one);  // amp.initialize takes O1 by default
}

TEST_CASE("Apex's levels go by the letter O and a digit") {
    for (const auto level : {o0, o1, o2, o3}) CHECK(ac::apex_level_from_name(ac::name_of(level)) == level);
    CHECK(ac::apex_level_from_name("O2") == o2);
    for (const std::string_view name : {"", "02", "o2", "O4"}) {
        CHECK_THROWS_AS((void)ac::apex_level_from_name(name), mp::argument_error);
    }
    CHECK(ac::name_of(static_cast<ac::apex_level>(9)) == "unknown");
    CHECK_THROWS_AS((void)ac::apex_properties_of(static_cast<ac::apex_level>(9)), mp::argument_error);
}

TEST_CASE("an override changes its property and no other") {
    auto expected = ac::apex_properties_of(o2);
    CHECK(ac::apex_properties_of(o2, {}) == expected);
    expected.loss_scale = scale::fixed(128.0);
    CHECK(ac::apex_properties_of(o2, {.loss_scale = scale::fixed(128.0)}) == expected);
    expected.keep_batchnorm_fp32 = false;
    CHECK(ac::apex_properties_of(o2, {.keep_batchnorm_fp32 = false, .loss_scale = scale::fixed(128.0)}) ==
          expected);

    auto o3_properties = ac::apex_properties_of(o3);
    o3_properties.master_weights = true;
    o3_properties.cast_model_type = mp::element_format::bf16;
    o3_properties.loss_scale = scale{};
    CHECK(ac::apex_properties_of(o3, {.cast_model_type = mp::element_format::bf16,
                                      .patch_functions = false,
                                      .master_weights = true,
                                      .loss_scale = scale{}}) == o3_properties);

    auto o1_properties = ac::apex_properties_of(o1);
    o1_properties.cast_model_type = f32;
    o1_properties.patch_functions = false;
    CHECK(ac::apex_properties_of(o1, {.cast_model_type = f32, .patch_functions = false}) == o1_properties);
}

TEST_CASE("with O1 the model, its batch norms and master weights are not Apex's to cast") {
    const std::string type = message_of(o1, {.cast_model_type = f16});
    CHECK(contains(type, "cast_model_type is 'float16'"));
    CHECK(contains(type, "O2 and O3"));
    CHECK(contains(message_of(o1, {.keep_batchnorm_fp32 = true}), "keep_batchnorm_fp32 is true"));
    CHECK(contains(message_of(o1, {.keep_batchnorm_fp32 = false}), "keep_batchnorm_fp32 is false"));
    CHECK(contains(message_of(o1, {.master_weights = true}), "master_weights is true"));
    CHECK(contains(message_of(o1, {.master_weights = false}), "master_weights is false"));
}

TEST_CASE("only O1 patches functions") {
    for (const auto level : {o0, o2, o3}) {
        CHECK(contains(message_of(level, {.patch_functions = true}), "patch_functions is true"));
        CHECK_NOTHROW((void)ac::apex_properties_of(level, {.patch_functions = false}));
    }
    CHECK_NOTHROW((void)ac::apex_properties_of(o1, {.patch_functions = true}));
}

TEST_CASE("a model is cast to floating-point formats, by scales that can be divided by") {
    CHECK(contains(message_of(o2, {.cast_model_type = int8}), "cast_model_type is 'int8'"));
    const double infinity = std::bit_cast<double>(std::uint64_t{0x7ff0'0000'0000'0000});
    const double not_a_number = std::bit_cast<double>(std::uint64_t{0x7ff8'0000'0000'0000});
    for (const double value : {0.0, -0.0, -1.0, infinity, -infinity, not_a_number, -not_a_number}) {
        CHECK(contains(message_of(o2, {.loss_scale = scale::fixed(value)}), "loss_scale is "));
    }
    CHECK_NOTHROW((void)ac::apex_properties_of(o2, {.loss_scale = scale{true, 0.0}}));
    CHECK_NOTHROW((void)ac::apex_properties_of(o2, {.loss_scale = scale::fixed(0x1p-1074)}));
    CHECK_NOTHROW((void)ac::apex_properties_of(o2, {.loss_scale = scale::fixed(0x1.fffffffffffffp1023)}));
}

TEST_CASE("parameters, updates, inputs and results have the formats that Apex gives them") {
    const auto zero = ac::apex_properties_of(o0);
    const auto one = ac::apex_properties_of(o1);
    const auto two = ac::apex_properties_of(o2);
    const auto three = ac::apex_properties_of(o3);

    CHECK(ac::parameter_format(zero, false) == f32);
    CHECK(ac::parameter_format(one, false) == f32);
    CHECK(ac::parameter_format(two, false) == f16);
    CHECK(ac::parameter_format(three, false) == f16);
    CHECK(ac::parameter_format(zero, true) == f32);
    CHECK(ac::parameter_format(one, true) == f32);
    CHECK(ac::parameter_format(two, true) == f32);
    CHECK(ac::parameter_format(three, true) == f16);
    CHECK(ac::parameter_format(ac::apex_properties_of(o2, {.keep_batchnorm_fp32 = false}), true) == f16);
    CHECK(ac::parameter_format(ac::apex_properties_of(o3, {.keep_batchnorm_fp32 = true}), true) == f32);
    CHECK(ac::parameter_format(ac::apex_properties_of(o0, {.cast_model_type = f16}), true) == f16);

    CHECK(ac::update_format(zero, false) == f32);
    CHECK(ac::update_format(one, false) == f32);
    CHECK(ac::update_format(two, false) == f32);
    CHECK(ac::update_format(three, false) == f16);

    CHECK_FALSE(ac::casts_ops(zero));
    CHECK(ac::casts_ops(one));
    CHECK_FALSE(ac::casts_ops(two));
    CHECK_FALSE(ac::casts_ops(three));

    CHECK(ac::input_format(zero) == f32);
    CHECK(ac::input_format(one) == std::nullopt);
    CHECK(ac::input_format(two) == f16);
    CHECK(ac::output_format(zero) == f32);
    CHECK(ac::output_format(one) == std::nullopt);
    CHECK(ac::output_format(two) == f32);
    CHECK(ac::output_format(three, f16) == f16);
    CHECK(ac::output_format(one, f16) == f16);
}
