// SPDX-License-Identifier: MIT
// Threads: different ways, loops, calls, what lanes and warps do together, and mistakes that have to be seen.
#include "run.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace {

using ptx_test::failure_of;
using ptx_test::kernel;
using ptx_test::run;
using ptx_test::says;

using words = std::vector<std::uint32_t>;

/// %rd2 is where the thread's word lies.
constexpr const char* own_word = "mul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd2, %rd1, %rd2;\n";

TEST_CASE("lanes that take different ways, and loops of different lengths") {
    const std::string text = kernel(std::string(own_word) + R"(
        mov.u32 %r2, 0;
        mov.u32 %r3, 0;
    again:
        setp.ge.u32 %p1, %r3, %r1;
        @%p1 bra done;
        and.b32 %r4, %r3, 1;
        setp.eq.u32 %p2, %r4, 0;
        @%p2 bra even;
        add.u32 %r2, %r2, 100;
        bra.uni next;
    even:
        add.u32 %r2, %r2, 1;
    next:
        add.u32 %r3, %r3, 1;
        bra.uni again;
    done:
        st.global.u32 [%rd2], %r2;)");
    for (std::uint64_t seed = 1; seed < 20; ++seed) {
        ptx::launch_configuration shape;
        shape.seed = seed;
        const words out = run(text, words(70), 70, shape);
        for (std::uint32_t i = 0; i < 70; ++i) CHECK(out[i] == (i + 1) / 2 + i / 2 * 100);
    }
}

TEST_CASE("functions, their parameters, local memory and constants") {
    const std::string before = R"(
        .const .align 4 .b32 factors[3] = {3, 5, 7};
        .func (.param .b32 result) weigh(.param .b32 value, .param .align 4 .b8 pair[8]) {
            .reg .b32 %r<8>; .reg .b64 %rd<4>;
            ld.param.b32 %r1, [value];
            ld.param.b32 %r2, [pair+4];
            ld.const.u32 %r3, [factors+8];
            mad.lo.u32 %r4, %r1, %r3, %r2;
            st.param.b32 [result], %r4;
            ret;
        })";
    const std::string text = kernel(std::string(own_word) + R"(
        .local .align 8 .b8 depot[16];
        mov.u64 %rd3, depot;
        cvta.local.u64 %rd4, %rd3;
        st.u32 [%rd4+12], %r1;
        {
            .param .b32 p0; .param .align 4 .b8 p1[8]; .param .b32 back;
            st.param.b32 [p0], %r1;
            st.param.b32 [p1], 1;
            st.param.b32 [p1+4], 1000;
            call.uni (back), weigh, (p0, p1);
            ld.param.b32 %r5, [back];
        }
        ld.local.u32 %r6, [%rd3+12];
        add.u32 %r5, %r5, %r6;
        st.global.u32 [%rd2], %r5;)",
                                    before);
    const words out = run(text, words(40), 40);
    for (std::uint32_t i = 0; i < 40; ++i) CHECK(out[i] == 8 * i + 1000);
}

TEST_CASE("shuffles, votes and matches") {
    const auto each = [](const std::string& body) {
        return run(kernel(std::string(own_word) + body + "\nst.global.u32 [%rd2], %r2;"), words(32), 32);
    };
    CHECK(each("shfl.sync.bfly.b32 %r2, %r1, 3, 31, -1;")[5] == 6);
    const words up = each("shfl.sync.up.b32 %r2|%p1, %r1, 4, 0, -1; @!%p1 mov.u32 %r2, 99;");
    CHECK(up[3] == 99);
    CHECK(up[9] == 5);
    const words down = each("shfl.sync.down.b32 %r2|%p1, %r1, 4, 31, -1; @!%p1 mov.u32 %r2, 99;");
    CHECK(down[27] == 31);
    CHECK(down[28] == 99);
    // Segments of 8 lanes: the mask in bits 8 to 12 is 24.
    CHECK(each("shfl.sync.idx.b32 %r2, %r1, 2, 0x181F, -1;")[21] == 18);
    CHECK(each("setp.lt.u32 %p1, %r1, 3; vote.sync.ballot.b32 %r2, %p1, -1;")[9] == 7);
    CHECK(each("setp.eq.u32 %p1, %r1, 3; vote.sync.any.pred %p2, %p1, -1; selp.b32 %r2, 1, 0, %p2;")[9] == 1);
    CHECK(each("and.b32 %r3, %r1, 1; match.sync.any.b32 %r2, %r3, -1;")[9] == 0xAAAAAAAA);
    CHECK(each("redux.sync.add.s32 %r2, %r1, -1;")[9] == 496);
}

