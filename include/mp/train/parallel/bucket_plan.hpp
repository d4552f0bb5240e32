// SPDX-License-Identifier: MIT
/// \file
/// Gradients in buckets that are reduced one by one, and the share of every rank in them.
#pragma once

#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/nn/optim/parameter.hpp>
#include <mp/nn/scaling/unscale.hpp>
#include <mp/train/parallel/wire_codec.hpp>
#include <mp/train/training/parameter_store.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mp::detail {

/// A parameter that takes part in a reduction.
struct reduced_parameter {
    std::string name;
    std::size_t elements;
    std::uintptr_t begin;  ///< address of its gradient
    std::uintptr_t end;
    std::size_t bucket;
};

/// A stretch of gradients, in memory and in its bucket, in elements.
struct gradient_segment {
    std::byte* data;
    std::size_t first;
    std::size_t count;
};

/// Gradients of one type that are reduced together.
template <class Executor>
struct gradient_bucket {
    wire_codec<Executor> codec;
    std::vector<gradient_segment> segments;
    std::vector<std::size_t> cuts;  ///< elements: rank r has [cuts[r], cuts[r + 1])
    std::size_t elements = 0;
    std::size_t parameters = 0;

    /// Calls f(memory, first of the range, count) on the gradients of a range of elements.
    template <class Function>
    MP_ALWAYS_INLINE void for_memory(std::size_t begin, std::size_t end, Function f) const {
        for (const gradient_segment& it : segments) {
            const std::size_t first = (std::max)(begin, it.first);
            const std::size_t last = (std::min)(end, it.first + it.count);
            if (first < last) {
                f(it.data + (first - it.first) * codec.gradient_size, first - begin, last - first);
            }
        }
    }
};

}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// All gradients of a model in buckets: whole parameters, the last ones first, as backward passes make them.
template <class Executor>
class bucket_plan {
public:
    using bucket = gradient_bucket<Executor>;

    bucket_plan(std::string_view function, int ranks, wire_format wire, std::size_t bucket_bytes)
        : function_(function), ranks_(static_cast<std::size_t>(ranks)), wire_(wire), bytes_(bucket_bytes) {}

    /// Adds the parameters of a store. What is between them, zeros, travels with them, so that a bucket is one
    /// stretch of memory.
    template <class Weight, class Gradient>
    void add(const parameter_store<Weight, Gradient>& store) {
        add_parameters<Gradient>(store.parameters(), true);
    }
    /// Adds parameters that lie anywhere.
    template <class Weight, class Gradient>
    void add(std::span<const parameter<Weight, Gradient>> added) {
        add_parameters<Gradient>(std::vector(added.begin(), added.end()), false);
    }
    template <class Weight, class Gradient>
    void add(const std::vector<parameter<Weight, Gradient>>& added) {
        add_parameters<Gradient>(added, false);
    }

    /// Ends the plan.
    void finish() {
        std::vector<std::vector<std::size_t>> starts = std::move(starts_);
        for (std::size_t b = 0; b < buckets.size(); ++b) cut(buckets[b], starts[b]);
        by_address_.resize(parameters.size());
        for (std::size_t i = 0; i < by_address_.size(); ++i) by_address_[i] = i;
        std::sort(by_address_.begin(), by_address_.end(),
                  [this](std::size_t a, std::size_t b) { return parameters[a].begin < parameters[b].begin; });
        std::size_t before = no_index;
        for (const std::size_t i : by_address_) {
            if (parameters[i].elements == 0) continue;
            if (before != no_index && parameters[before].end > parameters[i].begin) {
                throw_argument(
                    function_, "parameters", parameters[i].name,
                    "must be named once: its gradient overlaps that of '" + parameters[before].name + "'");
            }
            before = i;
        }
    }

    /// The parameter whose gradient an address lies in, or no_index.
    [[nodiscard]] std::size_t parameter_at(const void* array) const noexcept {
        const auto address = reinterpret_cast<std::uintptr_t>(array);
        const auto after = std::upper_bound(
            by_address_.begin(), by_address_.end(), address,
            [this](std::uintptr_t value, std::size_t i) { return value < parameters[i].begin; });
        if (after == by_address_.begin()) return no_index;
        const std::size_t found = *(after - 1);
        return address < parameters[found].end ? found : no_index;
    }

