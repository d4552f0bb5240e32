// SPDX-License-Identifier: MIT
// Copies beside the threads, barrier objects and clusters.
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

std::string copy(const std::string& wait) {
    return kernel(R"(
        .shared .align 16 .b8 room[64];
        mov.u32 %r3, room;
        cp.async.cg.shared.global [%r3], [%rd1], 16, 16;
        cp.async.commit_group;
        cp.async.ca.shared.global [%r3+16], [%rd1], 8, 4;
        cp.async.commit_group;
        )" + wait +
                  R"(
        ld.shared.v2.u32 {%r4, %r5}, [%r3+16];
        ld.shared.u32 %r6, [%r3+12];
        st.global.v4.u32 [%rd1], {%r4, %r5, %r6, %r6};)");
}

TEST_CASE("copies of single threads: whoever does not wait is seen") {
    CHECK(run(copy("cp.async.wait_group 0;"), words{1, 2, 3, 4}) == words{1, 0, 4, 4});
    CHECK(run(copy("cp.async.wait_all;"), words{1, 2, 3, 4}) == words{1, 0, 4, 4});
    CHECK(says(failure_of(copy("cp.async.wait_group 1;"), words{1, 2, 3, 4}),
               "a copy is still going to write"));
    CHECK(says(failure_of(copy(""), words{1, 2, 3, 4}), "a copy is still going to write"));
}

/// Two warps: the first one writes a word a phase, the second one waits for it.
std::string phases(const std::string& parity) {
    return kernel(R"(
        .shared .align 8 .b8 barrier[8];
        .shared .align 4 .b8 word[128];
        mov.u32 %r3, barrier;
        mov.u32 %r4, word;
        setp.ne.u32 %p1, %r1, 0;
        @%p1 bra ready;
        mbarrier.init.shared::cta.b64 [%r3], 1;
    ready:
        bar.sync 0;
        mov.u32 %r5, 0;
    next:
        shl.b32 %r9, %r5, 2;
        add.u32 %r9, %r4, %r9;
        setp.eq.u32 %p1, %r1, 32;
        @%p1 bra reads;
        setp.ne.u32 %p2, %r1, 0;
        @%p2 bra on;
        st.shared.u32 [%r9], %r5;
        mbarrier.arrive.shared::cta.b64 _, [%r3];
        bra on;
    reads:
        and.b32 %r6, %r5, 1;
        )" + parity +
                  R"(
    again:
        mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p3, [%r3], %r6;
        @!%p3 bra again;
        ld.shared.u32 %r7, [%r9];
        setp.ne.u32 %p4, %r7, %r5;
        @%p4 trap;
    on:
        bar.sync 0;
        add.u32 %r5, %r5, 1;
        setp.lt.u32 %p5, %r5, 20;
        @%p5 bra next;)");
}

TEST_CASE("barrier objects: phases follow each other, and another parity does not wait") {
    CHECK(failure_of(phases(""), words(1), 64).empty());
    CHECK_FALSE(failure_of(phases("xor.b32 %r6, %r6, 1;"), words(1), 64).empty());
    CHECK(says(failure_of(kernel(".shared .align 8 .b8 barrier[8];\nmov.u32 %r3, barrier;\n"
                                 "mbarrier.arrive.shared::cta.b64 _, [%r3];"),
                          words(1)),
               "nobody has initialised"));
}

