// SPDX-License-Identifier: MIT
// Run by mpirun with several ranks: reductions through MPI, and loss scalers that agree through them.
#include <mp/frontends/interop/mpi.hpp>
#include <mp/loss_scaling.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "nn/scaling/thrown.hpp"

namespace {

int rank = 0;
int ranks = 0;

std::uint64_t own_value(int of_rank, std::size_t place) {
    return static_cast<std::uint64_t>((of_rank * 7 + static_cast<int>(place) * 5) % 11);
}

/// An optimizer with one parameter.
struct one_gradient {
    std::vector<float> gradient;
    int steps = 0;

    mp::gradient_report unscale_gradients(float inverse_scale) {
        mp::gradient_report report;
        report.add(0, gradient.size(), mp::unscale_and_check(mp::cpu{}, gradient, inverse_scale));
        return report;
    }
    void step() { ++steps; }
    void skip_step() {}
};

/// Whether MPI_Iallreduce is to be called in a way that MPI refuses.
bool negative_count = false;
/// Whether MPI_Ibcast is to fail, which is told to the world communicator.
bool broadcast_fails = false;

}  // namespace

// MPI's profiling interface: a program may put itself before any function of MPI's.
extern "C" int MPI_Iallreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op operation,
                              MPI_Comm communicator, MPI_Request* request) {
    return PMPI_Iallreduce(from, to, negative_count ? -1 : count, type, operation, communicator, request);
}

extern "C" int MPI_Ibcast(void* bytes, int count, MPI_Datatype type, int root, MPI_Comm communicator,
                          MPI_Request* request) {
    if (!broadcast_fails) return PMPI_Ibcast(bytes, count, type, root, communicator, request);
    MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_OTHER);
    return MPI_ERR_OTHER;
}

static_assert(!std::is_copy_constructible_v<mp::mpi_reducer>);
static_assert(std::is_base_of_v<mp::rank_error, mp::mpi_error>);

TEST_CASE("max and sum are those of all ranks, at every place") {
    mp::mpi_reducer reducer(MPI_COMM_WORLD);
    for (const std::size_t size : {0u, 1u, 3u, 1000u}) {
        std::vector<std::uint64_t> largest(size);
        for (std::size_t i = 0; i < size; ++i) largest[i] = own_value(rank, i);
        std::vector<std::uint64_t> sums = largest;
        reducer.max(largest);
        reducer.sum(sums);
        bool right = true;
        for (std::size_t i = 0; i < size; ++i) {
            std::uint64_t most = 0;
            std::uint64_t total = 0;
            for (int r = 0; r < ranks; ++r) {
                const std::uint64_t theirs = own_value(r, i);
                most = theirs > most ? theirs : most;
                total += theirs;
            }
            right = right && largest[i] == most && sums[i] == total;
        }
        CHECK(right);
    }
}

TEST_CASE("values are unsigned and of 64 bits") {
    mp::mpi_reducer reducer(MPI_COMM_WORLD);
    const std::uint64_t top = std::uint64_t{1} << 63;
    std::vector<std::uint64_t> values{rank == 0 ? top + 3 : 5U, rank == ranks - 1 ? ~std::uint64_t{0} : top};
    reducer.max(values);
    CHECK(values == std::vector<std::uint64_t>{top + 3, ~std::uint64_t{0}});
    values = {rank == 0 ? top + 1 : 2U};
    reducer.sum(values);
    CHECK(values[0] == top + 1 + 2 * static_cast<std::uint64_t>(ranks - 1));
}

TEST_CASE("a reducer of some of the ranks") {
    MPI_Comm half = MPI_COMM_NULL;
    REQUIRE(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half) == MPI_SUCCESS);
    {
        mp::mpi_reducer reducer(half);
        // It has a communicator of its own, so this one may go.
        REQUIRE(MPI_Comm_free(&half) == MPI_SUCCESS);
        std::vector<std::uint64_t> values{1};
        reducer.sum(values);
        CHECK(values[0] == static_cast<std::uint64_t>((ranks + 1 - rank % 2) / 2));
    }
}

