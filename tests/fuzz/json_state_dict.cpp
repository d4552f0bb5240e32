// SPDX-License-Identifier: MIT
// Fuzzes the reader of torch's state_dict() as JSON: a text is refused with mp::error, or gives finite tensors.
#include <mp/frontends/compat/pytorch/json_state_dict.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        const mp::json_state_dict dict(std::string_view(reinterpret_cast<const char*>(data), size));
        for (const auto& [name, values] : dict.tensors()) {
            if (!name.starts_with("state.")) std::abort();
            std::vector<double> read(values.size());
            dict.read_converted(name, read);
            for (const double it : read) {
                if (!std::isfinite(it)) std::abort();
            }
        }
    } catch (const mp::error&) {
    }
    return 0;
}
