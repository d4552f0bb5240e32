// SPDX-License-Identifier: MIT
/// \file
/// Files that are written whole or not at all.
#pragma once

#include <mp/arrays/io/file_mapping.hpp>
#include <mp/config.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#if MP_POSIX_FILES
#include <sys/stat.h>
#endif

#if MP_CORE_BODIES
#include <mp/arrays/io/checksum.hpp>
#include <mp/base/bits.hpp>
#include <mp/error.hpp>

#include <cerrno>
#include <cstddef>
#include <ctime>
#include <limits>
#include <utility>

#if MP_POSIX_FILES
#include <fcntl.h>
#include <unistd.h>
#else
#include <filesystem>
#include <system_error>
#endif
#if defined(_WIN32)
#include <fcntl.h>
#include <io.h>
#include <sys/stat.h>
#endif
#endif

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// A file that replaces another one atomically: it is written in the same folder under a unique temporary name, synced
/// to the disk, and renamed. Readers see either the old content or the new content, even if the program or the machine
/// stops, or other programs write to the same path. If the path is a symbolic link, its target is replaced. The new file
/// has the mode of the old one, and its owner and group if the system permits that; other hard links keep the old
/// content. A killed program leaves the temporary file `<path>.<16 digits>.part`, which can be removed.
class file_replacement {
public:
    /// \throws file_error  there can be no file beside this one; the path is that of a folder, a device or a FIFO
    explicit file_replacement(const std::string& path);
    /// Opens what another process makes for the same path, by its token(). That process commits or removes it.
    ///
    /// \throws file_error  there is none, or none that can be written
    file_replacement(const std::string& path, std::uint64_t token);
    file_replacement(const file_replacement&) = delete;
    file_replacement& operator=(const file_replacement&) = delete;
    ~file_replacement();

    /// What the name of the new file is told from others by.
    [[nodiscard]] MP_ALWAYS_INLINE std::uint64_t token() const noexcept { return token_; }

    /// \throws file_error   the disk is full, for example
    /// \throws state_error  after close() or commit(), as from all that follows
    void write(std::string_view bytes);

    /// Where the next write goes, counted from the beginning. \throws file_error  there is no such place
    void seek(std::uint64_t place);

    /// Brings what was written to the disk. \throws file_error  not all of it gets there
    void close();

    /// Gives the file its name. \throws file_error  it does not get there; the old one is as before
    void commit();

private:
    [[noreturn]] void fail(int error) const;
    void require_open() const;

    static std::string part_name(const std::string& target, std::uint64_t token);
    /// Returns a number that other calls, processes and hosts hardly have. It need not differ: files are made
    /// exclusively.
    std::uint64_t new_token(std::uint64_t attempt) const;

    /// Makes the new file. Returns the system's error, or 0.
    int create();
#if MP_POSIX_FILES
    /// Gives the new file the mode, the group and the owner of the old one. Where this is not permitted, it has fewer
    /// permissions, and not more: another group has those of others.
    void keep_mode() const;
    /// Takes over what open() returned. Returns the system's error, or 0.
    int adopt(int handle);
#endif

    std::string path_;
    std::string target_;
    std::uint64_t token_ = 0;
    std::string part_;
    bool owns_ = false;
    std::FILE* file_ = nullptr;
#if MP_POSIX_FILES
    bool replaces_ = false;
    struct stat old_{};  ///< of the file that is replaced
#endif
};

/// Makes `content` the content of a file, see file_replacement. \throws file_error  the file is as before
MP_CORE_FUNCTION void replace_file(const std::string& path, std::string_view content);

#if MP_CORE_BODIES
/// Returns the folder of a path, to which a name can be appended.
MP_CORE_FUNCTION std::string folder_of(const std::string& path) {
    return path.substr(0, path.find_last_of(MP_POSIX_FILES ? "/" : "/\\") + 1);
}

/// Brings the name of a file to the disk, where there is such a thing.
MP_CORE_FUNCTION void sync_folder(const std::string& path) noexcept {
#if MP_POSIX_FILES
    static_cast<void>(exception_of([&] {
        const std::string folder = folder_of(path);
        const int handle =
            ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_NONBLOCK | O_DIRECTORY | O_CLOEXEC);
        if (handle >= 0) {
            static_cast<void>(::fsync(handle));
            ::close(handle);
        }
    }));
