// SPDX-License-Identifier: MIT
/// \file
/// A file that all ranks write together, whole or not at all.
#pragma once

#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/train/parallel/communicator.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#if MP_CORE_BODIES
#include <mp/arrays/io/checksum.hpp>
#include <mp/arrays/io/file_replacement.hpp>

#include <algorithm>
#include <optional>
#endif

namespace mp::detail {

/// Bytes in a file, and their checksum.
struct file_stretch {
    std::uint64_t at = 0;
    std::uint64_t bytes = 0;
    std::uint64_t checksum = 0;
};

}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// What one rank writes of a file, see rank_file.
class file_share {
public:
    file_share();
    file_share(const file_share&) = delete;
    file_share& operator=(const file_share&) = delete;
    ~file_share();

    /// Makes the new file, and returns the number that others open it by.
    std::uint64_t create(const std::string& path);
    void open(const std::string& path, std::uint64_t token);

    /// Begins a stretch at this byte.
    void begin(std::uint64_t at);
    void write(std::string_view bytes);
    /// Brings what this rank has written to the disk.
    void close();
    /// Makes it the file of that name.
    void commit();

    /// Returns the stretches of `ranks` ranks, those of rank `self` set, and the parts of all in bytes.
    [[nodiscard]] std::vector<file_stretch> placed(std::size_t self, std::size_t ranks,
                                                   std::vector<std::size_t>& cuts) const;

private:
    struct state;
    std::shared_ptr<state> state_;
};

/// Throws file_error: another rank has failed.
[[noreturn]] MP_CORE_FUNCTION void throw_failed_rank(const std::string& path, std::uint64_t rank);

/// Sorts stretches by their places.
MP_CORE_FUNCTION void sort_stretches(std::vector<file_stretch>& stretches);
MP_CORE_FUNCTION std::span<std::byte> bytes_of_stretches(std::vector<file_stretch>& stretches);

/// Checks that the stretches of all ranks are what follows a header, and returns the checksum of all.
///
/// \throws file_error  they overlap, or have gaps
MP_CORE_FUNCTION std::uint64_t checksum_of_file(const std::string& path, std::string_view header,
                                                const std::vector<file_stretch>& stretches);

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Runs f on every rank. If it throws on one, all throw: that one its own exception, the others file_error.
template <communicator Ranks, class Function>
void together(Ranks& ranks, const std::string& path, Function f) {
    const std::exception_ptr failure = exception_of(std::move(f));
    std::uint64_t worst = failure ? static_cast<std::uint64_t>(ranks.rank()) + 1 : 0;
    (ranks.max)(std::span<std::uint64_t>(&worst, 1));
    if (failure) std::rethrow_exception(failure);
    if (worst != 0) throw_failed_rank(path, worst - 1);
}

/// A new file for the place of another, in a folder that all ranks see, see file_replacement. Rank 0 makes it; then
/// all write stretches of their own; then rank 0 gives it its name.
template <communicator Ranks>
class rank_file {
public:
    rank_file(Ranks& ranks, const std::string& path) : ranks_(ranks) {
        std::uint64_t token = 0;
        together(ranks_, path, [&] {
            if (ranks_.rank() == 0) token = share_.create(path);
        });
        (ranks_.max)(std::span<std::uint64_t>(&token, 1));
        together(ranks_, path, [&] {
            if (ranks_.rank() != 0) share_.open(path, token);
        });
    }

    void begin(std::uint64_t at) { share_.begin(at); }
    void write(std::string_view bytes) { share_.write(bytes); }
    /// Brings what this rank has written to the disk. Rank 0, which has the header to write, does that in give_name().
    void close() {
        if (ranks_.rank() != 0) share_.close();
    }
    /// On rank 0 the stretches of all ranks; all must have written as many.
    [[nodiscard]] std::vector<file_stretch> all_stretches() {
        std::vector<std::size_t> cuts;
        std::vector<file_stretch> all = share_.placed(static_cast<std::size_t>(ranks_.rank()),
                                                      static_cast<std::size_t>(ranks_.size()), cuts);
        auto call = ranks_.start_gather(bytes_of_stretches(all), cuts);
        ranks_.wait(call);
        sort_stretches(all);
        return all;
    }
    /// On rank 0, when all others have closed.
    void give_name() { share_.commit(); }

private:
    Ranks& ranks_;
    file_share share_;
};

}}  // namespace mp::detail

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
