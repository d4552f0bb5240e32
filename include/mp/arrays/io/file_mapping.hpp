// SPDX-License-Identifier: MIT
/// \file
/// The content of files, mapped into memory or read.
#pragma once

#include <mp/config.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#define MP_POSIX_FILES 1
#else
#define MP_POSIX_FILES 0
#endif

#if MP_CORE_BODIES
#include <mp/error.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#if MP_POSIX_FILES
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif
#endif

namespace mp {

/// How the content of a file is accessed.
enum class file_access : std::uint8_t {
    /// The file is mapped into memory: its pages are read when they are first used, and nothing is copied. A file
    /// that another program shortens meanwhile ends this one by the signal SIGBUS. Systems without mmap() read.
    map,
    /// The whole file is read into memory when it is opened: for network file systems, and for files that may be
    /// written or shortened while they are open.
    read,
};

}  // namespace mp

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Throws file_error: "<path>: <what>: <the system's reason>".
[[noreturn]] MP_CORE_FUNCTION void throw_file(const std::string& path, std::string_view what, int reason = 0);

/// The bytes of a file: mapped into memory, read, or those of a file that the caller has in memory.
class file_mapping {
public:
    /// Opens a regular file; anything else, such as a FIFO, is an error at once.
    ///
    /// \throws file_error  it cannot be read, is not a regular file, or cannot be mapped
    explicit file_mapping(const std::string& path, file_access access = file_access::map);
    /// A file that is in memory, where it stays as long as this object.
    explicit file_mapping(std::span<const std::byte> bytes) noexcept;
    file_mapping(const file_mapping&) = delete;
    file_mapping& operator=(const file_mapping&) = delete;
    ~file_mapping();

    [[nodiscard]] MP_ALWAYS_INLINE std::span<const std::byte> bytes() const noexcept {
        return {data_, size_};
    }

private:
    /// Reads the bytes that the file had when it was opened, or fewer if it was shortened.
    void read(const std::string& path, int file);

    const std::byte* data_ = nullptr;
    std::size_t size_ = 0;
    void* mapped_ = nullptr;
    std::vector<std::byte> read_;
};

#if MP_CORE_BODIES
[[noreturn]] MP_CORE_FUNCTION void throw_file(const std::string& path, std::string_view what, int reason) {
    std::string message = path;
    message.append(": ").append(what);
    if (reason != 0) message.append(": ").append(std::strerror(reason));
    throw_error(file_error(message));
}

#if MP_POSIX_FILES
/// Closes a file at its end.
struct file_handle {
    int number;
    explicit file_handle(int opened) noexcept : number(opened) {}
    file_handle(const file_handle&) = delete;
    file_handle& operator=(const file_handle&) = delete;
    ~file_handle() {
        if (number >= 0) ::close(number);
    }
};

MP_CORE_FUNCTION file_mapping::file_mapping(const std::string& path, file_access access) {
    // O_NONBLOCK, for opening a FIFO waits for a writer.
    const file_handle file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
    struct stat status{};
    if (file.number < 0 || ::fstat(file.number, &status) != 0) throw_file(path, "cannot be read", errno);
    if (!S_ISREG(status.st_mode)) throw_file(path, "cannot be read: it is not a regular file");
    size_ = static_cast<std::size_t>(status.st_size);
    if (access == file_access::read) {
        read(path, file.number);
    } else if (size_ != 0) {
        void* const mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.number, 0);
        if (mapped == MAP_FAILED) {
            throw_file(path, "cannot be mapped into memory; mp::file_access::read reads it instead", errno);
        }
        mapped_ = mapped;
        data_ = static_cast<const std::byte*>(mapped);
    }
}

MP_CORE_FUNCTION void file_mapping::read(const std::string& path, int file) {
    read_.resize(size_);
    for (size_ = 0; size_ < read_.size();) {
        const ::ssize_t count = ::read(file, read_.data() + size_, read_.size() - size_);
        if (count == 0) break;
        if (count < 0 && errno != EINTR) throw_file(path, "cannot be read", errno);
        if (count > 0) size_ += static_cast<std::size_t>(count);
    }
    data_ = read_.data();
}
#else
MP_CORE_FUNCTION file_mapping::file_mapping(const std::string& path, file_access /*access*/) {
    read(path, 0);
}

MP_CORE_FUNCTION void file_mapping::read(const std::string& path, int /*file*/) {
    std::FILE* const file = std::fopen(path.c_str(), "rb");
    if (file == nullptr) throw_file(path, "cannot be read", errno);
    std::byte block[65536];
    const std::exception_ptr failure = exception_of([&] {
        for (std::size_t count = 0; (count = std::fread(block, 1, sizeof block, file)) != 0;) {
            read_.insert(read_.end(), block, block + count);
        }
    });
    const bool failed = std::ferror(file) != 0;
    std::fclose(file);
    if (failure) std::rethrow_exception(failure);
    if (failed) throw_file(path, "cannot be read");
    data_ = read_.data();
    size_ = read_.size();
}
#endif

MP_CORE_FUNCTION file_mapping::file_mapping(std::span<const std::byte> bytes) noexcept
    : data_(bytes.data()), size_(bytes.size()) {}

MP_CORE_FUNCTION file_mapping::~file_mapping() {
#if MP_POSIX_FILES
    if (mapped_ != nullptr) ::munmap(mapped_, size_);
#endif
}
#endif

}}  // namespace mp::detail
