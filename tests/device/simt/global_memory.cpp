// SPDX-License-Identifier: MIT
// What mp::simt::memory_checker finds: each mistake is planted, and its correction is quiet.
#include "device/simt/body.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace {

using mp::kernel_violation;
using mp::simt::memory_checker;
using mp::simt::shared_pointer;

template <int Threads, class Function>
void run(memory_checker& checker, Function function, std::ptrdiff_t blocks, std::uint64_t seed,
         bool equal_writes = false) {
    launch(
        "planted",
        mp::simulated_gpu<mp::arch::sm_80>{.seed = seed, .checker = &checker, .equal_writes = equal_writes},
        mp::simt::launch_size{.blocks = blocks, .shared_bytes = 4096},
        simt_test::body<Threads, Function>{function});
}

/// What a run of 64 threads a block throws, if anything.
template <class Function>
std::optional<mp::kernel_error> error_of(memory_checker& checker, Function function,
                                         std::ptrdiff_t blocks = 1, std::uint64_t seed = 1,
                                         bool equal_writes = false) {
    try {
        run<64>(checker, function, blocks, seed, equal_writes);
    } catch (const mp::kernel_error& error) {
        return error;
    }
    return std::nullopt;
}

template <class Function>
bool is_race(Function function, std::ptrdiff_t blocks = 1, std::uint64_t seed = 1,
             bool equal_writes = false) {
    memory_checker checker;
    const auto error = error_of(checker, function, blocks, seed, equal_writes);
    CHECK((!error || error->violation() == kernel_violation::race));
    return error.has_value();
}

bool contains(const mp::kernel_error& error, const std::string& text) {
    return std::string(error.what()).find(text) != std::string::npos;
}

TEST_CASE("threads of a block hand values over by a barrier, not by luck") {
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
        int place = 0;
        int* const at = &place;
        const auto hand_over = [at](auto between) {
            return [at, between](auto thread) {
                if (thread.index() == 0) thread.store(at, 7);
                between(thread);
                if (thread.index() == 40) static_cast<void>(thread.load(at));
            };
        };
        CHECK(is_race(hand_over([](auto) {}), 1, seed));
        CHECK(is_race(hand_over([](auto thread) { thread.sync_warp(); }), 1, seed));
        CHECK(is_race(hand_over([](auto thread) { thread.fence_device(); }), 1, seed));
        CHECK_FALSE(is_race(hand_over([](auto thread) { thread.sync_block(); }), 1, seed));
    }
}

TEST_CASE("blocks are in no order, whichever runs first") {
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
        std::vector<float> values(128);
        float* const all = values.data();
        // Each block reads what it wrote, and one element of the next one's.
        const auto with_neighbour = [all](int neighbour) {
            return [all, neighbour](auto thread) {
                float* const own = all + thread.block() * 32;
                if (thread.index() < 32) thread.store(own + thread.index(), 1.0F);
                thread.sync_block();
                if (thread.index() < 32 + neighbour && thread.block() < 3) {
                    static_cast<void>(thread.load(own + thread.index()));
                }
            };
        };
        CHECK_FALSE(is_race(with_neighbour(0), 4, seed));
        CHECK(is_race(with_neighbour(1), 4, seed));
    }
    int place = 0;
    memory_checker checker;
    checker.add(std::span(&place, 1), "place");
    const auto error = error_of(
        checker,
        [at = &place](auto thread) {
            if (thread.index() == 33) thread.store(at, 1);
        },
        2, 0);
    REQUIRE(error);
    CHECK(contains(*error,
                   "mp::simulated_gpu: planted: block 1, thread 33 (warp 1, lane 1), global_memory.cpp:"));
    CHECK(contains(*error,
                   ": writes 4 bytes of global memory, at byte 0 of \"place\" (4 bytes), which another "
                   "thread writes: nothing orders the two (the other is block 0, thread 33 (warp 1, lane "
                   "1), global_memory.cpp:"));
}

TEST_CASE("the end of a kernel orders everything") {
    std::vector<int> values(64);
    memory_checker checker;
    int* const all = values.data();
    run<64>(checker, [all](auto thread) { thread.store(all + thread.index(), 1); }, 1, 0);
    CHECK_NOTHROW(
        run<64>(checker, [all](auto thread) { thread.store(all + (63 - thread.index()), 2); }, 1, 0));
}

/// How the blocks of a sum tell each other that their part is written.
enum class telling { atomics_and_fences, no_fence_before, no_fence_after, no_atomic };

