// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/frontends/compat/apex.hpp>
#include <mp/frontends/compat/jmp.hpp>
#include <mp/frontends/compat/keras/dtype_policy_map.hpp>

#include <array>
#include <string>
#include <string_view>

namespace {

using mp::autocast_region;
using mp::bfloat16;
using mp::half;
using mp::op_category;
namespace ac = mp::autocast;

template <class Name>
struct named_op {
    static constexpr std::string_view name = Name::value;
    static constexpr auto category = op_category::pass_through;
    constexpr auto operator()(auto x) const { return x; }
};
struct exponential {
    static constexpr std::string_view value = "exp";
};
struct loss {
    static constexpr std::string_view value = "mse_loss";
};
struct batch_norm {
    static constexpr std::string_view value = "batch_norm";
};
struct product {
    static constexpr std::string_view value = "matmul";
};

constexpr float third = 1.0F / 3.0F;

/// "h", "b" or "f": the format that an op of this name rounds a float to.
template <class Name>
std::string format_of() {
    const float result = ac::dispatch(named_op<Name>{}, third);
    return result == third                                 ? "f"
           : result == static_cast<float>(half(third))     ? "h"
           : result == static_cast<float>(bfloat16(third)) ? "b"
                                                           : "?";
}
std::string formats() {
    return format_of<product>() + format_of<exponential>() + format_of<batch_norm>() + format_of<loss>();
}
std::string formats_with(const mp::autocast_options& options) {
    const autocast_region region(options);
    return formats();
}

std::string message_of(const auto& function) {
    try {
        function();
    } catch (const mp::argument_error& error) {
        return error.what();
    }
    return "nothing was thrown";
}

TEST_CASE("a layer's dtype policy casts all of its ops but losses") {
    CHECK(formats_with(ac::options_of(ac::dtype_policy_from_name("mixed_float16"))) == "hhhf");
    CHECK(formats_with(ac::options_of(ac::dtype_policy_from_name("mixed_bfloat16"))) == "bbbf");
    CHECK(formats_with(ac::options_of(ac::dtype_policy_from_name("float32"))) == "ffff");
    CHECK(formats_with(ac::options_of(ac::dtype_policy_from_jmp("p=f32,c=f16,o=f32"))) == "hhhf");
    CHECK(
        message_of([] { (void)ac::options_of(ac::dtype_policy_from_name("float64")); }) ==
        "mp::autocast::options_of: policy.compute is 'float64'; it must be float16, bfloat16 or float32, the "
        "formats that regions compute in");
}

TEST_CASE("each layer has the policy that its path has in the map") {
    ac::dtype_policy_map policies(ac::dtype_policy_from_name("mixed_float16"));
    policies.set("encoder/.*", ac::dtype_policy_from_name("mixed_bfloat16"));
    policies.set("encoder/norm", ac::dtype_policy_from_name("float32"));
    const auto in_layer = [&](std::string_view path) {
        return formats_with(ac::options_of(policies.at(path)));
    };
    CHECK(in_layer("head") == "hhhf");
    CHECK(in_layer("encoder/dense") == "bbbf");
    CHECK(in_layer("encoder/norm") == "ffff");
    // A layer inside a region that is on turns it off for itself.
    const autocast_region model(ac::options_of(policies.at("head")));
    CHECK(in_layer("encoder/norm") == "ffff");
    CHECK(formats() == "hhhf");
}

TEST_CASE("Apex's levels: by op, by model, not at all") {
    using enum ac::apex_level;
    const auto at = [](ac::apex_level level, const ac::apex_overrides& overrides = {}) {
        return formats_with(ac::options_of(ac::apex_properties_of(level, overrides)));
    };
    CHECK(at(o0) == "ffff");
    CHECK(at(o1) == "hfff");
    CHECK(at(o2) == "hhff");
    CHECK(at(o2, {.keep_batchnorm_fp32 = false}) == "hhhf");
    CHECK(at(o3) == "hhhf");
    CHECK(at(o3, {.keep_batchnorm_fp32 = true}) == "hhff");
    CHECK(at(o3, {.cast_model_type = mp::element_format::bf16}) == "bbbf");
}

}  // namespace
