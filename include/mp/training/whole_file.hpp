// SPDX-License-Identifier: MIT
/// \file
/// Files that are written whole or not at all, and files in memory.
#pragma once

#include <mp/error.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// Throws file_error: "<path>: <what>: <the system's reason>".
[[noreturn]] inline void throw_file(const std::string& path, std::string_view what, int reason = 0) {
    std::string message = path;
    message.append(": ").append(what);
    if (reason != 0) message.append(": ").append(std::strerror(reason));
    throw_error(file_error(message));
}

/// Brings the name of a file to the disk, where there is such a thing.
inline void sync_folder(const std::string& path) noexcept {
#if MP_POSIX_FILES
    static_cast<void>(exception_of([&] {
        const std::size_t slash = path.rfind('/');
        const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
        if (const int handle = ::open(folder.c_str(), O_RDONLY); handle >= 0) {
            static_cast<void>(::fsync(handle));
            ::close(handle);
        }
    }));
#else
    static_cast<void>(path);
#endif
}

/// A new file that takes the place of another one when it is complete: it is written beside, brought to the
/// disk, and renamed. Whoever reads sees the old content or the new one, whenever the program or the machine
/// ends.
class file_replacement {
public:
    /// \throws file_error  there can be no file beside this one
    explicit file_replacement(std::string path) : path_(std::move(path)), part_(path_ + ".part") {
        // A part that a killed program has left is not used.
        file_ = std::fopen(part_.c_str(), "wb");
        if (file_ == nullptr) throw_file(part_, "cannot be written", errno);
    }
    file_replacement(const file_replacement&) = delete;
    file_replacement& operator=(const file_replacement&) = delete;
    ~file_replacement() {
        if (file_ == nullptr) return;
        std::fclose(file_);
        std::remove(part_.c_str());
    }

    /// \throws file_error  the disk is full, for example
    void write(std::string_view bytes) {
        if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) {
            throw_file(part_, "cannot be written", errno);
        }
    }

    /// Gives the file its name. \throws file_error  it does not get there; the old one is as before
    void commit() {
        bool good = std::fflush(file_) == 0;
#if MP_POSIX_FILES
        good = good && ::fsync(::fileno(file_)) == 0;
#endif
        int reason = errno;
        if (std::fclose(std::exchange(file_, nullptr)) != 0 && good) {
            good = false;
            reason = errno;
        }
        if (good) {
#if !MP_POSIX_FILES
            std::remove(path_.c_str());  // where a file cannot be renamed over another one
#endif
            good = std::rename(part_.c_str(), path_.c_str()) == 0;
            reason = errno;
        }
        if (!good) {
            std::remove(part_.c_str());
            throw_file(path_, "cannot be written", reason);
        }
        sync_folder(path_);  // the name, too, is on the disk before this returns
    }

private:
    std::string path_;
    std::string part_;
    std::FILE* file_ = nullptr;
};

/// The bytes of a file: mapped into memory where there is such a thing, else read.
class file_contents {
public:
    /// \throws file_error  it cannot be read
    explicit file_contents(const std::string& path) {
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
        if (size_ != 0) {
            void* const mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, handle, 0);
            const int reason = errno;
            ::close(handle);
            if (mapped == MAP_FAILED) throw_file(path, "cannot be read", reason);
            data_ = static_cast<const std::byte*>(mapped);
        } else {
            ::close(handle);
        }
#else
        std::FILE* const file = std::fopen(path.c_str(), "rb");
        if (file == nullptr) throw_file(path, "cannot be read", errno);
        std::byte block[65536];
        for (std::size_t count = 0; (count = std::fread(block, 1, sizeof block, file)) != 0;) {
            bytes_.insert(bytes_.end(), block, block + count);
        }
        const bool failed = std::ferror(file) != 0;
        std::fclose(file);
        if (failed) throw_file(path, "cannot be read");
        data_ = bytes_.data();
        size_ = bytes_.size();
#endif
    }
    file_contents(const file_contents&) = delete;
    file_contents& operator=(const file_contents&) = delete;
    ~file_contents() {
#if MP_POSIX_FILES
        if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
#endif
    }

    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }

private:
    const std::byte* data_ = nullptr;
    std::size_t size_ = 0;
#if !MP_POSIX_FILES
    std::vector<std::byte> bytes_;
#endif
};

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
