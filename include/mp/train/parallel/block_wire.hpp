// SPDX-License-Identifier: MIT
/// \file
/// Gradients between ranks in 8 bits: blocks of 32 with a power of two each, and what rounding has lost is sent
/// with the next gradients (error feedback).
#pragma once

#include <mp/base/array_share.hpp>
#include <mp/bfloat16.hpp>
#include <mp/config.hpp>
#include <mp/executor.hpp>
#include <mp/train/parallel/bucket_plan.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <span>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Elements that share a scale on the wire, as in MXFP8.
inline constexpr std::size_t wire_block = 32;

/// A bucket that travels in blocks. A part of n elements is in MXFP8: n codes of float8_e4m3fn, then a scale of E8M0
/// for each 32 of them, the largest power of two below which nothing overflows. A block with an infinity or a NaN has
/// the scale NaN.
class block_bucket {
public:
    using gradient_bucket = detail::gradient_bucket<cpu>;

    /// \param self         this rank
    /// \param sum_travels  whether the sum of this rank's part is encoded and sent to the others, too
    block_bucket(const gradient_bucket& bucket, std::size_t self, bool sum_travels);
    block_bucket(block_bucket&&) noexcept;
    ~block_bucket();

    /// The bytes of a part.
    static constexpr MP_ALWAYS_INLINE std::size_t bytes(std::size_t elements) {
        return elements + (elements + wire_block - 1) / wire_block;
    }

    /// Packs part `rank` of the gradients and what is left of the last ones, times `factor`.
    void pack(cpu exec, const gradient_bucket& bucket, std::size_t rank, float factor, std::byte* to);

    /// The sum of the parts of all ranks, `stride` bytes apart: to `packed`, or to the gradients where that is
    /// null.
    void sum(cpu exec, const gradient_bucket& bucket, const std::byte* from, std::size_t stride,
             std::size_t ranks, bool mean, float factor, std::byte* packed);

    /// Writes part `rank` of the gradients.
    void unpack(cpu exec, const gradient_bucket& bucket, std::size_t rank, const std::byte* from) const;

    /// Whether a part of `count` elements is finite.
    static bool is_finite(const std::byte* from, std::size_t count);

    /// Adds the squares of the gradients that were packed last, and of what of them was not sent.
    void add_squares(std::array<double, 2>& sums) const;

    /// The step counts: what it has lost comes with the next.
    void commit();

    /// Names what has been lost; on other ranks there is as much.
    template <class Visitor>
    MP_ALWAYS_INLINE void visit_state(Visitor& visitor) {
        visitor("sent", array_share(residual(false), self_ * elements_, ranks_ * elements_, true));
        if (sums_travel_) visitor("summed", array_share(residual(true), begin_, elements_, true));
    }

private:
    struct state;

    /// What has been lost of the gradients of this rank, or of the sums of its part.
    [[nodiscard]] std::span<bfloat16> residual(bool of_sums) const;

    std::size_t self_;
    std::size_t ranks_;
    std::size_t elements_;
    std::size_t begin_;  // of this rank's part
    bool sums_travel_;
    std::shared_ptr<state> state_;
};

}}  // namespace mp::detail

#if MP_CORE_BODIES
#include <mp/train/parallel/block_wire_functions.hpp>
#endif
