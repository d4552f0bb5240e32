// SPDX-License-Identifier: MIT
/// \file
/// The blocks of a matrix, quantised one after the other: options, scales and codes.
#pragma once

#include <mp/arrays/convert/block_vectors.hpp>
#include <mp/arrays/convert/kernels/block_quantize.hpp>
#include <mp/arrays/convert/number_range.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

namespace mp {

/// Treatment of blocks with infinities and NaNs.
enum class nonfinite_handling : unsigned char {
    /// One NaN makes the scale NaN, and thereby the whole block, as NaN spreads in
    /// arithmetic. An infinity counts as the largest magnitude: the scale becomes the largest that the rule
    /// gives (under floor and even as for 2^128), the other values shrink to little or nothing, and the
    /// infinite ones become what the element projection makes of them.
    propagate,
    /// The scale follows from the finite values alone; each other value becomes what the element projection
    /// makes of it. In a format without NaN that is the largest finite number.
    by_element,
    /// As propagate, but an infinity makes the scale NaN as well, as in torchao.
    nan_scale
};

/// Options of quantisation.
struct quantize_options {
    /// Rule that gives the scale of a block from its largest magnitude.
    scale_rule rule = scale_rule::standard;
    /// How value / scale is rounded to an element: once, from the exact quotient. What is too large becomes
    /// the largest finite number unless the projection says otherwise (OCP MX 1.0, section 6.3: clamped).
    /// With a stochastic rounding, `random_bits` of the projection says how many bits count, and its `random`
    /// is replaced by those of each element: mp::random_bits(seed, r * columns + c). Mind that
    /// mp::stochastic() does not saturate: elements that know NaN or infinity would overflow to it.
    projection element{rounding::nearest_even, saturation::finite};
    std::uint64_t seed = 0;
    block_direction direction = block_direction::along_rows;
    nonfinite_handling nonfinite = nonfinite_handling::propagate;
    /// For formats with a tensor scale: the scale to be used, or 0 to have it computed as
    /// amax / (largest scale * largest element), with the largest finite magnitude of the matrix; it is a
    /// normal float whatever amax is, and 1 for a matrix of zeros.
    float tensor_scale = 0;
    /// Smallest scale of a block, in formats whose scales are not powers of two.
    block_scale_floor scale_floor = block_scale_floor::smallest;
    /// Whether tiles of block x block elements share a scale, which is stored for each of their blocks, so that the
    /// matrix and its transpose have the same values (weights in Transformer Engine: 16 x 16). Tiles begin at the
    /// first vector; the last ones may have fewer rows or columns. The scale follows from the largest magnitude of
    /// the tile, under four_over_six_mse and four_over_six_mae from the errors of the tile, and NaN or infinity
    /// have effect on the whole tile. Formats need blocks of 16 or 32.
    bool square_tiles = false;
};

namespace detail { inline namespace MP_ISA_NAMESPACE {

/// The type in which values are looked at: float where it holds them all.
template <class Number>
using block_wide = std::conditional_t<exactly_representable_in<format_of_t<Number>, float>, float, double>;

template <class Wide>
using wide_format = typename native_format<Wide>::type;

/// Magnitude code of a wide value; infinity has wide_infinity, NaNs are larger.
template <class Wide>
constexpr auto magnitude_of(Wide x) noexcept {
    using layout = layout_of<wide_format<Wide>>;
    using word = typename layout::storage;
    return static_cast<word>(bit_cast<word>(x) & layout::magnitude_mask);
}
template <class Wide>
inline constexpr auto wide_infinity = layout_of<wide_format<Wide>>::infinity_code;

/// The largest magnitude code of some values, of the finite ones only if asked for.
template <std::size_t Count, class Wide>
auto largest_magnitude(const Wide* values) noexcept {
    // As signed integers, which compilers find the largest of in vectors; the highest bit is zero.
    using word = storage_of<wide_format<Wide>>;
    std::make_signed_t<word> largest = 0;
    for (std::size_t i = 0; i < Count; ++i) {
        const auto magnitude = static_cast<std::make_signed_t<word>>(magnitude_of(values[i]));
        largest = magnitude > largest ? magnitude : largest;
    }
    return static_cast<word>(largest);
}
template <class Wide>
auto largest_finite_magnitude(const Wide* values, std::size_t count) noexcept {
    auto largest = magnitude_of(Wide{0});
    for (std::size_t i = 0; i < count; ++i) {
        const auto magnitude = magnitude_of(values[i]);
        if (magnitude < wide_infinity<Wide> && magnitude > largest) largest = magnitude;
    }
    return largest;
}

/// A magnitude code as an exact value; zero has a significand of zero.
template <class Wide>
MP_HOST_DEVICE constexpr exact_value exact_magnitude(storage_of<wide_format<Wide>> code) noexcept {
    if (code == 0) return {false, 0, 0};
    return unpack<wide_format<Wide>>(code);
}

/// Rule that `standard` stands for, or the given one.
template <class BlockScaled>
constexpr scale_rule chosen_rule(scale_rule rule) noexcept {
    if (rule != scale_rule::standard) return rule;
    return BlockScaled::has_tensor_scale ? scale_rule::nearest : scale_rule::floor;
}

/// Whether four_over_six rules apply.
template <class BlockScaled>
inline constexpr bool has_four_over_six = BlockScaled::has_tensor_scale && [] {
    using layout = layout_of<coding_format<typename BlockScaled::element_type>>;
    return layout::max_finite_code == 7 && layout::fraction_bits == 1 && layout::max_exponent == 2;
}();

/// Throws argument_error unless the options are those of a format.
inline void check_quantize_options(std::string_view function, const quantize_options& options,
                                   bool has_tensor_scale, bool has_search, int block_size) {
    const auto reject_rule = [&](const char* name, const char* what) {
        throw_argument(function, "options.rule", name, what);
    };
    const scale_rule rule = options.rule;
    if (has_tensor_scale && (rule == scale_rule::torchao_rceil || rule == scale_rule::torchao_ceil)) {
        reject_rule(rule == scale_rule::torchao_rceil ? "torchao_rceil" : "torchao_ceil",
                    "must be a rule for scales that are not powers of two");
    }
    if (!has_search && is_four_over_six(rule)) {
        reject_rule(rule == scale_rule::four_over_six_mse ? "four_over_six_mse" : "four_over_six_mae",
                    "must not be used except for elements of E2M1 with scales that are not powers of two");
    }
    if (!has_tensor_scale && options.scale_floor != block_scale_floor::smallest) {
        throw_argument(function, "options.scale_floor",
                       options.scale_floor == block_scale_floor::normal ? "normal" : "none",
                       "must be smallest, as the scales of the format are powers of two");
    }
    if (options.square_tiles && block_size != 16 && block_size != 32) {
        throw_argument(function, "options.square_tiles", "true",
                       "must be false, as blocks have " + error_text(block_size) + " elements, not 16 or 32");
    }
    if (is_zero(options.tensor_scale)) return;
    if (!has_tensor_scale) {
        throw_argument(function, "options.tensor_scale", options.tensor_scale,
                       "must be 0, as the format has no tensor scale");
    }
    if (signbit(options.tensor_scale) || !isnormal(options.tensor_scale)) {
        throw_argument(function, "options.tensor_scale", options.tensor_scale,
                       "must be a positive normal float, or 0 to be computed");
    }
}
template <class BlockScaled>
void check_quantize_options(std::string_view function, const quantize_options& options) {
    check_quantize_options(function, options, BlockScaled::has_tensor_scale, has_four_over_six<BlockScaled>,
                           BlockScaled::block_size);
}

/// Whether scales are chosen in a pass of their own, before elements are encoded.
inline bool has_separate_scales(const quantize_options& options) noexcept {
    return options.square_tiles || is_four_over_six(options.rule);
}

/// The scale of a block in the forms in which it is needed.
template <class Scale>
struct chosen_scale {
    Scale scale;
    bool nan = false;
    bool plain = false;  ///< whether all values are finite
    /// scale * tensor scale as significand * 2^exponent; the significand of a power of two is 1.
    std::uint64_t significand = 1;
    int exponent = 0;
};

/// The code of x / (significand * 2^exponent), rounded once; the significand of a power of two is 1.
template <class Element, class Scale, class Wide>
MP_HOST_DEVICE constexpr std::uint8_t quotient_code(Wide x, std::uint64_t significand, int exponent,
                                                    const projection& p) {
    using wide = wide_format<Wide>;
    using format = coding_format<Element>;
    const auto bits = bit_cast<storage_of<wide>>(x);
    storage_of<format> code = 0;
    if (categorize<wide>(bits) != category::finite) {
        code = convert_bits<format, wide>(bits, p);
    } else if (!is_power_of_two_scale<Scale> && significand == 0) {
        code =
            convert_bits<format, wide>(static_cast<storage_of<wide>>(bits & layout_of<wide>::sign_mask), p);
    } else {
        exact_value value = unpack<wide>(bits);
        if constexpr (is_power_of_two_scale<Scale>) {
            value.exponent -= exponent;
        } else {
            value = divide_exact(value, significand, exponent);
        }
        code = round_and_pack<format>(value, p);
    }
    return element_coding<Element>::from_code(code);
}

/// Quantises chunk by chunk.
template <class BlockScaled, class Wide>
class block_quantizer {
public:
    using element = typename BlockScaled::element_type;
    using scale = typename BlockScaled::scale_type;
    using format = coding_format<element>;
    using chunk = block_chunk<BlockScaled::block_size>;
    static constexpr std::size_t block = static_cast<std::size_t>(BlockScaled::block_size);
    static constexpr bool has_power_of_two = is_power_of_two_scale<scale>;

