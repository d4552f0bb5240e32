// SPDX-License-Identifier: MIT
// Fuzzes mp::tensor_file and mp::load_checkpoint: bytes are refused with mp::file_error, or the tensors fill the file
// and can be read.
#include <mp/train/training/checkpoint.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "require.hpp"

namespace {

using fuzzing::require;

void use(const mp::tensor_file& file) {
    std::size_t total = 0;
    for (const auto& [name, tensor] : file.tensors()) {
        total += tensor.bytes.size();
        require(tensor.bytes.empty() ||
                (tensor.bytes.data() >= file.data().data() &&
                 tensor.bytes.data() + tensor.bytes.size() <= file.data().data() + file.data().size()));
        std::vector<float> values(tensor.count);
        try {
            file.read_converted(name, values);
            file.read(name, values);
            static_cast<void>(file.packed_view<mp::float4_e2m1fn>(name));
            static_cast<void>(file.matrix<float>(name));
        } catch (const mp::file_error&) {
        }
    }
    require(total == file.data().size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto bytes = std::as_bytes(std::span(data, size));
    try {
        const mp::tensor_file file("fuzzed", bytes);
        use(file);
        float value = 0.0F;
        mp::load_checkpoint(file, [&](auto& visit) { visit("x", value); });
    } catch (const mp::file_error&) {
    }
    return 0;
}
