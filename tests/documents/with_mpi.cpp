// SPDX-License-Identifier: MIT
// The code of docs/ranks.md and docs/scaling.md that needs MPI: a program that is started as two ranks.
#include <mp/frontends/compat/scalers.hpp>
#include <mp/frontends/interop/mpi.hpp>
#include <mp/mp.hpp>

#include <chrono>
#include <vector>

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

namespace {

TEST_CASE("docs/ranks.md: a step of two ranks") {
    const mp::cpu exec;
    mp::parameter_store<float> store;
    mp::layers::linear<float> model(store, "layer", 3, 2);
    store.build(1);
    mp::adamw<float> optimizer(store.parameters(), {.learning_rate = 0.1});
    mp::dynamic_loss_scaler scaler;
    const auto everything = [&](auto& visit) {
        visit("optimizer", optimizer);
        visit("scaler", scaler);
    };
    int self = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &self);
    const std::vector<float> x_values(6, 1.0F), dy_values(4, 65536.0F * static_cast<float>(self));
    std::vector<float> dx_values(6);
    const auto x = mp::row_major(x_values, 2, 3), dy = mp::row_major(dy_values, 2, 2);
    const auto dx = mp::row_major(dx_values, 2, 3);
    model.forward(exec, x);
#include "ranks_1.inl"
    CHECK(store.parameters()[0].gradient[0] == 65536.0F);  // the mean of 0 and 2 * 65536
    iteration.finish();
}

TEST_CASE("docs/scaling.md: ranks that agree") {
    mp::loss_scaler scaler(mp::deepspeed_policy{});
#include "scaling_5.inl"
    CHECK(scaler.current_scale() == 65536.0F);
}

}  // namespace

int main(int argc, char** argv) {
    int level = MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    const int result = doctest::Context(argc, argv).run();
    MPI_Finalize();
    return result;
}
