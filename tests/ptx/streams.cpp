// SPDX-License-Identifier: MIT
// Work of several streams: what events, waits of the host, the default stream and graphs order is enough, and what
// nothing orders is seen, though all is done in the order in which it is enqueued.
#include "run.hpp"
#include "runtime/state.hpp"

#include <cuda_runtime.h>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

extern "C" {
void** __cudaRegisterFatBinary(void* binary);
void __cudaRegisterFunction(void** binary, const char* host, char* device, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*);
}

namespace {

using ptx_test::says;

constexpr unsigned count = 64;

/// `fill` writes its number to each of 64 words at [to]; `add` adds words at [from] to those at [to].
constexpr const char* source = R"(.version 9.0
.target sm_90a
.address_size 64
.visible .entry fill(.param .u64 to, .param .u64 from)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [to];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd1, %rd1, %rd2;
    st.global.u32 [%rd1], %r1;
    ret;
}
.visible .entry add(.param .u64 to, .param .u64 from)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [to];
    ld.param.u64 %rd3, [from];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd1, %rd1, %rd2;
    add.s64 %rd3, %rd3, %rd2;
    ld.global.u32 %r2, [%rd1];
    ld.global.u32 %r3, [%rd3];
    add.u32 %r2, %r2, %r3;
    st.global.u32 [%rd1], %r2;
    ret;
}
)";

/// What nvcc puts into a program: a header, and an entry with the text.
const std::vector<char>& fat_binary() {
    static const std::vector<char> made = [] {
        const std::string text = source;
        const std::size_t length = (text.size() + 8) / 8 * 8;
        const std::uint32_t header[4] = {0xBA55'ED50U, 1U | 16U << 16,
                                         static_cast<std::uint32_t>(16 + length), 0};
        const std::uint32_t entry[4] = {1U | 1U << 16, 16, static_cast<std::uint32_t>(length), 0};
        std::vector<char> all(sizeof header + sizeof entry + length);
        std::memcpy(all.data(), header, sizeof header);
        std::memcpy(all.data() + 16, entry, sizeof entry);
        std::memcpy(all.data() + 32, text.data(), text.size());
        return all;
    }();
    return made;
}

constexpr char fill = 0, add = 0;  // their addresses are the kernels' names on the host

void register_kernels() {
    static const bool done = [] {
        struct {
            std::int32_t magic, version;
            const void* data;
            const void* unused;
        } wrapper{0x466243B1, 1, fat_binary().data(), nullptr};
        void** const binary = __cudaRegisterFatBinary(&wrapper);
        __cudaRegisterFunction(binary, &fill, nullptr, "fill", -1, nullptr, nullptr, nullptr, nullptr,
                               nullptr);
        __cudaRegisterFunction(binary, &add, nullptr, "add", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
        return true;
    }();
    static_cast<void>(done);
}

using words = std::vector<std::uint32_t>;

/// Two streams that do not wait for the default stream, one that does, and memory.
struct device {
    cudaStream_t one = nullptr, two = nullptr, blocking = nullptr;
    cudaEvent_t event = nullptr;
    std::uint32_t *a = nullptr, *b = nullptr;
    words host = words(count, 1);

    device() {
        register_kernels();
        cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking);
        cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking);
        cudaStreamCreate(&blocking);
        cudaEventCreate(&event);
        cudaMalloc(reinterpret_cast<void**>(&a), count * 4);
        cudaMalloc(reinterpret_cast<void**>(&b), count * 4);
        cudaMemcpy(a, host.data(), count * 4, cudaMemcpyHostToDevice);
        cudaMemcpy(b, host.data(), count * 4, cudaMemcpyHostToDevice);
        cudaDeviceSynchronize();
    }
    device(const device&) = delete;
    device& operator=(const device&) = delete;
    ~device() {
        for (cudaStream_t it : {one, two, blocking}) cudaStreamDestroy(it);
        cudaEventDestroy(event);
        cudaDeviceReset();
    }

    static void run(const char& kernel, cudaStream_t stream, std::uint32_t* to,
                    std::uint32_t* from = nullptr) {
        void* arguments[] = {&to, &from};
        cudaLaunchKernel(&kernel, dim3(1), dim3(count), arguments, 0, stream);
    }
    void order(cudaStream_t before, cudaStream_t behind) const {
        cudaEventRecord(event, before);
        cudaStreamWaitEvent(behind, event, 0);
    }
    void from_host(std::uint32_t* to, cudaStream_t stream) const {
        cudaMemcpyAsync(to, host.data(), count * 4, cudaMemcpyHostToDevice, stream);
    }
};

/// What is told of work on a device, or nothing.
std::string told(const std::function<void(device&)>& work) {
    device it;
    work(it);
    cudaDeviceSynchronize();
    return ptx::runtime::state().failure;
}
bool races(const std::string& message) {
    return says(message, "(a race between streams)");
}

