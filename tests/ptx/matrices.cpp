// SPDX-License-Identifier: MIT
// Where lanes hold elements of matrices: products with the unit matrix move elements without changing them.
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

/// Loads 8 rows of 16 bytes, element e of row r being 256 r + e.
std::string load(const std::string& form) {
    return kernel(R"(
        .shared .align 16 .b8 room[512];
        mov.u32 %r3, room;
        shl.b32 %r4, %r1, 4;
        add.u32 %r3, %r3, %r4;
        shl.b32 %r5, %r1, 8;
        add.u32 %r6, %r5, 1;
        mov.b32 %r7, 0;
    fill:
        cvt.u16.u32 %h1, %r5;
        cvt.u16.u32 %h2, %r6;
        mov.b32 %r8, {%h1, %h2};
        st.shared.u32 [%r3], %r8;
        add.u32 %r5, %r5, 2;
        add.u32 %r6, %r6, 2;
        add.u32 %r3, %r3, 4;
        add.u32 %r7, %r7, 1;
        setp.lt.u32 %p1, %r7, 4;
        @%p1 bra fill;
        bar.warp.sync -1;
        sub.u32 %r3, %r3, 16;
        ldmatrix.sync.aligned.m8n8.x1)" +
                  form + R"(.shared.b16 {%r9}, [%r3];
        mul.wide.u32 %rd2, %r1, 4;
        add.s64 %rd2, %rd1, %rd2;
        st.global.u32 [%rd2], %r9;)");
}

TEST_CASE("ldmatrix: rows as they are, and transposed") {
    const words plain = run(load(""), words(32), 32);
    const words turned = run(load(".trans"), words(32), 32);
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
        const std::uint32_t line = lane / 4, pair = lane % 4 * 2;
        CHECK(plain[lane] == (line * 256 + pair) + ((line * 256 + pair + 1) << 16));
        CHECK(turned[lane] == (pair * 256 + line) + (((pair + 1) * 256 + line) << 16));
    }
}

TEST_CASE("stmatrix: rows as they are, and transposed") {
    // Lane l has elements 2 l and 2 l + 1 of a matrix by rows, and points to row l, of those that it has.
    const auto store = [](const std::string& form) {
        return kernel(R"(
        .shared .align 16 .b8 room[512];
        mov.u32 %r3, room;
        shl.b32 %r4, %r1, 4;
        add.u32 %r4, %r3, %r4;
        shl.b32 %r5, %r1, 1;
        add.u32 %r6, %r5, 1;
        shl.b32 %r6, %r6, 16;
        or.b32 %r5, %r5, %r6;
        stmatrix.sync.aligned.m8n8.x1)" +
                      form + R"(.shared.b16 [%r4], {%r5};
        bar.warp.sync -1;
        shl.b32 %r4, %r1, 2;
        add.u32 %r4, %r3, %r4;
        ld.shared.u32 %r9, [%r4];
        mul.wide.u32 %rd2, %r1, 4;
        add.s64 %rd2, %rd1, %rd2;
        st.global.u32 [%rd2], %r9;)");
    };
    const words plain = run(store(""), words(32), 32);
    const words turned = run(store(".trans"), words(32), 32);
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
        const std::uint32_t line = lane / 4, pair = lane % 4 * 2;
        CHECK(plain[lane] == lane * 2 + ((lane * 2 + 1) << 16));
        CHECK(turned[lane] == (pair * 8 + line) + (((pair + 1) * 8 + line) << 16));
    }
}

TEST_CASE("mma.sync: A with one element, and B with one, give the sum at their crossing") {
    // A has 1 in row 11 at k = 5, which is word 1 of lane 4 * 3 + 2, high half; B has 2 at k = 5, column 6: word 0 of lane
    // 4 * 6 + 2, high half. The sum in row 11, column 6 is register 2 of lane 4 * 3 + 3.
    const std::string text = kernel(R"(
        mov.b32 %r10, 0; mov.b32 %r11, 0; mov.b32 %r12, 0; mov.b32 %r13, 0; mov.b32 %r14, 0; mov.b32 %r15, 0;
        setp.eq.u32 %p1, %r1, 14;
        @%p1 mov.b32 %r11, 0x3C000000;
        setp.eq.u32 %p2, %r1, 26;
        @%p2 mov.b32 %r14, 0x40000000;
        mov.f32 %f1, 0f3F000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;
        mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r10, %r11, %r12, %r13}, {%r14, %r15},
            {%f1, %f2, %f3, %f4};
        mul.wide.u32 %rd2, %r1, 16;
        add.s64 %rd2, %rd1, %rd2;
        st.global.v4.f32 [%rd2], {%f1, %f2, %f3, %f4};)");
    const std::vector<float> out = run(text, std::vector<float>(128), 32);
    for (std::size_t i = 0; i < 128; ++i) CHECK(out[i] == (i == 4 * 15 + 2 ? 2.5F : 0.5F));
}