/// Every block writes its part; the last one that says so adds them.
auto last_block_adds(float* parts, unsigned* count, telling how) {
    return [=](auto thread) {
        if (thread.index() == 5) thread.store(parts + thread.block(), 1.0F);
        thread.sync_block();
        const shared_pointer<unsigned> is_last{};
        if (thread.index() == 0) {
            if (how != telling::no_fence_before) thread.fence_device();
            unsigned before = 0;
            if (how == telling::no_atomic) {
                before = static_cast<unsigned>(thread.block());
            } else {
                before = thread.atomic_add(count, 1U);
            }
            if (how != telling::no_fence_after) thread.fence_device();
            thread.store(is_last, before + 1 == static_cast<unsigned>(thread.blocks()) ? 1U : 0U);
        }
        thread.sync_block();
        if (thread.load(is_last) == 0) return;
        if (thread.index() == 40) {
            float sum = 0;
            for (int i = 0; i < thread.blocks(); ++i) sum += thread.load(parts + i);
            thread.store(parts, sum);
        }
    };
}

TEST_CASE("the last block may read what the others wrote, after fences and an atomic operation") {
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
        const auto races = [seed](telling how) {
            std::vector<float> parts(5);
            unsigned count = 0;
            const bool found = is_race(last_block_adds(parts.data(), &count, how), 5, seed);
            if (!found) CHECK(parts[0] == 5.0F);
            return found;
        };
        CHECK_FALSE(races(telling::atomics_and_fences));
        CHECK(races(telling::no_fence_before));
        CHECK(races(telling::no_fence_after));
        CHECK(races(telling::no_atomic));
    }
}

TEST_CASE("atomic operations on one place are no race with each other, but with plain accesses") {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
        int sum = 0;
        int* const at = &sum;
        CHECK_FALSE(is_race([at](auto thread) { thread.atomic_add(at, 1); }, 5, seed));
        CHECK(sum == 320);
        CHECK(is_race(
            [at](auto thread) {
                thread.atomic_add(at, 1);
                if (thread.index() == 0) static_cast<void>(thread.load(at));
            },
            2, seed));
    }
}

TEST_CASE("a copy reads its source until it has been waited for") {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
        alignas(16) int source[4] = {1, 2, 3, 4};
        int* const from = source;
        const auto copies = [from](bool waits_first) {
            return [from, waits_first](auto thread) {
                if (thread.index() == 0) {
                    thread.template copy_async<16>(shared_pointer<int>{}, from);
                    thread.commit_copies();
                    if (waits_first) thread.template wait_copies<0>();
                }
                thread.sync_block();
                if (thread.index() == 40) thread.store(from + 1, 2);  // the same value: the bytes do not tell
                if (thread.index() == 0 && !waits_first) thread.template wait_copies<0>();
            };
        };
        CHECK_FALSE(is_race(copies(true), 1, seed));
        CHECK(is_race(copies(false), 1, seed));
    }
}

TEST_CASE("many readers of one place do not hide a writer") {
    float place = 0;
    const float* const from = &place;
    float* const to = &place;
    for (const int writer : {0, 17, 39}) {
        CHECK(is_race(
            [=](auto thread) {
                static_cast<void>(thread.load(from));
                if (thread.block() == writer && thread.index() == 3) thread.store(to, 1.0F);
            },
            40, 3));
    }
}

TEST_CASE("the same value from two warps is a race unless that is allowed") {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
        int place = 0;
        int* const at = &place;
        const auto same = [at](auto thread) {
            thread.store(at, 1);
            if (thread.lane() == 0) thread.store(shared_pointer<int>{}, 5);
        };
        const auto different = [at](auto thread) { thread.store(at, thread.warp()); };
        const auto different_shared = [](auto thread) {
            if (thread.lane() == 0) thread.store(shared_pointer<int>{}, thread.warp());
        };
        const auto read_without_order = [at](auto thread) {
            if (thread.index() < 40) thread.store(at, 1);
            thread.sync_warp();
            if (thread.warp() == 1) static_cast<void>(thread.load(at));
        };
        CHECK(is_race(same, 1, seed));
        CHECK_FALSE(is_race(same, 1, seed, true));
        CHECK(is_race(different, 1, seed, true));
        CHECK(is_race(different_shared, 1, seed, true));
        CHECK(is_race(read_without_order, 1, seed, true));
    }
}

