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
/// Source: https://github.com/ggml-org/ggml, docs/gguf.md.
#pragma once

#include <mp/arrays/convert/block_scaled.hpp>
#include <mp/arrays/convert/convert.hpp>
#include <mp/arrays/io/gguf_blocks.hpp>
#include <mp/arrays/io/stored_elements.hpp>
#include <mp/arrays/io/text_excerpt.hpp>
#include <mp/base/bits.hpp>
#include <mp/bfloat16.hpp>
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
