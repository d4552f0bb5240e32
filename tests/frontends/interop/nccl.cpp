// SPDX-License-Identifier: MIT
// What is asked of NCCL and in which order. This program brings the functions of NCCL and of CUDA's runtime
// that the header calls: they keep what is enqueued until the stream is waited for, and reduce with what the
// test says that another rank brings. So it needs the headers, and neither a GPU nor the libraries.
#include <doctest/doctest.h>
#include <mp/frontends/interop/nccl.hpp>
#include <mp/loss_scaling.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "nn/scaling/thrown.hpp"

namespace {

struct fake_machine {
    std::map<const char*, std::size_t> memory;  ///< of the device: where, and how many bytes
    std::vector<std::function<void()>> enqueued;
    std::string calls;                 ///< a letter for each
    std::vector<std::uint64_t> other;  ///< what the other rank brings, from the first call on
    std::size_t taken = 0;
    ncclResult_t reduction = ncclSuccess;
    ncclResult_t later = ncclSuccess;
    int open_groups = 0;
    int stuck = 0;  ///< queries that find the stream at work; -1 for ever
    cudaError_t last_error = cudaSuccess;

    [[nodiscard]] bool holds_bytes(const void* address, std::size_t bytes) const {
        const char* const begin = static_cast<const char*>(address);
        auto after = memory.upper_bound(begin);
        if (after == memory.begin()) return false;
        --after;
        return begin + bytes <= after->first + after->second;
    }
};
fake_machine machine;

int stream_place = 0;
int communicator_place = 0;
const mp::cuda_stream stream{reinterpret_cast<cudaStream_t>(&stream_place)};
const auto communicator = reinterpret_cast<ncclComm_t>(&communicator_place);

/// The machine as at first, for a test of its own.
void new_machine(std::vector<std::uint64_t> other = {}) {
    auto memory = machine.memory;
    machine = {};
    machine.memory = memory;
    machine.other = std::move(other);
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
    *address = std::malloc(bytes);
    machine.memory[static_cast<char*>(*address)] = bytes;
    return cudaSuccess;
}
cudaError_t cudaFree(void* address) {
    machine.memory.erase(static_cast<char*>(address));
    std::free(address);
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t on) {
    if (on != stream.stream) return cudaErrorInvalidResourceHandle;
    const bool up = kind == cudaMemcpyHostToDevice;
    if (!machine.holds_bytes(up ? to : from, bytes)) return cudaErrorInvalidValue;
    machine.calls += up ? 'u' : 'd';
    machine.enqueued.emplace_back([=] { std::memcpy(to, from, bytes); });
    return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t on) {
    if (on != stream.stream) return cudaErrorInvalidResourceHandle;
    if (machine.stuck != 0) {
        if (machine.stuck > 0) --machine.stuck;
        machine.last_error = cudaErrorNotReady;
        return cudaErrorNotReady;
    }
    machine.calls += 'q';
    for (const auto& work : machine.enqueued) work();
    machine.enqueued.clear();
    return cudaSuccess;
}
cudaError_t cudaGetLastError() {
    return std::exchange(machine.last_error, cudaSuccess);
}
cudaError_t cudaStreamSynchronize(cudaStream_t on) {
    if (on != stream.stream) return cudaErrorInvalidResourceHandle;
    machine.calls += 'w';
    for (const auto& work : machine.enqueued) work();
    machine.enqueued.clear();
    return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t) {
    return "text";
}
const char* cudaGetErrorName(cudaError_t) {
    return "name";
}

const char* ncclGetErrorString(ncclResult_t code) {
    return code == ncclInvalidArgument ? "invalid" : "other";
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t of, ncclResult_t* result) {
    *result = machine.later;
    return of == communicator ? ncclSuccess : ncclInvalidArgument;
}
ncclResult_t ncclGroupStart() {
    ++machine.open_groups;
    machine.calls += '(';
    return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
    --machine.open_groups;
    machine.calls += ')';
    return ncclSuccess;
}
ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t among, cudaStream_t on) {
    machine.calls += operation == ncclSum ? '+' : operation == ncclMax ? '>' : '?';
    if (machine.reduction != ncclSuccess) return machine.reduction;
    if (type != ncclUint64 || among != communicator || on != stream.stream || from != to ||
        !machine.holds_bytes(to, 8 * count)) {
        return ncclInvalidUsage;
    }
    const std::size_t first = machine.taken;
    machine.taken += count;
    machine.enqueued.emplace_back([=] {
        auto* const values = static_cast<std::uint64_t*>(to);
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint64_t theirs = machine.other.at(first + i);
            values[i] = operation == ncclSum ? values[i] + theirs : std::max(values[i], theirs);
        }
    });
    return ncclSuccess;
}

}  // extern "C"