TEST_CASE("accesses beside what was added are found, with the distance") {
    std::vector<float> values(100);
    float* const all = values.data();
    const auto first_error = [&](auto function) {
        memory_checker checker;
        checker.add(std::span(values), "c");
        const auto error = error_of(checker, function);
        REQUIRE(error);
        CHECK(error->violation() == kernel_violation::bounds);
        return std::string(error->what());
    };
    const auto write_at = [&](std::ptrdiff_t i) {
        return first_error([=](auto thread) {
            if (thread.index() == 9) thread.store(all + i, 1.0F);
        });
    };
    CHECK(write_at(100).ends_with(
        ": writes 4 bytes of global memory, 0 bytes behind the end of \"c\" (400 bytes)"));
    CHECK(write_at(102).ends_with(", 8 bytes behind the end of \"c\" (400 bytes)"));
    CHECK(write_at(-1).ends_with(", 4 bytes before the beginning of \"c\" (400 bytes)"));
    CHECK(first_error([=](auto thread) {
              if (thread.index() == 9)
                  static_cast<void>(thread.load(reinterpret_cast<const double*>(all + 98) + 1));
          }).ends_with(": reads 8 bytes of global memory, 0 bytes behind the end of \"c\" (400 bytes)"));
    CHECK(first_error([](auto thread) {
              float local = 0;
              if (thread.index() == 9) thread.atomic_add(&local, 1.0F);
          }).ends_with(": updates 4 bytes of global memory, in none of the memories that the checker knows"));
    memory_checker checker;
    checker.add(std::span(values), "c");
    checker.remove(values.data());
    checker.add(std::span(values));
    CHECK_FALSE(error_of(checker, [=](auto thread) { thread.store(all + thread.index(), 1.0F); }));
}

TEST_CASE("forbidden memory must not be touched, and memory that nobody has told of may be") {
    std::vector<float> values(100);
    float* const all = values.data();
    memory_checker checker;
    // Rows of 19 floats, and two between them.
    for (std::ptrdiff_t row = 0; row < 4; ++row)
        checker.add_forbidden(std::span(all + 21 * row + 19, 2), "padding");
    const auto read_at = [&](std::ptrdiff_t i, auto value) {
        return error_of(checker, [=](auto thread) {
            if (thread.index() == 9)
                static_cast<void>(thread.load(reinterpret_cast<const decltype(value)*>(all + i)));
        });
    };
    for (const std::ptrdiff_t at : {0, 18, 21, 84, 99}) CHECK_FALSE(read_at(at, 0.0F));
    for (const std::ptrdiff_t at : {19, 41, 83}) {
        const auto error = read_at(at, 0.0F);
        REQUIRE(error);
        CHECK(error->violation() == kernel_violation::bounds);
        CHECK(contains(
            *error, ": reads 4 bytes of global memory, in \"padding\" (8 bytes), which no thread may touch"));
    }
    CHECK(read_at(18, 0.0));  // its second half
    checker.remove(all + 19);
    CHECK_FALSE(read_at(18, 0.0));
}

TEST_CASE("memory of the executor is unwritten, without its padding") {
    memory_checker checker;
    const mp::simulated_gpu<mp::arch::sm_80> gpu{.checker = &checker};
    using memory = mp::detail::executor_memory<mp::simulated_gpu<mp::arch::sm_80>>;
    auto owner = memory::allocate(gpu, 40);
    auto* const all = static_cast<float*>(owner.get());
    const auto reads = [all](int i) {
        return [=](auto thread) {
            if (thread.index() == 0) static_cast<void>(thread.load(all + i));
        };
    };
    const auto unwritten = error_of(checker, reads(3));
    REQUIRE(unwritten);
    CHECK(unwritten->violation() == kernel_violation::uninitialised_read);
    CHECK(contains(*unwritten,
                   "reads 4 bytes of global memory, at byte 12 of \"memory of the executor\" (40 bytes), "
                   "which nobody has written"));
    CHECK(error_of(checker, reads(10))->violation() == kernel_violation::bounds);
    CHECK_FALSE(error_of(checker, [all](auto thread) {
        if (thread.index() < 4) thread.store(all + thread.index(), 1.0F);
    }));
    CHECK_FALSE(error_of(checker, reads(3)));
    const float value = 1;
    memory::copy_to_device(gpu, all + 4, &value, sizeof value);
    memory::clear(gpu, all + 5, sizeof value);
    CHECK_FALSE(error_of(checker, reads(4)));
    CHECK_FALSE(error_of(checker, reads(5)));
    CHECK(error_of(checker, reads(6))->violation() == kernel_violation::uninitialised_read);
    // As long as nothing else was added, other memory is nobody's business.
    float other = 0;
    const auto reads_other = [at = &other](auto thread) { static_cast<void>(thread.load(at)); };
    CHECK_FALSE(error_of(checker, reads_other));
    owner.reset();
    CHECK_FALSE(error_of(checker, reads_other));
    checker.add(std::span(&value, 1));
    CHECK(error_of(checker, reads_other)->violation() == kernel_violation::bounds);
}

TEST_CASE("a checker is for one thread of the host") {
    memory_checker checker;
    auto nothing = [](auto) {};
    CHECK_THROWS_WITH_AS(launch("test", mp::simulated_gpu<mp::arch::sm_80>{.threads = 2, .checker = &checker},
                                mp::simt::launch_size{}, simt_test::body<32, decltype(nothing)>{nothing}),
                         "test: exec.threads is 2; it must be 1 where exec.checker watches memory",
                         mp::argument_error);
}

}  // namespace