    std::vector<reduced_parameter> parameters;
    std::vector<bucket> buckets;

private:
    /// \param contiguous  whether the gradients lie in one array, in their order, with zeros between them
    template <class Gradient, class Weight>
    void add_parameters(const std::vector<parameter<Weight, Gradient>>& added, bool contiguous) {
        check_parameters(function_, untyped_parameters_of(added), sizeof(Weight), sizeof(Gradient));
        const std::size_t most = (std::max<std::size_t>)(1, bytes_ / sizeof(Gradient));
        const std::size_t base = parameters.size();
        for (const auto& it : added) {
            const auto begin = reinterpret_cast<std::uintptr_t>(it.gradient.data());
            parameters.push_back({it.name, it.gradient.size(), begin, begin + it.gradient.size_bytes(), 0});
        }
        for (std::size_t last = added.size(); last != 0;) {
            std::size_t first = last;
            std::size_t elements = 0;
            while (first != 0 && (elements == 0 || elements + added[first - 1].gradient.size() <= most)) {
                elements += added[--first].gradient.size();
            }
            if (elements != 0) add_bucket(added, first, last, base, contiguous);
            last = first;
        }
    }

    template <class Weight, class Gradient>
    void add_bucket(const std::vector<parameter<Weight, Gradient>>& added, std::size_t first,
                    std::size_t last, std::size_t base, bool contiguous) {
        bucket added_bucket{codec_for<Executor, Gradient>(function_, wire_), {}, {}, 0, 0};
        std::vector<std::size_t> starts;
        for (std::size_t i = first; i < last; ++i) {
            const std::span<Gradient> gradient = added[i].gradient;
            if (gradient.empty()) continue;
            auto* const data = reinterpret_cast<std::byte*>(gradient.data());
            if (!added_bucket.segments.empty() && contiguous) {
                gradient_segment& before = added_bucket.segments.back();
                before.count = static_cast<std::size_t>(data - before.data) / sizeof(Gradient);
                added_bucket.elements = before.count;
            } else {
                added_bucket.segments.push_back({data, added_bucket.elements, 0});
            }
            starts.push_back(added_bucket.elements);
            added_bucket.segments.back().count += gradient.size();
            added_bucket.elements += gradient.size();
            ++added_bucket.parameters;
            parameters[base + i].bucket = buckets.size();
        }
        buckets.push_back(std::move(added_bucket));
        starts_.push_back(std::move(starts));
    }

    /// Shares of about equal size, cut only where a parameter begins or a whole chunk of one ends: what an
    /// optimizer does chunk by chunk is the same for a share.
    void cut(bucket& of, const std::vector<std::size_t>& starts) const {
        constexpr std::size_t chunk = parameter_layout::chunk;
        of.cuts.assign(1, 0);
        for (std::size_t rank = 1; rank < ranks_; ++rank) {
            const std::size_t wanted = of.elements / ranks_ * rank + of.elements % ranks_ * rank / ranks_;
            const std::size_t after = static_cast<std::size_t>(
                std::upper_bound(starts.begin(), starts.end(), wanted) - starts.begin());
            const std::size_t start = starts[after - 1];
            const std::size_t end = after < starts.size() ? starts[after] : of.elements;
            const std::size_t below = start + (wanted - start) / chunk * chunk;
            const std::size_t above = (std::min)(end, below + chunk);
            const std::size_t nearest = wanted - below <= above - wanted ? below : above;
            of.cuts.push_back((std::max)(nearest, of.cuts.back()));
        }
        of.cuts.push_back(of.elements);
    }

    std::string_view function_;
    std::size_t ranks_;
    wire_format wire_;
    std::size_t bytes_;
    std::vector<std::vector<std::size_t>> starts_;  // of the parameters of each bucket
    std::vector<std::size_t> by_address_;
};

}}  // namespace mp::detail
