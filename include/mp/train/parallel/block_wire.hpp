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

#if MP_CORE_BODIES
#include <mp/arrays/convert/bulk.hpp>
#include <mp/base/instruction_set.hpp>
#include <mp/base/parallel.hpp>
#include <mp/float8.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/elementwise.hpp>
#include <mp/numbers/rules/quantised_operand.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>
#endif

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
namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// The codes and scales of parts.
struct block_codes {
    /// Elements at a time: whole blocks, in the first-level cache.
    static constexpr std::size_t chunk = 2048;
    static constexpr auto nan = std::byte{255};

    /// Codes of up to a chunk of values, whose blocks begin at the first.
    static void encode(instruction_set isa, std::span<const float> values, std::byte* codes,
                       std::byte* scales) {
        alignas(64) std::array<float, chunk> scaled;
        for (std::size_t first = 0, b = 0; first < values.size(); first += wire_block, ++b) {
            const std::size_t count = (std::min)(wire_block, values.size() - first);
            const largest_magnitudes largest = magnitudes_of(isa, values.data() + first, count);
            const bool finite = largest.all < 0x7f80'0000U;
            const int exponent = finite ? scale_exponent_for<float8_e4m3fn>(largest.finite) : 0;
            scales[b] = finite ? static_cast<std::byte>(127 - exponent) : nan;
            if (finite) {
                scale_floats(isa, count, scaled.data() + first, values.data() + first,
                             power_of_two_float(exponent));
            } else {
                std::fill_n(scaled.data() + first, count, 0.0F);
            }
        }
        convert_nearest(isa, scaled.data(), reinterpret_cast<float8_e4m3fn*>(codes), values.size());
    }
    /// The values of codes; NaN where the scale is.
    static void decode(instruction_set isa, const std::byte* codes, const std::byte* scales,
                       std::span<float> values) {
        widen_to_float(isa, reinterpret_cast<const float8_e4m3fn*>(codes), values.data(), values.size());
        for (std::size_t first = 0, b = 0; first < values.size(); first += wire_block, ++b) {
            const std::size_t count = (std::min)(wire_block, values.size() - first);
            float* const at = values.data() + first;
            if (scales[b] == nan) {
                std::fill_n(at, count, std::numeric_limits<float>::quiet_NaN());
            } else {
                scale_floats(isa, count, at, at, power_of_two_float(static_cast<int>(scales[b]) - 127));
            }
        }
    }
};

/// The residuals of error feedback: what rounding has lost, to be added to the values of the next step.
struct block_feedback {
    std::vector<bfloat16> residual;  ///< what has been lost, in the scale of the last step
    std::vector<bfloat16> next;      ///< and what will be, if this step counts

    explicit block_feedback(std::size_t elements) : residual(elements), next(elements) {}

    /// values += factor * residual.
    void add_to(instruction_set isa, std::size_t first, float factor, std::span<float> values) const {
        alignas(64) std::array<float, block_codes::chunk> lost;
        widen_to_float(isa, residual.data() + first, lost.data(), values.size());
        for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] = float_add(values[i], float_multiply(factor, lost[i]));
        }
    }

    /// next = values - sent.
    ///
    /// \returns the sums of squares of values and of next
    std::array<double, 2> keep(instruction_set isa, std::size_t first, std::span<float> values,
                               std::span<const float> sent) {
        std::array<double, 2> squares{};
        const auto add_square = [](double& sum, float x) {
            const auto wide = static_cast<double>(x);
            sum = double_add(sum, double_multiply(wide, wide));
        };
        for (std::size_t i = 0; i < values.size(); ++i) {
            add_square(squares[0], values[i]);
            values[i] = float_subtract(values[i], sent[i]);
            add_square(squares[1], values[i]);
        }
        convert_nearest(isa, values.data(), next.data() + first, values.size());
        return squares;
    }
    void commit() { std::swap(residual, next); }
};

struct block_bucket::state {
    block_feedback sent;    ///< of the gradients of this rank
    block_feedback summed;  ///< of the sums of its part
    /// Of chunks, see add_squares; a part of n elements has at most n / chunk + 1 of them.
    std::vector<std::array<double, 2>> squares;
};

template <class Byte>
Byte* wire_scales(Byte* part, std::size_t count, std::size_t first) {
    return part + count + first / wire_block;
}

template <class Function>
void for_block_chunks(cpu exec, std::size_t count, const Function& f) {
    constexpr std::size_t chunk = block_codes::chunk;
    const instruction_set isa = isa_of("mp::gradient_reduction", exec);
    parallel_for(exec, (count + chunk - 1) / chunk, 8, [&](std::size_t begin, std::size_t end) {
        const default_floating_point_modes modes;
        for (std::size_t at = begin; at < end; ++at) {
            f(isa, at * chunk, (std::min)(chunk, count - at * chunk));
        }
    });
}

inline void read_floats(const gradient_bucket<cpu>& bucket, std::size_t first, std::span<float> to) {
    bucket.for_memory(first, first + to.size(), [&](const std::byte* from, std::size_t at, std::size_t n) {
        bucket.codec.to_floats(from, to.data() + at, n);
    });
}
inline void write_floats(const gradient_bucket<cpu>& bucket, std::size_t first, std::span<const float> from) {
    bucket.for_memory(first, first + from.size(), [&](std::byte* to, std::size_t at, std::size_t n) {
        bucket.codec.from_floats(from.data() + at, to, n);
    });
}