#else
    static_cast<void>(path);
#endif
}

/// Returns the path with the symbolic links of its last component resolved; the file need not exist.
MP_CORE_FUNCTION std::string resolve_links(const std::string& path) {
#if MP_POSIX_FILES
    std::string resolved = path;
    constexpr int max_links = 40;  // as on Linux
    for (int i = 0; i <= max_links; ++i) {
        char text[4096];
        const ::ssize_t length = ::readlink(resolved.c_str(), static_cast<char*>(text), sizeof text);
        if (length < 0) return resolved;  // not a link
        const std::string_view link(static_cast<const char*>(text), static_cast<std::size_t>(length));
        resolved = link.starts_with('/') ? std::string(link) : folder_of(resolved).append(link);
    }
    throw_file(path, "cannot be written", ELOOP);
#else
    return path;
#endif
}

MP_CORE_FUNCTION file_replacement::file_replacement(const std::string& path)
    : path_(path), target_(resolve_links(path)) {
    int error = EEXIST;
    for (std::uint64_t attempt = 0; error == EEXIST && attempt < 100; ++attempt) {
        token_ = new_token(attempt);
        part_ = part_name(target_, token_);
        error = create();
    }
    if (error != 0) throw_file(path_, "cannot be written", error);
    owns_ = true;
}

