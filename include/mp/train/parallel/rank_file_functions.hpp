// SPDX-License-Identifier: MIT
/// \file
/// The functions of file_share.
#pragma once

#include <mp/arrays/io/checksum.hpp>
#include <mp/arrays/io/file_replacement.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/train/parallel/rank_file.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#if MP_CORE_BODIES
namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

struct file_share::state {
    std::optional<file_replacement> file;
    crc64_stream checksum;
    std::vector<file_stretch> stretches;
};

MP_CORE_FUNCTION file_share::file_share() : state_(std::make_shared<state>()) {}
MP_CORE_FUNCTION file_share::~file_share() = default;

MP_CORE_FUNCTION std::uint64_t file_share::create(const std::string& path) {
    return state_->file.emplace(path).token();
}
MP_CORE_FUNCTION void file_share::open(const std::string& path, std::uint64_t token) {
    state_->file.emplace(path, token);
}
MP_CORE_FUNCTION void file_share::begin(std::uint64_t at) {
    state_->stretches.push_back({at, 0, 0});
    state_->checksum = {};
    state_->file->seek(at);
}
MP_CORE_FUNCTION void file_share::write(std::string_view bytes) {
    if (bytes.empty()) return;  // maybe from nowhere
    state_->checksum.add(bytes);
    state_->stretches.back().bytes += bytes.size();
    state_->stretches.back().checksum = state_->checksum.value();
    state_->file->write(bytes);
}
MP_CORE_FUNCTION void file_share::close() {
    state_->file->close();
}
MP_CORE_FUNCTION void file_share::commit() {
    state_->file->commit();
}
MP_CORE_FUNCTION std::vector<file_stretch> file_share::placed(std::size_t self, std::size_t ranks,
                                                              std::vector<std::size_t>& cuts) const {
    const std::size_t each = state_->stretches.size();
    std::vector<file_stretch> all(each * ranks);
    std::copy(state_->stretches.begin(), state_->stretches.end(),
              all.begin() + static_cast<std::ptrdiff_t>(self * each));
    for (std::size_t r = 0; r <= ranks; ++r) cuts.push_back(r * each * sizeof(file_stretch));
    return all;
}

[[noreturn]] MP_CORE_FUNCTION void throw_failed_rank(const std::string& path, std::uint64_t rank) {
    throw_file(path, "rank " + std::to_string(rank) + " has failed");
}

MP_CORE_FUNCTION void sort_stretches(std::vector<file_stretch>& stretches) {
    std::sort(stretches.begin(), stretches.end(),
              [](const file_stretch& a, const file_stretch& b) { return a.at < b.at; });
}

MP_CORE_FUNCTION std::span<std::byte> bytes_of_stretches(std::vector<file_stretch>& stretches) {
    return std::as_writable_bytes(std::span(stretches));
}

MP_CORE_FUNCTION std::uint64_t checksum_of_file(const std::string& path, std::string_view header,
                                                const std::vector<file_stretch>& stretches) {
    std::uint64_t end = header.size();
    std::uint64_t checksum = crc64(header);
    for (const file_stretch& it : stretches) {
        if (it.bytes == 0) continue;
        if (it.at != end) throw_file(path, "the shares of the ranks overlap, or have gaps");
        checksum = crc64_of_both(checksum, it.checksum, it.bytes);
        end += it.bytes;
    }
    return checksum;
}

}}  // namespace mp::detail
#endif
