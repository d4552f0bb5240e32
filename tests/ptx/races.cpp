// SPDX-License-Identifier: MIT
// Accesses that nothing orders are seen, whatever values come out; what orders them is enough.
#include "interpreter/tensor_map.hpp"
#include "run.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace {

using ptx_test::failure_of;
using ptx_test::kernel;
using ptx_test::run;
using ptx_test::says;

using words = std::vector<std::uint32_t>;

/// Each thread has a word in shared memory at [%r5]; [%r6] is that of the thread whose number differs in this bit.
std::string with_neighbour(const std::string& bit, const std::string& body) {
    return kernel(R"(
        .shared .align 16 .b8 room[1024];
        mov.u32 %r3, room;
        shl.b32 %r4, %r1, 2;
        add.u32 %r5, %r3, %r4;
        xor.b32 %r6, %r1, )" +
                  bit + R"(;
        shl.b32 %r6, %r6, 2;
        add.u32 %r6, %r3, %r6;
        )" + body);
}

/// What is told of a kernel in any of some orders in which its threads may run.
std::string told(const std::string& text, std::uint32_t threads = 64, ptx::launch_configuration shape = {},
                 words memory = words(64)) {
    for (shape.seed = 1; shape.seed < 6; ++shape.seed) {
        try {
            run(text, memory, threads, shape);
        } catch (const ptx::failure& error) {
            return error.what();
        }
    }
    return {};
}
bool races(const std::string& message) {
    return says(message, "(a race)");
}

TEST_CASE("races in shared memory: a read and a write, two writes, a write and a read before it") {
    CHECK(races(told(with_neighbour("32", "st.shared.u32 [%r5], 1;\nst.shared.u32 [%r6], 1;"))));
    const std::string message = told(with_neighbour(
        "32", "st.shared.u32 [%r5], 1;\nbar.sync 0;\nld.shared.u32 %r2, [%r6];\nst.shared.u32 [%r5], 2;"));
    CHECK(races(message));
    // Either of the two comes last, and the other one is told with its line.
    CHECK(says(message, "(st.shared.u32)"));
    CHECK(says(message, "(ld.shared.u32)"));
    CHECK(says(message, "thread "));
    CHECK(says(message, "of shared memory"));
    CHECK(told(with_neighbour("32",
                              "st.shared.u32 [%r5], 1;\nbar.sync 0;\nld.shared.u32 %r2, [%r6];\nbar.sync 0;\n"
                              "st.shared.u32 [%r5], 1;"))
              .empty());
    // Bytes of a word are not the word.
    CHECK(told(kernel(".shared .align 4 .b8 room[64];\nmov.u32 %r3, room;\nadd.u32 %r3, %r3, %r1;\n"
                      "st.shared.u8 [%r3], %r1;\nld.shared.u8 %r4, [%r3];"))
              .empty());
}

TEST_CASE("races within a warp: lanes are ordered by bar.warp.sync, and by no shuffle") {
    const auto text = [](const std::string& between) {
        return with_neighbour("1", "st.shared.u32 [%r5], 1;\n" + between + "\nld.shared.u32 %r2, [%r6];");
    };
    CHECK(told(text("bar.warp.sync -1;"), 32).empty());
    CHECK_FALSE(told(text(""), 32).empty());
    CHECK(races(told(text("shfl.sync.idx.b32 %r7, %r1, 0, 31, -1;"), 32)));
    // A barrier of the other half of the warp orders nothing here.
    CHECK_FALSE(told(text("setp.lt.u32 %p1, %r1, 16;\n@%p1 bar.warp.sync 0xFFFF;"), 32).empty());
}

TEST_CASE("named barriers order only who comes to them") {
    const auto text = [](const std::string& last) {
        return kernel(R"(
            .shared .align 4 .b8 word[4];
            mov.u32 %r3, word;
            setp.eq.u32 %p1, %r1, 0;
            @%p1 st.shared.u32 [%r3], %r1;
            setp.lt.u32 %p2, %r1, 64;
            @%p2 bar.sync 1, 64;
            @!%p2 bar.sync 2, 32;
            setp.eq.u32 %p3, %r1, )" +
                      last + ";\n@%p3 ld.shared.u32 %r4, [%r3];");
    };
    CHECK(told(text("40"), 96).empty());
    CHECK_FALSE(told(text("70"), 96).empty());
}

