// SPDX-License-Identifier: MIT
// A file of many ranks is the old one or the new one: other ranks that save to it at the same time change nothing about
// that, and what fails on one rank, also when files are closed, fails on all and leaves nothing.
#include <mp/error.hpp>
#include <mp/parallel.hpp>

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
#include "small_disk.hpp"
#include "train/training/test_folder.hpp"

namespace {

/// What ranks save and load: their share of an array, all elements of which have one value, and the value.
struct shared_state {
    std::vector<float> values;
    float value;
    std::size_t first, of;

    template <class Ranks>
    shared_state(Ranks& ranks, float filled)
        : values(1000, filled),
          value(filled),
          first(static_cast<std::size_t>(ranks.rank()) * values.size()),
          of(static_cast<std::size_t>(ranks.size()) * values.size()) {}
    template <class Visitor>
    void operator()(Visitor& visit) {
        visit("value", value);
        visit("values", mp::detail::array_share(std::span(values), first, of, true));
    }
    [[nodiscard]] bool is_whole() const { return values == std::vector<float>(values.size(), value); }
};

/// Two ranks that save and load `times` times. Returns the failures of both.
int save_and_load(const std::string& path, float value, int times) {
    std::atomic<int> failures = 0;
    mp::run_loopback(2, [&](auto& self) {
        for (int i = 0; i < times; ++i) {
            shared_state saved(self, value), loaded(self, -1.0F);
            const auto failed = mp::detail::exception_of([&] {
                mp::save_checkpoint(self, path, saved);
                mp::load_checkpoint(self, path, loaded, mp::file_access::read);
            });
            if (failed || !loaded.is_whole() || loaded.value < 0.0F) ++failures;
        }
    });
    return failures;
}

}  // namespace

TEST_CASE("rank_file: two groups of ranks save to one file, and both always find a whole one") {
    const test_folder folder;
    const std::string path = folder.file("x");
    int failures[2] = {};
    std::thread other([&] { failures[1] = save_and_load(path, 2.0F, 25); });
    failures[0] = save_and_load(path, 1.0F, 25);
    other.join();
    CHECK(failures[0] == 0);
    CHECK(failures[1] == 0);
    CHECK(folder.count() == 1);
}

TEST_CASE("rank_file: what does not reach the disk fails on all ranks, and leaves nothing") {
    const test_folder folder;
    const std::string path = folder.file("x");
    write_file(path, "old");
    std::atomic<int> refused = 0;
    {
        const small_disk disk(6000);  // a rank writes less than a buffer has, so that only closing fails
        mp::run_loopback(3, [&](auto& self) {
            shared_state state(self, 1.0F);
            state.values.resize(750);
            state.first = static_cast<std::size_t>(self.rank()) * 750;
            state.of = 2250;
            const std::string message =
                thrown<mp::file_error>([&] { mp::save_checkpoint(self, path, state); });
            const bool failed = holds(message, "cannot be written: File too large");
            if (self.rank() == 2 ? failed : failed || holds(message, "rank 2 has failed")) ++refused;
        });
    }
    CHECK(refused == 3);
    CHECK(read_file(path) == "old");
    CHECK(folder.count() == 1);
    mp::run_loopback(3, [&](auto& self) {
        shared_state state(self, 1.0F);
        if (holds(thrown<mp::file_error>([&] { mp::save_checkpoint(self, folder.file("none/x"), state); }),
                  self.rank() == 0 ? "No such file or directory" : "rank 0 has failed")) {
            ++refused;
        }
    });
    CHECK(refused == 6);
}

TEST_CASE("rank_file: links and modes are kept") {
    const test_folder folder;
    const std::string path = folder.file("x"), link = folder.file("link");
    write_file(path, "old");
    REQUIRE(::chmod(path.c_str(), 0400) == 0);
    std::filesystem::create_symlink("x", link);
    CHECK(save_and_load(link, 3.0F, 1) == 0);
    struct stat status{};
    REQUIRE(::lstat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 07777U) == 0400);
    CHECK(S_ISREG(status.st_mode));
    CHECK(std::filesystem::is_symlink(link));
    CHECK(folder.count() == 2);
}

#endif
