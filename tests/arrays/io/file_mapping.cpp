// SPDX-License-Identifier: MIT
// Files are mapped or read; what cannot be read is refused at once, by a message without an older error of the system.
#include <mp/arrays/io/file_mapping.hpp>
#include <mp/arrays/io/gguf.hpp>
#include <mp/arrays/io/npy.hpp>
#include <mp/arrays/io/tensor_file.hpp>
#include <mp/error.hpp>

#include <doctest/doctest.h>

#if MP_POSIX_FILES

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "address_sanitizer.hpp"
#include "nn/scaling/thrown.hpp"
#include "train/training/test_folder.hpp"

namespace {

using mp::file_access;

std::string text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string tensors() {
    std::string header = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
    header.append((8 - header.size() % 8) % 8, ' ');
    std::string file(8, '\0');
    file[0] = static_cast<char>(header.size());
    return file.append(header).append({'\0', '\0', '\x80', '\x3f', '\0', '\0', '\0', '\x40'});
}

}  // namespace

TEST_CASE("file_mapping: FIFOs, devices and folders are refused at once") {
    const test_folder folder;
    const std::string fifo = folder.file("fifo"), none = folder.file("none");
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    for (const file_access access : {file_access::map, file_access::read}) {
        for (const std::string& path : {fifo, folder.file(""), std::string("/dev/zero")}) {
            errno = ENOSPC;  // of something before
            CHECK(thrown<mp::file_error>([&] { const mp::detail::file_mapping file(path, access); }) ==
                  path + ": cannot be read: it is not a regular file");
        }
        CHECK(thrown<mp::file_error>([&] { const mp::detail::file_mapping file(none, access); }) ==
              none + ": cannot be read: No such file or directory");
        CHECK_THROWS_AS(mp::tensor_file(fifo, access), mp::file_error);
        CHECK_THROWS_AS(mp::npy_file(fifo, access), mp::file_error);
        CHECK_THROWS_AS(mp::gguf_file(fifo, access), mp::file_error);
    }
}

TEST_CASE("file_mapping: both ways and memory give the same bytes") {
    const test_folder folder;
    const std::string path = folder.file("x");
    for (const std::size_t size : {0U, 1U, 4096U, 300001U}) {
        std::string content;
        for (std::size_t i = 0; i < size; ++i) content.push_back(static_cast<char>(i * 37 >> 3));
        write_file(path, content);
        CHECK(text_of(mp::detail::file_mapping(path).bytes()) == content);
        CHECK(text_of(mp::detail::file_mapping(path, file_access::read).bytes()) == content);
        const auto bytes = std::as_bytes(std::span(content));
        CHECK(mp::detail::file_mapping(bytes).bytes().data() == bytes.data());
    }
}

TEST_CASE("file_mapping: what was read stays when the file is cut") {
    const test_folder folder;
    const std::string path = folder.file("x"), content = tensors();
    write_file(path, content);
    const mp::tensor_file file(path, file_access::read);
    REQUIRE(::truncate(path.c_str(), 0) == 0);
    std::vector<float> values(2);
    file.read("a", values);
    CHECK(values == std::vector<float>{1.0F, 2.0F});
    CHECK(thrown<mp::file_error>([&] { const mp::tensor_file cut(path, file_access::read); }) ==
          path + ": is too short to be a file of tensors");
    const mp::tensor_file in_memory("of a message", std::as_bytes(std::span(content)));
    CHECK(in_memory.view<float>("a")[1] == 2.0F);
    CHECK(thrown<mp::file_error>([&] { static_cast<void>(in_memory.at("b")); }) ==
          "of a message: there is no 'b'");
}

// Sanitizers take more addresses than the limit.
#if !defined(MP_ADDRESS_SANITIZER)
TEST_CASE("file_mapping: a file that cannot be mapped is not read instead") {
    const test_folder folder;
    const std::string path = folder.file("x");
    write_file(path, "x");
    constexpr rlim_t limit = rlim_t{1} << 32;
    REQUIRE(::truncate(path.c_str(), static_cast<off_t>(limit * 2)) == 0);  // without blocks on the disk
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_AS, &before) == 0);
    rlimit small = before;
    small.rlim_cur = limit;
    REQUIRE(::setrlimit(RLIMIT_AS, &small) == 0);
    const std::string message = thrown<mp::file_error>([&] { const mp::detail::file_mapping file(path); });
    REQUIRE(::setrlimit(RLIMIT_AS, &before) == 0);
    CHECK(message == path +
                         ": cannot be mapped into memory; mp::file_access::read reads it instead: "
                         "Cannot allocate memory");
}
#endif

#endif