TEST_CASE("mma.sync of signed bytes: exact sums, modulo 2^32") {
    // A has -3 in row 11 at k = 22: byte 2 of word 3 of lane 4 * 3 + 1; B has -128 at k = 22, column 6: byte 2 of word 1 of lane
    // 4 * 6 + 1. The sum in row 11, column 6 is register 2 of lane 4 * 3 + 3.
    const std::string text = kernel(R"(
        mov.b32 %r10, 0; mov.b32 %r11, 0; mov.b32 %r12, 0; mov.b32 %r13, 0; mov.b32 %r14, 0; mov.b32 %r15, 0;
        setp.eq.u32 %p1, %r1, 13;
        @%p1 mov.b32 %r13, 0x00FD0000;
        setp.eq.u32 %p2, %r1, 25;
        @%p2 mov.b32 %r15, 0x00800000;
        mov.b32 %r2, 0x7FFFFFFF; mov.b32 %r3, %r2; mov.b32 %r4, %r2; mov.b32 %r5, %r2;
        mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r2, %r3, %r4, %r5}, {%r10, %r11, %r12, %r13}, {%r14, %r15},
            {%r2, %r3, %r4, %r5};
        mul.wide.u32 %rd2, %r1, 16;
        add.s64 %rd2, %rd1, %rd2;
        st.global.v4.u32 [%rd2], {%r2, %r3, %r4, %r5};)");
    const words out = run(text, words(128), 32);
    for (std::size_t i = 0; i < 128; ++i) CHECK(out[i] == (i == 4 * 15 + 2 ? 0x80000000 + 383 : 0x7FFFFFFF));
}

/// A in registers has 1 in row 11 of each warp at k = 5, as above; B in memory 2 at k = 5, column 6, of 8 columns: in the
/// first half of k lines of 16 bytes, so it is the high half of word 26.
std::string warpgroup_product(const std::string& fence,
                              const std::string& wait = "wgmma.wait_group.sync.aligned 0;") {
    return kernel(R"(
        .shared .align 128 .b8 room[256];
        mov.u32 %r3, room;
        shl.b32 %r4, %r1, 2;
        add.u32 %r4, %r3, %r4;
        setp.eq.u32 %p1, %r1, 26;
        selp.b32 %r5, 0x40000000, 0, %p1;
        setp.lt.u32 %p2, %r1, 64;
        @%p2 st.shared.u32 [%r4], %r5;
        )" + fence +
                  R"(
        bar.sync 0;
        mov.b32 %r10, 0; mov.b32 %r12, 0; mov.b32 %r13, 0;
        and.b32 %r6, %r1, 31;
        setp.eq.u32 %p3, %r6, 14;
        selp.b32 %r11, 0x3C000000, 0, %p3;
        cvt.u64.u32 %rd3, %r3;
        shr.u64 %rd3, %rd3, 4;
        or.b64 %rd3, %rd3, 0x0000000800080000;
        mov.f32 %f1, 0f3F000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;
        setp.eq.u32 %p4, %r3, %r3;
        wgmma.fence.sync.aligned;
        wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, {%r10, %r11, %r12, %r13}, %rd3, %p4, 1, 1,
            0;
        wgmma.commit_group.sync.aligned;
        )" + wait +
                  R"(
        mul.wide.u32 %rd2, %r1, 16;
        add.s64 %rd2, %rd1, %rd2;
        st.global.v4.f32 [%rd2], {%f1, %f2, %f3, %f4};)");
}

TEST_CASE("wgmma: A in registers lies as that of mma.sync does; stores of B have to be fenced") {
    const std::vector<float> out =
        run(warpgroup_product("fence.proxy.async.shared::cta;"), std::vector<float>(512), 128);
    for (std::size_t i = 0; i < 512; ++i) CHECK(out[i] == (i % 128 == 4 * 15 + 2 ? 2.5F : 0.5F));
    CHECK(says(failure_of(warpgroup_product(""), std::vector<float>(512), 128), "no fence.proxy.async"));
    CHECK(says(failure_of(warpgroup_product("fence.proxy.async;", ""), std::vector<float>(512), 128),
               "before its products were waited for"));
}