TEST_CASE("what one rank finds, all scalers act on") {
    mp::mpi_reducer reducer(MPI_COMM_WORLD);
    mp::dynamic_loss_scaler scaler({.initial_scale = 1024.0F, .growth_interval = 4});
    scaler.set_reducer(reducer);
    one_gradient optimizer;
    float expected = 1024.0F;
    int steps = 0;
    int clean = 0;
    for (int iteration = 0; iteration < 40; ++iteration) {
        // In turn: one rank has an infinity, nobody has anything, one rank has no gradient, all is well.
        const bool bad = iteration % 10 == 3;
        const bool none = iteration % 10 == 6;
        optimizer.gradient.assign(3, 1024.0F);
        if (bad && rank == iteration / 10 % ranks) {
            optimizer.gradient[1] = std::numeric_limits<float>::infinity();
        }
        if (none || (!bad && iteration % 4 == 1 && rank == 0)) optimizer.gradient.clear();
        const mp::step_result result = scaler.step(optimizer);
        CHECK(static_cast<bool>(result) == (!bad && !none));
        scaler.update();
        if (bad) {
            expected /= 2;
            clean = 0;
        } else if (!none) {
            ++steps;
            if (++clean == 4) {
                expected *= 2;
                clean = 0;
            }
        }
        CHECK(scaler.current_scale() == expected);
    }
    CHECK(optimizer.steps == steps);
}

TEST_CASE("misuse is refused with the reason") {
    CHECK(thrown<mp::argument_error>([] { mp::mpi_reducer reducer(MPI_COMM_NULL); }) ==
          "mp::mpi_reducer: communicator is MPI_COMM_NULL; it must have ranks");
    CHECK(thrown<mp::argument_error>([] {
              mp::mpi_communicator self(MPI_COMM_SELF, mp::default_rank_timeout, 7);
          }) == "mp::mpi_communicator: largest_message is 7; it must be from 8 to 2^31 - 1");
    MPI_Comm half = MPI_COMM_NULL;
    REQUIRE(MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? 0 : 1, rank, &half) == MPI_SUCCESS);
    if (ranks > 1) {
        MPI_Comm between = MPI_COMM_NULL;
        REQUIRE(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank == 0 ? 1 : 0, 7, &between) == MPI_SUCCESS);
        CHECK(holds(thrown<mp::argument_error>([&] { mp::mpi_reducer no(between); }), "joins two groups"));
        MPI_Comm_free(&between);
    }
    MPI_Comm_free(&half);
}

TEST_CASE("another thread than the main one needs a level of MPI that allows it") {
    mp::mpi_reducer reducer(MPI_COMM_WORLD);
    int level = MPI_THREAD_SINGLE;
    REQUIRE(MPI_Query_thread(&level) == MPI_SUCCESS);
    std::vector<std::uint64_t> values{1};
    std::string message;
    std::thread([&] { message = thrown<mp::state_error>([&] { reducer.sum(values); }); }).join();
    if (level < MPI_THREAD_SERIALIZED) {
        CHECK(holds(message, "MPI_THREAD_SERIALIZED"));
        CHECK(values[0] == 1);
    } else {
        CHECK(message == "(nothing was thrown)");
        CHECK(values[0] == static_cast<std::uint64_t>(ranks));
    }
}

TEST_CASE("an error of MPI is an exception, and the handler of the caller's communicator stays") {
    MPI_Errhandler before = MPI_ERRHANDLER_NULL;
    MPI_Errhandler after = MPI_ERRHANDLER_NULL;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
    mp::mpi_reducer reducer(MPI_COMM_WORLD);
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &after);
    CHECK(before == after);
    CHECK(before == MPI_ERRORS_ARE_FATAL);
    std::vector<std::uint64_t> values(100, 1);  // too many to travel without it
    negative_count = true;
    try {
        reducer.sum(values);
        FAIL("nothing was thrown");
    } catch (const mp::mpi_error& error) {
        CHECK(error.call() == "MPI_Iallreduce");
        int kind = MPI_SUCCESS;
        MPI_Error_class(error.code(), &kind);
        CHECK(kind == MPI_ERR_COUNT);
        char text[MPI_MAX_ERROR_STRING] = {};
        int length = 0;
        MPI_Error_string(error.code(), text, &length);
        CHECK(std::string(error.what()) ==
              "MPI_Iallreduce: " + std::string(text) + " (" + std::to_string(error.code()) + ")");
    }
    negative_count = false;
    reducer.sum(values);
    CHECK(values[99] == static_cast<std::uint64_t>(ranks));
    if (before != MPI_ERRORS_ARE_FATAL) MPI_Errhandler_free(&before);
}

