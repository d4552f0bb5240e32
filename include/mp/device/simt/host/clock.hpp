// SPDX-License-Identifier: MIT
/// \file
/// Vector clocks.
#pragma once

#include <mp/config.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

/// By the number of a cluster's first block, what is known of the participants there.
using clocks_of_clusters = std::map<std::ptrdiff_t, std::vector<std::uint32_t>>;

/// For each participant its last epoch that is known to lie in the past. A participant's epochs
/// are counted by itself; it begins a new one whenever it tells others of the one before. So an access at
/// epoch m of participant p happened before everything that comes after with a clock of at least m for p,
/// and two accesses of which neither happened before the other are a race, whatever order they ran in this
/// time. (C. Flanagan and S. N. Freund, "FastTrack", PLDI 2009, describes the method.)
///
/// Participants are those of one cluster. Of other clusters something is known only after a fence and an
/// atomic operation there, and an atomic operation and a fence here; nearly always nothing.
class vector_clock {
public:
    vector_clock() = default;
    explicit vector_clock(std::size_t participants)
        : moments_(std::make_unique_for_overwrite<std::uint32_t[]>(participants)), count_(participants) {
        clear();
    }
    vector_clock(const vector_clock& other)
        : moments_(std::make_unique_for_overwrite<std::uint32_t[]>(other.count_)),
          count_(other.count_),
          elsewhere_(other.elsewhere_) {
        copy(other);
    }
    vector_clock(vector_clock&&) noexcept = default;
    vector_clock& operator=(const vector_clock& other) {
        if (this == &other) return *this;
        if (count_ != other.count_) {
            moments_ = std::make_unique_for_overwrite<std::uint32_t[]>(other.count_);
            count_ = other.count_;
        }
        copy(other);
        elsewhere_ = other.elsewhere_;
        return *this;
    }
    vector_clock& operator=(vector_clock&&) noexcept = default;
    ~vector_clock() = default;

    [[nodiscard]] bool empty() const { return count_ == 0; }
    [[nodiscard]] std::size_t size() const { return count_; }
    [[nodiscard]] MP_ALWAYS_INLINE std::uint32_t operator[](std::size_t participant) const {
        return moments_[participant];
    }
    MP_ALWAYS_INLINE std::uint32_t& operator[](std::size_t participant) { return moments_[participant]; }

    /// Adds what another clock knows.
    void join(const vector_clock& other) {
        join_moments(moments_.get(), other.moments_.get(), count_);
        if (other.elsewhere_ == nullptr || other.elsewhere_ == elsewhere_) return;
        if (elsewhere_ == nullptr) {
            elsewhere_ = other.elsewhere_;
        } else {
            join_elsewhere(*other.elsewhere_);
        }
    }
    void reset() {
        clear();
        elsewhere_.reset();
    }

    /// Whether an access of a participant of another cluster happened before.
    [[nodiscard]] MP_ALWAYS_INLINE bool knows(std::ptrdiff_t cluster, std::size_t participant,
                                              std::uint32_t epoch) const {
        return elsewhere_.get() != nullptr && knows_elsewhere(cluster, participant, epoch);
    }
    /// Adds what is known in cluster `own`, or elsewhere.
    void join_all(std::ptrdiff_t own, const clocks_of_clusters& all) {
        clocks_of_clusters others = all;
        if (const auto at = others.find(own); at != others.end()) {
            join_moments(moments_.get(), at->second.data(), count_);
            others.erase(at);
        }
        if (!others.empty()) join_elsewhere(others);
    }
    /// Adds all that is known in cluster `own` to `to`.
    void add_to(std::ptrdiff_t own, clocks_of_clusters& to) const {
        std::vector<std::uint32_t>& known = to[own];
        known.resize(count_);
        join_moments(known.data(), moments_.get(), count_);
        if (elsewhere_ != nullptr) add_all(to, *elsewhere_);
    }
    static void add_all(clocks_of_clusters& to, const clocks_of_clusters& from) {
        for (const auto& [cluster, moments] : from) {
            std::vector<std::uint32_t>& known = to[cluster];
            known.resize(moments.size());
            join_moments(known.data(), moments.data(), moments.size());
        }
    }

private:
    [[nodiscard]] bool knows_elsewhere(std::ptrdiff_t cluster, std::size_t participant,
                                       std::uint32_t epoch) const {
        const auto at = elsewhere_->find(cluster);
        return at != elsewhere_->end() && epoch <= at->second[participant];
    }
    void clear() {
        if (count_ != 0) std::memset(moments_.get(), 0, count_ * sizeof(std::uint32_t));
    }
    void copy(const vector_clock& other) {
        if (count_ != 0) std::memcpy(moments_.get(), other.moments_.get(), count_ * sizeof(std::uint32_t));
    }
    static void join_moments(std::uint32_t* to, const std::uint32_t* from, std::size_t count) {
        std::size_t i = 0;
#if defined(__GNUC__)
        // Also where the compiler makes no vectors of loops: barriers of many threads do hardly anything else.
        using four = std::uint32_t __attribute__((vector_size(16)));
        for (; i + 4 <= count; i += 4) {
            four x;
            four y;
            __builtin_memcpy(&x, to + i, sizeof x);
            __builtin_memcpy(&y, from + i, sizeof y);
            x = x < y ? y : x;
            __builtin_memcpy(to + i, &x, sizeof x);
        }
#endif
        for (; i < count; ++i) to[i] = to[i] < from[i] ? from[i] : to[i];
    }
    void join_elsewhere(const clocks_of_clusters& others) {
        clocks_of_clusters sum = elsewhere_ == nullptr ? clocks_of_clusters{} : *elsewhere_;
        add_all(sum, others);
        elsewhere_ = std::make_shared<const clocks_of_clusters>(std::move(sum));
    }

    // (No vector, which tests that are hardly optimised fill element by element.)
    std::unique_ptr<std::uint32_t[]> moments_;
    std::size_t count_ = 0;
    std::shared_ptr<const clocks_of_clusters> elsewhere_;
};

}}  // namespace mp::simt::detail
