// SPDX-License-Identifier: MIT
// The code of docs/migrating.md.
#include <doctest/doctest.h>
#include <mp/compat/apex.hpp>
#include <mp/compat/presets.hpp>
#include <mp/compat/pytorch.hpp>
#include <mp/compat/scalers.hpp>
#include <mp/mp.hpp>

#include <string>
#include <variant>
#include <vector>

#if __has_include(<nlohmann/json.hpp>)
#include <mp/compat/deepspeed/configuration.hpp>
#define MP_TEST_JSON
#endif

namespace {

TEST_CASE("docs/migrating.md: half.hpp") {
#include "migrating_1.inl"
    CHECK(inexact);
    CHECK(q == h / mp::half{11});
    CHECK(f > r);
    // What its table names.
    CHECK(mp::round_to_integer<int>(mp::half{2.5F}) == 2);
    CHECK(nextafter(h, r) > h);
}

TEST_CASE("docs/migrating.md: torch.amp and Apex") {
    std::vector<float> w(4, 1.0F), dw(4);
    const auto forward = [] { return 1.0F; };
    const auto backward = [&](auto scaled) {
        for (float& gradient : dw) gradient = float(scaled);
    };
#include "migrating_2.inl"
    CHECK(w[0] < 1.0F);

    namespace ac = mp::autocast;
    for (const auto level : {ac::apex_level::o1, ac::apex_level::o2}) {
        const mp::autocast_region region(ac::options_of(ac::apex_properties_of(level)));
        CHECK(ac::explain<ac::by_region, mp::ops::linear_op, float, float>().text().find("half") !=
              std::string::npos);
    }
}

#if defined(MP_TEST_JSON)
TEST_CASE("docs/migrating.md: DeepSpeed") {
    const std::string text = R"({"fp16": {"enabled": true}, "gradient_clipping": 0.5})";
    const int world_size = 1;
    double clipped = 0;
    const auto train = [&](const auto& scaler, double largest) {
        clipped = largest * double(scaler.current_scale());
    };
#include "migrating_3.inl"
    CHECK(clipped == 0.5 * 65536);
}
#endif

}  // namespace
