// SPDX-License-Identifier: MIT
/// \file
/// A file that all ranks write together, whole or not at all.
#pragma once

#include <mp/arrays/io/checksum.hpp>
#include <mp/arrays/io/file_replacement.hpp>
#include <mp/base/bits.hpp>
#include <mp/error.hpp>
#include <mp/train/parallel/communicator.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Runs f on every rank. If it throws on one, all throw: that one its own exception, the others file_error.
template <communicator Ranks, class Function>
void together(Ranks& ranks, const std::string& path, Function f) {
    const std::exception_ptr failure = exception_of(std::move(f));
    std::uint64_t worst = failure ? static_cast<std::uint64_t>(ranks.rank()) + 1 : 0;
    (ranks.max)(std::span<std::uint64_t>(&worst, 1));
    if (failure) std::rethrow_exception(failure);
    if (worst != 0) throw_file(path, "rank " + std::to_string(worst - 1) + " has failed");
}

/// Bytes in a file, and their checksum.
struct file_stretch {
    std::uint64_t at = 0;
    std::uint64_t bytes = 0;
    std::uint64_t checksum = 0;
};

/// A new file for the place of another, in a folder that all ranks see, see file_replacement. Rank 0 makes it; then
/// all write stretches of their own; then rank 0 gives it its name.
template <communicator Ranks>
class rank_file {
public:
    rank_file(Ranks& ranks, const std::string& path) : ranks_(ranks) {
        std::uint64_t token = 0;
        together(ranks_, path, [&] {
            if (ranks_.rank() == 0) token = file_.emplace(path).token();
        });
        (ranks_.max)(std::span<std::uint64_t>(&token, 1));
        together(ranks_, path, [&] {
            if (ranks_.rank() != 0) file_.emplace(path, token);
        });
    }

    /// Begins a stretch at this byte.
    void begin(std::uint64_t at) {
        stretches_.push_back({at, 0, 0});
        checksum_ = {};
        file_->seek(at);
    }
    void write(std::string_view bytes) {
        if (bytes.empty()) return;  // maybe from nowhere
        checksum_.add(bytes);
        stretches_.back().bytes += bytes.size();
        stretches_.back().checksum = checksum_.value();
        file_->write(bytes);
    }
    /// Brings what this rank has written to the disk. Rank 0, which has the header to write, does that in give_name().
    void close() {
        if (ranks_.rank() != 0) file_->close();
    }
    /// On rank 0 the stretches of all ranks; all must have written as many.
    [[nodiscard]] std::vector<file_stretch> all_stretches() {
        const std::size_t each = stretches_.size();
        const auto size = static_cast<std::size_t>(ranks_.size());
        std::vector<file_stretch> all(each * size);
        std::copy(stretches_.begin(), stretches_.end(),
                  all.begin() + ranks_.rank() * static_cast<long>(each));
        std::vector<std::size_t> cuts;
        for (std::size_t r = 0; r <= size; ++r) cuts.push_back(r * each * sizeof(file_stretch));
        auto call = ranks_.start_gather(std::as_writable_bytes(std::span(all)), cuts);
        ranks_.wait(call);
        std::sort(all.begin(), all.end(),
                  [](const file_stretch& a, const file_stretch& b) { return a.at < b.at; });
        return all;
    }
    /// On rank 0, when all others have closed.
    void give_name() { file_->commit(); }

private:
    Ranks& ranks_;
    std::optional<file_replacement> file_;
    crc64_stream checksum_;
    std::vector<file_stretch> stretches_;
};

}}  // namespace mp::detail