/// Block 0 writes a word and tells it by an atomic flag; block 1 waits for nothing, so only half of the orders read it.
std::string flagged(const std::string& before, const std::string& behind) {
    return kernel(R"(
        mov.u32 %r2, %ctaid.x;
        setp.ne.u32 %p1, %r2, 0;
        @%p1 bra second;
        st.global.u32 [%rd1+4], 7;
        )" + before +
                  R"(
        ret;
    second:
        )" + behind +
                  R"(
        setp.eq.u32 %p2, %r3, 0;
        @%p2 bra done;
        ld.global.u32 %r4, [%rd1+4];
    done:)");
}

TEST_CASE("races between blocks, and how fences and flags order them") {
    ptx::launch_configuration shape;
    shape.grid[0] = 2;
    const std::string set = "atom.global.exch.b32 %r5, [%rd1], 1;",
                      get = "atom.global.add.u32 %r3, [%rd1], 0;";
    const std::string fence = "membar.gl;";
    CHECK(told(flagged(fence + set, get + fence), 1, shape).empty());
    CHECK(races(told(flagged(set, get + fence), 1, shape)));
    CHECK(races(told(flagged(fence + set, get), 1, shape)));
    CHECK(told(flagged("st.release.gpu.global.u32 [%rd1], 1;", "ld.acquire.gpu.global.u32 %r3, [%rd1];"), 1,
               shape)
              .empty());
    CHECK(
        races(told(flagged("st.relaxed.gpu.global.u32 [%rd1], 1;", "ld.acquire.gpu.global.u32 %r3, [%rd1];"),
                   1, shape)));
    CHECK(races(
        told(flagged(fence + "st.global.u32 [%rd1], 1;", "ld.global.u32 %r3, [%rd1];" + fence), 1, shape)));
    // Blocks that write the same word, and one that reads what another writes.
    CHECK(races(told(kernel("st.global.u32 [%rd1], 1;"), 1, shape)));
    CHECK(told(kernel("red.global.add.u32 [%rd1], 1;"), 32, shape).empty());
}

TEST_CASE("another launch begins behind the one before") {
    ptx::global_memory memory;
    const std::uint64_t address = memory.allocate(256);
    memory.mark_written(address, 256);
    std::vector<std::byte> parameters(8);
    std::memcpy(parameters.data(), &address, 8);
    ptx::launch_configuration shape;
    shape.threads[0] = 32;
    ptx::program code(
        kernel("mul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd2, %rd1, %rd2;\nst.global.u32 [%rd2], %r1;"), memory);
    ptx::program turned(kernel("xor.b32 %r2, %r1, 31;\nmul.wide.u32 %rd2, %r2, 4;\nadd.s64 %rd2, %rd1, "
                               "%rd2;\nst.global.u32 [%rd2], %r1;"),
                        memory);
    CHECK_NOTHROW(ptx::launch(code, "test", shape, parameters));
    CHECK_NOTHROW(ptx::launch(turned, "test", shape, parameters));
}

/// Thread 0 writes a word and arrives, thread 32 waits for the phase and reads it.
std::string handed_on(const std::string& arrive, const std::string& wait) {
    return kernel(R"(
        .shared .align 8 .b8 barrier[8];
        .shared .align 4 .b8 word[4];
        mov.u32 %r3, barrier;
        mov.u32 %r4, word;
        setp.eq.u32 %p1, %r1, 0;
        @%p1 mbarrier.init.shared::cta.b64 [%r3], 1;
        bar.sync 0;
        @!%p1 bra second;
        st.shared.u32 [%r4], 7;
        )" + arrive +
                  R"(
    second:
        setp.ne.u32 %p2, %r1, 32;
        @%p2 bra done;
    again:
        )" + wait +
                  R"(
        @!%p3 bra again;
        ld.shared.u32 %r5, [%r4];
    done:)");
}

TEST_CASE("barrier objects order what was before an arrival with what is behind the wait for its phase") {
    const std::string arrive = "mbarrier.arrive.shared::cta.b64 _, [%r3];";
    const std::string wait = "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p3, [%r3], 0;";
    CHECK(told(handed_on(arrive, wait)).empty());
    CHECK(races(told(handed_on("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%r3];", wait))));
    CHECK(races(
        told(handed_on(arrive, "mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 %p3, [%r3], 0;"))));
    // Whoever uses one has to know that it was initialised.
    CHECK_FALSE(
        told(kernel(".shared .align 8 .b8 barrier[8];\nmov.u32 %r3, barrier;\nsetp.eq.u32 %p1, %r1, 0;\n"
                    "@%p1 mbarrier.init.shared::cta.b64 [%r3], 1;\nsetp.eq.u32 %p2, %r1, 32;\n"
                    "@%p2 mbarrier.arrive.shared::cta.b64 _, [%r3];"))
            .empty());
}

