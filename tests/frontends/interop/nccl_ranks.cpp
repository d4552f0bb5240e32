// SPDX-License-Identifier: MIT
// Gradients that are reduced through NCCL. This program brings the functions of NCCL and of CUDA's runtime that the
// header calls, with ranks that are threads: they look at every argument, and do at once what a stream would do in
// its order. The kernels are those of the simulated GPU.
#include <doctest/doctest.h>
#include <mp/frontends/interop/nccl.hpp>
#include <mp/gpu.hpp>
#include <mp/ops.hpp>
#include <mp/parallel.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "nn/scaling/thrown.hpp"

namespace {

/// What goes from one rank to another, in order.
struct mailbox {
    std::deque<std::vector<std::byte>> letters;
};
struct fake_network {
    int ranks = 0;
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::pair<int, int>, mailbox> boxes;
    std::map<std::uint64_t, std::vector<std::vector<std::uint64_t>>> reductions;

    void send(int from, int to, const void* data, std::size_t bytes) {
        const auto* const begin = static_cast<const std::byte*>(data);
        const std::lock_guard lock(mutex);
        boxes[{from, to}].letters.emplace_back(begin, begin + bytes);
        changed.notify_all();
    }
    /// Whether as many bytes came as were expected.
    bool receive(int from, int to, void* data, std::size_t bytes) {
        std::unique_lock lock(mutex);
        auto& letters = boxes[{from, to}].letters;
        changed.wait(lock, [&] { return !letters.empty(); });
        const std::vector<std::byte> letter = std::move(letters.front());
        letters.pop_front();
        if (letter.size() != bytes) return false;
        if (bytes != 0) std::memcpy(data, letter.data(), bytes);
        return true;
    }
};

/// A message that is called for, in a group or not.
struct message {
    enum class kind { send, receive, broadcast } what;
    const void* from;
    void* to;
    std::size_t bytes;
    int peer;
};

/// The rank of this thread, and what it asks for.
struct fake_rank {
    fake_network* network = nullptr;
    int rank = 0;
    std::uint64_t reductions = 0;
    int open_groups = 0;
    std::vector<message> grouped;
    std::string calls;                         ///< a letter for each
    std::vector<std::pair<int, int>> waiting;  ///< (stream, stream that it has waited for)
    std::map<cudaEvent_t, int> events;         ///< the stream that each was recorded on
    ncclResult_t later = ncclSuccess;
};
thread_local fake_rank self;

char main_place = 0, side_place = 0, communicator_place = 0;
const mp::cuda_stream main_stream{reinterpret_cast<cudaStream_t>(&main_place)};
const mp::cuda_stream side_stream{reinterpret_cast<cudaStream_t>(&side_place)};
const auto communicator = reinterpret_cast<ncclComm_t>(&communicator_place);

int stream_number(cudaStream_t stream) {
    return stream == main_stream.stream ? 0 : stream == side_stream.stream ? 1 : -1;
}

bool deliver(const message& it) {
    switch (it.what) {
        case message::kind::send:
            self.network->send(self.rank, it.peer, it.from, it.bytes);
            return true;
        case message::kind::receive:
            return self.network->receive(it.peer, self.rank, it.to, it.bytes);
        case message::kind::broadcast:
            if (it.peer != self.rank) return self.network->receive(it.peer, self.rank, it.to, it.bytes);
            for (int r = 0; r < self.network->ranks; ++r) {
                if (r != self.rank) self.network->send(self.rank, r, it.from, it.bytes);
            }
            return true;
    }
    return false;
}
/// In a group all is sent before anything is waited for; outside of one, it happens at once.
ncclResult_t ask_for(message it, ncclComm_t of, cudaStream_t on) {
    if (of != communicator || on != side_stream.stream || it.bytes == 0 || it.peer < 0 ||
        it.peer >= self.network->ranks) {
        return ncclInvalidArgument;
    }
    if (self.open_groups != 0) {
        self.grouped.push_back(it);
        return ncclSuccess;
    }
    return deliver(it) ? ncclSuccess : ncclInvalidUsage;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
    *address = std::malloc(bytes);
    return cudaSuccess;
}
cudaError_t cudaFree(void* address) {
    std::free(address);
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t on) {
    if (stream_number(on) != 1) return cudaErrorInvalidResourceHandle;
    std::memcpy(to, from, bytes);
    return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t on) {
    return stream_number(on) == 1 ? cudaSuccess : cudaErrorInvalidResourceHandle;
}
cudaError_t cudaStreamSynchronize(cudaStream_t on) {
    return stream_number(on) == 1 ? cudaSuccess : cudaErrorInvalidResourceHandle;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
    *event = reinterpret_cast<cudaEvent_t>(std::malloc(1));
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    std::free(event);
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t on) {
    if (stream_number(on) < 0) return cudaErrorInvalidResourceHandle;
    self.events[event] = stream_number(on);
    return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t on, cudaEvent_t event, unsigned int) {
    if (!self.events.contains(event)) return cudaErrorInvalidValue;
    self.calls += stream_number(on) == 1 ? 'f' : 'j';
    self.waiting.emplace_back(stream_number(on), self.events[event]);
    return cudaSuccess;
}
cudaError_t cudaGetLastError() {
    return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t) {
    return "text";
}
const char* cudaGetErrorName(cudaError_t) {
    return "name";
}

const char* ncclGetErrorString(ncclResult_t code) {
    return code == ncclRemoteError ? "remote" : "other";
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t of, ncclResult_t* result) {
    *result = self.later;
    return of == communicator ? ncclSuccess : ncclInvalidArgument;
}
ncclResult_t ncclCommUserRank(const ncclComm_t, int* rank) {
    *rank = self.rank;
    return ncclSuccess;
}
ncclResult_t ncclCommCount(const ncclComm_t, int* count) {
    *count = self.network->ranks;
    return ncclSuccess;
}
ncclResult_t ncclGroupStart() {
    ++self.open_groups;
    self.calls += '(';
    return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
    self.calls += ')';
    if (--self.open_groups != 0) return ncclInvalidUsage;
    const std::vector<message> grouped = std::exchange(self.grouped, {});
    const auto sends = [](const message& it) {
        return it.what == message::kind::send ||
               (it.what == message::kind::broadcast && it.peer == self.rank);
    };
    bool good = true;
    for (const message& it : grouped) good = good && (!sends(it) || deliver(it));
    for (const message& it : grouped) good = good && (sends(it) || deliver(it));
    return good ? ncclSuccess : ncclInvalidUsage;
}
ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t of,
                      cudaStream_t on) {
    self.calls += 's';
    if (type != ncclUint8) return ncclInvalidArgument;
    return ask_for({message::kind::send, from, nullptr, count, peer}, of, on);
}
ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t of,
                      cudaStream_t on) {
    self.calls += 'r';
    if (type != ncclUint8) return ncclInvalidArgument;
    return ask_for({message::kind::receive, nullptr, to, count, peer}, of, on);
}
ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t of, cudaStream_t on) {
    self.calls += 'b';
    if (type != ncclUint8 || from != to) return ncclInvalidArgument;
    return ask_for({message::kind::broadcast, from, to, count, root}, of, on);
}
ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t of, cudaStream_t on) {
    if (type != ncclUint64 || of != communicator || stream_number(on) != 1 || from != to) {
        return ncclInvalidArgument;
    }
    auto* const values = static_cast<std::uint64_t*>(to);
    std::unique_lock lock(self.network->mutex);
    auto& all = self.network->reductions[self.reductions++];
    all.emplace_back(values, values + count);
    self.network->changed.notify_all();
    self.network->changed.wait(lock, [&] { return std::ssize(all) == self.network->ranks; });
    for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t result = 0;
        for (const auto& theirs : all) {
            result = operation == ncclSum ? result + theirs.at(i) : std::max(result, theirs.at(i));
        }
        values[i] = result;
    }
    return ncclSuccess;
}

}  // extern "C"