    block_quantizer(const quantize_options& options, float tensor_scale)
        : options_(options),
          scaling_{chosen_rule<BlockScaled>(options.rule), smallest_scale_code<scale>(options.scale_floor),
                   has_separate_scales(options)},
          tensor_scale_(tensor_scale),
          fast_(MP_HARDWARE_FLOAT &&
                (options.element == projection{rounding::nearest_even, saturation::finite})) {}

    [[nodiscard]] const block_scaling& scaling() const noexcept { return scaling_; }

    /// Largest magnitude code among the values of a block that its scale follows from; `largest` is that of all.
    [[nodiscard]] auto amax(const Wide* values, storage_of<wide_format<Wide>> largest) const {
        const bool finite_only = options_.nonfinite == nonfinite_handling::by_element;
        return finite_only && largest >= wide_infinity<Wide> ? largest_finite_magnitude(values, block)
                                                             : largest;
    }

    /// Code of the scale under which amax, of this magnitude code, becomes the element `target`.
    [[nodiscard]] std::uint8_t scale_code_of(storage_of<wide_format<Wide>> largest,
                                             const exact_value& target = largest_of<format>) const {
        const bool infinite = largest == wide_infinity<Wide>;
        if (largest > wide_infinity<Wide> ||
            (infinite && options_.nonfinite == nonfinite_handling::nan_scale)) {
            return static_cast<std::uint8_t>(layout_of<typename scale::format>::nan_code);
        }
        const exact_value magnitude = infinite ? exact_value{} : exact_magnitude<Wide>(largest);
        if constexpr (has_power_of_two) {
            const int exponent = infinite       ? infinite_scale_exponent<element>(scaling_.rule)
                                 : largest == 0 ? -127
                                                : scale_exponent<element>(magnitude, scaling_.rule);
            return static_cast<std::uint8_t>(exponent + 127);
        } else {
            if (infinite)
                return static_cast<std::uint8_t>(layout_of<typename scale::format>::max_finite_code);
            if (largest == 0) return scaling_.smallest;
            return mp::detail::scale_code<element, scale>(magnitude, tensor_scale_, scaling_.rule,
                                                          scaling_.smallest, target);
        }
    }

