// SPDX-License-Identifier: MIT
/// \file
/// Files that are written whole or not at all.
#pragma once

#include <mp/arrays/io/file_replacement.hpp>

#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace examples {

namespace detail {

/// Whether a path is that of something like /dev/stdout or a pipe, which is written to and not replaced.
inline bool is_special(const std::filesystem::path& path) {
    std::error_code ignored;
    const std::filesystem::file_status status = std::filesystem::status(path, ignored);
    return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
}

inline bool write_in_place(const std::filesystem::path& path, std::string_view text, const char* mode) {
    std::FILE* const file = std::fopen(path.string().c_str(), mode);
    if (file == nullptr) return false;
    // fwrite accepts no null pointer, which is what an empty view may hold.
    const bool good = text.empty() || std::fwrite(text.data(), 1, text.size(), file) == text.size();
    return std::fclose(file) == 0 && good;
}

}  // namespace detail

/// Whether replace_file would find a place to write to. Leaves everything as it is.
inline bool can_replace_file(const std::filesystem::path& path) {
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored) && !detail::write_in_place(path, {}, "ab")) return false;
    return detail::is_special(path) ||
           mp::detail::exception_of([&] { mp::detail::file_replacement(path.string()); }) == nullptr;
}

/// Makes `text` the content of a file, as mp::detail::file_replacement does.
///
/// \returns whether that went well; if not, the file is as before
[[nodiscard]] inline bool replace_file(const std::filesystem::path& path, std::string_view text) {
    if (detail::is_special(path)) return detail::write_in_place(path, text, "wb");
    return mp::detail::exception_of([&] { mp::detail::replace_file(path.string(), text); }) == nullptr;
}

}  // namespace examples
