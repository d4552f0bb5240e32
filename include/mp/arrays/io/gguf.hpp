// SPDX-License-Identifier: MIT
/// \file
/// GGUF files of ggml and llama.cpp, mapped into memory: tensors of F32, F16, BF16, F64 and integers in place,
/// MXFP4 and NVFP4 as mp::mxfp4 and mp::nvfp4, and Q8_0, Q4_0, Q4_K and Q6_K converted. Other types are listed
/// and not read.
///
///     4 bytes    GGUF, then the version (2 or 3, uint32), the numbers of tensors and of pairs (uint64)
///     pairs      key, type (uint32), value; texts are a length (uint64) and bytes
///     tensors    name, number of dimensions (uint32), dimensions (uint64, the fastest first), type (uint32),
///                offset (uint64) from the beginning of the data
///     the data   at the next multiple of "general.alignment", which is 32 unless a pair says so
///
/// Sources: https://github.com/ggml-org/ggml, docs/gguf.md; include/ggml.h for the numbers of types, src/ggml-common.h for
/// the layouts of blocks, dequantize_row_* of src/ggml-quants.c for their values.
#pragma once

#include <mp/arrays/convert/block_scaled.hpp>
#include <mp/arrays/convert/convert.hpp>
#include <mp/arrays/io/stored_elements.hpp>
#include <mp/arrays/io/text_excerpt.hpp>
#include <mp/base/bits.hpp>
#include <mp/bfloat16.hpp>
#include <mp/config.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Unsigned byte `i` of a block.
inline unsigned block_byte(const std::byte* block, std::size_t i) noexcept {
    return std::to_integer<unsigned>(block[i]);
}
/// Signed byte `i` of a block.
inline int block_int8(const std::byte* block, std::size_t i) noexcept {
    return static_cast<int>(block_byte(block, i) ^ 0x80U) - 0x80;
}
/// Little-endian fp16 number at byte `i` of a block.
inline double block_half(const std::byte* block, std::size_t i) noexcept {
    return static_cast<double>(
        half::from_bits(static_cast<std::uint16_t>(block_byte(block, i) | block_byte(block, i + 1) << 8)));
}

// Every function computes the values of a block exactly: scales have up to 11 + 8 significant bits, codes up
// to 8, and the difference of two products of Q4_K is a multiple of 2^-24 below 2^27. Rounded to float, they
// are the bits of ggml, which rounds at most once.

