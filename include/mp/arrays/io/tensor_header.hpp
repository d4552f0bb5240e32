// SPDX-License-Identifier: MIT
/// \file
/// The header of a file of named arrays: the safetensors format of Hugging Face, version 1 of which is
///
///     8 bytes       N, little-endian
///     N bytes       JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...,
///                   "__metadata__": {"key": "value", ...}}, and spaces
///     the rest      the arrays, without gaps, little-endian, offsets counted from here
///
/// Source: https://github.com/huggingface/safetensors, README.
#pragma once

#include <mp/arrays/io/stored_elements.hpp>
#include <mp/bfloat16.hpp>
#include <mp/config.hpp>
#include <mp/float4.hpp>
#include <mp/float6.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/numbers/format/operations.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#if MP_CORE_BODIES
#include <mp/arrays/io/json_reader.hpp>
#include <mp/arrays/io/text_excerpt.hpp>
#include <mp/base/bits.hpp>
#include <mp/error.hpp>

#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#endif

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A type of the safetensors format and its bits an element.
struct tensor_dtype {
    std::string_view name;
    std::size_t bits;
};

inline constexpr tensor_dtype tensor_dtypes[] = {
    {"BOOL", 8},    {"U8", 8},      {"I8", 8},      {"U16", 16},        {"I16", 16},        {"U32", 32},
    {"I32", 32},    {"U64", 64},    {"I64", 64},    {"F64", 64},        {"F32", 32},        {"F16", 16},
    {"BF16", 16},   {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E5M2FNUZ", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E8M0", 8},
    {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4},      {"C64", 64}};

/// Bits of an element; 0 for a type that is not known.
constexpr std::size_t dtype_bits(std::string_view dtype) {
    for (const tensor_dtype& it : tensor_dtypes) {
        if (it.name == dtype) return it.bits;
    }
    return 0;
}

/// What safetensors calls the type; for formats that it does not have, and for those that it packs, unsigned
/// integers of the same size.
template <tensor_element Value>
constexpr std::string_view dtype_of() {
    if constexpr (std::is_same_v<Value, bool>) return "BOOL";
    if constexpr (std::is_same_v<Value, double>) return "F64";
    if constexpr (std::is_same_v<Value, float>) return "F32";
    if constexpr (std::is_same_v<Value, half>) return "F16";
    if constexpr (std::is_same_v<Value, bfloat16>) return "BF16";
    if constexpr (std::is_same_v<Value, float8_e5m2>) return "F8_E5M2";
    if constexpr (std::is_same_v<Value, float8_e4m3fn>) return "F8_E4M3";
    if constexpr (std::is_same_v<Value, float8_e5m2fnuz>) return "F8_E5M2FNUZ";
    if constexpr (std::is_same_v<Value, float8_e4m3fnuz>) return "F8_E4M3FNUZ";
    if constexpr (std::is_same_v<Value, float8_e8m0fnu>) return "F8_E8M0";
    constexpr bool is_signed = std::is_integral_v<Value> && std::is_signed_v<Value>;
    if constexpr (sizeof(Value) == 1) return is_signed ? "I8" : "U8";
    if constexpr (sizeof(Value) == 2) return is_signed ? "I16" : "U16";
    if constexpr (sizeof(Value) == 4) return is_signed ? "I32" : "U32";
    return is_signed ? "I64" : "U64";
}

/// What safetensors calls numbers of fewer than 8 bits that lie without gaps, in the order of packed_array; empty for
/// formats that it does not have.
template <class Value>
constexpr std::string_view packed_dtype_of() {
    if constexpr (std::is_same_v<Value, float4_e2m1fn>) return "F4";
    if constexpr (std::is_same_v<Value, float6_e2m3fn>) return "F6_E2M3";
    if constexpr (std::is_same_v<Value, float6_e3m2fn>) return "F6_E3M2";
    return {};
}

