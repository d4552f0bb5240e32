// SPDX-License-Identifier: MIT
/// \file
/// Arrays on their way into a checkpoint and out of it, without their types.
#pragma once

#include <mp/arrays/io/tensor_file.hpp>
#include <mp/arrays/io/tensor_header.hpp>
#include <mp/config.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#if MP_CORE_BODIES
#include <mp/arrays/io/checksum.hpp>
#include <mp/arrays/io/file_replacement.hpp>
#include <mp/arrays/io/text_excerpt.hpp>
#include <mp/error.hpp>

#include <algorithm>
#include <cstring>
#endif

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Up to two dimensions of an array.
struct array_shape {
    std::size_t dimensions = 0;
    std::size_t sizes[2] = {};

    [[nodiscard]] static MP_ALWAYS_INLINE constexpr array_shape vector(std::size_t size) {
        return {1, {size}};
    }
    [[nodiscard]] static MP_ALWAYS_INLINE constexpr array_shape matrix(std::size_t rows,
                                                                       std::size_t columns) {
        return {2, {rows, columns}};
    }
};

/// Elements in a file: the names of their type, see dtype_of() and format_beyond_dtype(), and bytes each.
struct stored_type {
    std::string_view dtype;
    std::string_view format;
    std::size_t size;
};

/// Collects the arrays of a file and writes it.
class checkpoint_writer {
public:
    /// \param shares  whether arrays may be shared among ranks
    /// \param run     whether a run is saved, to be continued, and not weights for other programs
    explicit checkpoint_writer(bool shares = false, bool run = true);
    checkpoint_writer(const checkpoint_writer&) = delete;
    checkpoint_writer& operator=(const checkpoint_writer&) = delete;

    [[nodiscard]] MP_ALWAYS_INLINE bool saves_run() const noexcept { return run_; }
    void metadata(std::string_view key, std::string_view value);

    /// The arrays in the order of the file.
    [[nodiscard]] MP_ALWAYS_INLINE std::span<const file_entry> entries() const noexcept { return entries_; }

    /// Ends the list: returns the header of the file, with zeros for the checksum if there is to be one.
    [[nodiscard]] std::string finish(bool with_checksum);
    /// Puts the checksum into a header.
    static void set_checksum(std::string& header, std::uint64_t checksum);

    /// Writes the file, with a checksum if that is wanted.
    void write(const std::string& path, bool with_checksum);

protected:
    ~checkpoint_writer();

    /// Adds an array. The data stay where they are until the file is written.
    void add(const std::string& name, const stored_type& type, const array_shape& shape, const void* data,
             std::size_t count);
    /// Adds `held` elements from `first` on of an array of `count`.
    void add_share(const std::string& name, const stored_type& type, const void* data, std::size_t count,
                   std::size_t first, std::size_t held, bool shared);
    /// Returns a copy of the bytes that lives as long as this object; zeros if `data` is null.
    std::span<char> keep(const void* data, std::size_t bytes);

private:
    bool shares_;
    bool run_;
    std::vector<file_entry> entries_;
    std::vector<std::pair<std::string, std::string>> metadata_;
    std::set<std::string, std::less<>> names_;
    std::deque<array_shape> shapes_;  // elements of a deque stay in place
    std::deque<std::string> texts_;
};

/// Finds the arrays of a file and checks that all of them are asked for.
class checkpoint_reader {
public:
    explicit checkpoint_reader(const tensor_file& file);
    checkpoint_reader(const checkpoint_reader&) = delete;
    checkpoint_reader& operator=(const checkpoint_reader&) = delete;

    /// Returns the version of the file.
    [[nodiscard]] int version() const;

    /// Throws if there is something in the file that was not asked for: the run would not be the same without
    /// it.
    void require_all() const;

    /// Keeps a string for set_string(), since it may be a variable of the function that visits.
    void string(const std::string& name, const std::string& value);
    /// Whether strings are set now, and nothing else is to be visited.
    [[nodiscard]] MP_ALWAYS_INLINE bool sets_strings() const noexcept { return sets_strings_; }
    /// Sets the next one of the strings. If there are more than before, they stay as they are.
    void set_string(std::string& value) noexcept;

protected:
    ~checkpoint_reader();

    /// An object that was visited: the index among them of the first one that is not within it.
    struct visited_object {
        std::size_t end = 0;
        bool has_strings = false;
    };
    struct object_start {
        std::size_t index;
        std::size_t strings;
    };

    [[nodiscard]] const tensor_file::tensor& require(const std::string& name, const stored_type& type,
                                                     const array_shape& shape, std::size_t count);
    [[nodiscard]] std::string_view text_at(const std::string& name);
    /// Throws unless the bytes of an array of one element are these.
    void require_equal(const std::string& name, const stored_type& type, const void* value);

