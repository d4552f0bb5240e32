// SPDX-License-Identifier: MIT
// Run by mpirun with one to four ranks: reductions, shares and checkpoints through MPI give the bits that they give
// through ranks that are threads.
#include <mp/frontends/interop/mpi.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/ops.hpp>
#include <mp/optim.hpp>
#include <mp/parallel.hpp>
#include <mp/training.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "nn/scaling/thrown.hpp"
#include "train/parallel/two_models.hpp"

namespace {

int rank = 0;
int ranks = 0;

/// y = w2 gelu(w1 x): weights in half with float masters.
struct net {
    mp::parameter_store<mp::half> store;
    mp::trained_tensor<mp::half> w1 = store.add_matrix("w1", 90, 40, mp::initializers::normal(0.2));
    mp::trained_tensor<mp::half> b1 = store.add_vector("b1", 90);
    mp::trained_tensor<mp::half> w2 = store.add_matrix("w2", 10, 90, mp::initializers::normal(0.2));
    mp::tensor<mp::half> x{8, 40}, h{8, 90}, a{8, 90}, y{8, 10}, dy{8, 10}, da{8, 90}, dh{8, 90};
    std::vector<int> labels = std::vector<int>(8);

    explicit net(std::uint64_t seed) { store.build(seed); }

    float train(std::uint64_t step, int of_rank, float scale) {
        const mp::cpu exec;
        std::uint64_t place = step * 1000 + static_cast<std::uint64_t>(of_rank) * 1'000'000;
        for (auto& value : x.values()) {
            value = static_cast<mp::half>(static_cast<float>(mp::random_bits(1, place++)) * 0x1p-31F - 1.0F);
        }
        for (int& label : labels) label = static_cast<int>(mp::random_bits(1, place++) % 10);
        mp::ops::linear(exec, x.view(), w1.cached(), b1.values(), h.view());
        mp::ops::gelu(exec, h.view(), a.view());
        mp::ops::linear(exec, a.view(), w2.cached(), mp::ops::absent, y.view());
        const float loss =
            mp::ops::softmax_cross_entropy_with_gradient(exec, y.view(), labels, dy.view(), {.scale = scale});
        mp::ops::linear_backward(exec, a.view(), w2.cached(), dy.view(), da.view(), w2.gradient(),
                                 mp::ops::absent);
        mp::ops::gelu_backward(exec, h.view(), da.view(), dh.view());
        mp::ops::linear_backward(exec, x.view(), w1.cached(), dh.view(), mp::ops::absent, w1.gradient(),
                                 b1.gradient_values());
        return loss;
    }
};

struct outcome {
    std::vector<float> losses;  ///< of this rank
    std::vector<std::uint64_t> weights;
    bool operator==(const outcome&) const = default;
};

constexpr std::uint64_t steps = 12;

template <class Ranks, class Optimizer>
outcome run(Ranks& self, net& model, mp::gradient_reduction<Ranks>& reduction, Optimizer& optimizer,
            std::uint64_t first, std::uint64_t last, mp::dynamic_loss_scaler& scaler) {
    outcome result;
    for (std::uint64_t step = first; step < last; ++step) {
        mp::training_iteration iteration(scaler, optimizer);
        // Ranks are late in turns.
        if (step % 4 == static_cast<std::uint64_t>(self.rank()))
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        {
            const auto overlap = reduction.backward(iteration.current_scale());
            result.losses.push_back(model.train(step, self.rank(), iteration.current_scale()));
        }
        reduction.finish();
        iteration.clip_global_gradient_norm(0.5);
        iteration.finish();
        mp::require_same_weights(self, model.store);
        result.weights.push_back(mp::detail::digest_of_weights(model.store));
    }
    return result;
}

template <class Ranks>
outcome train(Ranks& self, mp::wire_format wire, bool shares, std::uint64_t last = steps,
              const std::string& checkpoint = "", bool resumes = false) {
    net model(static_cast<std::uint64_t>(self.rank()));
    mp::broadcast_weights(self, model.store);
    mp::gradient_reduction reduction(mp::cpu{}, self,
                                     {.wire = wire, .bucket_bytes = 4000, .share_only = shares}, model.store);
    // The scale is too high at first, so that steps are skipped.
    mp::dynamic_loss_scaler scaler({.initial_scale = 0x1p24F, .growth_interval = 3});
    const mp::adamw_options options{.learning_rate = 1e-2};
    const auto go = [&](auto& optimizer) {
        std::uint64_t step = 0;
        const auto everything = [&](auto& visit) {
            visit("optimizer", optimizer);
            visit("scaler", scaler);
            visit("step", step);
        };
        if (resumes) mp::load_checkpoint(self, checkpoint, everything);
        outcome result = run(self, model, reduction, optimizer, step, last, scaler);
        step = last;
        if (!checkpoint.empty() && !resumes) mp::save_checkpoint(self, checkpoint, everything);
        return result;
    };
    if (shares) {
        auto optimizer = mp::shard<mp::adamw<mp::half>>(mp::cpu{}, reduction, model.store, options);
        return go(optimizer);
    }
    mp::adamw<mp::half> optimizer(model.store.parameters(), options);
    return go(optimizer);
}

outcome by_threads(mp::wire_format wire, bool shares, std::uint64_t last = steps,
                   const std::string& path = "") {
    std::vector<outcome> all(static_cast<std::size_t>(ranks));
    mp::run_loopback(ranks, [&](auto& self) {
        all[static_cast<std::size_t>(self.rank())] = train(self, wire, shares, last, path);
    });
    return all[static_cast<std::size_t>(rank)];
}

std::string bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("a run through MPI is the run through threads, in every wire format, whole and shared") {
    mp::mpi_communicator self(MPI_COMM_WORLD);
    CHECK(self.rank() == rank);
    CHECK(self.size() == ranks);
    std::vector<outcome> results;
    for (const auto wire :
         {mp::wire_format::as_stored, mp::wire_format::float32, mp::wire_format::bfloat16}) {
        CAPTURE(mp::name_of(wire));
        const outcome expected = by_threads(wire, false);
        CHECK(expected.weights.front() != expected.weights.back());
        CHECK(train(self, wire, false) == expected);
        CHECK(train(self, wire, true) == by_threads(wire, true));
        results.push_back(expected);
    }
    if (ranks > 1) CHECK(results[1].weights != results[2].weights);
}

TEST_CASE("a checkpoint is that of threads, and the run goes on from it") {
    mp::mpi_communicator self(MPI_COMM_WORLD);
    const std::string path =
        (std::filesystem::temp_directory_path() / ("mp_mpi_ranks_" + std::to_string(ranks))).string();
    const outcome all = train(self, mp::wire_format::float32, true);
    static_cast<void>(train(self, mp::wire_format::float32, true, 7, path));
    const outcome rest = train(self, mp::wire_format::float32, true, steps, path, true);
    CHECK(std::vector(all.weights.begin() + 7, all.weights.end()) == rest.weights);
    const std::string by_mpi = bytes_of(path);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        static_cast<void>(by_threads(mp::wire_format::float32, true, 7, path + ".threads"));
        CHECK(by_mpi == bytes_of(path + ".threads"));
        std::filesystem::remove(path);
        std::filesystem::remove(path + ".threads");
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("a copy of a request that has ended is refused, and one made by default has ended") {
    mp::mpi_communicator self(MPI_COMM_WORLD);
    mp::mpi_communicator::request none;
    CHECK(self.finished(none));
    self.wait(none);
    const auto size = static_cast<std::size_t>(ranks);
    std::vector<std::byte> all(size);
    std::vector<std::size_t> cuts;
    for (std::size_t r = 0; r <= size; ++r) cuts.push_back(r);
    auto call = self.start_gather(all, cuts);
    auto copy = call;
    self.wait(call);
    self.wait(call);
    CHECK(thrown<mp::state_error>([&] { self.wait(copy); }) ==
          "mp::mpi_communicator::wait: the request is of a call that has ended, or of another communicator");
    auto next = self.start_gather(all, cuts);  // in the place of the first
    CHECK_THROWS_AS(static_cast<void>(self.finished(copy)), mp::state_error);
    while (!self.finished(next)) {
    }
    CHECK(self.finished(next));
}

TEST_CASE("broadcasts and reductions") {
    mp::mpi_communicator self(MPI_COMM_WORLD);
    for (int root = 0; root < ranks; ++root) {
        std::vector<std::byte> bytes(1001, static_cast<std::byte>(rank + 3));
        self.broadcast(bytes, root);
        CHECK(bytes == std::vector<std::byte>(1001, static_cast<std::byte>(root + 3)));
    }
    std::vector<std::uint64_t> values{1, static_cast<std::uint64_t>(rank)};
    self.sum(values);
    self.max(values);
    CHECK(values[0] == static_cast<std::uint64_t>(ranks));
    CHECK(values[1] == static_cast<std::uint64_t>(ranks * (ranks - 1) / 2));
}

TEST_CASE("what is longer than a message goes in several, in every call") {
    for (const std::size_t message : {std::size_t{8}, std::size_t{12}, std::size_t{4096}}) {
        CAPTURE(message);
        mp::mpi_communicator self(MPI_COMM_WORLD, std::chrono::seconds(20), message);
        mp::mpi_communicator whole(MPI_COMM_WORLD);
        const auto size = static_cast<std::size_t>(ranks);
        std::vector<std::size_t> cuts(1, 0);
        for (std::size_t r = 0; r < size; ++r) cuts.push_back(cuts.back() + 777 * r + 1);
        std::vector<std::byte> from(cuts.back()), all(cuts.back());
        const auto own = static_cast<std::size_t>(rank);
        std::vector<std::byte> to(size * (cuts[own + 1] - cuts[own])), expected = to;
        for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(7 * i + 31 * own);
        auto exchange = self.start_exchange(from, to, cuts);
        auto gather = self.start_gather(all = from, cuts);
        auto exchange_of_whole = whole.start_exchange(from, expected, cuts);
        self.wait(exchange);
        whole.wait(exchange_of_whole);
        self.wait(gather);
        CHECK(to == expected);
        bool right = true;
        for (std::size_t r = 0; r < size; ++r) {
            for (std::size_t i = cuts[r]; i < cuts[r + 1]; ++i) {
                right = right && all[i] == static_cast<std::byte>(7 * i + 31 * r);
            }
        }
        CHECK(right);
        std::vector<std::byte> bytes(1001, static_cast<std::byte>(rank + 3));
        self.broadcast(bytes, ranks - 1);
        CHECK(bytes == std::vector<std::byte>(1001, static_cast<std::byte>(ranks + 2)));
        std::vector<std::uint64_t> values(1001, own);
        self.sum(values);
        CHECK(values == std::vector<std::uint64_t>(1001, size * (size - 1) / 2));
    }
}

TEST_CASE(
    "two reductions on one communicator keep their gradients apart in every order of the ranks' passes") {
    using enum two_models::ranks_differ;
    const std::string path = (std::filesystem::temp_directory_path() / "mp_mpi_two_models").string();
    mp::mpi_communicator self(MPI_COMM_WORLD, std::chrono::seconds(20));
    mp::any_communicator any(self);
    for (const auto differ : {not_at_all, in_time, in_order}) {
        for (const int in_flight : {1, 4}) {
            CHECK(two_models::wrong_gradients(self, {.differ = differ, .in_flight = in_flight}) == 0);
        }
        CHECK(two_models::wrong_gradients(any, {.differ = differ, .wire = mp::wire_format::bfloat16}) == 0);
        CHECK(two_models::wrong_with_shares(self, differ, path) == 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) std::filesystem::remove(path);
}

namespace {

/// Rank 0 does not reduce its gradients. What the others are told.
std::string wait_in_vain() {
    using namespace std::chrono_literals;
    mp::mpi_communicator self(MPI_COMM_WORLD, 200ms);
    net model(1);
    mp::gradient_reduction reduction(mp::cpu{}, self, {.bucket_bytes = 1}, model.store);
    static_cast<void>(reduction.backward(1.0F));
    const std::string told = rank == 0 ? "" : thrown<mp::rank_timeout>([&] { reduction.finish(); });
    // It stays out of order.
    const std::string again = rank == 0 ? told : thrown<mp::rank_timeout>([&] { reduction.finish(); });
    MPI_Barrier(MPI_COMM_WORLD);
    return told == again ? told : "told something else the second time";
}

}  // namespace

int main(int argc, char** argv) {
    int level = MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc > 1 && std::string(argv[1]) == "wait_in_vain") {
        const std::string told = wait_in_vain();
        if (rank == 1) {
            std::printf("%s\n", told.c_str());
            std::fflush(stdout);
            MPI_Abort(MPI_COMM_WORLD, 1);  // as the documentation asks for
        }
        std::this_thread::sleep_for(std::chrono::seconds(60));
    }
    doctest::Context context(argc, argv);
    const int result = context.run();
    // The other ranks may be waiting for this one.
    if (result != 0) MPI_Abort(MPI_COMM_WORLD, result);
    MPI_Finalize();
    return result;
}