/// The name of a format that dtype_of does not tell; empty where it does.
template <tensor_element Value>
constexpr std::string_view format_beyond_dtype() {
    if constexpr (reduced<Value>) {
        if (dtype_of<Value>().front() == 'U') return Value::format::name;
    }
    return {};
}

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// An array to be written: where it is, and what the header says of it; of one that ranks share, the whole.
struct file_entry {
    std::string_view name;
    std::string_view dtype;
    std::span<const std::size_t> shape;
    const void* data;
    std::size_t element_size;
    std::size_t count;
    std::size_t first = 0;  ///< of the elements that are here, from `first` on, where they are a share:
    std::size_t held = 0;   ///< so many
    bool shared = false;

    [[nodiscard]] MP_ALWAYS_INLINE std::size_t elements_here() const noexcept {
        return shared ? held : count;
    }
};

/// Returns the header of a file of these arrays, with its length and padded to a multiple of 8 bytes.
///
/// \throws argument_error  a text is not valid UTF-8, a key of the metadata is there twice, or the header or the
///                         arrays are too large; the message begins with `function`
MP_CORE_FUNCTION std::string tensor_header(std::span<const file_entry> entries,
                                           const std::vector<std::pair<std::string, std::string>>& metadata,
                                           std::string_view function = "mp::save_checkpoint");

/// A tensor of a header; its elements are the bytes [first, last) of those after the header.
struct stored_tensor {
    std::string dtype;
    std::vector<std::size_t> shape;
    std::size_t first = 0;
    std::size_t last = 0;
    std::size_t count = 0;
};

/// Contents of a header.
struct tensor_directory {
    std::map<std::string, stored_tensor, std::less<>> tensors;
    std::map<std::string, std::string, std::less<>> metadata;
    std::size_t header_size;  ///< bytes, with those of the length
};

/// Reads the header of a file, given all its bytes, and accepts what version 0.8 of the reference implementation
/// accepts: of members with the same name, the last one counts. Source:
/// https://github.com/huggingface/safetensors, safetensors/src/tensor.rs.
///
/// \throws file_error  the bytes are no such file
MP_CORE_FUNCTION tensor_directory read_tensor_directory(const std::string& path,
                                                        std::span<const std::byte> all);

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Calls write(bytes) with the bytes of an array as they are in a file.
template <class Write>
void for_file_bytes(const file_entry& entry, Write write) {
    const auto* const bytes = static_cast<const std::byte*>(entry.data);
    if (std::endian::native == std::endian::little || entry.element_size == 1) {
        write(std::string_view(reinterpret_cast<const char*>(bytes),
                               entry.element_size * entry.elements_here()));
        return;
    }
    std::byte block[4096];
    const std::size_t elements = sizeof block / entry.element_size;
    for (std::size_t first = 0; first < entry.elements_here(); first += elements) {
        const std::size_t count = (std::min)(elements, entry.elements_here() - first);
        copy_little_endian(block, bytes + first * entry.element_size, entry.element_size, count);
        write(std::string_view(reinterpret_cast<const char*>(block), count * entry.element_size));
    }
}

}}  // namespace mp::detail

#if MP_CORE_BODIES
namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

inline void append_json_string(std::string& json, std::string_view text) {
    constexpr std::string_view digits = "0123456789abcdef";
    json.push_back('"');
    for (const char character : text) {
        const auto byte = static_cast<unsigned char>(character);
        if (character == '"' || character == '\\') {
            json.append(1, '\\').append(1, character);
        } else if (byte < 0x20) {
            json.append("\\u00").append(1, digits[byte >> 4]).append(1, digits[byte & 15]);
        } else {
            json.push_back(character);
        }
    }
    json.push_back('"');
}

/// Bytes of a header, of which safetensors reads no more.
inline constexpr std::size_t longest_tensor_header = 100'000'000;

