// SPDX-License-Identifier: MIT
// The code of docs/autocast.md, checking.md (what needs no Boost) and ranks.md (what needs no MPI), and of the README.
#include <doctest/doctest.h>
#include <mp/frontends/check/gradient_check.hpp>
#include <mp/frontends/compat/presets.hpp>
#include <mp/frontends/report/advisor.hpp>
#include <mp/frontends/report/ledger_page.hpp>
#include <mp/frontends/report/ledger_report.hpp>
#include <mp/mp.hpp>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

void backward() {}

TEST_CASE("README: numbers, arrays, products") {
    {
#include "readme_1.inl"
        CHECK(up > x);
        CHECK(y > 1.0F);
    }
    {
        const std::vector<float> values(8, 1e-9F);
#include "readme_2.inl"
        CHECK(report.flushed == 8);
        CHECK(low[7] == mp::bfloat16(1e-9F));
    }
    const std::size_t batch = 2, in = 3, out = 4;
    const std::vector<mp::half> x(batch * in, mp::half(1.0F)), w(out * in, mp::half(0.5F));
    std::vector<mp::bfloat16> y(batch * out);
    const std::vector<float> bias(out, -0.5F);
#include "readme_3.inl"
    CHECK(y[7] == 1.0F);
}

TEST_CASE("README: a step, and the same on many ranks") {
    mp::parameter_store<float> store;
    mp::layers::linear<float> layer(store, "layer", 3, 2);
    store.build(1);
    mp::adamw<float> optimizer(store.parameters(), {.learning_rate = 0.1});
    mp::dynamic_loss_scaler scaler;
    const int batch = 0;
    const std::vector<float> before(store.parameters()[0].weights.begin(),
                                    store.parameters()[0].weights.end());
    const auto loss = [](int) { return 1.0F; };
    const auto backward = [&](auto scaled) {
        for (const auto& parameter : store.parameters()) {
            for (float& gradient : parameter.gradient) gradient = float(scaled);
        }
    };
    {
#include "readme_4.inl"
    }
    CHECK(store.parameters()[0].weights[0] < before[0]);

    const mp::cpu exec;
    mp::single_rank ranks;
    mp::training_iteration iteration(scaler, optimizer);
#include "readme_5.inl"
    iteration.finish();
}

TEST_CASE("docs/tour.md") {
    using namespace mp::literals;
#include "tour_1.inl"
    CHECK(third.bits() == 0x3555);
    CHECK(product == 1.0F);
    CHECK(rounded);
#include "tour_2.inl"
    CHECK(narrow[0] == 0.0F);
    CHECK(mp::isinf(narrow[4]));
    CHECK(lost.flushed == 1);
    CHECK(lost.subnormals == 1);
    CHECK(lost.overflows == 1);
#include "tour_3.inl"
    CHECK(optimizer.step_count() == 2);
#include "tour_4.inl"
    CHECK(y[1] == 6.0F);
#include "tour_5.inl"
    CHECK(last < first / 2);
#include "tour_6.inl"
    CHECK(on_h100 == on_v100);  // three products of few bits
}

TEST_CASE("docs/autocast.md: a region, its exceptions, and other threads") {
    const mp::cpu exec;
    const std::vector<float> x_values(6, 1.0F), w_values(6, 0.5F), b(2, 1.0F);
    std::vector<float> y_values(4), p_values(4);
    const auto x = mp::row_major(x_values, 2, 3), w = mp::row_major(w_values, 2, 3);
    const auto y = mp::row_major(y_values, 2, 2), p = mp::row_major(p_values, 2, 2);
    mp::autocast::buffer_version w_version;
    {
#include "autocast_1.inl"
        worker.join();
    }
    CHECK(y_values[0] == 2.5F);
    CHECK(p_values[0] == 0.5F);
}

#include "autocast_3.inl"