    /// Notes whether an object names strings.
    [[nodiscard]] object_start begin_object();
    void end_object(const object_start& start);
    /// Returns the next object in the order of the first visit, and enters it if it names strings.
    [[nodiscard]] visited_object next_object() noexcept;
    MP_ALWAYS_INLINE void leave_object(const visited_object& it) noexcept { next_visited_ = it.end; }
    /// Begins to set strings. Returns false if there are none.
    [[nodiscard]] bool begin_strings() noexcept;

    [[nodiscard]] MP_ALWAYS_INLINE const tensor_file& file() const noexcept { return file_; }

private:
    const tensor_file& file_;
    std::set<std::string, std::less<>> used_;
    std::vector<std::string> strings_;
    std::vector<visited_object> visited_;
    std::size_t next_string_ = 0;
    std::size_t next_visited_ = 0;
    bool sets_strings_ = false;
};

/// Throws unless the file is a checkpoint of a version that this library reads, as it was written.
MP_CORE_FUNCTION void require_checkpoint(const tensor_file& file, std::span<const std::byte> all);

#if MP_CORE_BODIES
inline constexpr std::string_view checkpoint_version_key = "mp.checkpoint";
/// Version of a checkpoint, one digit. In version 1, means of AdamW and LAMB in reduced formats were not divided
/// by their bias; up to version 2, averages of weights had no remainders.
inline constexpr std::string_view checkpoint_version = "3";
inline constexpr std::string_view checkpoint_checksum_key = "mp.checksum";
inline constexpr std::string_view no_checksum = "0000000000000000";

MP_CORE_FUNCTION checkpoint_writer::checkpoint_writer(bool shares, bool run) : shares_(shares), run_(run) {}
MP_CORE_FUNCTION checkpoint_writer::~checkpoint_writer() = default;

MP_CORE_FUNCTION void checkpoint_writer::metadata(std::string_view key, std::string_view value) {
    metadata_.emplace_back(key, value);
}

MP_CORE_FUNCTION void checkpoint_writer::add(const std::string& name, const stored_type& type,
                                             const array_shape& shape, const void* data, std::size_t count) {
    const auto [kept, is_new] = names_.insert(name);
    if (!is_new || name == "__metadata__") {
        throw_argument("mp::save_checkpoint", "name", name, "must be another one: there is one of this name");
    }
    const array_shape& sizes = shapes_.emplace_back(shape);
    entries_.push_back({*kept, type.dtype, {sizes.sizes, sizes.dimensions}, data, type.size, count});
    if (!type.format.empty()) metadata("format." + name, type.format);
}

MP_CORE_FUNCTION void checkpoint_writer::add_share(const std::string& name, const stored_type& type,
                                                   const void* data, std::size_t count, std::size_t first,
                                                   std::size_t held, bool shared) {
    add(name, type, array_shape::vector(count), data, count);
    entries_.back().first = first;
    entries_.back().held = held;
    entries_.back().shared = shared;
    if (!shares_ && held != count) {
        throw_joined<state_error>(
            {"mp::save_checkpoint: ", quoted_excerpt(name),
             " is shared among ranks; save it by mp::save_checkpoint(ranks, path, everything)"});
    }
}

MP_CORE_FUNCTION std::span<char> checkpoint_writer::keep(const void* data, std::size_t bytes) {
    std::string& kept = texts_.emplace_back(bytes, '\0');
    if (data != nullptr && bytes != 0) std::memcpy(kept.data(), data, bytes);
    return {kept.data(), kept.size()};
}

MP_CORE_FUNCTION std::string checkpoint_writer::finish(bool with_checksum) {
    // Larger elements first, so that all are aligned in a file that is mapped.
    std::stable_sort(entries_.begin(), entries_.end(), [](const file_entry& a, const file_entry& b) {
        return a.element_size > b.element_size;
    });
    if (with_checksum) {
        metadata_.emplace(metadata_.begin(), checkpoint_version_key, checkpoint_version);
        metadata_.emplace(metadata_.begin(), checkpoint_checksum_key, no_checksum);
    }
    return tensor_header(entries_, metadata_);
}

MP_CORE_FUNCTION void checkpoint_writer::set_checksum(std::string& header, std::uint64_t checksum) {
    header.replace(header.find(no_checksum), no_checksum.size(), checksum_text(checksum));
}

MP_CORE_FUNCTION void checkpoint_writer::write(const std::string& path, bool with_checksum) {
    std::string header = finish(with_checksum);
    if (with_checksum) {
        crc64_stream checksum;
        checksum.add(header);
        for (const file_entry& it : entries_) {
            for_file_bytes(it, [&](std::string_view bytes) { checksum.add(bytes); });
        }
        set_checksum(header, checksum.value());
    }
    file_replacement file(path);
    file.write(header);
    for (const file_entry& it : entries_) {
        for_file_bytes(it, [&](std::string_view bytes) { file.write(bytes); });
    }
    file.commit();
}

