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

#include <mp/arrays/io/file_replacement.hpp>
#include <mp/arrays/io/stored_elements.hpp>
#include <mp/base/bits.hpp>
#include <mp/bfloat16.hpp>
#include <mp/error.hpp>
#include <mp/float4.hpp>
#include <mp/float6.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/numbers/format/operations.hpp>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

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

/// An array to be written: where it is, and what the header says of it; of one that ranks share, the whole.
struct file_entry {
    std::string name;
    std::string_view dtype;
    std::vector<std::size_t> shape;
    const void* data;
    std::size_t element_size;
    std::size_t count;
    std::size_t first = 0;  ///< of the elements that are here, from `first` on, where they are a share:
    std::size_t held = 0;   ///< so many
    bool shared = false;

    [[nodiscard]] std::size_t elements_here() const noexcept { return shared ? held : count; }
};

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

/// The header of a file of these arrays, with its length and padded to a multiple of 8 bytes.
inline std::string tensor_header(std::span<const file_entry> entries,
                                 const std::vector<std::pair<std::string, std::string>>& metadata) {
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
        offset += it.element_size * it.count;
        json.append(error_text(offset)).append("]}");
    }
    json.push_back('}');
    json.append((8 - json.size() % 8) % 8, ' ');
    std::string header;
    for (unsigned i = 0; i < 8; ++i) {
        header.push_back(static_cast<char>(as<std::uint64_t>(json.size()) >> (8 * i) & 255));
    }
    return header + json;
}

/// Reads the JSON of a header and nothing else: an object of objects, strings and arrays of whole numbers.
class tensor_header_reader {
public:
    tensor_header_reader(const std::string& path, std::string_view text)
        : path_(path), all_(text), rest_(text) {}

    [[noreturn]] void fail(std::string_view what) const {
        std::string message = "the header is damaged at byte ";
        message.append(error_text(8 + all_.size() - rest_.size())).append(": ").append(what);
        throw_file(path_, message);
    }
    /// Calls entry(key) for every member of an object, which must read the value.
    template <class Entry>
    void object(Entry entry) {
        require('{');
        if (take('}')) return;
        do {
            const std::string key = string();
            require(':');
            entry(key);
        } while (take(','));
        require('}');
    }
    std::vector<std::size_t> numbers() {
        std::vector<std::size_t> result;
        require('[');
        if (take(']')) return result;
        do {
            skip_spaces();
            std::size_t number = 0;
            const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
            if (error != std::errc{}) fail("a whole number was expected");
            rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
            result.push_back(number);
        } while (take(','));
        require(']');
        return result;
    }
    std::string string() {
        require('"');
        std::string result;
        for (;;) {
            if (rest_.empty()) fail("a string has no end");
            const char character = rest_.front();
            rest_.remove_prefix(1);
            if (character == '"') return result;
            if (static_cast<unsigned char>(character) < 0x20) fail("a string has a control character");
            if (character == '\\') {
                escape(result);
            } else {
                result.push_back(character);
            }
        }
    }
    void require_end() {
        skip_spaces();
        if (!rest_.empty()) fail("there is more after the end");
    }

private:
    void skip_spaces() {
        while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n' || rest_.front() == '\t' ||
                                  rest_.front() == '\r')) {
            rest_.remove_prefix(1);
        }
    }
    bool take(char character) {
        skip_spaces();
        if (rest_.empty() || rest_.front() != character) return false;
        rest_.remove_prefix(1);
        return true;
    }
    void require(char character) {
        if (!take(character)) fail(std::string("'") + character + "' was expected");
    }
    void escape(std::string& result) {
        if (rest_.empty()) fail("a string has no end");
        const char kind = rest_.front();
        rest_.remove_prefix(1);
        constexpr std::string_view kinds = "\"\\/bfnrt";
        constexpr std::string_view values = "\"\\/\b\f\n\r\t";
        if (const std::size_t at = kinds.find(kind); at != std::string_view::npos) {
            result.push_back(values[at]);
            return;
        }
        if (kind != 'u' || rest_.size() < 4) fail("an escape is unknown");
        std::uint32_t code = 0;
        const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + 4, code, 16);
        if (error != std::errc{} || end != rest_.data() + 4) fail("an escape is unknown");
        rest_.remove_prefix(4);
        // UTF-8; halves of a pair are refused, for names are written as they are.
        if (code >= 0xD800 && code < 0xE000) fail("an escape is half of a character");
        if (code < 0x80) {
            result.push_back(static_cast<char>(code));
        } else if (code < 0x800) {
            result.push_back(static_cast<char>(0xC0 | code >> 6));
            result.push_back(static_cast<char>(0x80 | (code & 63)));
        } else {
            result.push_back(static_cast<char>(0xE0 | code >> 12));
            result.push_back(static_cast<char>(0x80 | (code >> 6 & 63)));
            result.push_back(static_cast<char>(0x80 | (code & 63)));
        }
    }

    const std::string& path_;
    std::string_view all_;
    std::string_view rest_;
};

}}  // namespace mp::detail
