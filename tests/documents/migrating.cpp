// SPDX-License-Identifier: MIT
// The code of docs/migrating.md.
#include <doctest/doctest.h>
#include <mp/analysis.hpp>
#include <mp/frontends/compat/apex.hpp>
#include <mp/frontends/compat/presets.hpp>
#include <mp/frontends/compat/pytorch.hpp>
#include <mp/frontends/compat/scalers.hpp>
#include <mp/mp.hpp>
#include <mp/packed2.hpp>

#include <cmath>
#include <numbers>
#include <string>
#include <variant>
#include <vector>

#if __has_include(<nlohmann/json.hpp>)
#include <mp/frontends/compat/deepspeed/configuration.hpp>
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
    CHECK(mp::round_to_integer<long>(mp::half{2.5F}, {.round = mp::rounding::nearest_away}) == 3);
    CHECK((isnormal(h) && !is_subnormal(h) && !is_zero(h)));
}

TEST_CASE("docs/migrating.md: what the table of CUDA says of pairs") {
    mp::half2 v(1.5F, 2.5F);
    const mp::half2 both(mp::half(3.0F));
    CHECK(mp::fma(v, both, v + both) == mp::half2(9.0F, 13.0F));
    v = {mp::half(4.0F), v.second()};
    CHECK(float(v.first()) == 4.0F);
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

TEST_CASE("docs/migrating.md: CPFloat") {
    const std::vector<double> x{5.0 / 3, std::numbers::pi, std::numbers::e}, y{1.5, 1.5, 1.5};
    std::vector<double> z(3);
#include "migrating_4.inl"
    CHECK(z[0] == 2.501953125);
    CHECK(z[1] == 1.1455078125);
    CHECK(z[2] == 4.21875);
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
