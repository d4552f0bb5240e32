// SPDX-License-Identifier: MIT
// Kernels that wait by themselves for those before them on the stream.
#include "device/simt/body.hpp"

#include <mp/device/simt/tensor_map.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace {

using mp::kernel_violation;
using mp::simt::shared_pointer;

constexpr mp::simulated_gpu<mp::arch::sm_90> gpu{};

template <class Function>
struct waiting : simt_test::body<64, Function> {
    static constexpr bool waits_for_dependencies = true;
};

/// What is wrong with a kernel that waits by itself, or nothing.
template <class Function>
std::string message(const Function& function) {
    try {
        launch("test", gpu, mp::simt::launch_size{.shared_bytes = 4096}, waiting<Function>{{function}});
    } catch (const mp::kernel_error& error) {
        CHECK(error.violation() == kernel_violation::race);
        return error.what();
    }
    return "";
}

bool says(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}

TEST_CASE("a kernel that waits by itself touches no global memory before") {
    alignas(128) float values[64] = {};
    float* const memory = values;
    const mp::simt::tensor_map map = mp::simt::make_tensor_map(gpu, {.data = memory,
                                                                     .element_bytes = 4,
                                                                     .length = 32,
                                                                     .rows = 2,
                                                                     .row_bytes = 128,
                                                                     .tile_length = 32,
                                                                     .tile_rows = 2});
    const shared_pointer<float> stage{1024};
    const shared_pointer<mp::simt::memory_barrier> full{0};

    const std::string load = message([=](auto thread) {
        if (thread.index() != 37) thread.wait_dependencies();
        static_cast<void>(thread.load(memory + thread.index()));
    });
    CHECK(says(load, "thread 37 (warp 1, lane 5), dependencies.cpp:"));
    CHECK(says(load, ": reads global memory before wait_dependencies()"));
    CHECK(says(message([=](auto thread) {
                   thread.store(memory + thread.index(), 1.0F);
                   thread.wait_dependencies();
               }),
               "writes global memory before"));
    CHECK(
        says(message([=](auto thread) { thread.atomic_add(memory, 1.0F); }), "updates global memory before"));
    CHECK(says(message([=](auto thread) { thread.template copy_async<4>(stage + thread.index(), memory); }),
               "copies global memory before"));
    // What another thread has waited for is not enough: nothing orders the two.
    CHECK(says(message([=](auto thread) {
                   if (thread.index() == 32) thread.wait_dependencies();
                   thread.sync_block();
                   if (thread.index() == 0) thread.copy_tile(stage, map, 0, 0, full);
                   thread.wait_dependencies();
               }),
               "copies a tile of global memory before"));
    CHECK(says(message([=](auto thread) {
                   thread.store(stage + thread.index(), 1.0F);
                   thread.fence_asynchronous();
                   thread.sync_block();
                   if (thread.index() == 0) thread.store_tile(map, 0, 0, stage);
                   thread.wait_dependencies();
               }),
               "stores a tile of global memory before"));
    CHECK(says(message([=](auto thread) {
                   if (thread.index() != 5) thread.wait_dependencies();
               }),
               "block 0: thread 5 leaves the kernel without wait_dependencies()"));
    CHECK(values[0] == 0.0F);
}

TEST_CASE("what is before the wait may use shared memory; other kernels need not wait") {
    std::vector<float> values(64);
    float* const memory = values.data();
    CHECK(message([=](auto thread) {
              const shared_pointer<float> own = shared_pointer<float>{} + thread.index();
              thread.store(own, 2.0F);
              thread.wait_dependencies();
              thread.launch_dependents();
              thread.store(memory + thread.index(), thread.load(own));
          }).empty());
    CHECK(values == std::vector<float>(64, 2.0F));
    simt_test::run<64>([=](auto thread) { thread.store(memory + thread.index(), 3.0F); });
    CHECK(values == std::vector<float>(64, 3.0F));
}

}  // namespace
