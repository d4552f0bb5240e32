// SPDX-License-Identifier: MIT
/// \file
/// Files that are written whole or not at all.
#pragma once

#include <mp/arrays/io/file_mapping.hpp>
#include <mp/error.hpp>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

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

    /// \throws file_error   the disk is full, for example
    /// \throws state_error  after commit(), as from all that follows
    void write(std::string_view bytes) {
        require_open();
        // fwrite accepts no null pointer, which is what an empty view may hold.
        if (!bytes.empty() && std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) {
            throw_file(part_, "cannot be written", errno);
        }
    }

    /// Where the next write goes, counted from the beginning. \throws file_error  there is no such place
    void seek(std::uint64_t place) {
        require_open();
#if MP_POSIX_FILES
        const bool good = place <= static_cast<std::uint64_t>((std::numeric_limits<::off_t>::max)()) &&
                          ::fseeko(file_, static_cast<::off_t>(place), SEEK_SET) == 0;
#else
        const bool good = place <= static_cast<std::uint64_t>((std::numeric_limits<long>::max)()) &&
                          std::fseek(file_, static_cast<long>(place), SEEK_SET) == 0;
#endif
        if (!good) throw_file(part_, "cannot be written", errno);
    }

    /// Gives the file its name. \throws file_error  it does not get there; the old one is as before
    void commit() {
        require_open();
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
    void require_open() const {
        if (file_ != nullptr) return;
        throw_error(state_error(path_ + ": nothing can be written after commit()"));
    }

    std::string path_;
    std::string part_;
    std::FILE* file_ = nullptr;
};

}}  // namespace mp::detail