TEST_CASE("copies of single threads are ordered by a wait and a barrier behind it") {
    const auto text = [](const std::string& behind) {
        return with_neighbour("32", R"(
            mul.wide.u32 %rd2, %r1, 4;
            add.s64 %rd2, %rd1, %rd2;
            cp.async.ca.shared.global [%r5], [%rd2], 4, 4;
            cp.async.commit_group;
            )" + behind + "\nld.shared.u32 %r7, [%r6];");
    };
    CHECK(told(text("cp.async.wait_group 0;\nbar.sync 0;")).empty());
    CHECK_FALSE(told(text("bar.sync 0;\ncp.async.wait_group 0;")).empty());
}

/// Thread 0 loads a tile of 4 x 8 words twice, and others read it between the two.
std::string tiles(const std::string& init_fence, const std::string& before_second,
                  const std::string& stores = "") {
    return kernel(R"(
        .shared .align 128 .b8 room[128];
        .shared .align 8 .b8 barrier[8];
        mov.u32 %r3, room;
        mov.u32 %r4, barrier;
        shl.b32 %r8, %r1, 2;
        and.b32 %r8, %r8, 127;
        add.u32 %r8, %r3, %r8;
        setp.ne.u32 %p1, %r1, 0;
        mov.u32 %r5, 0;
        @%p1 bra ready;
        mbarrier.init.shared::cta.b64 [%r4], 1;
        )" + init_fence +
                  R"(
        st.global.u64 [%rd1+256], %rd1;
        )" + stores +
                  R"(
    ready:
        bar.sync 0;
        mov.u32 %r9, 0;
    next:
        @%p1 bra wait;
        add.s64 %rd3, %rd1, 256;
        mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 128;
        cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd3, {%r5, %r5}], [%r4];
    wait:
        mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p3, [%r4], %r9;
        @!%p3 bra wait;
        ld.shared.u32 %r7, [%r8];
        )" + before_second +
                  R"(
        add.u32 %r9, %r9, 1;
        setp.lt.u32 %p4, %r9, 2;
        @%p4 bra next;)");
}

TEST_CASE("tiles: who reads waits for the barrier object, and a tile is copied again when all have read it") {
    ptx::tensor_map map{};
    map.mark = ptx::tensor_map::expected_mark;
    map.rank = 2;
    map.element_bytes = 4;
    map.last = {7, 3};
    map.strides = {32};
    map.box = {8, 4};
    words memory(64 + sizeof map / 4);
    std::memcpy(memory.data() + 64, &map, sizeof map);
    const auto of = [&](const std::string& text) { return told(text, 64, {}, memory); };
    const std::string fence = "fence.mbarrier_init.release.cluster;";
    CHECK(of(tiles(fence, "bar.sync 0;")).empty());
    CHECK(races(of(tiles(fence, ""))));
    CHECK(says(of(tiles("", "bar.sync 0;")), "no fence.mbarrier_init followed"));
    // Ordinary stores before a copy to the same bytes have to be fenced, and those of the tensor as well.
    CHECK(says(of(tiles(fence, "bar.sync 0;", "st.shared.u32 [%r3], 5;")), "no fence.proxy.async"));
    CHECK(of(tiles(fence, "bar.sync 0;", "st.shared.u32 [%r3], 5;\nfence.proxy.async.shared::cta;")).empty());
    CHECK(says(of(tiles(fence, "bar.sync 0;", "st.global.u32 [%rd1], 5;")), "no fence.proxy.async"));
    CHECK(of(tiles(fence, "bar.sync 0;", "st.global.u32 [%rd1], 5;\nfence.proxy.async;")).empty());
}

TEST_CASE("clusters: their barrier orders, unless it is relaxed") {
    const auto text = [](const std::string& arrive) {
        return kernel(R"(
            .shared .align 4 .b8 word[4];
            mov.u32 %r3, word;
            mov.u32 %r4, %cluster_ctarank;
            setp.eq.u32 %p1, %r1, 0;
            @%p1 st.shared.u32 [%r3], %r4;
            )" + arrive +
                      R"(
            barrier.cluster.wait.acquire.aligned;
            xor.b32 %r5, %r4, 1;
            mapa.shared::cluster.u32 %r6, %r3, %r5;
            ld.shared::cluster.u32 %r7, [%r6];
            barrier.cluster.arrive.release.aligned;
            barrier.cluster.wait.acquire.aligned;)");
    };
    ptx::launch_configuration shape;
    shape.grid[0] = 2;
    shape.cluster = 2;
    CHECK(told(text("barrier.cluster.arrive.release.aligned;"), 32, shape).empty());
    CHECK(races(told(text("barrier.cluster.arrive.relaxed.aligned;"), 32, shape)));
}

}  // namespace