TEST_CASE("tiles of a tensor: swizzled, with zeros outside, and with the bytes that were announced") {
    // 6 x 5 words of 4 bytes; a box of 32 bytes by 3 rows from (2, 3), swizzled by 32 bytes.
    words memory(64);
    for (std::uint32_t i = 0; i < 30; ++i) memory[i / 6 * 8 + i % 6] = 100 + i;
    const std::string text = kernel(R"(
        .shared .align 128 .b8 room[256];
        .shared .align 8 .b8 barrier[8];
        mov.u32 %r3, room;
        mov.u32 %r4, barrier;
        mbarrier.init.shared::cta.b64 [%r4], 1;
        fence.mbarrier_init.release.cluster;
        mov.u32 %r5, 2;
        mov.u32 %r6, 3;
        add.s64 %rd3, %rd1, 256;
        st.global.u64 [%rd3], %rd1;
        mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 96;
        cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd3, {%r5, %r6}], [%r4];
    again:
        mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p3, [%r4], 0;
        @!%p3 bra again;
        ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r3];
        st.global.v4.u32 [%rd1], {%r10, %r11, %r12, %r13};
        ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r3+48];
        st.global.v4.u32 [%rd1+16], {%r10, %r11, %r12, %r13};
        ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r3+64];
        st.global.v4.u32 [%rd1+32], {%r10, %r11, %r12, %r13};)");
    ptx::tensor_map map{};
    map.mark = ptx::tensor_map::expected_mark;
    map.rank = 2;
    map.element_bytes = 4;
    map.swizzle_bytes = 32;
    map.last = {5, 4};
    map.strides = {32};
    map.box = {8, 3};
    memory.resize(64 + sizeof map / 4);
    std::memcpy(memory.data() + 64, &map, sizeof map);
    const words out = run(text, memory);
    // Row 3 of the matrix from column 2: 120 121 122 123 0 0 0 0; rows 4 and outside. In swizzled rows of 32 bytes
    // chunks of 16 change places where bit 7 of the address is set, which it is for none of these 96 bytes.
    CHECK(std::vector(out.begin(), out.begin() + 4) == words{120, 121, 122, 123});
    CHECK(std::vector(out.begin() + 4, out.begin() + 8) == words{0, 0, 0, 0});
    CHECK(std::vector(out.begin() + 8, out.begin() + 12) == words{0, 0, 0, 0});
    CHECK(ptx::swizzled(0x480, 32) == 0x490);
    CHECK(ptx::swizzled(0x480, 128) == 0x490);
    CHECK(ptx::swizzled(0x7F0, 128) == 0x780);
    CHECK(ptx::swizzled(0x390, 64) == 0x3A0);
}

TEST_CASE("bytes that follow each other: copied in, and out again") {
    const auto text = [](const std::string& fence, const std::string& size) {
        return kernel(R"(
            .shared .align 128 .b8 room[64];
            .shared .align 8 .b8 barrier[8];
            mov.u32 %r3, room;
            mov.u32 %r4, barrier;
            mbarrier.init.shared::cta.b64 [%r4], 1;
            fence.mbarrier_init.release.cluster;
            mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], )" +
                      size + R"(;
            cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1], )" +
                      size + R"(, [%r4];
        again:
            mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p3, [%r4], 0;
            @!%p3 bra again;
            ld.shared.u32 %r5, [%r3+4];
            add.u32 %r5, %r5, 100;
            st.shared.u32 [%r3+4], %r5;
            )" + fence +
                      R"(
            add.s64 %rd2, %rd1, 32;
            cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r3], 32;
            cp.async.bulk.commit_group;
            cp.async.bulk.wait_group 0;)");
    };
    words memory(16);
    for (std::uint32_t k = 0; k < 8; ++k) memory[k] = k;
    const words out = run(text("fence.proxy.async.shared::cta;", "32"), memory);
    for (std::uint32_t k = 0; k < 8; ++k) CHECK(out[8 + k] == k + (k == 1 ? 100 : 0));
    CHECK(says(failure_of(text("", "32"), memory), "no fence.proxy.async"));
    CHECK(says(failure_of(text("", "24"), memory), "no multiple of 16"));
}

TEST_CASE("clusters: addresses in other blocks, and their barrier") {
    const std::string text = kernel(R"(
        .shared .align 4 .b8 word[4];
        mov.u32 %r3, word;
        mov.u32 %r4, %cluster_ctarank;
        setp.eq.u32 %p1, %r1, 0;
        @%p1 st.shared.u32 [%r3], %r4;
        barrier.cluster.arrive.release.aligned;
        barrier.cluster.wait.acquire.aligned;
        xor.b32 %r5, %r4, 1;
        mapa.shared::cluster.u32 %r6, %r3, %r5;
        ld.shared::cluster.u32 %r7, [%r6];
        mov.u32 %r8, %ctaid.x;
        mul.wide.u32 %rd2, %r8, 4;
        add.s64 %rd2, %rd1, %rd2;
        @%p1 st.global.u32 [%rd2], %r7;
        barrier.cluster.arrive.release.aligned;
        barrier.cluster.wait.acquire.aligned;)");
    ptx::launch_configuration shape;
    shape.grid[0] = 4;
    shape.cluster = 2;
    CHECK(run(text, words(4), 32, shape) == words{1, 0, 1, 0});
}

}  // namespace
