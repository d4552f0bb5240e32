// SPDX-License-Identifier: MIT
// The file of a checkpoint is whole whoever saves to it at the same time; links and modes stay; what is not a file is
// refused at once; a checkpoint can be read without a map, and from memory.
#include <mp/error.hpp>
#include <mp/training.hpp>

#include <doctest/doctest.h>

#if MP_POSIX_FILES

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "nn/scaling/thrown.hpp"
#include "test_folder.hpp"

namespace {

/// Weights that are all one number.
struct state {
    std::vector<float> weights;
    std::vector<double> masters;

    explicit state(float value, std::size_t size = 5000) : weights(size, value), masters(size, value) {}
    template <class Visitor>
    void operator()(Visitor& visit) {
        visit("weights", weights);
        visit("masters", masters);
    }
    [[nodiscard]] bool operator==(const state&) const = default;
};

}  // namespace

TEST_CASE("checkpoint: runs that save to one path, and load meanwhile, always find a whole one") {
    const test_folder folder;
    const std::string path = folder.file("run.ckpt");
    state first(1.0F);
    mp::save_checkpoint(path, first);
    std::atomic<int> failures = 0;
    std::vector<std::thread> runs;
    for (int run = 0; run < 4; ++run) {
        runs.emplace_back([&, run] {
            for (int i = 0; i < 25; ++i) {
                state it(static_cast<float>(run));
                const auto failed = mp::detail::exception_of([&] {
                    if (run != 0) mp::save_checkpoint(path, it);
                    mp::load_checkpoint(path, it, i % 2 == 0 ? mp::file_access::map : mp::file_access::read);
                });
                if (failed || it != state(it.weights[0])) ++failures;
            }
        });
    }
    for (std::thread& run : runs) run.join();
    CHECK(failures == 0);
    CHECK(folder.count() == 1);
}

TEST_CASE("checkpoint: links beside the file are not followed, its mode is kept, and a FIFO is refused") {
    const test_folder folder;
    const std::string path = folder.file("run.ckpt"), precious = folder.file("precious");
    write_file(precious, "precious");
    std::filesystem::create_symlink("precious", path + ".part");
    state it(1.0F, 4);
    mp::save_checkpoint(path, it);
    CHECK(read_file(precious) == "precious");
    REQUIRE(::chmod(path.c_str(), 0600) == 0);
    mp::save_checkpoint(path, it);
    struct stat status{};
    REQUIRE(::stat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 07777U) == 0600);
    const std::string fifo = folder.file("fifo");
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    CHECK(thrown<mp::file_error>([&] { mp::load_checkpoint(fifo, it); }) ==
          fifo + ": cannot be read: it is not a regular file");
    CHECK(thrown<mp::file_error>([&] { mp::save_checkpoint(fifo, it); }) ==
          fifo + ": cannot be written: it is not a regular file");
    CHECK(folder.count() == 4);
}

TEST_CASE(
    "checkpoint: one that was read stays when its file is cut, and bytes in memory are loaded as a file") {
    const test_folder folder;
    const std::string path = folder.file("run.ckpt");
    state saved(2.0F), loaded(0.0F), copied(0.0F);
    mp::save_checkpoint(path, saved);
    const std::string bytes = read_file(path);
    const mp::tensor_file file(path, mp::file_access::read);
    REQUIRE(::truncate(path.c_str(), 100) == 0);
    mp::load_checkpoint(file, loaded);
    CHECK(loaded == saved);
    CHECK_THROWS_AS(mp::load_checkpoint(path, loaded, mp::file_access::read), mp::file_error);
    mp::load_checkpoint(mp::tensor_file("bytes", std::as_bytes(std::span(bytes))), copied);
    CHECK(copied == saved);
}

#endif
