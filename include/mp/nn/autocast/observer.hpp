// SPDX-License-Identifier: MIT
/// \file
/// The observer of a call in a region: the cache and the cast_observer of the region.
#pragma once

#include <mp/nn/autocast/cast_cache.hpp>
#include <mp/nn/autocast/cast_observer.hpp>
#include <mp/nn/autocast/operand.hpp>
#include <mp/nn/autocast/types.hpp>
#include <mp/numbers/format/number_facts.hpp>
#include <mp/numbers/format/operations.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The facts of a format, for counting.
constexpr autocast::cast_target cast_target_of(const number_facts& type) {
    return {type.name, type.size, type.largest, type.smallest_normal, type.overflow};
}

}}  // namespace mp::detail

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

/// The facts of a format.
template <eligible To>
constexpr cast_target cast_target_of() {
    return detail::cast_target_of(detail::facts_v<To>);
}

}}  // namespace mp::autocast

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// The observer of a call in a region: its cache, and its cast_observer.
class region_observer {
public:
    MP_ALWAYS_INLINE region_observer(autocast::cast_cache* cache, autocast::cast_observer* told,
                                     const autocast::observed_call& call)
        : cache_(cache), told_(told), call_(call) {
        if (told_ != nullptr) call_.number = told_->called(call_);
    }

    MP_ALWAYS_INLINE autocast::cast_cache* cache() const { return cache_; }

    /// Whether casts are reported.
    MP_ALWAYS_INLINE bool observes() const { return told_ != nullptr; }
    /// Whether their numbers are. The functions below may be called only then.
    MP_ALWAYS_INLINE bool records() const { return told_ != nullptr && told_->reads_values(); }

    MP_ALWAYS_INLINE void multiplied(autocast::product_size size, std::string_view type) const {
        told_->multiplied(call_, size, type);
    }
    MP_ALWAYS_INLINE void cast(std::size_t index, autocast::cast_direction direction, std::string_view from,
                               std::size_t from_bytes, const autocast::cast_target& to,
                               std::span<const float> before, std::span<const float> after,
                               bool scaled) const {
        told_->cast(call_, index, direction, from, from_bytes, to, before, after, scaled);
    }
    MP_ALWAYS_INLINE void reused(std::size_t index, std::string_view from, std::string_view to,
                                 bool scaled) const {
        told_->reused(call_, index, from, to, scaled);
    }

    /// Tells when a cast begins and ends: while the object lives.
    class [[nodiscard]] watched_cast {
    public:
        MP_ALWAYS_INLINE watched_cast(const region_observer& observer, std::size_t index,
                                      autocast::cast_direction direction, std::size_t elements)
            : observer_(observer),
              index_(index),
              elements_(elements),
              begun_(observer.told_ == nullptr ? 0 : observer.told_->cast_begins()),
              direction_(direction) {}
        MP_ALWAYS_INLINE ~watched_cast() {
            if (observer_.told_ != nullptr) {
                observer_.told_->cast_ends(observer_.call_, index_, direction_, elements_, begun_);
            }
        }
        watched_cast(const watched_cast&) = delete;
        watched_cast& operator=(const watched_cast&) = delete;

    private:
        const region_observer& observer_;
        std::size_t index_;
        std::size_t elements_;
        std::int64_t begun_;
        autocast::cast_direction direction_;
    };

    MP_ALWAYS_INLINE void read(std::size_t index, const autocast::cast_target& type,
                               std::span<const float> values) const {
        told_->read(call_, index, type, values);
    }
    /// Values that the op reads without a cast.
    template <class Element, std::floating_point Value>
    MP_ALWAYS_INLINE void read(std::size_t index, std::span<const Value> values) const {
        if constexpr (autocast::eligible<Element>) {
            told_->read(call_, index, autocast::cast_target_of<Element>(), values);
        } else {
            look_at(index, values, autocast::value_origin::argument);
        }
    }

    /// Whether the first value that is not finite has still to be found.
    MP_ALWAYS_INLINE bool scans() const { return told_ != nullptr && told_->scans(); }

    /// Looks for the first value that is not finite.
    template <std::floating_point Value>
    MP_ALWAYS_INLINE void look_at(std::size_t index, std::span<const Value> values,
                                  autocast::value_origin origin) const {
        if (!scans()) return;
        std::size_t at = 0;
        while (at < values.size() && isfinite(values[at])) ++at;
        if (at < values.size()) told_->not_finite(call_, index, at, isnan(values[at]), origin);
    }

private:
    autocast::cast_cache* cache_;
    autocast::cast_observer* told_;
    autocast::observed_call call_;
};

}}  // namespace mp::detail