MP_CORE_FUNCTION block_bucket::block_bucket(const gradient_bucket& bucket, std::size_t self, bool sum_travels)
    : self_(self),
      ranks_(bucket.cuts.size() - 1),
      elements_(bucket.elements),
      begin_(bucket.cuts[self]),
      sums_travel_(sum_travels),
      state_(std::make_shared<state>(
          state{block_feedback(bucket.elements),
                block_feedback(sum_travels ? bucket.cuts[self + 1] - bucket.cuts[self] : 0),
                std::vector<std::array<double, 2>>(bucket.elements / block_codes::chunk + 2 * ranks_)})) {}

MP_CORE_FUNCTION block_bucket::block_bucket(block_bucket&&) noexcept = default;
MP_CORE_FUNCTION block_bucket::~block_bucket() = default;

MP_CORE_FUNCTION void block_bucket::pack(cpu exec, const gradient_bucket& bucket, std::size_t rank,
                                         float factor, std::byte* to) {
    constexpr std::size_t chunk = block_codes::chunk;
    const std::size_t begin = bucket.cuts[rank], count = bucket.cuts[rank + 1] - begin;
    for_block_chunks(exec, count, [&](instruction_set isa, std::size_t first, std::size_t n) {
        alignas(64) std::array<float, chunk> values;
        alignas(64) std::array<float, chunk> back;
        const std::span<float> v = std::span(values).first(n);
        read_floats(bucket, begin + first, v);
        state_->sent.add_to(isa, begin + first, factor, v);
        block_codes::encode(isa, v, to + first, wire_scales(to, count, first));
        block_codes::decode(isa, to + first, wire_scales(to, count, first), std::span(back).first(n));
        state_->squares[begin / chunk + 2 * rank + first / chunk] =
            state_->sent.keep(isa, begin + first, v, back);
    });
}

MP_CORE_FUNCTION void block_bucket::sum(cpu exec, const gradient_bucket& bucket, const std::byte* from,
                                        std::size_t stride, std::size_t ranks, bool mean, float factor,
                                        std::byte* packed) {
    constexpr std::size_t chunk = block_codes::chunk;
    const std::size_t begin = bucket.cuts[self_], count = bucket.cuts[self_ + 1] - begin;
    const auto divisor = static_cast<float>(ranks);
    for_block_chunks(exec, count, [&](instruction_set isa, std::size_t first, std::size_t n) {
        alignas(64) std::array<float, chunk> total;
        alignas(64) std::array<float, chunk> term;
        const std::span<float> v = std::span(total).first(n);
        for (std::size_t r = 0; r < ranks; ++r) {
            const std::byte* const part = from + r * stride;
            const std::span<float> t = std::span(r == 0 ? total : term).first(n);
            block_codes::decode(isa, part + first, wire_scales(part, count, first), t);
            for (std::size_t i = 0; r != 0 && i < n; ++i) v[i] = float_add(v[i], t[i]);
        }
        for (std::size_t i = 0; mean && i < n; ++i) v[i] = float_divide(v[i], divisor);
        if (packed == nullptr) {
            write_floats(bucket, begin + first, v);
            return;
        }
        state_->summed.add_to(isa, first, factor, v);
        block_codes::encode(isa, v, packed + first, wire_scales(packed, count, first));
        block_codes::decode(isa, packed + first, wire_scales(packed, count, first), std::span(term).first(n));
        static_cast<void>(state_->summed.keep(isa, first, v, std::span(term).first(n)));
    });
}

MP_CORE_FUNCTION void block_bucket::unpack(cpu exec, const gradient_bucket& bucket, std::size_t rank,
                                           const std::byte* from) const {
    constexpr std::size_t chunk = block_codes::chunk;
    const std::size_t begin = bucket.cuts[rank], count = bucket.cuts[rank + 1] - begin;
    for_block_chunks(exec, count, [&](instruction_set isa, std::size_t first, std::size_t n) {
        alignas(64) std::array<float, chunk> values;
        const std::span<float> v = std::span(values).first(n);
        block_codes::decode(isa, from + first, wire_scales(from, count, first), v);
        write_floats(bucket, begin + first, v);
    });
}

MP_CORE_FUNCTION bool block_bucket::is_finite(const std::byte* from, std::size_t count) {
    const std::byte* const scales = from + count;
    const std::size_t blocks = (count + wire_block - 1) / wire_block;
    return std::find(scales, scales + blocks, block_codes::nan) == scales + blocks;
}

MP_CORE_FUNCTION void block_bucket::add_squares(std::array<double, 2>& sums) const {
    for (const std::array<double, 2>& it : state_->squares) {
        sums[0] = double_add(sums[0], it[0]);
        sums[1] = double_add(sums[1], it[1]);
    }
}

MP_CORE_FUNCTION void block_bucket::commit() {
    state_->sent.commit();
    state_->summed.commit();
}

MP_CORE_FUNCTION std::span<bfloat16> block_bucket::residual(bool of_sums) const {
    return of_sums ? state_->summed.residual : state_->sent.residual;
}

}}  // namespace mp::detail
#endif
