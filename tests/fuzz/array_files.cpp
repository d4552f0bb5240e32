// SPDX-License-Identifier: MIT
// Fuzzes mp::npy_file and mp::gguf_file: bytes are refused with mp::file_error, or the arrays lie in the file and can be
// read.
#include <mp/arrays/io/gguf.hpp>
#include <mp/arrays/io/npy.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "require.hpp"

namespace {

using fuzzing::require;

/// Calls what may refuse.
template <class Function>
void unless_refused(Function function) {
    try {
        function();
    } catch (const mp::file_error&) {
    }
}

void use(const mp::npy_file& file) {
    unsigned sum = 0;
    for (const std::byte it : file.bytes()) sum += static_cast<unsigned>(it);
    unless_refused([&] {
        for (const float it : file.view<float>()) sum += mp::isfinite(it) ? 1 : 0;
    });
    unless_refused([&] {
        const auto m = file.matrix<mp::bfloat16>();
        require(m.rows >= 0 && m.columns >= 0);
        if (m.rows > 0 && m.columns > 0) sum += m(m.rows - 1, m.columns - 1).bits();
    });
    unless_refused([&] {
        std::vector<std::uint16_t> values(file.size());
        file.read(values);
    });
    require(sum != 1U << 31);  // so that it is computed
}

void use(const mp::gguf_file& file) {
    for (const auto& [name, tensor] : file.tensors()) {
        unsigned sum = 0;
        for (const std::byte it : tensor.bytes) sum += static_cast<unsigned>(it);
        require(sum != 1U << 31);
        unless_refused([&] { static_cast<void>(file.matrix<mp::half>(name)); });
        // A shape with a zero makes many rows of nothing.
        unless_refused([&] {
            std::vector<float> values(tensor.count);
            file.read_converted(name, values);
        });
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto bytes = std::as_bytes(std::span(data, size));
    unless_refused([&] { use(mp::npy_file("fuzzed", bytes)); });
    unless_refused([&] { use(mp::gguf_file("fuzzed", bytes)); });
    return 0;
}