namespace {

template <class Function>
void on_ranks(int ranks, Function f) {
    fake_network network;
    network.ranks = ranks;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
        threads.emplace_back([&, rank] {
            self = {};
            self.network = &network;
            self.rank = rank;
            mp::nccl_communicator all(communicator, side_stream, main_stream);
            f(all);
        });
    }
    for (std::thread& it : threads) it.join();
}

using simulated = mp::simulated_gpu<mp::arch::sm_80>;

std::vector<float> gradients(int rank) {
    std::vector<float> result(4096 + 900);
    for (std::size_t i = 0; i < result.size(); ++i) {
        result[i] =
            static_cast<float>(mp::random_bits(static_cast<std::uint64_t>(rank), i)) * 0x1p-31F - 1.0F;
    }
    return result;
}

template <class Ranks>
std::vector<float> reduce(const simulated& gpu, Ranks& ranks, mp::wire_format wire) {
    std::vector<float> w(4096 + 900), dw = gradients(ranks.rank()), b(3),
                                      db(3, static_cast<float>(ranks.rank()));
    const std::vector<mp::parameter<float>> parameters{{"w", w, dw}, {"b", b, db}};
    mp::gradient_reduction reduction(gpu, ranks, {.wire = wire, .bucket_bytes = 1}, parameters);
    static_cast<void>(reduction.backward(1.0F));
    reduction.finish();
    dw.insert(dw.end(), db.begin(), db.end());
    return dw;
}

}  // namespace