MP_CORE_FUNCTION std::string tensor_header(std::span<const file_entry> entries,
                                           const std::vector<std::pair<std::string, std::string>>& metadata,
                                           std::string_view function) {
    const auto require_utf8 = [&](std::string_view what, std::string_view text) {
        if (utf8_prefix(text) == text.size()) return;
        std::string message(function);
        message.append(": ").append(what).append(" is ").append(quoted_excerpt(text));
        throw_error(argument_error(message.append("; it must be valid UTF-8")));
    };
    std::set<std::string_view> keys;
    for (const auto& [key, value] : metadata) {
        require_utf8("metadata", key);
        require_utf8("metadata", value);
        if (!keys.insert(key).second) {
            throw_argument(function, "metadata", key, "must not have two values of one key");
        }
    }
    for (const file_entry& it : entries) require_utf8("name", it.name);
    std::string json = "{";
    if (!metadata.empty()) {
        json.append("\"__metadata__\":{");
        for (const auto& [key, value] : metadata) {
            if (json.back() != '{') json.push_back(',');
            append_json_string(json, key);
            json.push_back(':');
            append_json_string(json, value);
        }
        json.push_back('}');
    }
    std::size_t offset = 0;
    for (const file_entry& it : entries) {
        if (json.size() > 1) json.push_back(',');
        append_json_string(json, it.name);
        json.append(":{\"dtype\":\"").append(it.dtype).append("\",\"shape\":[");
        for (std::size_t i = 0; i < it.shape.size(); ++i) {
            json.append(i == 0 ? "" : ",").append(error_text(it.shape[i]));
        }
        json.append("],\"data_offsets\":[").append(error_text(offset)).append(",");
        // An array can be addressed, and its size does not wrap.
        const std::size_t size = it.element_size * it.count;
        if (size > (std::numeric_limits<std::size_t>::max)() - offset) {
            throw_argument(function, "name", it.name,
                           "must be an array that ends below 2^" +
                               error_text(std::numeric_limits<std::size_t>::digits) + " bytes");
        }
        offset += size;
        json.append(error_text(offset)).append("]}");
    }
    json.push_back('}');
    json.append((8 - json.size() % 8) % 8, ' ');
    if (json.size() > longest_tensor_header) {
        throw_argument(function, "the size of the header", json.size(),
                       "must be at most " + error_text(longest_tensor_header) + " bytes");
    }
    std::string header;
    for (unsigned i = 0; i < 8; ++i) {
        header.push_back(static_cast<char>(as<std::uint64_t>(json.size()) >> (8 * i) & 255));
    }
    return header + json;
}

/// Reads a tensor of a header. As serde reads a struct, it is an object, whose unknown members are skipped, or an
/// array of the values in their order; an enumerator is a string, or an object of that member and null.
inline stored_tensor read_stored_tensor(json_reader& json) {
    stored_tensor result;
    const auto read_dtype = [&] {
        if (!json.next_is('{')) {
            result.dtype = json.string();
            return;
        }
        std::size_t members = 0;
        json.object([&](const std::string& key) {
            result.dtype = key;
            ++members;
            if (!json.take_word("null")) json.fail("null was expected");
        });
        if (members != 1) json.fail("a type was expected");
    };
    const auto read_shape = [&] {
        json.array([&](std::size_t) { result.shape.push_back(json.whole_number()); });
    };
    const auto read_offsets = [&] {
        std::size_t offsets[2] = {};
        const std::size_t count = json.array([&](std::size_t i) {
            if (i < 2) {
                offsets[i] = json.whole_number();
            } else {
                json.skip_value();
            }
        });
        if (count != 2) json.fail("data_offsets are not two");
        result.first = offsets[0];
        result.last = offsets[1];
    };
    constexpr std::string_view names[] = {"dtype", "shape", "data_offsets"};
    unsigned seen = 0;
    const auto read_member = [&](std::size_t index) {
        if (index == std::size(names)) return json.skip_value();
        if ((seen & 1U << index) != 0) json.fail("a tensor has two members " + error_text(names[index]));
        seen |= 1U << index;
        if (index == 0) read_dtype();
        if (index == 1) read_shape();
        if (index == 2) read_offsets();
    };
    if (json.next_is('[')) {
        const std::size_t count =
            json.array([&](std::size_t i) { read_member((std::min)(i, std::size(names))); });
        if (count > std::size(names)) json.fail("a tensor has more than its three members");
    } else {
        json.object([&](const std::string& key) {
            read_member(static_cast<std::size_t>(std::find(names, std::end(names), key) - names));
        });
    }
    if (seen != 7U) json.fail("a tensor lacks its dtype, shape or data_offsets");
    if (dtype_bits(result.dtype) == 0) {
        json.fail("the type " + quoted_excerpt(result.dtype) + " is unknown");
    }
    return result;
}

