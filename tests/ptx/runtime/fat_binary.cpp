// SPDX-License-Identifier: MIT
// What programs of nvcc call before main: they hand over their device code. A fat binary is a header of 16 bytes and
// entries; an entry of kind 1 is PTX, as text where nvcc was told --no-compress.
#include "state.hpp"

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

namespace ptx::runtime {

namespace {

struct wrapper {
    std::int32_t magic;
    std::int32_t version;
    const void* data;
    const void* unused;
};
struct file_header {
    std::uint32_t magic;
    std::uint16_t version;
    std::uint16_t header_bytes;
    std::uint64_t bytes;
};
struct entry_header {
    std::uint16_t kind;
    std::uint16_t version;
    std::uint32_t header_bytes;
    std::uint64_t bytes;
};

/// MP_PTX_REPLACE="this=>that" breaks device code on purpose, to see that a test fails.
std::string broken_on_purpose(std::string text) {
    const char* const said = std::getenv("MP_PTX_REPLACE");
    if (said == nullptr) return text;
    const std::string_view words(said);
    const std::size_t arrow = words.find("=>");
    if (arrow == std::string_view::npos || arrow == 0) throw failure("MP_PTX_REPLACE is \"this=>that\"");
    const std::string_view from = words.substr(0, arrow), to = words.substr(arrow + 2);
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
        text.replace(at, from.size(), to);
    }
    return text;
}

std::string text_of(const void* data) {
    file_header file{};
    std::memcpy(&file, data, sizeof file);
    if (file.magic != 0xBA55'ED50U) throw failure("this is no fat binary");
    const char* at = static_cast<const char*>(data) + file.header_bytes;
    const char* const end = at + file.bytes;
    while (at < end) {
        entry_header entry{};
        std::memcpy(&entry, at, sizeof entry);
        const char* const text = at + entry.header_bytes;
        if (entry.kind == 1) {
            const std::string_view all(text, entry.bytes);
            if (all.substr(0, 256).find(".version") == std::string_view::npos) {
                throw failure(
                    "the PTX of this program is compressed; nvcc leaves it alone with --no-compress");
            }
            return broken_on_purpose(std::string(all.substr(0, std::min(all.find('\0', 256), all.size()))));
        }
        at = text + entry.bytes;
    }
    throw failure("this program has no PTX; nvcc keeps it with -gencode arch=compute_90a,code=compute_90a");
}

}  // namespace

int architecture() {
    static const int result = [] {
        try {
            const std::string text = text_of(state().binaries.at(0)->data);
            return std::atoi(text.c_str() + text.find(".target sm_") + 11);
        } catch (const std::exception&) {
            return 90;  // a launch tells why there is no PTX
        }
    }();
    return result;
}

device_state& state() {
    // Never destroyed: programs free memory in destructors of static objects.
    static auto* const the_state = [] {
        if (std::getenv("MP_PTX_STATISTICS") != nullptr) {
            std::atexit([] {
                std::fprintf(stderr, "interpreted device: %llu instructions\n",
                             static_cast<unsigned long long>(executed_instructions()));
            });
        }
        return new device_state;
    }();
    return *the_state;
}

cudaError_t report(cudaError_t status) {
    if (status != cudaSuccess) state().last = status;
    return status;
}

void break_device(std::string_view message) {
    std::fprintf(stderr, "interpreted device: %.*s\n", static_cast<int>(message.size()), message.data());
    state().failure = message;
    state().sticky = cudaErrorLaunchFailure;
    state().last = cudaErrorLaunchFailure;
}

program& program_of(kernel& it) {
    if (!it.in->loaded) it.in->loaded = std::make_unique<program>(text_of(it.in->data), state().memory);
    return *it.in->loaded;
}

}  // namespace ptx::runtime

using namespace ptx::runtime;

extern "C" {

void** __cudaRegisterFatBinary(void* binary) {
    wrapper it{};
    std::memcpy(&it, binary, sizeof it);
    auto& binaries = state().binaries;
    binaries.push_back(std::make_unique<fat_binary>());
    binaries.back()->data = it.data;
    return reinterpret_cast<void**>(binaries.back().get());
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) {
    return 0;
}

void __cudaRegisterFunction(void** binary, const char* host, char*, const char* name, int, uint3*, uint3*,
                            dim3*, dim3*, int*) {
    state().kernels[host] = {reinterpret_cast<fat_binary*>(binary), name};
}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}

}  // extern "C"
