// SPDX-License-Identifier: MIT
/// \file
/// Files that are written whole or not at all.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

namespace examples {

namespace detail {

/// Where a path leads to, and whether it is something like /dev/stdout or a pipe, which is written to and not
/// replaced.
struct file_target {
    std::filesystem::path path;
    bool exists;
    bool is_special;

    explicit file_target(const std::filesystem::path& given) : path(given) {
        std::error_code ignored;
        const std::filesystem::file_status status = std::filesystem::status(given, ignored);
        exists = std::filesystem::exists(status);
        is_special = exists && !std::filesystem::is_regular_file(status);
        // Through links, so that the link stays one.
        if (exists && !is_special) {
            const std::filesystem::path real = std::filesystem::canonical(given, ignored);
            if (!ignored) path = real;
        }
    }
};

/// A new file in the same folder, under a name that nobody has; null if there can be none.
inline std::FILE* open_beside(const std::filesystem::path& target, std::filesystem::path& name) {
    for (int attempt = 0; attempt < 100; ++attempt) {
        name = target;
        name += ".part" + std::to_string(attempt);
        if (std::FILE* const file = std::fopen(name.string().c_str(), "wbx")) return file;
        std::error_code ignored;
        if (!std::filesystem::exists(name, ignored)) break;  // so it is not the name that is in the way
    }
    return nullptr;
}

inline bool write_and_close(std::FILE* file, std::string_view text) {
    bool good = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    good = std::fflush(file) == 0 && good;
#if defined(__unix__) || defined(__APPLE__)
    // On the disk before it gets its name; pipes and the like cannot do that and need not.
    if (good) static_cast<void>(fsync(fileno(file)));
#endif
    return std::fclose(file) == 0 && good;
}

}  // namespace detail

/// Whether replace_file would find a place to write to. Leaves everything as it is.
inline bool can_replace_file(const std::filesystem::path& path) {
    const detail::file_target target(path);
    if (target.exists) {
        std::FILE* const file = std::fopen(target.path.string().c_str(), "ab");
        if (file == nullptr) return false;
        std::fclose(file);
        if (target.is_special) return true;
    }
    std::filesystem::path name;
    std::FILE* const file = detail::open_beside(target.path, name);
    if (file == nullptr) return false;
    std::fclose(file);
    std::error_code ignored;
    std::filesystem::remove(name, ignored);
    return true;
}

/// Makes `text` the content of a file. It is written beside and then takes the file's name, so that whoever
/// reads sees the old content or the new one, and a full disk or an end of the program on the way costs
/// nothing.
///
/// \returns whether that went well; if not, the file is as before
[[nodiscard]] inline bool replace_file(const std::filesystem::path& path, std::string_view text) {
    const detail::file_target target(path);
    if (target.is_special) {
        std::FILE* const file = std::fopen(target.path.string().c_str(), "wb");
        return file != nullptr && detail::write_and_close(file, text);
    }
    std::filesystem::path name;
    std::FILE* const file = detail::open_beside(target.path, name);
    if (file == nullptr) return false;
    std::error_code error;
    if (detail::write_and_close(file, text)) {
        if (target.exists) {
            std::error_code ignored;
            const auto permissions = std::filesystem::status(target.path, ignored).permissions();
            std::filesystem::permissions(name, permissions, ignored);
        }
        std::filesystem::rename(name, target.path, error);
        if (!error) return true;
    }
    std::filesystem::remove(name, error);
    return false;
}

}  // namespace examples