TEST_CASE("streams: launches on one stream follow each other, those on two do not") {
    CHECK(told([](device& d) {
              d.run(fill, d.one, d.a);
              d.run(add, d.one, d.a, d.b);
          }).empty());
    const std::string message = told([](device& d) {
        d.run(fill, d.one, d.a);
        d.run(add, d.two, d.b, d.a);
    });
    CHECK(races(message));
    // Both kernels with their lines, and both streams.
    for (const char* part :
         {"add, line", "(ld.global.u32)", "reads memory that kernel fill on stream 1 wrote in line",
          "(st.global.u32)", "this launch on stream 2", "of its allocation"}) {
        CAPTURE(message);
        CHECK(says(message, part));
    }
    // A write where another stream reads; reads and other memory are no race.
    CHECK(says(told([](device& d) {
                   d.run(add, d.one, d.b, d.a);
                   d.run(fill, d.two, d.a);
               }),
               "writes memory that kernel add on stream 1 read"));
    CHECK(told([](device& d) {
              std::uint32_t* c = nullptr;
              cudaMalloc(reinterpret_cast<void**>(&c), count * 4);
              d.run(fill, d.one, c);
              d.order(d.one, d.two);
              d.run(add, d.one, d.b, d.a);
              d.run(add, d.two, c, d.a);
          }).empty());
}

TEST_CASE("streams: an event orders what was before it with what is behind the wait for it") {
    CHECK(told([](device& d) {
              d.run(fill, d.one, d.a);
              d.order(d.one, d.two);
              d.run(add, d.two, d.b, d.a);
          }).empty());
    // A buffer that is used again has to wait for its readers, too.
    const auto reused = [](bool waits) {
        return told([=](device& d) {
            for (int step = 0; step < 3; ++step) {
                d.from_host(d.a, d.one);
                d.order(d.one, d.two);
                d.run(add, d.two, d.b, d.a);
                if (waits) d.order(d.two, d.one);
            }
        });
    };
    CHECK(reused(true).empty());
    CHECK(says(reused(false), "cudaMemcpyAsync on stream 1 writes memory that kernel add on stream 2 read"));
    // Recorded too early, and a wait that comes too late.
    CHECK(races(told([](device& d) {
        cudaEventRecord(d.event, d.one);
        d.run(fill, d.one, d.a);
        cudaStreamWaitEvent(d.two, d.event, 0);
        d.run(add, d.two, d.b, d.a);
    })));
    CHECK(races(told([](device& d) {
        d.run(fill, d.one, d.a);
        cudaEventRecord(d.event, d.one);
        d.run(add, d.two, d.b, d.a);
        cudaStreamWaitEvent(d.two, d.event, 0);
    })));
    // Order goes on through a third stream.
    CHECK(told([](device& d) {
              d.run(fill, d.one, d.a);
              d.order(d.one, d.blocking);
              d.order(d.blocking, d.two);
              d.run(add, d.two, d.b, d.a);
          }).empty());
}

TEST_CASE("streams: what the host has waited for is before what it enqueues then") {
    const auto with = [](const std::function<void(device&)>& wait) {
        return told([&](device& d) {
            d.run(fill, d.one, d.a);
            cudaEventRecord(d.event, d.one);
            wait(d);
            d.run(add, d.two, d.b, d.a);
        });
    };
    CHECK(with([](device& d) { cudaStreamSynchronize(d.one); }).empty());
    CHECK(with([](device& d) { cudaEventSynchronize(d.event); }).empty());
    CHECK(with([](device& d) { cudaEventQuery(d.event); }).empty());
    CHECK(with([](device&) { cudaDeviceSynchronize(); }).empty());
    CHECK(races(with([](device& d) { cudaStreamSynchronize(d.two); })));
    // A copy to pageable memory has been done when it returns; one to pinned memory has not.
    CHECK(with([](device& d) {
              words to(count);
              cudaMemcpyAsync(to.data(), d.b, count * 4, cudaMemcpyDeviceToHost, d.one);
          }).empty());
    void* pinned = nullptr;
    cudaMallocHost(&pinned, count * 4);
    CHECK(races(
        with([&](device& d) { cudaMemcpyAsync(pinned, d.b, count * 4, cudaMemcpyDeviceToHost, d.one); })));
    cudaFreeHost(pinned);
}

