// SPDX-License-Identifier: MIT
/// \file
/// The scale of a block and the codes of its elements, for kernels: the bits of <mp/arrays/convert/block_scale.hpp>
/// and <mp/arrays/convert/block_quantizer.hpp>, by single operations where these are exact, and by the same exact
/// arithmetic where they are not.
#pragma once

#include <mp/arrays/convert/block_quantizer.hpp>
#include <mp/arrays/convert/block_scale.hpp>
#include <mp/arrays/convert/kernels/block_kernels.hpp>
#include <mp/numbers/format/binary_conversion.hpp>
#include <mp/numbers/format/convert_scalar.hpp>
#include <mp/numbers/format/exact_arithmetic.hpp>
#include <mp/numbers/rules/float_functions.hpp>

#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// scale_code() for a finite amax that is not zero. The quotient is rounded to double before it is rounded to
/// a scale, which is innocuous: see scale_quotient_codes() of the CPU's kernels.
template <class Element, class Scale>
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE std::uint8_t float_scale_code(
    std::uint32_t magnitude, float tensor_scale, const block_scaling& scaling,
    double max = to_double<coding_format<Element>>(layout_of<coding_format<Element>>::max_finite_code)) {
    using format = typename Scale::format;
    const double quotient =
        double_from_float(bit_cast<float>(magnitude)) / (max * double_from_float(tensor_scale));
    const auto code =
        static_cast<std::uint8_t>(from_native<format>(quotient, scale_projection(scaling.rule)));
    return code < scaling.smallest ? scaling.smallest : code;
}

/// The scale of a block from its largest magnitude.
template <class BlockScaled>
struct block_scale_choice {
    using element = typename BlockScaled::element_type;
    using scale = typename BlockScaled::scale_type;

    block_scaling scaling;
    std::uint8_t infinite_code;  ///< of the scale of a block with an infinity
    bool by_element;             ///< whether infinities and NaN have no effect on the scale

    explicit block_scale_choice(const quantize_options& options)
        : scaling{chosen_rule<BlockScaled>(options.rule), smallest_scale_code<scale>(options.scale_floor),
                  has_separate_scales(options)},
          by_element(options.nonfinite == nonfinite_handling::by_element) {
        using layout = layout_of<typename scale::format>;
        if (options.nonfinite == nonfinite_handling::nan_scale) {
            infinite_code = static_cast<std::uint8_t>(layout::nan_code);
        } else if constexpr (BlockScaled::has_tensor_scale) {
            infinite_code = static_cast<std::uint8_t>(layout::max_finite_code);
        } else {
            infinite_code = static_cast<std::uint8_t>(infinite_scale_exponent<element>(scaling.rule) + 127);
        }
    }

    /// The magnitude code that counts for the scale.
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE std::uint32_t magnitude(float x) const {
        const std::uint32_t code = bit_cast<std::uint32_t>(x) & 0x7FFF'FFFFU;
        return by_element && code >= 0x7F80'0000U ? 0 : code;
    }
    /// The code of the scale for the largest of these.
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE std::uint8_t code(std::uint32_t largest,
                                                                    float tensor) const {
        constexpr std::uint32_t infinity = 0x7F80'0000U;
        if (largest > infinity) return static_cast<std::uint8_t>(layout_of<typename scale::format>::nan_code);
        if (largest == infinity) return infinite_code;
        if constexpr (BlockScaled::has_tensor_scale) {
            if (largest == 0) return scaling.smallest;
            return float_scale_code<element, scale>(largest, tensor, scaling);
        } else {
            return static_cast<std::uint8_t>(
                single_lane::scale_exponent_codes<coding_format<element>>(largest, scaling.rule));
        }
    }
};