TEST_CASE("docs/autocast.md: an op of one's own") {
    namespace ac = mp::autocast;
    const float x = 2.0F;
#include "autocast_4.inl"
    CHECK(y == 0.4F);
    CHECK(z == 0.4F);
    CHECK(ac::explain<ac::by_region, squash_op, float>().text() ==
          "squash under policy bfloat16: float and reduced arguments are cast to the low precision of the "
          "policy "
          "(category lower_precision, a rule of the region for 'squash' in layers 'decoder.*'); computes in "
          "bfloat16, "
          "returns bfloat16");
}

TEST_CASE("docs/autocast.md: a ledger and what it advises") {
    namespace ac = mp::autocast;
    const std::vector<float> x(6, 1e-9F), w(6, 0.5F), b(2, 1.0F);
    std::vector<float> y(4);
    const auto train_one_step = [&] {
        mp::ops::linear(mp::cpu{}, mp::row_major(x, 2, 3), mp::row_major(w, 2, 3), b, mp::row_major(y, 2, 2));
    };
    std::ostringstream text;
    std::streambuf* const before = std::cout.rdbuf(text.rdbuf());
#include "autocast_5.inl"
    std::cout.rdbuf(before);
    CHECK(text.str().find("makes zero of 6 numbers") != std::string::npos);
}

TEST_CASE("docs/autocast.md: operations") {
    const mp::cpu exec;
    const std::ptrdiff_t batch = 1, heads = 12, width = 24, rows = 4;
    const std::uint64_t seed = 1, step = 2;
    std::vector<float> images_values(3 * 32 * 32, 1.0F), kernels_values(2 * 27, 1.0F),
        features_values(2 * 1024), hidden_values(2 * 1024);
    const std::vector<float> bias(2, 1.0F);
    std::vector<mp::bfloat16> values(std::size_t(heads * rows * 2), mp::bfloat16(1.0F)),
        qkv_values(std::size_t(rows * 3 * width), mp::bfloat16(1.0F)), y_values(std::size_t(rows * width));
    const auto images = mp::row_major(images_values, 1, 3 * 1024),
               kernels = mp::row_major(kernels_values, 2, 27);
    const auto features = mp::row_major(features_values, 1, 2 * 1024),
               hidden = mp::row_major(hidden_values, 1, 2 * 1024);
    const auto q = mp::row_major(values, heads * rows, 2), k = q, v = q;
    const auto qkv = mp::row_major(qkv_values, rows, 3 * width);
    std::vector<mp::bfloat16> attended_values(std::size_t(rows * width));
    const auto y = mp::row_major(y_values, heads * rows, 2),
               attended = mp::row_major(attended_values, rows, width);
#include "autocast_6.inl"
    CHECK(features_values[0] == 13.0F);
}

TEST_CASE("docs/checking.md: gradients") {
    const mp::cpu exec;
    const std::size_t width = 4, seed = 3;
    const std::vector<double> x_values{1, -2, 3, 4, 0.5, 2, -1, 1};
    std::vector<double> dx_values(8), dy_values(8);
    const auto x = mp::row_major(x_values, 2, 4);
    const auto dx = mp::row_major(dx_values, 2, 4), dy = mp::row_major(dy_values, 2, 4);
    const std::vector<std::int32_t> labels{0, 1};
#include "checking_2.inl"
    CHECK(report.passed(1e-7));
}

TEST_CASE("docs/ranks.md: shared optimizer states") {
    const mp::cpu exec;
    const mp::adamw_options options{.learning_rate = 0.1};
    const auto folder = std::filesystem::temp_directory_path() / "mp_documents_ranks";
    const auto here = std::filesystem::current_path();
    std::filesystem::create_directories(folder);
    std::filesystem::current_path(folder);
    mp::run_loopback(2, [&](auto& ranks) {
        mp::parameter_store<mp::bfloat16> store;
        mp::layers::linear<mp::bfloat16> layer(store, "layer", 3, 2);
        store.build(1);
        int step = 4;
        const auto everything = [&](auto& visit) { visit("step", step); };
#include "ranks_2.inl"
        CHECK(optimizer.local().step_count() == 0);
    });
    CHECK(std::filesystem::exists("run.ckpt"));
    std::filesystem::current_path(here);
    std::filesystem::remove_all(folder);
}

}  // namespace