TEST_CASE("wgmma of signed bytes: exact sums, modulo 2^32") {
    // A in registers has -3 in row 11 of each warp at k = 22, as above; B in memory -128 at k = 22, column 6: in the second half
    // of k, lines of 16 bytes, it is byte 2 of word 32 + 25.
    const std::string text = kernel(R"(
        .shared .align 128 .b8 room[256];
        mov.u32 %r3, room;
        shl.b32 %r4, %r1, 2;
        add.u32 %r4, %r3, %r4;
        setp.eq.u32 %p1, %r1, 57;
        selp.b32 %r5, 0x00800000, 0, %p1;
        setp.lt.u32 %p2, %r1, 64;
        @%p2 st.shared.u32 [%r4], %r5;
        fence.proxy.async.shared::cta;
        bar.sync 0;
        mov.b32 %r10, 0; mov.b32 %r11, 0; mov.b32 %r12, 0;
        and.b32 %r6, %r1, 31;
        setp.eq.u32 %p3, %r6, 13;
        selp.b32 %r13, 0x00FD0000, 0, %p3;
        cvt.u64.u32 %rd3, %r3;
        shr.u64 %rd3, %rd3, 4;
        or.b64 %rd3, %rd3, 0x0000000800080000;
        mov.b32 %r2, 0x7FFFFFFF; mov.b32 %r7, %r2; mov.b32 %r8, %r2; mov.b32 %r9, %r2;
        setp.eq.u32 %p4, %r3, %r3;
        wgmma.fence.sync.aligned;
        wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%r2, %r7, %r8, %r9}, {%r10, %r11, %r12, %r13}, %rd3, %p4;
        wgmma.commit_group.sync.aligned;
        wgmma.wait_group.sync.aligned 0;
        mul.wide.u32 %rd2, %r1, 16;
        add.s64 %rd2, %rd1, %rd2;
        st.global.v4.u32 [%rd2], {%r2, %r7, %r8, %r9};)");
    const words out = run(text, words(512), 128);
    for (std::size_t i = 0; i < 512; ++i)
        CHECK(out[i] == (i % 128 == 4 * 15 + 2 ? 0x80000000 + 383 : 0x7FFFFFFF));
}

/// Two tiles of 16 x 16 words in shared memory of which A and B are read, row after row; sums are stored over both. A has 2
/// in row 11 at k = 5, and B 3 at k = 5, column 6.
std::string wmma_product(const std::string& store_shape) {
    return kernel(R"(
        .shared .align 128 .b8 room[2048];
        mov.u32 %r3, room;
        shl.b32 %r4, %r1, 2;
        add.u32 %r4, %r3, %r4;
        mov.b32 %r5, 0;
        mov.u32 %r6, 0;
    clear:
        st.shared.u32 [%r4], %r5;
        add.u32 %r4, %r4, 128;
        add.u32 %r6, %r6, 1;
        setp.lt.u32 %p1, %r6, 16;
        @%p1 bra clear;
        bar.warp.sync -1;
        setp.ne.u32 %p2, %r1, 0;
        @%p2 bra ready;
        st.shared.f32 [%r3+724], 0f40000000;
        st.shared.f32 [%r3+1368], 0f40400000;
    ready:
        bar.warp.sync -1;
        add.u32 %r7, %r3, 1024;
        mov.f32 %f1, 0f3F000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;
        mov.f32 %f5, %f1; mov.f32 %f6, %f1; mov.f32 %f7, %f1; mov.f32 %f8, %f1;
        wmma.load.a.sync.aligned.row.m16n16k8.shared.tf32 {%r10, %r11, %r12, %r13}, [%r3], 16;
        wmma.load.b.sync.aligned.row.m16n16k8.shared.tf32 {%r14, %r15, %r16, %r17}, [%r7], 16;
        wmma.mma.sync.aligned.row.row.m16n16k8.f32.tf32.tf32.f32 {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8},
            {%r10, %r11, %r12, %r13}, {%r14, %r15, %r16, %r17}, {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8};
        bar.warp.sync -1;
        wmma.store.d.sync.aligned.row.)" +
                  store_shape + R"(.shared.f32 [%r3], {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, 16;
        bar.warp.sync -1;
        shl.b32 %r4, %r1, 5;
        add.u32 %r4, %r3, %r4;
        mul.wide.u32 %rd2, %r1, 32;
        add.s64 %rd2, %rd1, %rd2;
        ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [%r4];
        ld.shared.v4.f32 {%f5, %f6, %f7, %f8}, [%r4+16];
        st.global.v4.f32 [%rd2], {%f1, %f2, %f3, %f4};
        st.global.v4.f32 [%rd2+16], {%f5, %f6, %f7, %f8};)");
}

TEST_CASE("wmma of tf32: 16 x 8 and 8 x 16 elements, and sums that are stored by their shape") {
    const std::vector<float> out = run(wmma_product("m16n16k8"), std::vector<float>(256), 32);
    for (std::size_t i = 0; i < 256; ++i) CHECK(out[i] == (i == 16 * 11 + 6 ? 6.5F : 0.5F));
    // Where sums lie is another matter for each shape.
    CHECK(run(wmma_product("m16n16k16"), std::vector<float>(256), 32)[16 * 11 + 6] == 0.5F);
}

TEST_CASE("matrix instructions want the whole warp") {
    const std::string text = kernel(
        "setp.lt.u32 %p1, %r1, 31;\n@!%p1 bra out;\nmov.u32 %r3, 0;\n"
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r9}, [%r3];\nout:\nbar.warp.sync -1;");
    CHECK(says(failure_of(text, words(1), 32), "wait for ever"));
}

}  // namespace