TEST_CASE("an error that MPI tells the world communicator is an exception, and the handler stays") {
    mp::mpi_communicator self(MPI_COMM_WORLD);
    std::vector<std::byte> bytes(8);
    broadcast_fails = true;
    CHECK(holds(thrown<mp::rank_error>([&] { self.broadcast(bytes, 0); }), "MPI_Ibcast: "));
    broadcast_fails = false;
    MPI_Errhandler after = MPI_ERRHANDLER_NULL;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &after);
    CHECK(after == MPI_ERRORS_ARE_FATAL);
    self.broadcast(bytes, 0);
}

TEST_CASE("calls that differ are an error on all ranks, whatever differs") {
    const auto differ = [](auto call, const std::string& mine, const std::string& others) {
        mp::mpi_communicator self(MPI_COMM_WORLD, std::chrono::seconds(20));
        const std::string text = thrown<mp::rank_error>([&] { call(self); });
        const std::string first = rank == 1 ? others : mine;
        CHECK(holds(text, "mp::mpi_communicator: rank "));
        CHECK(holds(text, (" makes " + (rank == 1 ? mine : others)).c_str()));
        CHECK(holds(text, ("where this rank makes " + first).c_str()));
        // It does not go on as if nothing had happened.
        std::uint64_t value = 0;
        CHECK(
            holds(thrown<mp::state_error>([&] { self.sum(std::span(&value, 1)); }), "has failed on the way"));
    };
    const std::size_t one = rank == 1 ? 2 : 1;
    differ(
        [&](auto& self) {
            std::vector<std::byte> bytes(one * 100'000);
            self.broadcast(bytes, 0);
        },
        "broadcast number 0 with 100000 bytes of rank 0", "broadcast number 0 with 200000 bytes of rank 0");
    differ(
        [&](auto& self) {
            std::vector<std::byte> bytes(100);
            self.broadcast(bytes, rank == 1 ? 1 : 0);
        },
        "broadcast number 0 with 100 bytes of rank 0", "broadcast number 0 with 100 bytes of rank 1");
    differ(
        [&](auto& self) {
            std::vector<std::uint64_t> values(one * 100);
            self.sum(values);
        },
        "sum number 0 with 800 bytes", "sum number 0 with 1600 bytes");
    differ(
        [&](auto& self) {
            std::vector<std::uint64_t> values(3);
            rank == 1 ? (self.max)(values) : self.sum(values);
        },
        "sum number 0 with 24 bytes", "max number 0 with 24 bytes");
    const auto cuts_of = [](std::size_t part) {
        std::vector<std::size_t> cuts;
        for (int r = 0; r <= ranks; ++r) cuts.push_back(static_cast<std::size_t>(r) * part);
        return cuts;
    };
    for (const std::size_t size : {std::size_t{10}, std::size_t{1} << 20}) {
        const std::size_t bytes = static_cast<std::size_t>(ranks) * size;
        const std::string mine = " number 0 with " + std::to_string(bytes) + " bytes";
        const std::string others = " number 0 with " + std::to_string(2 * bytes) + " bytes";
        std::vector<std::byte> from(2 * bytes), to(2 * bytes);  // outlive the calls
        differ(
            [&](auto& self) {
                auto call = self.start_exchange(std::span(from).first(one * bytes), to, cuts_of(one * size));
                self.wait(call);
            },
            "exchange" + mine, "exchange" + others);
        differ(
            [&](auto& self) {
                auto call = self.start_gather(std::span(from).first(one * bytes), cuts_of(one * size));
                while (!self.finished(call)) {
                }
            },
            "gather" + mine, "gather" + others);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

TEST_CASE("a call that a rank misses ends with an error on the others, and this rank may come too late") {
    using namespace std::chrono_literals;
    std::vector<std::uint64_t> late{own_value(rank, 0), 1};
    {
        mp::mpi_reducer reducer(MPI_COMM_WORLD);
        CHECK(reducer.timeout() == mp::default_rank_timeout);
        if (rank != 0) {
            reducer.set_timeout(50ms);
            CHECK(reducer.timeout() == 50ms);
            const std::vector<std::uint64_t> before = late;
            const auto start = std::chrono::steady_clock::now();
            const std::string message = thrown<mp::rank_timeout>([&] { reducer.sum(late); });
            CHECK(std::chrono::steady_clock::now() - start >= 50ms);
            CHECK(message.starts_with("mp::mpi_reducer::sum: after "));
            CHECK(holds(
                message,
                "seconds not all ranks have made this call: rank 0 has not made sum number 0; save what "
                "can be saved and end"));
            CHECK(late == before);
            CHECK(holds(thrown<mp::state_error>([&] { reducer.max(late); }),
                        "mp::mpi_reducer::max: a call before this one has failed on the way"));
        }
        // The memory of the call that was given up is still there when MPI writes to it.
        if (rank != 0) {
            const mp::mpi_reducer moved_on(MPI_COMM_SELF);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            reducer.sum(late);
            std::uint64_t total = 0;
            for (int r = 0; r < ranks; ++r) total += own_value(r, 0);
            CHECK(late == std::vector<std::uint64_t>{total, static_cast<std::uint64_t>(ranks)});
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(thrown<mp::argument_error>([] { mp::mpi_reducer no(MPI_COMM_SELF, 0s); }) ==
          "mp::mpi_reducer: timeout is 0; it must be a positive number of nanoseconds");
}

TEST_CASE("ranks whose scalers differ are told so, all of them") {
    mp::mpi_reducer reducer(MPI_COMM_WORLD);
    mp::dynamic_loss_scaler scaler({.growth_interval = rank == 1 ? 3 : 4});
    CHECK(holds(thrown<mp::rank_error>([&] { scaler.set_reducer(reducer); }),
                rank == 1 ? "policy.growth_interval is 3 on this rank, and from 3 to 4 on all"
                          : "policy.growth_interval is 4 on this rank, and from 3 to 4 on all"));
    mp::loss_scaler<mp::keras_policy> keras;
    CHECK(holds(thrown<mp::rank_error>([&] {
                    if (rank == 0) {
                        keras.set_reducer(reducer);
                    } else {
                        scaler.set_reducer(reducer);
                    }
                }),
                "different scale policies"));
    scaler.set_policy({});
    scaler.set_reducer(reducer);
}

// Last, since MPI is in the middle of something after it.
TEST_CASE("a reducer that a rank does not create is an error on the others") {
    using namespace std::chrono_literals;
    if (rank != 0) {
        CHECK(holds(thrown<mp::rank_timeout>([] { mp::mpi_reducer reducer(MPI_COMM_WORLD, 50ms); }),
                    "mp::mpi_reducer: after "));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        // Comes too late, and keeps what it gets: the others will not free theirs.
        MPI_Comm duplicate = MPI_COMM_NULL;
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Comm_idup(MPI_COMM_WORLD, &duplicate, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
    const std::string early = thrown<mp::state_error>([] { mp::mpi_reducer reducer(MPI_COMM_WORLD); });
    int level = MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks < 2) {
        std::printf("there is only one rank; run this as mpirun -n 3 %s\n", argv[0]);
        MPI_Finalize();
        return 1;
    }
    doctest::Context context(argc, argv);
    int result = context.run();
    if (!holds(early, "call MPI_Init")) {
        std::printf("before MPI_Init: %s\n", early.c_str());
        result = 1;
    }
    // The other ranks may be waiting for this one.
    if (result != 0) MPI_Abort(MPI_COMM_WORLD, result);
    MPI_Finalize();
    const std::string late = thrown<mp::state_error>([] { mp::mpi_reducer reducer(MPI_COMM_WORLD); });
    if (!holds(late, "MPI_Finalize has been called")) {
        std::printf("after MPI_Finalize: %s\n", late.c_str());
        return 1;
    }
    return result;
}