    /// The codes of up to chunk::elements values, and the scales of their blocks, unless these are given.
    /// `first_index` is the index of the first one in the matrix, `index_stride` the distance to the next.
    void quantize(const Wide (&values)[chunk::padded], std::size_t count, std::uint64_t first_index,
                  std::uint64_t index_stride, std::uint8_t (&codes)[chunk::padded], scale* scales) const {
        chosen_scale<scale> chosen[chunk::blocks];
        const std::size_t blocks = (count + block - 1) / block;
        bool fast = fast_;
        for (std::size_t b = 0; b < blocks; ++b) {
            const auto largest = largest_magnitude<block>(values + b * block);
            if (!scaling_.given)
                scales[b] = scale::from_bits(scale_code_of(amax(values + b * block, largest)));
            chosen[b] = forms_of(scales[b], largest);
            fast = fast && chosen[b].plain;
        }
        if (fast) {
            if constexpr (has_power_of_two && std::is_same_v<Wide, float>) {
                bool in_float = true;
                for (std::size_t b = 0; b < blocks; ++b)
                    in_float = in_float && float_is_safe(chosen[b].exponent);
                if (in_float) return encode<float>(values, chosen, blocks, codes);
            }
            if constexpr (has_power_of_two || std::is_same_v<Wide, float>) {
                return encode<double>(values, chosen, blocks, codes);
            }
        }
        encode_exactly(values, count, first_index, index_stride, chosen, codes);
    }

private:
    /// A scale as it is needed for a block with this largest magnitude.
    chosen_scale<scale> forms_of(scale chosen, storage_of<wide_format<Wide>> largest) const {
        if (isnan(chosen)) return {chosen, true, false};
        const bool plain = largest < wide_infinity<Wide>;
        if constexpr (has_power_of_two) {
            return {chosen, false, plain, 1, static_cast<int>(chosen.bits()) - 127};
        } else {
            if (is_zero(chosen)) return {chosen, false, false, 0, 0};
            const exact_value value = unpack<typename scale::format>(chosen.bits());
            const exact_value tensor = unpack<formats::binary32>(bit_cast<std::uint32_t>(tensor_scale_));
            return {chosen, false, plain, value.significand * tensor.significand,
                    value.exponent + tensor.exponent};
        }
    }

