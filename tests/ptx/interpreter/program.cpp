// SPDX-License-Identifier: MIT
// Loads a module: its variables get addresses, and its functions are decoded when they are first needed.
#include "decoder.hpp"
#include "machine.hpp"

#include <cstdlib>
#include <cstring>

namespace ptx {

program::program(std::string text, global_memory& memory_of_device)
    : source(read_module(std::move(text))), memory(memory_of_device) {
    const std::size_t number = source.target.find("sm_");
    if (number != std::string_view::npos) architecture = std::atoi(source.target.data() + number + 3);
    for (const variable& it : source.variables) {
        if (it.space == "shared") {
            if (it.is_external) {
                dynamic_shared = it.name;
            } else {
                shared_bytes = (shared_bytes + it.alignment - 1) / it.alignment * it.alignment;
                shared[it.name] = shared_bytes;
                shared_bytes += it.bytes();
            }
            continue;
        }
        if (it.space != "global" && it.space != "const")
            throw failure("PTX: variable in space ." + std::string(it.space));
        const std::uint64_t address = memory.allocate(it.bytes(), it.space == "const");
        addresses[it.name] = address;
        std::memset(reinterpret_cast<void*>(address), 0, it.bytes());
        if (!it.initial.empty())
            std::memcpy(reinterpret_cast<void*>(address), it.initial.data(), it.initial.size());
        memory.mark_written(address, it.bytes());
    }
    for (const variable& it : source.variables) {
        for (const variable::reference& reference : it.references) {
            const auto of = addresses.find(reference.of);
            if (of == addresses.end()) throw failure("PTX: '" + std::string(reference.of) + "' is not known");
            const std::uint64_t value = of->second + static_cast<std::uint64_t>(reference.offset);
            std::memcpy(reinterpret_cast<std::byte*>(addresses[it.name]) + reference.at, &value,
                        sizeof value);
        }
    }
    for (const function_text& it : source.functions) {
        function& to = functions[std::string(it.name)];
        to.name = it.name;
        to.owner = this;
        to.source = &it;
    }
}

const function& program::find(std::string_view name) {
    const auto found = functions.find(std::string(name));
    if (found == functions.end()) throw failure("PTX: function '" + std::string(name) + "' is not known");
    // Marked first: functions may call each other.
    if (!found->second.is_decoded) decoder(*this, found->second).run();
    return found->second;
}

}  // namespace ptx