MP_CORE_FUNCTION checkpoint_reader::checkpoint_reader(const tensor_file& file) : file_(file) {}
MP_CORE_FUNCTION checkpoint_reader::~checkpoint_reader() = default;

MP_CORE_FUNCTION int checkpoint_reader::version() const {
    const auto found = file_.metadata().find(checkpoint_version_key);
    return (found != file_.metadata().end() ? found->second : checkpoint_version)[0] - '0';
}

MP_CORE_FUNCTION void checkpoint_reader::require_all() const {
    for (const auto& [name, tensor] : file_.tensors()) {
        if (used_.contains(name)) continue;
        throw_file(file_.path(), "there is " + quoted_excerpt(name) + ", which the program does not load");
    }
}

MP_CORE_FUNCTION void checkpoint_reader::string(const std::string& name, const std::string& /*value*/) {
    strings_.emplace_back(text_at(name));
}

MP_CORE_FUNCTION void checkpoint_reader::set_string(std::string& value) noexcept {
    if (next_string_ < strings_.size()) value.swap(strings_[next_string_++]);
}

MP_CORE_FUNCTION const tensor_file::tensor& checkpoint_reader::require(const std::string& name,
                                                                       const stored_type& type,
                                                                       const array_shape& shape,
                                                                       std::size_t count) {
    const tensor_file::tensor& found = file_.require(name, type.dtype, type.format, count);
    // A matrix is as good as its elements in a row.
    if (shape.dimensions == 2 && found.shape.size() == 2 &&
        !std::equal(found.shape.begin(), found.shape.end(), shape.sizes)) {
        throw_file(file_.path(), quoted_excerpt(name) + " is a matrix of another shape");
    }
    used_.insert(name);
    return found;
}

MP_CORE_FUNCTION std::string_view checkpoint_reader::text_at(const std::string& name) {
    const tensor_file::tensor& found = file_.at(name);
    if (found.dtype != "U8") throw_file(file_.path(), quoted_excerpt(name) + " is no text");
    used_.insert(name);
    return {reinterpret_cast<const char*>(found.bytes.data()), found.bytes.size()};
}

MP_CORE_FUNCTION void checkpoint_reader::require_equal(const std::string& name, const stored_type& type,
                                                       const void* value) {
    const tensor_file::tensor& found = require(name, type, {}, 1);
    std::byte stored[16];
    copy_little_endian(stored, found.bytes.data(), type.size, 1);
    if (std::memcmp(stored, value, type.size) != 0) {
        throw_file(file_.path(), quoted_excerpt(name) + " was another one when the run was saved");
    }
}

MP_CORE_FUNCTION checkpoint_reader::object_start checkpoint_reader::begin_object() {
    visited_.push_back({});
    return {visited_.size() - 1, strings_.size()};
}

MP_CORE_FUNCTION void checkpoint_reader::end_object(const object_start& start) {
    visited_[start.index] = {visited_.size(), strings_.size() != start.strings};
}

MP_CORE_FUNCTION checkpoint_reader::visited_object checkpoint_reader::next_object() noexcept {
    if (next_visited_ >= visited_.size()) return {next_visited_, false};
    const visited_object it = visited_[next_visited_];
    if (it.has_strings) ++next_visited_;
    return it;
}

MP_CORE_FUNCTION bool checkpoint_reader::begin_strings() noexcept {
    sets_strings_ = !strings_.empty();
    return sets_strings_;
}

MP_CORE_FUNCTION void require_checkpoint(const tensor_file& file, std::span<const std::byte> all) {
    const auto version = file.metadata().find(checkpoint_version_key);
    const auto found = file.metadata().find(checkpoint_checksum_key);
    if (version == file.metadata().end() || found == file.metadata().end()) {
        throw_file(file.path(), "is no checkpoint");
    }
    if (version->second.size() != 1 || version->second < "1" || version->second > checkpoint_version) {
        throw_file(file.path(), "is a checkpoint of version " + quoted_excerpt(version->second) +
                                    ", and this library reads versions up to " +
                                    std::string(checkpoint_version));
    }
    const std::size_t length = all.size() - file.data().size();
    std::string header(reinterpret_cast<const char*>(all.data()), length);
    const std::string in_header = "\"" + std::string(checkpoint_checksum_key) + "\":\"";
    const std::size_t at = header.find(in_header);
    const bool whole = at != std::string::npos && at + in_header.size() + 16 <= header.size();
    if (whole) header.replace(at + in_header.size(), 16, std::string(16, '0'));
    crc64_stream checksum;
    checksum.add(header);
    checksum.add({reinterpret_cast<const char*>(file.data().data()), file.data().size()});
    if (!whole || checksum_text(checksum.value()) != found->second) {
        throw_file(file.path(), "the checksum is not that of the content: the file is damaged");
    }
}
#endif

}}  // namespace mp::detail