TEST_CASE("gradients through NCCL are those through threads, in order on the two streams") {
    for (const int ranks : {2, 3}) {
        for (const auto wire : {mp::wire_format::as_stored, mp::wire_format::bfloat16}) {
            std::vector<std::vector<float>> expected(static_cast<std::size_t>(ranks)), found = expected;
            mp::run_loopback(ranks, [&](auto& all) {
                expected[static_cast<std::size_t>(all.rank())] = reduce(simulated{}, all, wire);
            });
            on_ranks(ranks, [&](auto& all) {
                found[static_cast<std::size_t>(all.rank())] = reduce(simulated{}, all, wire);
                // A bucket: the side stream waits for the main one, everything to everybody, and the parts of the
                // ranks that have one; at last the main stream waits for the side's. Few elements are one rank's.
                if (ranks == 2 && all.rank() == 0) CHECK(self.calls == "f(s)f(srsr)(b)(bb)j");
                CHECK(self.open_groups == 0);
                CHECK(self.waiting.front() == std::pair(1, 0));
                CHECK(self.waiting.back() == std::pair(0, 1));
            });
            CHECK(found == expected);
        }
    }
}

TEST_CASE("broadcasts, sums of the host, and a stream that is both") {
    on_ranks(3, [](auto& all) {
        std::vector<std::byte> bytes(100, static_cast<std::byte>(all.rank()));
        all.broadcast(bytes, 2);
        CHECK(bytes == std::vector<std::byte>(100, std::byte{2}));
        all.broadcast({}, 1);
        std::vector<std::uint64_t> values{1, static_cast<std::uint64_t>(all.rank())};
        all.sum(values);
        CHECK(values == std::vector<std::uint64_t>{3, 3});
        (all.max)(values);
        CHECK(values == std::vector<std::uint64_t>{3, 3});
        self.calls.clear();
        mp::nccl_communicator one(communicator, side_stream, side_stream);
        one.fork();
        one.join();
        CHECK(self.calls.empty());
    });
}

TEST_CASE("what NCCL notices later is an exception, and no group stays open") {
    on_ranks(1, [](auto& all) {
        std::vector<std::byte> bytes(8);
        const std::vector<std::size_t> cuts{0, 8};
        self.later = ncclRemoteError;
        CHECK(thrown<mp::nccl_error>([&] { all.start_gather(bytes, cuts); }) == "a call before: remote (6)");
        typename mp::nccl_communicator::request call;
        CHECK(thrown<mp::nccl_error>([&] { static_cast<void>(all.finished(call)); }) ==
              "a call before: remote (6)");
        self.later = ncclSuccess;
        const std::vector<std::size_t> beyond{0, 0};
        CHECK_NOTHROW(all.start_gather(bytes, beyond));
        CHECK(self.open_groups == 0);
        CHECK(holds(
            thrown<mp::argument_error>([] { mp::nccl_communicator none(nullptr, side_stream, main_stream); }),
            "communicator is null"));
    });
}