/// Thread i writes to shared memory, and reads what thread i ^ 32 of another warp wrote.
std::string exchange(const std::string& barrier) {
    return kernel(std::string(own_word) + R"(
        .shared .align 4 .b8 room[256];
        mov.u32 %r3, room;
        shl.b32 %r4, %r1, 2;
        add.u32 %r5, %r3, %r4;
        st.shared.u32 [%r5], %r1;
        )" + barrier +
                  R"(
        xor.b32 %r4, %r4, 128;
        add.u32 %r5, %r3, %r4;
        ld.shared.u32 %r2, [%r5];
        st.global.u32 [%rd2], %r2;)");
}

TEST_CASE("a barrier is needed where threads read what others wrote") {
    const words out = run(exchange("bar.sync 0;"), words(64), 64);
    for (std::uint32_t i = 0; i < 64; ++i) CHECK(out[i] == (i ^ 32));
    CHECK(run(exchange("bar.sync 3, 64;"), words(64), 64)[1] == 33);
    CHECK(says(failure_of(exchange(""), words(64), 64), "reads memory that nobody has written"));
    CHECK(says(failure_of(exchange("setp.lt.u32 %p1, %r1, 32; @%p1 bar.sync 0;"), words(64), 64), "written"));
}

TEST_CASE("barriers that count predicates") {
    const auto all = [](const std::string& instructions) {
        return run(kernel(std::string(own_word) + "setp.lt.u32 %p1, %r1, 40;\nmov.u32 %r2, 0;\n" +
                          instructions + "\nst.global.u32 [%rd2], %r2;"),
                   words(64), 64);
    };
    CHECK(all("bar.red.popc.u32 %r2, 1, %p1;") == words(64, 40));
    CHECK(all("barrier.cta.red.popc.aligned.u32 %r2, 1, 64, !%p1;") == words(64, 24));
    CHECK(all("bar.red.and.pred %p2, 0, %p1;\n@%p2 mov.u32 %r2, 1;") == words(64, 0));
    CHECK(all("bar.red.or.pred %p2, 0, %p1;\n@%p2 mov.u32 %r2, 1;") == words(64, 1));
    const std::string ordered = "bar.red.popc.u32 %r7, 0, %p1;";
    CHECK(run(exchange("setp.lt.u32 %p1, %r1, 40;\n" + ordered), words(64), 64)[1] == 33);
}

TEST_CASE("threads that wait for ever are told with their lines") {
    const std::string half = kernel(
        "setp.lt.u32 %p1, %r1, 16;\n@%p1 bra here;\nbar.warp.sync -1;\nhere:\n"
        "@!%p1 bra there;\nbar.warp.sync -1;\nthere:");
    const std::string message = failure_of(half, words(1), 32);
    CHECK(says(message, "wait for ever"));
    CHECK(says(message, "bar.warp.sync"));
    const std::string barriers = kernel("shr.u32 %r2, %r1, 5;\nbar.sync %r2;");
    CHECK(says(failure_of(barriers, words(1), 64), "a barrier of the block"));
}

TEST_CASE("mistakes with memory, and what is not known, name their line") {
    CHECK(says(failure_of(kernel("st.global.u32 [%rd1+64], %r1;"), words(16)),
               "outside of global memory: byte 64"));
    CHECK(says(failure_of(kernel("ld.global.u32 %r2, [%rd1+2];"), words(16)), "not a multiple of 4"));
    CHECK(says(
        failure_of(kernel(".shared .align 4 .b8 a[64];\nmov.u32 %r2, a;\nst.shared.u32 [%r2+1024], %r1;"),
                   words(1)),
        "outside of the 1024 bytes of shared memory"));
    CHECK(says(failure_of(kernel("frob.b32 %r2, %r1;"), words(1)), "(frob.b32): instruction is not known"));
    CHECK(says(failure_of(kernel("add.weird.s32 %r2, %r1, %r1;"), words(1)), "'.weird' is not known here"));
    CHECK(says(failure_of(kernel("add.s64 %r2, %r1, %r1;"), words(1)), "4 bytes; 8 are expected"));
    CHECK(says(failure_of(kernel("add.s32 %r99, %r1, %r1;"), words(1)), "'%r99' is not known"));
    CHECK(says(failure_of(kernel("add.s32 %r2, %r1, %r1, %r1;"), words(1)), "an operand too many"));
}

