// SPDX-License-Identifier: MIT
/// \file
/// Casts of weights that are made once and used again, until the weights change.
#pragma once

#include <mp/base/buffer_version.hpp>
#include <mp/config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#if MP_CORE_BODIES
#include <utility>
#endif

namespace mp::autocast {

using mp::buffer_version;

/// One cast that a cache holds, as text.
struct cached_cast {
    const void* buffer;     ///< address of the first element that was cast
    std::uint64_t version;  ///< count() of its version at that time
    std::size_t elements;   ///< how many
    std::size_t bytes;      ///< memory of the cast
    std::string_view from;  ///< type of the buffer's elements
    std::string_view to;    ///< type of the cast
    std::uint64_t hits;     ///< how often it has been used again
};

/// Counts since the cache was made.
struct cast_cache_statistics {
    std::uint64_t hits = 0;           ///< casts that were not made
    std::uint64_t misses = 0;         ///< casts that were made, because there was none ...
    std::uint64_t invalidations = 0;  ///< ... of them because the buffer had changed since
    std::uint64_t evictions = 0;      ///< casts that were dropped to stay within the bound
    std::uint64_t too_large = 0;      ///< casts that were not kept, being larger than the bound
};

/// Keeps casts of buffers. A cast is found again by the buffer's version object and count, its address, shape
/// and format, and the target format. When a new cast would exceed `max_bytes`, those used longest ago go
/// first. All members may be called by several threads at once; two threads that miss the same cast at the
/// same time both make it. A cast that is in use lives on until its user is done, whatever the cache does.
///
/// With `compares`, a cast on a CPU that is used again is made once more and compared: an op throws
/// state_error where the buffer was written and nobody called changed(). That is what debug builds do, see
/// MP_CHECK_KEPT_CASTS.
class cast_cache {
public:
    /// Large enough for the weights of networks that train on a CPU.
    static constexpr std::size_t default_max_bytes = std::size_t{256} << 20;

    explicit cast_cache(std::size_t max_bytes = default_max_bytes, bool compares = MP_CHECK_KEPT_CASTS != 0);
    ~cast_cache();
    cast_cache(const cast_cache&) = delete;
    cast_cache& operator=(const cast_cache&) = delete;

    std::size_t max_bytes() const { return max_bytes_; }
    /// Whether casts that are used again are compared with their buffers.
    bool compares() const { return compares_; }

    /// Memory of the casts that are kept now.
    std::size_t bytes() const;

    /// Counts since the cache was made.
    cast_cache_statistics statistics() const;

    /// The entries, the most recently used last.
    std::vector<cached_cast> contents() const;

    /// Drops every cast. Statistics go on.
    void clear();

    /// Identity of a cast; for the dispatcher.
    struct key {
        const void* buffer;
        std::size_t elements;
        std::array<std::ptrdiff_t, 4> shape;  ///< operand_traits::shape() of the view
        std::string_view from;
        std::string_view to;          ///< what the numbers are rounded to
        std::string_view stored;      ///< what they are kept as; all names of formats, unique in a program
        const void* queue = nullptr;  ///< the stream of a GPU, whose kernels alone may read the cast

        friend bool operator==(const key&, const key&) = default;
    };

    /// The cast of the buffer as it was at `count`; null where there is none. `outdated` gets the memory of an older
    /// cast that nobody uses any more: the new one may be written over it. For the dispatcher.
    std::shared_ptr<const void> find(const key& wanted, const buffer_version& version, std::uint64_t count,
                                     std::shared_ptr<void>* outdated = nullptr);

    /// Keeps a cast that was made from the buffer as it was at `count`. For the dispatcher.
    void keep(const key& identity, const buffer_version& version, std::uint64_t count,
              std::shared_ptr<const void> cast, std::size_t bytes);

private:
    struct entry {
        key identity;
        buffer_version version;  // a copy, so that the counter's address is not given to another meanwhile
        std::shared_ptr<const void> cast;
        cached_cast description;
    };

    /// Whether the cache alone has the cast, and who had it before is done with reading.
    static bool is_unused(const std::shared_ptr<const void>& cast);

    void drop(std::size_t index);

    std::size_t max_bytes_;
    bool compares_;
    mutable std::mutex mutex_;
    std::vector<entry> entries_;  // the most recently used last
    std::size_t bytes_ = 0;
    cast_cache_statistics statistics_;
};

#if MP_CORE_BODIES
MP_CORE_FUNCTION cast_cache::cast_cache(std::size_t max_bytes, bool compares)
    : max_bytes_(max_bytes), compares_(compares) {}
MP_CORE_FUNCTION cast_cache::~cast_cache() = default;

MP_CORE_FUNCTION std::size_t cast_cache::bytes() const {
    const std::lock_guard lock(mutex_);
    return bytes_;
}

MP_CORE_FUNCTION cast_cache_statistics cast_cache::statistics() const {
    const std::lock_guard lock(mutex_);
    return statistics_;
}

MP_CORE_FUNCTION std::vector<cached_cast> cast_cache::contents() const {
    const std::lock_guard lock(mutex_);
    std::vector<cached_cast> result;
    result.reserve(entries_.size());
    for (const entry& it : entries_) result.push_back(it.description);
    return result;
}

MP_CORE_FUNCTION void cast_cache::clear() {
    const std::lock_guard lock(mutex_);
    entries_.clear();
    bytes_ = 0;
}

MP_CORE_FUNCTION std::shared_ptr<const void> cast_cache::find(const key& wanted,
                                                              const buffer_version& version,
                                                              std::uint64_t count,
                                                              std::shared_ptr<void>* outdated) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        if (!(entries_[i].identity == wanted && entries_[i].version == version)) continue;
        if (entries_[i].description.version != count) {
            ++statistics_.invalidations;
            if (outdated != nullptr && is_unused(entries_[i].cast)) {
                *outdated = std::const_pointer_cast<void>(std::move(entries_[i].cast));
            }
            drop(i);
            break;
        }
        ++statistics_.hits;
        ++entries_[i].description.hits;
        entry found = std::move(entries_[i]);
        entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(i));
        entries_.push_back(std::move(found));
        return entries_.back().cast;
    }
    ++statistics_.misses;
    return nullptr;
}

MP_CORE_FUNCTION void cast_cache::keep(const key& identity, const buffer_version& version,
                                       std::uint64_t count, std::shared_ptr<const void> cast,
                                       std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (bytes > max_bytes_) {
        ++statistics_.too_large;
        return;
    }
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        if (entries_[i].identity == identity && entries_[i].version == version) {
            if (entries_[i].description.version >= count) return;  // another thread was faster
            drop(i);
            break;
        }
    }
    while (bytes_ + bytes > max_bytes_) {
        ++statistics_.evictions;
        drop(0);
    }
    entries_.push_back({identity,
                        version,
                        std::move(cast),
                        {identity.buffer, count, identity.elements, bytes, identity.from, identity.to, 0}});
    bytes_ += bytes;
}

MP_CORE_FUNCTION bool cast_cache::is_unused(const std::shared_ptr<const void>& cast) {
    if (cast.use_count() != 1) return false;
    // The count is read without an order. Who gave a reference back did so after reading, by a release; giving
    // one back here acquires that.
    {
        const std::shared_ptr<const void> another = cast;
    }
    return true;
}

MP_CORE_FUNCTION void cast_cache::drop(std::size_t index) {
    bytes_ -= entries_[index].description.bytes;
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(index));
}
#endif

}  // namespace mp::autocast
