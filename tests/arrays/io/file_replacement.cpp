// SPDX-License-Identifier: MIT
// A file that is replaced has the old content or the new one, and its mode, whatever else is in its folder, whatever
// fails, and whoever else writes it; nothing is left beside it.
#include <mp/arrays/io/file_replacement.hpp>
#include <mp/error.hpp>

#include <doctest/doctest.h>

#if MP_POSIX_FILES

#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

#include "nn/scaling/thrown.hpp"
#include "small_disk.hpp"
#include "train/training/test_folder.hpp"

namespace {

namespace fs = std::filesystem;
using mp::detail::file_replacement;
using mp::detail::replace_file;

unsigned mode_of(const std::string& path) {
    struct stat status{};
    REQUIRE(::stat(path.c_str(), &status) == 0);
    return status.st_mode & 07777U;
}

std::string digits_of(std::uint64_t token) {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(token));
    return text;
}

}  // namespace

TEST_CASE("file_replacement: every call writes a file of its own until it is committed") {
    const test_folder folder;
    const std::string path = folder.file("x");
    {
        file_replacement first(path), second(path), third(path);
        CHECK(folder.count() == 3);
        CHECK_FALSE(fs::exists(path));
        first.write("first");
        second.write("second");
        third.write("third");
        second.commit();
        CHECK(read_file(path) == "second");
        first.commit();
        CHECK(read_file(path) == "first");
        CHECK(folder.count() == 2);
    }
    CHECK(folder.count() == 1);
    CHECK(read_file(path) == "first");
}

TEST_CASE("file_replacement: names that are long, and without a folder") {
    const test_folder folder;
    const std::string path = folder.file(std::string(250, 'n'));
    replace_file(path, "long");
    CHECK(read_file(path) == "long");
    const fs::path before = fs::current_path();
    fs::current_path(fs::path(path).parent_path());
    replace_file("x", "here");
    CHECK(read_file("x") == "here");
    fs::current_path(before);
    CHECK(folder.count() == 2);
    const std::string nowhere = folder.file("none/x");
    CHECK(thrown<mp::file_error>([&] { replace_file(nowhere, ""); }) ==
          nowhere + ": cannot be written: No such file or directory");
    CHECK_THROWS_AS(replace_file("", ""), mp::file_error);
}

TEST_CASE("file_replacement: a link that is named like the temporary file is not followed") {
    const test_folder folder;
    const std::string path = folder.file("x"), precious = folder.file("precious");
    write_file(precious, "precious");
    fs::create_symlink("precious", path + ".part");
    replace_file(path, "content");
    CHECK(read_file(precious) == "precious");
    CHECK(read_file(path) == "content");
    // Whoever joins by a token gets what the other process has made, and nothing that took its place.
    file_replacement made(path);
    const std::string part = path + "." + digits_of(made.token()) + ".part";
    REQUIRE(fs::exists(part));
    {
        file_replacement joined(path, made.token());
        joined.seek(2);
        joined.write("ined");
        joined.close();
    }
    made.write("jo");
    made.commit();
    CHECK(read_file(path) == "joined");
    fs::create_symlink("precious", part);
    CHECK_THROWS_AS(file_replacement(path, made.token()), mp::file_error);
    CHECK_THROWS_AS(file_replacement(path, made.token() + 1), mp::file_error);
    CHECK(read_file(precious) == "precious");
}

TEST_CASE("file_replacement: the mode of the old file is kept, and nobody else reads the new one before") {
    const test_folder folder;
    const std::string path = folder.file("x");
    const mode_t umask_before = ::umask(027);
    replace_file(path, "1");
    CHECK(mode_of(path) == 0640);
    for (const unsigned mode : {0600U, 0666U, 0751U, 0400U, 04711U}) {
        CAPTURE(mode);
        REQUIRE(::chmod(path.c_str(), mode) == 0);
        file_replacement file(path);
        CHECK(mode_of(path + "." + digits_of(file.token()) + ".part") == ((mode & 0700U) | 0200U));
        file.write("2");
        file.commit();
        CHECK(mode_of(path) == mode);
    }
    ::umask(umask_before);
}

TEST_CASE(
    "file_replacement: another user keeps the group of the file, or gives another group no more than others "
    "have") {
    if (::geteuid() != 0) return;  // files of others can be made by root only
    const test_folder folder;
    constexpr ::uid_t user = 12345, other = 54321;
    REQUIRE(::chmod(fs::path(folder.file("x")).parent_path().c_str(), 0777) == 0);
    struct expected {
        ::gid_t group;
        unsigned mode;
        ::gid_t new_group;
        unsigned new_mode;
    };
    // The user's group is `user`; the user is a member of 222, and not of 333.
    for (const expected& it : {expected{222, 0660, 222, 0660}, expected{222, 02664, 222, 0664},
                               expected{333, 0640, user, 0600}, expected{333, 0664, user, 0644},
                               expected{333, 0646, user, 0646}, expected{user, 0640, user, 0640}}) {
        CAPTURE(it.mode);
        const std::string path = folder.file("x");
        replace_file(path, "old");
        REQUIRE(::chown(path.c_str(), other, it.group) == 0);
        REQUIRE(::chmod(path.c_str(), it.mode) == 0);
        const ::pid_t child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            const ::gid_t groups[] = {222};
            const bool is_user = ::setgroups(1, groups) == 0 && ::setgid(user) == 0 && ::setuid(user) == 0;
            const auto failure = mp::detail::exception_of([&] { replace_file(path, "new"); });
            ::_exit(is_user && !failure ? 0 : 1);
        }
        int status = -1;
        REQUIRE(::waitpid(child, &status, 0) == child);
        CHECK(status == 0);
        struct stat made{};
        REQUIRE(::stat(path.c_str(), &made) == 0);
        CHECK(read_file(path) == "new");
        CHECK(made.st_gid == it.new_group);
        CHECK(mode_of(path) == it.new_mode);
        fs::remove(path);
    }
}

