// SPDX-License-Identifier: MIT
// The code of docs/training.md and docs/scaling.md: it compiles, and does what its comments say.
#include <doctest/doctest.h>
#include <mp/frontends/compat/pytorch.hpp>
#include <mp/frontends/compat/scalers.hpp>
#include <mp/mp.hpp>

#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#if __has_include(<nlohmann/json.hpp>)
#include <mp/frontends/compat/deepspeed/configuration.hpp>
#include <mp/frontends/compat/pytorch/json_state_dict.hpp>
#define MP_TEST_JSON
#endif

namespace {

TEST_CASE("docs/training.md: a training step") {
    const mp::cpu exec;
    std::vector<mp::half> weights(6, mp::half(1.0F)), gradients(6, mp::half(32768.0F));
    const std::vector<float> x_values(6, 1.0F), w_values(6, 0.5F), b(2, 1.0F);
    std::vector<float> y_values(4);
    const auto x = mp::row_major(x_values, 2, 3);
    const auto w = mp::row_major(w_values, 2, 3);
    const auto y = mp::row_major(y_values, 2, 2);
#include "training_1.inl"
    CHECK(y_values[3] == 2.5F);
    CHECK(gradient_of_loss == 65536.0F);
    CHECK(weights[0] < 1.0F);
}

TEST_CASE("docs/training.md: gradients are written or added to") {
    const mp::cpu exec;
    const std::vector<float> values(16, 1.0F), ones(4, 1.0F);
    std::vector<float> dx_values(16), dw_values(16, 5.0F), db(4, 5.0F), dh_values(16, 1.0F), dgamma(4);
    const mp::matrix_view<const float> w = mp::row_major(values, 4, 4), h = w;
    const std::vector<mp::matrix_view<const float>> x(4, w), dy(4, w);
    const auto dx = mp::row_major(dx_values, 4, 4), dw = mp::row_major(dw_values, 4, 4),
               dh = mp::row_major(dh_values, 4, 4);
    const std::vector<float>& gamma = ones;
#include "training_2.inl"
    CHECK(db[0] == 16.0F);
    CHECK(dw_values[5] == 16.0F);
    CHECK(dgamma[0] != 0.0F);
}

TEST_CASE("docs/training.md: groups and schedules") {
    std::vector<mp::bfloat16> w(4, mp::bfloat16(1.0F)), dw(4), h(4), dh(4);
    std::vector<float> gamma(4, 1.0F), dgamma(4);
    mp::dynamic_loss_scaler scaler;
    const int batch = 0;
    const auto loss = [](int) { return 1.0F; };
    const auto backward = [&](auto scaled) {
        for (mp::bfloat16& gradient : dw) gradient = mp::bfloat16(float(scaled));
    };
#include "training_3.inl"
    CHECK(matrices.step_count() == 1);
    CHECK(norms.step_count() == 1);
}

TEST_CASE("docs/training.md: a model, with a workspace and a pool, and on a tape") {
    const std::size_t width = 24, batch = 2, seed = 7, tokens = 4;
    const int micro = 0;
    std::vector<mp::bfloat16> x_values(batch * tokens * width, mp::bfloat16(0.5F)),
        dx_values(x_values.size()), dh_values(x_values.size()),
        dy_values(x_values.size(), mp::bfloat16(1.0F));
    const auto rows = std::ptrdiff_t(batch * tokens);
    const auto columns = std::ptrdiff_t(width);
    {
        const auto x = mp::row_major(std::as_const(x_values), rows, columns);
        const auto dy = mp::row_major(std::as_const(dy_values), rows, columns);
        const auto dh = mp::row_major(dh_values, rows, columns);
        const auto dx = mp::row_major(dx_values, rows, columns);
#include "training_4.inl"
        CHECK(y.rows == rows);
    }
    const mp::cpu exec;
    const std::vector<std::int32_t> labels(batch * tokens, 1);
    mp::parameter_store<mp::bfloat16> store;
    mp::layers::linear<mp::bfloat16> first(store, "first", width, width);
    mp::layers::layer_norm<mp::bfloat16> norm(store, "norm", width);
    mp::layers::mlp<mp::bfloat16> feed(store, "mlp", width, 2 * width);
    mp::layers::linear<mp::bfloat16> head(store, "head", width, 5);
    store.build(seed);
    const auto x = mp::row_major(std::as_const(x_values), rows, columns);
#include "training_5.inl"
    CHECK(float(loss) > 0.0F);
}

struct visitor {
    template <class Value>
    void operator()(const char*, Value&) const {}
};

TEST_CASE("docs/training.md: recipes for 8 bits") {
    const std::size_t width = 16;
    mp::parameter_store<mp::bfloat16> store;
    const visitor visit;
#include "training_6.inl"
    CHECK_NOTHROW(store.build(1));
}

TEST_CASE("docs/training.md: large batches") {
    std::vector<mp::half> w(4, mp::half(1.0F)), dw(4, mp::half(1.0F)), b(2), db(2), v(4), dv(4);
#include "training_7.inl"
    CHECK(ratio == optimizer.trust_ratio(0));
}

TEST_CASE("docs/training.md: a run that is killed and goes on") {
    const auto here = std::filesystem::current_path();
    const auto folder = std::filesystem::temp_directory_path() / "mp_documents_training";
    std::filesystem::create_directories(folder);
    std::filesystem::current_path(folder);
    {
        const std::size_t in = 2, out = 2;
        std::vector<mp::bfloat16> w(4, mp::bfloat16(1.0F)), dw(4);
        std::vector<float> gamma(2), dgamma(2);
        mp::adamw<mp::bfloat16> matrices({{"w", w, dw}}, {});
        mp::adamw<float> norms({{"gamma", gamma, dgamma}}, {});
        mp::weight_average average(matrices, {.decay = 0.999});
        mp::dynamic_loss_scaler scaler;
        int step = 3;
#include "training_8.inl"
        CHECK(std::filesystem::exists("run.ckpt"));
        CHECK(w[0] == 1.0F);
    }
    std::filesystem::current_path(here);
    std::filesystem::remove_all(folder);
}

TEST_CASE("docs/scaling.md: a loop, and gradients that know their scale") {
    std::vector<float> weights(4, 1.0F), gradients(4);
    mp::sgd<float> optimizer({{"w", weights, gradients}}, {.learning_rate = 0.1});
    const std::vector<std::vector<int>> accumulated{{1, 2}, {3}};
    struct {
        int steps = 0;
        void advance() { ++steps; }
    } schedule;
    const auto loss = [](int batch) { return float(batch); };
    const auto backward = [&](auto scaled) {
        for (float& gradient : gradients) gradient += float(scaled);
    };
    {
#include "scaling_1.inl"
        CHECK(schedule.steps == 2);
    }
    mp::dynamic_loss_scaler scaler;
    std::vector<mp::half> gradient(4, mp::half(4096.0F));
    std::vector<float> buffer(4);
#include "scaling_2.inl"
    CHECK_FALSE(report.found());
}

#if defined(MP_TEST_JSON)
TEST_CASE("docs/scaling.md: states of other systems, and 8 bits") {
    mp::loss_scaler scaler(mp::deepspeed_policy{});
    std::vector<float> weights(4, 1.0F), gradients(4, 3.0F);
    std::vector<mp::float8_e5m2> codes(4);
    mp::adamw<float> optimizer({{"w", weights, gradients}}, {});
    const std::string json = R"({"fp16": {"enabled": true}, "train_micro_batch_size_per_gpu": 4})";
    const std::size_t world_size = 2;
    const auto folder = std::filesystem::temp_directory_path() / "mp_documents_scaling";
    const auto here = std::filesystem::current_path();
    std::filesystem::create_directories(folder);
    std::filesystem::current_path(folder);
    const std::vector<float> moments(4, 0.5F), steps(1, 3.0F);
    const std::string text_of_json =
        R"({"state": {"0": {"step": 3.0, "exp_avg": [1, 2, 3, 4], "exp_avg_sq": [1, 1, 1, 1]}}})";
    mp::save_safetensors("optimizer.safetensors", [&](auto& visit) {
        visit("state.0.step", mp::row_major(steps, 1, 1));
        visit("state.0.exp_avg", mp::row_major(moments, 1, 4));
        visit("state.0.exp_avg_sq", mp::row_major(moments, 1, 4));
    });
#include "scaling_3.inl"
    std::filesystem::current_path(here);
    std::filesystem::remove_all(folder);
    CHECK(resumed.current_scale() == 65536.0F);
    CHECK(config.dtype == mp::deepspeed_dtype::fp16);
#include "scaling_4.inl"
    CHECK(float(codes[0]) > 1.0F);
}
#endif

}  // namespace