/// Checks that the tensors fill `size` bytes in order, without gaps, and have the sizes of their shapes.
inline void check_tensors(const std::string& path, tensor_directory& directory, std::size_t size) {
    using named_tensor = std::pair<const std::string, stored_tensor>;
    std::vector<named_tensor*> order;
    for (named_tensor& it : directory.tensors) order.push_back(&it);
    std::sort(order.begin(), order.end(), [](const named_tensor* a, const named_tensor* b) {
        return std::pair(a->second.first, a->second.last) < std::pair(b->second.first, b->second.last);
    });
    std::size_t end = 0;
    for (named_tensor* const entry : order) {
        stored_tensor& it = entry->second;
        const std::string name = quoted_excerpt(entry->first);
        if (it.first > it.last || it.last > size) {
            throw_file(path, name + " lies at bytes " + error_text(it.first) + " to " + error_text(it.last) +
                                 ", beyond the end of the file, which was cut off");
        }
        if (it.first != end) throw_file(path, name + " overlaps another tensor, or lies after a gap");
        end = it.last;
        const std::size_t bits = dtype_bits(it.dtype);
        const std::optional<std::size_t> count = element_count(it.shape);
        constexpr std::size_t most = (std::numeric_limits<std::size_t>::max)();
        if (!count || *count > most / bits || *count * bits % 8 != 0 || *count * bits / 8 != end - it.first) {
            throw_file(path, name + " has the shape " + shape_text(it.shape) + ", which does not fit its " +
                                 error_text(end - it.first) + " bytes");
        }
        it.count = *count;
    }
    if (end != size) {
        throw_file(path, "the tensors take " + error_text(end) + " bytes, and there are " + error_text(size));
    }
}

MP_CORE_FUNCTION tensor_directory read_tensor_directory(const std::string& path,
                                                        std::span<const std::byte> all) {
    if (all.size() < 8) throw_file(path, "is too short to be a file of tensors");
    std::uint64_t length = 0;
    for (unsigned i = 0; i < 8; ++i) length |= static_cast<std::uint64_t>(all[i]) << (8 * i);
    if (length > longest_tensor_header || length > all.size() - 8) {
        throw_file(path, "is no file of tensors, or was cut off: the header would have " +
                             error_text(length) + " bytes");
    }
    const auto size = as<std::size_t>(length);
    tensor_directory result;
    result.header_size = 8 + size;
    json_reader json(path, {reinterpret_cast<const char*>(all.data()) + 8, size}, 8);
    bool has_metadata = false;
    json.object([&](const std::string& name) {
        if (name != "__metadata__") {
            result.tensors.insert_or_assign(name, read_stored_tensor(json));
            return;
        }
        if (has_metadata) json.fail("__metadata__ is there twice");
        has_metadata = true;
        if (json.take_word("null")) return;
        json.object([&](const std::string& key) { result.metadata.insert_or_assign(key, json.string()); });
    });
    json.require_end();
    check_tensors(path, result, all.size() - result.header_size);
    return result;
}

}}  // namespace mp::detail
#endif