static_assert(std::is_base_of_v<mp::error, mp::nccl_error>);
static_assert(!std::is_copy_constructible_v<mp::nccl_reducer>);

TEST_CASE("max and sum go to the device, through NCCL, and back before they return") {
    mp::nccl_reducer reducer(communicator, stream);
    new_machine({5, 5, ~std::uint64_t{0} - 1, 100});
    std::vector<std::uint64_t> values{4, 6, ~std::uint64_t{0}};
    reducer.max(values);
    CHECK(values == std::vector<std::uint64_t>{5, 6, ~std::uint64_t{0}});
    CHECK(machine.calls == "u>qdw");
    machine.calls.clear();
    values = {11};
    reducer.sum(values);
    CHECK(values == std::vector<std::uint64_t>{111});
    CHECK(machine.calls == "u+qdw");
    machine.calls.clear();
    reducer.sum({});
    CHECK(machine.calls.empty());
}

TEST_CASE("spans longer than the memory go in chunks, in the caller's memory as well") {
    mp::device_buffer<std::uint64_t> memory(3);
    mp::nccl_reducer reducer(communicator, stream, memory.span());
    std::vector<std::uint64_t> theirs(8);
    std::vector<std::uint64_t> values(8);
    for (std::size_t i = 0; i < 8; ++i) {
        values[i] = i;
        theirs[i] = 10 * i;
    }
    new_machine(theirs);
    reducer.sum(values);
    for (std::size_t i = 0; i < 8; ++i) CHECK(values[i] == 11 * i);
    CHECK(machine.calls == "u+qdwu+qdwu+qdw");
}

TEST_CASE("a call that a rank misses ends with an error, and one that NCCL gives up at once") {
    using namespace std::chrono_literals;
    new_machine({5});
    {
        mp::nccl_reducer patient(communicator, stream);
        CHECK(patient.timeout() == mp::default_rank_timeout);
        machine.stuck = 3;
        std::vector<std::uint64_t> values{4};
        patient.sum(values);
        CHECK(values[0] == 9);
        CHECK(machine.last_error == cudaSuccess);

        machine.stuck = -1;
        machine.later = ncclRemoteError;
        CHECK(thrown<mp::nccl_error>([&] { patient.sum(values); }) == "ncclAllReduce: other (6)");
        CHECK(values[0] == 9);
        machine.later = ncclSuccess;
        machine.enqueued.clear();
    }
    mp::nccl_reducer reducer(communicator, stream, 1h);
    reducer.set_timeout(10ms);
    machine.calls.clear();
    std::vector<std::uint64_t> values{4};
    const std::string message = thrown<mp::rank_timeout>([&] { reducer.max(values); });
    CHECK(message.starts_with("mp::nccl_reducer::max: after 0."));
    CHECK(
        holds(message, "not all ranks have made this call; save what can be saved and end by ncclCommAbort"));
    CHECK(values[0] == 4);
    // Neither copied back nor waited for, either of which would never end.
    CHECK(machine.calls == "u>");
    machine.stuck = 0;
    machine.enqueued.clear();
    CHECK(holds(thrown<mp::state_error>([&] { reducer.sum(values); }),
                "mp::nccl_reducer::sum: a call before this one has failed on the way"));
    CHECK(holds(thrown<mp::argument_error>([] { mp::nccl_reducer none(communicator, stream, 0s); }),
                "mp::nccl_reducer: timeout is 0;"));
}

TEST_CASE("memory of the reducer's own is given back") {
    const std::size_t before = machine.memory.size();
    {
        mp::nccl_reducer reducer(communicator, stream);
        CHECK(machine.memory.size() == before + 1);
    }
    CHECK(machine.memory.size() == before);
}

