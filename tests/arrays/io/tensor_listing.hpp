// SPDX-License-Identifier: MIT
/// \file
/// Safetensors files in memory: written with a given header, and read.
#pragma once

#include <mp/arrays/io/tensor_header.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

/// A file with this header and `bytes` zeros after it.
inline std::string tensor_file_of(std::string_view header, std::size_t bytes) {
    std::string result;
    for (unsigned i = 0; i < 8; ++i)
        result.push_back(static_cast<char>(std::uint64_t{header.size()} >> (8 * i) & 255));
    return result.append(header).append(bytes, '\0');
}

/// Reads the header of a file.
inline mp::detail::tensor_directory read_tensor_file(std::string_view file) {
    return mp::detail::read_tensor_directory("x", std::as_bytes(std::span(file)));
}

/// The tensors of a file as header_mutations.py lists them; nothing if it is refused.
inline std::string listing(std::string_view file) {
    std::string result;
    try {
        for (const auto& [name, it] : read_tensor_file(file).tensors) {
            result.append(name).append(" ").append(it.dtype).append(" [");
            for (const std::size_t size : it.shape) {
                result.append(result.back() == '[' ? "" : ", ").append(std::to_string(size));
            }
            result.append("]\n");
        }
        return result.append(".");
    } catch (const mp::file_error&) {
        return "";
    }
}
