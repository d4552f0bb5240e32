// SPDX-License-Identifier: MIT
/// \file
/// Which elements dropout drops: a function of seed and index.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/format/operations.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// What decides which elements dropout() drops. The gradient takes the same options as the forward pass.
struct dropout_options {
    /// How likely an element is to be dropped, from 0 to 1.
    float probability = 0.5F;
    /// Names the stream of random bits.
    std::uint64_t seed = 0;
    /// Where in the stream the bits of element (0, 0) are. A later call that needs other bits adds
    /// rows * columns to it.
    std::uint64_t offset = 0;
    /// Added to offset if it is not null, and read when the op runs: memory of the executor. So a step that
    /// is captured into a graph drops other elements each time that it is launched, if the number has changed.
    const std::uint64_t* added_offset = nullptr;
};

}}  // namespace mp::ops

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Where the bits of the first element are, for an executor whose memory the host reads.
[[nodiscard]] inline std::uint64_t dropout_offset(const ops::dropout_options& options) {
    return options.offset + (options.added_offset == nullptr ? 0 : *options.added_offset);
}

/// The mask of dropout, and what the elements that it keeps are multiplied by.
struct dropout_mask {
    std::uint64_t seed;
    std::uint64_t
        threshold;  ///< dropped are the words below this: probability times 2^32, to the nearest integer
    double scale;   ///< 1 / (1 - probability); 0 where all is dropped

    explicit dropout_mask(const ops::dropout_options& options)
        : seed(options.seed),
          threshold(threshold_of(options.probability)),
          scale(scale_of(options.probability)) {}

    [[nodiscard]] bool drops_any() const { return threshold != 0; }

    /// What becomes of an element with this random word: a product that is rounded to Real, float or double,
    /// once where the scale is a power of two.
    template <class Real>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE Real applied(Real value, std::uint32_t word) const {
#if MP_DEVICE_CODE
        const Real kept = float_from_double(double_multiply(double_from_float(value), scale));
#else
        const auto kept = as<Real>(as<double>(value) * scale);
#endif
        return word < threshold ? Real{0} : kept;
    }

private:
    static std::uint64_t threshold_of(float probability) {
        // A float times a power of two plus 1/2 is exact in double, so that cutting off rounds it.
        return static_cast<std::uint64_t>(  // NOLINT(bugprone-incorrect-roundings)
            static_cast<double>(probability) * 0x1p32 + 0.5);
    }
    static double scale_of(float probability) {
        const auto p = static_cast<double>(probability);
        return p < 1 ? double_divide(1.0, 1 - p) : 0.0;
    }
};

inline void check_dropout_probability(std::string_view function, std::string_view argument,
                                      float probability) {
    if (!isfinite(probability) || !(probability >= 0.0F && probability <= 1.0F)) {
        throw_argument(function, argument, probability, "must be from 0 to 1");
    }
}

}}  // namespace mp::detail
