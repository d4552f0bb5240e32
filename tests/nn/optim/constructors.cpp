// SPDX-License-Identifier: MIT
// Every way to make an optimizer chooses its constructor, and none of those that only refuse mistakes.
#include <doctest/doctest.h>
#include <mp/optim.hpp>

#include <vector>

namespace {

TEST_CASE("lists in braces choose the options, the groups and the executor that they mean") {
    std::vector<float> w(4), dw(4), b(4), db(4);
    const mp::adamw_options half_rate{.learning_rate = 0.5};
    const std::vector<mp::parameter<float>> parameters = {{"w", w, dw}, {"b", b, db, 1}};
    const auto rate = [](const auto& optimizer, std::size_t group = 0) {
        return optimizer.options(group).learning_rate;
    };

    CHECK(rate(mp::adamw<float>({{"w", w, dw}})) == 1e-3);
    CHECK(rate(mp::adamw<float>({{"w", w, dw}}, {})) == 1e-3);
    CHECK(rate(mp::adamw<float>({{"w", w, dw}}, {.learning_rate = 0.25})) == 0.25);
    CHECK(mp::adamw<float>({{"w", w, dw}}, {.weight_decay = 0.25}).options().weight_decay == 0.25);
    CHECK(rate(mp::adamw<float>(mp::cpu{}, {{"w", w, {}}, {"b", b, db}}, {.learning_rate = 0.25})) == 0.25);
    CHECK(rate(mp::adamw<float>({{"w", w, dw}}, half_rate)) == 0.5);
    CHECK(rate(mp::adamw<float>({{"w", w, dw}}, {half_rate})) == 0.5);
    CHECK(rate(mp::adamw<float>({{"w", w, dw}}, {{.learning_rate = 0.25}})) == 0.25);

    CHECK(rate(mp::adamw<float>({{"w", w, dw}, {"b", b, db, 1}}, {{.beta1 = 0.5}, {.learning_rate = 0.25}}),
               1) == 0.25);
    CHECK(rate(mp::adamw<float>(mp::cpu{}, {{"w", w, dw}, {"b", b, db, 1}}, {half_rate, {}}), 0) == 0.5);
    CHECK(rate(mp::adamw<float>(parameters, {half_rate, half_rate}), 1) == 0.5);
    CHECK(rate(mp::adamw<float>(parameters, std::vector{half_rate, half_rate}), 1) == 0.5);

    CHECK(mp::sgd<float>({{"w", w, dw}}, {.learning_rate = 0.1, .momentum = 0.5}).options().momentum == 0.5);
    CHECK(rate(mp::lion<float>({{.name = "w", .weights = w, .gradient = dw}}, {.learning_rate = 0.25})) ==
          0.25);
    CHECK(mp::lars<float>({{"w", w, dw}}, {.learning_rate = 4.0, .clip = true}).options().clip);
    CHECK_FALSE(mp::lars<float>({{"w", w, dw}, {"b", b, db, 1}}, {{}, {.layer_adaptation = false}})
                    .options(1)
                    .layer_adaptation);
    CHECK(rate(mp::lamb<float>({{"w", w, dw}}, {.learning_rate = 0.25, .use_nvlamb = true})) == 0.25);
    CHECK(mp::adafactor<float>({{.name = "w", .weights = w, .gradient = dw, .rows = 2}}, {.epsilon2 = 0.5})
              .options()
              .epsilon2 == 0.5);
}

}  // namespace
