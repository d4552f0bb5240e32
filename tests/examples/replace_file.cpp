// SPDX-License-Identifier: MIT
// Files that programs write are the old ones or the new ones, never something between.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include "common/replace_file.hpp"
#include "small_disk.hpp"

namespace {

namespace fs = std::filesystem;

struct folder {
    fs::path path = fs::temp_directory_path() / ("mp_replace_" + std::to_string(::getpid()));
    folder() { fs::create_directories(path); }
    ~folder() {
        std::error_code ignored;
        fs::remove_all(path, ignored);
    }
    [[nodiscard]] std::ptrdiff_t files() const {
        return std::distance(fs::directory_iterator(path), fs::directory_iterator());
    }
};

std::string content(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("a file is made, and replaced in whole while somebody reads the old one") {
    const folder here;
    const fs::path file = here.path / "page.html";
    CHECK(examples::can_replace_file(file));
    CHECK(here.files() == 0);
    const std::string old(100000, 'o');
    CHECK(examples::replace_file(file, old));
    std::ifstream reader(file, std::ios::binary);
    CHECK(reader.get() == 'o');
    CHECK(examples::can_replace_file(file));
    CHECK(examples::replace_file(file, std::string("new\0\n", 5)));
    CHECK(content(file) == std::string("new\0\n", 5));
    CHECK(std::string(std::istreambuf_iterator<char>(reader), {}) == old.substr(1));
    CHECK(here.files() == 1);
}

TEST_CASE("when the disk is full the old file is as it was, and nothing is left over") {
    const folder here;
    const fs::path file = here.path / "page.html";
    CHECK(examples::replace_file(file, "old"));
    bool replaced = true;
    {
        const small_disk disk(1000);
        replaced = examples::replace_file(file, std::string(1000000, 'n'));
    }
    CHECK_FALSE(replaced);
    CHECK(content(file) == "old");
    CHECK(here.files() == 1);
    if (fs::exists("/dev/full")) CHECK_FALSE(examples::replace_file("/dev/full", "n"));
}

TEST_CASE("links stay links, devices devices, and permissions what they are") {
    const folder here;
    const fs::path file = here.path / "page.html";
    const fs::path link = here.path / "link.html";
    CHECK(examples::replace_file(file, "old"));
    fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
    fs::create_symlink("page.html", link);
    CHECK(examples::can_replace_file(link));
    CHECK(examples::replace_file(link, "new"));
    CHECK(fs::is_symlink(link));
    CHECK(content(file) == "new");
    CHECK(fs::status(file).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
    CHECK(examples::can_replace_file("/dev/null"));
    CHECK(examples::replace_file("/dev/null", "text"));
    CHECK(fs::is_character_file("/dev/null"));
}

TEST_CASE("a folder that is not there, or a folder in place of the file, is said before") {
    const folder here;
    CHECK_FALSE(examples::can_replace_file(here.path / "none" / "page.html"));
    CHECK_FALSE(examples::replace_file(here.path / "none" / "page.html", "text"));
    CHECK_FALSE(examples::can_replace_file(here.path));
    CHECK_FALSE(examples::replace_file(here.path, "text"));
    // What somebody else's run has left behind is not touched.
    std::ofstream(here.path / "page.html.part") << "theirs";
    CHECK(examples::replace_file(here.path / "page.html", "text"));
    CHECK(content(here.path / "page.html.part") == "theirs");
    CHECK(content(here.path / "page.html") == "text");
    CHECK(here.files() == 2);
}

}  // namespace