    /// Whether value * 2^-exponent may be computed in float although the environment may flush subnormal
    /// operands and results. 2^-exponent must be a normal number; and what is subnormal before or after, less
    /// than 2^-126 or than 2^(-126 - exponent), must be less than half the quantum of the elements, so that
    /// it rounds to zero in any case.
    static constexpr bool float_is_safe(int exponent) {
        constexpr int quantum = layout_of<format>::quantum_exponent;
        return quantum - 1 > -126 && exponent <= 126 && -126 - exponent < quantum - 1;
    }

    /// value / scale, in float or double, rounded to nearest even, what is too large becoming the largest.
    ///
    /// Times a power of two this is exact in double for every double of float's range and more, and in float
    /// where that is safe. The quotient of a float by scale * tensor scale, of at most 8 + 24 bits, is
    /// rounded to double first. That is innocuous: the midpoints between neighbouring elements have at most 8
    /// bits, so a quotient that is none of them differs from it by at least 2^-40 of itself, and a double by
    /// 2^-53 at most.
    template <class Native>
    static void encode(const Wide (&values)[chunk::padded], const chosen_scale<scale>* chosen,
                       std::size_t blocks, std::uint8_t (&codes)[chunk::padded]) {
        Native scaled[chunk::padded] = {};
        for (std::size_t b = 0; b < blocks; ++b) {
            const Wide* from = values + b * block;
            Native* to = scaled + b * block;
            if constexpr (has_power_of_two) {
                const Native factor = detail::power_of_two<Native>(-chosen[b].exponent);
                for (std::size_t i = 0; i < block; ++i) to[i] = as<Native>(from[i]) * factor;
            } else {
                const Native divisor = static_cast<Native>(chosen[b].significand) *
                                       detail::power_of_two<Native>(chosen[b].exponent);
                for (std::size_t i = 0; i < block; ++i) to[i] = as<Native>(from[i]) / divisor;
            }
        }
        for (std::size_t i = 0; i < chunk::padded; i += convert_block) {
            clamp(scaled + i);
            narrow_block<format>(scaled + i, codes + i);
            for (std::size_t k = i; k < i + convert_block; ++k) {
                codes[k] = element_coding<element>::from_code(codes[k]);
            }
        }
    }