TEST_CASE("errors of NCCL are exceptions, those on the way included") {
    mp::nccl_reducer reducer(communicator, stream);
    new_machine({1, 1});
    std::vector<std::uint64_t> values{1};
    machine.reduction = ncclInvalidArgument;
    try {
        reducer.max(values);
        FAIL("nothing was thrown");
    } catch (const mp::nccl_error& error) {
        CHECK(std::string(error.what()) == "ncclAllReduce: invalid (4)");
        CHECK(error.call() == "ncclAllReduce");
        CHECK(error.code() == ncclInvalidArgument);
    }
    machine.reduction = ncclSuccess;
    machine.later = ncclRemoteError;
    CHECK(thrown<mp::nccl_error>([&] { reducer.sum(values); }) == "ncclAllReduce: other (6)");
    CHECK(thrown<mp::argument_error>([] { mp::nccl_reducer none(nullptr, stream); }) ==
          "mp::nccl_reducer: communicator is null; it must come from ncclCommInitRank");
    CHECK(thrown<mp::argument_error>([] {
              mp::nccl_reducer none(communicator, stream, std::span<std::uint64_t>{});
          }) == "mp::nccl_reducer: device_memory.size() is 0; it must be at least 1");
}

namespace {

/// The report of a rank, in the order of its members.
std::vector<std::uint64_t> members(const mp::device_gradient_report& report) {
    std::vector<std::uint64_t> result(sizeof report / 8);
    std::memcpy(result.data(), &report, sizeof report);
    return result;
}

}  // namespace

TEST_CASE("reports on devices are added up on the stream, and nobody waits") {
    mp::device_gradient_report mine;
    mine.checked = 100;
    mine.values = 100;
    mine.zeros = 1;
    mine.flushed = 2;
    mine.subnormals = 3;
    mine.overflows = 4;
    mine.large = 5;
    mine.largest_bits = 0x4000000000000000;  // 2
    mp::device_gradient_report theirs = mine;
    theirs.infinities = 7;
    theirs.nans = 8;
    theirs.largest_bits = 0x4010000000000000;  // 4
    theirs.first = 0;
    mp::device_buffer<mp::device_loss_scale<mp::pytorch_policy, 2>> scale(1);
    *scale.data() = mp::make_device_loss_scale<2>(mp::pytorch_policy{});
    scale.data()->seen = mine;
    new_machine(members(theirs));
    mp::reduce_report(stream, communicator, scale.data());
    CHECK(machine.calls == "(+>)");
    CHECK(machine.open_groups == 0);
    CHECK(scale.data()->seen == mine);
    mp::synchronize(stream);
    const mp::device_gradient_report& all = scale.data()->seen;
    CHECK(all.checked == 200);
    CHECK(all.observation() == mp::gradient_observation{7, 8, 200, 2, 4, 6, 8, 10, 4.0});
    CHECK(all.first_parameter() == mp::no_index);
    CHECK(scale.data()->skips(mp::pytorch_policy{}));
    CHECK(scale.data()->state == mp::pytorch_policy{}.rules().initial_state());
}

TEST_CASE("a refused reduction of a report leaves no group open") {
    mp::device_buffer<mp::device_gradient_report> report(1);
    *report.data() = {};
    new_machine();
    machine.reduction = ncclInvalidArgument;
    CHECK(thrown<mp::nccl_error>([&] { mp::reduce_report(stream, communicator, report.data()); }) ==
          "ncclAllReduce: invalid (4)");
    CHECK(machine.open_groups == 0);
    CHECK(thrown<mp::argument_error>([&] { mp::reduce_report(stream, nullptr, report.data()); }) ==
          "mp::reduce_report: communicator is null");
    mp::device_gradient_report* const none = nullptr;
    CHECK(thrown<mp::argument_error>([&] { mp::reduce_report(stream, communicator, none); }) ==
          "mp::reduce_report: report is null");
    mp::device_loss_scale<mp::pytorch_policy>* const nothing = nullptr;
    CHECK_THROWS_AS(mp::reduce_report(stream, communicator, nothing), mp::argument_error);
}

TEST_CASE("scalers of the host agree through it") {
    mp::nccl_reducer reducer(communicator, stream);
    struct {
        int steps = 0;
        mp::gradient_report unscale_gradients(float) { return {4, 0, 0}; }
        void step() { ++steps; }
        void skip_step() {}
    } optimizer;
    mp::dynamic_loss_scaler scaler;
    // The other rank has the same scaler: whatever this one brings, it is no larger than zero.
    new_machine(std::vector<std::uint64_t>(64));
    scaler.set_reducer(reducer);
    // The other rank has an infinity, and measured nothing.
    new_machine(std::vector<std::uint64_t>(64));
    machine.other[0] = 1;
    CHECK_FALSE(scaler.step(optimizer));
    CHECK(scaler.update().kind == mp::scale_change_kind::backed_off);
    CHECK(optimizer.steps == 0);
}