TEST_CASE("registers are written before they are read, whatever way a lane takes") {
    const auto message = [](const std::string& body) { return failure_of(kernel(body), words(64), 32); };
    CHECK(says(message("add.u32 %r2, %r3, 1;"), "(add.u32): thread 0 of block 0 reads a register"));
    CHECK(says(message("@%p1 add.u32 %r2, %r1, 1;"), "reads a register"));
    const std::string half = "setp.lt.u32 %p1, %r1, 16;\n@%p1 mov.u32 %r2, 5;\n";
    CHECK(says(message(half + "add.u32 %r3, %r2, 1;"), "thread 16 of block 0 reads a register"));
    CHECK(message(half + "@%p1 add.u32 %r3, %r2, 1;\n@!%p1 mov.u32 %r2, 4;\nadd.u32 %r3, %r2, 1;").empty());
    CHECK(says(message("setp.lt.u32 %p1, %r1, 16;\n@%p1 bra on;\nmov.u32 %r2, 5;\non:\nadd.u32 %r3, %r2, 1;"),
               "thread 0 of block 0 reads a register"));
    // A value that is not there may be copied, but not used.
    CHECK(message("mov.u32 %r2, %r3;").empty());
    CHECK(says(message("mov.u32 %r2, %r3;\nadd.u32 %r2, %r2, 1;"),
               "(add.u32): thread 0 of block 0 reads a register"));
    const std::string chosen = "setp.lt.u32 %p1, %r1, 16;\nselp.b32 %r2, 0, %r3, %p1;\n";
    CHECK(message(chosen + "@%p1 add.u32 %r4, %r2, 1;").empty());
    CHECK(says(message(chosen + "add.u32 %r4, %r2, 1;"), "thread 16 of block 0 reads a register"));
    // In a loop the first round may write what later ones read.
    CHECK(message("mov.u32 %r2, 0;\nagain:\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 mov.u32 %r3, 7;\nadd.u32 %r2, "
                  "%r2, %r3;\n"
                  "setp.lt.u32 %p2, %r2, 30;\n@%p2 bra again;")
              .empty());
    const std::string vectors = "ld.global.v2.u32 {%r2, %r3}, [%rd1];\nst.global.v2.u32 [%rd1], {%r3, %r2};";
    CHECK(failure_of(kernel(vectors), words(64), 1).empty());
    CHECK(says(message("st.global.v2.u32 [%rd1], {%r1, %r2};"), "reads a register"));
    CHECK(says(message("ld.global.u32 %r2, [%rd9];"), "reads a register"));
}

TEST_CASE("atomics add up over blocks, and say what was there") {
    ptx::launch_configuration shape;
    shape.grid[0] = 5;
    const words out = run(kernel("atom.global.add.u32 %r2, [%rd1], 1;\nred.global.max.u32 [%rd1+4], %r2;"),
                          words(2), 96, shape);
    CHECK(out[0] == 480);
    CHECK(out[1] == 479);
    CHECK(run(kernel("atom.global.cas.b32 %r2, [%rd1], 7, 9; st.global.u32 [%rd1+4], %r2;"),
              words{7, 0})[0] == 9);
}

TEST_CASE("a kernel whose launch is programmatic waits before it touches global memory") {
    ptx::launch_configuration shape;
    shape.is_programmatic = true;
    const auto failure = [&](const std::string& body) -> std::string {
        try {
            run(kernel(std::string(own_word) + body), words(32), 32, shape);
        } catch (const ptx::failure& error) {
            return error.what();
        }
        return {};
    };
    const std::string wait = "griddepcontrol.wait;\n", store = "st.global.u32 [%rd2], %r1;\n";
    CHECK(failure(wait + "griddepcontrol.launch_dependents;\n" + store).empty());
    CHECK(
        says(failure(store + wait), "thread 0 of block 0 touches global memory before griddepcontrol.wait"));
    CHECK(says(failure("setp.ne.u32 %p1, %r1, 5;\n@%p1 " + wait + store),
               "thread 5 of block 0 touches global memory before griddepcontrol.wait"));
    CHECK(says(failure("setp.ne.u32 %p1, %r1, 5;\n@%p1 " + wait),
               "thread 5 of block 0 leaves the kernel without griddepcontrol.wait"));
    // Other launches begin when the kernels before them have ended.
    CHECK(run(kernel(own_word + store), words(32), 32)[31] == 31);
}

}  // namespace
