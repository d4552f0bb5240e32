// SPDX-License-Identifier: MIT
/// \file
/// Many arrays as one stretch of work, shared among threads so that where an array is cut never changes a
/// result.
#pragma once

#include <mp/base/parallel.hpp>
#include <mp/executor.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// The sizes of the arrays of an optimizer, and where each would begin if they lay one after the other.
class parameter_layout {
public:
    /// Arrays are cut only at multiples of this many elements: whole groups of random bits, whole blocks of a
    /// sum, and no cache line with two writers in arrays that begin on one.
    static constexpr std::size_t chunk = 4096;

    parameter_layout() = default;
    /// The other layout is then empty.
    MP_ALWAYS_INLINE parameter_layout(parameter_layout&& other) noexcept { swap(other); }
    MP_ALWAYS_INLINE parameter_layout& operator=(parameter_layout&& other) noexcept {
        parameter_layout moved(std::move(other));
        swap(moved);
        return *this;
    }
    parameter_layout(const parameter_layout&) = default;
    parameter_layout& operator=(const parameter_layout&) = default;
    ~parameter_layout() = default;

    /// Appends an array.
    MP_ALWAYS_INLINE void add(std::size_t size) {
        offsets_.push_back(total_);
        first_chunks_.push_back(chunks_);
        total_ += size;
        chunks_ += (size + chunk - 1) / chunk;
    }

    [[nodiscard]] MP_ALWAYS_INLINE std::size_t total() const noexcept { return total_; }
    [[nodiscard]] MP_ALWAYS_INLINE std::size_t offset(std::size_t array) const noexcept {
        return offsets_[array];
    }

    /// Chunks of all arrays, and the number of the first one of an array.
    [[nodiscard]] MP_ALWAYS_INLINE std::size_t chunks() const noexcept { return chunks_; }
    [[nodiscard]] MP_ALWAYS_INLINE std::size_t first_chunk(std::size_t array) const noexcept {
        return first_chunks_[array];
    }

    /// The array in which element `at` < total() of them all lies.
    [[nodiscard]] MP_ALWAYS_INLINE std::size_t array_at(std::size_t at) const noexcept {
        const auto after = std::upper_bound(offsets_.begin(), offsets_.end(), at);
        return static_cast<std::size_t>(after - offsets_.begin()) - 1;
    }

    /// Calls f(array, first, last) on chunks [first, last), none of them empty, that cover all arrays: in
    /// order, or on several threads if each gets `grain` elements or more.
    template <class Function>
    void for_each_chunk(cpu exec, std::size_t grain, Function&& f) const {
        const auto cut = [this](std::size_t at) {
            if (at >= total_) return total_;
            const std::size_t begin = offsets_[array_at(at)];
            return begin + (at - begin) / chunk * chunk;
        };
        parallel_for(exec, total_, grain, [&](std::size_t begin, std::size_t end) {
            begin = cut(begin);
            end = cut(end);
            if (begin == end) return;
            for (std::size_t i = array_at(begin); i < offsets_.size() && offsets_[i] < end; ++i) {
                const std::size_t array_end = i + 1 < offsets_.size() ? offsets_[i + 1] : total_;
                const std::size_t first = (std::max)(begin, offsets_[i]);
                const std::size_t last = (std::min)(end, array_end);
                if (first < last) f(i, first - offsets_[i], last - offsets_[i]);
            }
        });
    }

private:
    MP_ALWAYS_INLINE void swap(parameter_layout& other) noexcept {
        offsets_.swap(other.offsets_);
        first_chunks_.swap(other.first_chunks_);
        std::swap(total_, other.total_);
        std::swap(chunks_, other.chunks_);
    }

    std::vector<std::size_t> offsets_;
    std::vector<std::size_t> first_chunks_;
    std::size_t total_ = 0;
    std::size_t chunks_ = 0;
};

}}  // namespace mp::detail
