// SPDX-License-Identifier: MIT
/// \file
/// Whether the ranks of a run are doing the same.
#pragma once

#include <mp/arrays/io/checksum.hpp>
#include <mp/base/bits.hpp>
#include <mp/error.hpp>
#include <mp/nn/scaling/reducer.hpp>
#include <mp/train/parallel/bucket_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// What a rank says beside the gradients that it sends, in every message that is packed.
struct agreement_record {
    std::uint64_t step = 0;
    std::uint32_t bucket = 0;
    float scale = 1.0F;
    /// 1 + the parameter whose gradient was written after it had been sent; 0 if all is well.
    std::uint64_t written_late = 0;
    std::uint64_t reduction = 0;  ///< which one it is, see gradient_reduction. The next part begins at a
                                  ///< multiple of 32 bytes from this one

    void write(std::byte* to) const noexcept { std::memcpy(to, this, sizeof *this); }
    static agreement_record read(const std::byte* from) noexcept {
        agreement_record result;
        std::memcpy(&result, from, sizeof result);
        return result;
    }

    /// What is wrong with a rank that says `other`; empty if nothing is.
    [[nodiscard]] std::string difference(const agreement_record& other, int rank) const {
        const std::string that = "rank " + std::to_string(rank);
        if (other.reduction != reduction) {
            return that +
                   " sends the gradients of another reduction; reductions whose passes overlap need a "
                   "communicator with channels, or one each";
        }
        if (other.step != step || other.bucket != bucket) {
            return that + " is at step " + std::to_string(other.step) + ", bucket " +
                   std::to_string(other.bucket) + ", and this rank at step " + std::to_string(step) +
                   ", bucket " + std::to_string(bucket);
        }
        if (bit_cast<std::uint32_t>(other.scale) != bit_cast<std::uint32_t>(scale)) {
            return "the loss scale is " + error_text(other.scale) + " on " + that + ", and " +
                   error_text(scale) + " on this rank";
        }
        return {};
    }
};
static_assert(sizeof(agreement_record) == 32);

/// Throws rank_error in the name of `function`, on all ranks, unless they have the same numbers, one by one:
/// describe(i) says what number i is.
template <class Describe>
void require_same_on_ranks(std::string_view function, std::span<const std::uint64_t> values,
                           const reducer_reference& reducer, Describe describe) {
    const std::vector<std::uint64_t> ranges = ranges_of_ranks(values, reducer);
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (ranges[2 * i] == ranges[2 * i + 1]) continue;
        throw_joined<rank_error>({function, ": the ranks differ: ", describe(i), " is ",
                                  error_text(values[i]), " on this rank, and from ",
                                  error_text(ranges[2 * i]), " to ", error_text(ranges[2 * i + 1]),
                                  " on all"});
    }
}

/// Throws rank_error, on all ranks, unless they reduce the same gradients in the same way.
template <class Executor>
void require_same_plan(std::string_view function, const bucket_plan<Executor>& plan,
                       std::span<const std::uint64_t> options, const reducer_reference& reducer) {
    std::vector<std::uint64_t> sizes(options.begin(), options.end());
    sizes.push_back(plan.parameters.size());
    sizes.push_back(plan.buckets.size());
    constexpr std::string_view names[] = {
        "size()",
        "options.wire",
        "options.bucket_bytes",
        "options.mean",
        "options.share_only",
        "options.compare_sent",
        "the number of its channel, which counts the reductions and sharded "
        "optimizers of the communicator,",
        "the number of parameters",
        "the number of buckets"};
    require_same_on_ranks(function, sizes, reducer, [&](std::size_t i) { return std::string(names[i]); });

    std::vector<std::uint64_t> values;
    for (const reduced_parameter& it : plan.parameters) {
        values.push_back(it.elements);
        values.push_back(crc64(it.name));
    }
    for (const auto& it : plan.buckets) {
        values.push_back(crc64(it.codec.gradient_type));
    }
    require_same_on_ranks(function, values, reducer, [&](std::size_t i) {
        if (i >= 2 * plan.parameters.size()) {
            return "the checksum of the type of the gradients in bucket " +
                   std::to_string(i - 2 * plan.parameters.size());
        }
        const reduced_parameter& it = plan.parameters[i / 2];
        return (i % 2 == 0 ? "the size of parameters[" : "the checksum of the name of parameters[") +
               std::to_string(i / 2) + "] ('" + it.name + "')";
    });
}

}}  // namespace mp::detail
