// SPDX-License-Identifier: MIT
/// \file
/// Bytes of GGUF files, written out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// A little-endian integer.
inline std::string le(std::uint64_t value, int bytes) {
    std::string result;
    for (int i = 0; i < bytes; ++i) result.push_back(static_cast<char>(value >> (8 * i) & 255));
    return result;
}
/// A text: its length and its bytes.
inline std::string gguf_text(std::string_view it) {
    return le(it.size(), 8).append(it);
}
/// An entry of the list of tensors; the fastest dimension is the first.
inline std::string gguf_tensor(std::string_view name, const std::vector<std::uint64_t>& shape, unsigned type,
                               std::uint64_t offset) {
    std::string result = gguf_text(name) + le(shape.size(), 4);
    for (const std::uint64_t it : shape) result += le(it, 8);
    return result + le(type, 4) + le(offset, 8);
}
/// A file of version 3 with pairs and tensors, and data at the next multiple of 32.
inline std::string gguf_file_of(const std::vector<std::string>& pairs,
                                const std::vector<std::string>& tensors, std::string_view data) {
    std::string result = "GGUF" + le(3, 4) + le(tensors.size(), 8) + le(pairs.size(), 8);
    for (const std::string& it : pairs) result += it;
    for (const std::string& it : tensors) result += it;
    result.append((32 - result.size() % 32) % 32, '\0');
    return result.append(data);
}