TEST_CASE("streams: the default stream waits for blocking streams, and they for it") {
    CHECK(told([](device& d) {
              d.run(fill, nullptr, d.a);
              d.run(add, d.blocking, d.b, d.a);
              d.run(fill, nullptr, d.b);
          }).empty());
    CHECK(says(told([](device& d) {
                   d.run(fill, nullptr, d.a);
                   d.run(add, d.two, d.b, d.a);
               }),
               "kernel fill on the default stream"));
    // cudaMemset returns before it is done, and so may cudaMemcpy from pageable memory.
    CHECK(says(told([](device& d) {
                   cudaMemset(d.a, 0, count * 4);
                   d.run(add, d.two, d.b, d.a);
               }),
               "cudaMemset on the default stream wrote"));
    CHECK(says(told([](device& d) {
                   cudaMemcpy(d.a, d.host.data(), count * 4, cudaMemcpyHostToDevice);
                   d.run(add, d.two, d.b, d.a);
               }),
               "cudaMemcpy on the default stream wrote"));
}

TEST_CASE("streams: memory that is allocated and freed in the order of a stream") {
    const auto work = [](bool waits_first, bool waits_last) {
        return told([=](device& d) {
            std::uint32_t* c = nullptr;
            cudaMallocAsync(reinterpret_cast<void**>(&c), count * 4, d.one);
            if (waits_first) d.order(d.one, d.two);
            d.run(fill, d.two, c);
            if (waits_last) d.order(d.two, d.one);
            cudaFreeAsync(c, d.one);
        });
    };
    CHECK(work(true, true).empty());
    CHECK(says(work(false, true), "cudaMallocAsync on stream 1"));
    CHECK(
        says(work(true, false), "cudaFreeAsync on stream 1 frees memory that kernel fill on stream 2 wrote"));
}

/// A graph with two branches: `two` fills b meanwhile, and adds it to a. Its launches are on stream `on`.
std::string with_graph(bool joined_late, const std::function<void(device&, cudaGraphExec_t)>& launch) {
    return told([&](device& d) {
        cudaStreamBeginCapture(d.one, cudaStreamCaptureModeThreadLocal);
        d.order(d.one, d.two);
        d.run(fill, d.two, d.b);
        if (!joined_late) d.order(d.two, d.one);
        d.run(add, d.one, d.a, d.b);
        if (joined_late) d.order(d.two, d.one);
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t ready = nullptr;
        CHECK(cudaStreamEndCapture(d.one, &graph) == cudaSuccess);
        cudaGraphInstantiate(&ready, graph, 0);
        launch(d, ready);
        cudaGraphExecDestroy(ready);
        cudaGraphDestroy(graph);
    });
}

TEST_CASE("streams: graphs keep the order in which they were recorded, and no more") {
    const auto on_one = [](device& d, cudaGraphExec_t graph) {
        cudaGraphLaunch(graph, d.one);
        cudaGraphLaunch(graph, d.one);
        d.run(add, d.one, d.a, d.b);
    };
    CHECK(with_graph(false, on_one).empty());
    CHECK(says(with_graph(true, on_one), "kernel fill on stream"));
    // Launches of one graph follow each other wherever they are; other work does not.
    CHECK(with_graph(false, [](device& d, cudaGraphExec_t graph) {
              cudaGraphLaunch(graph, d.one);
              cudaGraphLaunch(graph, d.two);
          }).empty());
    CHECK(races(with_graph(false, [](device& d, cudaGraphExec_t graph) {
        cudaGraphLaunch(graph, d.one);
        d.run(add, d.two, d.b, d.a);
    })));
    device d;
    cudaStreamBeginCapture(d.one, cudaStreamCaptureModeThreadLocal);
    d.order(d.one, d.two);
    d.run(fill, d.two, d.b);
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamEndCapture(d.one, &graph) == cudaErrorStreamCaptureUnjoined);
}

TEST_CASE("streams: pinned memory belongs to a copy until the host has waited for it") {
    void* memory = nullptr;
    cudaMallocHost(&memory, count * 4);
    auto* const pinned = static_cast<std::uint32_t*>(memory);
    const auto sent = [&](bool waits) {
        return told([&](device& d) {
            cudaMemcpyAsync(d.a, pinned, count * 4, cudaMemcpyHostToDevice, d.one);
            if (waits) cudaStreamSynchronize(d.one);
            ++pinned[3];
        });
    };
    CHECK(sent(true).empty());
    CHECK(says(sent(false), "the host wrote memory that cudaMemcpyAsync on stream 1 reads"));
    CHECK(told([&](device& d) {
              cudaMemcpyAsync(pinned, d.a, count * 4, cudaMemcpyDeviceToHost, d.one);
              CHECK(pinned[3] != 1);
              cudaMemcpyAsync(d.b, pinned, count * 4, cudaMemcpyHostToDevice, d.one);
              cudaStreamSynchronize(d.one);
              CHECK(pinned[3] == 1);
          }).empty());
    cudaFreeHost(memory);
}

}  // namespace