/// x rounded to the nearest element, ties to even; finite x beyond the largest element becomes that.
template <class Element>
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE std::uint8_t nearest_element_code(float x) {
    using format = coding_format<Element>;
    constexpr std::uint32_t largest =
        convert_bits<formats::binary32, format>(layout_of<format>::max_finite_code, projection{});
    const auto bits = bit_cast<std::uint32_t>(x);
    const std::uint32_t magnitude = bits & 0x7FFF'FFFFU;
    const std::uint32_t limited = (magnitude < largest ? magnitude : largest) | (bits & 0x8000'0000U);
    return element_coding<Element>::from_code(
        static_cast<std::uint8_t>(narrow_nearest_even<format>(bit_cast<float>(limited))));
}

/// scale * tensor scale as significand * 2^exponent, and in the forms that short cuts need.
template <class Element, class Scale>
struct block_divisor {
    using format = coding_format<Element>;
    static constexpr bool is_power = is_power_of_two_scale<Scale>;
    static constexpr int thresholds = 8;
    /// Whether midpoints between elements are few enough to compare with.
    static constexpr bool has_thresholds = !is_power && layout_of<format>::max_finite_code < thresholds;

    std::uint64_t significand = 1;
    int exponent = 0;
    float factor = 1;                       ///< powers of two: 2^-exponent
    std::uint32_t beyond[thresholds] = {};  ///< others: magnitudes above which the next code begins
    bool has_beyond = false;

    MP_HOST_DEVICE MP_ALWAYS_INLINE block_divisor(std::uint8_t scale_code, float tensor_scale) {
        if constexpr (is_power) {
            exponent = static_cast<int>(scale_code) - 127;
            factor = power_of_two_scale(254U - scale_code);
        } else {
            const exact_value scale = unpack<typename Scale::format>(scale_code);
            const exact_value tensor = unpack<formats::binary32>(bit_cast<std::uint32_t>(tensor_scale));
            significand = scale.significand * tensor.significand;
            exponent = scale.exponent + tensor.exponent;
            if constexpr (has_thresholds) {
                has_beyond = quantizes_with(tensor_scale);
                const double product = double_from_float(tensor_scale) *
                                       double_from_float(static_cast<float>(Scale::from_bits(scale_code)));
                constexpr element_midpoints<format> midpoints;
                constexpr int count = midpoints.count;
                MP_UNROLL
                for (int k = 0; k < count; ++k) {
                    const auto bits = bit_cast<std::uint64_t>(midpoint(k) * product);  // exact
                    beyond[k] = static_cast<std::uint32_t>(
                        single_lane::rounding_threshold(bits, std::uint64_t{k % 2 == 1}));
                    if (significand == 0) beyond[k] = 0x7F7F'FFFFU;
                }
            }
        }
    }

    /// Whether nearest() may be called: the code of a finite x, to nearest even, saturating.
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE bool has_nearest() const { return is_power || has_beyond; }
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE std::uint8_t nearest(float x) const {
        if constexpr (is_power) {
            // Exact, or far below half the quantum of the elements.
            return nearest_element_code<Element>(float_multiply(x, factor));
        } else {
            const auto bits = bit_cast<std::uint32_t>(x);
            const std::uint32_t magnitude = bits & 0x7FFF'FFFFU;
            std::uint32_t code = 0;
            MP_UNROLL
            for (int k = 0; k < static_cast<int>(layout_of<format>::max_finite_code); ++k) {
                if (k < thresholds) code += magnitude > beyond[k] ? 1U : 0U;
            }
            const std::uint32_t sign = (bits >> 31) << layout_of<format>::magnitude_bits;
            if (format::nans == nan_encoding::negative_zero && code == 0) return 0;
            return static_cast<std::uint8_t>(code | sign);
        }
    }

    /// The code of any x by any projection: the definition. Apart from the members, so that these stay in
    /// registers.
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE std::uint8_t exactly(float x, const projection& p) const {
        return divided_exactly(x, significand, exponent, p);
    }

private:
    [[nodiscard]] MP_HOST_DEVICE MP_NEVER_INLINE static std::uint8_t divided_exactly(float x,
                                                                                     std::uint64_t by,
                                                                                     int by_exponent,
                                                                                     projection p) {
        return quotient_code<Element, Scale>(x, by, by_exponent, p);
    }

    /// Between codes k and k + 1, by arithmetic that a device does while it compiles.
    [[nodiscard]] MP_HOST_DEVICE static constexpr double midpoint(int k) {
        constexpr element_midpoints<format> midpoints;
        return midpoints.values[k];
    }
};

}}  // namespace mp::detail
