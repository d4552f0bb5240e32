// SPDX-License-Identifier: MIT
/// \file
/// The formats that tensors are converted to, and the conversion of some rows of one.
#pragma once

#include <mp/arrays/io/safetensors.hpp>
#include <mp/bfloat16.hpp>
#include <mp/block_scaled.hpp>
#include <mp/convert.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>

#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "losses.hpp"
#include "options.hpp"

namespace mp_convert {

/// Rows of a tensor, converted.
struct piece {
    std::vector<std::byte> codes;
    std::vector<std::byte> scales;
    losses lost;
};

/// A format to convert to.
struct target {
    std::string_view name;
    std::size_t block;      ///< elements that share a scale; 1 without
    std::size_t bits;       ///< of an element
    bool has_tensor_scale;  ///< a float for all of a tensor
    std::string_view codes_dtype;
    std::string_view scales_dtype;
    /// \param tensor_scale  0 without
    piece (*convert)(std::span<const float> rows, std::size_t columns, float tensor_scale);
    /// The scale of a tensor with this largest magnitude.
    float (*tensor_scale)(float largest);
};

inline std::vector<std::byte> bytes_of(std::span<const std::byte> bytes) {
    return {bytes.begin(), bytes.end()};
}

template <class Number>
piece convert_plain(std::span<const float> rows, std::size_t /*columns*/, float /*tensor_scale*/) {
    std::vector<Number> codes(rows.size());
    std::vector<float> after(rows.size());
    mp::convert(mp::cpu{}, rows, codes, mp::projection{.saturate = mp::saturation::finite});
    mp::convert(mp::cpu{}, codes, after);
    piece result{bytes_of(std::as_bytes(std::span(codes))), {}, {}};
    result.lost.add(rows, after, static_cast<double>(std::numeric_limits<Number>::max()));
    return result;
}

template <class BlockScaled>
piece convert_blocks(std::span<const float> values, std::size_t columns, float tensor_scale) {
    const auto width = static_cast<std::ptrdiff_t>(columns);
    const auto rows =
        mp::row_major(values.data(), static_cast<std::ptrdiff_t>(values.size() / columns), width);
    const auto q = mp::quantize<BlockScaled>(mp::cpu{}, rows, {.tensor_scale = tensor_scale});
    std::vector<float> after(values.size());
    mp::dequantize(mp::cpu{}, q, mp::row_major(after.data(), rows.rows, width));
    piece result{bytes_of(q.bytes()), bytes_of(std::as_bytes(q.scales())), {}};
    constexpr std::size_t block = BlockScaled::block_size;
    const double largest =
        static_cast<double>(std::numeric_limits<typename BlockScaled::element_type>::max());
    for (std::size_t i = 0; i < q.scales().size(); ++i) {
        const double limit =
            largest * static_cast<double>(q.scales()[i]) * static_cast<double>(q.tensor_scale());
        result.lost.add(values.subspan(i * block, block), std::span(after).subspan(i * block, block), limit);
    }
    return result;
}

inline float no_scale(float /*largest*/) {
    return 0;
}
/// As mp::quantize takes it for a whole matrix.
template <class BlockScaled>
float scale_of(float largest) {
    return mp::quantize<BlockScaled>(mp::cpu{}, mp::row_major(&largest, 1, 1)).tensor_scale();
}

template <class Number>
constexpr target plain(std::string_view name) {
    return {name,    1, 8 * sizeof(Number), false, mp::safetensors_dtype<Number>(), {}, convert_plain<Number>,
            no_scale};
}
template <class BlockScaled>
constexpr target blocks(std::string_view name) {
    using element = typename BlockScaled::element_type;
    using scale = typename BlockScaled::scale_type;
    std::string_view dtype;
    if constexpr (mp::packable<element>) {
        dtype = mp::safetensors_packed_dtype<element>();
    } else {
        dtype = mp::safetensors_dtype<element>();
    }
    constexpr auto tensor_scale = BlockScaled::has_tensor_scale ? scale_of<BlockScaled> : no_scale;
    return {name,  BlockScaled::block_size,        BlockScaled::element_width,  BlockScaled::has_tensor_scale,
            dtype, mp::safetensors_dtype<scale>(), convert_blocks<BlockScaled>, tensor_scale};
}

inline constexpr target targets[] = {
    plain<mp::half>("half"),
    plain<mp::bfloat16>("bfloat16"),
    plain<mp::float8_e4m3fn>("float8_e4m3fn"),
    plain<mp::float8_e5m2>("float8_e5m2"),
    plain<mp::float8_e4m3fnuz>("float8_e4m3fnuz"),
    plain<mp::float8_e5m2fnuz>("float8_e5m2fnuz"),
    blocks<mp::mxfp8_e4m3>("mxfp8_e4m3"),
    blocks<mp::mxfp8_e5m2>("mxfp8_e5m2"),
    blocks<mp::mxfp6_e2m3>("mxfp6_e2m3"),
    blocks<mp::mxfp6_e3m2>("mxfp6_e3m2"),
    blocks<mp::mxfp4>("mxfp4"),
    blocks<mp::nvfp4>("nvfp4"),
};

inline const target& find_target(std::string_view name) {
    std::string known;
    for (const target& it : targets) {
        if (it.name == name) return it;
        known.append(" ").append(it.name);
    }
    throw user_error("--to is '" + std::string(name) + "'; it must be one of" + known);
}

/// Names of the arrays that a tensor becomes.
struct array_names {
    std::string codes;
    std::string scales;
    std::string tensor_scale;
};

/// Says what arrays a tensor becomes, behind those of `to`.
inline array_names describe(const target& format, layout arrangement, const std::string& name,
                            const std::vector<std::size_t>& shape, std::vector<mp::tensor_description>& to) {
    array_names names{name, name + "_scale", name + "_scale_2"};
    std::vector<std::size_t> codes = shape;
    if (format.block == 1) {
        to.push_back({name, std::string(format.codes_dtype), codes});
        return names;
    }
    std::vector<std::size_t> scales = shape;
    scales.back() /= format.block;
    std::string codes_dtype(format.codes_dtype);
    std::string scales_dtype(format.scales_dtype);
    if (arrangement != layout::typed) {
        codes_dtype = "U8";
        if (scales_dtype == "F8_E8M0") scales_dtype = "U8";
        codes.back() = codes.back() * format.bits / 8;
    }
    if (arrangement == layout::gpt_oss) {
        names.codes = name + "_blocks";
        names.scales = name + "_scales";
        codes.back() = scales.back();
        codes.push_back(format.block * format.bits / 8);
    }
    to.push_back({names.codes, codes_dtype, codes});
    to.push_back({names.scales, scales_dtype, scales});
    if (format.has_tensor_scale) to.push_back({names.tensor_scale, "F32", {}});
    return names;
}

}  // namespace mp_convert