MP_CORE_FUNCTION file_replacement::file_replacement(const std::string& path, std::uint64_t token)
    : path_(path), target_(resolve_links(path)), token_(token), part_(part_name(target_, token)) {
#if MP_POSIX_FILES
    const int error = adopt(::open(part_.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
#else
    file_ = std::fopen(part_.c_str(), "r+b");
    const int error = file_ == nullptr ? errno : 0;
#endif
    if (error != 0) throw_file(path_, "cannot be written", error);
}

MP_CORE_FUNCTION file_replacement::~file_replacement() {
    if (file_ != nullptr) std::fclose(file_);
    if (owns_) std::remove(part_.c_str());
}

MP_CORE_FUNCTION void file_replacement::write(std::string_view bytes) {
    require_open();
    // fwrite accepts no null pointer, which is what an empty view may hold.
    if (!bytes.empty() && std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail(errno);
}

MP_CORE_FUNCTION void file_replacement::seek(std::uint64_t place) {
    require_open();
#if MP_POSIX_FILES
    using offset = ::off_t;
#else
    using offset = long;
#endif
    if (place > static_cast<std::uint64_t>((std::numeric_limits<offset>::max)())) {
        throw_file(path_, "cannot be written: it would have more than " + error_text(place) + " bytes");
    }
#if MP_POSIX_FILES
    const int result = ::fseeko(file_, static_cast<offset>(place), SEEK_SET);
#else
    const int result = std::fseek(file_, static_cast<offset>(place), SEEK_SET);
#endif
    if (result != 0) fail(errno);
}

MP_CORE_FUNCTION void file_replacement::close() {
    require_open();
    int error = std::fflush(file_) == 0 ? 0 : errno;
#if MP_POSIX_FILES
    if (replaces_) keep_mode();
    if (error == 0 && ::fsync(::fileno(file_)) != 0) error = errno;
#endif
    if (std::fclose(std::exchange(file_, nullptr)) != 0 && error == 0) error = errno;
    if (error != 0) fail(error);
}

MP_CORE_FUNCTION void file_replacement::commit() {
    close();
#if MP_POSIX_FILES
    if (std::rename(part_.c_str(), target_.c_str()) != 0) fail(errno);
#else
    std::error_code error;  // std::rename() replaces nothing on Windows
    std::filesystem::rename(part_, target_, error);
    if (error) throw_file(path_, "cannot be written: " + error.message());
#endif
    owns_ = false;
    sync_folder(target_);  // the name, too, is on the disk before this returns
}

[[noreturn]] MP_CORE_FUNCTION void file_replacement::fail(int error) const {
    throw_file(path_, "cannot be written", error);
}

MP_CORE_FUNCTION void file_replacement::require_open() const {
    if (file_ != nullptr) return;
    throw_joined<state_error>({path_, ": nothing can be written after commit()"});
}

MP_CORE_FUNCTION std::string file_replacement::part_name(const std::string& target, std::uint64_t token) {
    constexpr std::size_t longest = 200;  // of what systems permit, which is 255 or so
    return target.substr(0, folder_of(target).size() + longest) + "." + checksum_text(token) + ".part";
}

MP_CORE_FUNCTION std::uint64_t file_replacement::new_token(std::uint64_t attempt) const {
#if MP_POSIX_FILES
    struct timespec now{};
    static_cast<void>(::clock_gettime(CLOCK_REALTIME, &now));
    const auto nanoseconds = static_cast<std::uint64_t>(now.tv_nsec);
    const auto process = static_cast<std::uint64_t>(::getpid());
    const auto seconds = static_cast<std::uint64_t>(now.tv_sec);
#else
    const auto nanoseconds = static_cast<std::uint64_t>(std::clock());
    const std::uint64_t process = 0;
    const auto seconds = static_cast<std::uint64_t>(std::time(nullptr));
#endif
    const std::uint64_t parts[] = {seconds, nanoseconds, process, reinterpret_cast<std::uintptr_t>(this),
                                   attempt};
    return crc64({reinterpret_cast<const char*>(parts), sizeof parts});
}

MP_CORE_FUNCTION int file_replacement::create() {
#if MP_POSIX_FILES
    replaces_ = ::stat(target_.c_str(), &old_) == 0;
    if (!replaces_ && errno != ENOENT) return errno;
    if (replaces_ && !S_ISREG(old_.st_mode)) {
        throw_file(path_, "cannot be written: it is not a regular file");
    }
    // The group may be another one until close(). Other processes of this user may write the file, see token().
    const int handle = ::open(part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                              replaces_ ? (old_.st_mode & 0700U) | 0200U : 0666U);
    const int error = adopt(handle);
    if (error != 0 && handle >= 0) std::remove(part_.c_str());
    return error;
#elif defined(_WIN32)
    // Not all of its C libraries know the mode "wbx".
    const int handle =
        ::_open(part_.c_str(), _O_WRONLY | _O_CREAT | _O_EXCL | _O_BINARY, _S_IREAD | _S_IWRITE);
    if (handle < 0) return errno;
    file_ = ::_fdopen(handle, "wb");
    if (file_ != nullptr) return 0;
    const int error = errno;
    ::_close(handle);
    std::remove(part_.c_str());
    return error;
#else
    file_ = std::fopen(part_.c_str(), "wbx");
    return file_ == nullptr ? errno : 0;
#endif
}

#if MP_POSIX_FILES
MP_CORE_FUNCTION void file_replacement::keep_mode() const {
    const int handle = ::fileno(file_);
    constexpr auto same = static_cast<unsigned>(-1);  // leaves the owner or the group as it is
    struct stat made{};
    const bool known = ::fstat(handle, &made) == 0;
    const bool same_group = (known && made.st_gid == old_.st_gid) || ::fchown(handle, same, old_.st_gid) == 0;
    const bool same_owner = (known && made.st_uid == old_.st_uid) || ::fchown(handle, old_.st_uid, same) == 0;
    ::mode_t mode = old_.st_mode & (same_group && same_owner ? 07777U : 0777U);
    if (!same_group) mode &= 0707U | (mode & 07U) << 3U;
    static_cast<void>(::fchmod(handle, mode));
}

MP_CORE_FUNCTION int file_replacement::adopt(int handle) {
    if (handle < 0) return errno;
    file_ = ::fdopen(handle, "wb");
    if (file_ != nullptr) return 0;
    const int error = errno;
    ::close(handle);
    return error;
}
#endif

MP_CORE_FUNCTION void replace_file(const std::string& path, std::string_view content) {
    file_replacement file(path);
    file.write(content);
    file.commit();
}
#endif

}}  // namespace mp::detail