    /// x in the other type. A subnormal float becomes a double by its bits, as the processor may take it for
    /// zero.
    template <class Native>
    static Native as(Wide x) {
        if constexpr (std::is_same_v<Native, Wide>) {
            return x;
        } else {
            return widen<double, formats::binary32>(bit_cast<std::uint32_t>(x));
        }
    }
    /// Brings magnitudes down to the largest number of a format in which conversion would not.
    template <class Native>
    static void clamp(Native* values) {
        if constexpr (layout_of<format>::has_nan || layout_of<format>::has_infinity) {
            using word = storage_of<wide_format<Native>>;
            constexpr word largest =
                convert_bits<wide_format<Native>, format>(layout_of<format>::max_finite_code, projection{});
            constexpr word sign = layout_of<wide_format<Native>>::sign_mask;
            for (std::size_t i = 0; i < convert_block; ++i) {
                const auto bits = bit_cast<word>(values[i]);
                const auto magnitude = static_cast<word>(bits & ~sign);
                values[i] = bit_cast<Native>(
                    static_cast<word>(select(less(largest, magnitude), largest, magnitude) | (bits & sign)));
            }
        }
    }

    /// The definition, element by element.
    void encode_exactly(const Wide (&values)[chunk::padded], std::size_t count, std::uint64_t first_index,
                        std::uint64_t index_stride, const chosen_scale<scale>* chosen,
                        std::uint8_t (&codes)[chunk::padded]) const {
        projection p = options_.element;
        for (std::size_t i = 0; i < count; ++i) {
            if (is_stochastic(p.round)) p.random = random_bits(options_.seed, first_index + i * index_stride);
            const chosen_scale<scale>& by = chosen[i / block];
            codes[i] = by.nan ? std::uint8_t{0}
                              : quotient_code<element, scale>(values[i], by.significand, by.exponent, p);
        }
    }
    quantize_options options_;
    block_scaling scaling_;
    float tensor_scale_;
    bool fast_;
};

/// The largest finite magnitude of a matrix.
template <int Block, class Number>
exact_value largest_in(cpu exec, instruction_set isa, const block_vectors<const Number>& vectors) {
    using wide = block_wide<Number>;
    using word = storage_of<wide_format<wide>>;
    using chunk = block_chunk<Block>;
    std::vector<word> largest(
        static_cast<std::size_t>(tile_count<Block>(vectors.count, vectors.length, vectors.abreast())));
    for_tiles<Block>(exec, vectors.count, vectors.length, vectors.abreast(), [&](const block_tile& tile) {
        word& of_tile = largest[static_cast<std::size_t>(tile.index)];
        if constexpr (has_number_vectors<Number>) {
            using kernel_type = std::uint32_t (*)(const Number*, std::size_t);
            const auto kernel = MP_SELECT_TARGET(isa, kernel_type{nullptr}, largest_finite_of<Number>);
            if (kernel != nullptr && vectors.position_stride == 1) {
                of_tile = kernel(vectors.at(tile.first_vector, tile.begin),
                                 static_cast<std::size_t>(tile.end - tile.begin));
                return;
            }
        }
        static_cast<void>(isa);
        const default_floating_point_modes modes;
        wide values[vectors_abreast][chunk::padded];
        for (std::ptrdiff_t begin = tile.begin; begin < tile.end; begin += chunk::elements) {
            read_vectors(vectors, tile, begin, (std::min)(chunk::elements, tile.end - begin), values);
            for (std::ptrdiff_t l = 0; l < tile.last_vector - tile.first_vector; ++l) {
                word found = largest_magnitude<chunk::padded>(values[l]);
                if (found >= wide_infinity<wide>) found = largest_finite_magnitude(values[l], chunk::padded);
                of_tile = (std::max)(of_tile, found);
            }
        }
    });
    word result = 0;
    for (const word x : largest) result = (std::max)(result, x);
    return exact_magnitude<wide>(result);
}

}}  // namespace detail

}  // namespace mp
