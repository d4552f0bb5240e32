// SPDX-License-Identifier: MIT
/// \file
/// Counts of the writes of a buffer, by which whatever is derived from it stays current.
#pragma once

#include <mp/config.hpp>

#include <atomic>
#include <cstdint>
#include <memory>

namespace mp {

/// Counts the writes of a buffer, so that what is derived from it (casts, 8-bit codes, master weights) is
/// never stale. Everything that writes the buffer in place calls changed() after it; everything that keeps a
/// value derived from it keeps count() as well and compares. Copies share one counter; a default-constructed
/// object is a new counter, distinct from all others, also from destroyed ones.
///
///     mp::buffer_version version;
///     mp::adamw<mp::bfloat16> optimizer({{.name = "w", .weights = w, .gradient = dw, .version = version}});
///     mp::ops::linear(exec, x, mp::autocast::cached(w_view, version), b, y);   // casts w, and keeps the cast
///     mp::ops::linear(exec, z, mp::autocast::cached(w_view, version), b, y);   // reuses it
///     optimizer.step();                                                        // advances the version
///     w[0] = 0;
///     version.changed();                                                       // a write of the program's own
///
/// Members can be called while other threads read the version; that the buffer itself is not read while it is
/// written is up to the caller.
class buffer_version {
public:
    buffer_version() : state_(std::make_shared<state>()) {}
    // Moving copies, so that no object is without a counter.
    buffer_version(const buffer_version&) noexcept = default;
    buffer_version& operator=(const buffer_version&) noexcept = default;
    ~buffer_version() = default;

    /// A new counter of a part of a buffer, whose writes count for the whole as well.
    [[nodiscard]] static buffer_version part_of(const buffer_version& whole) {
        buffer_version result;
        result.state_->whole = whole.state_;
        return result;
    }

    /// Reports that elements of the buffer were written.
    void changed() const {
        for (state* it = state_.get(); it != nullptr; it = it->whole.get()) {
            it->count.fetch_add(1, std::memory_order_acq_rel);
        }
    }

    /// Reports that the whole buffer was replaced, so that nothing derived from its former contents may stay:
    /// master weights take its values even where rounding them would give these.
    void replaced() const {
        state_->replacements.fetch_add(1, std::memory_order_acq_rel);
        changed();
    }

    /// Number of writes reported so far.
    [[nodiscard]] std::uint64_t count() const { return state_->count.load(std::memory_order_acquire); }

    /// Number of calls of replaced().
    [[nodiscard]] std::uint64_t replacements() const {
        return state_->replacements.load(std::memory_order_acquire);
    }

    /// Whether the buffer holds other values for a while, such as an average of the weights, which must be
    /// neither trained nor saved as its lasting ones.
    [[nodiscard]] bool is_temporary() const { return state_->temporary.load(std::memory_order_acquire); }
    /// Sets is_temporary(). For scopes that exchange the contents and restore them at their end.
    void set_temporary(bool temporary) const {
        state_->temporary.store(temporary, std::memory_order_release);
    }

    /// Returns true if both share one counter.
    friend bool operator==(const buffer_version& left, const buffer_version& right) {
        return left.state_ == right.state_;
    }

private:
    struct state {
        std::atomic<std::uint64_t> count{0};
        std::atomic<std::uint64_t> replacements{0};
        std::atomic<bool> temporary{false};
        std::shared_ptr<state> whole{};
    };
    std::shared_ptr<state> state_;
};

}  // namespace mp

namespace mp::detail {

/// The state of a version that something derived from a buffer was made of.
struct followed_version {
    std::uint64_t count = 0;
    std::uint64_t replacements = 0;

    followed_version() = default;
    explicit followed_version(const buffer_version& version)
        : count(version.count()), replacements(version.replacements()) {}
    friend bool operator==(const followed_version&, const followed_version&) = default;
};

}  // namespace mp::detail