TEST_CASE("file_replacement: a link stays, and the file that it leads to is replaced") {
    const test_folder folder, other;
    const std::string link = folder.file("link"), file = folder.file("file");
    fs::create_symlink("file", link);
    replace_file(link, "made");  // there was none
    CHECK(fs::is_symlink(link));
    CHECK(read_file(file) == "made");
    REQUIRE(::chmod(file.c_str(), 0600) == 0);
    replace_file(link, "relative");
    CHECK(read_file(file) == "relative");
    CHECK_FALSE(fs::is_symlink(file));
    CHECK(mode_of(file) == 0600);
    // Through a link in another folder, a link to that folder, and one that goes up.
    fs::create_symlink(link, other.file("absolute"));
    replace_file(other.file("absolute"), "absolute");
    fs::create_directory(folder.file("below"));
    fs::create_symlink("../link", folder.file("below/up"));
    fs::create_directory_symlink(folder.file("below"), other.file("folder"));
    CHECK(read_file(file) == "absolute");
    replace_file(other.file("folder/up"), "up");
    CHECK(read_file(file) == "up");
    CHECK(fs::is_symlink(folder.file("below/up")));
    CHECK(folder.count() == 3);
    CHECK(other.count() == 2);
    fs::create_symlink("b", folder.file("a"));
    fs::create_symlink("a", folder.file("b"));
    CHECK(thrown<mp::file_error>([&] { replace_file(folder.file("a"), ""); }) ==
          folder.file("a") + ": cannot be written: Too many levels of symbolic links");
}

TEST_CASE("file_replacement: what is not a regular file is refused, and stays") {
    const test_folder folder;
    const std::string fifo = folder.file("fifo"), inner = folder.file("folder");
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    fs::create_directory(inner);
    for (const std::string& path : {fifo, inner, std::string("/dev/null")}) {
        CHECK(thrown<mp::file_error>([&] { replace_file(path, "text"); }) ==
              path + ": cannot be written: it is not a regular file");
    }
    CHECK(fs::is_fifo(fifo));
    CHECK(fs::is_directory(inner));
    CHECK(fs::is_character_file("/dev/null"));
    CHECK(folder.count() == 2);
    // A folder that came while the file was written.
    file_replacement late(folder.file("late"));
    fs::create_directory(folder.file("late"));
    CHECK(thrown<mp::file_error>([&] { late.commit(); }) ==
          folder.file("late") + ": cannot be written: Is a directory");
}

TEST_CASE("file_replacement: after a failure the old file is as before, and nothing is left") {
    const test_folder folder;
    const std::string path = folder.file("x");
    replace_file(path, "old");
    CHECK_THROWS_AS(
        [&] {
            file_replacement file(path);
            file.write("new");
            throw std::runtime_error("the writer");
        }(),
        std::runtime_error);
    CHECK(folder.count() == 1);
    // What write() sees, and what only close() sees, which has the rest of a buffer.
    for (const std::size_t size : {1000000U, 2000U}) {
        CAPTURE(size);
        const std::string message = thrown<mp::file_error>([&] {
            const small_disk disk(1000);
            file_replacement file(path);
            file.write(std::string(size, 'n'));
            CHECK(size == 2000);
            file.commit();
        });
        CHECK(message == path + ": cannot be written: File too large");
        CHECK(folder.count() == 1);
    }
    CHECK(read_file(path) == "old");
    file_replacement file(path);
    CHECK(thrown<mp::file_error>([&] { file.seek(~std::uint64_t{0}); }) ==
          path + ": cannot be written: it would have more than 18446744073709551615 bytes");
}

TEST_CASE("file_replacement: processes that replace one file leave one whole content") {
    const test_folder folder;
    const std::string path = folder.file("x");
    constexpr int processes = 3, times = 40;
    pid_t children[processes];
    for (int i = 0; i < processes; ++i) {
        children[i] = ::fork();
        REQUIRE(children[i] >= 0);
        if (children[i] != 0) continue;
        int failures = 0;
        for (int n = 0; n < times; ++n) {
            const std::string content(static_cast<std::size_t>(20000 + 3000 * i), static_cast<char>('a' + i));
            if (mp::detail::exception_of([&] { replace_file(path, content); })) ++failures;
            const std::string found = read_file(path);
            const bool whole = !found.empty() && found.find_first_not_of(found[0]) == std::string::npos &&
                               found.size() == static_cast<std::size_t>(20000 + 3000 * (found[0] - 'a'));
            if (!whole) ++failures;
        }
        ::_exit(failures);
    }
    for (const pid_t child : children) {
        int status = 0;
        REQUIRE(::waitpid(child, &status, 0) == child);
        REQUIRE(WIFEXITED(status));
        CHECK(WEXITSTATUS(status) == 0);
    }
    CHECK(folder.count() == 1);
}

#endif