/// Q8_0: a scale, 32 int8 codes.
inline void decode_q8_0(const std::byte* block, double* values) noexcept {
    const double scale = block_half(block, 0);
    for (std::size_t i = 0; i < 32; ++i) values[i] = scale * block_int8(block, 2 + i);
}
/// Q4_0: a scale, 16 bytes; byte i has the codes i and i + 16, each 8 too large.
inline void decode_q4_0(const std::byte* block, double* values) noexcept {
    const double scale = block_half(block, 0);
    for (std::size_t i = 0; i < 16; ++i) {
        const unsigned codes = block_byte(block, 2 + i);
        values[i] = scale * (static_cast<int>(codes & 15) - 8);
        values[i + 16] = scale * (static_cast<int>(codes >> 4) - 8);
    }
}
/// Q4_K: scales of the factors and of the minima, 8 pairs of a factor and a minimum in 6 bits each, 128 bytes
/// with the codes of 4 x 64 values, the first 32 of which are in low halves.
inline void decode_q4_k(const std::byte* block, double* values) noexcept {
    const double scale = block_half(block, 0);
    const double minimum_scale = block_half(block, 2);
    const auto packed = [&](std::size_t i) { return block_byte(block, 4 + i); };
    for (std::size_t group = 0; group < 8; ++group) {
        unsigned factor = packed(group) & 63;
        unsigned minimum = packed(group + 4) & 63;
        if (group >= 4) {
            factor = (packed(group + 4) & 15) | packed(group - 4) >> 6 << 4;
            minimum = packed(group + 4) >> 4 | packed(group) >> 6 << 4;
        }
        const unsigned shift = group % 2 == 0 ? 0 : 4;
        for (std::size_t i = 0; i < 32; ++i) {
            const unsigned code = block_byte(block, 16 + group / 2 * 32 + i) >> shift & 15;
            values[group * 32 + i] = scale * factor * code - minimum_scale * minimum;
        }
    }
}
/// Q6_K: 128 bytes with the lower 4 bits of codes, 64 with the upper 2, 16 int8 factors, their scale. Codes are
/// 32 too large. A run of 32 values has its lower bits in 32 halves of bytes, and its upper bits in 32 quarters.
inline void decode_q6_k(const std::byte* block, double* values) noexcept {
    const double scale = block_half(block, 208);
    for (std::size_t run = 0; run < 8; ++run) {
        const std::size_t lower = run / 4 * 64 + run % 2 * 32;
        const std::size_t upper = 128 + run / 4 * 32;
        const auto lower_shift = static_cast<unsigned>(run % 4 / 2 * 4);
        const auto upper_shift = static_cast<unsigned>(run % 4 * 2);
        for (std::size_t i = 0; i < 32; ++i) {
            const unsigned code = (block_byte(block, lower + i) >> lower_shift & 15) |
                                  (block_byte(block, upper + i) >> upper_shift & 3) << 4;
            const int factor = block_int8(block, 192 + run * 2 + i / 16);
            values[run * 32 + i] = scale * factor * (static_cast<int>(code) - 32);
        }
    }
}
/// Values of `bytes` bytes with two codes of E2M1 each, the second of which is `bytes` elements after the
/// first. The code of -0 is 0, as in ggml.
inline void decode_e2m1(const std::byte* codes, std::size_t bytes, double scale, double* values) noexcept {
    constexpr signed char doubled[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    for (std::size_t i = 0; i < bytes; ++i) {
        const unsigned both = block_byte(codes, i);
        values[i] = scale / 2 * doubled[both & 15];
        values[i + bytes] = scale / 2 * doubled[both >> 4];
    }
}
/// MXFP4: a scale of E8M0, 16 bytes of E2M1. The scale 255 is NaN, as in the MX specification; in ggml it is 2^128.
inline void decode_mxfp4(const std::byte* block, double* values) noexcept {
    const auto scale = float8_e8m0fnu::from_bits(static_cast<std::uint8_t>(block_byte(block, 0)));
    decode_e2m1(block + 1, 16, static_cast<double>(scale), values);
}
/// NVFP4: 4 scales of UE4M3, 4 x 8 bytes of E2M1. UE4M3 is E4M3 whose sign is not read; the code 0x7F is 0.
inline void decode_nvfp4(const std::byte* block, double* values) noexcept {
    for (std::size_t i = 0; i < 4; ++i) {
        const unsigned code = block_byte(block, i);
        const unsigned exponent = code >> 3 & 15;
        const unsigned significand = (code & 7) + (exponent == 0 ? 0 : 8);
        const unsigned scale = code == 0x7F ? 0 : significand << (exponent == 0 ? 1 : exponent);
        decode_e2m1(block + 4 + 8 * i, 8, scale / 1024.0, values + 16 * i);
    }
}

/// A type of ggml.
struct gguf_type {
    std::uint32_t number;
    std::string_view name;
    std::uint32_t block;  ///< elements of a block
    std::uint32_t bytes;  ///< of a block
    /// Computes the values of a block; null for numbers, which convert() reads, and for unsupported blocks.
    void (*decode)(const std::byte* block, double* values) noexcept = nullptr;
};

inline constexpr gguf_type gguf_types[] = {{0, "F32", 1, 4},
                                           {1, "F16", 1, 2},
                                           {2, "Q4_0", 32, 18, decode_q4_0},
                                           {3, "Q4_1", 32, 20},
                                           {6, "Q5_0", 32, 22},
                                           {7, "Q5_1", 32, 24},
                                           {8, "Q8_0", 32, 34, decode_q8_0},
                                           {9, "Q8_1", 32, 36},
                                           {10, "Q2_K", 256, 84},
                                           {11, "Q3_K", 256, 110},
                                           {12, "Q4_K", 256, 144, decode_q4_k},
                                           {13, "Q5_K", 256, 176},
                                           {14, "Q6_K", 256, 210, decode_q6_k},
                                           {15, "Q8_K", 256, 292},
                                           {16, "IQ2_XXS", 256, 66},
                                           {17, "IQ2_XS", 256, 74},
                                           {18, "IQ3_XXS", 256, 98},
                                           {19, "IQ1_S", 256, 50},
                                           {20, "IQ4_NL", 32, 18},
                                           {21, "IQ3_S", 256, 110},
                                           {22, "IQ2_S", 256, 82},
                                           {23, "IQ4_XS", 256, 136},
                                           {24, "I8", 1, 1},
                                           {25, "I16", 1, 2},
                                           {26, "I32", 1, 4},
                                           {27, "I64", 1, 8},
                                           {28, "F64", 1, 8},
                                           {29, "IQ1_M", 256, 56},
                                           {30, "BF16", 1, 2},
                                           {34, "TQ1_0", 256, 54},
                                           {35, "TQ2_0", 256, 66},
                                           {39, "MXFP4", 32, 17, decode_mxfp4},
                                           {40, "NVFP4", 64, 36, decode_nvfp4},
                                           {41, "Q1_0", 128, 18},
                                           {42, "Q2_0", 64, 18}};

/// Returns the type of that number, or null.
constexpr const gguf_type* find_gguf_type(std::uint32_t number) {
    for (const gguf_type& it : gguf_types) {
        if (it.number == number) return &it;
    }
    return nullptr;
}
/// Returns the type of that name, or null.
constexpr const gguf_type* find_gguf_type(std::string_view name) {
    for (const gguf_type& it : gguf_types) {
        if (it.name == name) return &it;
    }
    return nullptr;
}

/// Copies `bytes` bytes with two 4-bit codes each: the codes in low halves, then the ones in high halves,
/// become packed codes in this order.
inline void reorder_codes(const std::byte* from, std::byte* to, std::size_t bytes) noexcept {
    constexpr std::byte low{15};
    for (std::size_t i = 0; i < bytes; i += 2) {
        to[i / 2] = (from[i] & low) | (from[i + 1] & low) << 4;
        to[bytes / 2 + i / 2] = from[i] >> 4 | (from[i + 1] & ~low);
    }
}

/// What ggml calls elements of a type; empty where it has none.
template <class Value>
constexpr std::string_view gguf_name_of() {
    if constexpr (std::is_same_v<Value, float>) return "F32";
    if constexpr (std::is_same_v<Value, double>) return "F64";
    if constexpr (std::is_same_v<Value, half>) return "F16";
    if constexpr (std::is_same_v<Value, bfloat16>) return "BF16";
    if constexpr (std::is_integral_v<Value> && std::is_signed_v<Value>) {
        return sizeof(Value) == 1 ? "I8" : sizeof(Value) == 2 ? "I16" : sizeof(Value) == 4 ? "I32" : "I64";
    }
    return {};
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The value of a pair of a GGUF file. Arrays are passed over, and have their number of elements here.
struct gguf_array {
    std::uint32_t type;  ///< of elements, by GGUF's numbers
    std::uint64_t size;
};
using gguf_value = std::variant<std::uint64_t, std::int64_t, double, bool, std::string, gguf_array>;

/// A GGUF file, mapped into memory as long as the object lives. Everything that it says is checked before
/// anything is believed.
///
///     const mp::gguf_file model("gpt-oss-20b-mxfp4.gguf");
///     const auto norm = model.view<float>("blk.0.attn_norm.weight");
///     const mp::mxfp4 experts = model.read_mxfp4("blk.0.ffn_up_exps.weight");
class gguf_file {
public:
    /// One tensor of the file, where it lies.
    struct tensor {
        std::string type;                  ///< "F32", "MXFP4", "Q4_K" ..., as ggml names it
        std::vector<std::size_t> shape;    ///< the last dimension moves fastest, as in C: ggml's reversed
        std::span<const std::byte> bytes;  ///< little-endian
        std::size_t count;                 ///< of elements
    };

    /// \throws file_error  it cannot be read, or is not such a file
    explicit gguf_file(const std::string& path, file_access access = file_access::map)
        : path_(path), contents_(path, access) {
        read_all();
    }
    /// A file whose bytes are in memory, where they stay as long as this object; messages call it `name`.
    ///
    /// \throws file_error  it is not such a file
    gguf_file(const std::string& name, std::span<const std::byte> bytes) : path_(name), contents_(bytes) {
        read_all();
    }

    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] unsigned version() const noexcept { return version_; }
    /// By name.
    [[nodiscard]] const std::map<std::string, tensor, std::less<>>& tensors() const noexcept {
        return tensors_;
    }
    /// The pairs by key: whole numbers, floats, bool and texts, in the widest type of their kind.
    [[nodiscard]] const std::map<std::string, gguf_value, std::less<>>& metadata() const noexcept {
        return metadata_;
    }

    /// \throws file_error  there is none of this name
    [[nodiscard]] const tensor& at(std::string_view name) const {
        const auto found = tensors_.find(name);
        if (found == tensors_.end()) detail::throw_file(path_, "there is no " + detail::quoted_excerpt(name));
        return found->second;
    }
    /// A tensor where it lies: float, double, half, bfloat16 or a signed integer, as in the file.
    ///
    /// \throws file_error  there is none, or it is of another type, or it is not aligned
    template <detail::tensor_element Value>
    [[nodiscard]] std::span<const Value> view(std::string_view name) const {
        const tensor& found = require(name, detail::gguf_name_of<Value>());
        return detail::elements_in_place<Value>(path_, detail::quoted_excerpt(name), found.bytes,
                                                found.count);
    }
    /// The same as a matrix, whose rows have the length of the last dimension.
    template <detail::tensor_element Value>
    [[nodiscard]] matrix_view<const Value> matrix(std::string_view name) const {
        return detail::as_matrix(path_, detail::quoted_excerpt(name), view<Value>(name), at(name).shape);
    }
    /// A tensor of MXFP4, as rows of the length of the last dimension.
    ///
    /// A block in the file is its scale, E8M0, and 16 bytes, of which byte i has element i in its low half and
    /// element i + 16 in its high one; here elements are in order. Values are the same but for the scale 255,
    /// which is NaN here and in the MX specification, and 2^128 in ggml.
    ///
    /// \throws file_error  there is none, or it is of another type
    [[nodiscard]] mxfp4 read_mxfp4(std::string_view name) const {
        const tensor& found = require(name, "MXFP4");
        const detail::row_shape shape = detail::as_rows(path_, detail::quoted_excerpt(name), found.shape);
        mxfp4 result(shape.rows, shape.columns);
        const std::byte* from = found.bytes.data();
        std::byte* to = result.bytes().data();
        for (float8_e8m0fnu& scale : result.scales()) {
            scale = float8_e8m0fnu::from_bits(static_cast<std::uint8_t>(*from));
            detail::reorder_codes(from + 1, to, 16);
            from += 17;
            to += 16;
        }
        return result;
    }
    /// Returns a tensor of NVFP4 as rows of the length of the last dimension, with the tensor scale 1.
    ///
    /// A block in the file is the scales of 4 x 16 elements, UE4M3, and 4 x 8 bytes with the elements, ordered as
    /// in MXFP4. llama.cpp has the scale of the tensor as another tensor, a float.
    ///
    /// \throws file_error  there is none, it is of another type, or a scale is 0x7F or more: ggml reads 0x7F, a
    ///                     NaN of E4M3, as 0, and has no sign
    [[nodiscard]] nvfp4 read_nvfp4(std::string_view name) const {
        const tensor& found = require(name, "NVFP4");
        const detail::row_shape shape = detail::as_rows(path_, detail::quoted_excerpt(name), found.shape);
        nvfp4 result(shape.rows, shape.columns);
        std::byte* to = result.bytes().data();
        const auto scales = result.scales();
        for (std::size_t i = 0; i < scales.size(); ++i) {
            const std::byte* const block = found.bytes.data() + i / 4 * 36;
            const auto code = static_cast<std::uint8_t>(block[i % 4]);
            if (code >= 0x7F) {
                detail::throw_file(path_, detail::quoted_excerpt(name) + " has the scale " +
                                              detail::error_text(unsigned{code}) +
                                              ", which is no UE4M3 number");
            }
            scales[i] = float8_e4m3fn::from_bits(code);
            detail::reorder_codes(block + 4 + i % 4 * 8, to + i * 8, 8);
        }
        return result;
    }
    /// Copies a tensor into a range of as many numbers, each the exact value rounded once: F32, F64, F16, BF16,
    /// and blocks of MXFP4, NVFP4, Q8_0, Q4_0, Q4_K and Q6_K. Blocks become floats with the bits of ggml, in which
    /// the code of -0 in MXFP4 and NVFP4 is 0, except for the scale 255 of MXFP4 (see read_mxfp4).
    ///
    /// \throws file_error  there is none, its type is not supported, or their number is another; `values` are then
    ///                     as before
    template <class To>
    void read_converted(std::string_view name, To&& values) const {
        const auto to = detail::elements_of(values);
        const tensor& from = at(name);
        if (from.count != to.size()) {
            detail::throw_file(path_, detail::quoted_excerpt(name) + " has " +
                                          detail::error_text(from.count) + " elements, and " +
                                          detail::error_text(to.size()) + " were expected");
        }
        if (from.type == "F32") {
            convert_from<float>(from, to);
        } else if (from.type == "F64") {
            convert_from<double>(from, to);
        } else if (from.type == "F16") {
            convert_from<half>(from, to);
        } else if (from.type == "BF16") {
            convert_from<bfloat16>(from, to);
        } else if (const auto* const type = detail::find_gguf_type(from.type); type->decode != nullptr) {
            convert_blocks(*type, from, to);
        } else {
            detail::throw_file(path_, detail::quoted_excerpt(name) + " has elements of type " + from.type +
                                          ", and conversion of " + from.type + " is not supported");
        }
    }

private:
    [[nodiscard]] const tensor& require(std::string_view name, std::string_view type) const {
        const tensor& found = at(name);
        if (found.type == type) return found;
        detail::throw_file(
            path_, detail::quoted_excerpt(name) + " has elements of type " + found.type + ", and " +
                       (type.empty() ? "a type that GGUF has not" : std::string(type)) + " was expected");
    }
    template <class Source, class Target>
    void convert_from(const tensor& from, std::span<Target> to) const {
        constexpr std::size_t block = 1024;
        Source unconverted[block];
        for (std::size_t first = 0; first < to.size(); first += block) {
            const std::size_t count = (std::min)(block, to.size() - first);
            detail::copy_little_endian(reinterpret_cast<std::byte*>(unconverted),
                                       from.bytes.data() + first * sizeof(Source), sizeof(Source), count);
            convert(cpu{}, std::span<const Source>(unconverted, count), to.subspan(first, count));
        }
    }

    template <class Target>
    void convert_blocks(const detail::gguf_type& type, const tensor& from, std::span<Target> to) const {
        double values[1024];
        const std::byte* block = from.bytes.data();
        for (std::size_t first = 0; first < to.size();) {
            std::size_t count = 0;
            for (; count < (std::min)(std::size(values), to.size() - first); count += type.block) {
                type.decode(block, values + count);
                block += type.bytes;
            }
            convert(cpu{}, std::span<const double>(values, count), to.subspan(first, count));
            first += count;
        }
    }

    [[noreturn]] void fail(std::string_view what) const {
        detail::throw_file(path_, "is damaged at byte " +
                                      detail::error_text(contents_.bytes().size() - rest_.size()) + ": " +
                                      std::string(what));
    }
    std::span<const std::byte> take(std::uint64_t size) {
        if (size > rest_.size()) fail("it was cut off");
        const auto taken = rest_.first(detail::as<std::size_t>(size));
        rest_ = rest_.subspan(taken.size());
        return taken;
    }
    std::uint64_t number(unsigned bytes) {
        std::uint64_t result = 0;
        unsigned shift = 0;
        for (const std::byte it : take(bytes)) {
            result |= static_cast<std::uint64_t>(it) << shift;
            shift += 8;
        }
        return result;
    }
    std::string text() {
        const auto bytes = take(number(8));
        return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }
    /// Bytes of a value of a pair, by its type; 0 for texts and arrays.
    unsigned value_size(std::uint32_t type) const {
        constexpr unsigned char sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
        if (type >= std::size(sizes)) fail("a pair is of an unknown type");
        return sizes[type];
    }
    gguf_value value(std::uint32_t type) {
        const unsigned size = value_size(type);
        switch (type) {
            case 1:
            case 3:
            case 5:
            case 11: {
                const unsigned unused = 64 - 8 * size;
                return static_cast<std::int64_t>(number(size) << unused) >> unused;
            }
            case 6:
                return round_to<double>(std::bit_cast<float>(static_cast<std::uint32_t>(number(size))));
            case 12:
                return std::bit_cast<double>(number(size));
            case 7:
                return number(size) != 0;
            case 8:
                return text();
            case 9: {
                const gguf_array array{static_cast<std::uint32_t>(number(4)), number(8)};
                if (array.type == 9) fail("a pair is an array of arrays");
                const unsigned each = value_size(array.type);
                if (each != 0) {
                    if (array.size > rest_.size() / each) fail("it was cut off");
                    static_cast<void>(take(array.size * each));
                } else {
                    for (std::uint64_t i = 0; i < array.size; ++i) static_cast<void>(take(number(8)));
                }
                return array;
            }
            default:
                return number(size);
        }
    }

    void read_all() {
        rest_ = contents_.bytes();
        if (rest_.size() < 24 || number(4) != 0x46554747) detail::throw_file(path_, "is no GGUF file");
        version_ = static_cast<unsigned>(number(4));
        if (version_ != 2 && version_ != 3) {
            detail::throw_file(path_, "is of version " + detail::error_text(version_) +
                                          " of GGUF, or big-endian; versions 2 and 3 are read");
        }
        const std::uint64_t tensors = number(8);
        const std::uint64_t pairs = number(8);
        // Each takes some bytes, so that no hostile number of them is counted through.
        for (std::uint64_t i = 0; i < pairs; ++i) {
            std::string key = text();
            const auto type = static_cast<std::uint32_t>(number(4));
            gguf_value it = value(type);
            if (!metadata_.emplace(std::move(key), std::move(it)).second) fail("a key is there twice");
        }
        std::uint64_t alignment = 32;
        if (const auto it = metadata_.find("general.alignment"); it != metadata_.end()) {
            const auto* const given = std::get_if<std::uint64_t>(&it->second);
            if (given == nullptr || !std::has_single_bit(*given) || *given > (1U << 20)) {
                detail::throw_file(path_, "has a general.alignment that is no power of two");
            }
            alignment = *given;
        }
        struct place {
            std::uint64_t offset;
            std::uint64_t size;
            tensor* it;
        };
        std::vector<place> places;
        for (std::uint64_t i = 0; i < tensors; ++i) {
            std::string name = text();
            const auto [where, is_new] = tensors_.emplace(std::move(name), tensor{});
            if (!is_new) fail("a name is there twice");
            const std::uint64_t size = read_tensor(where->second);
            places.push_back({number(8), size, &where->second});
            if (places.back().offset % alignment != 0) fail("a tensor is not aligned");
        }
        const std::uint64_t header = contents_.bytes().size() - rest_.size();
        const std::uint64_t padding = (alignment - header % alignment) % alignment;
        // A file without tensors ends with its header.
        const auto data = padding <= rest_.size() ? rest_.subspan(detail::as<std::size_t>(padding))
                                                  : std::span<const std::byte>();
        std::sort(places.begin(), places.end(), [](const place& a, const place& b) {
            return a.offset != b.offset ? a.offset < b.offset : a.size < b.size;
        });
        std::uint64_t end = 0;
        for (const place& it : places) {
            if (it.offset > data.size() || it.size > data.size() - it.offset) {
                detail::throw_file(path_, "has a tensor beyond its end: it was cut off");
            }
            if (it.offset < end) detail::throw_file(path_, "has tensors that overlap");
            it.it->bytes = data.subspan(detail::as<std::size_t>(it.offset), detail::as<std::size_t>(it.size));
            end = it.offset + it.size;
        }
    }
    /// Dimensions and type; how many bytes there are.
    std::uint64_t read_tensor(tensor& it) {
        const std::uint64_t dimensions = number(4);
        if (dimensions > 4) fail("a tensor has more than four dimensions");
        for (std::uint64_t i = 0; i < dimensions; ++i) {
            const std::uint64_t dimension = number(8);
            constexpr auto most = std::uint64_t{(std::numeric_limits<std::ptrdiff_t>::max)()};
            if (dimension > most)
                fail("a shape is too large: it has a dimension " + detail::error_text(dimension));
            it.shape.push_back(static_cast<std::size_t>(dimension));
        }
        const std::size_t fastest = it.shape.empty() ? 1 : it.shape.front();
        std::reverse(it.shape.begin(), it.shape.end());
        const std::optional<std::size_t> count = detail::element_count(it.shape);
        constexpr std::size_t most = (std::numeric_limits<std::size_t>::max)() / 8;
        if (!count || *count > most) fail("a shape is too large: " + detail::shape_text(it.shape));
        it.count = *count;
        const auto type_number = static_cast<std::uint32_t>(number(4));
        const detail::gguf_type* const type = detail::find_gguf_type(type_number);
        if (type == nullptr) fail("a tensor is of an unknown type, " + detail::error_text(type_number));
        if (fastest % type->block != 0) fail("a row of a tensor is no whole number of blocks");
        it.type = type->name;
        // An element takes at most 8 bytes.
        return std::uint64_t{it.count / type->block} * type->bytes;
    }

    std::string path_;
    detail::file_mapping contents_;
    std::span<const std::byte> rest_;  // what is not read yet
    unsigned version_ = 0;
    std::map<std::string, tensor, std::less<>> tensors_;
    std::map<std::string, gguf_value, std::less<>> metadata_;
};

}}  // namespace mp
