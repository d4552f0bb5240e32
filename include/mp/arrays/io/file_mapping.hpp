// SPDX-License-Identifier: MIT
/// \file
/// Files in memory, to be read.
#pragma once

#include <mp/error.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define MP_POSIX_FILES 1
#else
#define MP_POSIX_FILES 0
#endif

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Throws file_error: "<path>: <what>: <the system's reason>".
[[noreturn]] inline void throw_file(const std::string& path, std::string_view what, int reason = 0) {
    std::string message = path;
    message.append(": ").append(what);
    if (reason != 0) message.append(": ").append(std::strerror(reason));
    throw_error(file_error(message));
}

/// The bytes of a file: mapped into memory, or read where that cannot be.
class file_mapping {
public:
    /// \throws file_error  it cannot be read
    explicit file_mapping(const std::string& path) {
#if MP_POSIX_FILES
        const int handle = ::open(path.c_str(), O_RDONLY);
        if (handle < 0) throw_file(path, "cannot be read", errno);
        struct stat status{};
        if (::fstat(handle, &status) != 0 || !S_ISREG(status.st_mode)) {
            const int reason = errno;
            ::close(handle);
            throw_file(path, "cannot be read: it is no file", reason);
        }
        size_ = static_cast<std::size_t>(status.st_size);
        if (size_ != 0) mapped_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, handle, 0);
        ::close(handle);
        if (mapped_ != MAP_FAILED) {
            data_ = static_cast<const std::byte*>(mapped_);
            return;
        }
        // Some file systems map nothing.
        mapped_ = nullptr;
#endif
        read(path);
    }
    file_mapping(const file_mapping&) = delete;
    file_mapping& operator=(const file_mapping&) = delete;
    ~file_mapping() {
#if MP_POSIX_FILES
        if (mapped_ != nullptr) ::munmap(mapped_, size_);
#endif
    }

    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }

private:
    void read(const std::string& path) {
        std::FILE* const file = std::fopen(path.c_str(), "rb");
        if (file == nullptr) throw_file(path, "cannot be read", errno);
        std::byte block[65536];
        for (std::size_t count = 0; (count = std::fread(block, 1, sizeof block, file)) != 0;) {
            read_.insert(read_.end(), block, block + count);
        }
        const bool failed = std::ferror(file) != 0;
        std::fclose(file);
        if (failed) throw_file(path, "cannot be read");
        data_ = read_.data();
        size_ = read_.size();
    }

    const std::byte* data_ = nullptr;
    std::size_t size_ = 0;
    void* mapped_ = nullptr;
    std::vector<std::byte> read_;
};

}}  // namespace mp::detail
